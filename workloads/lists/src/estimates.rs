//! What the scheduler knows of run times: the truth, the user's own limit, or a prediction.
//!
//! One estimate per job, fixed when the job arrives, so a policy cannot learn the truth by asking twice.

use pleach_scheduler::history::believed_s;
use pleach_scheduler::portable_math::exp;
use pleach_scheduler::{Estimate, Provenance};
use serde::{Deserialize, Serialize};

use super::{JobSpec, Workload, config, history, is_span};
use crate::Error;
use crate::normal::standard_normal;
use crate::seed::Seed;

/// Where the scheduler's run-time estimates come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EstimateModel {
    /// The true run time; an upper bound for what knowledge can bring.
    #[default]
    Oracle,
    /// The job's own `estimate_s` (the time limit), or a default where it has none.
    UserLimit {
        /// Limit of a job without one, s.
        default_s: f64,
    },
    /// The true run time times `bias x exp(sigma x z)`, `z` standard normal: a predictor with a multiplicative error.
    LogNormal {
        /// Standard deviation of the error's natural logarithm, 0 to 10.
        sigma: f64,
        /// Median of the error, above 0; 1 = right in the median.
        bias: f64,
    },
    /// Learned from the jobs that have ended so far: the run time up to which a quarter of the GPU time of the last few went that are
    /// most like the job, and no less than a hundredth of its own `estimate_s` (the time limit), where it has one.
    History {
        /// Jobs that count, 1 to 10,000.
        num_last: usize,
        /// Estimate until anything has ended, s.
        default_s: f64,
    },
}

impl EstimateModel {
    /// Guesses from the last ten ended jobs that are most like the job; an hour until anything has ended. *Assumed.*
    pub const HISTORY: EstimateModel = EstimateModel::History {
        num_last: 10,
        default_s: 3600.0,
    };

    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        match *self {
            EstimateModel::UserLimit { default_s } if !is_span(default_s) => {
                let hint = "86400 is one day";
                Err(config("estimate.default_s", default_s, "1e-6 to 1e9 s", hint))
            }
            EstimateModel::LogNormal { sigma, .. } if !(0.0..=10.0).contains(&sigma) => {
                let hint = "0.5 means off by a factor of 1.65 in a typical case";
                Err(config("estimate.sigma", sigma, "0 to 10", hint))
            }
            EstimateModel::LogNormal { bias, .. } if !(1e-6..=1e6).contains(&bias) => Err(config(
                "estimate.bias",
                bias,
                "1e-6 to 1e6",
                "1 is right in the median",
            )),
            EstimateModel::History { default_s, .. } if !is_span(default_s) => {
                let hint = "3600 is an hour";
                Err(config("estimate.default_s", default_s, "1e-6 to 1e9 s", hint))
            }
            EstimateModel::History { num_last, .. } if !(1..=10_000).contains(&num_last) => Err(config(
                "estimate.num_last",
                num_last,
                "1 to 10,000 jobs",
                "10 forgets an old habit of a user after ten jobs",
            )),
            _ => Ok(()),
        }
    }

    /// The estimate for the job at `position`; the same (seed, position) gives the same error. `learned` is what the
    /// predictor says of it.
    fn estimate(&self, job: &JobSpec, position: usize, learned: Option<f64>, seed: Seed) -> Estimate {
        let (value, provenance) = match *self {
            EstimateModel::Oracle => (job.run_time_s, Provenance::Oracle),
            EstimateModel::UserLimit { default_s } => {
                (job.estimate_s.unwrap_or(default_s), Provenance::UserLimit)
            }
            EstimateModel::LogNormal { sigma, bias } => {
                let z = standard_normal(&mut seed.stream("estimate", position as u64));
                (job.run_time_s * bias * exp(sigma * z), Provenance::Predicted)
            }
            EstimateModel::History { default_s, .. } => {
                let learned_s = learned.unwrap_or(default_s);
                let believed_s = |limit_s| believed_s(learned_s, limit_s);
                let value = job.estimate_s.map_or(learned_s, believed_s);
                (value, Provenance::Predicted)
            }
        };
        // The scheduler takes estimates in (0, 1e10] s; the clamp also holds for extreme draws.
        let value = value.clamp(1e-6, 1e10);
        Estimate { value, provenance }
    }

    /// One estimate per job. `[num_jobs]`
    #[must_use]
    pub fn estimates(&self, workload: &Workload, seed: Seed) -> Vec<Estimate> {
        let learned = match *self {
            EstimateModel::History { num_last, default_s } => {
                history::predictions(&workload.jobs, num_last, default_s)
            }
            _ => Vec::new(),
        };
        let jobs = workload.jobs.iter().enumerate();
        jobs.map(|(position, job)| self.estimate(job, position, learned.get(position).copied(), seed))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{job, workload};

    #[test]
    fn each_model_tells_what_it_promises() {
        let mut job = job("a", 0.0, 1, 100.0);
        let told = |model: EstimateModel, job: &JobSpec| model.estimate(job, 0, None, Seed(1));
        assert_eq!(told(EstimateModel::Oracle, &job).value, 100.0);
        let limit = EstimateModel::UserLimit { default_s: 7.0 };
        assert_eq!(told(limit, &job).value, 7.0);
        job.estimate_s = Some(360.0);
        assert_eq!(told(limit, &job).value, 360.0);
        assert_eq!(told(limit, &job).provenance, Provenance::UserLimit);
        // The limit of 360 s bounds what ended jobs let expect from below.
        let history = |learned| EstimateModel::HISTORY.estimate(&job, 0, Some(learned), Seed(1));
        assert_eq!((history(0.2).value, history(40.0).value), (3.6, 40.0));
        assert_eq!(history(0.2).provenance, Provenance::Predicted);
        let exact = EstimateModel::LogNormal {
            sigma: 0.0,
            bias: 2.0,
        };
        assert!((told(exact, &job).value - 200.0).abs() < 1e-9);
    }

    #[test]
    fn noise_repeats_per_seed_and_position_and_has_the_stated_spread() {
        let jobs = (0..4000)
            .map(|i| job(&i.to_string(), i.into(), 1, 100.0))
            .collect();
        let workload = workload(jobs);
        let model = EstimateModel::LogNormal {
            sigma: 0.7,
            bias: 1.5,
        };
        let first = model.estimates(&workload, Seed(3));
        assert_eq!(first, model.estimates(&workload, Seed(3)));
        assert_ne!(first, model.estimates(&workload, Seed(4)));
        let logs: Vec<f64> = first.iter().map(|e| (e.value / 100.0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 4000.0;
        let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!((mean - 1.5_f64.ln()).abs() < 0.05, "{mean}");
        assert!((variance.sqrt() - 0.7).abs() < 0.04, "{variance}");
    }

    #[test]
    fn estimates_are_always_positive_even_for_extreme_parameters() {
        let model = EstimateModel::LogNormal {
            sigma: 10.0,
            bias: 1e-6,
        };
        model.validate().unwrap();
        let tiny = job("a", 0.0, 1, 1e-6);
        for position in 0..1000 {
            let value = model.estimate(&tiny, position, None, Seed(0)).value;
            assert!(value > 0.0 && value <= 1e10);
        }
        assert!(EstimateModel::UserLimit { default_s: 0.0 }.validate().is_err());
        let nan = EstimateModel::LogNormal {
            sigma: f64::NAN,
            bias: 1.0,
        };
        assert!(nan.validate().unwrap_err().to_string().contains("estimate.sigma"));
    }
}
