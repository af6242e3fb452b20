//! A formula as a policy: the score of a candidate is an expression over its columns and those of the cluster and its queue.
//!
//! ```
//! use pleach_scheduler::formula::ScoreFormula;
//!
//! // Fast placements first, the shortest job first; slow ones only for what is soon over.
//! let text = "if speed_ratio > 0.8 then 40 - log1p(duration_s) else if duration_s < 3600 then 20 - log1p(duration_s) else -1";
//! let formula = ScoreFormula::of("mine", text)?;
//! assert_eq!(formula.text(), text);
//! let refused = ScoreFormula::of("mine", "wait_s + speed_ratio").unwrap_err().to_string();
//! assert!(refused.contains("one unit"), "{refused}");
//! # Ok::<(), pleach_scheduler::Problem>(())
//! ```
//!
//! *Hold* scores 0, so what scores above 0 is done, the largest first; equal scores go by the tie key. A [`ScoreFormula`] is valid by
//! construction, every score is finite whatever the columns hold, and its file is opened, sealed and run wherever a tree's is.
//!
//! # What is deliberately not here
//! Loops, memory, jobs other than through columns: a formula costs the same for every row. Searching for one
//! (`pleach-experiments`).
//!
//! # Source
//! Priority rules as evolved expressions: J. R. Koza, *Genetic Programming* (1992); for job shops Branke et al., *Automated Design of
//! Production Scheduling Heuristics* (IEEE TEVC 2016). The language and its definitions at the edges are ours.

mod bounds;
mod export;
#[cfg(test)]
mod export_tests;
mod expression;
mod file;
mod parse;
mod policy;
mod postfix;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use expression::{Expression, Kind, LARGEST, LEAST_DIVISOR, MAX_SYMBOLS, Operation};
pub use file::FORMULA_FORMAT;
pub use parse::parse;
pub use policy::FormulaPolicy;

use crate::actions::ActionSet;
use crate::cluster::Capabilities;
use crate::estimate::Provenance;
use crate::features::{FeatureSchema, Relation, RowKind, Stimulus};
use crate::guards::Guards;
use crate::ids::Time;
use crate::policy::{Needs, TieKey};
use crate::problem::Problem;
use crate::tree::{Certificate, Property, TreeError, Verdict, check, needs};
use bounds::ColumnRanges;
use postfix::{STACK, stack_of};

/// Jobs of each order that fit, and seconds between decisions, where a formula does not say. *Assumed*, as the rivals have them.
const FITTING: usize = 12;
const TICK_S: f64 = 600.0;

/// A formula with what it chooses among.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreFormula {
    expression: Expression,
    /// Name for tables and logs.
    pub name: String,
    needs: Needs,
    /// Order among equal scores.
    pub tie_key: TieKey,
    guards: Guards,
    /// Where the estimates came from that it was found with; empty = not known.
    pub estimates: Vec<Provenance>,
    /// What made it. Free; not read by the program.
    pub trained_by: BTreeMap<String, serde_json::Value>,
    certificates: Vec<Certificate>,
    is_sealed: bool,
}

/// A refusal of what trees and formulas share.
fn refused(error: TreeError) -> Problem {
    match error {
        TreeError::Value { key, value, allowed } => {
            Problem::new(key, value, allowed, "docs/policy-file.md says more.")
        }
        other => Problem::new("formula", "given", other, "docs/policy-file.md says more."),
    }
}

impl ScoreFormula {
    /// A formula from text, which chooses among the first twelve jobs of each order that fit, at each placement.
    ///
    /// # Errors
    /// As [`parse`] and [`ScoreFormula::new`].
    pub fn of(name: &str, text: &str) -> Result<ScoreFormula, Problem> {
        let expression = parse(FeatureSchema::current(), text)?;
        ScoreFormula::new(name, expression, ScoreFormula::needs_by_default())
    }

    /// What a formula chooses among that does not say.
    #[must_use]
    pub fn needs_by_default() -> Needs {
        Needs {
            heads: 0,
            fitting: FITTING,
            actions: ActionSet::NONE,
            tick: Some(Time::from_secs_f64(TICK_S)),
            ..Needs::full()
        }
    }

    /// A formula that chooses among the candidates of these needs.
    ///
    /// # Errors
    /// An expression that means nothing or is too large, a name or needs that no file could have.
    pub fn new(name: &str, expression: Expression, needs: Needs) -> Result<ScoreFormula, Problem> {
        let schema = FeatureSchema::current();
        check::name(name).map_err(refused)?;
        needs::check(&needs).map_err(refused)?;
        let symbols = expression.num_symbols();
        let depth = stack_of(&expression);
        Problem::refuse_if(
            symbols > MAX_SYMBOLS || depth > STACK,
            "score",
            format_args!("{symbols} symbols, {depth} values at once"),
            format_args!("at most {MAX_SYMBOLS} symbols and {STACK} values at once"),
            "Shorten it.",
        )?;
        let allowed = match expression.kind(schema) {
            Ok(Kind::Number(_)) => None,
            Ok(Kind::Truth) => Some("a number, and this is a truth".to_owned()),
            Err(reason) => Some(reason),
        };
        if let Some(allowed) = allowed {
            let text: String = expression.text(schema).chars().take(80).collect();
            return Err(Problem::new(
                "score",
                text,
                allowed,
                "docs/formulas.md has the language.",
            ));
        }
        Ok(ScoreFormula {
            expression,
            name: name.to_owned(),
            needs: Needs {
                observation: true,
                ..needs
            },
            tie_key: TieKey::Index,
            guards: Guards::NONE,
            estimates: Vec::new(),
            trained_by: BTreeMap::new(),
            certificates: Vec::new(),
            is_sealed: false,
        })
    }

