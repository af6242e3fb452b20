//! The columns that tell other types, partners, sizes and cores apart, by hand.

use super::*;
use crate::actions::ActionKind;
use crate::candidate::CandidateKind;
use crate::cluster::{Capabilities, Sharing, Submission};
use crate::cluster_spec::{ClusterSpec, ElasticJob, GpuTypeSpec, Load, ModelClass, Resources};
use crate::estimate::{Estimate, Provenance};
use crate::features::decision::{Id as C, place};
use crate::ids::{ClassId, TenantId, Time};
use crate::pass::Pass;
use crate::physics::goodput::Elastic;
use crate::physics::sensitivity::Sensitivity;
use crate::policy::CandidateConfig;

/// One node of 4 GPUs of each of two types.
fn two_types(classes: &[ModelClass]) -> Cluster {
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    let kind = |name: &str| GpuTypeSpec {
        name: name.into(),
        memory_gib: 16.0,
        mig: None,
    };
    spec.gpu_types = ["old", "new"].map(kind).into();
    spec.node_groups[0].gpu_type = "old".into();
    let mut group = spec.node_groups[0].clone();
    group.gpu_type = "new".into();
    spec.node_groups.push(group);
    Cluster::new(&spec, classes, Capabilities::default()).unwrap()
}

fn class(name: &str, speed: &[f64]) -> ModelClass {
    ModelClass {
        name: name.into(),
        speed: speed.into(),
        ..ModelClass::default()
    }
}

fn submit(cluster: &mut Cluster, class: u16, num_gpus: u32, run_s: f64, cpu_cores: f64) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(class),
        num_gpus,
        estimate_s: Estimate {
            value: run_s,
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            cpu_cores,
            ..Resources::WHOLE_GPU
        },
    };
    cluster.submit(request).unwrap()
}

/// A pass with everything offered, its observation filled.
fn look(cluster: &Cluster) -> Pass {
    let share = cluster.capabilities().sharing != Sharing::Off;
    let mut needs = CandidateConfig::default().needs();
    needs.actions = needs.actions.set(ActionKind::Share, share);
    let mut pass = Pass::new();
    pass.open(cluster, &needs);
    pass.observe(cluster);
    pass
}

/// The first candidate for which `wanted` holds.
fn find(pass: &Pass, wanted: impl Fn(&Candidate) -> bool) -> usize {
    pass.candidates().iter().position(wanted).unwrap()
}

/// Starts the first candidate for which `wanted` holds.
fn start(cluster: &mut Cluster, wanted: impl Fn(&Candidate) -> bool) {
    let mut pass = look(cluster);
    let index = find(&pass, wanted);
    pass.act(cluster, &CandidateConfig::default().needs(), index);
}

/// A column of a candidate in its unit.
fn raw(pass: &Pass, index: usize, column: C) -> f64 {
    let value = pass.observation().as_ref().row(index)[place(column)];
    FEATURES[column as usize].scale.invert(value)
}

fn global(pass: &Pass, column: C) -> f64 {
    let value = pass.observation().as_ref().global[place(column)];
    FEATURES[column as usize].scale.invert(value)
}

fn close(found: f64, expected: f64) {
    let most = 1e-4 * expected.abs().max(1.0);
    assert!((found - expected).abs() < most, "{found} is not {expected}");
}

