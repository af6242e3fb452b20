//! A batch system by hand: what happens when, to the microsecond.

use pleach_scheduler::cluster::{Capabilities, NodeState};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::{ActionKind, Estimate, NodeId, Provenance, heuristics};

use super::*;
use crate::availability::{AvailabilityChange, AvailabilityConfig};
use crate::failures::OutcomeModel;
use crate::metrics::JobOutcome;
use crate::simulate::{SimConfig, simulate};
use crate::test_lists::{job, workload};
use crate::world::Advance;
use pleach_workloads::JobSpec;
use pleach_workloads::Seed;

/// Each delay is a different number, so that none can stand for another.
const SLOW: BatchSystem = BatchSystem {
    tick_s: 10.0,
    start_delay_s: 1.0,
    end_delay_s: 2.0,
    requeue_delay_s: 5.0,
    failure_delay_s: 40.0,
    whole_nodes: false,
};

fn config(batch_system: BatchSystem) -> SimConfig {
    SimConfig {
        batch_system: Some(batch_system),
        ..SimConfig::default()
    }
}

/// (first start, finish) of each job under FIFO, s.
fn times(jobs: Vec<JobSpec>, batch_system: BatchSystem) -> Vec<(f64, f64)> {
    let mut policy = heuristics::by_name("fifo").unwrap();
    let result = simulate(&workload(jobs), &config(batch_system), &mut policy).unwrap();
    let times = |job: &JobOutcome| (job.first_start_s, job.finish_s);
    result.jobs.iter().map(times).collect()
}

#[test]
fn a_job_starts_a_moment_after_the_tick_and_its_gpus_are_free_a_moment_after_its_end() {
    // Two nodes of four GPUs. a comes at 3 s: decided at 10 s, begins at 11 s, ends at 111 s, is seen at 113 s.
    // b needs all eight GPUs and comes at 20 s: decided at 120 s, the first tick behind 113 s, begins at 121 s and ends at 131 s.
    let jobs = vec![job("a", 3.0, 4, 100.0), job("b", 20.0, 8, 10.0)];
    assert_eq!(times(jobs.clone(), SLOW), [(11.0, 111.0), (121.0, 131.0)]);
    // Without ticks a is decided at 3 s and seen at 106 s.
    let smooth = BatchSystem { tick_s: 0.0, ..SLOW };
    assert_eq!(times(jobs.clone(), smooth), [(4.0, 104.0), (107.0, 117.0)]);
    // Only ticks: a runs from 10 to 110 s, and 110 s is a tick.
    let ticks = BatchSystem {
        tick_s: 10.0,
        ..BatchSystem::default()
    };
    assert_eq!(times(jobs, ticks), [(10.0, 110.0), (110.0, 120.0)]);
}

