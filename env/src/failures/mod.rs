//! How jobs end: pass, killed by their user, or unsuccessful after failed trials, by the size of the gang.
//!
//! The fate of a job is drawn once, from a stream of its own, so that it does not depend on the schedule: with the same
//! seed two policies meet the same failures. A trial that fails holds its GPUs for its runtime to failure; a scheduler
//! sees the failure and its reason only then, and may stop retrying.
//!
//! # The process
//! 1. End: by share of the gang's size, leaning on the run time ([`OutcomeModel`], [`lean`]).
//! 2. An unsuccessful job has a [`reasons::Reason`], chosen by how many jobs of its size failed for it, and a number of failed
//!    trials, geometric with the reason's trials per job (users and the scheduler try again what does not work).
//! 3. A small part of the other jobs fails first and then recovers.
//! 4. Each failed trial lasts a runtime to failure ([`reasons`]).
//! 5. A killed job is killed at a uniform part of its work (assumed).
//!
//! Or by the age of a job instead of all that: [`by_age`].
//!
//! # Source
//! Philly (ATC'19), tables 6 and 7; Helios (SC'21), final states by gang size.

use pleach_scheduler::Problem;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use pleach_workloads::Seed;

pub mod by_age;
#[cfg(test)]
#[path = "./tests/by_age_data.rs"]
mod by_age_data;
mod fate;
pub mod lean;
pub mod reasons;
#[cfg(test)]
mod tests;

use by_age::ByAge;
pub use fate::{End, Fate};
use lean::{Chances, Lean, leaning};
use pleach_scheduler::portable_math::ln;
use reasons::{REASONS, pick_reason, size_of};

/// How jobs of a size end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndShares {
    /// Gangs of up to this many GPUs, above those of the row before; the last row takes all larger ones too.
    pub up_to_gpus: u32,
    /// Part that its user kills, [0, 1].
    pub killed: f64,
    /// Part that ends unsuccessful, [0, 1].
    pub unsuccessful: f64,
}

impl From<EndShares> for Chances {
    fn from(shares: EndShares) -> Chances {
        Chances {
            killed: shares.killed,
            unsuccessful: shares.unsuccessful,
        }
    }
}

/// How jobs end, by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeModel {
    /// Shares by gang size, smallest first; empty where the age decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<EndShares>,
    /// How the ends of a size fall on its longer and shorter jobs; without, whatever their run times.
    #[serde(default, skip_serializing_if = "Lean::is_none")]
    pub lean: Lean,
    /// Part of the jobs with failed trials that pass or are killed in the end, [0, 1).
    pub recovers: f64,
    /// Most failed trials of a job, 1 or more.
    pub max_failed_trials: u32,
    /// How jobs fail by their age and are cancelled by what they used, instead of all that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_age: Option<ByAge>,
}

impl OutcomeModel {
    /// The fates of all jobs of a list, of which gang size and run time (s, above 0) are given.
    pub(crate) fn fates(&self, seed: Seed, jobs: &[(u32, f64)]) -> Vec<Fate> {
        let numbered = jobs.iter().zip(0_u64..);
        if let Some(by_age) = &self.by_age {
            let fate = |((gang, run_time_s), number): (&(u32, f64), u64)| {
                by_age.fate(seed, number, *gang, *run_time_s)
            };
            return numbered.map(fate).collect();
        }
        let drawn = numbered.zip(self.chances(jobs));
        drawn
            .map(|(((gang, _), number), chances)| self.fate(seed, number, *gang, chances))
            .collect()
    }

    /// The chances of all jobs of a list, as in [`OutcomeModel::fates`].
    fn chances(&self, jobs: &[(u32, f64)]) -> Vec<Chances> {
        let mut chances: Vec<Chances> = jobs.iter().map(|(gang, _)| self.shares(*gang).into()).collect();
        if self.lean.is_none() {
            return chances;
        }
        for row in &self.ends {
            let is_of_row = |(_, (gang, _)): &(usize, &(u32, f64))| self.shares(*gang) == *row;
            let own: Vec<(usize, f64)> = jobs
                .iter()
                .enumerate()
                .filter(is_of_row)
                .map(|(place, (_, run_time_s))| (place, ln(*run_time_s)))
                .collect();
            for (place, own) in own
                .iter()
                .zip(leaning([row.killed, row.unsuccessful], self.lean, &own))
            {
                chances[place.0] = own;
            }
        }
        chances
    }
}