#[test]
fn a_start_on_a_slow_type_says_when_the_fast_one_is_free_and_what_waiting_gains() {
    // `quick` runs at 1 on old GPUs and at 4 on new ones, `even` at 1 on both: mean speeds 1 and 2.5. All 4 new GPUs are
    // busy with 400 s of `quick`, until 100 s.
    let classes = [class("quick", &[1.0, 4.0]), class("even", &[1.0, 1.0])];
    let mut cluster = two_types(&classes);
    let on = |job: JobId, kind: u8| {
        move |row: &Candidate| row.job == Some(job) && row.facts.is_some_and(|facts| facts.gpu_type.0 == kind)
    };
    let first = submit(&mut cluster, 0, 4, 400.0, 0.0);
    let pass = look(&cluster);
    let here = find(&pass, on(first, 1));
    // On the fast type: no wait; on the other one it would end after 400 s and not after 100.
    close(raw(&pass, here, C::BestTypeWaitS), 0.0);
    close(raw(&pass, here, C::EndGain), -1.0);
    // 4 of a mean of 2.5 for it, 2.5 of a mean of 1.75 for the average class.
    close(raw(&pass, here, C::TypeAdvantage), (4.0 / 2.5) / (2.5 / 1.75));
    close(global(&pass, C::FreeFastest), 1.0);
    start(&mut cluster, on(first, 1));
    let patient = submit(&mut cluster, 0, 2, 800.0, 0.0);
    let even = submit(&mut cluster, 1, 2, 800.0, 0.0);
    cluster.advance(Time::from_secs_f64(20.0));
    let pass = look(&cluster);
    close(global(&pass, C::FreeFastest), 0.0);
    let here = find(&pass, on(patient, 0));
    // New GPUs are free in 80 s, where 800 s take 200: 280 s against 800 s here.
    close(raw(&pass, here, C::BestTypeWaitS), 80.0);
    close(raw(&pass, here, C::EndGain), (800.0 - 280.0) / 800.0);
    close(raw(&pass, here, C::TypeAdvantage), (1.0 / 2.5) / (1.0 / 1.75));
    // For the other one the first of two equally fast types is the fastest, and waiting costs it 80 s.
    let here = find(&pass, on(even, 0));
    close(raw(&pass, here, C::BestTypeWaitS), 0.0);
    close(raw(&pass, here, C::EndGain), -80.0 / 800.0);
    close(raw(&pass, here, C::TypeAdvantage), 1.0 / (1.0 / 1.75));
    close(raw(&pass, here, C::SizeRatio), 1.0);
    // 2 GPUs x 800 s twice, over 8 GPUs.
    close(global(&pass, C::BelievedDrainS), 400.0);
}

#[test]
fn a_reservation_is_told_by_the_type_on_which_it_holds_gpus() {
    // All old GPUs are busy until 50 s, all new ones until 100 s. 400 s of a job four times as fast there: reserved are the
    // old ones at 50 s, to end at 450 s; on the new ones it would end at 200 s.
    let mut cluster = two_types(&[class("quick", &[1.0, 4.0])]);
    submit(&mut cluster, 0, 4, 400.0, 0.0);
    start(&mut cluster, |row| {
        row.facts.is_some_and(|facts| facts.gpu_type.0 == 1)
    });
    submit(&mut cluster, 0, 4, 50.0, 0.0);
    start(&mut cluster, |row| {
        row.facts.is_some_and(|facts| facts.gpu_type.0 == 0)
    });
    submit(&mut cluster, 0, 4, 400.0, 0.0);
    let pass = look(&cluster);
    let here = find(&pass, |row| row.kind == CandidateKind::Reserve);
    close(raw(&pass, here, C::WaitToFitS), 50.0);
    close(raw(&pass, here, C::BestTypeWaitS), 100.0);
    close(raw(&pass, here, C::EndGain), (450.0 - 200.0) / 400.0);
    close(raw(&pass, here, C::TypeAdvantage), 1.0);
}

#[test]
fn a_start_beside_another_job_says_what_that_costs_its_partner() {
    // A light job (20 % busy) beside a heavy one, kappa 0.4: both at 1 / (1 + 0.4 x 0.2) of their speed.
    let light = ModelClass {
        load: Load {
            utilisation: 0.2,
            bandwidth: 0.0,
        },
        ..class("light", &[1.0])
    };
    let heavy = ModelClass {
        load: Load {
            utilisation: 1.0,
            bandwidth: 0.0,
        },
        ..class("heavy", &[1.0])
    };
    let capabilities = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::default()
    };
    let mut cluster = Cluster::new(&ClusterSpec::uniform(1, 2, 1), &[light, heavy], capabilities).unwrap();
    submit(&mut cluster, 0, 1, 300.0, 0.0);
    start(&mut cluster, |row| row.kind == CandidateKind::Start);
    submit(&mut cluster, 1, 1, 100.0, 0.0);
    cluster.advance(Time::from_secs_f64(60.0));
    let pass = look(&cluster);
    let beside = find(&pass, |row| row.partner.is_some());
    close(raw(&pass, beside, C::IsBeside), 1.0);
    close(raw(&pass, beside, C::PartnerRate), 1.0 / 1.08);
    close(raw(&pass, beside, C::PartnerRemainingS), 240.0);
    let alone = find(&pass, |row| {
        row.partner.is_none() && row.kind == CandidateKind::Start
    });
    close(raw(&pass, alone, C::IsBeside), 0.0);
    close(raw(&pass, alone, C::PartnerRate), 1.0);
    close(raw(&pass, alone, C::PartnerRemainingS), 0.0);
}

