//! Failures whose hazard falls with the age of a job, drawn beside its own length, and cancellation by what a job used.
//!
//! ```text
//! h(t) = per_hour x (t / 60 s)^-beta + floor        from 1 s on; a job fails where that comes before its own end
//! ```
//!
//! Most of what is wrong with a program shows in its first minutes, so many jobs fail and little time is lost by them; but the
//! hazard never ends, so the few long jobs that fail lose most of it. A failure here is final: another attempt comes as another
//! job. A job that does not fail may be cancelled when it has done its work; the chance depends on its GPU-hours.
//!
//! # Source
//! Fitted by maximum likelihood, ends that are no failures taken as censored, to Philly's released list (96,624 jobs of one to over
//! eight GPUs) and to Helios' Venus (63,871 jobs); chances of being cancelled are counted in both among jobs that do not fail.
//! *Assumed*: that nothing fails in its first second.

use pleach_scheduler::portable_math::{ln, pow};
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{Problem, settings};
use pleach_workloads::Seed;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use super::fate::{End, Fate};

/// Age from which on jobs fail, s.
const FROM_S: f64 = 1.0;
/// Age by which the hazard is named, s.
const AT_S: f64 = 60.0;
const HOUR_S: f64 = 3600.0;
/// Rounds of halving an interval of ages: to the last place.
const HALVINGS: usize = 128;

/// Failures by age and cancellation by use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ByAge {
    /// Hazards by gang size, smallest first. 1 to 64 rows.
    pub hazards: Vec<Hazard>,
    /// Chances of being cancelled by GPU-hours, smallest first; empty: no job is. At most 64 rows.
    pub cancelled: Vec<Cancelled>,
}

settings! {
    /// How a hazard falls.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Hazard: required {
        /// Gangs of up to this many GPUs, above those of the row before; the last row takes all larger ones too.
        pub up_to_gpus: u32;
        /// Failures an hour at an age of 60 s, [0, 1000].
        pub per_hour: f64, in 0.0..=1000.0;
        /// Power of the age by which it falls, [0, 2].
        pub beta: f64, in 0.0..=2.0;
        /// Failures an hour at any age beside that, [0, 10].
        pub floor_per_hour: f64, in 0.0..=10.0;
    }
}

settings! {
    /// The part of the jobs of a size that is cancelled.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Cancelled: required {
        /// Jobs of up to so many GPU-hours, above those of the row before; the last row takes all larger ones too.
        pub up_to_gpu_hours: f64;
        /// Part of those that do not fail, [0, 1].
        pub part: f64, in 0.0..=1.0;
    }
}

impl Hazard {
    /// Failures to be expected up to an age, s.
    fn cumulative(&self, age_s: f64) -> f64 {
        if age_s <= FROM_S {
            return 0.0;
        }
        let falling = if self.beta == 1.0 {
            ln(age_s / FROM_S)
        } else {
            let power = 1.0 - self.beta;
            (pow(age_s / AT_S, power) - pow(FROM_S / AT_S, power)) / power
        };
        (self.per_hour * AT_S * falling + self.floor_per_hour * (age_s - FROM_S)) / HOUR_S
    }

    /// The age at which so many failures were to be expected, s; none where that is beyond a job's length.
    fn age_s(&self, failures: f64, length_s: f64) -> Option<f64> {
        if self.cumulative(length_s) <= failures {
            return None;
        }
        let (mut young, mut old) = (0.0, length_s);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (young + old);
            if self.cumulative(middle) <= failures {
                young = middle;
            } else {
                old = middle;
            }
        }
        Some(old)
    }
}

impl ByAge {
    /// Philly.
    #[must_use]
    pub fn philly() -> ByAge {
        ByAge::of(
            [(0.27, 0.61), (1.2, 0.68), (1.2, 0.73), (1.7, 0.75)],
            0.001,
            [0.031, 0.056, 0.097, 0.224, 0.294, 0.46],
        )
    }

    /// Helios' Venus.
    #[must_use]
    pub fn venus() -> ByAge {
        ByAge::of(
            [(2.3, 0.90), (2.3, 0.95), (1.9, 0.91), (1.3, 1.07)],
            0.0,
            [0.344, 0.302, 0.392, 0.392, 0.413, 0.41],
        )
    }

    /// Hazards of 1, 2 to 7, 8 and more GPUs; chances of up to 0.1, 1, 10, 100, 1,000 and more GPU-hours.
    fn of(hazards: [(f64, f64); 4], floor_per_hour: f64, cancelled: [f64; 6]) -> ByAge {
        let hazard = |(up_to_gpus, (per_hour, beta))| Hazard {
            up_to_gpus,
            per_hour,
            beta,
            floor_per_hour,
        };
        let chance = |(up_to_gpu_hours, part)| Cancelled {
            up_to_gpu_hours,
            part,
        };
        let edges = [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0];
        ByAge {
            hazards: [1, 7, 8, u32::MAX].into_iter().zip(hazards).map(hazard).collect(),
            cancelled: edges.into_iter().zip(cancelled).map(chance).collect(),
        }
    }

