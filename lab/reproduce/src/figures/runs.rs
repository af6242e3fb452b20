//! Simulations of a reproduction: one planner on one workload each, side by side over threads, in a fixed order.

use std::sync::Arc;

use pleach_env::workload::Workload;
use pleach_env::{SimConfig, SimResult, simulate_planner};
use serde_json::Value;

use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::run::in_parallel;
use pleach_experiments::progress::Watcher;

/// One simulation.
#[derive(Clone, Debug)]
pub struct Run {
    /// The jobs and the cluster.
    pub workload: Arc<Workload>,
    /// What the cluster can do and what is known; what the planner asks for is added.
    pub sim: SimConfig,
    /// Name of a heuristic or a planner.
    pub policy: &'static str,
    /// Settings of the planner; `null` = the published ones.
    pub settings: Value,
}

impl Run {
    /// A run with the published settings.
    #[must_use]
    pub fn new(workload: &Arc<Workload>, sim: &SimConfig, policy: &'static str) -> Run {
        Run {
            workload: Arc::clone(workload),
            sim: sim.clone(),
            policy,
            settings: Value::Null,
        }
    }

    /// The same with other settings.
    #[must_use]
    pub fn with(mut self, settings: Value) -> Run {
        self.settings = settings;
        self
    }

    fn simulate(&self) -> Result<SimResult, Error> {
        let policy = if pleach_baselines::find(self.policy).is_some() {
            DOOR.planner(self.policy, self.settings.clone())?
        } else {
            PolicySpec::heuristic(self.policy)?
        };
        let mut sim = self.sim.clone();
        sim.capabilities = sim.capabilities.with_actions(policy.asks()?);
        Ok(simulate_planner(
            &self.workload,
            &sim,
            policy.make_planner()?.as_mut(),
        )?)
    }
}

/// Runs all of them; results are in the order of the runs, whatever the number of threads.
///
/// # Errors
/// The first run, in that order, that failed.
pub(crate) fn run_all(label: &str, watcher: &Watcher, runs: &[Run]) -> Result<Vec<SimResult>, Error> {
    in_parallel(label, watcher, runs, Run::simulate)
}

/// Mean JCT of the jobs from one number to another (the end excluded) in the order of submission, s. Papers average over a
/// window of jobs in the middle of a run.
#[must_use]
pub fn avg_jct_s(result: &SimResult, jobs: std::ops::Range<usize>) -> f64 {
    let end = jobs.end.min(result.jobs.len());
    let start = jobs.start.min(end);
    let jcts: Vec<f64> = result.jobs[start..end]
        .iter()
        .map(pleach_env::JobOutcome::jct_s)
        .collect();
    pleach_experiments::evaluate::stats::mean(&jcts)
}