    /// The expression.
    #[must_use]
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// One line of mathematics.
    #[must_use]
    pub fn text(&self) -> String {
        self.expression.text(FeatureSchema::current())
    }

    /// What it chooses among.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// What it may not do, whatever it scores.
    #[must_use]
    pub fn guards(&self) -> Guards {
        self.guards
    }

    /// The same formula under these guards; what was proved of it is of its scores and stays.
    ///
    /// # Errors
    /// A guard that is out of range, or that asks for what it does not choose among.
    pub fn with_guards(self, guards: Guards) -> Result<ScoreFormula, Problem> {
        check::guards(guards, &self.needs).map_err(refused)?;
        Ok(ScoreFormula { guards, ..self })
    }

    /// Whether a cluster can do what it may choose.
    ///
    /// # Errors
    /// The first capability that is missing, in words.
    pub fn check_against(&self, policy: &str, capabilities: Capabilities) -> Result<(), TreeError> {
        needs::check_against(&self.needs, policy, capabilities)
    }

    /// What is known of it for certain, as far as its file says.
    #[must_use]
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// The same with certificates and golden rows in its file, which every reader checks.
    #[must_use]
    pub fn sealed(mut self) -> ScoreFormula {
        self.certificates = self.certify();
        self.is_sealed = true;
        self
    }

    /// The kinds of rows that it scores.
    fn kinds(&self) -> impl Iterator<Item = (usize, &'static RowKind)> {
        let kinds = FeatureSchema::current().kinds.iter().enumerate();
        let actions = self.needs.actions;
        kinds.filter(move |(_, kind)| {
            kind.is_about_a_job && kind.action.is_none_or(|action| actions.contains(action))
        })
    }

    /// Whether a property holds, as far as intervals show it: proved or open; none of those that are of trees alone.
    #[must_use]
    pub fn verdict(&self, property: Property) -> Option<Verdict> {
        let schema = FeatureSchema::current();
        let stimulus = match property {
            Property::MonotoneInWaiting => Some(Stimulus::Waiting),
            Property::MonotoneInEstimate => Some(Stimulus::Estimate),
            Property::StartsBeforeHolding | Property::ScoresWithin { .. } => None,
            _ => return None,
        };
        let holds = |(kind, row): (usize, &RowKind)| {
            let ranges = ColumnRanges::of_kind(schema, kind);
            let found = ranges.range(&self.expression);
            match (property, stimulus) {
                (_, Some(stimulus)) => {
                    let moves = ranges.moves(&self.expression, stimulus);
                    !row.waits || matches!(moves, Relation::Equal | Relation::Up)
                }
                (Property::ScoresWithin { min, max }, _) => {
                    found.min as f32 >= min && found.max as f32 <= max
                }
                _ => row.action.is_some() || found.min >= 0.0,
            }
        };
        Some(match self.kinds().all(holds) {
            true => Verdict::Proved,
            false => Verdict::Open("intervals do not show it".into()),
        })
    }

    /// What intervals prove of it: bounds of its scores, and what is proved or open of waiting, estimates and holding.
    #[must_use]
    pub fn certify(&self) -> Vec<Certificate> {
        let schema = FeatureSchema::current();
        let ranges = self
            .kinds()
            .map(|(kind, _)| ColumnRanges::of_kind(schema, kind).range(&self.expression));
        let (min, max) = ranges.fold((f32::INFINITY, f32::NEG_INFINITY), |(min, max), range| {
            (min.min(range.min as f32), max.max(range.max as f32))
        });
        let all = [
            Property::ScoresWithin { min, max },
            Property::MonotoneInWaiting,
            Property::MonotoneInEstimate,
            Property::StartsBeforeHolding,
        ];
        let certificate = |property| {
            Some(Certificate {
                property,
                verdict: self.verdict(property)?,
            })
        };
        all.into_iter().filter_map(certificate).collect()
    }

    /// The formula for readers: the line, what it chooses by, what its columns mean, what is certain.
    #[must_use]
    pub fn in_words(&self) -> String {
        let schema = FeatureSchema::current();
        let mut text = format!("{}: score =\n  {}\n", self.name, self.text());
        text.push_str("What scores above 0 is done, the largest first; hold is 0.\n");
        for number in self.expression.reads() {
            let feature = &schema.features[usize::from(number)];
            let unit = if feature.unit.is_empty() {
                String::new()
            } else {
                format!(" [{}]", feature.unit)
            };
            text.push_str(&format!("{}{unit}: {}\n", feature.name, feature.doc));
        }
        for certificate in self.certify() {
            let word = match certificate.verdict {
                Verdict::Proved => "proved",
                _ => "open",
            };
            text.push_str(&format!("{word}: {}\n", certificate.property));
        }
        text
    }
}
