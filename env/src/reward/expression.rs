//! A reward in words: `-jobs_in_system_s / total_run_s - 0.1 * idle_gpu_s / total_gpu_s`.
//!
//! What is paid is a sum over time, so an expression is a sum of products of one [sum over time](super::quantities::SUMS) each with
//! numbers and [totals](super::quantities::TOTALS); two sums in a product, or one below a fraction line, would pay differently where
//! the clock stops more often. Terms of different units are not added. Both is found when the text is read, with its place.

use pleach_scheduler::Problem;

use super::quantities::{SUMS, TERMS, TOTALS, Unit, names};
use super::registry;
use crate::world::Integrals;
use pleach_workloads::Workload;

/// Longest text, bytes.
const BYTES_MAX: usize = 2_000;
/// Most terms of a sum, and parentheses inside each other.
const TERMS_MAX: usize = 64;
const DEPTH_MAX: usize = 32;

/// What is summed over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Summed {
    /// One of ours, by its place.
    Known(usize),
    /// One that the program has besides, by its place.
    Own(usize),
}

impl Summed {
    /// Whether it may depend on the run times beyond the best.
    pub(super) fn reads_excess(self) -> bool {
        let some = Integrals {
            excess_run_s: 1.0,
            ..Integrals::default()
        };
        matches!(self, Summed::Own(_)) || self.of(&some) != 0.0
    }

    pub(super) fn of(self, gained: &Integrals) -> f64 {
        match self {
            Summed::Known(place) => (SUMS[place].of)(gained),
            Summed::Own(place) => registry::own().get(place).map_or(0.0, |own| (own.of)(gained)),
        }
    }
}

/// A number, totals to powers, and at most one sum over time.
#[derive(Clone, Debug, PartialEq)]
struct Product {
    number: f64,
    totals: [i8; TOTALS.len()],
    summed: Option<Summed>,
}

/// A sum of products of one unit.
#[derive(Clone, Debug, PartialEq)]
struct Sums {
    unit: Unit,
    products: Vec<Product>,
}

/// A reward that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    sums: Sums,
}

impl Expression {
    /// Reads one.
    ///
    /// # Errors
    /// Text that is no expression, an unknown name, units that do not fit, or what is no sum over time; with the place.
    pub fn parse(text: &str) -> Result<Expression, Problem> {
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
        };
        if text.len() > BYTES_MAX {
            return Err(parser.refuse(
                &text[..0],
                format!("at most {BYTES_MAX} characters"),
                "shorten it",
            ));
        }
        let sums = parser.sum()?;
        if let Some(rest) = parser.peek() {
            return Err(parser.refuse_next(rest, "+, -, *, / or the end"));
        }
        let of_nothing = sums.products.iter().find(|product| product.summed.is_none());
        if of_nothing.is_some_and(|product| product.number != 0.0) {
            let allowed = "a sum of terms that each have a sum over time";
            let hint = "a number alone would be paid for every decision, however little time it takes";
            return Err(parser.refuse("the end", allowed.to_string(), hint));
        }
        Ok(Expression {
            text: text.to_string(),
            sums,
        })
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it pays nothing whatever happens.
    pub(super) fn is_nothing(&self) -> bool {
        self.sums.products.iter().all(|product| product.number == 0.0)
    }

    /// What it pays for each sum over time, in an episode on these jobs.
    pub(super) fn weights(&self, workload: &Workload) -> Vec<(Summed, f64)> {
        let totals: Vec<f64> = TOTALS
            .iter()
            .map(|total| (total.of)(workload).max(f64::MIN_POSITIVE))
            .collect();
        let weight = |product: &Product| {
            let powers = totals.iter().zip(product.totals);
            let scale: f64 = powers.map(|(total, power)| total.powi(power.into())).product();
            Some((product.summed?, product.number * scale))
        };
        self.sums.products.iter().filter_map(weight).collect()
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Bytes that are read.
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn refuse(&self, found: &str, allowed: String, hint: &str) -> Problem {
        let place = self.text[..self.at].chars().count() + 1;
        let value = format!("{} (at character {place}, `{found}`)", self.text);
        Problem::new("reward", value, allowed, hint)
    }

    fn refuse_next(&self, next: char, allowed: &str) -> Problem {
        self.refuse(
            &next.to_string(),
            allowed.to_string(),
            "docs/learning.md has the names and their units",
        )
    }

    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    /// Reads the next letter if it is one of these.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let next = self.peek().filter(|next| wanted.contains(next))?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn sum(&mut self) -> Result<Sums, Problem> {
        let sign = self.take(&['-', '+']);
        let mut all = self.product()?;
        if sign == Some('-') {
            all.scale(-1.0);
        }
        loop {
            let begin = self.at;
            let Some(sign) = self.take(&['-', '+']) else {
                return Ok(all);
            };
            let mut next = self.product()?;
            if sign == '-' {
                next.scale(-1.0);
            }
            if next.unit != all.unit {
                self.at = begin;
                let allowed = format!(
                    "terms of one unit: the first has {}, this one {}",
                    all.unit, next.unit
                );
                let hint = "divide each by a total of its unit: jobs_in_system_s / total_run_s, idle_gpu_s / total_gpu_s, \
                            finished_jobs / num_jobs";
                return Err(self.refuse(&sign.to_string(), allowed, hint));
            }
            all.products.append(&mut next.products);
            if all.products.len() > TERMS_MAX {
                return Err(self.refuse("the end", format!("at most {TERMS_MAX} terms"), "leave some out"));
            }
        }
    }

