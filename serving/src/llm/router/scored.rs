//! A router that scores the columns of each choice: a tree with its weights, or any other scorer of [`SCHEMA`].

use pleach_scheduler::tree::{FlatTree, Tree};
use pleach_scheduler::{Problem, Scorer};

use super::{Decision, Router};
use crate::llm::columns::{self, ROW_WIDTH, SCHEMA};
use crate::scoring::Scoring;

/// Chooses the highest score; among equal ones the least weighted sum of the tree's features, then the replica that was sent to
/// longest ago, and refusing last.
pub struct ScorerRouter {
    scoring: Scoring,
    rows: Vec<f32>,
    context: Vec<f32>,
}

impl ScorerRouter {
    /// Over the columns of [`SCHEMA`].
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn new(scorer: Box<dyn Scorer>) -> Result<ScorerRouter, Problem> {
        Scoring::new("router", scorer, &SCHEMA).map(ScorerRouter::of)
    }

    /// A tree with the weights of its key.
    ///
    /// # Errors
    /// A tree of other columns.
    pub fn of_tree(tree: &Tree) -> Result<ScorerRouter, Problem> {
        ScorerRouter::keyed(Box::new(FlatTree::of(tree)), tree)
    }

    /// A scorer with the weights of a tree's key.
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn keyed(scorer: Box<dyn Scorer>, tree: &Tree) -> Result<ScorerRouter, Problem> {
        Scoring::keyed("router", scorer, tree, &SCHEMA).map(ScorerRouter::of)
    }

    fn of(scoring: Scoring) -> ScorerRouter {
        ScorerRouter {
            scoring,
            rows: Vec::new(),
            context: Vec::new(),
        }
    }
}

impl Router for ScorerRouter {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        columns::write(decision, &mut self.rows, &mut self.context);
        let turn = |choice: usize| decision.sent.get(choice).map_or(u64::MAX, |sent| sent.last);
        let first = self.scoring.first((&self.rows, ROW_WIDTH), &self.context, turn)?;
        Ok((first < decision.facts.len()).then_some(first))
    }
}
