//! Whole rounds of Synergy, worked by hand, and its promise as a property.

use pleach_scheduler::cluster::{Cluster, JobState, Shape};
use pleach_scheduler::physics::sensitivity::SYNERGY_MODELS;
use pleach_scheduler::{JobId, Time};
use proptest::prelude::*;

use super::profile_tests::{submit, synergy_cluster};
use super::*;
use crate::test_clusters::running;

fn planner(grant: Grant, order: Order) -> Synergy {
    let config = SynergyConfig {
        order,
        ..SynergyConfig::default()
    };
    Synergy::new("synergy", grant, config).unwrap()
}

fn at(planner: &mut Synergy, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
    cluster.advance(Time::from_secs_f64(now_s));
    planner.plan(cluster).unwrap();
    cluster.check();
    running(cluster)
}

fn rates(cluster: &Cluster, num_jobs: u32) -> Vec<f64> {
    (0..num_jobs).map(|id| cluster.job(JobId(id)).rate).collect()
}

#[test]
fn one_server_of_image_and_language_models() {
    // One server of 8 GPUs and 24 cores. Six language models want 1 core each; two ResNet-18 want 9 each: 24 in all.
    let fill = |grant| {
        let mut cluster = synergy_cluster(1, 24.0);
        for model in [
            "resnet18", "resnet18", "gnmt", "gnmt", "gnmt", "gnmt", "gnmt", "gnmt",
        ] {
            submit(&mut cluster, model, 1, 1e5);
        }
        let jobs = at(&mut planner(grant, Order::Fifo), &mut cluster, 0.0);
        assert_eq!(jobs.len(), 8);
        rates(&cluster, 8)
    };
    assert_eq!(fill(Grant::Proportional), [1.0; 8]);
    for grant in [Grant::Greedy, Grant::Tune] {
        assert_eq!(fill(grant), [2.4, 2.4, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    }
}

#[test]
fn eight_image_models_starve_under_greedy_and_run_proportionally_under_tune() {
    // Each wants 9 of 24 cores: GREEDY runs two of the eight and strands six GPUs. TUNE runs all: two take 9 each, the next
    // two find 6 and take 3 each; the fifth takes 6 back from the first and so feeds the sixth as well, the seventh takes
    // them back from the second and so feeds the eighth.
    let fill = |grant| {
        let mut cluster = synergy_cluster(1, 24.0);
        for _ in 0..8 {
            submit(&mut cluster, "resnet18", 1, 1e5);
        }
        let jobs = at(&mut planner(grant, Order::Fifo), &mut cluster, 0.0);
        (jobs, rates(&cluster, 8))
    };
    assert_eq!(fill(Grant::Greedy).0, [0, 1]);
    let (jobs, rates) = fill(Grant::Tune);
    assert_eq!(jobs.len(), 8);
    assert_eq!(
        rates, [1.0; 8],
        "24 cores for 8 jobs that can all use more than 3"
    );
}

#[test]
fn rounds_are_kept_and_a_job_that_stays_is_not_touched() {
    let mut cluster = synergy_cluster(1, 24.0);
    let mut tune = planner(Grant::Tune, Order::Fifo);
    submit(&mut cluster, "resnet18", 1, 1e5);
    assert_eq!(at(&mut tune, &mut cluster, 0.0), [0]);
    assert_eq!(tune.wake_at(&cluster), Some(Time::from_secs_f64(300.0)));
    // A newcomer waits for the end of the round.
    submit(&mut cluster, "gnmt", 1, 1e5);
    assert_eq!(at(&mut tune, &mut cluster, 100.0), [0]);
    assert_eq!(at(&mut tune, &mut cluster, 300.0), [0, 1]);
    assert_eq!(cluster.job(JobId(0)).num_preemptions, 0);
}

#[test]
fn least_attained_service_takes_turns_by_round() {
    // Two gangs of 8 on one server: each round goes to the one that has received less.
    let mut cluster = synergy_cluster(1, 24.0);
    let mut fair = planner(Grant::Proportional, Order::Las);
    submit(&mut cluster, "gnmt", 8, 1e5);
    submit(&mut cluster, "gnmt", 8, 1e5);
    let turns: Vec<Vec<u32>> = (0..4)
        .map(|round| at(&mut fair, &mut cluster, 300.0 * f64::from(round)))
        .collect();
    assert_eq!(turns, [[0], [1], [0], [1]]);
}

#[test]
fn quotas_without_borrowing_bind() {
    let mut spec = pleach_scheduler::cluster_spec::ClusterSpec::uniform(1, 4, 1);
    spec.tenants = ["a", "b"]
        .map(|name| pleach_scheduler::cluster_spec::TenantSpec {
            name: name.into(),
            quota_gpus: 2,
        })
        .to_vec();
    spec.borrowing = false;
    let mut cluster = crate::test_clusters::cluster_of(&spec);
    for tenant in [0, 0, 0, 1] {
        crate::test_clusters::submit_for(&mut cluster, tenant, 1, 1e4);
    }
    let mut tune = planner(Grant::Tune, Order::Fifo);
    assert_eq!(at(&mut tune, &mut cluster, 0.0), [0, 1, 3]);
}

#[test]
fn the_programme_gives_cores_to_whom_they_bring_most() {
    // 8 GPUs, 24 cores: two ResNet-18 (best 9 cores: 2.4) and two ResNet-50 (best 4: 1.15), four GPUs idle. All four could
    // have 26; the programme takes from the job that loses least: a core of a ResNet-50 is worth 0.15, the last three of a
    // ResNet-18 together 0.65.
    let mut cluster = synergy_cluster(1, 24.0);
    for model in ["resnet50", "resnet50", "resnet18", "resnet18"] {
        submit(&mut cluster, model, 1, 1e5);
    }
    at(&mut planner(Grant::Optimum, Order::Fifo), &mut cluster, 0.0);
    assert_eq!(rates(&cluster, 4), [1.0, 1.0, 2.4, 2.4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_grant_is_worth_more_than_the_programme_and_opt_is_no_slower_than_the_proportional_share(
        num_servers in 1_u32..4,
        jobs in proptest::collection::vec((0_usize..10, 0_u32..4), 1..24),
    ) {
        let mut clusters = [synergy_cluster(num_servers, 24.0), synergy_cluster(num_servers, 24.0)];
        for (model, size) in &jobs {
            for cluster in &mut clusters {
                submit(cluster, SYNERGY_MODELS[*model].name, 1 << size, 1e5);
            }
        }
        let grants = [Grant::Tune, Grant::Optimum];
        for (cluster, grant) in clusters.iter_mut().zip(grants) {
            at(&mut planner(grant, Order::Fifo), cluster, 0.0);
        }
        let [tuned, best] = &clusters;
        let mut profiles = Profiles::new(0.0);
        let groups: Vec<Group> = tuned.running().map(|id| Group {
            num_gpus: tuned.job(id).request.num_gpus,
            num_jobs: 1,
            choices: profiles.choices(tuned, id, pleach_scheduler::GpuTypeId(0)),
        }).collect();
        let all = [f64::from(num_servers) * 24_000.0, f64::from(num_servers) * 512_000.0];
        let bound = optimum(&groups, all).unwrap().objective;
        for cluster in [tuned, best] {
            let speed: f64 = cluster.running().map(|id| cluster.job(id).rate).sum();
            prop_assert!(speed <= bound + 1e-6, "{speed} of {bound}");
        }
        prop_assert!(best.running().all(|id| best.job(id).rate >= 1.0 - 1e-9));
        prop_assert_eq!(tuned.num_running(), best.num_running());
    }

    #[test]
    fn under_tune_nobody_runs_slower_than_with_the_proportional_share(
        cores in prop_oneof![Just(24.0), Just(32.0), Just(48.0)],
        num_servers in 1_u32..4,
        jobs in proptest::collection::vec((0_usize..10, 0_u32..4), 1..40),
    ) {
        let mut cluster = synergy_cluster(num_servers, cores);
        for (model, size) in jobs {
            submit(&mut cluster, SYNERGY_MODELS[model].name, 1 << size, 1e5);
        }
        let fair = cluster.number_shape(Shape {
            cpu_milli: (cores * 1000.0 / 8.0) as u32,
            memory_mib: 64_000,
            ..Shape::PLAIN
        }).unwrap();
        let mut tune = planner(Grant::Tune, Order::Fifo);
        let mut proportional = planner(Grant::Proportional, Order::Fifo);
        let mut other = cluster.clone();
        for round in 0..3 {
            let runs = at(&mut tune, &mut cluster, 300.0 * f64::from(round));
            for id in &runs {
                let job = cluster.job(JobId(*id));
                let due = cluster.facts_with(JobId(*id), &job.placement, fair).rate;
                prop_assert!(job.rate >= due - 1e-9, "job {id} runs at {} of {due}", job.rate);
            }
            // Which jobs run does not depend on CPU and memory.
            let plain = at(&mut proportional, &mut other, 300.0 * f64::from(round));
            prop_assert_eq!(runs, plain);
            prop_assert_eq!(cluster.num_running(), other.num_running());
        }
        prop_assert!(cluster.running().all(|id| cluster.job(id).state == JobState::Running));
    }
}