#[test]
fn an_elastic_job_that_asks_for_more_gpus_than_it_can_use_well_is_told_so() {
    // A step takes 1 s whatever the batch up to 8 a GPU, at most 16 in all: 8 samples a second on one GPU (16 in two
    // steps), 16 on two and 16 on four. Per GPU that is 8, 8 and 4.
    let profile = Elastic::proportional(2);
    let elastic = ModelClass {
        elastic: Some(ElasticJob {
            gpus_max: 4,
            profile: profile.into(),
        }),
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(
        &ClusterSpec::uniform(1, 8, 1),
        &[elastic],
        Capabilities::default(),
    )
    .unwrap();
    let wide = submit(&mut cluster, 0, 4, 100.0, 0.0);
    let narrow = submit(&mut cluster, 0, 2, 100.0, 0.0);
    let pass = look(&cluster);
    for (job, efficiency) in [(wide, 0.5), (narrow, 1.0)] {
        let here = find(&pass, |row| row.job == Some(job));
        close(raw(&pass, here, C::GpuEfficiency), efficiency);
        close(raw(&pass, here, C::SizeRatio), 1.0);
    }
}

#[test]
fn cores_are_told_against_the_fair_share_and_against_all_that_the_class_can_use() {
    // 4 GPUs and 12 cores: a fair share is 3 cores, at speed 1; 6 cores give 1.6, and 9 cores, the most that help, 2.2.
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (12.0, 64.0);
    let hungry = ModelClass {
        sensitivity: Some(Sensitivity {
            cores: vec![1.0, 3.0, 9.0],
            memory_gib: vec![16.0],
            speed: vec![0.4, 1.0, 2.2],
            storage: None,
        }),
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&spec, &[hungry], Capabilities::default()).unwrap();
    let fair = submit(&mut cluster, 0, 1, 100.0, 0.0);
    let served = submit(&mut cluster, 0, 1, 100.0, 6.0);
    let pass = look(&cluster);
    for (job, cores, demand) in [(fair, 1.0, 1.0 / 2.2), (served, 2.0, 1.6 / 2.2)] {
        let here = find(&pass, |row| row.job == Some(job));
        close(raw(&pass, here, C::CoresRatio), cores);
        close(raw(&pass, here, C::DemandRate), demand);
    }
}

#[test]
fn jobs_that_can_have_nothing_else_look_plain() {
    let mut cluster = crate::cluster::tests::cluster_of(&ClusterSpec::uniform(2, 4, 2));
    crate::cluster::tests::submit(&mut cluster, 2, 100.0);
    let pass = look(&cluster);
    assert_eq!(pass.candidates().opportunity_cost(1), OpportunityCost::PLAIN);
    for (column, expected) in [
        (C::PartnerRate, 1.0),
        (C::BestTypeWaitS, 0.0),
        (C::EndGain, 0.0),
        (C::TypeAdvantage, 1.0),
        (C::SizeRatio, 1.0),
        (C::GpuEfficiency, 1.0),
        (C::CoresRatio, 1.0),
        (C::DemandRate, 1.0),
    ] {
        close(raw(&pass, 1, column), expected);
        assert_eq!(raw(&pass, 0, column), 0.0, "nothing of this is said of hold");
    }
    close(global(&pass, C::FreeFastest), 1.0);
    close(global(&pass, C::BelievedDrainS), 25.0);
}
