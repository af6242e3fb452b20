//! Tests of the cluster, and the small clusters that other tests start from.

use super::*;
use crate::ActionKind;
use crate::cluster_spec::{LocalityFactors, Resources};
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, TenantId};
use crate::ids::{GpuTypeId, NodeId};
use proptest::prelude::*;

/// A cluster with one class at speed 1 and Philly's locality factors; preemption on.
pub(crate) fn cluster_of(spec: &ClusterSpec) -> Cluster {
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0; spec.gpu_types.len()],
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    Cluster::new(spec, &[class], capabilities).unwrap()
}

/// Submits a job of tenant 0 and class 0.
pub(crate) fn submit(cluster: &mut Cluster, num_gpus: u32, estimate_s: f64) -> JobId {
    submit_for(cluster, 0, num_gpus, estimate_s)
}

/// Submits a job of class 0.
pub(crate) fn submit_for(cluster: &mut Cluster, tenant: u16, num_gpus: u32, estimate_s: f64) -> JobId {
    let estimate_s = Estimate {
        value: estimate_s,
        provenance: Provenance::Oracle,
    };
    let request = Submission {
        tenant: TenantId(tenant),
        class: ClassId(0),
        num_gpus,
        estimate_s,
        resources: Resources::WHOLE_GPU,
    };
    cluster.submit(request).unwrap()
}

#[test]
fn attained_service_and_progress_follow_the_clock() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let job = submit(&mut cluster, 2, 100.0);
    cluster.advance(Time::from_secs_f64(10.0));
    cluster.start(
        job,
        [Slice {
            node: NodeId(0),
            gpus: 0b11,
        }]
        .into_iter()
        .collect(),
    );
    assert_eq!(cluster.job(job).expected_finish, Time::from_secs_f64(110.0));
    cluster.advance(Time::from_secs_f64(40.0));
    assert_eq!(
        cluster.job(job).attained_gpu_s_at(cluster.now()),
        60.0,
        "2 GPUs for 30 s"
    );
    assert_eq!(cluster.job(job).remaining_s_at(cluster.now()), 70.0);
    cluster.preempt(job);
    cluster.check();
    cluster.advance(Time::from_secs_f64(50.0));
    cluster.start(
        job,
        [Slice {
            node: NodeId(0),
            gpus: 0b1100,
        }]
        .into_iter()
        .collect(),
    );
    // 30 s of restart cost, then the 70 s that are left.
    assert_eq!(cluster.job(job).expected_finish, Time::from_secs_f64(150.0));
    cluster.advance(Time::from_secs_f64(60.0));
    assert_eq!(
        cluster.job(job).remaining_s_at(cluster.now()),
        70.0,
        "still restoring"
    );
    cluster.advance(Time::from_secs_f64(150.0));
    cluster.finish(job);
    cluster.check();
    assert_eq!(cluster.num_free(), 4);
    let mut decisions = Vec::new();
    cluster.take_decisions(&mut decisions);
    assert_eq!(decisions.len(), 3, "start, preempt, start");
}

