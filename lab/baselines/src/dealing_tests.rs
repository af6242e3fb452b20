//! CPU, host memory and sizes in deals, by hand, and what holds for every such deal.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{JobId, Planner, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

use pleach_dealing::ENTRIES;

use crate::elastic::tests::{elastic_cluster_with, proportional, saturating, submit_class};

use crate::synergy::profile_tests::{submit, synergy_cluster};

/// A planner that deals, by name.
fn make(name: &str, settings: &Value) -> Result<Box<dyn Planner>, pleach_scheduler::Problem> {
    let entry = ENTRIES.iter().find(|entry| entry.info.name == name);
    (entry.expect("a dealer").make)(settings)
}

fn at(planner: &mut dyn Planner, cluster: &mut Cluster, now_s: f64) {
    cluster.advance(Time::from_secs_f64(now_s));
    planner.plan(cluster).unwrap();
    cluster.check();
}

/// Cores of each GPU of a running job, thousandths.
fn cores(cluster: &Cluster, id: JobId) -> u32 {
    cluster.shape(cluster.job(id).granted).cpu_milli
}

fn sizes(cluster: &Cluster, jobs: &[JobId]) -> Vec<u32> {
    jobs.iter().map(|id| cluster.job(*id).num_held).collect()
}

#[test]
fn who_can_use_less_than_its_due_leaves_the_rest_to_who_can_use_more() {
    // 8 GPUs, 24 cores: 3 are due. GNMT can use 1, AlexNet 12: 7 + 12 = 19.
    let mut cluster = synergy_cluster(1, 24.0);
    let hungry = submit(&mut cluster, "alexnet", 1, 1e4);
    let others: Vec<JobId> = (0..7).map(|_| submit(&mut cluster, "gnmt", 1, 1e4)).collect();
    let mut planner = make("las-deal", &Value::Null).unwrap();
    at(planner.as_mut(), &mut cluster, 0.0);
    assert_eq!(cores(&cluster, hungry), 12_000);
    assert!(others.iter().all(|id| cores(&cluster, *id) == 1000));
    // Where no cores are given out each job has what it asked for: none.
    let mut cluster = synergy_cluster(1, 24.0);
    let hungry = submit(&mut cluster, "alexnet", 1, 1e4);
    let mut planner = make("las-deal", &json!({"rules": {"cores": false}})).unwrap();
    at(planner.as_mut(), &mut cluster, 0.0);
    assert_eq!(cores(&cluster, hungry), 0);
}

#[test]
fn who_has_more_than_its_due_gives_it_back_when_others_come_and_gets_it_again_when_they_leave() {
    let mut cluster = synergy_cluster(1, 24.0);
    let first = submit(&mut cluster, "alexnet", 1, 1e6);
    let mut planner = make("las-deal", &Value::Null).unwrap();
    at(planner.as_mut(), &mut cluster, 0.0);
    assert_eq!(cores(&cluster, first), 12_000);
    let others: Vec<JobId> = (0..7).map(|_| submit(&mut cluster, "alexnet", 1, 1e6)).collect();
    at(planner.as_mut(), &mut cluster, 100.0);
    assert_eq!(cores(&cluster, first), 3000);
    let all_have_their_due = others.iter().all(|id| cores(&cluster, *id) == 3000);
    assert!(all_have_their_due, "all eight run, each with its due");
    for id in &others {
        cluster.finish(*id);
    }
    at(planner.as_mut(), &mut cluster, 1000.0);
    assert_eq!(cores(&cluster, first), 12_000);
    assert_eq!(
        cluster.job(first).num_preemptions,
        2,
        "a share that changes is a restart"
    );
}

#[test]
fn an_elastic_job_takes_what_nobody_wants_and_gives_it_back() {
    // Every GPU adds as much. Job 1 comes after 600 s, when job 0 has had 2,400 s for each of the 2 GPUs that it asked for. With
    // floor 600 s, stay 1.5 and gang 0.75 the first GPU of job 0 counts -ln(3000) + ln(1.5) = -7.60, the k-th of job 1
    // -ln(600) - 0.75 ln(k): -7.44 for the fourth, -7.86 for the seventh; the second of job 0 comes after that with -8.12.
    let mut cluster = elastic_cluster_with(1, 8, &[proportional(8)], 0.0);
    let mut jobs = vec![submit_class(&mut cluster, 0, 2, 1e5)];
    let mut planner = make("las-deal", &Value::Null).unwrap();
    at(planner.as_mut(), &mut cluster, 0.0);
    assert_eq!(sizes(&cluster, &jobs), [8]);
    jobs.push(submit_class(&mut cluster, 0, 2, 1e5));
    at(planner.as_mut(), &mut cluster, 600.0);
    assert_eq!(sizes(&cluster, &jobs), [1, 7]);
    // A rigid gang of 6 that was never served takes its 6. Of the other two GPUs the second of job 0 (-ln(5200) - 0.75 ln(2) =
    // -9.08) comes before the first of job 1 (-ln(16000) + ln(1.5) = -9.27).
    let gang = submit_class(&mut cluster, 1, 6, 1e5);
    jobs.push(gang);
    at(planner.as_mut(), &mut cluster, 5000.0);
    assert_eq!(sizes(&cluster, &jobs), [2, 0, 6]);
    cluster.finish(gang);
    // When it has ended the first of job 1 (-ln(16000) = -9.68) comes before the fourth of job 0 (-ln(6200) - 0.75 ln(4) =
    // -9.77), and its seventh (-10.19) before the second of job 1 (-10.20).
    at(planner.as_mut(), &mut cluster, 6000.0);
    assert_eq!(sizes(&cluster, &jobs[..2]), [7, 1]);
}

