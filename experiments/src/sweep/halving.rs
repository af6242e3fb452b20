//! Successive halving: all configurations run with little, the better part of them with more, and so on.
//!
//! The manifest has every configuration on every rung, so it never changes. Which units of a rung are to run follows from the
//! results of the rung before, and from nothing else: the same wherever and in whatever order they ran. A rung is decided once all
//! its units have ended; a unit that failed for good puts its configuration behind all others.
//!
//! # Source
//! Jamieson & Talwalkar, AISTATS'16 (successive halving); a rung costs as much as any other where a rung keeps one in `keep` and
//! runs it `keep` times as long.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::collect::GatheredUnit;
use super::leaderboard::{mean_log, own_figures, sign};
use super::manifest::Manifest;
use super::unit::{FailureKind, ResultState, read_failure, read_result, unit_folder};
use crate::error::Error;
use crate::evaluate::metric::MAIN_METRIC;
use crate::evaluate::stats::mean;

/// Rungs, at most.
const RUNGS_MAX: usize = 16;

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

impl Halving {
    /// Whether the units of a manifest are those of these rungs: all configurations on each, in one order.
    ///
    /// # Errors
    /// In words, what is not so.
    pub(super) fn check(&self, manifest: &Manifest) -> Result<(), String> {
        let num = self.values.len();
        if !(2..=RUNGS_MAX).contains(&num) || !(2..=100).contains(&self.keep) {
            return Err(format!("{num} rungs of which one in {} goes on", self.keep));
        }
        if manifest.num_units() % num != 0 || manifest.units_per_rung() % manifest.num_replicates() != 0 {
            return Err(format!("{} units on {num} rungs", manifest.num_units()));
        }
        for unit in manifest.units() {
            let rung = unit.index / manifest.units_per_rung();
            if unit.params.get(&self.setting) != Some(&self.values[rung].into()) {
                return Err(format!(
                    "unit {} has another {} than its rung",
                    unit.index, self.setting
                ));
            }
        }
        Ok(())
    }
}

impl HalvingFile {
    /// The rungs for so many configurations with so many seeds each.
    ///
    /// # Errors
    /// [`Error::Config`] where there would be none, or a budget that is too small for them.
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
        if first == 0 {
            let allowed = format!("at least {share}, for one on the first rung");
            let hint = "Take fewer draws, seeds or rungs, or give more.";
            return Err(Error::config("halving.budget", self.budget, allowed, hint));
        }
        let rungs = (0..self.rungs).scan(first, |value, _| {
            let now = *value;
            *value = value.saturating_mul(self.keep);
            Some(now)
        });
        Ok(rungs.collect())
    }
}

/// What becomes of a unit of a sweep with rungs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It runs, or has run.
    Runs,
    /// Its configuration did not come so far: it is not to run.
    Pruned,
    /// The rung before is not decided yet.
    Waits,
}

/// The place of each unit, by index; all run in a sweep without rungs.
#[must_use]
pub fn places(manifest: &Manifest, out: &Path) -> Vec<Place> {
    let mut places = vec![Place::Runs; manifest.num_units()];
    let Some(halving) = manifest.halving() else {
        return places;
    };
    let (per_rung, num_seeds) = (manifest.units_per_rung(), manifest.num_replicates());
    let num_configurations = per_rung / num_seeds;
    let mut going: Vec<usize> = (0..num_configurations).collect();
    for rung in 0..halving.values.len() {
        let units = rung * per_rung..(rung + 1) * per_rung;
        places[units].fill(Place::Pruned);
        let units_of = |configuration: usize| {
            let first = rung * per_rung + configuration * num_seeds;
            first..first + num_seeds
        };
        for configuration in &going {
            places[units_of(*configuration)].fill(Place::Runs);
        }
        if rung + 1 == halving.values.len() {
            break;
        }
        let mut ranked = Vec::new();
        for configuration in &going {
            match score(manifest, out, &halving.metric, units_of(*configuration)) {
                Some(score) => ranked.push((score, *configuration)),
                None => {
                    places[(rung + 1) * per_rung..].fill(Place::Waits);
                    return places;
                }
            }
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ranked.truncate(going.len().div_ceil(halving.keep as usize));
        going = ranked
            .into_iter()
            .map(|(_, configuration)| configuration)
            .collect();
    }
    places
}

/// What a configuration is ranked by, less being better: the mean of its units; infinite where one of them failed for good or has
/// no such number. None while one has not ended.
fn score(manifest: &Manifest, out: &Path, metric: &str, units: std::ops::Range<usize>) -> Option<f64> {
    let num = units.len();
    let mut sum = 0.0;
    for unit in &manifest.units()[units] {
        let folder = unit_folder(out, unit.index);
        match read_result(&folder, unit.index, &unit.hash) {
            ResultState::Done(result) => {
                let (value, scalars) = (result.value, Default::default());
                let gathered = GatheredUnit { unit, value, scalars };
                let config = manifest.unit(unit.index).ok()?.config;
                sum += figure(&gathered, &config, metric);
            }
            _ => match read_failure(&folder, unit)?.kind {
                FailureKind::Temporary => return None,
                FailureKind::Config | FailureKind::Failed => sum += f64::INFINITY,
            },
        }
    }
    Some(sum / num as f64)
}

/// One number of a unit: the mean logarithm over its lists, so that each list counts alike; the mean where a figure has none.
fn figure(unit: &GatheredUnit<'_>, config: &serde_json::Value, metric: &str) -> f64 {
    let own = own_figures(unit, config, metric);
    let values: Vec<f64> = own.iter().map(|(_, figure)| *figure).collect();
    let found = mean_log(&own).or_else(|| (!values.is_empty()).then(|| mean(&values)));
    found
        .filter(|value| value.is_finite())
        .map_or(f64::INFINITY, |value| sign(metric) * value)
}