#[test]
fn a_start_that_is_taken_back_before_it_was_carried_out_never_was() {
    let capabilities = Capabilities {
        restart_cost_s: 20.0,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    let spec = ClusterSpec::uniform(1, 4, 1);
    let mut cluster = Cluster::new(&spec, &[ModelClass::default()], capabilities).unwrap();
    let job = submit(&mut cluster, 2, 100.0);
    let start = |cluster: &mut Cluster| {
        let slice = Slice {
            node: NodeId(0),
            gpus: 0b11,
        };
        cluster.start(job, [slice].into_iter().collect());
    };
    let mut decisions = Vec::new();
    start(&mut cluster);
    cluster.preempt(job);
    cluster.check();
    cluster.take_decisions(&mut decisions);
    let row = cluster.job(job);
    assert_eq!(
        (row.state, row.num_preemptions, row.first_start),
        (JobState::Pending, 0, None)
    );
    assert_eq!((decisions.len(), cluster.resume_cost_s(job)), (0, 0.0));
    // A start that was carried out is stopped, at whatever age.
    start(&mut cluster);
    cluster.take_decisions(&mut decisions);
    cluster.preempt(job);
    assert_eq!(
        (cluster.job(job).num_preemptions, cluster.resume_cost_s(job)),
        (1, 20.0)
    );
    // What was stopped before stays so.
    start(&mut cluster);
    cluster.preempt(job);
    cluster.check();
    cluster.take_decisions(&mut decisions);
    let row = cluster.job(job);
    assert_eq!((row.num_preemptions, row.first_start), (1, Some(Time::ZERO)));
    assert_eq!(decisions.len(), 2, "start, preempt");
}

#[test]
fn a_restart_that_costs_work_counts_as_remaining_time_and_is_not_lost_again() {
    // 100 s of work, 20 s for each restart. 30 s run: 70 + 20 are left. 5 s more: 85 + 20. Nothing is paid at a start.
    let capabilities = Capabilities {
        restart_cost_s: 20.0,
        restart_cost_is_work: true,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    let spec = ClusterSpec::uniform(1, 4, 1);
    let mut cluster = Cluster::new(&spec, &[ModelClass::default()], capabilities).unwrap();
    let job = submit(&mut cluster, 1, 100.0);
    let mut now_s = 0.0;
    for (run_s, left_s) in [(30.0, 90.0), (5.0, 105.0)] {
        let slice = Slice {
            node: NodeId(0),
            gpus: 0b1,
        };
        cluster.start(job, [slice].into_iter().collect());
        now_s += run_s;
        cluster.advance(Time::from_secs_f64(now_s));
        cluster.preempt(job);
        cluster.check();
        assert_eq!(cluster.job(job).remaining_s_at(cluster.now()), left_s);
        assert_eq!(cluster.resume_cost_s(job), 0.0);
    }
}

#[test]
fn requests_that_can_never_be_met_are_refused_with_the_reason() {
    let mut spec = ClusterSpec::uniform(2, 4, 2);
    spec.tenants[0].quota_gpus = 5;
    spec.borrowing = false;
    let mut cluster = cluster_of(&spec);
    let estimate_s = Estimate {
        value: 1.0,
        provenance: Provenance::Oracle,
    };
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus: 1,
        estimate_s,
        resources: Resources::WHOLE_GPU,
    };
    let text = |request| cluster.clone().submit(request).unwrap_err().to_string();
    assert!(
        text(Submission {
            num_gpus: 6,
            ..request
        })
        .contains("1 to 5")
    );
    assert!(
        text(Submission {
            num_gpus: 0,
            ..request
        })
        .contains("job.num_gpus = 0")
    );
    assert!(
        text(Submission {
            tenant: TenantId(3),
            ..request
        })
        .contains("job.tenant = 3")
    );
    let nan = Estimate {
        value: f64::NAN,
        provenance: Provenance::Oracle,
    };
    assert!(
        text(Submission {
            estimate_s: nan,
            ..request
        })
        .contains("NaN")
    );
    assert!(cluster.submit(request).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_starts_preemptions_and_finishes_keep_every_invariant(
        seed_jobs in proptest::collection::vec((1_u32..12, 0_u16..3, 1.0_f64..500.0), 1..40),
        moves in proptest::collection::vec((0_u8..4, 0_usize..40, 0_i64..50), 1..120),
        borrowing in proptest::bool::ANY,
    ) {
        let mut spec = ClusterSpec::uniform(5, 4, 2);
        spec.tenants = (0..3)
            .map(|id| crate::cluster_spec::TenantSpec { name: format!("t{id}"), quota_gpus: 6 })
            .collect();
        spec.borrowing = borrowing;
        let mut cluster = cluster_of(&spec);
        for (num_gpus, tenant, estimate_s) in seed_jobs {
            let most = if borrowing { 12 } else { 6 };
            submit_for(&mut cluster, tenant, num_gpus.min(most), estimate_s);
        }
        for (kind, pick, dt) in moves {
            cluster.advance(cluster.now() + Time(dt * 1_000_000));
            let id = JobId((pick % cluster.jobs().len()) as u32);
            let job = cluster.job(id).clone();
            match (kind, job.state) {
                (0 | 1, JobState::Pending) => {
                    let template = if kind == 0 { Template::Fastest } else { Template::Fragments };
                    let mut out = Vec::new();
                    if cluster.has_room(cluster.demand(id))
                        && cluster.place(template, GpuTypeId(0), job.request.num_gpus, &mut out)
                    {
                        cluster.start(id, out.into_iter().collect());
                    }
                }
                (2, JobState::Running) => cluster.preempt(id),
                (3, JobState::Running) => cluster.finish(id),
                _ => {}
            }
            cluster.check();
        }
        // Giving everything back restores the empty cluster.
        for id in (0..cluster.jobs().len()).map(|id| JobId(id as u32)) {
            if cluster.job(id).state == JobState::Running { cluster.finish(id); }
        }
        cluster.check();
        prop_assert_eq!(cluster.num_free(), 20);
    }
}
