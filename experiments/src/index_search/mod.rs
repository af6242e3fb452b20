//! Learning a linear index: evolution over the weights of a [`Formula`], judged on whole lists of several kinds and loads.
//!
//! A candidate's loss on a list is the logarithm of its average JCT over that of the formula that the search begins with, and a
//! part of what its p99 JCT is longer by ([`crate::judge`]). Lists come in parts, a kind at a load in a condition. Where a kind is
//! lost in a condition, in the mean over its loads, that loss counts again, so that a gain here does not pay for a loss there.
//! Every generation meets other lists, the same for all its candidates. The centre of the distribution is judged now and then on
//! validation lists that no generation meets; the best of those is kept, if it is better than the beginning. What it is worth is
//! said by lists of their own, against the strongest rule of each kind.

mod cma;
mod encoding;
mod lists;

pub use cma::SepCma;
pub use encoding::Encoding;

use std::collections::BTreeMap;

use pleach_dealing::{DealingConfig, Formula, index_planner};
use pleach_distill::search::Outcome;
use pleach_env::{Seed, SimConfig, Split};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{ActionKind, ActionSet};
use rayon::prelude::*;

use crate::error::Error;
use crate::evaluate::condition::Condition;
use crate::evaluate::instances::Instance;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::workload_source::WorkloadSource;
use crate::index_search::lists::Drawn;
use crate::judge::{Acceptance, Lists, Rivals};
use crate::progress::Watcher;
use crate::twin::doubt;

/// Lists of each kind in each condition on which the result is judged. *Assumed.*
const JUDGE_LISTS: usize = 12;
/// Kinds of jobs that a formula is searched on unless others are named.
const KINDS: [&str; 6] = [
    "Pleach/Philly-v0",
    "helios-like",
    "gavel-multi",
    "sia-philly",
    "pollux",
    "acme-like",
];

settings! {
    /// How a formula is searched for.
    #[derive(Clone, Debug, PartialEq)]
    pub struct IndexSearch {
        /// Kinds of jobs, by preset or environment, and lists of one's own, by file.
        pub kinds: Vec<String> = KINDS.map(str::to_string).to_vec();
        /// Offered loads of generated lists.
        pub loads: Vec<f64> = vec![0.3, 0.6, 1.2, 2.0];
        /// Offered loads of lists of one's own; empty: as they are.
        pub loads_of_files: Vec<f64>;
        /// How lists of one's own are read, and on which cluster lists are played; its names, jobs and load are not looked at.
        pub source: WorkloadSource;
        /// What is known and what stopping costs.
        pub conditions: Vec<Condition> = vec![Condition::Ideal, Condition::Realistic];
        /// The same in the words of an evaluation, in place of one condition.
        pub scheduling: Option<SchedulingConfig>;
        /// Jobs of a list.
        pub num_jobs: u32 = 200, in 1..;
        /// Generations, 1 to 100,000.
        pub generations: u32 = 90, in 1..=100_000;
        /// Candidates of a generation, 4 to 1,000.
        pub population: usize = 16, in 4..=1_000;
        /// Lists of a generation, 1 to 1,000.
        pub lists: usize = 8, in 1..=1_000;
        /// Generations from one look at the validation lists to the next.
        pub validate_every: u32 = 10, in 1..;
        /// Validation lists of each kind and load.
        pub validation_lists: usize = 2, in 1..=1_000;
        /// How much of the logarithm of the p99 JCT counts where it is longer than at the beginning, 0 to 10.
        pub tail: f64 = 0.1, in 0.0..=10.0;
        /// How often the loss of a kind that is lost in a condition counts besides, 0 to 100.
        pub lost_kind: f64 = 1.0, in 0.0..=100.0;
        /// Features that weigh nothing.
        pub without: Vec<String>;
        /// How far numbers move at first, over what is usual, 0.01 to 10. Less than 1 for a formula that is good already.
        pub step: f64 = 1.0, in 0.01..=10.0;
        /// Root of all randomness.
        pub seed: u64 = 1;
    }
}

