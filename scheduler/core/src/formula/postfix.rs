//! An expression as a flat list of steps over a stack: no branches but jumps, nothing allocated for a decision.

use super::expression::{Expression, Operation};
use crate::features::{Feature, FeatureSchema, Group, Scale};
use crate::portable_math::{exp, ln};

/// Most values on the stack; sums and products of many terms need two.
pub(super) const STACK: usize = 64;

/// Values on the stack that an expression needs.
pub(super) fn stack_of(expression: &Expression) -> usize {
    match expression {
        Expression::Two(_, of) => stack_of(&of[0]).max(1 + stack_of(&of[1])),
        other => other.parts().iter().map(stack_of).max().unwrap_or(1),
    }
}

/// How a scaled value becomes a raw one, within its range; what is not a number becomes the least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decode {
    /// Raw over scaled, or its logarithm.
    factor: f64,
    min: f64,
    max: f64,
    is_log: bool,
}

impl Decode {
    /// The raw value of a column.
    pub(super) fn raw(feature: &Feature) -> Decode {
        let (min, max) = (feature.min.into(), feature.max.into());
        let (factor, is_log) = match feature.scale {
            Scale::Linear(divisor) => (f64::from(divisor), false),
            Scale::Log(divisor) => (f64::from(divisor) * std::f64::consts::LN_10, true),
        };
        Decode {
            factor,
            min,
            max,
            is_log,
        }
    }

    /// The natural logarithm of 1 + the raw value, which costs no exponential; none where the scale is no logarithm.
    pub(super) fn log1p(feature: &Feature) -> Option<Decode> {
        let raw = Decode::raw(feature);
        raw.is_log.then(|| Decode {
            min: ln(1.0 + raw.min),
            max: ln(1.0 + raw.max),
            is_log: false,
            ..raw
        })
    }

    #[inline]
    pub(super) fn of(&self, scaled: f32) -> f64 {
        let value = f64::from(scaled) * self.factor;
        // Cut before the exponential too: what is not finite stays out of it.
        let value = if self.is_log {
            exp(value.clamp(0.0, 50.0)) - 1.0
        } else {
            value
        };
        let value = if value > self.min { value } else { self.min };
        if value < self.max { value } else { self.max }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Number(f64),
    /// A column of the row, by its place there, and one of the context.
    Row(u16, Decode),
    Context(u16, Decode),
    Do(Operation),
    /// To a later step, the first where the topmost value is 0.
    SkipUnless(u32),
    Skip(u32),
}

/// The steps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Postfix {
    steps: Vec<Step>,
}

impl Postfix {
    /// The steps of an expression that needs at most [`STACK`] values.
    pub(super) fn of(schema: &FeatureSchema, expression: &Expression) -> Postfix {
        let mut steps = Vec::with_capacity(expression.num_symbols() + 8);
        push(schema, expression, &mut steps);
        Postfix { steps }
    }

    /// The value where a row and its context have all columns that are read.
    #[inline]
    pub(super) fn value(&self, row: &[f32], context: &[f32]) -> f64 {
        let mut stack = [0.0; STACK];
        let (mut top, mut at) = (0, 0);
        while let Some(step) = self.steps.get(at) {
            at += 1;
            match *step {
                Step::Do(operation) if operation.is_unary() => {
                    stack[top - 1] = operation.of(stack[top - 1], 0.0);
                }
                Step::Do(operation) => {
                    top -= 1;
                    stack[top - 1] = operation.of(stack[top - 1], stack[top]);
                }
                Step::SkipUnless(to) => {
                    top -= 1;
                    at = if stack[top] == 0.0 { to as usize } else { at };
                }
                Step::Skip(to) => at = to as usize,
                Step::Number(_) | Step::Row(..) | Step::Context(..) => {
                    stack[top] = match *step {
                        Step::Row(place, decode) => decode.of(row[usize::from(place)]),
                        Step::Context(place, decode) => decode.of(context[usize::from(place)]),
                        Step::Number(number) => number,
                        _ => 0.0,
                    };
                    top += 1;
                }
            }
        }
        stack[0]
    }
}

fn read(schema: &FeatureSchema, number: u16, decode: Decode) -> Step {
    let place = schema.place(number.into()) as u16;
    match schema.features[usize::from(number)].group {
        Group::Row => Step::Row(place, decode),
        Group::Context => Step::Context(place, decode),
    }
}

fn push(schema: &FeatureSchema, expression: &Expression, steps: &mut Vec<Step>) {
    let feature = |number: u16| &schema.features[usize::from(number)];
    match expression {
        Expression::Number(number) => steps.push(Step::Number(*number)),
        Expression::Column(number) => steps.push(read(schema, *number, Decode::raw(feature(*number)))),
        Expression::Choice(of) => {
            push(schema, &of[0], steps);
            let unless = steps.len();
            steps.push(Step::SkipUnless(0));
            push(schema, &of[1], steps);
            let skip = steps.len();
            steps.push(Step::Skip(0));
            steps[unless] = Step::SkipUnless(steps.len() as u32);
            push(schema, &of[2], steps);
            steps[skip] = Step::Skip(steps.len() as u32);
        }
        Expression::One(operation, of) => {
            if let (Operation::Log1p, Expression::Column(number)) = (operation, &**of)
                && let Some(decode) = Decode::log1p(feature(*number))
            {
                return steps.push(read(schema, *number, decode));
            }
            push(schema, of, steps);
            steps.push(Step::Do(*operation));
        }
        Expression::Two(operation, of) => {
            of.iter().for_each(|part| push(schema, part, steps));
            steps.push(Step::Do(*operation));
        }
    }
}
