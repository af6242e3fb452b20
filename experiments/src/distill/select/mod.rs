//! Learning a selector in the simulator: which heuristic to leave a decision to, by the state of the cluster.
//!
//! No teacher is needed. The search begins at the best single rule and grows leaf by leaf: every leaf may be split on every global
//! feature, at thresholds among the states that the selector itself meets, and one side gets another rule. A draw of these is raced
//! on shared lists, the best are tuned (other rules, other thresholds), and the best few of each size are kept and grown on.
//!
//! Five streams of workloads share nothing: the lists of the race; those of the choice, on which one of each size is taken; those of
//! the acceptance, on which a larger selector must beat the smaller one by a paired interval, or the smaller one stays; those of the
//! report, on which nothing is chosen; and the draws of the search itself.
//!
//! What is not here: a state from which a search goes on. One that is broken off begins anew.

mod draft;
mod race;
mod report;
mod visited;

use std::collections::BTreeMap;

use pleach_distill::search::{Outcome, SearchConfig};
use pleach_env::{EnvConfig, Seed};
use pleach_scheduler::ActionKind;
use pleach_scheduler::heuristics;
use pleach_scheduler::portable_math::exp;
use pleach_scheduler::selector::{MAX_LEAVES, Selector, SelectorMeta};
use rand::RngExt as _;
use rayon::prelude::*;

use self::draft::{Change, changed, single, splits, tunings};
use self::race::{Entry, LISTS_OF_EACH, Race, cost_of_one};
use self::report::{Judged, SingleRow};
pub use self::report::{SelectReport, SizeRow};
use self::visited::Visited;
use super::parts::{Kind, Lists, PARTS, REPORTED, Rivals, kinds_of, paired};
use super::provenance;
use crate::error::Error;
use crate::evaluate::policy_spec::PolicySpec;
use crate::evaluate::stats::mean;
use crate::progress::{Progress, Watcher};

/// The strong heuristics of docs/suite.md that need nothing of a cluster but reservations, and the two orders of arrival.
const RULES: [&str; 10] = [
    "fifo",
    "easy",
    "sjf",
    "gpu-time",
    "sjf-reserve",
    "gpu-time-reserve",
    "sjf-best-type",
    "sjf-delay",
    "gpu-time-delay",
    "best-type-delay",
];
/// The strongest heuristic where an environment offers more than starts.
const RULES_FOR: [(ActionKind, &str); 3] = [
    (ActionKind::Share, "sjf-share"),
    (ActionKind::GrantCores, "sjf-tuned"),
    (ActionKind::Resize, "sjf-moldable"),
];

/// Rules that a selector chooses among unless somebody says otherwise: those for any cluster, and those for what this environment offers.
#[must_use]
pub fn default_rules(env: &EnvConfig) -> Vec<String> {
    let offered = env.candidates.needs().actions;
    let own = RULES_FOR.iter().filter(|(kind, _)| offered.contains(*kind));
    let rules = RULES.iter().chain(own.map(|(_, rule)| rule));
    rules.map(|rule| (*rule).to_string()).collect()
}

/// Lists of each part on which one of each size is chosen. *Assumed*.
const CHOICE_LISTS: usize = 16;
/// Part of the simulations of a size that goes into tuning. *Assumed*.
const TUNING: f64 = 0.25;
/// Sizes without a better selector after which the search ends. *Assumed*.
const PATIENCE: usize = 2;

/// What a search for a selector is given.
#[derive(Clone, Debug)]
pub struct SelectInput {
    /// Names of heuristics.
    pub rules: Vec<String>,
    /// Most leaves. 2 to 64
    pub leaves: usize,
    /// Lists to simulate in the race, about; less where nothing is left to try.
    pub simulations: u64,
    /// Lists of each part for acceptance, and as many for the report.
    pub lists: usize,
    /// What the selector's file says of where it was made.
    pub made_on: serde_json::Value,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The selector; of one leaf where none was accepted.
    pub selector: Selector,
    /// How it came about.
    pub report: SelectReport,
    /// The selectors of [`SelectReport::sizes`].
    pub sizes: Vec<Selector>,
}

