//! How a formula is changed a little: numbers moved, columns exchanged, parts grown, cut out or taken from another formula.
//!
//! Drawn parts are plain numbers alone (times by their `log1p`), so that everything fits everything; what does not mean anything all the
//! same, because a formula that was given holds raw times, is drawn again.
//!
//! # Source
//! Subtree mutation, hoisting and crossover: R. Poli, W. Langdon and N. McPhee, *A Field Guide to Genetic Programming* (2008).

use pleach_scheduler::FeatureSchema;
use pleach_scheduler::features::View;
use pleach_scheduler::formula::{Expression, Kind, Operation};
use pleach_scheduler::portable_math::{cos, exp, ln};
use rand::{Rng, RngExt as _};

/// Draws until a child means something, is another, and is small enough.
const TRIES: usize = 40;
const COMPARISONS: [Operation; 2] = [Operation::Greater, Operation::Less];
const SUMS: [Operation; 6] = [
    Operation::Add,
    Operation::Subtract,
    Operation::Multiply,
    Operation::Divide,
    Operation::Min,
    Operation::Max,
];

/// The columns of a view as plain numbers; hold is scored by nothing.
pub(super) fn terminals(view: &View) -> Vec<Expression> {
    let features = FeatureSchema::current().features[..view.len].iter().enumerate();
    let of_column = |(number, feature): (usize, &pleach_scheduler::features::Feature)| {
        let column = Expression::Column(number as u16);
        let is_plain = feature.unit.is_empty() && feature.max <= 64.0;
        let is_used = feature.name != "is_hold";
        let found = if is_plain {
            column
        } else {
            Expression::one(Operation::Log1p, column)
        };
        is_used.then_some(found)
    };
    features.filter_map(of_column).collect()
}

/// A normal number, by Box and Muller.
fn normal(rng: &mut impl Rng) -> f64 {
    let radius: f64 = rng.random_range(1e-12..1.0);
    (-2.0 * ln(radius)).sqrt() * cos(std::f64::consts::TAU * rng.random::<f64>())
}

/// Four digits are enough for every threshold, and can be read.
pub(super) fn rounded(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

fn pick<T: Clone>(rng: &mut impl Rng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())].clone()
}

fn drawn(rng: &mut impl Rng, terminals: &[Expression], depth: usize) -> Expression {
    if depth == 0 || rng.random_bool(0.3) {
        return match rng.random_bool(0.35) {
            true => Expression::Number(rounded(2.0 * normal(rng))),
            false => pick(rng, terminals),
        };
    }
    let mut part = || drawn(rng, terminals, depth - 1);
    let (a, b) = (part(), part());
    if rng.random_bool(0.25) {
        return chosen(rng, terminals, a, b);
    }
    Expression::two(pick(rng, &SUMS), a, b)
}

/// A choice between two by a drawn comparison.
fn chosen(rng: &mut impl Rng, terminals: &[Expression], a: Expression, b: Expression) -> Expression {
    let by = pick(rng, terminals);
    let than = Expression::Number(rounded(exp(normal(rng))));
    let condition = Expression::two(pick(rng, &COMPARISONS), by, than);
    Expression::Choice(Box::new([condition, a, b]))
}

/// Shows each part that is a number; a column below a logarithm is one with it.
fn each_number(of: &mut Expression, show: &mut impl FnMut(&mut Expression)) {
    let is_truth = matches!(of.kind(FeatureSchema::current()), Ok(Kind::Truth));
    if !is_truth {
        show(of);
    }
    let is_leaf =
        matches!(of, Expression::One(Operation::Log1p, inner) if matches!(**inner, Expression::Column(_)));
    if !is_leaf {
        of.parts_mut().iter_mut().for_each(|part| each_number(part, show));
    }
}

/// The parts that are numbers, itself first.
pub(super) fn numbers_of(of: &Expression) -> Vec<Expression> {
    let mut found = Vec::new();
    each_number(&mut of.clone(), &mut |part| found.push(part.clone()));
    found
}

/// The same with another part in the place of one that is a number.
pub(super) fn with_part(of: &Expression, place: usize, part: &Expression) -> Expression {
    let (mut made, mut at) = (of.clone(), 0);
    let mut is_done = false;
    each_number(&mut made, &mut |own| {
        if at == place && !is_done {
            *own = part.clone();
            is_done = true;
        }
        at += 1;
    });
    made
}

