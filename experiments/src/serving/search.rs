//! A tree that routes, searched for: changed a little, judged on drawn lists, kept where more requests are within their targets.
//!
//! Four streams of lists share nothing: on the first the strongest rival of each load is chosen among all rules and bounds, on the
//! second trees race against it, on the third one of those that the race kept is taken, on the fourth it is judged. Both are chosen
//! by halving: all on a few lists, the best quarter on three times as many, until the lists are played.

use pleach_distill::search::SearchConfig;
use pleach_env::Seed;
use pleach_scheduler::tree::Tree;
use pleach_serving::llm::{Fleet, Outcome, Requests, SCHEMA, ScorerRouter, simulate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::compare::{Comparison, compare_on};
use super::gain::Gain;
use super::race::{Raced, best_of, numbers, race, settings as settings_of};
use super::rivals::strongest;
use super::routed::{Routed, loss};
use super::starts::starts;
use super::{ServingConfig, router};
use crate::error::Error;
use crate::progress::Watcher;

/// Lists of each load for choosing the rival and the tree. *Assumed.*
const CHOICE_LISTS: usize = 27;

/// Lists by name, and from where to where in a given list.
type Stream = (&'static str, (f64, f64));
const TUNE: Stream = ("tune", (0.0, 0.2));
const RACE: Stream = ("race", (0.2, 0.6));
const CHOICE: Stream = ("choice", (0.6, 0.8));
const JUDGE: Stream = ("judge", (0.8, 1.0));

/// How a router is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingSearch {
    /// Rates of the lists over that of the configuration, one part each.
    pub rates: Vec<f64>,
    /// Lists of each rate on which the result is judged.
    pub judge_lists: usize,
    /// Columns that the tree may not read, by name.
    pub without: Vec<String>,
    /// The search; `num_parts` and `seed` are set here.
    pub search: SearchConfig,
}

impl Default for RoutingSearch {
    fn default() -> RoutingSearch {
        RoutingSearch {
            rates: vec![0.9, 1.0, 1.1],
            judge_lists: 20,
            without: Vec::new(),
            search: SearchConfig {
                simulations: 6_000,
                rungs: vec![3, 9, 24],
                starts: 8,
                leaves_max: 16,
                // A miss is a miss, however late it is.
                tail_weight: 0.0,
                ..SearchConfig::default()
            },
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct SearchedRouter {
    /// The tree.
    pub tree: Tree,
    /// Of each rate: the strongest rival, the tree and the best of those that the search began with, on fresh lists.
    pub judged: Vec<(f64, Comparison)>,
    /// Points of hits over the strongest rival of each rate, over all fresh lists.
    pub gain: Gain,
}

impl SearchedRouter {
    /// The result in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let gain = self.gain;
        if gain.interval.is_none() {
            return format!("{gain} points against the strongest rule, on too few lists to tell.");
        }
        if gain.is_sure() {
            return format!("The tree is ahead of the strongest rule of each rate: {gain} points of hits.");
        }
        format!(
            "Nothing was learned: {gain} points of hits over the strongest rule of each rate. Try higher rates, older facts or more \
             gateways, --refuse, or more --simulations."
        )
    }
}

/// One rate: its fleet is the same, its rival its own.
struct Part {
    rate: f64,
    rival: String,
}

/// Searches.
///
/// # Errors
/// Settings out of range, a run that fails.
pub fn search_router(
    config: &ServingConfig,
    settings: &RoutingSearch,
    seed: u64,
    watcher: &Watcher,
) -> Result<SearchedRouter, Error> {
    let fleet = config.fleet()?;
    let num_parts = settings.rates.len();
    let search = settings_of(&settings.search, num_parts, seed)?;
    let root = Seed(seed).child("serving", 1);
    let stream = |(name, part): Stream, rate: f64, num: usize| {
        config.draw_of(part, root.child(name, (rate * 1e6) as u64), num, rate)
    };
    let (mut parts, mut raced, mut choice) = (Vec::new(), Vec::new(), Vec::new());
    for &rate in &settings.rates {
        let rival = strongest(&stream(TUNE, rate, CHOICE_LISTS)?, &fleet, root.0)?;
        let lists = stream(RACE, rate, search.num_lists() / num_parts)?;
        raced.push(against(&rival, lists, &fleet, root.0)?);
        choice.extend(stream(CHOICE, rate, CHOICE_LISTS)?);
        parts.push(Part { rate, rival });
    }
    let game = Routed {
        fleet: &fleet,
        without: numbers(&SCHEMA, &settings.without)?,
    };
    let kept = race(&game, &starts(&game)?, &raced, &search, watcher)?;
    // A list of each rate in turn, so that the first ones are of all rates.
    let choice = (0..CHOICE_LISTS).flat_map(|list| choice.iter().skip(list).step_by(CHOICE_LISTS));
    let choice: Vec<&Requests> = choice.collect();
    let start = kept.last().cloned();
    let tree = best_of(&game, kept, &choice, 3 * num_parts)?;
    judged((tree, start), config, settings, &fleet, &parts, root)
}

fn against(
    rival: &str,
    lists: Vec<Requests>,
    fleet: &Fleet,
    seed: u64,
) -> Result<Vec<Raced<Requests>>, Error> {
    let raced = lists.into_par_iter().map(|requests| {
        let outcome = simulate(&requests, fleet, router(rival, seed)?.as_mut())?;
        let loss = loss(&outcome, fleet);
        Ok((requests, loss))
    });
    raced.collect()
}

fn judged(
    (tree, start): (Tree, Option<Tree>),
    config: &ServingConfig,
    settings: &RoutingSearch,
    fleet: &Fleet,
    parts: &[Part],
    root: Seed,
) -> Result<SearchedRouter, Error> {
    let (mut tables, mut hits) = (Vec::new(), [const { Vec::new() }; 2]);
    for part in parts {
        let (name, share) = JUDGE;
        let lists = config.draw_of(
            share,
            root.child(name, (part.rate * 1e6) as u64),
            settings.judge_lists,
            part.rate,
        )?;
        let mut table = compare_on(&lists, fleet, &[], std::slice::from_ref(&part.rival), root.0)?;
        for (name, tree) in [("tree", Some(&tree)), ("best start", start.as_ref())] {
            let Some(tree) = tree else { continue };
            let outcomes = lists.par_iter().map(|list| {
                let mut router = ScorerRouter::of_tree(tree)?;
                Ok(simulate(list, fleet, &mut router)?)
            });
            let outcomes: Vec<Outcome> = outcomes.collect::<Result<_, Error>>()?;
            table.join(name, &outcomes, fleet);
        }
        for (hits, row) in hits.iter_mut().zip(&table.routers) {
            hits.extend_from_slice(&row.by_list);
        }
        tables.push((part.rate, table));
    }
    Ok(SearchedRouter {
        tree,
        judged: tables,
        gain: Gain::of(&hits[1], &hits[0]),
    })
}
