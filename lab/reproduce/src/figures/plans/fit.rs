//! Levels from rows, and the law beside rows.

use std::collections::BTreeMap;

use pleach_env::workload::plans::{Basis, Stack, StepTime, Training, level_of, step_time, what_of};
use pleach_experiments::evaluate::stats::quantile;
use pleach_scheduler::portable_math::exp;

use super::row::Published;

/// Logarithm by which models with experts run faster with software a year younger, fitted to the calibrate half.
const EXPERTS_A_YEAR: f64 = 0.4;

impl Published {
    /// The software by which it is fitted: models with experts have too few rows to tell one from another.
    fn fitted_as(&self) -> &'static str {
        match self.training.model.experts {
            Some(_) => "any",
            None => self.software,
        }
    }

    /// What the law says of a step at the whole peak of the newest software.
    pub fn step(&self) -> StepTime {
        step_time(&self.training, &self.plan, self.num_gpus, &self.machine)
    }

    /// Seconds of a step that shrink with the level, at the whole peak of the newest software, and those that do not.
    fn parts_s(&self) -> (f64, f64) {
        let step = self.step();
        let older = match self.training.model.experts {
            Some(_) => exp(-EXPERTS_A_YEAR * self.years),
            None => 1.0,
        };
        let computes = step.compute_s + step.bubble_s;
        (computes * older, step.total_s() - computes)
    }

    /// The level at which the law meets the row; the whole peak where traffic alone takes as long.
    fn level(&self) -> f64 {
        let (computes, moves) = self.parts_s();
        let left = self.measured_s - moves;
        if left > computes { computes / left } else { 1.0 }
    }

    /// Relative error of the rate at a level.
    fn error(&self, level: f64) -> f64 {
        let (computes, moves) = self.parts_s();
        (self.measured_s / (computes / level + moves) - 1.0).abs()
    }
}

/// The level of each stack: the median of the levels at which its rows of the calibrate half are met.
pub(super) fn fitted(rows: &[Published]) -> Vec<Stack> {
    let mut levels: BTreeMap<(&str, &str, u32, &str), Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.is_judge) {
        let bits = row.training.precision.bits();
        let what = what_of(&row.training);
        let key = (what, row.gpu.as_str(), bits, row.fitted_as());
        levels.entry(key).or_default().push(row.level());
    }
    let stack = |((what, gpu, bits, software), levels): ((&str, &str, u32, &str), Vec<f64>)| Stack {
        software: software.into(),
        gpu: gpu.into(),
        bits,
        what: what.into(),
        num_rows: levels.len(),
        level: median(levels).unwrap_or_default(),
    };
    levels.into_iter().map(stack).collect()
}

/// Relative error of the rate that the law says of a row, and from what its level comes: the row's own software, else the usual
/// one.
pub(super) fn judged(row: &Published, stacks: &[Stack]) -> (f64, Basis) {
    let own = |stack: &&Stack| {
        stack.software == row.fitted_as()
            && stack.gpu == row.gpu
            && stack.bits == row.training.precision.bits()
            && stack.what == what_of(&row.training)
    };
    let (level, basis) = match stacks.iter().find(own) {
        Some(stack) => (stack.level, Basis::Measured),
        None => level_of(stacks, &row.gpu, &row.training),
    };
    (row.error(level), basis)
}

/// The same where the row's software is not known: its level is the usual one of all other software.
pub(super) fn judged_unseen(row: &Published, stacks: &[Stack]) -> (f64, Basis) {
    let others = stacks.iter().filter(|stack| stack.software != row.software);
    let others: Vec<Stack> = others.cloned().collect();
    let (level, basis) = level_of(&others, &row.gpu, &row.training);
    (row.error(level), basis)
}

/// Errors of rows that judge, by their place, of a law without any structure: FLOP over one part of the peak for each GPU type,
/// bits and what is trained.
pub(super) fn plain(rows: &[Published]) -> Vec<(usize, f64)> {
    let key = |row: &Published| {
        (
            row.gpu.clone(),
            row.training.precision.bits(),
            what_of(&row.training),
        )
    };
    let share = |row: &Published| {
        let training: &Training = &row.training;
        let flop = training.matrix_flop() + row.machine.attention * training.attention_flop();
        let tokens = f64::from(training.batch) * f64::from(training.sequence);
        flop * tokens / (f64::from(row.num_gpus) * row.machine.peak * row.measured_s)
    };
    let mut shares: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.is_judge) {
        shares.entry(key(row)).or_default().push(share(row));
    }
    let judges = rows.iter().enumerate().filter(|(_, row)| row.is_judge);
    let error = |(number, row): (usize, &Published)| {
        let level = median(shares.get(&key(row))?.clone())?;
        Some((number, (level / share(row) - 1.0).abs()))
    };
    judges.filter_map(error).collect()
}

/// The middle of some numbers.
pub(super) fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_unstable_by(f64::total_cmp);
    quantile(&of, 0.5)
}
