//! What a run promises of the policy that it lets deploy, and what became of it.
//!
//! The figures are those of the jobs that judged, played under the policy. Waits are multiplied by what the site's observed mean wait
//! was over the simulated one under its own policy, as for *about* in a twin; run times are not.
//!
//! # What is deliberately not here
//! When a promise is broken: that rule stands in `pleach_site`, where the daemons ask it too.

mod figures;
mod pages;
mod review;
#[cfg(test)]
mod tests;

use std::path::Path;

use pleach_env::workload::Workload;
use pleach_env::{JobOutcome, SimConfig};
use pleach_site::promise::{BYTES_MAX, Promise, VERSION};
use serde::{Deserialize, Serialize};

use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::stats::mean;
use crate::run_folder::atomic_file;
use crate::twin::{Span, play, wait_s};

pub use pages::page;
pub use review::{Review, ReviewInput, review};

/// Bounds of the factor of waits: beyond them a twin is not believable.
const FACTOR: (f64, f64) = (0.5, 2.0);

/// What was played.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Root of all randomness.
    pub seed: u64,
    /// What the scheduler may do and knows, as its twin fitted it.
    pub scheduling: SchedulingConfig,
}

/// A promise with what was played.
pub type Promised = Promise<World>;

/// Reads a promise.
///
/// # Errors
/// A file that is none, or too long; a value that is not allowed.
pub fn read(path: &Path) -> Result<Promised, Error> {
    let promise: Promised = atomic_file::read_json(path, BYTES_MAX)?;
    promise.check().map_err(|error| Error::data(path, error))?;
    Ok(promise)
}

/// What a promise is made of.
#[derive(Clone, Copy, Debug)]
pub struct PromiseInput<'a> {
    /// All jobs.
    pub workload: &'a Workload,
    /// The cluster and what is known.
    pub sim: &'a SimConfig,
    /// What is to be deployed, and the name or the file beside the promise by which it is opened.
    pub policy: (&'a PolicySpec, &'a str),
    /// The site's policy, and its name.
    pub before: (&'a PolicySpec, &'a str),
    /// The jobs on which it rests.
    pub span: Span,
    /// What was played.
    pub world: &'a World,
}

/// Makes a promise.
///
/// # Errors
/// A simulation that fails.
pub fn promise(input: &PromiseInput<'_>) -> Result<Promised, Error> {
    let own = play(input.workload, input.sim, input.policy.0)?;
    let before = play(input.workload, input.sim, input.before.0)?;
    let factor = wait_factor(input.workload, &before, input.span.since_s);
    let own: Vec<JobOutcome> = own
        .into_iter()
        .filter(|job| job.submit_s >= input.span.since_s)
        .map(|job| with_waits(job, factor))
        .collect();
    let rows = figures::rows(&own.iter().collect::<Vec<_>>(), input.workload, input.span);
    Ok(Promise {
        version: VERSION,
        policy: input.policy.1.to_owned(),
        before: input.before.1.to_owned(),
        wait_factor: factor,
        num_days: input.span.num_days(&own),
        world: input.world.clone(),
        rows,
    })
}

/// Observed over simulated mean wait of the jobs from a time on; 1 where nothing was observed or no job waits.
fn wait_factor(workload: &Workload, simulated: &[JobOutcome], since_s: f64) -> f64 {
    let pairs = workload.jobs.iter().zip(simulated).filter_map(|(job, outcome)| {
        let start = job.observed.as_deref()?.start;
        (outcome.submit_s >= since_s).then(|| ((start - job.submit).as_secs_f64().max(0.0), wait_s(outcome)))
    });
    let (seen, played): (Vec<f64>, Vec<f64>) = pairs.unzip();
    match (mean(&seen), mean(&played)) {
        (seen, played) if seen > 0.0 && played > 0.0 => (seen / played).clamp(FACTOR.0, FACTOR.1),
        _ => 1.0,
    }
}

/// A job whose time without GPUs is so many times as long.
fn with_waits(job: JobOutcome, factor: f64) -> JobOutcome {
    let more_s = (factor - 1.0) * wait_s(&job);
    JobOutcome {
        first_start_s: job.submit_s + factor * (job.first_start_s - job.submit_s),
        finish_s: job.finish_s + more_s,
        ..job
    }
}
