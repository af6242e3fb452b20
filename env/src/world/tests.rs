//! The world by hand: what happens when, to the microsecond.

use super::*;
use crate::availability::AvailabilityConfig;
use crate::failures::{End, OutcomeModel};
use crate::test_lists::{job, workload};
use pleach_scheduler::cluster::Slice;
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{ActionKind, NodeId, Provenance};
use pleach_workloads::Outcome;

fn world_of(jobs: Vec<pleach_workloads::JobSpec>) -> World {
    let workload = workload(jobs);
    let oracle = |job: &pleach_workloads::JobSpec| Estimate {
        value: job.run_time_s,
        provenance: Provenance::Oracle,
    };
    let estimates: Vec<Estimate> = workload.jobs.iter().map(oracle).collect();
    let capabilities = Capabilities {
        restart_cost_s: 5.0,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    World::new(&workload, capabilities, &estimates).unwrap()
}

/// Goes on to a time at which nothing else happens.
fn wake(world: &mut World, at_s: f64) {
    let at = Time::from_secs_f64(at_s);
    if world.cluster().now() < at {
        world.wake_at(Some(at));
        world.advance();
    }
    assert_eq!(world.cluster().now(), at);
}

fn start(world: &mut World, id: u32, gpus: u64) {
    let placement = [Slice {
        node: NodeId(0),
        gpus,
    }]
    .into_iter()
    .collect();
    world.cluster_mut().start(JobId(id), placement);
}

#[test]
fn a_preempted_job_keeps_its_progress_and_pays_for_the_restart() {
    // 100 s of work: 30 s run, stopped at 30 s, started again at 50 s: 50 + 5 (restart) + 70 = 125 s.
    let mut world = world_of(vec![
        job("a", 0.0, 2, 100.0),
        job("b", 30.0, 1, 1.0),
        job("c", 50.0, 1, 1.0),
    ]);
    assert_eq!(world.advance(), Advance::Event);
    start(&mut world, 0, 0b11);
    world.carry_out();
    world.advance();
    world.cluster_mut().preempt(JobId(0));
    world.carry_out();
    world.advance();
    assert_eq!(
        world.cluster().now(),
        Time::from_secs_f64(50.0),
        "the first run's finish at 100 s is stale"
    );
    start(&mut world, 0, 0b11);
    start(&mut world, 1, 0b100);
    start(&mut world, 2, 0b1000);
    world.carry_out();
    while world.advance() == Advance::Event {}
    let a = *world.outcomes().next().unwrap();
    assert_eq!((a.finish_s, a.held_s, a.num_preemptions), (125.0, 105.0, 1));
    assert!(world.is_over());
    // Jobs in the system: a for 125 s, b for 21 s, c for 1 s.
    assert_eq!(world.integrals().jobs_s, 147.0);
    assert_eq!(world.integrals().held_gpu_s, 2.0 * 105.0 + 1.0 + 1.0);
    let slowdown = 125.0 / 100.0 + 21.0 / 10.0 + 1.0 / 10.0;
    assert!((world.integrals().slowdown - slowdown).abs() < 1e-9);
}

#[test]
fn at_one_instant_jobs_leave_before_jobs_arrive() {
    let mut world = world_of(vec![job("a", 0.0, 4, 10.0), job("b", 10.0, 4, 10.0)]);
    world.advance();
    start(&mut world, 0, 0b1111);
    world.carry_out();
    world.advance();
    assert_eq!((world.num_finished(), world.cluster().num_pending()), (1, 1));
    assert_eq!(world.cluster().num_free(), 8);
}

#[test]
fn a_job_of_a_microsecond_and_one_of_thirty_years_are_exact() {
    let mut world = world_of(vec![job("short", 0.0, 1, 1e-6), job("long", 0.0, 1, 1e9)]);
    world.advance();
    start(&mut world, 0, 0b1);
    start(&mut world, 1, 0b10);
    world.carry_out();
    while world.advance() == Advance::Event {}
    let finishes: Vec<f64> = world.outcomes().map(|job| job.finish_s).collect();
    assert_eq!(finishes, [1e-6, 1e9]);
}

#[test]
fn gangs_that_share_a_spine_end_later_for_as_long_as_they_share_it() {
    use pleach_scheduler::cluster_spec::ClusterSpec;
    use pleach_scheduler::physics::links::{Fabric, StepCost};
    // Two racks of two nodes with a GPU and a NIC of 2 GB/s each; half of that leaves a rack.
    let mut workload = workload(vec![job("a", 0.0, 2, 100.0), job("b", 10.0, 2, 20.0)]);
    workload.cluster = ClusterSpec::uniform(4, 1, 2);
    let mut fabric = Fabric::from_name("gavel").unwrap();
    let between = &mut fabric.between;
    (between.nic_gb_per_s, between.tuned, between.rack_oversubscription) = (2.0, 1.0, 2.0);
    (between.latency_us, between.latency_per_domain_us, between.root_us) = (0.0, 0.0, 0.0);
    workload.cluster.fabric = Some(fabric);
    // 1 s of compute; 1.84 GB over a tree of 0.92 x 2 GB/s, 1 s alone and 2 s for two.
    workload.classes[0].step = Some(StepCost {
        compute_s: 1.0,
        gradient_bytes: 1.84e9,
        gamma: 1.0,
    });
    let oracle = |job: &pleach_workloads::JobSpec| Estimate {
        value: job.run_time_s,
        provenance: Provenance::Oracle,
    };
    let estimates: Vec<Estimate> = workload.jobs.iter().map(oracle).collect();
    let mut world = World::new(&workload, Capabilities::DEFAULT, &estimates).unwrap();
    for (id, nodes) in [(0, [0, 2]), (1, [1, 3])] {
        world.advance();
        let placement = nodes.map(|node| Slice {
            node: NodeId(node),
            gpus: 1,
        });
        world
            .cluster_mut()
            .start(JobId(id), placement.into_iter().collect());
        world.carry_out();
        world.cluster().check();
    }
    while world.advance() == Advance::Event {
        world.cluster().check();
    }
    // Steps of 3 s instead of 2 for both: b takes 30 s; a has done 10 + 20 by then and needs 70 s more.
    let finishes: Vec<f64> = world.outcomes().map(|outcome| outcome.finish_s).collect();
    for (found, expected) in finishes.iter().zip([110.0, 40.0]) {
        assert!((found - expected).abs() < 1e-5, "{finishes:?}");
    }
    assert_eq!(finishes.len(), 2);
}

/// Two jobs of one GPU and 100 s each on one node of one GPU, under these capabilities.
fn pair(capabilities: Capabilities) -> World {
    let mut workload = workload(vec![job("a", 0.0, 1, 100.0), job("b", 20.0, 1, 100.0)]);
    workload.cluster = pleach_scheduler::cluster_spec::ClusterSpec::uniform(1, 1, 1);
    let oracle = |job: &pleach_workloads::JobSpec| Estimate {
        value: job.run_time_s,
        provenance: Provenance::Oracle,
    };
    let estimates: Vec<Estimate> = workload.jobs.iter().map(oracle).collect();
    World::new(&workload, capabilities, &estimates).unwrap()
}

/// Starts whatever waits, on the one GPU, alone or beside the job that is there, until nothing more happens.
fn run_together(world: &mut World) -> Vec<JobOutcome> {
    while world.advance() == Advance::Event {
        for id in [JobId(0), JobId(1)] {
            let known = id.index() < world.cluster().jobs().len();
            let up = world.cluster().nodes()[0].state == pleach_scheduler::cluster::NodeState::Up;
            if known && up && world.cluster().job(id).state == JobState::Pending {
                start(world, id.0, 0b1);
            }
        }
        world.carry_out();
        world.cluster().check();
    }
    world.outcomes().copied().collect()
}

#[test]
fn time_slices_share_the_processor_and_cost_the_switching() {
    // Default load 0.83: two jobs ask for 1.66 of the GPU's time and get half each less the switching, 0.97 of it:
    // 0.485 of the time, which is 0.485 / 0.83 of their speed alone.
    let mut world = pair(Capabilities {
        sharing: pleach_scheduler::cluster::Sharing::TimeSlice,
        ..Capabilities::default()
    });
    let outcomes = run_together(&mut world);
    let speed = 0.485 / 0.83;
    // a has 80 s left when b comes; b has then done 80 s and goes on alone.
    let a_s = 20.0 + 80.0 / speed;
    assert!(
        (outcomes[0].finish_s - a_s).abs() < 1e-5,
        "{} {a_s}",
        outcomes[0].finish_s
    );
    assert!((outcomes[1].finish_s - (a_s + 20.0)).abs() < 1e-5);
    assert!(
        (world.integrals().held_gpu_s - (a_s + 20.0)).abs() < 1e-5,
        "a shared GPU is held once"
    );
}

#[test]
fn a_failed_node_costs_the_work_since_the_last_checkpoint_and_the_restart() {
    let mut world = pair(Capabilities {
        restart_cost_s: 5.0,
        checkpoint_interval_s: Some(30.0),
        ..Capabilities::default()
    });
    let change = |at_s, state| crate::availability::AvailabilityChange { at_s, node: 0, state };
    let config = AvailabilityConfig {
        changes: vec![
            change(70.0, pleach_scheduler::cluster::NodeState::Down),
            change(90.0, pleach_scheduler::cluster::NodeState::Up),
        ],
        ..AvailabilityConfig::default()
    };
    world.set_capacity(&config, Seed(0)).unwrap();
    // a alone: 70 s done, 60 kept; back at 90 s: 5 s restart and 40 s of work.
    while world.advance() == Advance::Event {
        let cluster = world.cluster();
        let idle = cluster.num_free() == 1 && cluster.num_pending() > 0;
        if idle {
            let next = u32::from(cluster.job(JobId(0)).state == JobState::Finished);
            start(&mut world, next, 0b1);
        }
        world.carry_out();
        world.cluster().check();
    }
    let outcomes: Vec<JobOutcome> = world.outcomes().copied().collect();
    assert_eq!((outcomes[0].finish_s, outcomes[0].num_failures), (135.0, 1));
    assert_eq!((outcomes[0].lost_s, outcomes[0].held_s), (10.0, 70.0 + 45.0));
    assert_eq!((outcomes[1].finish_s, outcomes[1].num_failures), (235.0, 0));
}

#[test]
fn a_failure_takes_nothing_back_that_a_preemption_wrote_down() {
    // a runs from 0 to 45 s and from 50 s on; a checkpoint every 30 s of work and one at 45 s by the preemption. The node fails at
    // 60 s with 55 s of work done: 10 s are lost. With periodic checkpoints later than that one, theirs counts.
    for (failure_s, lost_s) in [(60.0, 10.0), (70.0, 5.0)] {
        let mut world = pair(Capabilities {
            restart_cost_s: 0.0,
            checkpoint_interval_s: Some(30.0),
            ..Capabilities::default()
        });
        let change = |at_s, state| crate::availability::AvailabilityChange { at_s, node: 0, state };
        let config = AvailabilityConfig {
            changes: vec![
                change(45.0, pleach_scheduler::cluster::NodeState::Draining),
                change(50.0, pleach_scheduler::cluster::NodeState::Up),
                change(failure_s, pleach_scheduler::cluster::NodeState::Down),
                change(90.0, pleach_scheduler::cluster::NodeState::Up),
            ],
            ..AvailabilityConfig::default()
        };
        world.set_capacity(&config, Seed(0)).unwrap();
        while world.advance() == Advance::Event {
            let cluster = world.cluster();
            let is_pending = |id: u32| {
                cluster
                    .jobs()
                    .get(id as usize)
                    .is_some_and(|job| job.state == JobState::Pending)
            };
            let next = [0, 1].into_iter().find(|id| is_pending(*id));
            if cluster.now() == Time::from_secs_f64(45.0) {
                world.cluster_mut().preempt(JobId(0));
            } else if let Some(next) = next.filter(|_| cluster.num_free() == 1) {
                start(&mut world, next, 0b1);
            }
            world.carry_out();
            world.cluster().check();
        }
        let outcomes: Vec<JobOutcome> = world.outcomes().copied().collect();
        assert_eq!((outcomes[0].lost_s, outcomes[0].num_failures), (lost_s, 1));
        let done_s = failure_s - 5.0 - lost_s;
        assert_eq!(outcomes[0].finish_s, 90.0 + 100.0 - done_s);
    }
}

#[test]
fn killed_jobs_stop_early_failed_trials_are_tried_again_and_hopeless_jobs_are_given_up() {
    let jobs: Vec<_> = (0..300)
        .map(|n| job(&n.to_string(), f64::from(n) * 1e6, 1, 500.0))
        .collect();
    let mut world = world_of(jobs);
    world.set_outcomes(&OutcomeModel::philly(), Seed(3)).unwrap();
    while world.advance() == Advance::Event {
        let pending = world
            .cluster()
            .jobs()
            .iter()
            .rposition(|job| job.state == JobState::Pending);
        if let Some(id) = pending {
            start(&mut world, id as u32, 0b1);
        }
        world.carry_out();
    }
    assert!(world.is_over());
    let mut ends = [0; 3];
    for (number, job) in world.outcomes().enumerate() {
        // All are equally long, so no job is likelier than others to be killed.
        let model = OutcomeModel::philly();
        let fate = model.fates(Seed(3), &[(1, 500.0); 300])[number];
        let retries = fate.num_failed_trials - u32::from(fate.end == End::Unsuccessful);
        assert_eq!(job.num_failures, retries, "job {number}");
        match job.outcome {
            Outcome::Completed => {
                ends[0] += 1;
                // No checkpoints are lost here: all the work is done once, with a restart of 5 s for every retry.
                let least_s = 500.0 + 5.0 * f64::from(retries);
                assert!(job.held_s >= least_s - 1e-5, "{} {least_s}", job.held_s);
            }
            Outcome::Killed => {
                ends[1] += 1;
                assert!(job.isolated_s < 500.0);
            }
            Outcome::Failed => ends[2] += 1,
            Outcome::Unknown => panic!("every fate has an end"),
        }
    }
    // Philly, one GPU: 12.5 % unsuccessful, 14.3 % killed; 300 jobs, three standard errors.
    assert!(
        (25..=65).contains(&ends[1]) && (20..=57).contains(&ends[2]),
        "{ends:?}"
    );
}

#[test]
fn a_random_restart_is_hidden_from_the_scheduler_who_believes_the_median() {
    let mut world = world_of(vec![
        job("a", 0.0, 2, 100.0),
        job("b", 30.0, 1, 1.0),
        job("c", 50.0, 1, 1.0),
    ]);
    let overheads = Some(Overheads::TaccEmpirical);
    let capabilities = Capabilities {
        overheads,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    let mut workload = workload(vec![
        job("a", 0.0, 2, 100.0),
        job("b", 30.0, 1, 1.0),
        job("c", 50.0, 1, 1.0),
    ]);
    let estimates: Vec<Estimate> = workload
        .jobs
        .iter()
        .map(|job| Estimate {
            value: job.run_time_s,
            provenance: Provenance::Oracle,
        })
        .collect();
    let mut finishes = Vec::new();
    for seed in 0..4 {
        // In the last run the class says itself what a restart costs, which leaves nothing to draw.
        let own_cost_s = (seed == 3).then_some(40.0);
        workload
            .classes
            .iter_mut()
            .for_each(|class| class.restart_cost_s = own_cost_s);
        world = World::new(&workload, capabilities, &estimates).unwrap();
        world.set_seed(Seed(seed));
        world.advance();
        start(&mut world, 0, 0b11);
        world.carry_out();
        world.advance();
        world.cluster_mut().preempt(JobId(0));
        start(&mut world, 1, 0b1);
        world.carry_out();
        while world.cluster().now() < Time::from_secs_f64(50.0) {
            world.advance();
        }
        start(&mut world, 0, 0b11);
        start(&mut world, 2, 0b100);
        world.carry_out();
        // The first start costs 2 s, so 28 s of work are done by 30 s; believed are 6.5 s of restart and 72 s of work.
        assert_eq!(
            world.cluster().job(JobId(0)).expected_finish,
            Time::from_secs_f64(50.0 + own_cost_s.unwrap_or(6.5) + 72.0)
        );
        while world.advance() == Advance::Event {}
        finishes.push(world.outcomes().next().unwrap().finish_s);
    }
    assert!(
        finishes
            .iter()
            .all(|finish| (50.0 + 2.0 + 72.0..=50.0 + 60.0 + 72.0).contains(finish)),
        "{finishes:?}"
    );
    assert!(finishes[0] != finishes[1] && finishes[1] != finishes[2]);
    assert_eq!(finishes[3], 50.0 + 40.0 + 72.0);
    assert!(world.is_over());
}

#[test]
fn the_work_lost_to_node_failures_is_what_the_exponential_says() {
    // Failures at rate l = 1/1000 s of running time, a checkpoint every t = 400 s of work, restarts for nothing: a
    // failure loses T mod t, with mean 1/l - t / (e^(l t) - 1) = 186.6 s.
    let (mtbf_s, interval_s) = (1000.0, 400.0);
    let mut workload = workload(vec![job("a", 0.0, 1, 2e7)]);
    workload.cluster = pleach_scheduler::cluster_spec::ClusterSpec::uniform(1, 1, 1);
    let capabilities = Capabilities {
        restart_cost_s: 0.0,
        checkpoint_interval_s: Some(interval_s),
        ..Capabilities::default()
    };
    let estimate = Estimate {
        value: 2e7,
        provenance: Provenance::Oracle,
    };
    let mut world = World::new(&workload, capabilities, &[estimate]).unwrap();
    let config = AvailabilityConfig {
        node_mtbf_s: Some(mtbf_s),
        node_repair_s: 1.0,
        ..AvailabilityConfig::default()
    };
    world.set_capacity(&config, Seed(5)).unwrap();
    while world.advance() == Advance::Event {
        if world.cluster().num_free() == 1 && world.cluster().num_pending() > 0 {
            start(&mut world, 0, 0b1);
        }
        world.carry_out();
    }
    let job = *world.outcomes().next().unwrap();
    let rate: f64 = 1.0 / mtbf_s;
    let expected_s = mtbf_s - interval_s / ((rate * interval_s).exp() - 1.0);
    let mean_s = job.lost_s / f64::from(job.num_failures);
    // About 24,000 failures with a standard deviation below 120 s: a standard error below 0.8 s.
    assert!(job.num_failures > 20_000);
    assert!((mean_s - expected_s).abs() < 3.0, "{mean_s} {expected_s}");
    assert!(
        (job.held_s - job.lost_s - 2e7).abs() < 1.0,
        "what is held is work or lost"
    );
}

#[test]
fn nodes_that_fail_before_a_job_gets_on_are_refused_with_the_least_time_that_is_enough() {
    let refused = |mtbf_s: f64, restart_cost_s: f64, checkpoint_interval_s: Option<f64>, run_time_s: f64| {
        let workload = workload(vec![job("a", 0.0, 8, run_time_s)]);
        let capabilities = Capabilities {
            restart_cost_s,
            checkpoint_interval_s,
            ..Capabilities::default()
        };
        let mut world = World::new(&workload, capabilities, &[known(run_time_s)]).unwrap();
        let config = AvailabilityConfig {
            node_mtbf_s: Some(mtbf_s),
            ..AvailabilityConfig::default()
        };
        world
            .set_capacity(&config, Seed(0))
            .err()
            .map(|error| error.to_string())
    };
    // A restart of half a minute between failures a second and a half apart, a checkpoint that is never reached, and a job of
    // thirty years that is stopped every second.
    let said = refused(1.5, 30.0, None, 1000.0).unwrap();
    assert!(said.contains("capacity.node_mtbf_s = 1.5: allowed is "), "{said}");
    let least_s: f64 = said
        .split("allowed is ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(refused(1.01 * least_s, 30.0, None, 1000.0), None);
    assert!(refused(60.0, 0.0, Some(3600.0), 7200.0).is_some());
    assert!(refused(1.0, 0.0, None, 1e9).is_some());
    // What a cluster can be: failures every hour, restarts of a minute, checkpoints every ten.
    assert_eq!(refused(3600.0, 60.0, Some(600.0), 1e6), None);
    // A job shorter than the checkpoint only has to come through once.
    assert_eq!(refused(60.0, 0.0, Some(3600.0), 100.0), None);
}

fn known(value: f64) -> Estimate {
    Estimate {
        value,
        provenance: Provenance::Oracle,
    }
}

#[test]
fn a_restart_that_costs_work_is_work_in_truth_too() {
    // 100 s of work, 5 s for each restart. Until 30 s: 70 + 5 left. From 40 s to 43 s: 72 + 5 left; so 43 + 77 = 120 s.
    let capabilities = Capabilities {
        restart_cost_s: 5.0,
        restart_cost_is_work: true,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    let workload = workload(vec![job("a", 0.0, 2, 100.0)]);
    let mut world = World::new(&workload, capabilities, &[known(100.0)]).unwrap();
    world.advance();
    for (start_s, stop_s) in [(0.0, 30.0), (40.0, 43.0)] {
        wake(&mut world, start_s);
        start(&mut world, 0, 0b11);
        world.carry_out();
        wake(&mut world, stop_s);
        world.cluster_mut().preempt(JobId(0));
        world.carry_out();
    }
    start(&mut world, 0, 0b11);
    world.carry_out();
    while world.advance() == Advance::Event {}
    let a = *world.outcomes().next().unwrap();
    assert_eq!((a.finish_s, a.held_s, a.num_preemptions), (120.0, 110.0, 2));
}

#[test]
fn a_wish_wakes_the_scheduler_once_even_while_nothing_runs() {
    let mut world = world_of(vec![job("a", 1.0, 2, 100.0)]);
    world.advance();
    world.wake_at(Some(Time::from_secs_f64(0.5)));
    assert_eq!(world.advance(), Advance::End, "a time that has passed is no wish");
    world.wake_at(Some(Time::from_secs_f64(60.0)));
    assert_eq!(world.advance(), Advance::Event);
    assert_eq!(world.cluster().now(), Time::from_secs_f64(60.0));
    assert_eq!(world.advance(), Advance::End, "it rings once");
}

#[test]
fn a_gang_that_whole_nodes_can_never_hold_is_refused_where_gangs_must_not_scatter() {
    // Nodes of 4, 2 and 2: 8 GPUs in all, but at most 4 + 2 consolidated.
    let mut workload = workload(vec![job("a", 0.0, 8, 10.0)]);
    workload.cluster.node_groups[0].count = 1;
    let mut small = workload.cluster.node_groups[0].clone();
    (small.count, small.gpus_per_node) = (2, 2);
    workload.cluster.node_groups.push(small);
    let new = |consolidated| {
        let capabilities = Capabilities {
            consolidated,
            ..Capabilities::default()
        };
        World::new(&workload, capabilities, &[known(10.0)])
    };
    assert!(new(false).is_ok());
    let text = new(true).unwrap_err().to_string();
    assert!(text.contains("a gang of 8 GPUs"), "{text}");
}
