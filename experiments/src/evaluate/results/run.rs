//! One run of a policy, and what makes runs unfit to be compared.

use std::collections::{BTreeMap, BTreeSet};

use pleach_env::bound::LowerBounds;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// One policy on one workload with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRun {
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the workload and of everything random in the run.
    pub seed: u64,
    /// Numbers by key; the keys are those of [`METRICS`](crate::evaluate::metric::METRICS), others are kept in the CSV only.
    pub metrics: BTreeMap<String, f64>,
    /// JCT of each finished job, seconds, in any order.
    pub jct_s: Vec<f64>,
    /// (time in seconds, part of all GPUs busy from then on, 0 to 1), by time.
    pub utilisation: Vec<(f64, f64)>,
}

/// By how much a run may be below its bound, as a part of it: rounding. *Assumed*: a thousand times the 1e-9 to which bounds are
/// exact.
const GAP_TOLERANCE: f64 = 1e-6;

/// Keys of the metrics that are gaps to a lower bound.
pub(crate) const GAP_KEYS: [&str; 2] = ["avg_jct_gap", "makespan_gap"];

/// Keys of the lower bounds in a run's metrics.
pub(super) const BOUND_KEYS: [&str; 2] = ["avg_jct_bound_s", "makespan_bound_s"];

impl PolicyRun {
    /// The same run with its workload's lower bounds and its gaps to them; a bound of zero gives no gap.
    ///
    /// # Errors
    /// [`Error::Failed`] where the run is below a bound: then either the bound or the run is wrong.
    pub fn against(mut self, bounds: LowerBounds) -> Result<PolicyRun, Error> {
        for (key, gap_key, bound_key, bound_s) in [
            ("avg_jct_s", GAP_KEYS[0], BOUND_KEYS[0], bounds.avg_jct_s),
            ("makespan_s", GAP_KEYS[1], BOUND_KEYS[1], bounds.makespan_s),
        ] {
            if let Some(found_s) = self.metrics.get(key).copied().filter(|_| bound_s > 0.0) {
                let gap = found_s / bound_s - 1.0;
                if gap < -GAP_TOLERANCE {
                    let (policy, workload, seed) = (&self.policy, &self.workload, self.seed);
                    return Err(Error::Failed(format!(
                        "{policy} on {workload} with seed {seed}: {key} is {found_s}, below the {bound_s} that no schedule can \
                         beat. The bound or the simulation is wrong: please report it with the command"
                    )));
                }
                self.metrics.insert(gap_key.into(), gap.max(0.0));
                self.metrics.insert(bound_key.into(), bound_s);
            }
        }
        Ok(self)
    }
}

/// Refuses numbers that are not finite, utilisations that are no part of a whole, and the same run twice.
///
/// # Errors
/// [`Error::Failed`] with the first such run.
pub(super) fn check_runs(runs: &[PolicyRun]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for run in runs {
        let name = format!("{} on {} with seed {}", run.policy, run.workload, run.seed);
        if !seen.insert((&run.policy, &run.workload, run.seed)) {
            return Err(Error::Failed(format!("{name} was run twice")));
        }
        if let Some((key, value)) = run.metrics.iter().find(|(_, value)| !value.is_finite()) {
            return Err(Error::Failed(format!("{name}: {key} is {value}")));
        }
        if let Some(value) = run
            .jct_s
            .iter()
            .find(|value| !(value.is_finite() && **value >= 0.0))
        {
            return Err(Error::Failed(format!("{name}: a JCT is {value} s")));
        }
        let whole =
            |&&(time, part): &&(f64, f64)| !(time.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&part));
        if let Some((time, part)) = run.utilisation.iter().find(whole) {
            return Err(Error::Failed(format!(
                "{name}: utilisation is {part} at {time} s; it is a part of all GPUs, 0 to 1"
            )));
        }
    }
    Ok(())
}