impl OutcomeModel {
    /// Nothing ever fails.
    #[must_use]
    pub fn none() -> OutcomeModel {
        OutcomeModel {
            ends: vec![EndShares {
                up_to_gpus: 1,
                killed: 0.0,
                unsuccessful: 0.0,
            }],
            lean: Lean::default(),
            recovers: 0.0,
            max_failed_trials: 1,
            by_age: None,
        }
    }

    /// Failures by age and cancellation by use.
    fn of_age(by_age: ByAge) -> OutcomeModel {
        OutcomeModel {
            ends: Vec::new(),
            by_age: Some(by_age),
            ..OutcomeModel::none()
        }
    }

    /// Philly: 69.3 % passed, 13.5 % killed, 17.2 % unsuccessful, with 44.5, 37.7 and 17.8 % of the GPU time.
    ///
    /// # Source
    /// Table 6 for the totals; the lean is fitted so that on `philly-like` lists, at their own pace, the ends have its
    /// parts of the GPU time. By size: jobs with a failed trial (table 7, split by its trials on 1, 2 to 4 and more
    /// GPUs) over jobs of that size (82.4, 9.6 and 8.0 % of 96,260) are 13.3, 41.2 and 41.5 %. Table 7 counts 17,577
    /// jobs with failed trials and table 6 16,568 unsuccessful ones, so 5.7 % recover (a job with two reasons counts
    /// twice, so at most). Of the jobs that are not unsuccessful 16.3 % are killed, at every size (assumed).
    #[must_use]
    pub fn philly() -> OutcomeModel {
        const NUM_JOBS: f64 = 96_260.0;
        const RECOVERS: f64 = 1.0 - 16_568.0 / 17_577.0;
        const KILLED: f64 = 12_996.0 / (66_696.0 + 12_996.0);
        let sizes = [(1, 0.824), (4, 0.096), (u32::MAX, 0.080)];
        let shares = |(size, (up_to_gpus, part)): (usize, (u32, f64))| {
            let failing: f64 = REASONS.iter().map(|reason| reason.jobs_of_size(size)).sum();
            let unsuccessful = failing / (NUM_JOBS * part) * (1.0 - RECOVERS);
            EndShares {
                up_to_gpus,
                killed: KILLED * (1.0 - unsuccessful),
                unsuccessful,
            }
        };
        OutcomeModel {
            ends: sizes.into_iter().enumerate().map(shares).collect(),
            lean: Lean {
                killed: 0.485,
                unsuccessful: 0.48,
            },
            recovers: RECOVERS,
            max_failed_trials: 100,
            by_age: None,
        }
    }

    /// Helios: large gangs are mostly killed by their users. Reasons and trials as in Philly (assumed).
    ///
    /// # Source
    /// Helios (SC'21), final states by GPU demand.
    #[must_use]
    pub fn helios() -> OutcomeModel {
        let rows = [
            (1, 0.185, 0.147),
            (2, 0.325, 0.270),
            (4, 0.194, 0.230),
            (8, 0.292, 0.157),
            (16, 0.463, 0.109),
            (32, 0.411, 0.150),
            (u32::MAX, 0.685, 0.102),
        ];
        let row = |(up_to_gpus, killed, unsuccessful)| EndShares {
            up_to_gpus,
            killed,
            unsuccessful,
        };
        OutcomeModel {
            ends: rows.map(row).into(),
            lean: Lean::default(),
            ..OutcomeModel::philly()
        }
    }

