//! Runs a policy on a workload from the first submission to the last finish.

use std::sync::Mutex;

use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::pass::Pass;
use pleach_scheduler::policy::Policy;
use serde::{Deserialize, Serialize};

use crate::capacity::CapacityConfig;
use crate::error::Error;
use crate::failures::OutcomeModel;
use crate::metrics::{JobOutcome, Metrics};
use crate::seed::Seed;
use crate::workload::Workload;
use crate::workload::estimates::EstimateModel;
use crate::world::{Instant, World};

/// What a simulated cluster can do and what its scheduler is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimConfig {
    /// Preemption, reservation and the cost of a restart.
    pub capabilities: Capabilities,
    /// Jobs that fail, are retried, killed and given up; without, every job does all its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<OutcomeModel>,
    /// Nodes that come and go.
    pub capacity: CapacityConfig,
    /// How the scheduler's run time estimates come about.
    pub estimates: EstimateModel,
    /// Draws the errors of the estimates and the failures of nodes.
    pub seed: u64,
    /// Record the number of held GPUs over time.
    pub record_utilisation: bool,
}

/// Everything that a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct SimResult {
    /// One outcome per job of the workload, in its order.
    pub jobs: Vec<JobOutcome>,
    /// Figures over all jobs.
    pub metrics: Metrics,
    /// (time s, held GPUs) at every change; empty unless asked for.
    pub utilisation: Vec<(f64, f64)>,
    /// Passes in which there was something to decide.
    pub num_passes: u64,
}

/// Simulates a policy to the end.
///
/// # Errors
/// An invalid workload or cluster, or a policy that cannot decide.
pub fn simulate(
    workload: &Workload,
    config: &SimConfig,
    policy: &mut dyn Policy,
) -> Result<SimResult, Error> {
    workload.validate()?;
    config.estimates.validate()?;
    let estimates = config.estimates.estimates(workload, Seed(config.seed));
    let mut world = World::new(workload, config.capabilities, &estimates)?;
    world.set_seed(Seed(config.seed).child("world", 0));
    if let Some(outcomes) = &config.outcomes {
        world.set_outcomes(outcomes, Seed(config.seed).child("outcomes", 0))?;
    }
    world.set_capacity(&config.capacity, Seed(config.seed).child("capacity", 0))?;
    if config.record_utilisation {
        world.record_utilisation();
    }
    let needs = policy.needs();
    world.set_tick(needs.tick);
    let mut pass = Pass::new();
    let mut num_passes = 0;
    while !world.is_over() {
        // An idle cluster with jobs may not hold, so there is always a next event until the last finish. Were it not so,
        // the figures would be those of the easy jobs only: better no figures.
        assert_eq!(
            world.advance(),
            Instant::Event,
            "jobs are left but nothing will ever happen"
        );
        if world.cluster().num_pending() > 0 {
            num_passes += 1;
            pass.run(world.cluster_mut(), policy)?;
        }
        world.carry_out();
    }
    let jobs: Vec<JobOutcome> = world.outcomes().copied().collect();
    Ok(SimResult {
        metrics: world.metrics(),
        jobs,
        utilisation: world.take_utilisation(),
        num_passes,
    })
}

/// One simulation to be run: a workload, its settings and a maker of its policy.
pub type Task<'a> = (
    &'a Workload,
    SimConfig,
    &'a (dyn Fn() -> Result<Box<dyn Policy>, Error> + Sync),
);

/// Runs many simulations over the threads of the present pool; results are in the order of the tasks whatever the
/// number of threads. `progress` is called after each one.
///
/// # Errors
/// The first error in the order of the tasks.
pub fn simulate_all(tasks: &[Task<'_>], progress: &(dyn Fn(usize) + Sync)) -> Result<Vec<SimResult>, Error> {
    use rayon::prelude::*;
    let finished = Mutex::new(0);
    let results: Vec<Result<SimResult, Error>> = tasks
        .par_iter()
        .map(|(workload, config, policy)| {
            let result = policy().and_then(|mut policy| simulate(workload, config, &mut policy));
            let mut finished = finished.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *finished += 1;
            progress(*finished);
            result
        })
        .collect();
    results.into_iter().collect()
}
