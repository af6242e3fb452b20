//! Workloads on which networks and trees are chosen; what is reported comes from others.

use pleach_scheduler::portable_math::{exp, ln};
use std::collections::BTreeMap;

use pleach_env::{EnvConfig, Source, Split};

use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::instances::{episodes, seeds};
use crate::evaluate::results::PolicyRun;
use crate::evaluate::run::Runner;
use crate::train::objective::{self, Objective};

/// Workloads on which policies are chosen, and what the heuristics do there.
#[derive(Clone, Debug)]
pub struct Validation {
    /// The workloads.
    pub instances: Vec<Instance>,
    /// What is to be little: policies are compared by its [ratio](objective::ratio), of the average JCTs if nothing else is said.
    pub objective: Objective,
    /// Heuristics with their ratios to the best one, which comes first.
    pub ranking: Vec<(String, f64)>,
    /// What the best heuristic did, workload by workload.
    pub base: Vec<PolicyRun>,
    /// Part of the mixture that each workload is of; empty without a mixture.
    pub parts: Vec<usize>,
}

impl Validation {
    /// Draws the workloads and runs all heuristics on them; the average JCT is what is to be little.
    ///
    /// # Errors
    /// Where a workload or a run fails.
    pub fn new(env: &EnvConfig, seed: u64, num: usize) -> Result<Validation, Error> {
        Validation::by(&objective::avg_jct(), env, seed, num)
    }

    /// As [`Validation::new`], with an objective.
    ///
    /// # Errors
    /// As [`Validation::new`].
    pub fn by(objective: &Objective, env: &EnvConfig, seed: u64, num: usize) -> Result<Validation, Error> {
        let env = &env.in_split(Split::Validation);
        let of_validation = seeds(seed, "validation", num);
        let instances = episodes(env, &of_validation)?;
        let source = Source::open(env)?;
        let parts = of_validation
            .iter()
            .filter_map(|seed| source.part(*seed))
            .collect();
        let heuristics = DOOR.open_all(&[])?;
        let runs = Runner::new(&env.sim).run(&instances, &heuristics)?;
        let of = |policy: &str| -> Vec<PolicyRun> {
            let runs = runs.iter().filter(|run| run.policy == policy);
            runs.cloned().collect()
        };
        // Which heuristic is first does not depend on the one that all are compared with.
        let first = of(heuristics[0].name());
        let mut ranking: Vec<(String, f64)> = heuristics
            .iter()
            .map(|heuristic| {
                let name = heuristic.name();
                (name.to_string(), mean_ratio(objective, &of(name), &first))
            })
            .collect();
        ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
        let base = of(&ranking[0].0);
        for (name, ratio) in &mut ranking {
            *ratio = mean_ratio(objective, &of(name), &base);
        }
        Ok(Validation {
            instances,
            objective: objective.clone(),
            ranking,
            base,
            parts,
        })
    }

    /// The best heuristic.
    #[must_use]
    pub fn best(&self) -> &str {
        &self.ranking[0].0
    }

    /// Jobs of the first validation workload.
    #[must_use]
    pub fn num_jobs(&self) -> usize {
        self.instances[0].workload.jobs.len()
    }

    /// The best one of some heuristics, with commas between their names; none if no name is that of a heuristic.
    #[must_use]
    pub fn best_of(&self, names: &str) -> Option<&str> {
        let named = |(name, _): &&(String, f64)| names.split(',').any(|other| other == name);
        self.ranking.iter().find(named).map(|(name, _)| name.as_str())
    }

    /// Geometric mean over the workloads of a policy's ratio to the best heuristic; below 1 is better.
    ///
    /// # Errors
    /// Where a run fails.
    pub fn ratio(&self, env: &EnvConfig, policy: PolicySpec) -> Result<f64, Error> {
        Ok(self.judge(env, policy)?.0)
    }

    /// The ratio, and the mean over the workloads of each metric; of a mixture also the ratio on the workloads of each part,
    /// `ratio_to_best_heuristic_part_K` from 0.
    ///
    /// # Errors
    /// Where a run fails.
    pub fn judge(&self, env: &EnvConfig, policy: PolicySpec) -> Result<(f64, BTreeMap<String, f64>), Error> {
        let runs = self.runs(env, &policy)?;
        Ok(self.judged(&runs, &self.ratios(&runs)))
    }

    /// A policy's runs, one for each workload.
    ///
    /// # Errors
    /// Where a run fails.
    pub fn runs(&self, env: &EnvConfig, policy: &PolicySpec) -> Result<Vec<PolicyRun>, Error> {
        Runner::new(&env.sim).run(&self.instances, std::slice::from_ref(policy))
    }

    /// Ratios of a policy's runs on the workloads, in their order, to the best heuristic's.
    #[must_use]
    pub fn ratios(&self, runs: &[PolicyRun]) -> Vec<f64> {
        ratios(&self.objective, runs, &self.base)
    }

