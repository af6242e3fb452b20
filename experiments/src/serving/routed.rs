//! Requests to language models as a game: what a router may read, how a list is played, and what it loses.

use pleach_scheduler::Scorer;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::Tree;
use pleach_serving::llm::{Fleet, Outcome, ROUTING_2, Requests, SCHEMA, ScorerRouter, simulate};

use super::race::{Game, Loss};
use crate::error::Error;

/// A fleet whose router may not read some columns.
pub(super) struct Routed<'a> {
    pub fleet: &'a Fleet,
    pub without: Vec<u16>,
}

impl Game for Routed<'_> {
    type List = Requests;

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&SCHEMA, ROUTING_2)
    }

    fn without(&self) -> &[u16] {
        &self.without
    }

    fn play(&self, list: &Requests, scorer: Box<dyn Scorer>) -> Result<Loss, Error> {
        let outcome = simulate(list, self.fleet, &mut ScorerRouter::new(scorer)?)?;
        Ok(loss(&outcome, self.fleet))
    }

    fn play_tree(&self, list: &Requests, tree: &Tree) -> Result<Loss, Error> {
        let outcome = simulate(list, self.fleet, &mut ScorerRouter::of_tree(tree)?)?;
        Ok(loss(&outcome, self.fleet))
    }
}

/// Misses, and the 99th percentile of the time to the first token.
pub(super) fn loss(outcome: &Outcome, fleet: &Fleet) -> Loss {
    let p99_s = outcome.quantile(0.99, |served| served.ttft_s);
    Loss {
        misses: 1.0 - outcome.hit_share(fleet.targets),
        // A long one where nobody was served.
        tail_s: if p99_s.is_finite() { p99_s } else { 1e6 },
    }
}
