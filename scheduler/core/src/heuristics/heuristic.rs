//! What every heuristic is: a name, the candidates that it wants, and an order of them.

use std::fmt;
use std::sync::Arc;

use crate::error::PolicyError;
use crate::policy::{DecisionPoint, Needs, Policy};

/// Scores the candidates of a decision.
type Rank = dyn Fn(&DecisionPoint<'_>, &mut [f32]) + Send + Sync;

/// A heuristic.
#[derive(Clone)]
pub struct Heuristic {
    name: &'static str,
    needs: Needs,
    rank: Arc<Rank>,
}

impl Heuristic {
    pub(super) fn new(
        name: &'static str,
        needs: Needs,
        rank: impl Fn(&DecisionPoint<'_>, &mut [f32]) + Send + Sync + 'static,
    ) -> Heuristic {
        Heuristic {
            name,
            needs,
            rank: Arc::new(rank),
        }
    }
}

impl Policy for Heuristic {
    fn name(&self) -> &str {
        self.name
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        (self.rank)(&point, scores);
        Ok(())
    }
}

impl fmt::Debug for Heuristic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}