/// Where a search is done, and what is the same in all of it.
struct Ground<'a> {
    env: &'a EnvConfig,
    input: &'a SelectInput,
    seed: u64,
    watcher: &'a Watcher,
    meta: SelectorMeta,
    config: SearchConfig,
}

/// Searches for a selector. The same arguments give the same result at any number of threads.
///
/// # Errors
/// Settings out of range, a run that fails.
pub fn select(env: &EnvConfig, input: &SelectInput, seed: u64, watcher: &Watcher) -> Result<Selected, Error> {
    check(input)?;
    let num_parts = kinds_of(env, &PARTS).len();
    let ground = Ground {
        env,
        input,
        seed,
        watcher,
        meta: meta_of(env, input, seed),
        config: SearchConfig {
            num_parts,
            ..SearchConfig::default()
        },
    };
    let lists = ground.lists(&PARTS, "select/race", LISTS_OF_EACH, Rivals::Heuristics)?;
    let mut race = Race::new(&lists, &ground.config);
    watcher.part("select", input.simulations as usize, || {
        ground.raced(&lists, &mut race)
    })?;
    ground.finished(&race, &lists)
}

fn check(input: &SelectInput) -> Result<(), Error> {
    let SelectInput { rules, leaves, .. } = input;
    for (place, rule) in rules.iter().enumerate() {
        heuristics::by_name(rule)?;
        if rules[..place].contains(rule) {
            let hint = "Leave the second one out.";
            return Err(Error::config("rules", rule, "each heuristic once", hint));
        }
    }
    if rules.len() < 2 {
        let hint = "With one rule there is nothing to select: use it as it is.";
        return Err(Error::config(
            "rules",
            rules.join(","),
            "two heuristics or more",
            hint,
        ));
    }
    if !(2..=MAX_LEAVES).contains(leaves) {
        let allowed = format!("2 to {MAX_LEAVES}");
        return Err(Error::config("leaves", leaves, allowed, "8 is a good start."));
    }
    Ok(())
}

fn meta_of(env: &EnvConfig, input: &SelectInput, seed: u64) -> SelectorMeta {
    SelectorMeta {
        name: "selector".into(),
        estimates: vec![provenance(env.sim.estimates)],
        trained_by: BTreeMap::from([
            ("seed".to_string(), serde_json::json!(seed)),
            ("rules".to_string(), serde_json::json!(input.rules)),
            ("leaves".to_string(), serde_json::json!(input.leaves)),
            ("simulations".to_string(), serde_json::json!(input.simulations)),
            ("accept_lists".to_string(), serde_json::json!(input.lists)),
            ("made_on".to_string(), input.made_on.clone()),
        ]),
    }
}