fn world_of(jobs: Vec<JobSpec>, batch_system: BatchSystem, capacity: &AvailabilityConfig) -> World {
    let workload = workload(jobs);
    let oracle = |job: &JobSpec| Estimate {
        value: job.run_time_s,
        provenance: Provenance::Oracle,
    };
    let estimates: Vec<Estimate> = workload.jobs.iter().map(oracle).collect();
    let capabilities = Capabilities {
        restart_cost_s: 0.0,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    let mut world = World::new(&workload, capabilities, &estimates).unwrap();
    world.set_batch_system(&batch_system).unwrap();
    world.set_capacity(capacity, Seed(0)).unwrap();
    world
}

/// Advances to a time, at which something happens or the world is woken.
fn until(world: &mut World, at_s: f64) {
    let at = Time::from_secs_f64(at_s);
    while world.cluster().now() < at {
        world.wake_at(Some(at));
        world.advance();
    }
    assert_eq!(world.cluster().now(), at);
}

fn start(world: &mut World, id: u32, node: u32, gpus: u64) {
    let slice = Slice {
        node: NodeId(node),
        gpus,
    };
    world
        .cluster_mut()
        .start(JobId(id), [slice].into_iter().collect());
}

fn finishes(world: &mut World) -> Vec<f64> {
    while world.advance() == Advance::Event {}
    assert!(world.is_over());
    world.outcomes().map(|job| job.finish_s).collect()
}

#[test]
fn a_preempted_job_waits_for_the_requeue_delay_and_who_takes_its_node_until_that_is_free() {
    let jobs = vec![
        job("a", 0.0, 2, 100.0),
        job("b", 0.0, 4, 10.0),
        job("c", 0.0, 1, 10.0),
    ];
    let mut world = world_of(jobs, SLOW, &AvailabilityConfig::default());
    world.advance();
    start(&mut world, 0, 0, 0b0011);
    world.carry_out();
    until(&mut world, 20.0);
    world.cluster_mut().preempt(JobId(0));
    start(&mut world, 1, 0, 0b1111);
    start(&mut world, 2, 1, 0b0001);
    world.carry_out();
    // a began at 1 s: 19 s are done at 20 s. b begins at 22 s on its node, c at 21 s on another. a is let go again at 23 s and
    // begins at 23 + 1 + 5 s.
    until(&mut world, 23.0);
    start(&mut world, 0, 1, 0b0110);
    world.carry_out();
    assert_eq!(finishes(&mut world), [29.0 + 81.0, 32.0, 31.0]);
}

fn failure(node: u32, state: NodeState, is_failure: bool) -> NodeChange {
    NodeChange {
        node: NodeId(node),
        state,
        is_failure,
    }
}

/// Job a on node 0 and c on node 1 from 1 s on; node 0 fails at 30 s, and b is sent there at 50 s.
fn failed() -> World {
    let jobs = vec![
        job("a", 0.0, 2, 100.0),
        job("b", 0.0, 1, 10.0),
        job("c", 0.0, 1, 20.0),
    ];
    let mut world = world_of(jobs, SLOW, &AvailabilityConfig::default());
    world.advance();
    start(&mut world, 0, 0, 0b0011);
    start(&mut world, 2, 1, 0b0001);
    world.carry_out();
    until(&mut world, 30.0);
    assert!(world.fails_unseen(failure(0, NodeState::Down, true)));
    until(&mut world, 50.0);
    start(&mut world, 1, 0, 0b0100);
    world.carry_out();
    assert_eq!(world.cluster().nodes()[0].state, NodeState::Up);
    world
}

#[test]
fn a_node_that_fails_is_seen_later_and_its_jobs_stand_still_until_then() {
    let mut world = failed();
    until(&mut world, 69.0);
    assert_eq!(world.cluster().num_running(), 2, "nobody knows yet");
    until(&mut world, 70.0);
    assert_eq!(
        (world.cluster().nodes()[0].state, world.cluster().num_pending()),
        (NodeState::Down, 2)
    );
    // a did 29 s of work before the failure and begins again at 70 + 6 s, b did nothing.
    start(&mut world, 0, 1, 0b0110);
    world.carry_out();
    until(&mut world, 80.0);
    start(&mut world, 1, 1, 0b0001);
    world.carry_out();
    assert_eq!(finishes(&mut world), [76.0 + 71.0, 96.0, 21.0]);
}

#[test]
fn a_node_that_is_back_before_its_failure_is_seen_tells_of_it_itself() {
    let mut world = failed();
    until(&mut world, 60.0);
    let back = failure(0, NodeState::Up, false);
    assert!(!world.fails_unseen(back));
    world.change_capacity(back);
    assert_eq!(
        (world.cluster().nodes()[0].state, world.cluster().num_pending()),
        (NodeState::Up, 2)
    );
    start(&mut world, 0, 0, 0b0011);
    start(&mut world, 1, 0, 0b0100);
    world.carry_out();
    // At 70 s, when the failure would have been seen, nothing happens.
    assert_eq!(finishes(&mut world), [66.0 + 71.0, 76.0, 21.0]);
}

#[test]
fn a_planned_change_is_seen_at_once() {
    let plan = AvailabilityConfig {
        changes: vec![AvailabilityChange {
            at_s: 30.0,
            node: 0,
            state: NodeState::Down,
        }],
        ..AvailabilityConfig::default()
    };
    let mut world = world_of(vec![job("a", 0.0, 2, 100.0)], SLOW, &plan);
    world.advance();
    start(&mut world, 0, 0, 0b0011);
    world.carry_out();
    until(&mut world, 30.0);
    assert_eq!(world.cluster().num_pending(), 1);
    start(&mut world, 0, 1, 0b0011);
    world.carry_out();
    assert_eq!(finishes(&mut world), [36.0 + 71.0]);
}

#[test]
fn a_job_that_had_left_when_it_was_stopped_is_not_requeued() {
    for starts_again in [false, true] {
        let mut world = world_of(vec![job("a", 0.0, 2, 10.0)], SLOW, &AvailabilityConfig::default());
        world.record_waits();
        world.advance();
        start(&mut world, 0, 0, 0b0011);
        world.carry_out();
        // It ended at 11 s, which would be seen at 13 s.
        until(&mut world, 12.0);
        world.cluster_mut().preempt(JobId(0));
        if starts_again {
            start(&mut world, 0, 1, 0b0011);
        }
        world.carry_out();
        world.cluster().check();
        assert_eq!(finishes(&mut world), [11.0]);
        assert_eq!(world.cluster().job(JobId(0)).state, JobState::Finished);
        assert_eq!(world.integrals().jobs_s, 11.0);
    }
}

#[test]
fn trials_that_fail_are_seen_later_too_and_all_jobs_come_to_their_end() {
    let jobs: Vec<JobSpec> = (0..200_u32)
        .map(|number| {
            let name = number.to_string();
            job(
                &name,
                f64::from(number) * 250.0,
                number % 4 + 1,
                f64::from(number * 7 % 10 + 1) * 200.0,
            )
        })
        .collect();
    let mut config = config(SLOW);
    config.outcomes = Some(OutcomeModel::from_name("philly").unwrap());
    config.capacity.node_mtbf_s = Some(3000.0);
    config.capacity.node_repair_s = 100.0;
    config.capabilities.grant(ActionKind::Preempt, true);
    let mut policy = heuristics::by_name("srtf").unwrap();
    // Little's law is asserted inside: no job is lost or counted twice.
    let result = simulate(&workload(jobs), &config, &mut policy).unwrap();
    let sum = |of: fn(&JobOutcome) -> u32| result.jobs.iter().map(of).sum::<u32>();
    assert!(sum(|job| job.num_failures) > 20 && sum(|job| job.num_preemptions) > 20);
    let early =
        |job: &&JobOutcome| job.finish_s < job.first_start_s || job.first_start_s < job.submit_s + 1.0;
    assert_eq!(result.jobs.iter().filter(early).count(), 0);
}

#[test]
fn between_ticks_nobody_may_decide() {
    let mut world = world_of(vec![job("a", 3.0, 1, 10.0)], SLOW, &AvailabilityConfig::default());
    let mut pass = Pass::new();
    world.advance();
    assert_eq!(
        (world.cluster().now(), world.may_decide()),
        (Time(3_000_000), false)
    );
    world.advance();
    assert_eq!(
        (world.cluster().now(), world.may_decide()),
        (Time(10_000_000), true)
    );
    let mut policy = heuristics::by_name("fifo").unwrap();
    pass.run(world.cluster_mut(), &mut policy).unwrap();
    world.carry_out();
    assert_eq!(finishes(&mut world), [21.0]);
}