    /// What a policy's runs on the workloads, in their order, with their [`Validation::ratios`], are worth; see
    /// [`Validation::judge`].
    #[must_use]
    pub fn judged(&self, runs: &[PolicyRun], ratios: &[f64]) -> (f64, BTreeMap<String, f64>) {
        let mut means = BTreeMap::new();
        for (key, value) in runs.iter().flat_map(|run| &run.metrics) {
            *means.entry(key.clone()).or_insert(0.0) += value / runs.len() as f64;
        }
        for part in 0..self.parts.iter().max().map_or(0, |last| last + 1) {
            let of_part = ratios.iter().zip(&self.parts).filter(|(_, own)| **own == part);
            let of_part: Vec<f64> = of_part.map(|(ratio, _)| *ratio).collect();
            means.insert(
                format!("ratio_to_best_heuristic_part_{part}"),
                geometric_mean(&of_part),
            );
        }
        (geometric_mean(ratios), means)
    }
}

/// The upper end of a one-sided 95 % interval of the geometric mean of `own / first`, over the same workloads in the same order:
/// where it is below 1, being better is no luck of the draw of workloads. The interval is normal, of logarithms; with one
/// workload it is the ratio itself.
#[must_use]
pub(crate) fn highest_ratio(own: &[f64], first: &[f64]) -> f64 {
    /// 95 % of a standard normal number lie below.
    const QUANTILE: f64 = 1.645;
    let gains: Vec<f64> = own
        .iter()
        .zip(first)
        .map(|(own, first)| ln(own / first))
        .collect();
    let num = gains.len().max(1) as f64;
    let mean = gains.iter().sum::<f64>() / num;
    let square = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>();
    let deviation = (square / (num - 1.0).max(1.0)).sqrt();
    exp(mean + QUANTILE * deviation / num.sqrt())
}

/// Geometric mean of the ratios of one policy's runs to another's on the same workloads, in the same order.
#[must_use]
pub fn mean_ratio(objective: &Objective, runs: &[PolicyRun], base: &[PolicyRun]) -> f64 {
    geometric_mean(&ratios(objective, runs, base))
}

fn ratios(objective: &Objective, runs: &[PolicyRun], base: &[PolicyRun]) -> Vec<f64> {
    let ratio = |(own, base): (&PolicyRun, &PolicyRun)| {
        objective::ratio(objective, |key| own.metrics[key], |key| base.metrics[key])
    };
    runs.iter().zip(base).map(ratio).collect()
}

fn geometric_mean(values: &[f64]) -> f64 {
    exp(values.iter().map(|value| ln(*value)).sum::<f64>() / values.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heuristics_are_ranked_by_the_objective() {
        let env = crate::evaluate::workload_source::env_of("Pleach/Philly-v0", Some(300), Some(4.0)).unwrap();
        let makespan = Objective::from([("makespan_s".to_string(), 1.0)]);
        let validation = Validation::by(&makespan, &env, 1, 3).unwrap();
        assert_eq!(validation.ranking[0].1, 1.0);
        for (name, ratio) in &validation.ranking {
            let runs = validation
                .runs(&env, &PolicySpec::heuristic(name).unwrap())
                .unwrap();
            let pairs = runs.iter().zip(&validation.base);
            let by_hand =
                pairs.map(|(own, base)| (own.metrics["makespan_s"] / base.metrics["makespan_s"]).ln());
            let by_hand = by_hand.sum::<f64>() / 3.0;
            assert!((ratio.ln() - by_hand).abs() < 1e-6 && *ratio >= 1.0, "{name}");
        }
        let by_jct = Validation::new(&env, 1, 3).unwrap();
        let names = |validation: &Validation| -> Vec<String> {
            validation.ranking.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_ne!(names(&validation), names(&by_jct));
    }

    #[test]
    fn one_lucky_workload_is_not_enough_to_be_better() {
        let first = [1.0; 8];
        // Half a percent worse everywhere but for one workload: 4 % better in the mean, by luck.
        let mut lucky = [1.005; 8];
        lucky[3] = 0.7;
        assert!(geometric_mean(&lucky) < 0.97 && highest_ratio(&lucky, &first) > 1.0);
        // By hand: ln 0.97 and ln 0.99 in turn, mean -0.020255, deviation 0.010903 (n - 1), root of 8 is 2.828427.
        let steady = [0.97, 0.99, 0.97, 0.99, 0.97, 0.99, 0.97, 0.99];
        let by_hand = (-0.020_255_f64 + 1.645 * 0.010_903 / 2.828_427).exp();
        assert!((highest_ratio(&steady, &first) - by_hand).abs() < 1e-5);
        // Against a first network that was bad, being less bad counts.
        assert!(highest_ratio(&[1.5, 1.6], &[3.0, 3.1]) < 1.0);
        assert!((highest_ratio(&[0.9], &[1.0]) - 0.9).abs() < 1e-12);
        assert_eq!(highest_ratio(&first, &first), 1.0);
    }
}
