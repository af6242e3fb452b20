//! A contest: every policy on every workload, the same workloads for all, side by side over threads. Each run is also
//! measured against what no schedule of its workload can beat.

use pleach_env::bound::LowerBounds;
use pleach_env::error::Error as EnvError;
use pleach_env::simulate::{SimConfig, SimResult, simulate_planner};
use pleach_env::workload::Workload;
use rayon::prelude::*;

use crate::contestant::Contestant;
use crate::error::Error;
use crate::results::PolicyRun;

/// One workload of a contest.
#[derive(Clone, Debug)]
pub struct Bout {
    /// The jobs and the cluster.
    pub workload: Workload,
    /// The seed that it was drawn with; also decides the errors of the estimates.
    pub seed: u64,
}

/// Runs every contestant on every bout. Results are in the order bout by bout, contestant by contestant, whatever the
/// number of threads; `progress` is called once for each finished run.
///
/// # Errors
/// The first run, in that order, that failed.
pub fn contest(
    bouts: &[Bout],
    contestants: &[Contestant],
    sim: &SimConfig,
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<PolicyRun>, Error> {
    // A bound holds for the work of the list. Where the model of outcomes lets jobs end before it, there is none.
    let bounds_of = |bout: &Bout| LowerBounds::of(&bout.workload, &sim.capabilities);
    let bounds: Vec<Option<LowerBounds>> = bouts
        .par_iter()
        .map(|bout| sim.outcomes.is_none().then(|| bounds_of(bout)))
        .collect();
    let pairs: Vec<(&Bout, Option<LowerBounds>, &Contestant)> = bouts
        .iter()
        .zip(bounds)
        .flat_map(|(bout, bounds)| {
            contestants
                .iter()
                .map(move |contestant| (bout, bounds, contestant))
        })
        .collect();
    let runs: Vec<Result<PolicyRun, Error>> = pairs
        .par_iter()
        .map(|(bout, bounds, contestant)| {
            let run = run(bout, contestant, sim).map(|run| match bounds {
                Some(bounds) => run.against(*bounds),
                None => run,
            });
            progress();
            run
        })
        .collect();
    runs.into_iter().collect()
}

fn run(bout: &Bout, contestant: &Contestant, sim: &SimConfig) -> Result<PolicyRun, Error> {
    let config = SimConfig {
        seed: bout.seed,
        ..sim.clone()
    };
    let mut planner = contestant.make_planner()?;
    let result = simulate_planner(&bout.workload, &config, planner.as_mut())
        .map_err(|error| failed(contestant, bout, error))?;
    Ok(record(contestant.name(), bout, result))
}

fn failed(contestant: &Contestant, bout: &Bout, error: EnvError) -> Error {
    match error {
        EnvError::Config(config) => Error::Config(Box::new(config)),
        other => Error::Failed(format!(
            "{} on {}: {other}",
            contestant.name(),
            bout.workload.name
        )),
    }
}

/// What a run leaves in the results.
pub(crate) fn record(policy: &str, bout: &Bout, result: SimResult) -> PolicyRun {
    let num_gpus = bout.workload.cluster.num_gpus() as f64;
    PolicyRun {
        policy: policy.to_string(),
        workload: bout.workload.name.clone(),
        seed: bout.seed,
        metrics: result
            .metrics
            .fields()
            .into_iter()
            .map(|(key, value)| (key.to_string(), value))
            .collect(),
        jct_s: result
            .jobs
            .iter()
            .map(pleach_env::metrics::JobOutcome::jct_s)
            .collect(),
        utilisation: result
            .utilisation
            .iter()
            .map(|(time_s, held)| (*time_s, held / num_gpus))
            .collect(),
    }
}
