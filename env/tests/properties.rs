//! What holds at every instant of every run, for every heuristic, on random clusters with random capabilities: the world is
//! watched from outside, and everything that is reported in the end is counted a second time from what was seen.

use crate::scenario;
use pleach_env::workload::Workload;
use pleach_env::world::{Advance, World};
use pleach_env::{JobOutcome, Seed, SimConfig};
use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::{ActionKind, JobId, Time, heuristics};
use proptest::prelude::*;

/// What was seen of one job.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    waited_s: f64,
    held_s: f64,
    /// Work done, seconds of the reference run.
    executed_s: f64,
    /// Start-up that was gone through.
    startup_s: f64,
    /// Start-up that is left in the present run.
    startup_left_s: f64,
    /// Start-up that later runs did not have to finish because they were stopped in it.
    startup_cut_s: f64,
    num_stops: u32,
}

/// Everything that was seen.
struct Watch {
    jobs: Vec<Seen>,
    states: Vec<JobState>,
    held_gpu_s: f64,
    restart_cost_s: f64,
}

impl Watch {
    fn new(workload: &Workload, config: &SimConfig) -> Watch {
        Watch {
            jobs: vec![Seen::default(); workload.jobs.len()],
            states: Vec::new(),
            held_gpu_s: 0.0,
            restart_cost_s: config.capabilities.restart_cost_s,
        }
    }

    /// Time passes in the states that were last seen.
    fn pass(&mut self, cluster: &Cluster, from: Time) {
        let dt_s = (cluster.now() - from).as_secs_f64();
        for (id, state) in self.states.iter().enumerate() {
            let (seen, job) = (&mut self.jobs[id], &cluster.jobs()[id]);
            match state {
                JobState::Pending => seen.waited_s += dt_s,
                JobState::Running => {
                    let startup_s = seen.startup_left_s.min(dt_s);
                    seen.startup_left_s -= startup_s;
                    seen.startup_s += startup_s;
                    seen.executed_s += (dt_s - startup_s) * job.rate;
                    seen.held_s += dt_s;
                    self.held_gpu_s += f64::from(job.request.num_gpus) * dt_s;
                }
                JobState::Held | JobState::Finished => {}
            }
        }
    }

    /// Looks at the states after a pass, and at what must hold of them.
    fn look(&mut self, workload: &Workload, cluster: &Cluster) {
        cluster.check();
        self.states.resize(cluster.jobs().len(), JobState::Pending);
        let mut used = vec![0; workload.cluster.tenants.len()];
        let mut taken = vec![false; cluster.gpus().len()];
        for (id, job) in cluster.jobs().iter().enumerate() {
            let seen = &mut self.jobs[id];
            let stopped = job.num_preemptions > seen.num_stops;
            if stopped {
                seen.startup_cut_s += seen.startup_left_s;
                seen.num_stops += 1;
                assert_eq!(
                    job.num_preemptions, seen.num_stops,
                    "stopped twice at one instant"
                );
            }
            if job.state == JobState::Running {
                if stopped || self.states[id] == JobState::Pending {
                    let restart = job.num_preemptions > 0;
                    seen.startup_left_s = if restart { self.restart_cost_s } else { 0.0 };
                }
                used[workload.jobs[id].tenant as usize] += job.request.num_gpus;
            }
            // All or nothing, and nothing twice.
            let mut num_held = 0;
            for slice in &job.placement {
                let node = &cluster.nodes()[slice.node.index()];
                for gpu in (0..node.num_gpus).filter(|gpu| slice.gpus >> gpu & 1 == 1) {
                    let row = (node.first_gpu + gpu) as usize;
                    assert!(
                        !std::mem::replace(&mut taken[row], true),
                        "GPU {row} is held twice"
                    );
                    assert_eq!(cluster.gpus()[row], Some(JobId(id as u32)));
                    num_held += 1;
                }
            }
            let wanted = if job.state == JobState::Running {
                job.request.num_gpus
            } else {
                0
            };
            assert_eq!(num_held, wanted, "job {id} is {:?}", job.state);
            self.states[id] = job.state;
        }
        let num_taken = taken.iter().filter(|taken| **taken).count();
        assert_eq!(num_taken as u32, cluster.num_gpus() - cluster.num_free());
        if !workload.cluster.borrowing {
            for (tenant, used) in workload.cluster.tenants.iter().zip(used) {
                assert!(used <= tenant.quota_gpus, "{} uses {used}", tenant.name);
            }
        }
    }
}

