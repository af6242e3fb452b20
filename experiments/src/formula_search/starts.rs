//! Where a search for a formula begins: rules that a person would write, and a teacher's scores by least squares.

use pleach_env::{EnvConfig, Seed, SimConfig, Source, simulate_planner};
use pleach_scheduler::formula::{Expression, Operation, ScoreFormula, parse};
use pleach_scheduler::policy::Needs;
use pleach_scheduler::{ActionKind, FeatureSchema, FormulaPolicy, PolicyPlanner, Watched};

use super::variation::{rounded, terminals};
use crate::door::PolicySpec;
use crate::error::Error;

/// Episodes under the teacher whose scores are fitted, and rows of each at most. *Assumed*.
const EPISODES: u64 = 3;
const ROWS_MAX: usize = 20_000;
/// What keeps columns that hardly vary from weighing much, over the sum of squares. *Assumed*.
const RIDGE: f64 = 1e-4;

/// Rules, as expressions: the shortest and the smallest job, those that wait for a fast type or a tight place, those that share.
///
/// # Source
/// The rivals of `scheduler/policies/src/rivals`, ours.
const RULES: [(&str, Option<ActionKind>, &str); 8] = [
    ("shortest", None, "40 - log1p(duration_s)"),
    ("smallest", None, "40 - log1p(duration_s) - log1p(num_gpus)"),
    (
        "shortest, tight",
        None,
        "if locality > 0.96 or log1p(remaining_s) < 8.19 or wait_ratio > 1.5 then 40 - log1p(duration_s) else -1",
    ),
    (
        "waits for its type",
        Some(ActionKind::WaitForType),
        "if end_gain > 0.1 then -1 else if locality > 0.96 or log1p(remaining_s) < 8.19 or wait_ratio > 1.5 \
         then 30 - log1p(duration_s) else -1",
    ),
    (
        "fast, or soon over",
        Some(ActionKind::WaitForType),
        "if speed_ratio > 0.8 then 100 + 0.5 * log1p(num_gpus) - log1p(duration_s) else if log1p(duration_s) < 11.3 and end_gain < 0.4 \
         then 50 + 0.5 * log1p(num_gpus) - log1p(duration_s) else -1",
    ),
    (
        "fast, or soon over under a queue",
        Some(ActionKind::WaitForType),
        "if speed_ratio > 0.85 then 100 + 0.4 * log1p(num_gpus) - log1p(duration_s) else if log1p(duration_s) < 11.8 and end_gain < 0.39 \
         or pending_gpus_ratio > 1 and log1p(duration_s) < 11 then 50 + 0.4 * log1p(num_gpus) - log1p(duration_s) else -1",
    ),
    (
        "beside where both gain",
        Some(ActionKind::Share),
        "if is_beside then if speed_ratio + partner_rate_ratio > 1.35 then 20 - log1p(duration_s) else -1 else if locality > 0.96 \
         or log1p(remaining_s) < 8.19 or wait_ratio > 1.5 then 40 - (log1p(duration_s) + 0.5 * log1p(num_gpus)) else -1",
    ),
    (
        "efficient sizes",
        Some(ActionKind::Sizes),
        "if gpu_efficiency > 0.7 or pending_gpus_ratio < 0.5 then 40 - log1p(duration_s) else -1",
    ),
];

/// The formulas of the rules that an environment offers something to.
pub(super) fn hand_rules(env: &EnvConfig) -> Result<Vec<(String, ScoreFormula)>, Error> {
    let own = env.candidates.needs();
    let needs = Needs {
        actions: own
            .actions
            .without(ActionKind::Preempt)
            .without(ActionKind::Reserve),
        ..ScoreFormula::needs_by_default()
    };
    let offered = RULES
        .iter()
        .filter(|(_, asks, _)| asks.is_none_or(|action| own.actions.contains(action)));
    let formula = |(name, _, text): &(&str, Option<ActionKind>, &str)| {
        let expression = parse(FeatureSchema::current(), text)?;
        Ok((
            format!("hand: {name}"),
            ScoreFormula::new("formula", expression, needs)?,
        ))
    };
    offered.map(formula).collect()
}

/// A row's columns and what it scores above hold.
type Sample = (Vec<f64>, f64);

