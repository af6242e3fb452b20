//! What a search consists of: its state between two batches, how the caller takes part, and what stays the same.

use std::collections::BTreeMap;

use pleach_scheduler::Problem;
use pleach_scheduler::tree::{TreeError, TreeMeta, TreePolicy};
use serde::{Deserialize, Serialize};

use super::archive::{Archive, Entry};
use super::config::{Outcome, SearchConfig};
use super::draft::Draft;
use super::moves::{Move, changed};
use super::rows::Rows;
use super::standing::Standing;
use crate::error::Error;

/// What a start may be behind the best one in the objective, on the lists of the first rung: with four parts, a tenth of average
/// JCT on each. Where queues build up bad trees are the slowest to simulate, and so are their children. *Assumed*.
const START_BEHIND_MAX: f64 = 1.0;

/// Form of a kept state.
pub const STATE_SCHEMA: u32 = 1;

/// A search between two batches: all that is needed to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchState {
    /// [`STATE_SCHEMA`].
    pub schema: u32,
    /// Batches that are done.
    pub batch: u64,
    /// Lists that were simulated, to their ends or until a tree was out of its race.
    pub simulations: u64,
    /// The trees that are kept.
    pub archive: Archive,
    /// The best of the starts: what a searched tree has to beat.
    pub best_start: Entry,
    /// Of each move: children that it took part in, and those of them that were kept.
    pub moves: BTreeMap<Move, [u64; 2]>,
}

impl SearchState {
    /// Refuses a state that is not one of such a search.
    ///
    /// # Errors
    /// Another schema, or trees that were judged on another number of lists.
    pub fn check(&self, config: &SearchConfig) -> Result<(), Problem> {
        let lists = config.num_lists();
        let of_lists = |entry: &Entry| entry.outcomes.len() == lists && entry.draft.root.num_leaves() >= 1;
        let entries = || self.archive.entries().chain([&self.best_start]);
        Problem::refuse_if(
            !(self.schema == STATE_SCHEMA && self.archive.is_whole() && entries().all(of_lists)),
            "search.state",
            format_args!("schema {}, {} trees", self.schema, self.archive.num_entries()),
            format_args!("schema {STATE_SCHEMA}, trees of one size together, each judged on {lists} lists"),
            "remove the file of the state: the search then begins anew",
        )
    }
}

/// What the judge is asked: the trees, and which of them is to be run on which list of jobs.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The trees.
    pub trees: &'a [TreePolicy],
    /// (place of the tree, number of the list), to be answered in this order.
    pub runs: &'a [(usize, usize)],
    /// In a race: when a run may be broken off and answered with [`Outcome::BROKEN_OFF`]. A judge that does not ask runs
    /// everything to its end and finds the same.
    pub standing: Option<&'a Standing<'a>>,
}

/// How the caller takes part in a search.
pub struct Caller<'a, E> {
    /// Runs trees on lists of jobs. List `i` is of part `i % num_parts`, the same list each time.
    pub judge: &'a mut dyn FnMut(Question<'_>) -> Result<Vec<Outcome>, E>,
    /// Called with the state after each batch; to keep it, say.
    pub keep: &'a mut dyn FnMut(&SearchState) -> Result<(), E>,
}

/// What stays the same during a search.
pub(super) struct Field<'a> {
    pub(super) meta: &'a TreeMeta,
    pub(super) rows: &'a Rows,
    pub(super) config: &'a SearchConfig,
}

/// A changed tree and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) draft: Draft,
    pub(super) origin: String,
    pub(super) moves: Vec<Move>,
}

