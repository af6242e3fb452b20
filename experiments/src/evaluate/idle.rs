//! Whether jobs wait at all in the windows that are about to be played: where none waits, no policy can win anything, and nothing
//! can be learned.

use std::collections::BTreeMap;

use super::instances::{Instance, episodes, seeds};
use super::results::PolicyRun;
use super::run::Runner;
use super::stats::mean;
use crate::door::PolicySpec;
use crate::error::Error;
use pleach_env::{EnvConfig, SimConfig};

/// Mean wait over mean completion time below which there is no queue; in the verdict of `pleach run` too. *Assumed*.
pub(crate) const WAIT_MIN: f64 = 0.01;
/// Windows that are played, at most.
const WINDOWS_MAX: usize = 8;
/// The plain rule that plays them: it holds nothing back, and no wide job blocks others.
const RULE: &str = "sjf";

/// What there is to say of windows in which no job waits under a plain rule; none where jobs wait.
///
/// # Errors
/// A simulation that fails.
pub fn idle(instances: &[Instance], sim: &SimConfig, is_list: bool) -> Result<Option<String>, Error> {
    let first = &instances[..instances.len().min(WINDOWS_MAX)];
    let runs = Runner::new(sim).run(first, &[PolicySpec::heuristic(RULE)?])?;
    Ok(in_words(runs.iter(), is_list))
}

/// The same of the windows in which an environment learns.
///
/// # Errors
/// Windows that cannot be drawn, a simulation that fails.
pub fn idle_env(env: &EnvConfig, seed: u64) -> Result<Option<String>, Error> {
    let instances = episodes(env, &seeds(seed, "idle", WINDOWS_MAX))?;
    let is_list = env.workload.is_list();
    idle(&instances, &env.sim, is_list)
}

/// The same of what was played: of the policy with the least mean completion time.
#[must_use]
pub fn idle_runs(runs: &[PolicyRun], is_list: bool) -> Option<String> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for run in runs {
        let jct_s = run.metrics.get("avg_jct_s").copied();
        *sums.entry(&run.policy).or_default() += jct_s.unwrap_or(f64::INFINITY);
    }
    let (best, _) = sums.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    in_words(runs.iter().filter(|run| run.policy == best), is_list)
}

fn in_words<'a>(runs: impl Iterator<Item = &'a PolicyRun> + Clone, is_list: bool) -> Option<String> {
    let of = |key: &str| {
        let values = runs
            .clone()
            .map(|run| run.metrics.get(key).copied().unwrap_or(0.0));
        mean(&values.collect::<Vec<_>>())
    };
    if of("avg_wait_s") >= WAIT_MIN * of("avg_jct_s") {
        return None;
    }
    let advice = match is_list {
        true => "longer ones (--num-jobs) or warm starts (--keep-running)",
        false => "longer ones (--num-jobs) or a higher load (--load)",
    };
    Some(format!(
        "GPUs are {:.0} % in use and no job waits in these windows, so there is hardly anything to win: use {advice}",
        100.0 * of("utilisation")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::results::tests::run;

    #[test]
    fn windows_in_which_no_job_waits_are_reported_with_their_use_and_what_to_do() {
        let of = |wait_s: f64| {
            let one = run("sjf", "w", 0, 1000.0);
            let one = one.with("avg_wait_s", wait_s).with("utilisation", 0.114);
            in_words([one].iter(), true)
        };
        assert_eq!(of(10.0), None);
        let said = of(9.0).unwrap();
        let words = "GPUs are 11 % in use and no job waits in these windows";
        assert!(
            said.starts_with(words) && said.contains("--keep-running"),
            "{said}"
        );
    }
}