/// The formula that is nearest to a teacher's scores over hold, as a sum of columns of at most so many symbols; none where it scores by
/// no columns.
pub(super) fn least_squares(
    env: &EnvConfig,
    teacher: &PolicySpec,
    (seed, symbols_max): (u64, usize),
) -> Result<Option<ScoreFormula>, Error> {
    if teacher.is_planner() || teacher.heuristic_name().is_some() {
        return Ok(None);
    }
    let columns = terminals(env.view()?);
    let samples = samples(env, teacher, &columns, seed)?;
    let needs = teacher.policy()?.needs();
    // A term has a weight, a product, a sum, and one or two symbols for its column.
    let size = |kept: &[usize]| {
        1 + kept
            .iter()
            .map(|at| 3 + columns[*at].num_symbols())
            .sum::<usize>()
    };
    let mut kept: Vec<usize> = (0..columns.len())
        .filter(|at| spread(&samples, *at) > 1e-6)
        .collect();
    let mut weights = fitted(&samples, &kept);
    while size(&kept) > symbols_max && kept.len() > 1 {
        let worth = |at: usize| (weights[at + 1] * spread(&samples, kept[at])).abs();
        let least = (0..kept.len()).min_by(|a, b| worth(*a).total_cmp(&worth(*b)));
        kept.remove(least.unwrap_or_default());
        weights = fitted(&samples, &kept);
    }
    if kept.is_empty() || weights.iter().any(|weight| !weight.is_finite()) {
        return Ok(None);
    }
    let mut sum = Expression::Number(rounded(weights[0]));
    for (at, weight) in kept.iter().zip(&weights[1..]) {
        let operation = if *weight < 0.0 {
            Operation::Subtract
        } else {
            Operation::Add
        };
        let term = Expression::two(
            Operation::Multiply,
            Expression::Number(rounded(weight.abs())),
            columns[*at].clone(),
        );
        sum = Expression::two(operation, sum, term);
    }
    Ok(Some(ScoreFormula::new("formula", sum, needs)?))
}

/// Rows as the teacher scores them while it schedules; masked ones and those of a decision without a choice are left out.
fn samples(
    env: &EnvConfig,
    teacher: &PolicySpec,
    columns: &[Expression],
    seed: u64,
) -> Result<Vec<Sample>, Error> {
    let readers = columns.iter().map(|column| {
        let formula = ScoreFormula::new("column", column.clone(), ScoreFormula::needs_by_default())?;
        Ok(FormulaPolicy::new(formula))
    });
    let readers = readers.collect::<Result<Vec<_>, Error>>()?;
    let source = Source::open(env)?;
    let mut samples: Vec<Sample> = Vec::new();
    for episode in 0..EPISODES {
        let draw = Seed(seed).child("formula/teacher", episode);
        let room = (episode as usize + 1) * ROWS_MAX;
        let watched = Watched::new(teacher.policy()?, |_, point, scores| {
            let seen = point.observation;
            for row in 1..scores.len() {
                let is_scored = seen.mask[row] && seen.mask[0] && (scores[row] - scores[0]).abs() < 1e4;
                if is_scored && samples.len() < room && !seen.candidates.is_empty() {
                    let values = readers
                        .iter()
                        .map(|reader| f64::from(reader.score_of(seen.row(row), seen.global)));
                    samples.push((values.collect(), f64::from(scores[row] - scores[0])));
                }
            }
            Ok(())
        });
        let sim = SimConfig {
            seed: draw.0,
            ..env.sim.clone()
        };
        simulate_planner(
            &source.workload(env, draw)?,
            &sim,
            &mut PolicyPlanner::new(watched),
        )?;
    }
    Ok(samples)
}

/// Standard deviation of a column.
fn spread(samples: &[Sample], column: usize) -> f64 {
    let num = samples.len().max(1) as f64;
    let mean = samples.iter().map(|(row, _)| row[column]).sum::<f64>() / num;
    let squares = samples
        .iter()
        .map(|(row, _)| (row[column] - mean) * (row[column] - mean));
    (squares.sum::<f64>() / num).sqrt()
}

/// The constant and the weight of each column with the least squares of errors, by elimination with pivots.
fn fitted(samples: &[Sample], columns: &[usize]) -> Vec<f64> {
    let size = columns.len() + 1;
    let mut rows = vec![vec![0.0; size + 1]; size];
    for (row, score) in samples {
        let value = |at: usize| if at == 0 { 1.0 } else { row[columns[at - 1]] };
        for (a, own) in rows.iter_mut().enumerate() {
            (0..size).for_each(|b| own[b] += value(a) * value(b));
            own[size] += value(a) * score;
        }
    }
    for (at, row) in rows.iter_mut().enumerate() {
        row[at] += RIDGE * row[at] + 1e-9;
    }
    for at in 0..size {
        let pivot = (at..size).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()));
        rows.swap(at, pivot.unwrap_or(at));
        let own = rows[at].clone();
        for (other, row) in rows.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let share = row[at] / own[at];
            debug_assert_ne!(other, at);
            row.iter_mut()
                .zip(&own)
                .for_each(|(value, own)| *value -= share * own);
        }
    }
    (0..size).map(|at| rows[at][size] / rows[at][at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_squares_find_the_weights_that_made_the_scores() {
        let row = |at: usize| vec![(at % 7) as f64, (at % 11) as f64, 3.0];
        let samples: Vec<Sample> = (0..500)
            .map(|at| (row(at), 2.0 - 1.5 * row(at)[0] + 0.25 * row(at)[1]))
            .collect();
        assert!(spread(&samples, 2) < 1e-9 && spread(&samples, 0) > 1.9);
        let weights = fitted(&samples, &[0, 1]);
        for (found, meant) in weights.iter().zip([2.0, -1.5, 0.25]) {
            assert!((found - meant).abs() < 3e-3, "{weights:?}");
        }
    }
}