/// The formula that a search begins with unless it is given another: least attained service, as `las-deal` has it.
#[must_use]
pub fn by_hand() -> Formula {
    let order = DealingConfig::default().order;
    let weights = [
        ("service", -1.0),
        ("gang", -order.gpus_power),
        ("speed", order.speed_power),
        ("advantage", order.advantage_power),
        ("stays", ln(order.stay_gain)),
        ("size", -order.gpus_power),
        ("marginal", order.marginal_power),
        ("grows", -ln(order.stay_gain)),
    ];
    let weights = weights.map(|(name, weight)| (name.to_string(), weight)).into();
    Formula::of(
        DealingConfig::default().rules,
        weights,
        "least attained service, by hand",
    )
}

/// The same by remaining run times, as `srtf-deal` has it.
#[must_use]
pub fn by_hand_of_rest() -> Formula {
    let mut formula = by_hand();
    formula.weights.remove("service");
    formula.weights.insert("rest".into(), -1.0);
    // With the definitions of the columns that it reads now.
    Formula::of(
        formula.rules,
        formula.weights,
        "least remaining run time, by hand",
    )
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The best that was found, or the beginning.
    pub best: Formula,
    /// Its loss on the validation lists: below 0 it is better than the beginning.
    pub validation_loss: f64,
    /// After each look: generation and loss of the centre on the validation lists.
    pub looks: Vec<(u32, f64)>,
}

/// A kind of lists.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    kind: &'a str,
    /// None: that of the list.
    load: Option<f64>,
    condition: Condition,
    /// Which kind in which condition.
    group: usize,
}

impl IndexSearch {
    /// Refuses unknown kinds, and what is not for them.
    ///
    /// # Errors
    /// The first of these.
    pub fn check(&self) -> Result<(), Error> {
        self.check_at("", "")?;
        let source = WorkloadSource {
            workload: self.kinds.clone(),
            ..self.source.clone()
        };
        let refused = source.window_days.map(|days| ("window_days", days.to_string()));
        let split = source.split.map(|split| ("split", split.to_string()));
        if let Some((key, value)) = refused.or(split) {
            let allowed = "none here, where windows of a list are drawn: its first part is searched on, the next chooses";
            return Err(Error::config(key, value, allowed, "Leave it out."));
        }
        source.check()
    }

    /// What is to be said of lists of one's own before anything is searched: how each is split, in a line, and after these which of
    /// them has a twin that is not believable.
    ///
    /// # Errors
    /// A list that cannot be used, or a simulation that fails.
    pub fn beforehand(&self) -> Result<Vec<String>, Error> {
        let lists = Drawn::open(&self.kinds, &self.source, self.num_jobs)?;
        let mut lines = lists.in_words(self.num_jobs);
        // The same doubts as before a training on the list: a twin is of the site, not of the conditions that are searched in.
        let scheduling = self.scheduling.clone().unwrap_or_default();
        let doubts = lists.files().map(|(kind, list)| {
            let sim = scheduling.sim(std::slice::from_ref(kind));
            doubt(list, &sim, &Watcher::silent())
        });
        let doubts: Vec<Option<String>> = doubts.collect::<Result<_, Error>>()?;
        lines.extend(doubts.into_iter().flatten());
        Ok(lines)
    }