/// Whether an expression is a number in all it says.
pub(super) fn is_sound(of: &Expression, symbols_max: usize) -> bool {
    of.num_symbols() <= symbols_max && matches!(of.kind(FeatureSchema::current()), Ok(Kind::Number(_)))
}

/// A child of a formula, with parts of another now and then; the formula itself where nothing was found.
pub(super) fn changed(
    rng: &mut impl Rng,
    (own, other): (&Expression, &Expression),
    terminals: &[Expression],
    symbols_max: usize,
) -> Expression {
    for _ in 0..TRIES {
        let mut child = own.clone();
        let times = 1 + usize::from(rng.random_bool(0.35)) + usize::from(rng.random_bool(0.15));
        for _ in 0..times {
            let parts = numbers_of(&child);
            let place = rng.random_range(0..parts.len());
            let part = replaced(rng, &parts[place], other, terminals);
            child = with_part(&child, place, &part);
        }
        if child != *own && is_sound(&child, symbols_max) {
            return child;
        }
    }
    own.clone()
}

fn replaced(
    rng: &mut impl Rng,
    old: &Expression,
    other: &Expression,
    terminals: &[Expression],
) -> Expression {
    let draw: f64 = rng.random();
    match old {
        Expression::Number(value) if draw < 0.6 => Expression::Number(rounded(match rng.random_bool(0.75) {
            true => value * exp(0.35 * normal(rng)),
            false => value + 0.3 * normal(rng),
        })),
        _ if draw < 0.3 && old.num_symbols() <= 2 => pick(rng, terminals),
        _ if draw < 0.55 => drawn(rng, terminals, 2),
        _ if draw < 0.7 => {
            let parts = numbers_of(old);
            pick(rng, &parts)
        }
        _ if draw < 0.85 => {
            let leaf = drawn(rng, terminals, 1);
            match rng.random_bool(0.4) {
                true => chosen(rng, terminals, old.clone(), leaf),
                false => Expression::two(pick(rng, &SUMS[..3]), old.clone(), leaf),
            }
        }
        _ => {
            let parts = numbers_of(other);
            pick(rng, &parts)
        }
    }
}

/// Its constants, in their order.
pub(super) fn constants(of: &Expression) -> Vec<f64> {
    let mut found = Vec::new();
    of.visit(&mut |part| {
        if let Expression::Number(value) = part {
            found.push(*value);
        }
    });
    found
}

/// The same with other constants.
pub(super) fn with_constants(of: &Expression, constants: &[f64]) -> Expression {
    let (mut made, mut next) = (of.clone(), constants.iter());
    made.visit_mut(&mut |part| {
        if let Expression::Number(value) = part {
            *value = next.next().copied().map_or(*value, rounded);
        }
    });
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::Seed;
    use pleach_scheduler::features::DECISION_1;
    use pleach_scheduler::formula::parse;

    #[test]
    fn children_mean_something_differ_and_repeat_themselves() {
        let terminals = terminals(&DECISION_1);
        let text = "if duration_s > 3600 then 40 - log1p(duration_s) else num_gpus / 2";
        let parent = parse(FeatureSchema::current(), text).unwrap();
        let children = |seed| -> Vec<Expression> {
            let mut rng = Seed(seed).stream("test", 0);
            (0..200)
                .map(|_| changed(&mut rng, (&parent, &parent), &terminals, 40))
                .collect()
        };
        let first = children(1);
        assert!(first == children(1) && first != children(2));
        assert!(first.iter().all(|child| is_sound(child, 40) && *child != parent));
        let texts: std::collections::BTreeSet<String> = first
            .iter()
            .map(|child| child.text(FeatureSchema::current()))
            .collect();
        assert!(texts.len() > 150, "{}", texts.len());
    }

    #[test]
    fn constants_are_taken_out_and_put_back() {
        let of = parse(
            FeatureSchema::current(),
            "if speed_ratio > 0.8 then 40 - 2 * num_gpus else -1",
        )
        .unwrap();
        assert_eq!(constants(&of), [0.8, 40.0, 2.0, -1.0]);
        assert_eq!(with_constants(&of, &constants(&of)), of);
        assert_eq!(
            constants(&with_constants(&of, &[0.123_456, 1.0, 2.0, 3.0]))[0],
            0.1235
        );
    }
}
