//! Gangs that keep places, by hand.

use pleach_scheduler::Tasks;
use pleach_scheduler::cluster::{JobState, NodeState, Slice};
use pleach_workloads::{JobSpec, Workload};

use super::*;
use crate::availability::{AvailabilityChange, AvailabilityConfig};
use crate::test_lists::job;

/// Three nodes of 4 GPUs without losses between them. A gang of two tasks of 4 on nodes 0 and 1 with 200 s of work, one of 4 on node
/// 2 that ends at `busy_s`, and one of 4 that waits from 10 s on. Node 1 goes down at 100 s and does not come back.
fn world(busy_s: f64, keep_places_s: f64, tasks: Tasks) -> World {
    let mut gang = job("gang", 0.0, 8, 200.0);
    gang.resources.tasks = tasks;
    let jobs: Vec<JobSpec> = vec![gang, job("busy", 0.0, 4, busy_s), job("next", 10.0, 4, 50.0)];
    let workload = Workload {
        cluster: pleach_scheduler::ClusterSpec::uniform(3, 4, 3),
        ..crate::test_lists::workload(jobs)
    };
    let oracle = |job: &JobSpec| Estimate {
        value: job.run_time_s,
        provenance: pleach_scheduler::Provenance::Oracle,
    };
    let estimates: Vec<Estimate> = workload.jobs.iter().map(oracle).collect();
    let capabilities = Capabilities {
        restart_cost_s: 0.0,
        ..Capabilities::DEFAULT
    };
    let mut world = World::new(&workload, capabilities, &estimates).unwrap();
    let change = AvailabilityChange {
        at_s: 100.0,
        node: 1,
        state: NodeState::Down,
    };
    let config = AvailabilityConfig {
        changes: vec![change],
        keep_places_s,
        ..AvailabilityConfig::default()
    };
    world.set_capacity(&config, Seed(0)).unwrap();
    world
}

/// First come, first served, with jobs behind one that does not fit; what happened by job: (start, end) of its last run, s.
fn play(mut world: World) -> Vec<(f64, f64)> {
    let mut starts = vec![0.0; 3];
    while world.advance() == Advance::Event {
        for id in (0..3).map(JobId) {
            let is_there = id.index() < world.cluster().jobs().len();
            if !is_there || world.cluster().job(id).state != JobState::Pending {
                continue;
            }
            let mut slices: Vec<Slice> = Vec::new();
            let template = pleach_scheduler::cluster::Template::Fastest;
            if world
                .cluster()
                .place_job(template, pleach_scheduler::GpuTypeId(0), id, &mut slices)
            {
                world.cluster_mut().start(id, slices.into_iter().collect());
            }
        }
        world.carry_out();
        world.cluster().check();
        for (id, start) in starts.iter_mut().enumerate() {
            if let Some(job) = world
                .cluster()
                .jobs()
                .get(id)
                .filter(|job| job.state == JobState::Running)
            {
                *start = job.run_start.as_secs_f64();
            }
        }
    }
    let ends = world.outcomes().map(|outcome| outcome.finish_s);
    starts.into_iter().zip(ends).collect()
}

#[test]
fn a_gang_that_gives_up_its_places_waits_for_all_of_them_anew() {
    // Node 0 goes to the next job at 100 s, node 2 is free at 150 s: both are for the gang.
    let jobs = play(world(150.0, 0.0, Tasks::of(4)));
    assert_eq!(jobs, [(150.0, 250.0), (0.0, 150.0), (100.0, 150.0)]);
    let jobs = play(world(400.0, 0.0, Tasks::of(4)));
    assert_eq!(jobs[2], (100.0, 150.0));
    assert_eq!(jobs[0], (400.0, 500.0));
}

#[test]
fn a_gang_that_keeps_its_places_starts_there_once_its_lost_task_has_room() {
    // The next job waits for node 2 as well, and comes after the gang.
    for tasks in [Tasks::of(4), Tasks::ANY] {
        let jobs = play(world(150.0, 100.0, tasks));
        assert_eq!(jobs, [(150.0, 250.0), (0.0, 150.0), (250.0, 300.0)], "{tasks:?}");
    }
}

#[test]
fn places_are_given_up_when_their_time_is_over() {
    let jobs = play(world(400.0, 100.0, Tasks::of(4)));
    assert_eq!(jobs[2], (200.0, 250.0), "the next job has node 0 after 100 s");
    assert_eq!(jobs[0], (400.0, 500.0));
}

#[test]
fn what_is_kept_on_a_node_that_goes_down_too_is_lost() {
    let mut world = world(150.0, 100.0, Tasks::of(4));
    let change = |at_s, node, state| AvailabilityChange { at_s, node, state };
    let config = AvailabilityConfig {
        changes: vec![
            change(100.0, 1, NodeState::Down),
            change(120.0, 0, NodeState::Down),
            change(130.0, 0, NodeState::Up),
        ],
        keep_places_s: 100.0,
        ..AvailabilityConfig::default()
    };
    world.set_capacity(&config, Seed(0)).unwrap();
    let jobs = play(world);
    assert_eq!(
        jobs[2],
        (130.0, 180.0),
        "node 0 is free for it when it comes back"
    );
    assert_eq!(jobs[0], (180.0, 280.0));
}