    /// Of some formulas the one to begin with: that with the least loss on the validation lists, over the first.
    ///
    /// # Errors
    /// As [`IndexSearch::run`].
    pub fn best_of(&self, mut starts: Vec<Formula>) -> Result<Formula, Error> {
        // As they are searched for: with the columns that may weigh something.
        let settled = |start: &Formula| {
            let encoding = Encoding::new(start.rules, &self.without);
            encoding.formula(&encoding.numbers(start))
        };
        let own: Vec<Formula> = starts.iter().map(settled).collect();
        let files = Drawn::open(&self.kinds, &self.source, self.num_jobs)?;
        let parts = self.parts();
        let draws = self.validation(&parts);
        let lists = self.judged(&files, &parts, Split::Validation, &own[0], &draws)?;
        let losses = own.iter().map(|own| self.loss(own, &lists));
        let losses = losses.collect::<Result<Vec<f64>, Error>>()?;
        let least = (0..losses.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b]));
        Ok(starts.swap_remove(least.unwrap_or_default()))
    }

    /// Draws of lists that choose.
    fn validation(&self, parts: &[Part<'_>]) -> Vec<(usize, Seed)> {
        let draws = (0..parts.len()).flat_map(|part| {
            let seed = |number: usize| Seed(self.seed).child("validation", number as u64);
            (0..self.validation_lists).map(move |number| (part, seed(number)))
        });
        draws.collect()
    }

    /// Searches from a formula; `report` hears of every look at the validation lists.
    ///
    /// # Errors
    /// An unknown kind, or a simulation that fails.
    pub fn run(&self, first: &Formula, mut report: impl FnMut(u32, f64)) -> Result<Found, Error> {
        let encoding = Encoding::new(first.rules, &self.without);
        let numbers = encoding.numbers(first);
        let first = encoding.formula(&numbers);
        let steps: Vec<f64> = encoding.steps().iter().map(|step| step * self.step).collect();
        let mut search = SepCma::new(numbers, &steps, self.population);
        let mut rng = Seed(self.seed).stream("index", 0);
        let parts = self.parts();
        let files = Drawn::open(&self.kinds, &self.source, self.num_jobs)?;
        let draws = self.validation(&parts);
        let validation = self.judged(&files, &parts, Split::Validation, &first, &draws)?;
        let mut found = Found {
            best: first.clone(),
            validation_loss: 0.0,
            looks: Vec::new(),
        };
        for generation in 0..self.generations {
            let draws: Vec<_> = (0..self.lists)
                .map(|number| {
                    let turn = generation as usize * self.lists + number;
                    let seed = Seed(self.seed).child("training", turn as u64);
                    (turn % parts.len(), seed)
                })
                .collect();
            let lists = self.judged(&files, &parts, Split::Train, &first, &draws)?;
            search.step(&mut rng, self.population, |drawn| {
                let losses = drawn.par_iter();
                let losses = losses.map(|numbers| self.loss(&encoding.formula(numbers), &lists));
                losses.collect::<Result<Vec<f64>, Error>>()
            })?;
            if (generation + 1) % self.validate_every == 0 || generation + 1 == self.generations {
                let centre = encoding.formula(search.mean());
                let loss = self.loss(&centre, &validation)?;
                found.looks.push((generation + 1, loss));
                report(generation + 1, loss);
                if loss < found.validation_loss {
                    (found.best, found.validation_loss) = (centre, loss);
                }
            }
        }
        Ok(found)
    }

    /// Every kind at every load in every condition.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for (place, kind) in self.kinds.iter().enumerate() {
            let own = [None];
            let given: Vec<Option<f64>> = match WorkloadSource::is_file(kind) {
                true => self.loads_of_files.iter().copied().map(Some).collect(),
                false => self.loads.iter().copied().map(Some).collect(),
            };
            for load in if given.is_empty() { &own[..] } else { &given[..] } {
                let part = |(number, condition): (usize, &Condition)| Part {
                    kind,
                    load: *load,
                    condition: *condition,
                    group: place * self.conditions.len() + number,
                };
                parts.extend(self.conditions.iter().enumerate().map(part));
            }
        }
        parts
    }

    /// Mean loss over lists, and over kinds that are lost once more.
    fn loss(&self, formula: &Formula, lists: &Lists) -> Result<f64, Error> {
        let outcomes = lists.played(|| Ok(index_planner(formula)?))?;
        let losses = outcomes.iter().zip(&lists.lists).map(|(outcome, list)| {
            let Outcome { ln_jct, ln_p99 } = outcome;
            (list.part, ln_jct + self.tail * ln_p99.max(0.0))
        });
        Ok(mean_and_lost(&losses.collect::<Vec<_>>(), self.lost_kind))
    }

    /// Lists of parts, a draw each, against the first formula.
    fn judged(
        &self,
        files: &Drawn,
        parts: &[Part<'_>],
        what_for: Split,
        first: &Formula,
        draws: &[(usize, Seed)],
    ) -> Result<Lists, Error> {
        let first = || Ok(index_planner(first)?);
        let instances = self.instances(files, parts, what_for, draws)?;
        Lists::against(self.groups(), instances, ("the first", &first))
    }

    /// Draws with the group of each.
    fn instances(
        &self,
        files: &Drawn,
        parts: &[Part<'_>],
        what_for: Split,
        draws: &[(usize, Seed)],
    ) -> Result<Vec<(usize, Instance)>, Error> {
        let drawn = draws.par_iter().map(|(number, seed)| {
            let part = &parts[*number];
            let sim = self.sim(part.kind, part.condition);
            let instance = files.draw((part.kind, part.load), self.num_jobs, (what_for, *seed), &sim)?;
            Ok((part.group, instance))
        });
        drawn.collect()
    }

    /// Each kind in each condition, with how it is simulated.
    fn groups(&self) -> Vec<(String, SimConfig)> {
        let pairs = self
            .kinds
            .iter()
            .flat_map(|kind| self.conditions.iter().map(move |condition| (kind, *condition)));
        let named = |(kind, condition): (&String, Condition)| {
            let name = match self.scheduling {
                Some(_) => kind.clone(),
                None => format!("{kind}, {}", condition.word()),
            };
            (name, self.sim(kind, condition))
        };
        pairs.map(named).collect()
    }

    /// Named conditions let jobs be stopped and share; conditions of one's own say themselves what may be done.
    fn sim(&self, kind: &str, condition: Condition) -> SimConfig {
        if let Some(scheduling) = &self.scheduling {
            return scheduling.sim(&[kind.to_string()]);
        }
        let sim = condition.sim();
        let asks = ActionSet::of(ActionKind::Preempt).with(ActionKind::Share);
        SimConfig {
            capabilities: sim.capabilities.with_actions(asks),
            ..sim
        }
    }

    /// Plays two formulas on lists of their own beside all heuristics and dealers.
    ///
    /// # Errors
    /// A list that cannot be drawn, a run that fails.
    pub fn judge(&self, best: &Formula, first: &Formula, watcher: &Watcher) -> Result<Acceptance, Error> {
        let parts = self.parts();
        let files = Drawn::open(&self.kinds, &self.source, self.num_jobs)?;
        let of_each = JUDGE_LISTS.div_ceil(parts.len() / self.groups().len());
        let draws: Vec<(usize, Seed)> = (0..of_each)
            .flat_map(|number| {
                let seed = Seed(self.seed).child("acceptance", number as u64);
                (0..parts.len()).map(move |part| (part, seed))
            })
            .collect();
        let instances = self.instances(&files, &parts, Split::Test, &draws)?;
        let lists = Lists::of(self.groups(), instances, Rivals::All, watcher)?;
        let played = |formula: &Formula| lists.played(|| Ok(index_planner(formula)?));
        Ok(lists.acceptance(&played(best)?, &played(first)?))
    }
}

/// The mean of losses, each with its group, and `again` times what groups that are lost in the mean add to it.
fn mean_and_lost(losses: &[(usize, f64)], again: f64) -> f64 {
    let mut groups: BTreeMap<usize, f64> = BTreeMap::new();
    for (group, loss) in losses {
        *groups.entry(*group).or_default() += loss;
    }
    let sum: f64 = groups.values().map(|loss| loss + again * loss.max(0.0)).sum();
    sum / losses.len().max(1) as f64
}

#[cfg(test)]
mod tests;
