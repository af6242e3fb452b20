//! Text to expression: `if speed_ratio > 0.8 then 100 - log1p(duration_s) else -1`.
//!
//! From weak to strong: `if then else`, `or`, `and`, `not`, comparisons, `+ -`, `* /`, a sign, parentheses and functions. A flag alone
//! is a truth where one is meant. What does not fit is refused with its place; length, symbols and depth are bounded.

use super::expression::{Expression, Kind, MAX_SYMBOLS, Operation, kind_of, kind_of_choice};
use crate::features::FeatureSchema;
use crate::problem::{Problem, nearest_of};

/// Longest text, bytes; 256 symbols are some 5,000.
const MAX_BYTES: usize = 16_384;
/// Most parentheses, signs and conditions inside each other.
const MAX_DEPTH: usize = 64;
/// Words that are no columns.
const WORDS: [&str; 6] = ["if", "then", "else", "and", "or", "not"];

/// Reads an expression over the columns of a schema.
///
/// # Errors
/// What is none, with the place and what is allowed there; what does not fit together; what is too long or too deep.
pub fn parse(schema: &FeatureSchema, text: &str) -> Result<Expression, Problem> {
    let mut parser = Parser {
        schema,
        text,
        at: 0,
        depth: 0,
        num_symbols: 0,
    };
    if text.len() > MAX_BYTES {
        return Err(parser.refuse(text.len(), format!("at most {MAX_BYTES} bytes"), "Shorten it."));
    }
    let (found, kind) = parser.binding(0)?;
    if let Some(rest) = parser.peek() {
        let allowed = "an operator or the end";
        return Err(parser.refuse(
            rest.len(),
            allowed,
            "A sum or a comparison goes on with its sign.",
        ));
    }
    if kind == Kind::Truth {
        parser.at = 0;
        let hint = "Write if ... then 1 else 0.";
        return Err(parser.refuse(text.len(), "a number, and this is a truth", hint));
    }
    Ok(found)
}

struct Parser<'a> {
    schema: &'a FeatureSchema,
    text: &'a str,
    /// Bytes that are read.
    at: usize,
    depth: usize,
    num_symbols: usize,
}

type Part = (Expression, Kind);

impl<'a> Parser<'a> {
    fn refuse(&self, len: usize, allowed: impl ToString, hint: &str) -> Problem {
        let place = self.text[..self.at].chars().count() + 1;
        let found: String = self.text[self.at..].chars().take(len.clamp(1, 40)).collect();
        let found = match found.is_empty() {
            true => "the end".to_owned(),
            false => format!("`{found}`"),
        };
        Problem::new("score", format!("{found} at character {place}"), allowed, hint)
    }

