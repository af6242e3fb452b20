//! What holds for every row: between which numbers an expression lies, and whether it only rises where a job waits longer.
//!
//! Interval arithmetic over the columns' ranges among rows of one kind, by the same operations as the steps, whose rounding keeps the
//! order of numbers. A condition on one column narrows its range in both branches.
//!
//! # Source
//! R. E. Moore, *Interval Analysis* (1966). Directions are the same in signs: a product rises with a factor where the other is not
//! negative.

use super::expression::{Expression, LEAST_DIVISOR, Operation, divisor};
use super::postfix::Decode;
use crate::features::{FeatureSchema, Relation, Stimulus};

/// What exponentials and logarithms of ours may be off by, as a share. *Assumed*: a thousand times what they are.
const SLACK: f64 = 1e-12;

/// Least and largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Range {
    fn over(values: impl IntoIterator<Item = f64>) -> Range {
        let mut range = Range {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        };
        for value in values {
            range.min = range.min.min(value);
            range.max = range.max.max(value);
        }
        range
    }

    fn joined(self, other: Range) -> Range {
        Range::over([self.min, self.max, other.min, other.max])
    }

    fn has(self, value: f64) -> bool {
        self.min <= value && value <= self.max
    }
}

/// Ranges of the columns among rows of one kind, narrowed by the conditions on the way.
#[derive(Clone, Debug)]
pub(super) struct ColumnRanges<'a> {
    schema: &'a FeatureSchema,
    /// Raw, and the logarithm of 1 + it. `[columns]`
    raw: Vec<Range>,
}

impl<'a> ColumnRanges<'a> {
    pub(super) fn of_kind(schema: &'a FeatureSchema, kind: usize) -> ColumnRanges<'a> {
        let range = |feature: &crate::features::Feature| {
            let (min, max) = feature.range_among(kind);
            let decode = Decode::raw(feature);
            Range::over([decode.of(min), decode.of(max)])
        };
        ColumnRanges {
            schema,
            raw: schema.features.iter().map(range).collect(),
        }
    }

    /// The values that an expression can have.
    pub(super) fn range(&self, expression: &Expression) -> Range {
        match expression {
            Expression::Number(number) => Range::over([*number]),
            Expression::Column(number) => self.raw[usize::from(*number)],
            Expression::Choice(of) => {
                let condition = self.range(&of[0]);
                let sides = [(condition.has(1.0), true), (condition.has(0.0), false)];
                let ranges = sides
                    .into_iter()
                    .filter(|(may, _)| *may)
                    .filter_map(|(_, holds)| {
                        let part = if holds { &of[1] } else { &of[2] };
                        Some(self.narrowed(&of[0], holds)?.range(part))
                    });
                // Conditions may rule out each branch by itself where rounding is met: then both count.
                ranges
                    .reduce(Range::joined)
                    .unwrap_or_else(|| self.range(&of[1]).joined(self.range(&of[2])))
            }
            Expression::One(operation, of) => {
                let a = self.range(of);
                let mut ends = vec![operation.of(a.min, 0.0), operation.of(a.max, 0.0)];
                if *operation == Operation::Abs && a.has(0.0) {
                    ends.push(0.0);
                }
                if matches!(operation, Operation::Exp | Operation::Log1p) {
                    let wider = ends
                        .iter()
                        .flat_map(|end| [end - SLACK * end.abs(), end + SLACK * end.abs()]);
                    ends = wider.collect();
                }
                Range::over(ends)
            }
            Expression::Two(operation, of) => {
                self.range_of_two(*operation, self.range(&of[0]), self.range(&of[1]))
            }
        }
    }

    fn range_of_two(&self, operation: Operation, a: Range, b: Range) -> Range {
        let mut seconds = vec![b.min, b.max];
        if operation == Operation::Divide {
            // The signs part at zero.
            seconds.iter_mut().for_each(|second| *second = divisor(*second));
            if b.min < LEAST_DIVISOR && b.max >= 0.0 {
                seconds.push(LEAST_DIVISOR);
            }
            if b.min < 0.0 && b.max > -LEAST_DIVISOR {
                seconds.push(-LEAST_DIVISOR);
            }
        }
        let firsts = [a.min, a.max];
        Range::over(
            firsts
                .iter()
                .flat_map(|first| seconds.iter().map(|second| operation.of(*first, *second))),
        )
    }

    /// The same where a condition holds, or does not; none where it never is so.
    fn narrowed(&self, condition: &Expression, holds: bool) -> Option<ColumnRanges<'a>> {
        use Operation::{And, AtLeast, AtMost, Greater, Less, Not, Or};
        let mut own = self.clone();
        match condition {
            Expression::One(Not, of) => self.narrowed(of, !holds),
            Expression::Two(operation @ (And | Or), of) => match (operation, holds) {
                (And, true) | (Or, false) => self.narrowed(&of[0], holds)?.narrowed(&of[1], holds),
                _ => Some(own),
            },
            Expression::Two(operation, of) => {
                let is_below = match operation {
                    Less | AtMost => holds,
                    Greater | AtLeast => !holds,
                    _ => return Some(own),
                };
                let (left, right) = (self.range(&of[0]), self.range(&of[1]));
                own.cut(&of[0], right, is_below);
                own.cut(&of[1], left, !is_below);
                let is_any = own.raw.iter().all(|range| range.min <= range.max);
                is_any.then_some(own)
            }
            _ => Some(own),
        }
    }

