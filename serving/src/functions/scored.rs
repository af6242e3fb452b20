//! A dispatcher that scores the columns of each choice: a tree with its weights, or any other scorer of [`SCHEMA`].

use pleach_scheduler::tree::Tree;
use pleach_scheduler::{Problem, Scorer};

use super::columns::{ROW_WIDTH, SCHEMA, Short, Table, short};
use super::engine::Dispatcher;
use super::state::State;
use crate::scoring::Scoring;

/// Does what has the highest score, again and again until that is to wait or nothing fits; among equal ones the least
/// weighted sum of the tree's features, then the first queue.
pub struct ScorerDispatcher {
    scoring: Scoring,
    short: Short,
    table: Table,
}

impl ScorerDispatcher {
    /// Over the columns of [`SCHEMA`].
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn new(scorer: Box<dyn Scorer>) -> Result<ScorerDispatcher, Problem> {
        Scoring::new("dispatcher", scorer, &SCHEMA).map(ScorerDispatcher::of)
    }

    /// A scorer with the weights of a tree's key.
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn keyed(scorer: Box<dyn Scorer>, tree: &Tree) -> Result<ScorerDispatcher, Problem> {
        Scoring::keyed("dispatcher", scorer, tree, &SCHEMA).map(ScorerDispatcher::of)
    }

    fn of(scoring: Scoring) -> ScorerDispatcher {
        ScorerDispatcher {
            scoring,
            short: Short::new(),
            table: Table::new(),
        }
    }
}

impl Dispatcher for ScorerDispatcher {
    fn pass(&mut self, state: &mut State<'_>) -> Result<(), Problem> {
        if self.short.is_empty() {
            self.short = short(state.work());
        }
        loop {
            self.table.write(state, &self.short);
            if self.table.choices.is_empty() {
                return Ok(());
            }
            let first = self
                .scoring
                .first((&self.table.rows, ROW_WIDTH), &self.table.context, |_| 0)?;
            if !self.table.choices[first].take(state) {
                return Ok(());
            }
        }
    }
}