#[test]
fn a_job_to_which_a_second_gpu_adds_nothing_gets_one_and_without_resizing_what_it_asked_for() {
    for (settings, expected) in [
        (Value::Null, [7, 1]),
        (json!({"rules": {"resize": false}}), [2, 4]),
    ] {
        let mut cluster = elastic_cluster_with(1, 8, &[proportional(7), saturating(8)], 0.0);
        let jobs = [(0, 2), (1, 4)].map(|(class, num)| submit_class(&mut cluster, class, num, 1e5));
        let mut planner = make("las-deal", &settings).unwrap();
        at(planner.as_mut(), &mut cluster, 0.0);
        assert_eq!(sizes(&cluster, &jobs), expected);
    }
}

#[test]
fn a_job_grows_when_its_size_has_cost_it_a_restart() {
    // On 4 of 8 GPUs it is half as fast as on 8, so they have cost it 100 s when it has run for 100 s.
    let mut cluster = elastic_cluster_with(1, 8, &[proportional(8)], 100.0);
    let jobs = [0, 1].map(|_| submit_class(&mut cluster, 0, 2, 1e6));
    let mut planner = make("las-deal", &json!({"rules": {"deal_min_s": 0.0}})).unwrap();
    at(planner.as_mut(), &mut cluster, 0.0);
    assert_eq!(sizes(&cluster, &jobs), [4, 4]);
    cluster.advance(Time::from_secs_f64(50.0));
    cluster.finish(jobs[1]);
    at(planner.as_mut(), &mut cluster, 99.0);
    assert_eq!(sizes(&cluster, &jobs[..1]), [4]);
    // Nothing need happen for it: the planner asks to be woken while GPUs are free that it could have.
    assert_eq!(
        planner.wake_at(&cluster),
        Some(Time::from_secs_f64(99.0 + 1200.0))
    );
    at(planner.as_mut(), &mut cluster, 101.0);
    assert_eq!(sizes(&cluster, &jobs[..1]), [8]);
    assert_eq!(planner.wake_at(&cluster), None);
}

/// Ends some of the jobs that run.
fn end_some(cluster: &mut Cluster, ends: impl Fn(JobId) -> bool) {
    for id in cluster.running().filter(|id| ends(*id)).collect::<Vec<_>>() {
        cluster.finish(id);
    }
}

proptest! {
    #[test]
    fn nothing_is_given_out_twice_and_nobody_waits_beside_room_for_its_due(
        waves in proptest::collection::vec(proptest::collection::vec((0_usize..10, 1_u32..5, any::<bool>()), 1..12), 1..6),
        name in proptest::sample::select(vec!["las-deal", "srtf-deal", "index"]),
    ) {
        let mut cluster = synergy_cluster(2, 24.0);
        let mut planner = make(name, &Value::Null).unwrap();
        for (number, wave) in waves.iter().enumerate() {
            end_some(&mut cluster, |id| wave[id.index() % wave.len()].2);
            for (model, num_gpus, _) in wave {
                let model = pleach_scheduler::physics::sensitivity::SYNERGY_MODELS[*model].name;
                submit(&mut cluster, model, *num_gpus, 1e4);
            }
            at(planner.as_mut(), &mut cluster, 500.0 * (number + 1) as f64);
            // What is due fits wherever GPUs are free, so no GPU is idle that a waiting gang could use.
            let free: u32 = cluster.nodes().iter().map(|node| node.free.count_ones()).sum();
            for id in cluster.pending() {
                prop_assert!(cluster.job(id).request.num_gpus > free);
            }
        }
    }

    #[test]
    fn elastic_jobs_never_hold_more_than_there_is_and_rigid_ones_their_gang(
        waves in proptest::collection::vec(proptest::collection::vec((0_u16..3, 1_u32..5, any::<bool>()), 1..8), 1..8),
        name in proptest::sample::select(vec!["las-deal", "rate-deal", "gittins-deal", "index"]),
    ) {
        let mut cluster = elastic_cluster_with(2, 4, &[proportional(8), saturating(4)], 30.0);
        let mut planner = make(name, &Value::Null).unwrap();
        for (number, wave) in waves.iter().enumerate() {
            end_some(&mut cluster, |id| wave[id.index() % wave.len()].2);
            for (class, num_gpus, _) in wave {
                submit_class(&mut cluster, *class, *num_gpus, 1e4);
            }
            at(planner.as_mut(), &mut cluster, 500.0 * (number + 1) as f64);
            for id in cluster.running() {
                let job = cluster.job(id);
                prop_assert!(job.rate > 0.0);
                prop_assert!(job.request.class.0 < 2 || job.num_held == job.request.num_gpus);
            }
        }
    }
}