    /// Narrows a column, or one below a logarithm, to what lies below (or above) some values.
    fn cut(&mut self, side: &Expression, by: Range, is_below: bool) {
        let (number, raw) = match side {
            Expression::Column(number) => (*number, [by.min, by.max]),
            Expression::One(Operation::Log1p, of) => match &**of {
                Expression::Column(number)
                    if Decode::log1p(&self.schema.features[usize::from(*number)]).is_some() =>
                {
                    // A little wider, for the way back.
                    let back = |end: f64, wider: f64| Operation::Exp.of(end, 0.0) * (1.0 + wider) - 1.0;
                    (*number, [back(by.min, -1e-9), back(by.max, 1e-9)])
                }
                _ => return,
            },
            _ => return,
        };
        let range = &mut self.raw[usize::from(number)];
        match is_below {
            true => range.max = range.max.min(raw[1]),
            false => range.min = range.min.max(raw[0]),
        }
    }

    /// How an expression moves under a stimulus, and as far as it is known; a truth rises where it begins to hold.
    pub(super) fn moves(&self, expression: &Expression, stimulus: Stimulus) -> Relation {
        use Operation::{Abs, AtLeast, AtMost, Divide, Less, Multiply, Negate, Not, Subtract};
        let moves = |part: &Expression| self.moves(part, stimulus);
        match expression {
            Expression::Number(_) => Relation::Equal,
            Expression::Column(number) => self.schema.features[usize::from(*number)].relation(stimulus),
            Expression::One(Negate | Not, of) => turned(moves(of)),
            Expression::One(Abs, of) => under_sign(moves(of), self.range(of)),
            Expression::One(_, of) => moves(of),
            Expression::Two(Subtract, of) => both(moves(&of[0]), turned(moves(&of[1]))),
            Expression::Two(Less | AtMost, of) => both(turned(moves(&of[0])), moves(&of[1])),
            Expression::Two(Operation::Greater | AtLeast, of) => both(moves(&of[0]), turned(moves(&of[1]))),
            Expression::Two(operation @ (Multiply | Divide), of) => {
                let (a, b) = (self.range(&of[0]), self.range(&of[1]));
                let (of_a, of_b) = (under_sign(moves(&of[0]), b), under_sign(moves(&of[1]), a));
                match operation {
                    Multiply => both(of_a, of_b),
                    // Nothing is known across zero, which divides as what is above it.
                    _ if b.has(0.0) && b.min < 0.0 => unless_equal(both(of_a, of_b)),
                    _ => both(of_a, turned(of_b)),
                }
            }
            Expression::Two(_, of) => both(moves(&of[0]), moves(&of[1])),
            Expression::Choice(of) => {
                let side = |holds: bool, part: &Expression| {
                    let narrowed = self.narrowed(&of[0], holds);
                    narrowed.map(|own| (own.moves(part, stimulus), own.range(part)))
                };
                match (side(true, &of[1]), side(false, &of[2])) {
                    (Some((then, above)), Some((other, below))) => {
                        let stays = both(then, other);
                        let changes = match moves(&of[0]) {
                            Relation::Equal => Relation::Equal,
                            Relation::Any => Relation::Any,
                            _ if above.min >= below.max => moves(&of[0]),
                            _ if above.max <= below.min => turned(moves(&of[0])),
                            _ => Relation::Any,
                        };
                        both(stays, changes)
                    }
                    (Some((own, _)), None) | (None, Some((own, _))) => own,
                    (None, None) => Relation::Any,
                }
            }
        }
    }
}

/// The other way round.
fn turned(relation: Relation) -> Relation {
    match relation {
        Relation::Up => Relation::Down,
        Relation::Down => Relation::Up,
        other => other,
    }
}

/// Two moves that add up.
fn both(a: Relation, b: Relation) -> Relation {
    match (a, b) {
        (Relation::Equal, other) | (other, Relation::Equal) => other,
        (a, b) if a == b => a,
        _ => Relation::Any,
    }
}

/// Nothing is known but that what stands still stays.
fn unless_equal(relation: Relation) -> Relation {
    match relation {
        Relation::Equal => Relation::Equal,
        _ => Relation::Any,
    }
}

/// A move times what lies in a range.
fn under_sign(relation: Relation, by: Range) -> Relation {
    match relation {
        Relation::Equal => Relation::Equal,
        _ if by.min >= 0.0 => relation,
        _ if by.max <= 0.0 => turned(relation),
        _ => Relation::Any,
    }
}
