//! Expressions over columns: numbers with units of time, truths, and how both are written.
//!
//! A column stands for its raw value in its unit. A number that is written down fits every unit; times are added to and compared with
//! times alone, and products and quotients carry their units on. GPU seconds are seconds here. Every operation is defined for every
//! input and gives a finite number ([`Operation::of`]).

use std::fmt;

use crate::features::FeatureSchema;
use crate::portable_math::{exp, ln};

/// Most symbols of an expression. *Assumed*: the largest of use had 131.
pub const MAX_SYMBOLS: usize = 256;
/// Largest magnitude of a number on the way: what is larger is cut to it. *Assumed*: above every column's range.
pub const LARGEST: f64 = 1e12;
/// What is nearer to zero divides as this does, under its own sign. *Assumed*.
pub const LEAST_DIVISOR: f64 = 1e-6;

/// What is done with one value, or with two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `-a`
    Negate,
    /// `log1p(a)`: the natural logarithm of 1 + a; of 1 below zero.
    Log1p,
    /// `exp(a)`
    Exp,
    /// `abs(a)`
    Abs,
    /// `not a`
    Not,
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`, see [`LEAST_DIVISOR`].
    Divide,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `a < b`
    Less,
    /// `a <= b`
    AtMost,
    /// `a > b`
    Greater,
    /// `a >= b`
    AtLeast,
    /// `a and b`
    And,
    /// `a or b`
    Or,
}

use Operation::{
    Abs, Add, And, AtLeast, AtMost, Divide, Exp, Greater, Less, Log1p, Max, Min, Multiply, Negate, Not, Or,
    Subtract,
};

impl Operation {
    /// All of them with their signs or names.
    pub const ALL: [(Operation, &'static str); 17] = [
        (Negate, "-"),
        (Log1p, "log1p"),
        (Exp, "exp"),
        (Abs, "abs"),
        (Not, "not"),
        (Add, "+"),
        (Subtract, "-"),
        (Multiply, "*"),
        (Divide, "/"),
        (Min, "min"),
        (Max, "max"),
        (Less, "<"),
        (AtMost, "<="),
        (Greater, ">"),
        (AtLeast, ">="),
        (And, "and"),
        (Or, "or"),
    ];

    /// Its sign or name.
    #[must_use]
    pub fn word(self) -> &'static str {
        Operation::ALL[self as usize].1
    }

    /// Whether it takes one value; the others take two.
    #[must_use]
    pub const fn is_unary(self) -> bool {
        matches!(self, Negate | Log1p | Exp | Abs | Not)
    }

    /// Whether it is written as a name before parentheses.
    pub(super) const fn is_function(self) -> bool {
        matches!(self, Log1p | Exp | Abs | Min | Max)
    }

    /// How strongly it binds, see [`Expression`]'s grammar.
    pub(super) const fn binds(self) -> u8 {
        match self {
            Or => 1,
            And => 2,
            Not => 3,
            Less | AtMost | Greater | AtLeast => 4,
            Add | Subtract => 5,
            Multiply | Divide => 6,
            Negate => 7,
            Log1p | Exp | Abs | Min | Max => 8,
        }
    }

    /// The result of finite values, within [`LARGEST`]; of one value the second is not read. Truths are 1 and 0.
    #[must_use]
    #[inline]
    pub fn of(self, a: f64, b: f64) -> f64 {
        let truth = |holds: bool| f64::from(u8::from(holds));
        let result = match self {
            Negate => -a,
            Log1p => ln(1.0 + a.max(0.0)),
            Exp => exp(a.clamp(-50.0, 50.0)),
            Abs => a.abs(),
            Not => 1.0 - a,
            Add => a + b,
            Subtract => a - b,
            Multiply | And => a * b,
            Divide => a / divisor(b),
            Min => a.min(b),
            Max | Or => a.max(b),
            Less => truth(a < b),
            AtMost => truth(a <= b),
            Greater => truth(a > b),
            AtLeast => truth(a >= b),
        };
        result.clamp(-LARGEST, LARGEST)
    }
}

/// What is divided by in place of a number.
pub(super) fn divisor(b: f64) -> f64 {
    match b {
        _ if b.abs() >= LEAST_DIVISOR => b,
        _ if b < 0.0 => -LEAST_DIVISOR,
        _ => LEAST_DIVISOR,
    }
}

/// An expression, as it was written; [`Expression::kind`] says whether it means anything.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// The raw value of a column, by its number in the schema.
    Column(u16),
    /// An operation on one value.
    One(Operation, Box<Expression>),
    /// An operation on two values.
    Two(Operation, Box<[Expression; 2]>),
    /// `if c then a else b`
    Choice(Box<[Expression; 3]>),
}

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of this power of seconds; none: fits every unit.
    Number(Option<i8>),
    /// Yes or no.
    Truth,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Truth => out.write_str("a truth"),
            Kind::Number(Some(1)) => out.write_str("seconds"),
            Kind::Number(Some(0) | None) => out.write_str("a plain number"),
            Kind::Number(Some(power)) => write!(out, "seconds to the power of {power}"),
        }
    }
}

/// The kind of an operation's result; else what it does not take.
pub(super) fn kind_of(operation: Operation, a: Kind, b: Kind) -> Result<Kind, String> {
    let word = operation.word();
    let takes_truths = matches!(operation, And | Or | Not);
    for found in [a, b] {
        if takes_truths != (found == Kind::Truth) {
            let wanted = if takes_truths { "truths" } else { "numbers" };
            return Err(format!("{word} takes {wanted}, and this is {found}"));
        }
    }
    let (Kind::Number(a), Kind::Number(b)) = (a, b) else {
        return Ok(Kind::Truth);
    };
    Ok(Kind::Number(match operation {
        Multiply | Divide => {
            let sign = if operation == Divide { -1 } else { 1 };
            let power = a.unwrap_or(0).saturating_add(b.unwrap_or(0).saturating_mul(sign));
            (a.is_some() || b.is_some()).then_some(power)
        }
        Log1p => Some(0),
        Exp => match a {
            None | Some(0) => Some(0),
            power => {
                let power = Kind::Number(power);
                return Err(format!(
                    "exp takes a plain number, and this is {power}: take its log1p"
                ));
            }
        },
        _ => match (a, b) {
            (Some(own), Some(other)) if own != other => {
                let (own, other) = (Kind::Number(a), Kind::Number(b));
                return Err(format!(
                    "{word} takes two of one unit, and these are {own} and {other}: take log1p of times"
                ));
            }
            _ if operation.binds() == Less.binds() => return Ok(Kind::Truth),
            _ => a.or(b),
        },
    }))
}

/// The kind of a choice; else what does not fit.
pub(super) fn kind_of_choice([condition, a, b]: [Kind; 3]) -> Result<Kind, String> {
    match (condition, a, b) {
        (Kind::Truth, Kind::Number(_), Kind::Number(_)) => {
            kind_of(Min, a, b).map_err(|_| format!("then and else give {a} and {b}"))
        }
        (Kind::Truth, ..) => Err("then and else take numbers, and this is a truth".into()),
        _ => Err(format!("if takes a truth, and this is {condition}")),
    }
}

impl Expression {
    /// An operation on one value.
    #[must_use]
    pub fn one(operation: Operation, of: Expression) -> Expression {
        match (operation, of) {
            (Negate, Expression::Number(number)) => Expression::Number(-number),
            (_, of) => Expression::One(operation, Box::new(of)),
        }
    }

    /// An operation on two values.
    #[must_use]
    pub fn two(operation: Operation, a: Expression, b: Expression) -> Expression {
        Expression::Two(operation, Box::new([a, b]))
    }

    /// The parts that it is made of, in the order in which they are written.
    #[must_use]
    pub fn parts(&self) -> &[Expression] {
        match self {
            Expression::Number(_) | Expression::Column(_) => &[],
            Expression::One(_, of) => std::slice::from_ref(of),
            Expression::Two(_, of) => &of[..],
            Expression::Choice(of) => &of[..],
        }
    }

    /// The same parts, to be changed.
    pub fn parts_mut(&mut self) -> &mut [Expression] {
        match self {
            Expression::Number(_) | Expression::Column(_) => &mut [],
            Expression::One(_, of) => std::slice::from_mut(of),
            Expression::Two(_, of) => &mut of[..],
            Expression::Choice(of) => &mut of[..],
        }
    }

    /// Numbers, columns, operations and choices that it is made of, itself included.
    #[must_use]
    pub fn num_symbols(&self) -> usize {
        1 + self.parts().iter().map(Expression::num_symbols).sum::<usize>()
    }

    /// What it gives.
    ///
    /// # Errors
    /// What does not fit together in it, in words; a column that the schema has not, a number that is not within [`LARGEST`].
    pub fn kind(&self, schema: &FeatureSchema) -> Result<Kind, String> {
        let kind = |part: &Expression| part.kind(schema);
        match self {
            Expression::Number(number) if number.abs() <= LARGEST => Ok(Kind::Number(None)),
            Expression::Number(number) => Err(format!("{number} is not within {LARGEST}")),
            Expression::Column(number) => {
                let feature = schema.joined((*number).into());
                let feature = feature.ok_or_else(|| format!("there is no column {number}"))?;
                Ok(Kind::Number(Some(i8::from(feature.unit.ends_with('s')))))
            }
            Expression::One(operation, of) => kind_of(*operation, kind(of)?, kind(of)?),
            Expression::Two(operation, of) => kind_of(*operation, kind(&of[0])?, kind(&of[1])?),
            Expression::Choice(of) => kind_of_choice([kind(&of[0])?, kind(&of[1])?, kind(&of[2])?]),
        }
    }

    /// Numbers of the columns that it reads, in their order.
    #[must_use]
    pub fn reads(&self) -> Vec<u16> {
        let mut found = Vec::new();
        self.visit(&mut |part| {
            if let Expression::Column(number) = part {
                found.push(*number);
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Shows itself and then all its parts.
    pub fn visit(&self, show: &mut impl FnMut(&Expression)) {
        show(self);
        self.parts().iter().for_each(|part| part.visit(show));
    }

    /// The same one after the other, to be changed.
    pub fn visit_mut(&mut self, show: &mut impl FnMut(&mut Expression)) {
        show(self);
        self.parts_mut().iter_mut().for_each(|part| part.visit_mut(show));
    }

    /// One line of mathematics, which the parser reads as the same expression.
    #[must_use]
    pub fn text(&self, schema: &FeatureSchema) -> String {
        let mut text = String::new();
        self.write(schema, 0, &mut text);
        text
    }

    fn write(&self, schema: &FeatureSchema, least: u8, text: &mut String) {
        let binds = match self {
            Expression::Number(_) | Expression::Column(_) => u8::MAX,
            Expression::Choice(_) => 0,
            _ if self.flag(schema).is_some() => u8::MAX,
            Expression::One(operation, _) | Expression::Two(operation, _) => operation.binds(),
        };
        if binds < least {
            text.push('(');
            self.write(schema, 0, text);
            text.push(')');
            return;
        }
        match self {
            Expression::Number(number) => text.push_str(&number_text(*number)),
            Expression::Column(number) => text.push_str(schema.joined_name((*number).into())),
            Expression::Choice(of) => {
                for (word, part) in ["if ", " then ", " else "].iter().zip(&of[..]) {
                    text.push_str(word);
                    part.write(schema, 0, text);
                }
            }
            _ if self.flag(schema).is_some() => {
                text.push_str(self.flag(schema).unwrap_or_default());
            }
            Expression::One(operation, _) | Expression::Two(operation, _) if operation.is_function() => {
                text.push_str(operation.word());
                for (place, part) in self.parts().iter().enumerate() {
                    text.push_str(if place == 0 { "(" } else { ", " });
                    part.write(schema, 0, text);
                }
                text.push(')');
            }
            Expression::One(operation, of) => {
                text.push_str(if *operation == Not { "not " } else { "-" });
                of.write(schema, binds, text);
            }
            Expression::Two(operation, of) => {
                // Nothing is compared with a comparison.
                let is_comparison = binds == Less.binds();
                of[0].write(schema, binds + u8::from(is_comparison), text);
                text.push_str(&format!(" {} ", operation.word()));
                of[1].write(schema, binds + 1, text);
            }
        }
    }

    /// Name of the flag of which it says that it is 1: written by its name alone where a truth is meant.
    fn flag(&self, schema: &FeatureSchema) -> Option<&'static str> {
        let Expression::Two(Greater, of) = self else {
            return None;
        };
        match &of[..] {
            [Expression::Column(number), Expression::Number(0.5)] => {
                let feature = schema.joined((*number).into())?;
                feature.is_flag().then_some(feature.name)
            }
            _ => None,
        }
    }
}

/// The shortest decimal that is read as this number.
fn number_text(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
