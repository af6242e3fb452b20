//! Every declared direction of the table of columns, held to the rows themselves: a wrong one would make certificates unsound. The
//! same job is submitted earlier, or with a shorter estimate, in otherwise equal clusters, and the rows about it are compared.

use super::*;
use crate::ActionKind;
use crate::actions::{About, CANDIDATES};
use crate::cluster::{Capabilities, Submission};
use crate::cluster_spec::{ClusterSpec, GpuTypeSpec, ModelClass, Resources};
use crate::estimate::{Estimate, Provenance};
use crate::features::{FeatureSchema, Relation, Stimulus};
use crate::ids::{ClassId, TenantId, Time};
use crate::pass::{Pass, PassState};
use crate::policy::{CandidateConfig, Needs};

const NUM_WORLDS: usize = 400;

struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// All jobs are offered, so that a rank moves with the job alone.
fn needs() -> Needs {
    let config = CandidateConfig {
        heads: 16,
        fitting: 16,
        ..CandidateConfig::default()
    };
    config.needs()
}

fn empty() -> Cluster {
    let kind = |name: &str| GpuTypeSpec {
        name: name.into(),
        memory_gib: 16.0,
        mig: None,
    };
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    spec.gpu_types = ["old", "new"].map(kind).into();
    spec.node_groups[0].gpu_type = "old".into();
    let mut group = spec.node_groups[0].clone();
    group.gpu_type = "new".into();
    spec.node_groups.push(group);
    let class = |speed: [f64; 2]| ModelClass {
        name: format!("{speed:?}"),
        speed: speed.into(),
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    Cluster::new(&spec, &[class([1.0, 2.0]), class([1.0, 1.25])], capabilities).unwrap()
}

fn submit(cluster: &mut Cluster, (num_gpus, class, run_s): (u64, u64, f64)) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(class as u16),
        num_gpus: num_gpus as u32,
        estimate_s: Estimate {
            value: run_s,
            provenance: Provenance::Oracle,
        },
        resources: Resources::WHOLE_GPU,
    };
    cluster.submit(request).unwrap()
}

fn job(draws: &mut Draws) -> (u64, u64, f64) {
    (
        1 + draws.below(4),
        draws.below(2),
        200.0 + draws.below(20_000) as f64,
    )
}

/// A few jobs, of which some run; and the time, s.
fn world(draws: &mut Draws) -> (Cluster, f64) {
    let (mut cluster, mut now_s, mut pass) = (empty(), 0.0, Pass::new());
    for _ in 0..draws.below(4) {
        now_s += draws.below(2_000) as f64;
        cluster.advance(Time::from_secs_f64(now_s));
        let drawn = job(draws);
        submit(&mut cluster, drawn);
        let mut state = pass.open(&cluster, &needs());
        while state == PassState::Open && draws.below(3) > 0 {
            let action = 1 + draws.below(pass.candidates().len() as u64 - 1) as usize;
            state = pass.act(&mut cluster, &needs(), action);
        }
    }
    (cluster, now_s)
}

/// Joined rows about a job, each with what tells it from the others.
fn rows_about(cluster: &Cluster, job: JobId) -> Vec<(String, Vec<f32>)> {
    let mut pass = Pass::new();
    pass.open(cluster, &needs());
    pass.observe(cluster);
    let (set, seen) = (pass.candidates(), pass.observation().as_ref());
    let own = set.iter().enumerate().filter(|(_, row)| row.job == Some(job));
    own.map(|(index, row)| {
        let what = format!("{:?} {:?} {:?}", row.kind, set.placement(row), set.victims(row));
        let joined = FeatureSchema::current().joined_row(seen.row(index), seen.global);
        (what, joined)
    })
    .collect()
}

/// The same job before and after a stimulus, with others that come behind it.
fn pair(draws: &mut Draws, stimulus: Stimulus) -> [Vec<(String, Vec<f32>)>; 2] {
    let (cluster, now_s) = world(draws);
    let (gpus, class, run_s) = job(draws);
    let (step_s, later_s) = (1.0 + draws.below(5_000) as f64, now_s + 5_001.0);
    let others: Vec<_> = (0..draws.below(4)).map(|_| job(draws)).collect();
    let shorter_s = run_s * (1 + draws.below(99)) as f64 / 100.0;
    let of = |is_after: bool| {
        let mut cluster = cluster.clone();
        let (submit_s, run_s) = match stimulus {
            Stimulus::Waiting => (later_s - if is_after { step_s } else { 0.0 }, run_s),
            Stimulus::Estimate if is_after => (later_s, shorter_s),
            Stimulus::Estimate | Stimulus::Relief => (later_s, run_s),
        };
        cluster.advance(Time::from_secs_f64(submit_s));
        let own = submit(&mut cluster, (gpus, class, run_s));
        cluster.advance(Time::from_secs_f64(later_s));
        for other in &others {
            submit(&mut cluster, *other);
        }
        cluster.advance(Time::from_secs_f64(later_s + 100.0));
        rows_about(&cluster, own)
    };
    [of(false), of(true)]
}

#[test]
fn every_column_moves_as_the_table_says() {
    let schema = FeatureSchema::current();
    let mut draws = Draws(11);
    for stimulus in [Stimulus::Waiting, Stimulus::Estimate] {
        let mut has_moved = vec![false; schema.features.len()];
        let mut kinds = Vec::new();
        for _ in 0..NUM_WORLDS {
            let [before, after] = pair(&mut draws, stimulus);
            for (what, first) in &before {
                let Some((_, second)) = after.iter().find(|(other, _)| other == what) else {
                    continue;
                };
                kinds.push(what.split(' ').next().unwrap_or_default().to_owned());
                let columns = schema.features.iter().zip(&mut has_moved);
                for ((feature, has_moved), (first, second)) in columns.zip(first.iter().zip(second)) {
                    let holds = match feature.relation(stimulus) {
                        Relation::Equal => first == second,
                        Relation::Up => first <= second,
                        Relation::Down => first >= second,
                        Relation::Any => true,
                    };
                    assert!(
                        holds,
                        "{} under {stimulus:?}: {first}, then {second}, in {what}",
                        feature.name
                    );
                    *has_moved |= first != second;
                }
            }
        }
        let waiting = CANDIDATES.iter().filter(|row| row.about == About::Waiting);
        for kind in waiting.map(|row| row.kind) {
            assert!(kinds.contains(&format!("{kind:?}")), "no {kind:?} was compared");
        }
        for (feature, has_moved) in schema.features.iter().zip(has_moved) {
            let is_still = feature.relation(stimulus) == Relation::Equal;
            assert!(
                is_still != has_moved,
                "{} never moved under {stimulus:?}",
                feature.name
            );
        }
    }
}
