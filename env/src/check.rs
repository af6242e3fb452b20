//! `check_env`: drives an environment through whole episodes and holds it to its contract.

use crate::config::{EnvConfig, Source};
use crate::env::Env;
use crate::error::Error;
use crate::random::random_action;
use crate::vector::{ObservationMut, Spaces, Step};
use pleach_workloads::Seed;

/// What was driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Steps of the episode.
    pub num_steps: u64,
    /// Most candidates in one observation, hold included.
    pub num_candidates_max: usize,
    /// Whether the episode ended by itself.
    pub terminated: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Buffers {
    global: Vec<f32>,
    candidates: Vec<f32>,
    mask: Vec<bool>,
}

impl Buffers {
    /// Filled with what a writer must overwrite.
    fn dirty(spaces: Spaces) -> Buffers {
        Buffers {
            global: vec![f32::NAN; spaces.num_global],
            candidates: vec![f32::NAN; spaces.num_candidates * spaces.num_features],
            mask: vec![true; spaces.num_candidates],
        }
    }

    fn as_mut(&mut self) -> ObservationMut<'_> {
        ObservationMut {
            global: &mut self.global,
            candidates: &mut self.candidates,
            mask: &mut self.mask,
        }
    }

    fn check(&self, spaces: Spaces) {
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        assert!(
            finite(&self.global) && finite(&self.candidates),
            "observations are finite and fully written"
        );
        let rows = self.candidates.chunks(spaces.num_features).zip(&self.mask);
        for (index, (row, admissible)) in rows.enumerate().skip(1) {
            let empty = row.iter().all(|value| *value == 0.0);
            assert_eq!(
                empty, !admissible,
                "row {index} is zero exactly where it is masked"
            );
        }
    }
}

/// Plays one episode with random admissible actions, twice at once, and asserts: observations are finite and fully
/// written; two copies with one seed are bit-equal; masked actions are refused and change nothing; time never runs
/// backwards; an ended episode refuses to go on; the figures cover every job of a terminated episode.
///
/// # Errors
/// Settings with which no environment can be made.
///
/// # Panics
/// Where the environment breaks the contract; that is its purpose.
pub fn check_env(config: &EnvConfig, seed: u64, max_steps: u64) -> Result<CheckReport, Error> {
    let (mut env, mut twin) = (Env::new(config.clone())?, Env::new(config.clone())?);
    let spaces = env.spaces();
    let (mut seen, mut twin_seen) = (Buffers::dirty(spaces), Buffers::dirty(spaces));
    assert!(
        env.step(0, seen.as_mut()).is_err(),
        "an environment that was never reset refuses to step"
    );
    env.reset(seed, seen.as_mut())?;
    twin.reset(seed, twin_seen.as_mut())?;
    let mut rng = Seed(seed).stream("check_env", 0);
    let mut report = CheckReport::default();
    while report.num_steps < max_steps {
        seen.check(spaces);
        assert_eq!(seen, twin_seen, "two copies with one seed are bit-equal");
        let admissible = seen.mask.iter().filter(|admissible| **admissible).count();
        assert!(admissible > 0, "there is always something to choose");
        report.num_candidates_max = report.num_candidates_max.max(admissible);
        if let Some(masked) = seen.mask.iter().position(|admissible| !admissible) {
            assert!(
                env.step(masked, Buffers::dirty(spaces).as_mut()).is_err(),
                "a masked action is refused"
            );
        }
        let action = random_action(&seen.mask, &mut rng);
        // One copy writes over its last observation, the other into buffers that hold anything.
        seen = Buffers::dirty(spaces);
        let step: Step = env.step(action, seen.as_mut())?;
        assert_eq!(
            Ok(step),
            twin.step(action, twin_seen.as_mut()),
            "two copies with one seed are bit-equal"
        );
        assert!(step.reward.is_finite() && step.dt_s >= 0.0);
        report.num_steps += 1;
        if step.terminated || step.truncated {
            report.terminated = step.terminated;
            assert!(!(step.terminated && step.truncated), "an episode ends in one way");
            assert!(
                env.step(0, Buffers::dirty(spaces).as_mut()).is_err(),
                "an ended episode refuses to go on"
            );
            let num_jobs = Source::open(config)?.workload(config, Seed(seed))?.jobs.len();
            assert!(
                !step.terminated || env.metrics().num_jobs == num_jobs as f64,
                "no job is lost"
            );
            return Ok(report);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_environment_keeps_the_contract_to_the_end_of_an_episode() {
        for id in EnvConfig::ids() {
            let config = EnvConfig::registered(id).unwrap();
            let report = check_env(&config, 3, 100_000).unwrap();
            assert!(
                report.terminated && report.num_candidates_max > 3,
                "{id}: {report:?}"
            );
        }
    }
}