    fn product(&mut self) -> Result<Sums, Problem> {
        let mut all = self.factor()?;
        loop {
            self.peek();
            let begin = self.at;
            let Some(sign) = self.take(&['*', '/']) else {
                return Ok(all);
            };
            let next = self.factor()?;
            let made = if sign == '*' {
                all.times(&next)
            } else {
                all.over(&next)
            };
            all = made.map_err(|allowed| {
                self.at = begin;
                let hint =
                    "what is paid adds up over time, so each term has one sum over time, above the line";
                self.refuse(&sign.to_string(), allowed.to_string(), hint)
            })?;
        }
    }

    fn factor(&mut self) -> Result<Sums, Problem> {
        let allowed = "a number, a name or (";
        let Some(next) = self.peek() else {
            return Err(self.refuse("the end", allowed.to_string(), "the expression breaks off"));
        };
        if self.take(&['(']).is_some() {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(self.refuse("(", format!("at most {DEPTH_MAX} parentheses"), "leave some out"));
            }
            let inner = self.sum()?;
            self.depth -= 1;
            return match self.take(&[')']) {
                Some(_) => Ok(inner),
                None => {
                    let found = self.peek().map_or("the end".to_string(), String::from);
                    Err(self.refuse(&found, ")".to_string(), "close the parenthesis"))
                }
            };
        }
        let rest = &self.text[self.at..];
        if next.is_ascii_digit() || next == '.' {
            let word = number_in(rest);
            let number: f64 = word
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .ok_or_else(|| self.refuse(word, "a finite number".to_string(), "for example 0.1 or 1e-3"))?;
            self.at += word.len();
            return Ok(Sums::of(number, Unit::default()));
        }
        if !(next.is_alphabetic() || next == '_') {
            return Err(self.refuse_next(next, allowed));
        }
        let end = rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let word = &rest[..end.unwrap_or(rest.len())];
        let named = self.named(word)?;
        self.at += word.len();
        Ok(named)
    }

    fn named(&self, word: &str) -> Result<Sums, Problem> {
        if let Some(place) = SUMS.iter().position(|sum| sum.name == word) {
            return Ok(Sums::summed(Summed::Known(place), SUMS[place].unit));
        }
        if let Some(place) = TOTALS.iter().position(|total| total.name == word) {
            let mut total = Sums::of(1.0, TOTALS[place].unit);
            total.products[0].totals[place] = 1;
            return Ok(total);
        }
        if let Some(place) = registry::place_of(word) {
            return Ok(Sums::summed(Summed::Own(place), Unit::default()));
        }
        if let Some(term) = TERMS.iter().find(|term| term.name == word) {
            return Ok(Expression::parse(term.text)?.sums);
        }
        let own = registry::own().iter().map(|own| own.name.as_str());
        let known: Vec<&str> = names().into_iter().chain(own).collect();
        let nearest = pleach_scheduler::heuristics::nearest_of(&known, word).unwrap_or("jct");
        Err(self.refuse(word, known.join(", "), &format!("did you mean {nearest}?")))
    }
}

/// The number at the beginning of a text, with its exponent.
fn number_in(rest: &str) -> &str {
    let bytes = rest.as_bytes();
    let mut end = 0;
    while let Some(letter) = bytes.get(end) {
        let is_sign = matches!(letter, b'+' | b'-') && matches!(bytes[..end].last(), Some(b'e' | b'E'));
        let is_exponent =
            matches!(letter, b'e' | b'E') && matches!(bytes.get(end + 1), Some(b'0'..=b'9' | b'+' | b'-'));
        if !(letter.is_ascii_digit() || *letter == b'.' || is_exponent || is_sign) {
            break;
        }
        end += 1;
    }
    &rest[..end]
}

impl Sums {
    fn of(number: f64, unit: Unit) -> Sums {
        let product = Product {
            number,
            totals: [0; TOTALS.len()],
            summed: None,
        };
        Sums {
            unit,
            products: vec![product],
        }
    }

    fn summed(summed: Summed, unit: Unit) -> Sums {
        let mut sums = Sums::of(1.0, unit);
        sums.products[0].summed = Some(summed);
        sums
    }

    fn scale(&mut self, factor: f64) {
        for product in &mut self.products {
            product.number *= factor;
        }
    }

    fn times(&self, other: &Sums) -> Result<Sums, &'static str> {
        let mut products = Vec::new();
        for a in &self.products {
            for b in &other.products {
                if a.summed.is_some() && b.summed.is_some() {
                    return Err("one sum over time in a product");
                }
                products.push(a.with(b, 1));
            }
        }
        if products.len() > TERMS_MAX {
            return Err("at most 64 terms");
        }
        Ok(Sums {
            unit: self.unit.times(other.unit, 1),
            products,
        })
    }

    fn over(&self, other: &Sums) -> Result<Sums, &'static str> {
        let [below] = other.products.as_slice() else {
            return Err("one number or total below the line");
        };
        if below.summed.is_some() || below.number == 0.0 {
            return Err("a number other than 0 or a total below the line");
        }
        Ok(Sums {
            unit: self.unit.times(other.unit, -1),
            products: self.products.iter().map(|above| above.with(below, -1)).collect(),
        })
    }
}

impl Product {
    /// The product; with `sign` -1 the quotient.
    fn with(&self, other: &Product, sign: i8) -> Product {
        let power =
            |place: usize| self.totals[place].saturating_add(other.totals[place].saturating_mul(sign));
        Product {
            number: if sign > 0 {
                self.number * other.number
            } else {
                self.number / other.number
            },
            totals: std::array::from_fn(power),
            summed: self.summed.or(other.summed),
        }
    }
}