/// Runs to the end under watch.
fn watched(name: &str, workload: &Workload, config: &SimConfig) -> (Watch, Vec<JobOutcome>, World) {
    let mut policy = heuristics::by_name(name).unwrap();
    let estimates = config.estimates.estimates(workload, Seed(config.seed));
    let mut world = World::new(workload, config.capabilities, &estimates).unwrap();
    world.set_tick(policy.needs().tick);
    let (mut watch, mut pass) = (Watch::new(workload, config), Pass::new());
    while !world.is_over() {
        let before = world.cluster().now();
        assert_eq!(
            world.advance(),
            Advance::Event,
            "{name}: jobs are left and nothing will ever happen"
        );
        watch.pass(world.cluster(), before);
        if world.cluster().num_pending() > 0 {
            pass.run(world.cluster_mut(), &mut policy).unwrap();
        }
        world.carry_out();
        watch.look(workload, world.cluster());
    }
    let outcomes = world.outcomes().copied().collect();
    (watch, outcomes, world)
}

/// Rounding to the microsecond at every event, s.
const SLACK_S: f64 = 1e-3;

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < SLACK_S
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_is_reported_is_what_happened(
        workload in scenario::workload(24),
        config in scenario::config(),
        name in proptest::sample::select(heuristics::names()),
    ) {
        let (watch, outcomes, world) = watched(name, &workload, &config);
        prop_assert_eq!(outcomes.len(), workload.jobs.len(), "a job was lost");
        let (mut sum_gpu_s, mut sum_jct_s) = (0.0, 0.0);
        for (id, (outcome, job)) in outcomes.iter().zip(&workload.jobs).enumerate() {
            let seen = watch.jobs[id];
            let attained_gpu_s = world.cluster().jobs()[id].attained_gpu_s;
            // Work is conserved through every stop and restart.
            prop_assert!(near(seen.executed_s, job.run_time_s), "{name} {id}: {seen:?} of {} s", job.run_time_s);
            // Attained service is the integral of the GPUs held.
            prop_assert!(near(attained_gpu_s, seen.held_s * f64::from(job.num_gpus)), "{name} {id}: {seen:?}");
            prop_assert!(near(outcome.held_s, seen.held_s), "{name} {id}: {outcome:?} {seen:?}");
            // Waiting and holding are all there is.
            prop_assert!(near(outcome.wait_s(), seen.waited_s), "{name} {id}: {outcome:?} {seen:?}");
            prop_assert!(near(seen.waited_s + seen.held_s, outcome.jct_s()), "{name} {id}: {outcome:?} {seen:?}");
            // Every stop costs one restart, less what a stop during a restart spares.
            let lost_s = f64::from(outcome.num_preemptions) * config.capabilities.restart_cost_s - seen.startup_cut_s;
            prop_assert!(near(seen.startup_s, lost_s), "{name} {id}: {outcome:?} {seen:?}");
            prop_assert!(config.capabilities.can(ActionKind::Preempt) || outcome.num_preemptions == 0);
            // Nothing is faster than alone on the best type.
            prop_assert!(outcome.jct_s() >= outcome.isolated_s - SLACK_S);
            sum_gpu_s += attained_gpu_s;
            sum_jct_s += outcome.jct_s();
        }
        prop_assert!(near(watch.held_gpu_s, sum_gpu_s));
        prop_assert!(near(world.integrals().held_gpu_s, sum_gpu_s));
        prop_assert!(near(world.integrals().jobs_s, sum_jct_s), "Little's law");
    }
}