impl Ground<'_> {
    fn lists(&self, kinds: &[Kind], stream: &str, num: usize, rivals: Rivals<'_>) -> Result<Lists, Error> {
        Lists::draw(self.env, kinds, (self.seed, stream), num, rivals, self.watcher)
    }

    /// The race: single rules, then size by size.
    fn raced(&self, lists: &Lists, race: &mut Race<'_>) -> Result<(), Error> {
        let singles = self.input.rules.iter().map(|rule| single(&self.meta, rule));
        race.run_all(singles.collect::<Result<_, _>>()?)?;
        self.tell(race, 1);
        let left = self.input.simulations.saturating_sub(race.simulations) as f64;
        let shares: f64 = (2..=self.input.leaves)
            .map(|leaves| 1.0 / (leaves - 1) as f64)
            .sum();
        let mut stale = 0;
        for leaves in 2..=self.input.leaves {
            let before = race.best();
            // The first splits find most, and there is less to try among them.
            let budget = left / (leaves - 1) as f64 / shares;
            self.grow(lists, race, leaves, budget * (1.0 - TUNING))?;
            self.tune(lists, race, leaves, budget * TUNING)?;
            self.tell(race, leaves);
            stale = if race.best() < before { 0 } else { stale + 1 };
            if stale == PATIENCE || race.of_size(leaves).is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn tell(&self, race: &Race<'_>, leaves: usize) {
        let words = format!("{leaves} leaves, best objective {:.4}", race.best());
        let at = race.simulations.min(self.input.simulations);
        self.watcher.tell(Progress::At(at, &words));
    }

    /// Races selectors with one leaf more than the kept ones of the size below.
    fn grow(&self, lists: &Lists, race: &mut Race<'_>, leaves: usize, budget: f64) -> Result<(), Error> {
        let parents: Vec<Selector> = race
            .of_size(leaves - 1)
            .iter()
            .map(|entry| entry.selector.clone())
            .collect();
        self.race_changes(lists, race, ("grow", leaves), (&parents, budget), splits)
    }

    /// Races changes of the best selector of a size.
    fn tune(&self, lists: &Lists, race: &mut Race<'_>, leaves: usize, budget: f64) -> Result<(), Error> {
        let best = race.of_size(leaves).first().map(|entry| entry.selector.clone());
        let best: Vec<Selector> = best.into_iter().collect();
        self.race_changes(lists, race, ("tune", leaves), (&best, budget), tunings)
    }

    /// Races as many changes of some selectors as the budget allows, drawn from all that there are.
    fn race_changes(
        &self,
        lists: &Lists,
        race: &mut Race<'_>,
        (step, leaves): (&str, usize),
        (parents, budget): (&[Selector], f64),
        changes_of: impl Fn(&Selector, &Visited, &[String]) -> Vec<Change>,
    ) -> Result<(), Error> {
        let mut all: Vec<(usize, Change)> = Vec::new();
        for (place, parent) in parents.iter().enumerate() {
            let visited = Visited::by(parent, lists, lists.parts.len())?;
            let changes = changes_of(parent, &visited, &self.input.rules);
            all.extend(changes.into_iter().map(|change| (place, change)));
        }
        let num = (budget / (cost_of_one() * lists.parts.len() as f64)) as usize;
        let num = num.max(1).min(all.len());
        let mut rng = Seed(self.seed)
            .child("select", leaves as u64)
            .stream(&format!("select.{step}"), 0);
        // The first `num` of a shuffled list.
        for place in 0..num {
            let other = rng.random_range(place..all.len());
            all.swap(place, other);
        }
        all.truncate(num);
        let made: Vec<Result<Selector, Error>> = all
            .par_iter()
            .map(|(place, change)| changed(&parents[*place], change))
            .collect();
        race.run(made.into_iter().collect::<Result<_, _>>()?)
    }

    /// Chooses, accepts and reports.
    fn finished(&self, race: &Race<'_>, raced: &Lists) -> Result<Selected, Error> {
        let frontier = self.chosen_of_each_size(race, raced)?;
        let accept = self.lists(
            &PARTS,
            "select/acceptance",
            self.input.lists,
            Rivals::Known(&raced.best),
        )?;
        let mut outcomes = Vec::new();
        for (_, entry) in &frontier {
            outcomes.push(accept.all(&policy(&entry.selector))?);
        }
        // Fewer leaves win unless more are better by more than luck.
        let (mut chosen, mut over_smaller) = (0, vec![None; frontier.len()]);
        for place in 1..frontier.len() {
            let ratio = paired(&outcomes[place], &outcomes[chosen]);
            over_smaller[place] = ratio;
            if ratio.and_then(|ratio| ratio.high).is_some_and(|high| high < 1.0) {
                chosen = place;
            }
        }
        let judged = frontier
            .iter()
            .zip(over_smaller)
            .map(|((choice, entry), over)| Judged {
                selector: entry.selector.clone(),
                objectives: [entry.objective, *choice],
                over_smaller: over,
            });
        self.reported(race, judged.collect(), chosen)
    }

    /// One of each size by the lists of the choice, as far as it is better there than all smaller ones, smallest first. The first is
    /// the best single rule.
    fn chosen_of_each_size(&self, race: &Race<'_>, raced: &Lists) -> Result<Vec<(f64, Entry)>, Error> {
        let lists = self.lists(&PARTS, "select/choice", CHOICE_LISTS, Rivals::Known(&raced.best))?;
        let mut sizes: BTreeMap<usize, (f64, Entry)> = BTreeMap::new();
        for entry in race.entries() {
            let objective = self.config.objective(&lists.all(&policy(&entry.selector))?);
            let leaves = entry.selector.num_leaves();
            if sizes.get(&leaves).is_none_or(|(other, _)| objective < *other) {
                sizes.insert(leaves, (objective, entry.clone()));
            }
        }
        let mut found: Vec<(f64, Entry)> = Vec::new();
        for (objective, entry) in sizes.into_values() {
            if found.last().is_none_or(|(other, _)| objective < *other) {
                found.push((objective, entry));
            }
        }
        Ok(found)
    }

    /// What all sizes and all heuristics do on lists on which nothing was chosen.
    fn reported(&self, race: &Race<'_>, judged: Vec<Judged>, chosen: usize) -> Result<Selected, Error> {
        let lists = self.lists(&REPORTED, "select/report", self.input.lists, Rivals::Heuristics)?;
        let mut of_sizes: Vec<Vec<Outcome>> = Vec::new();
        for size in &judged {
            of_sizes.push(lists.all(&policy(&size.selector))?);
        }
        let value = |outcomes: &[Outcome]| -> f64 {
            let parts = 0..lists.parts.len();
            let of_part = |part: usize| {
                let own = lists.of_part(outcomes, part);
                mean(&own.iter().map(|own| own.ln_jct).collect::<Vec<f64>>())
            };
            exp(mean(&parts.map(of_part).collect::<Vec<f64>>()))
        };
        let mut singles: Vec<(SingleRow, Vec<Outcome>)> = Vec::new();
        for name in heuristics::names() {
            let outcomes = lists.all(&PolicySpec::heuristic(name)?)?;
            let row = SingleRow {
                rule: (*name).to_string(),
                jct: value(&outcomes),
                is_offered: self.input.rules.iter().any(|rule| rule == name),
                parts: lists.rows(&outcomes),
                selector_over_it: (0..lists.parts.len())
                    .map(|part| {
                        let own = lists.of_part(&of_sizes[chosen], part);
                        paired(&own, &lists.of_part(&outcomes, part))
                    })
                    .collect(),
                selector_over_it_on_all: paired(&of_sizes[chosen], &outcomes),
            };
            singles.push((row, outcomes));
        }
        // Stable: of equals the first in the registry.
        singles.sort_by(|(a, _), (b, _)| a.jct.total_cmp(&b.jct));
        let sizes = judged.iter().zip(&of_sizes).map(|(judged, outcomes)| SizeRow {
            leaves: judged.selector.num_leaves(),
            rules: judged
                .selector
                .rules()
                .iter()
                .map(|rule| (*rule).to_string())
                .collect(),
            objective_of_race: judged.objectives[0],
            objective_of_choice: judged.objectives[1],
            over_smaller: judged.over_smaller,
            jct: value(outcomes),
            parts: lists.rows(outcomes),
        });
        let report = SelectReport {
            rules: self.input.rules.clone(),
            leaves_max: self.input.leaves,
            simulations: race.simulations,
            lists: self.input.lists,
            best_rule: judged[0].selector.rules().join(", "),
            sizes: sizes.collect(),
            chosen,
            singles: singles.into_iter().map(|(row, _)| row).collect(),
        };
        let sizes: Vec<Selector> = judged.into_iter().map(|judged| judged.selector).collect();
        Ok(Selected {
            selector: sizes[chosen].clone(),
            report,
            sizes,
        })
    }
}

fn policy(selector: &Selector) -> PolicySpec {
    PolicySpec::selector("selector", selector.clone())
}

#[cfg(test)]
mod tests;
