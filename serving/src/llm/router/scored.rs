//! A router that scores the columns of each choice: a tree with its weights, or any other scorer of [`SCHEMA`].

use pleach_scheduler::tree::{FlatTree, Tree};
use pleach_scheduler::{ConfigError, PolicyError, Rows, Scorer};

use super::{Decision, Router};
use crate::llm::columns::{self, ROW_WIDTH, SCHEMA};

/// Chooses the highest score; among equal ones the least weighted sum of the tree's features, then the replica that was sent to
/// longest ago, and refusing last.
pub struct ScorerRouter {
    scorer: Box<dyn Scorer>,
    /// Places in a row and their weights.
    weights: Vec<(usize, f64)>,
    rows: Vec<f32>,
    context: Vec<f32>,
    mask: Vec<bool>,
    scores: Vec<f32>,
}

impl ScorerRouter {
    /// Over the columns of [`SCHEMA`].
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn new(scorer: Box<dyn Scorer>) -> Result<ScorerRouter, ConfigError> {
        if scorer.schema() != &SCHEMA {
            let hint = "Take a policy that was made for requests.";
            return Err(ConfigError::new(
                "router",
                scorer.schema().name,
                SCHEMA.name,
                hint,
            ));
        }
        Ok(ScorerRouter {
            scorer,
            weights: Vec::new(),
            rows: Vec::new(),
            context: Vec::new(),
            mask: Vec::new(),
            scores: Vec::new(),
        })
    }

    /// A tree with the weights of its key.
    ///
    /// # Errors
    /// A tree of other columns.
    pub fn of_tree(tree: &Tree) -> Result<ScorerRouter, ConfigError> {
        let mut router = ScorerRouter::new(Box::new(FlatTree::of(tree)))?;
        let weights = tree.meta().key_weights.iter();
        router.weights = weights
            .map(|term| (SCHEMA.place(usize::from(term.feature)), f64::from(term.weight)))
            .collect();
        Ok(router)
    }

    /// Scores all choices, and says which comes first.
    fn first(&mut self, decision: &Decision<'_>) -> Result<usize, PolicyError> {
        columns::write(decision, &mut self.rows, &mut self.context);
        let num = self.rows.len() / ROW_WIDTH;
        self.mask.clear();
        self.mask.resize(num, true);
        self.scores.clear();
        self.scores.resize(num, 0.0);
        let rows = Rows {
            schema: &SCHEMA,
            rows: &self.rows,
            width: ROW_WIDTH,
            context: &self.context,
            mask: &self.mask,
        };
        self.scorer.score_rows(rows, &mut self.scores)?;
        PolicyError::check_finite(&self.scores)?;
        let mut best = (f32::NEG_INFINITY, f64::INFINITY, u64::MAX, 0);
        for choice in 0..num {
            let score = self.scores[choice];
            if score < best.0 {
                continue;
            }
            let sum = self.weighted_sum(rows.row(choice));
            let turn = decision.sent.get(choice).map_or(u64::MAX, |sent| sent.last);
            if score > best.0 || sum < best.1 || (sum == best.1 && turn < best.2) {
                best = (score, sum, turn, choice);
            }
        }
        Ok(best.3)
    }

    fn weighted_sum(&self, row: &[f32]) -> f64 {
        let terms = self.weights.iter();
        terms.fold(0.0, |sum, (place, weight)| sum + weight * f64::from(row[*place]))
    }
}

impl Router for ScorerRouter {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, ConfigError> {
        let first = self.first(decision);
        let first =
            first.map_err(|error| ConfigError::new("router", error, "finite scores", "Take another one."))?;
        Ok((first < decision.facts.len()).then_some(first))
    }
}
