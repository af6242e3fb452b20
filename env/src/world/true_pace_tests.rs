//! Checkpoints, starts from a shared store and wrong beliefs: against a renewal formula and by hand.

use pleach_scheduler::cluster::Slice;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::physics::storage::{Saver, Storage};
use pleach_scheduler::{ActionKind, NodeId, Provenance};
use pleach_workloads::JobSpec;

use super::*;
use crate::availability::AvailabilityConfig;
use crate::metrics::JobOutcome;
use crate::test_lists::job;
use crate::world::Advance;

/// Nodes of 8 GPUs with a store of 10 GB/s; jobs of 140 GB with a checkpoint every `interval_s` and 100 s of warm-up.
fn workload(jobs: Vec<JobSpec>, num_nodes: u32, interval_s: f64, saver: Saver) -> Workload {
    let class = ModelClass {
        state_gib: 140e9 / 1_073_741_824.0,
        checkpoint_interval_s: Some(interval_s),
        warm_up_s: 100.0,
        ..ModelClass::default()
    };
    let mut cluster = ClusterSpec::uniform(num_nodes, 8, 4);
    cluster.storage = Some(Storage {
        read_gb_s: 10.0,
        write_gb_s: 10.0,
        saver,
    });
    Workload {
        name: "test".into(),
        cluster,
        classes: vec![class],
        jobs,
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        overheads: Some(Overheads::ByClass),
        class_checkpoints: true,
        stop_grace_s: Some(0.0),
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    }
}

fn estimates(workload: &Workload) -> Vec<Estimate> {
    let oracle = |job: &JobSpec| Estimate {
        value: job.run_time_s,
        provenance: Provenance::Oracle,
    };
    workload.jobs.iter().map(oracle).collect()
}

fn start(world: &mut World, id: u32, node: u32) {
    let slice = Slice {
        node: NodeId(node),
        gpus: 0xff,
    };
    world
        .cluster_mut()
        .start(JobId(id), [slice].into_iter().collect());
}

/// A job of `work_s` on one node that fails every `mtbf_s` on average.
fn run_with_failures(work_s: f64, interval_s: f64, mtbf_s: f64) -> JobOutcome {
    let workload = workload(vec![job("a", 0.0, 8, work_s)], 1, interval_s, Saver::Naive);
    let mut world = World::new(&workload, capabilities(), &estimates(&workload)).unwrap();
    let config = AvailabilityConfig {
        node_mtbf_s: Some(mtbf_s),
        node_repair_s: 1.0,
        ..AvailabilityConfig::default()
    };
    world.set_capacity(&config, Seed(11)).unwrap();
    while world.advance() == Advance::Event {
        if world.cluster().num_free() == 8 && world.cluster().num_pending() > 0 {
            start(&mut world, 0, 0);
        }
        world.carry_out();
    }
    world.outcomes().next().copied().unwrap()
}

#[test]
fn time_under_failures_and_checkpoints_is_that_of_the_renewal_formula_and_least_near_youngs_interval() {
    // On 8 GPUs a naive saver stands still for c = 2 + 140 / 2 = 72 s, a restart takes R = 32 + 2.02 + 100 + 3 + 140 / 4 s. With
    // failures at rate l, getting through t of work and its checkpoint takes exp(l R) (exp(l (t + c)) - 1) / l on average (Daly,
    // FGCS 2006): a failure costs a restart, which may fail too.
    let (mtbf_s, stall_s, restart_s) = (20_000.0, 72.0, 32.0 + 2.0216 + 100.0 + 38.0);
    // Young, CACM 1974: sqrt(2 c / l) = 1,697 s.
    let young_s = f64::sqrt(2.0 * stall_s * mtbf_s).round();
    let mut times = Vec::new();
    for interval_s in [young_s / 4.0, young_s, 4.0 * young_s] {
        let num = (5e7 / interval_s).floor();
        let job = run_with_failures(num * interval_s, interval_s, mtbf_s);
        let rate = 1.0 / mtbf_s;
        let each_s = (rate * restart_s).exp() * ((rate * (interval_s + stall_s)).exp() - 1.0) / rate;
        let per_work = job.held_s / (num * interval_s);
        // 2,500 failures of some 400 to 4,000 s each.
        let expected = each_s / interval_s;
        assert!(job.num_failures > 2000);
        assert!(
            (per_work / expected - 1.0).abs() < 0.01,
            "{interval_s}: {per_work} {expected}"
        );
        times.push(per_work);
    }
    assert!(times[1] < times[0] && times[1] < times[2], "{times:?}");
}

