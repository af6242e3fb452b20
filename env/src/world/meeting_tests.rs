//! Saves that meet each other: by hand, and periodic writes against a store that is shared event by event.

use pleach_scheduler::cluster::{Capabilities, Slice};
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::physics::storage::{Saver, Storage};
use pleach_scheduler::{ActionKind, Estimate, NodeId, Provenance};
use pleach_workloads::{JobSpec, Seed, Workload};
use rand::RngExt as _;

use super::*;
use crate::test_lists::job;
use crate::world::Advance;

/// What a start costs, s: container and connections of 8 GPUs; no warm-up.
const START_S: f64 = 32.0 + 2.0216;

/// Nodes of 8 GPUs; jobs of 140 GB, which 8 GPUs write at 2 GB/s alone, with a checkpoint every `interval_s`.
fn world(num_nodes: u32, jobs: Vec<JobSpec>, interval_s: f64, store: Storage, grace_s: Option<f64>) -> World {
    let class = ModelClass {
        state_gib: 140e9 / 1_073_741_824.0,
        checkpoint_interval_s: Some(interval_s),
        ..ModelClass::default()
    };
    let mut cluster = ClusterSpec::uniform(num_nodes, 8, 4);
    cluster.storage = Some(store);
    let workload = Workload {
        name: "test".into(),
        cluster,
        classes: vec![class],
        jobs,
    };
    let known = workload.jobs.iter().map(|job| Estimate {
        value: job.run_time_s,
        provenance: Provenance::Oracle,
    });
    let capabilities = Capabilities {
        overheads: Some(Overheads::ByClass),
        class_checkpoints: true,
        stop_grace_s: grace_s,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    World::new(&workload, capabilities, &known.collect::<Vec<_>>()).unwrap()
}

fn store(gb_s: f64, saver: Saver) -> Storage {
    Storage {
        read_gb_s: 1e3,
        write_gb_s: gb_s,
        saver,
    }
}

fn start(world: &mut World, id: u32, node: u32) {
    let slice = Slice {
        node: NodeId(node),
        gpus: 0xff,
    };
    let placement = [slice].into_iter().collect();
    world.cluster_mut().start(JobId(id), placement);
}

#[test]
fn jobs_that_are_stopped_at_once_divide_the_store_and_with_a_short_grace_some_lose_work() {
    // Seven jobs on a store of 10 GB/s; the first six are stopped after 3,000 s. Alone a save takes 2 + 140 / 2 = 72 s; a running job
    // writes for 72 s of every 1,000 s of work, which takes 0.3 + 140 / 8 / 20 = 1.175 s longer.
    let list = (0..7).map(|number| job(&format!("{number}"), 0.0, 8, 9000.0));
    let mut list: Vec<JobSpec> = list.collect();
    list.push(job("late", 3000.0, 1, 1.0));
    let writes = (72.0 / 1001.175_f64 * 1e6).round() / 1e6;
    let save_s = 2.0 + 140.0 / (10.0 / (6.0 + writes));
    assert!((save_s - 87.0).abs() < 0.01, "{save_s}");
    for (grace_s, in_vain) in [(None, false), (Some(88.0), false), (Some(80.0), true)] {
        let mut world = world(8, list.clone(), 1000.0, store(10.0, Saver::Tuned), grace_s);
        world.advance();
        (0..7).for_each(|id| start(&mut world, id, id));
        world.carry_out();
        world.advance();
        let done_s = (3000.0 - START_S) / 1.001_175;
        for id in 0..6 {
            world.cluster_mut().preempt(JobId(id));
            start(&mut world, id, id);
        }
        world.carry_out();
        for id in 0..6_usize {
            // All know of is a save alone; reading takes 3 + 140 / 4 s.
            let known_s = world.cluster().job(JobId(id as u32)).cost_left_s;
            assert!((known_s - (START_S + 38.0 + 72.0)).abs() < 1e-6);
            let (paid_s, kept_s) = if in_vain { (80.0, 2000.0) } else { (save_s, done_s) };
            let truth = &world.truth[id];
            let expected_s = START_S + 38.0 + paid_s;
            assert!((truth.cost_left_s - expected_s).abs() < 1e-6, "{grace_s:?} {id}");
            assert!((truth.done_s() - kept_s).abs() < 1e-3, "{grace_s:?} {id}");
        }
        assert_eq!(world.truth[6].lost_s, 0.0);
        assert_eq!(world.store.saves_until.len(), 6);
    }
}

#[test]
fn the_second_naive_writer_stands_still_for_longer_and_is_forgotten_when_it_leaves() {
    // A store of 2 GB/s. The first: 72 s in every 1,000 s. It writes for 72 / 1,072 of the time.
    let list = vec![job("a", 0.0, 8, 9000.0), job("b", 100.0, 8, 1000.0)];
    let mut world = world(2, list, 1000.0, store(2.0, Saver::Naive), None);
    for id in 0..2 {
        world.advance();
        start(&mut world, id, id);
        world.carry_out();
    }
    let first = (72.0 / 1072.0_f64 * 1e6).round() / 1e6;
    let stall_s = 2.0 + 140.0 / (2.0 / (1.0 + first));
    assert!((world.truth[0].rate - 1.0 / 1.072).abs() < 1e-9);
    assert!((world.truth[1].rate - 1.0 / (1.0 + stall_s / 1000.0)).abs() < 1e-9);
    // Policies believe that it is alone.
    assert!((world.cluster().job(JobId(1)).rate - 1.0 / 1.072).abs() < 1e-9);
    let second = (stall_s / (1000.0 + stall_s) * 1e6).round();
    assert_eq!(world.store.writing as f64, (first * 1e6).round() + second);
    let left = |world: &World| world.outcomes().count();
    while left(&world) == 0 {
        world.advance();
        world.carry_out();
    }
    let finish_s = world.outcomes().next().unwrap().finish_s;
    assert!(
        (finish_s - (100.0 + START_S + 1000.0 + stall_s)).abs() < 1e-3,
        "{finish_s}"
    );
    assert_eq!(world.store.writing as f64, (first * 1e6).round());
    while world.advance() == Advance::Event {
        world.carry_out();
    }
    assert_eq!(world.store.writing, 0);
}

/// Mean time of a save, s, of `num` jobs that train for `interval_s` on average and then write 140 GB to a store of 2 GB/s, which is
/// divided anew whenever one of them begins or ends, and need 2 s more.
fn save_s_event_by_event(num: usize, interval_s: f64, num_saves: usize) -> f64 {
    let mut rng = Seed(3).stream("writers", 0);
    let mut think = || interval_s * (0.5 + rng.random::<f64>());
    // (until when it trains, what it has to write yet, since when it writes)
    let mut jobs: Vec<(f64, f64, f64)> = (0..num).map(|_| (think(), 0.0, 0.0)).collect();
    let (mut now, mut sum_s, mut saves) = (0.0, 0.0, 0);
    while saves < num_saves {
        let writing = jobs.iter().filter(|job| job.1 > 0.0).count() as f64;
        let next = |job: &(f64, f64, f64)| match job.1 > 0.0 {
            true => now + job.1 / (2.0 / writing),
            false => job.0,
        };
        let at = (0..num)
            .min_by(|a, b| next(&jobs[*a]).total_cmp(&next(&jobs[*b])))
            .unwrap();
        let then = next(&jobs[at]);
        for (index, job) in jobs.iter_mut().enumerate() {
            if job.1 > 0.0 && index != at {
                job.1 = (job.1 - (then - now) * 2.0 / writing).max(1e-9);
            }
        }
        now = then;
        if jobs[at].1 > 0.0 {
            sum_s += now - jobs[at].2 + 2.0;
            saves += 1;
            jobs[at] = (now + 2.0 + think(), 0.0, 0.0);
        } else {
            jobs[at] = (0.0, 140.0, now);
        }
    }
    sum_s / saves as f64
}

#[test]
fn where_few_write_naive_savers_wait_as_long_as_at_a_store_that_is_shared_event_by_event() {
    for (num, interval_s) in [(4_u32, 10_000.0), (12, 10_000.0), (12, 5_000.0)] {
        let slow_s = save_s_event_by_event(num as usize, interval_s, 100_000);
        // One job after another on each node, so that each meets all others; the first of each node meets fewer.
        let per_node = 8;
        let list = (0..num * per_node).map(|number| job(&format!("{number}"), 0.0, 8, 20.0 * interval_s));
        let mut world = world(num, list.collect(), interval_s, store(2.0, Saver::Naive), None);
        let mut next = 0;
        while world.advance() == Advance::Event {
            while next < num * per_node && world.cluster().num_free() >= 8 {
                let free = (0..num).find(|node| world.cluster().nodes()[*node as usize].free == 0xff);
                start(&mut world, next, free.unwrap());
                next += 1;
            }
            world.carry_out();
        }
        let late = world.outcomes().filter(|job| job.first_start_s > 1.0);
        let stalls: Vec<f64> = late
            .map(|job| (job.finish_s - job.first_start_s - START_S) / 20.0 - interval_s)
            .collect();
        let fast_s = stalls.iter().sum::<f64>() / stalls.len() as f64;
        let (fast_wait_s, slow_wait_s) = (fast_s - 72.0, slow_s - 72.0);
        println!("{num} jobs, {interval_s} s: waits {fast_wait_s:.2} s, event by event {slow_wait_s:.2} s");
        assert!(slow_wait_s > 1.0);
        assert!(
            (fast_wait_s / slow_wait_s - 1.0).abs() < 0.1,
            "{fast_wait_s} {slow_wait_s}"
        );
    }
}
