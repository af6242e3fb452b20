//! A scheduler that scores the columns of each request: a tree with its weights, or any other scorer of [`SCHEMA`].

use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::tree::{FlatTree, Tree};
use pleach_scheduler::{ConfigError, PolicyError, Rows, Scorer};

use crate::layers::columns::{self, ROW_WIDTH, SCHEMA};
use crate::layers::policy::{Queue, Scheduler};

/// Runs the request of the highest score; among equal ones that of the least weighted sum of features, then the oldest.
pub struct ScorerLayers {
    scorer: Box<dyn Scorer>,
    weights: Vec<KeyWeight>,
    rows: Vec<f32>,
    context: Vec<f32>,
    mask: Vec<bool>,
    scores: Vec<f32>,
}

impl ScorerLayers {
    /// Over the columns of [`SCHEMA`].
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn new(scorer: Box<dyn Scorer>) -> Result<ScorerLayers, ConfigError> {
        if scorer.schema() != &SCHEMA {
            let hint = "Take a policy that was made for layers.";
            return Err(ConfigError::new(
                "scheduler",
                scorer.schema().name,
                SCHEMA.name,
                hint,
            ));
        }
        Ok(ScorerLayers {
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
    pub fn of_tree(tree: &Tree) -> Result<ScorerLayers, ConfigError> {
        let mut scheduler = ScorerLayers::new(Box::new(FlatTree::of(tree)))?;
        scheduler.weights.clone_from(&tree.meta().key_weights);
        Ok(scheduler)
    }

    fn first(&mut self, queue: &Queue<'_>) -> Result<usize, PolicyError> {
        columns::write(queue, &mut self.rows, &mut self.context);
        let num = queue.waiting.len();
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
        let mut best = (f32::NEG_INFINITY, f64::INFINITY, 0);
        for place in 0..num {
            let score = self.scores[place];
            if score < best.0 {
                continue;
            }
            let sum = self.weighted_sum(rows.row(place));
            if score > best.0 || sum < best.1 {
                best = (score, sum, place);
            }
        }
        Ok(best.2)
    }

    fn weighted_sum(&self, row: &[f32]) -> f64 {
        self.weights.iter().fold(0.0, |sum, term| {
            let value = row[SCHEMA.place(usize::from(term.feature))];
            sum + f64::from(term.weight) * f64::from(value)
        })
    }
}

impl Scheduler for ScorerLayers {
    fn choose(&mut self, queue: &mut Queue<'_>) -> Result<usize, ConfigError> {
        self.first(queue)
            .map_err(|error| ConfigError::new("scheduler", error, "finite scores", "Take another one."))
    }
}