    /// The model of this name.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<OutcomeModel, Problem> {
        match name {
            "none" => Ok(OutcomeModel::none()),
            "philly" => Ok(OutcomeModel::philly()),
            "helios" => Ok(OutcomeModel::helios()),
            "philly-by-age" => Ok(OutcomeModel::of_age(ByAge::philly())),
            "venus-by-age" => Ok(OutcomeModel::of_age(ByAge::venus())),
            _ => Err(Problem::new(
                "outcomes",
                name,
                "none, philly, helios, philly-by-age, venus-by-age",
                "or write ends, recovers and max_failed_trials, or by_age",
            )),
        }
    }

    /// Checks shares and order.
    ///
    /// # Errors
    /// The first row that is wrong.
    pub fn validate(&self) -> Result<(), Problem> {
        let fail = |key: String, value: String, allowed: &str, hint: &str| {
            Err(Problem::new(format!("outcomes.{key}"), value, allowed, hint))
        };
        if let Some(by_age) = &self.by_age {
            if !self.ends.is_empty() || !self.lean.is_none() || self.recovers != 0.0 {
                let value = format!("{} rows, and by_age", self.ends.len());
                return fail(
                    "ends".into(),
                    value,
                    "one of both, without lean and recovers",
                    "the age decides alone",
                );
            }
            return by_age.validate();
        }
        if self.ends.is_empty() || self.ends.len() > 64 {
            let value = format!("{} rows", self.ends.len());
            return fail("ends".into(), value, "1 to 64 rows", "one row serves all sizes");
        }
        for (index, row) in self.ends.iter().enumerate() {
            if index > 0 && row.up_to_gpus <= self.ends[index - 1].up_to_gpus {
                let key = format!("ends[{index}].up_to_gpus");
                return fail(
                    key,
                    row.up_to_gpus.to_string(),
                    "more than the row before",
                    "sort the rows by size",
                );
            }
            let shares = [row.killed, row.unsuccessful];
            if shares.iter().any(|share| !(0.0..=1.0).contains(share)) || shares.iter().sum::<f64>() > 1.0 {
                let value = format!("killed {}, unsuccessful {}", row.killed, row.unsuccessful);
                return fail(
                    format!("ends[{index}]"),
                    value,
                    "0 to 1, and at most 1 together",
                    "what is left over passes",
                );
            }
        }
        self.lean.validate()?;
        if !(self.recovers >= 0.0 && self.recovers < 1.0) {
            let hint = "0 = whoever fails once is given up in the end";
            return fail(
                "recovers".into(),
                self.recovers.to_string(),
                "0 or more and below 1",
                hint,
            );
        }
        if self.max_failed_trials == 0 {
            return fail(
                "max_failed_trials".into(),
                "0".into(),
                "1 or more",
                "1 = no retry",
            );
        }
        Ok(())
    }

    fn shares(&self, num_gpus: u32) -> EndShares {
        let row = self.ends.iter().find(|row| num_gpus <= row.up_to_gpus);
        *row.unwrap_or(&self.ends[self.ends.len() - 1])
    }

    /// The fate of job number `job` with this many GPUs and chances. The same arguments always give the same fate.
    #[must_use]
    fn fate(&self, seed: Seed, job: u64, num_gpus: u32, chances: Chances) -> Fate {
        let mut rng = seed.stream("fate", job);
        let end_at: f64 = rng.random();
        let killed_at: f64 = rng.random();
        let end = if end_at < chances.unsuccessful {
            End::Unsuccessful
        } else if end_at < chances.unsuccessful + chances.killed {
            End::Killed(killed_at.clamp(1e-9, 1.0 - 1e-9))
        } else {
            End::Passed
        };
        // Jobs that fail at all are unsuccessful / (1 - recovers); of the others this part fails first.
        let fails = chances.unsuccessful / (1.0 - self.recovers);
        let fails_first = (fails - chances.unsuccessful) / (1.0 - chances.unsuccessful).max(1e-12);
        let recovery: f64 = rng.random();
        if end != End::Unsuccessful && recovery >= fails_first {
            return Fate {
                end,
                reason: None,
                num_failed_trials: 0,
            };
        }
        let reason = pick_reason(size_of(num_gpus), rng.random());
        // Geometric from 1 on with mean m: P(more than n) = (1 - 1/m)^n.
        let again = 1.0 - 1.0 / REASONS[usize::from(reason)].trials_per_job();
        let mut num_failed_trials = 1;
        while num_failed_trials < self.max_failed_trials && rng.random::<f64>() < again {
            num_failed_trials += 1;
        }
        Fate {
            end,
            reason: Some(reason),
            num_failed_trials,
        }
    }
}
