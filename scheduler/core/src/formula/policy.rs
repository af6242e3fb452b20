//! A formula that decides, and why it decided so.

use super::ScoreFormula;
use super::expression::{Expression, Operation};
use super::postfix::Postfix;
use crate::error::PolicyError;
use crate::features::{ColumnSet, FeatureSchema};
use crate::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use crate::rows::{Rows, Scorer};
use crate::tree::quantity;

/// A formula ready to score. Allocates nothing per decision.
#[derive(Clone, Debug)]
pub struct FormulaPolicy {
    formula: ScoreFormula,
    postfix: Postfix,
    /// Columns that it needs of a row and of the context.
    widths: (usize, usize),
    /// Columns that it asks for.
    columns: ColumnSet,
}

impl FormulaPolicy {
    /// Makes a formula ready to run.
    #[must_use]
    pub fn new(formula: ScoreFormula) -> FormulaPolicy {
        let schema = FeatureSchema::current();
        let last = formula.expression.reads().last().copied().unwrap_or(0);
        FormulaPolicy {
            postfix: Postfix::of(schema, &formula.expression),
            widths: schema.widths(schema.width_to(last.into())),
            columns: ColumnSet::ALL,
            formula,
        }
    }

    /// The same, which asks for no columns but those that it reads: for simulations by the thousand. It decides alike. One with guards
    /// asks for all, because those read more.
    #[must_use]
    pub fn sparing(mut self) -> FormulaPolicy {
        if self.formula.guards.is_none() {
            self.columns = self
                .formula
                .expression
                .reads()
                .into_iter()
                .map(usize::from)
                .collect();
        }
        self
    }

    /// The formula.
    #[must_use]
    pub fn formula(&self) -> &ScoreFormula {
        &self.formula
    }

    /// The score of one row with its context; both have all columns that are read. Hold is the caller's.
    #[must_use]
    #[inline]
    pub fn score_of(&self, row: &[f32], context: &[f32]) -> f32 {
        self.postfix.value(row, context) as f32
    }

    fn check(&self, rows: &Rows<'_>, num_rows: usize) -> Result<(), PolicyError> {
        let (num_row, num_context) = self.widths;
        let wanted = num_rows * rows.width.max(num_row);
        for (expected, found) in [(wanted, rows.rows.len()), (num_context, rows.context.len())] {
            if found < expected {
                return Err(PolicyError::Shape { expected, found });
            }
        }
        Ok(())
    }
}

impl Scorer for FormulaPolicy {
    fn schema(&self) -> &'static FeatureSchema {
        FeatureSchema::current()
    }

    /// Row 0 is hold, which scores 0.
    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.check(&rows, scores.len())?;
        for (index, score) in scores.iter_mut().enumerate() {
            *score = match index {
                0 => 0.0,
                _ => self.score_of(rows.row(index), rows.context),
            };
        }
        Ok(())
    }
}

impl Policy for FormulaPolicy {
    fn name(&self) -> &str {
        "formula"
    }

    fn needs(&self) -> Needs {
        Needs {
            columns: self.columns,
            ..self.formula.needs
        }
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule {
            tie_key: self.formula.tie_key,
            guards: self.formula.guards,
            ..ChoiceRule::PLAIN
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.score_rows(point.observation.as_rows(), scores)
    }

    fn reason(&self, point: DecisionPoint<'_>, choice: usize) -> Option<String> {
        if choice == 0 {
            return Some("score 0, as hold always has".into());
        }
        let (row, context) = (point.observation.row(choice), point.observation.global);
        let schema = FeatureSchema::current();
        let value = |part: &Expression| Postfix::of(schema, part).value(row, context);
        let mut lines = vec![format!("score {}", self.score_of(row, context))];
        let mut at = &self.formula.expression;
        while let Expression::Choice(of) = at {
            let holds = value(&of[0]) != 0.0;
            let word = if holds { "holds" } else { "does not hold" };
            lines.push(format!("{} {word}", of[0].text(schema)));
            at = if holds { &of[1] } else { &of[2] };
        }
        lines.push(format!("score = {}", at.text(schema)));
        for number in self.formula.expression.reads() {
            let feature = &schema.features[usize::from(number)];
            let own = quantity(value(&Expression::Column(number)), feature.unit);
            lines.push(format!("{} is {own}", feature.name));
        }
        // What adds up, the largest first.
        let mut terms = Vec::new();
        summands(at, 1.0, &mut |part, sign| {
            terms.push((sign * value(part), part.text(schema)))
        });
        terms.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        if terms.len() > 1 {
            lines.extend(
                terms
                    .into_iter()
                    .map(|(adds, text)| format!("{text} adds {adds:.3}")),
            );
        }
        Some(lines.join("\n"))
    }
}

/// Shows each term of a sum with its sign.
fn summands<'a>(at: &'a Expression, sign: f64, show: &mut impl FnMut(&'a Expression, f64)) {
    match at {
        Expression::Two(operation @ (Operation::Add | Operation::Subtract), of) => {
            summands(&of[0], sign, show);
            summands(
                &of[1],
                if *operation == Operation::Add { sign } else { -sign },
                show,
            );
        }
        Expression::One(Operation::Negate, of) => summands(of, -sign, show),
        _ => show(at, sign),
    }
}