#[test]
fn a_stop_without_grace_loses_what_was_done_since_the_last_checkpoint() {
    // 134.0216 s to start, then a stall of 0.3 + 140 / 8 / 20 = 1.175 s in every 1,000 s of work.
    let list = vec![job("a", 0.0, 8, 5000.0), job("b", 2500.0, 8, 10.0)];
    let workload = workload(list, 1, 1000.0, Saver::Tuned);
    let mut world = World::new(&workload, capabilities(), &estimates(&workload)).unwrap();
    world.advance();
    start(&mut world, 0, 0);
    world.carry_out();
    world.advance();
    world.cluster_mut().preempt(JobId(0));
    start(&mut world, 0, 0);
    world.carry_out();
    let mut ends = Vec::new();
    while world.advance() == Advance::Event {
        if world.cluster().num_free() == 8 && world.cluster().num_pending() > 0 {
            start(&mut world, 1, 0);
        }
        world.carry_out();
    }
    ends.extend(world.outcomes().map(|job| (job.finish_s, job.lost_s)));
    let done_s = (2500.0 - 134.0216) / 1.001_175;
    assert!((ends[0].1 - (done_s - 2000.0)).abs() < 1e-3, "{ends:?}");
    // 3,000 s are left, after a restart of 172.0216 s.
    let expected_s = 2500.0 + 172.0216 + 3000.0 * 1.001_175;
    assert!((ends[0].0 - expected_s).abs() < 1e-3, "{ends:?}");
}

#[test]
fn jobs_that_load_at_once_share_the_store() {
    // Four jobs of 8 GPUs read 4 GB/s each alone, 2.5 of four: 59 instead of 38 s, of which policies know nothing.
    let list = (0..4).map(|number| job(&format!("{number}"), 0.0, 8, 5000.0));
    let mut list: Vec<JobSpec> = list.collect();
    list.push(job("late", 3000.0, 1, 1.0));
    let workload = workload(list, 5, 1000.0, Saver::Tuned);
    let mut world = World::new(&workload, capabilities(), &estimates(&workload)).unwrap();
    world.advance();
    (0..4).for_each(|id| start(&mut world, id, id));
    world.carry_out();
    world.advance();
    for id in 0..4 {
        world.cluster_mut().preempt(JobId(id));
        start(&mut world, id, id);
    }
    world.carry_out();
    for id in 0..4_u32 {
        assert!((world.cluster().job(JobId(id)).cost_left_s - 172.0216).abs() < 1e-6);
        assert!(
            (world.truth[id as usize].cost_left_s - (172.0216 + 21.0)).abs() < 1e-6,
            "{id}"
        );
    }
    // The loads of the first starts are over: only the four new ones are counted.
    assert_eq!(world.store.loads_until.len(), 4);
}

#[test]
fn wrong_beliefs_about_speed_move_what_is_believed_and_not_what_happens() {
    let workload = workload(vec![job("a", 0.0, 8, 5000.0)], 1, 1e9, Saver::Tuned);
    let errors = BeliefErrors {
        rates: 0.2,
        drift: 0.0,
        costs: 0.0,
        learned: false,
    };
    for seed in 0..5 {
        let known = estimates(&workload);
        let seed = Seed(seed);
        let mut world = World::with_beliefs(&workload, capabilities(), &known, errors, seed).unwrap();
        world.advance();
        start(&mut world, 0, 0);
        world.carry_out();
        let believed = world.cluster().job(JobId(0)).rate;
        assert!((believed - 1.0).abs() > 1e-4, "{believed}");
        while world.advance() == Advance::Event {
            world.carry_out();
        }
        let finish_s = world.outcomes().next().unwrap().finish_s;
        assert!((finish_s - (134.0216 + 5000.0)).abs() < 0.01, "{finish_s}");
    }
}

#[test]
fn a_belief_moves_half_of_the_way_to_what_the_first_job_showed() {
    let list = vec![job("a", 0.0, 8, 5000.0), job("b", 100.0, 8, 500.0)];
    let workload = workload(list, 1, 1e9, Saver::Tuned);
    for learned in [false, true] {
        let errors = BeliefErrors {
            rates: 0.2,
            drift: 0.0,
            costs: 0.0,
            learned,
        };
        let known = estimates(&workload);
        let mut world = World::with_beliefs(&workload, capabilities(), &known, errors, Seed(2)).unwrap();
        world.advance();
        start(&mut world, 0, 0);
        world.carry_out();
        let first = world.cluster().job(JobId(0)).rate;
        while world.cluster().num_running() > 0 {
            world.advance();
            world.carry_out();
        }
        start(&mut world, 1, 0);
        world.carry_out();
        let second = world.cluster().job(JobId(1)).rate;
        let expected = if learned { first.sqrt() } else { first };
        assert!((second - expected).abs() < 1e-8, "{first} {second}");
        world.advance();
        // 500 s of work and a start, whatever was believed.
        let finish_s = world.outcomes().last().unwrap().finish_s;
        assert!((finish_s - (2.0 * 134.0216 + 5500.0)).abs() < 0.1, "{finish_s}");
    }
}

#[test]
fn errors_of_nothing_change_nothing() {
    let list = vec![job("a", 0.0, 8, 5000.0), job("b", 100.0, 8, 500.0)];
    let workload = workload(list, 2, 1000.0, Saver::Tuned);
    let exact = BeliefErrors {
        rates: 0.0,
        drift: 0.0,
        costs: 0.0,
        learned: true,
    };
    let known = estimates(&workload);
    let run = |mut world: World| {
        for id in 0..2 {
            world.advance();
            start(&mut world, id, id);
            world.carry_out();
        }
        while world.advance() == Advance::Event {}
        world.outcomes().copied().collect::<Vec<JobOutcome>>()
    };
    let plain = run(World::new(&workload, capabilities(), &known).unwrap());
    let other = run(World::with_beliefs(&workload, capabilities(), &known, exact, Seed(1)).unwrap());
    assert_eq!(plain, other);
}
