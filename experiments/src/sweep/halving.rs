//! Successive halving: all configurations run with little, the better part of them with more, and so on.
//!
//! The manifest has every configuration on every rung, so it never changes; which of them run, [`super::rungs`] says.
//!
//! # Source
//! Jamieson & Talwalkar, AISTATS'16 (successive halving); a rung costs as much as any other where a rung keeps one in `keep` and
//! runs it `keep` times as long.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::metric::MAIN_METRIC;

/// Rungs, at most.
pub(super) const RUNGS_MAX: usize = 16;

/// `[halving]` of a grid file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HalvingFile {
    /// The setting that says how much a unit may use, by its dotted key: `train.num_updates`, `env_steps`, `generations`.
    pub setting: String,
    /// One configuration in so many goes on, 2 to 100.
    #[serde(default = "three")]
    pub keep: u64,
    /// Values of the setting, a rung each, rising.
    #[serde(default)]
    pub values: Vec<u64>,
    /// Rungs, where a budget says what they are worth, 2 to 16.
    #[serde(default)]
    pub rungs: usize,
    /// What all units may use together, in the setting's unit.
    #[serde(default)]
    pub budget: u64,
    /// What configurations are ranked by: a number of the results; less is better unless tables say otherwise.
    #[serde(default = "main_metric")]
    pub metric: String,
}

fn three() -> u64 {
    3
}

fn main_metric() -> String {
    MAIN_METRIC.to_string()
}

/// The same in a manifest, with the value of each rung.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halving {
    /// The setting that says how much a unit may use.
    pub setting: String,
    /// One configuration in so many goes on.
    pub keep: u64,
    /// The setting's value on each rung.
    pub values: Vec<u64>,
    /// What configurations are ranked by.
    pub metric: String,
}

impl HalvingFile {
    /// The rungs for so many configurations with so many seeds each.
    ///
    /// # Errors
    /// [`Error::Problem`] where there would be none, or a budget that is too small for them.
    pub(super) fn plan(&self, num_configurations: usize, num_seeds: usize) -> Result<Halving, Error> {
        let refuse = |key: &str, value: String, allowed: String, hint: &str| {
            Err(Error::config(format!("halving.{key}"), value, allowed, hint))
        };
        if !(2..=100).contains(&self.keep) {
            let hint = "Three is usual: one in three goes on.";
            return refuse("keep", self.keep.to_string(), "2 to 100".into(), hint);
        }
        let values = match (self.values.as_slice(), self.rungs, self.budget) {
            ([], 2..=RUNGS_MAX, 1..) => self.values_of_budget(num_configurations, num_seeds)?,
            ([], ..) => {
                let hint = "Or give the value of each rung: values = [10, 30, 90].";
                let allowed = format!("rungs = 2 to {RUNGS_MAX}, and a budget in the setting's unit");
                let given = format!("{} rungs, a budget of {}", self.rungs, self.budget);
                return refuse("budget", given, allowed, hint);
            }
            (values, 0, 0) => values.to_vec(),
            _ => {
                let hint = "Values say what each rung uses, a budget divides what there is.";
                return refuse(
                    "values",
                    "given".into(),
                    "either values, or rungs and budget".into(),
                    hint,
                );
            }
        };
        let is_rising = values.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_rising || values[0] == 0 || !(2..=RUNGS_MAX).contains(&values.len()) {
            let allowed = format!("2 to {RUNGS_MAX} rising numbers above 0");
            return refuse("values", format!("{values:?}"), allowed, "Write [10, 30, 90].");
        }
        Ok(Halving {
            setting: self.setting.clone(),
            keep: self.keep,
            values,
            metric: self.metric.clone(),
        })
    }

    /// The first rung uses as much as the budget allows where each rung has `keep` times the value of the one before.
    fn values_of_budget(&self, num_configurations: usize, num_seeds: usize) -> Result<Vec<u64>, Error> {
        let (mut left, mut factor, mut share) = (num_configurations as u64, 1_u64, 0_u64);
        for _ in 0..self.rungs {
            share = share.saturating_add(left.saturating_mul(factor));
            left = left.div_ceil(self.keep);
            factor = factor.saturating_mul(self.keep);
        }
        let share = share.saturating_mul(num_seeds as u64);
        let first = self.budget / share.max(1);
        Error::refuse_if(
            first == 0,
            "halving.budget",
            self.budget,
            format_args!("at least {share}, for one on the first rung"),
            "Take fewer draws, seeds or rungs, or give more.",
        )?;
        let rungs = (0..self.rungs).scan(first, |value, _| {
            let now = *value;
            *value = value.saturating_mul(self.keep);
            Some(now)
        });
        Ok(rungs.collect())
    }
}