impl Field<'_> {
    fn policy(&self, draft: &Draft) -> Result<TreePolicy, TreeError> {
        Ok(TreePolicy::new(draft.tree(self.meta, self.rows)?))
    }

    /// Runs drafts on lists `from..to`. The outcomes of each, in order; in a race those of trees that are out may be broken off.
    pub(super) fn judged<E>(
        &self,
        drafts: &[&Draft],
        lists: std::ops::Range<usize>,
        standing: Option<&Standing<'_>>,
        caller: &mut Caller<'_, E>,
    ) -> Result<Vec<Vec<Outcome>>, Error<E>> {
        let trees: Vec<TreePolicy> = drafts
            .iter()
            .map(|draft| self.policy(draft))
            .collect::<Result<_, _>>()?;
        let runs: Vec<(usize, usize)> = (0..trees.len())
            .flat_map(|tree| lists.clone().map(move |list| (tree, list)))
            .collect();
        let question = Question {
            trees: &trees,
            runs: &runs,
            standing,
        };
        let outcomes = (caller.judge)(question).map_err(Error::Caller)?;
        for (outcome, (tree, _)) in outcomes.iter().zip(&runs) {
            let is_broken_off = standing.is_some() && *outcome == Outcome::BROKEN_OFF;
            if !(is_broken_off || outcome.ln_jct.is_finite() && outcome.ln_p99.is_finite()) {
                return Err(Error::Judgement {
                    leaves: trees[*tree].tree().num_leaves(),
                    ratio: outcome.ln_jct,
                });
            }
        }
        let chunks = outcomes.chunks_exact(lists.len().max(1));
        Ok(chunks.map(<[Outcome]>::to_vec).collect())
    }

    /// The archive of the starts: all run on the first rung, the better ones that are not far behind on all lists.
    pub(super) fn begun<E>(
        &self,
        starts: Vec<(String, Draft)>,
        caller: &mut Caller<'_, E>,
    ) -> Result<SearchState, Error<E>> {
        let first = self.config.rungs.first().copied().unwrap_or(0);
        let lists = self.config.num_lists();
        let drafts: Vec<&Draft> = starts.iter().map(|(_, draft)| draft).collect();
        let on_first = self.judged(&drafts, 0..first, None, caller)?;
        let mut order: Vec<usize> = (0..starts.len()).collect();
        let objective = |place: &usize| self.config.objective(&on_first[*place]);
        order.sort_by(|a, b| objective(a).total_cmp(&objective(b)));
        order.truncate(self.config.starts);
        let least = order.first().map_or(0.0, objective);
        order.retain(|place| objective(place) <= least + START_BEHIND_MAX);
        let drafts: Vec<&Draft> = order.iter().map(|place| &starts[*place].1).collect();
        let on_others = self.judged(&drafts, first..lists, None, caller)?;
        let simulations = (starts.len() * first + order.len() * (lists - first)) as u64;
        let mut archive = Archive::default();
        let mut best_start: Option<Entry> = None;
        for (place, others) in order.iter().zip(on_others) {
            let (origin, draft) = &starts[*place];
            let outcomes = [on_first[*place].clone(), others].concat();
            let entry = Entry {
                // As it was judged: what no recorded row comes to may be what its author meant for other days.
                draft: draft.clone().settled(&Rows::default()),
                origin: origin.clone(),
                objective: self.config.objective(&outcomes),
                outcomes,
            };
            if best_start
                .as_ref()
                .is_none_or(|best| entry.objective < best.objective)
            {
                best_start = Some(entry.clone());
            }
            archive.offer(entry, self.config.of_each_size);
        }
        let best_start = best_start.ok_or_else(|| {
            Problem::new(
                "search.starts",
                "none",
                "at least one tree",
                "hand rules are there for every cluster",
            )
        })?;
        Ok(SearchState {
            schema: STATE_SCHEMA,
            batch: 0,
            simulations,
            archive,
            best_start,
            moves: BTreeMap::new(),
        })
    }

    /// One batch of children, no two alike and none like what is kept.
    pub(super) fn children(&self, archive: &Archive, rng: &mut rand_chacha::ChaCha8Rng) -> Vec<Child> {
        let mut children: Vec<Child> = Vec::new();
        for _ in 0..self.config.batch * 20 {
            if children.len() == self.config.batch {
                break;
            }
            let Some(parent) = archive.parent(rng) else { break };
            let Some((draft, moves)) = changed(&parent.draft, self.rows, self.config, rng) else {
                continue;
            };
            let is_known = archive.entries().any(|entry| entry.draft == draft)
                || children.iter().any(|child| child.draft == draft);
            if !is_known && self.policy(&draft).is_ok() {
                let origin = parent.origin.clone();
                children.push(Child { draft, origin, moves });
            }
        }
        children
    }
}