    /// The next word, number or sign; none at the end.
    fn peek(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let rest = rest.trim_start();
        self.at = self.text.len() - rest.len();
        let first = rest.chars().next()?;
        let len = match first {
            _ if first.is_ascii_digit() || first == '.' => number_len(rest),
            _ if is_of_word(first) => rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len()),
            '<' | '>' if rest[1..].starts_with('=') => 2,
            _ => first.len_utf8(),
        };
        Some(&rest[..len])
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += if is_next { wanted.len() } else { 0 };
        is_next
    }

    fn need(&mut self, wanted: &str) -> Result<(), Problem> {
        match self.take(wanted) {
            true => Ok(()),
            false => {
                let len = self.peek().map_or(0, str::len);
                Err(self.refuse(len, format!("`{wanted}`"), "The expression breaks off before it."))
            }
        }
    }

    /// Counts a symbol, and keeps the place for what does not fit.
    fn made(&mut self, begin: usize, made: Expression, kind: Result<Kind, String>) -> Result<Part, Problem> {
        self.num_symbols += 1;
        if self.num_symbols > MAX_SYMBOLS {
            let allowed = format!("at most {MAX_SYMBOLS} numbers, columns and operations");
            return Err(self.refuse(1, allowed, "Shorten it."));
        }
        let kind = kind.map_err(|reason| {
            let end = std::mem::replace(&mut self.at, begin);
            let len = self.text[begin..end].chars().count();
            self.refuse(
                len,
                reason,
                "`pleach policies --features` lists columns with their units.",
            )
        })?;
        Ok((made, kind))
    }

    /// A truth where a flag stands.
    fn truth(&self, (found, kind): Part) -> Part {
        match found {
            Expression::Column(number) if self.schema.features[usize::from(number)].is_flag() => {
                let half = Expression::Number(0.5);
                (Expression::two(Operation::Greater, found, half), Kind::Truth)
            }
            _ => (found, kind),
        }
    }

    /// What binds at least so strongly.
    fn binding(&mut self, least: u8) -> Result<Part, Problem> {
        self.peek();
        let begin = self.at;
        let mut left = self.operand(least)?;
        loop {
            let Some(word) = self.peek() else { return Ok(left) };
            let signs = Operation::ALL
                .iter()
                .filter(|(own, _)| !own.is_unary() && !own.is_function());
            let Some((operation, _)) = signs.copied().find(|(_, sign)| *sign == word) else {
                return Ok(left);
            };
            if operation.binds() < least.max(1) {
                return Ok(left);
            }
            self.at += word.len();
            let mut right = self.binding(operation.binds() + 1)?;
            if matches!(operation, Operation::And | Operation::Or) {
                (left, right) = (self.truth(left), self.truth(right));
            }
            let kind = kind_of(operation, left.1, right.1);
            left = self.made(begin, Expression::two(operation, left.0, right.0), kind)?;
        }
    }

    /// What stands between operators.
    fn operand(&mut self, least: u8) -> Result<Part, Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let allowed = format!("at most {MAX_DEPTH} parentheses and conditions inside each other");
            return Err(self.refuse(1, allowed, "Shorten it."));
        }
        let found = self.inner(least);
        self.depth -= 1;
        found
    }

    fn inner(&mut self, least: u8) -> Result<Part, Problem> {
        let word = self.peek().unwrap_or_default();
        let begin = self.at;
        let function = Operation::ALL
            .iter()
            .find(|(own, name)| own.is_function() && *name == word);
        match word {
            "(" => {
                self.at += 1;
                let found = self.binding(0)?;
                self.need(")")?;
                Ok(found)
            }
            "if" if least == 0 => self.choice(begin),
            "not" | "-" => {
                let operation = if word == "-" {
                    Operation::Negate
                } else {
                    Operation::Not
                };
                self.at += word.len();
                let mut of = self.binding(operation.binds())?;
                if operation == Operation::Not {
                    of = self.truth(of);
                }
                let kind = kind_of(operation, of.1, of.1);
                self.made(begin, Expression::one(operation, of.0), kind)
            }
            _ if word.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                let number: Option<f64> = word.parse().ok();
                let Some(number) = number else {
                    return Err(self.refuse(word.len(), "a number", "For example 0.8 or 1e-3."));
                };
                self.at += word.len();
                let made = Expression::Number(number);
                let kind = made.kind(self.schema);
                self.made(begin, made, kind)
            }
            _ if function.is_some() => self.function(begin, function.map_or(Operation::Abs, |own| own.0)),
            _ => self.column(word),
        }
    }

    fn choice(&mut self, begin: usize) -> Result<Part, Problem> {
        self.at += 2;
        let condition = self.binding(0)?;
        let condition = self.truth(condition);
        self.need("then")?;
        let then = self.binding(0)?;
        self.need("else")?;
        let other = self.binding(0)?;
        let kind = kind_of_choice([condition.1, then.1, other.1]);
        self.made(
            begin,
            Expression::Choice(Box::new([condition.0, then.0, other.0])),
            kind,
        )
    }

    fn function(&mut self, begin: usize, operation: Operation) -> Result<Part, Problem> {
        self.at += operation.word().len();
        self.need("(")?;
        let a = self.binding(0)?;
        let (made, kind) = if operation.is_unary() {
            (Expression::one(operation, a.0), kind_of(operation, a.1, a.1))
        } else {
            self.need(",")?;
            let b = self.binding(0)?;
            (Expression::two(operation, a.0, b.0), kind_of(operation, a.1, b.1))
        };
        self.need(")")?;
        self.made(begin, made, kind)
    }

    fn column(&mut self, word: &str) -> Result<Part, Problem> {
        if let Some(number) = self.schema.joined_index(word) {
            let begin = self.at;
            self.at += word.len();
            let made = Expression::Column(number as u16);
            let kind = made.kind(self.schema);
            return self.made(begin, made, kind);
        }
        let columns = self.schema.features.iter().map(|feature| feature.name);
        let functions = Operation::ALL.iter().filter(|(own, _)| own.is_function());
        let known: Vec<&str> = columns.chain(functions.map(|(_, name)| *name)).collect();
        let is_name = word.starts_with(is_of_word) && !WORDS.contains(&word);
        let hint = match nearest_of(&known, word).filter(|_| is_name) {
            Some(nearest) => format!("Did you mean {nearest}?"),
            None => "An if inside a sum stands in parentheses.".into(),
        };
        let allowed =
            "a number, a column (`pleach policies --features`), -, (, not, log1p, exp, abs, min or max";
        Err(self.refuse(word.len(), allowed, &hint))
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Length of the number at the beginning of a text, with its exponent.
fn number_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut end = 0;
    while let Some(letter) = bytes.get(end) {
        let before = end.checked_sub(1).and_then(|place| bytes.get(place));
        let is_sign = matches!(letter, b'+' | b'-') && matches!(before, Some(b'e' | b'E'));
        if !(letter.is_ascii_alphanumeric() || *letter == b'.' || is_sign) {
            break;
        }
        end += 1;
    }
    end
}
