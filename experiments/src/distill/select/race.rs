//! The race: every change on a few shared lists, the better ones on more, the best on all; and the archive of the best by size.
//!
//! # Source
//! Racing on shared instances and successive halving, as in the search for trees (`pleach_distill::search`). What is made little is
//! the same too: [`SearchConfig::objective`](pleach_distill::search::SearchConfig::objective). The rungs and the parts that go on are
//! *assumed*.

use pleach_distill::search::{Outcome, SearchConfig};
use pleach_scheduler::selector::{Selector, SelectorPolicy};
use pleach_scheduler::{Planner, PolicyPlanner};

use crate::distill::parts::Lists;
use crate::error::Error;

/// Lists of each part, rung by rung.
const RUNGS: [usize; 4] = [1, 3, 9, 18];
/// Of how many runners one goes on to the next rung.
const ONE_OF: [usize; 3] = [6, 3, 2];
/// Selectors of each size that are kept, and that are changed for the next size.
const OF_EACH_SIZE: usize = 3;

/// A selector and what came of it on the first lists.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) selector: Selector,
    pub(super) outcomes: Vec<Outcome>,
    /// What is to be little.
    pub(super) objective: f64,
}

/// The lists of a race and what is kept of it.
pub(super) struct Race<'a> {
    lists: &'a Lists,
    config: &'a SearchConfig,
    /// By number of leaves, the best first; none at 0.
    sizes: Vec<Vec<Entry>>,
    /// Lists that were simulated.
    pub(super) simulations: u64,
}

/// Lists of each part that a race needs.
pub(super) const LISTS_OF_EACH: usize = RUNGS[RUNGS.len() - 1];

/// What it costs to race one change, lists for each part, all rungs together.
pub(super) fn cost_of_one() -> f64 {
    let (mut cost, mut share) = (RUNGS[0] as f64, 1.0);
    for (rung, one_of) in RUNGS.windows(2).zip(ONE_OF) {
        share /= one_of as f64;
        cost += share * (rung[1] - rung[0]) as f64;
    }
    cost
}

impl Race<'_> {
    pub(super) fn new<'a>(lists: &'a Lists, config: &'a SearchConfig) -> Race<'a> {
        Race {
            lists,
            config,
            sizes: Vec::new(),
            simulations: 0,
        }
    }

    /// The kept selectors of a size, the best first.
    pub(super) fn of_size(&self, leaves: usize) -> &[Entry] {
        self.sizes.get(leaves).map_or(&[], Vec::as_slice)
    }

    /// All kept selectors, small ones first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sizes.iter().flatten()
    }

    /// The best objective of all sizes.
    pub(super) fn best(&self) -> f64 {
        self.entries()
            .map(|entry| entry.objective)
            .fold(f64::INFINITY, f64::min)
    }

    /// Runs selectors to the end, whatever comes of them.
    pub(super) fn run_all(&mut self, selectors: Vec<Selector>) -> Result<(), Error> {
        self.halve(selectors, &[1; ONE_OF.len()])
    }

    /// Runs selectors on the first lists, the better ones on more.
    pub(super) fn run(&mut self, selectors: Vec<Selector>) -> Result<(), Error> {
        self.halve(selectors, &ONE_OF)
    }

    fn halve(&mut self, selectors: Vec<Selector>, one_of: &[usize]) -> Result<(), Error> {
        let num_parts = self.lists.parts.len();
        let mut runners: Vec<Entry> = selectors
            .into_iter()
            .map(|selector| Entry {
                selector,
                outcomes: Vec::new(),
                objective: 0.0,
            })
            .collect();
        let mut done = 0;
        for (rung, of_each) in RUNGS.into_iter().enumerate() {
            let until = of_each * num_parts;
            self.go_on(&mut runners, done..until)?;
            done = until;
            runners.sort_by(|a, b| a.objective.total_cmp(&b.objective));
            if let Some(one_of) = one_of.get(rung)
                && *one_of > 1
            {
                let kept = runners.len().div_ceil(*one_of);
                runners = self.distinct(runners);
                runners.truncate(kept);
            }
        }
        for entry in runners {
            self.offer(entry);
        }
        Ok(())
    }

    /// Runs all on more lists.
    fn go_on(&mut self, runners: &mut [Entry], lists: std::ops::Range<usize>) -> Result<(), Error> {
        let runs: Vec<(usize, usize)> = (0..runners.len())
            .flat_map(|place| lists.clone().map(move |list| (place, list)))
            .collect();
        let selectors: Vec<SelectorPolicy> = runners
            .iter()
            .map(|runner| SelectorPolicy::new(runner.selector.clone()))
            .collect();
        let planner =
            |place: usize| Ok(Box::new(PolicyPlanner::new(selectors[place].clone())) as Box<dyn Planner>);
        let outcomes = self.lists.outcomes(planner, &runs)?;
        self.simulations += runs.len() as u64;
        for (runner, own) in runners.iter_mut().zip(outcomes.chunks_exact(lists.len().max(1))) {
            runner.outcomes.extend_from_slice(own);
            runner.objective = self.config.objective(&runner.outcomes);
        }
        Ok(())
    }

    /// Without those that did what a better or kept selector of no more leaves did: their change changes nothing.
    fn distinct(&self, runners: Vec<Entry>) -> Vec<Entry> {
        let mut found: Vec<Entry> = Vec::new();
        for runner in runners {
            let is_again = found.iter().any(|other| other.outcomes == runner.outcomes);
            if !is_again && !self.has_done(&runner) {
                found.push(runner);
            }
        }
        found
    }

    fn has_done(&self, runner: &Entry) -> bool {
        let up_to = runner.selector.num_leaves();
        let smaller = self.sizes.iter().take(up_to + 1).flatten();
        let mut done = smaller.filter(|entry| entry.outcomes.starts_with(&runner.outcomes));
        done.next().is_some()
    }

    fn offer(&mut self, entry: Entry) {
        let leaves = entry.selector.num_leaves();
        if self.has_done(&entry) {
            return;
        }
        if self.sizes.len() <= leaves {
            self.sizes.resize(leaves + 1, Vec::new());
        }
        let kept = &mut self.sizes[leaves];
        let rank = kept.partition_point(|other| other.objective <= entry.objective);
        kept.insert(rank, entry);
        kept.truncate(OF_EACH_SIZE);
    }
}
