//! The best of some rows by a scorer, whatever they are about: the highest score, then the least weighted sum of a tree's key.

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::tree::Tree;
use pleach_scheduler::{PolicyError, Problem, Rows, Scorer};

/// A scorer with its key, and room to work in.
pub struct Scoring {
    /// Stands in errors.
    what: &'static str,
    scorer: Box<dyn Scorer>,
    /// Places in a row and their weights.
    weights: Vec<(usize, f64)>,
    mask: Vec<bool>,
    scores: Vec<f32>,
}

impl Scoring {
    /// # Errors
    /// A scorer of other columns; `what` stands in the error.
    pub fn new(
        what: &'static str,
        scorer: Box<dyn Scorer>,
        schema: &FeatureSchema,
    ) -> Result<Scoring, Problem> {
        Problem::refuse_if(
            scorer.schema() != schema,
            what,
            scorer.schema().name,
            schema.name,
            format_args!("Take a policy that was made for {}.", schema.name),
        )?;
        Ok(Scoring {
            what,
            scorer,
            weights: Vec::new(),
            mask: Vec::new(),
            scores: Vec::new(),
        })
    }

    /// A scorer with the weights of a tree's key.
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn keyed(
        what: &'static str,
        scorer: Box<dyn Scorer>,
        tree: &Tree,
        schema: &FeatureSchema,
    ) -> Result<Scoring, Problem> {
        let mut scoring = Scoring::new(what, scorer, schema)?;
        let weights = tree.meta().key_weights.iter();
        scoring.weights = weights
            .map(|term| (schema.place(usize::from(term.feature)), f64::from(term.weight)))
            .collect();
        Ok(scoring)
    }

    /// The best row; among those of equal score and sum the one with the least turn, then the first.
    ///
    /// # Errors
    /// Scores that are no numbers.
    pub fn first(
        &mut self,
        (rows, width): (&[f32], usize),
        context: &[f32],
        turn: impl Fn(usize) -> u64,
    ) -> Result<usize, Problem> {
        let schema = self.scorer.schema();
        let num = rows.len() / width;
        self.mask.clear();
        self.mask.resize(num, true);
        self.scores.clear();
        self.scores.resize(num, 0.0);
        let rows = Rows {
            schema,
            rows,
            width,
            context,
            mask: &self.mask,
        };
        let scored = self.scorer.score_rows(rows, &mut self.scores);
        scored
            .and_then(|()| PolicyError::check_finite(&self.scores))
            .map_err(|error| Problem::new(self.what, error, "finite scores", "Take another one."))?;
        let mut best = (f32::NEG_INFINITY, f64::INFINITY, u64::MAX, 0);
        for choice in 0..num {
            let score = self.scores[choice];
            if score < best.0 {
                continue;
            }
            let sum = self.weighted_sum(rows.row(choice));
            let turn = turn(choice);
            if score > best.0 || sum < best.1 || (sum == best.1 && turn < best.2) {
                best = (score, sum, turn, choice);
            }
        }
        self.scorer.chose(best.3);
        Ok(best.3)
    }

    fn weighted_sum(&self, row: &[f32]) -> f64 {
        let terms = self.weights.iter();
        terms.fold(0.0, |sum, (place, weight)| sum + weight * f64::from(row[*place]))
    }
}
