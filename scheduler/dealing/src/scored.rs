//! An order that was learned: a tree, a network or whatever else scores rows gives all that may be dealt a score at once.
//!
//! A tree has few tiers, and its key orders the rows of one. A tier and a key make one score: no key is worth a tier.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::key_weight::{KeyWeight, weighted_sum};
use pleach_scheduler::tree::{FlatTree, Tree};
use pleach_scheduler::{GpuTypeId, JobId, PolicyError, Problem, Scorer};

use super::columns::deal_schema;
use super::facts::DealRows;
use super::order::{Ask, Order};
use super::rules::DealingRules;
use super::trust::Trust;

/// Keys of trees count up to here; larger ones are equal. *Ours*: the logarithms of a deal and weights of thousands come to less.
const KEY_MAX: f64 = 1e6;

/// The order of what scores rows.
pub struct ScoredOrder {
    rows: DealRows,
    scorer: Box<dyn Scorer>,
    /// The key of a tree and its tiers, the best first; none of others.
    key: Option<(Vec<KeyWeight>, Vec<f32>)>,
    scores: Vec<f32>,
    /// What it gave in its last deal, of an elastic job for its first GPUs.
    given: Vec<(JobId, GpuTypeId, f64)>,
}

impl std::fmt::Debug for ScoredOrder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ScoredOrder")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl ScoredOrder {
    /// The order of a scorer.
    ///
    /// # Errors
    /// One of other rows than a deal's.
    pub fn new(scorer: Box<dyn Scorer>) -> Result<ScoredOrder, Problem> {
        let (own, read) = (deal_schema(), scorer.schema());
        if own != read {
            let hint = "Train or search it with --workload deals.";
            return Err(Problem::contract("dealer", own.name, read.name, hint));
        }
        Ok(ScoredOrder {
            rows: DealRows::default(),
            scorer,
            key: None,
            scores: Vec::new(),
            given: Vec::new(),
        })
    }

    /// The order of a scorer that scores as a tree does, rows of a tier by its key.
    ///
    /// # Errors
    /// As [`ScoredOrder::new`].
    pub fn keyed(scorer: Box<dyn Scorer>, tree: &Tree) -> Result<ScoredOrder, Problem> {
        let key = Some((tree.meta().key_weights.clone(), tree.tiers()));
        Ok(ScoredOrder {
            key,
            ..ScoredOrder::new(scorer)?
        })
    }

    /// The order of a tree.
    ///
    /// # Errors
    /// As [`ScoredOrder::new`].
    pub fn tree(tree: &Tree) -> Result<ScoredOrder, Problem> {
        ScoredOrder::keyed(Box::new(FlatTree::of(tree)), tree)
    }

    /// The same with what is known of estimates: for one deal on tables in which no job has ended.
    #[must_use]
    pub fn trusting(mut self, trust: Trust) -> ScoredOrder {
        self.rows = self.rows.trusting(trust);
        self
    }
}

impl Order for ScoredOrder {
    fn look(&mut self, cluster: &Cluster, movable: &[JobId]) -> Result<(), PolicyError> {
        self.given.clear();
        self.rows.look(cluster, movable)
    }

    fn of_type(&self, _cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        // What is asked is in the order of jobs and types.
        let place = self
            .given
            .binary_search_by_key(&(id, kind), |given| (given.0, given.1));
        place.map_or(f64::NEG_INFINITY, |place| self.given[place].2)
    }

    fn scores(&mut self, cluster: &Cluster, asks: &[Ask]) -> Result<Vec<f64>, PolicyError> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.rows.of(cluster, asks);
        self.scores.clear();
        self.scores.resize(asks.len(), 0.0);
        self.scorer.score_rows(rows, &mut self.scores)?;
        let score = |(place, score): (usize, &f32)| match &self.key {
            None => f64::from(*score),
            Some((key, tiers)) => {
                let num_worse = tiers.iter().filter(|tier| *tier < score).count();
                let sum = weighted_sum(key, rows.row(place)).clamp(-KEY_MAX, KEY_MAX);
                4.0 * KEY_MAX * num_worse as f64 - sum
            }
        };
        let scores: Vec<f64> = self.scores.iter().enumerate().map(score).collect();
        let first = (0..scores.len())
            .rev()
            .max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        self.scorer.chose(first.unwrap_or(0));
        let firsts = asks.iter().zip(&scores).filter(|(ask, _)| ask.is_first());
        self.given
            .extend(firsts.map(|(ask, score)| (ask.job, ask.kind, *score)));
        Ok(scores)
    }
}

/// The rules by which what was learned deals: those of the reference formula.
///
/// # Errors
/// Not in practice: a test reads it.
pub fn scored_rules() -> Result<DealingRules, Problem> {
    Ok(super::reference_formula()?.rules)
}