    /// Checks ranges and order.
    ///
    /// # Errors
    /// The first row that is wrong.
    pub(super) fn validate(&self) -> Result<(), Problem> {
        let rows = format!("{} and {} rows", self.hazards.len(), self.cancelled.len());
        if self.hazards.is_empty() || self.hazards.len() > 64 || self.cancelled.len() > 64 {
            let allowed = "1 to 64 rows of hazards and at most 64 of cancelled";
            let (key, hint) = ("outcomes.by_age.hazards", "one row of hazards serves all sizes");
            return Err(Problem::new(key, rows, allowed, hint));
        }
        let hint = "sort the rows";
        for (index, row) in self.hazards.iter().enumerate() {
            let key = format!("outcomes.by_age.hazards[{index}]");
            row.check_at(&key, "")?;
            let is_sorted = index == 0 || row.up_to_gpus > self.hazards[index - 1].up_to_gpus;
            Problem::refuse_if(
                !is_sorted,
                key + ".up_to_gpus",
                row.up_to_gpus,
                "more than the row before",
                hint,
            )?;
        }
        let mut before = 0.0;
        for (index, row) in self.cancelled.iter().enumerate() {
            let key = format!("outcomes.by_age.cancelled[{index}]");
            row.check_at(&key, "")?;
            let (hours, allowed) = (row.up_to_gpu_hours, "more than the row before");
            Problem::refuse_if(hours <= before, key + ".up_to_gpu_hours", hours, allowed, hint)?;
            before = hours;
        }
        Ok(())
    }

    /// The fate of job number `job` on so many GPUs, of this length (s, above 0).
    pub(super) fn fate(&self, seed: Seed, job: u64, num_gpus: u32, length_s: f64) -> Fate {
        let mut rng = seed.stream("fate", job);
        // 1 - u lies in (0, 1], so the logarithm is finite.
        let failures = -ln(1.0 - rng.random::<f64>());
        let cancelled_at: f64 = rng.random();
        let hazard = self.hazards.iter().find(|row| num_gpus <= row.up_to_gpus);
        let hazard = hazard.unwrap_or(&self.hazards[self.hazards.len() - 1]);
        let end = match hazard.age_s(failures, length_s) {
            Some(age_s) => End::Failed((age_s / length_s).clamp(1e-9, 1.0)),
            None if cancelled_at < self.chance_of(f64::from(num_gpus) * length_s / HOUR_S) => {
                End::Killed(1.0)
            }
            None => End::Passed,
        };
        Fate {
            end,
            reason: None,
            num_failed_trials: 0,
        }
    }

    fn chance_of(&self, gpu_hours: f64) -> f64 {
        let row = self.cancelled.iter().find(|row| gpu_hours <= row.up_to_gpu_hours);
        row.or(self.cancelled.last()).map_or(0.0, |row| row.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_come_at_the_age_at_which_they_were_to_be_expected() {
        for beta in [0.0, 0.61, 1.0, 1.07] {
            let hazard = Hazard {
                up_to_gpus: 1,
                per_hour: 2.0,
                beta,
                floor_per_hour: 0.01,
            };
            // A sum of small steps is the slow way to the same number.
            let steps = 200_000;
            let step_s = (5000.0 - FROM_S) / f64::from(steps);
            let sum: f64 = (0..steps)
                .map(|step| {
                    let age_s = FROM_S + (f64::from(step) + 0.5) * step_s;
                    (2.0 * pow(age_s / AT_S, -beta) + 0.01) * step_s / HOUR_S
                })
                .sum();
            let law = hazard.cumulative(5000.0);
            assert!((law / sum - 1.0).abs() < 1e-4, "{beta}: {law} {sum}");
            let age_s = hazard.age_s(law, 1e6).unwrap();
            assert!((age_s - 5000.0).abs() < 1e-6, "{beta}: {age_s}");
            assert_eq!(hazard.age_s(law, 4999.0), None);
        }
    }

    #[test]
    fn rows_that_are_wrong_are_named() {
        let mut model = ByAge::philly();
        model.validate().unwrap();
        model.cancelled[2].part = 1.5;
        assert!(model.validate().unwrap_err().to_string().contains("cancelled[2]"));
        model = ByAge::venus();
        model.hazards[1].up_to_gpus = 1;
        assert!(model.validate().unwrap_err().to_string().contains("hazards[1]"));
        model.hazards.clear();
        assert!(model.validate().unwrap_err().to_string().contains("1 to 64 rows"));
    }
}
