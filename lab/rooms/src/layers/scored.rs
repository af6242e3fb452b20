//! A scheduler that scores the columns of each request: a tree with its weights, or any other scorer of [`SCHEMA`].

use pleach_scheduler::tree::{FlatTree, Tree};
use pleach_scheduler::{Problem, Scorer};

use crate::layers::columns::{self, ROW_WIDTH, SCHEMA};
use crate::layers::policy::{Queue, Scheduler};
use pleach_serving::scoring::Scoring;

/// Runs the request of the highest score; among equal ones that of the least weighted sum of features, then the oldest.
pub struct ScorerLayers {
    scoring: Scoring,
    rows: Vec<f32>,
    context: Vec<f32>,
}

impl ScorerLayers {
    /// Over the columns of [`SCHEMA`].
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn new(scorer: Box<dyn Scorer>) -> Result<ScorerLayers, Problem> {
        Scoring::new("scheduler", scorer, &SCHEMA).map(ScorerLayers::of)
    }

    /// A tree with the weights of its key.
    ///
    /// # Errors
    /// A tree of other columns.
    pub fn of_tree(tree: &Tree) -> Result<ScorerLayers, Problem> {
        Scoring::keyed("scheduler", Box::new(FlatTree::of(tree)), tree, &SCHEMA).map(ScorerLayers::of)
    }

    fn of(scoring: Scoring) -> ScorerLayers {
        ScorerLayers {
            scoring,
            rows: Vec::new(),
            context: Vec::new(),
        }
    }
}

impl Scheduler for ScorerLayers {
    fn choose(&mut self, queue: &mut Queue<'_>) -> Result<usize, Problem> {
        columns::write(queue, &mut self.rows, &mut self.context);
        self.scoring.first((&self.rows, ROW_WIDTH), &self.context, |_| 0)
    }
}
