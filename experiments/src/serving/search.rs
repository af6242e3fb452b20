//! A tree that routes, searched for: changed a little, judged on drawn lists, kept where more requests are within their targets.
//!
//! Four streams of lists share nothing: on the first the strongest rival of each load is chosen among all rules and bounds, on the
//! second trees race against it, on the third one of those that the race kept is taken, on the fourth it is judged.

use pleach_distill::search::SearchConfig;
use pleach_env::Seed;
use pleach_scheduler::Scorer;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::{FlatTree, Node, Tree};
use pleach_serving::llm::{Fleet, Outcome, ROUTING_2, Requests, SCHEMA, ScorerRouter, simulate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::compare::{Comparison, compare_on};
use super::race::{Game, Loss, Raced, best_of, by_hand, column, race, settings as settings_of};
use super::rivals::strongest;
use super::{ServingConfig, router};
use crate::error::Error;
use crate::evaluate::stats::{bootstrap_mean, mean};
use crate::progress::Watcher;

/// Lists of each load for choosing the rival and the tree. *Assumed.*
const CHOICE_LISTS: usize = 8;

/// How a router is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingSearch {
    /// Rates of the lists over that of the configuration, one part each.
    pub rates: Vec<f64>,
    /// Lists of each rate on which the result is judged.
    pub judge_lists: usize,
    /// The search; `num_parts` and `seed` are set here.
    pub search: SearchConfig,
}

impl Default for RoutingSearch {
    fn default() -> RoutingSearch {
        RoutingSearch {
            rates: vec![0.9, 1.0, 1.1],
            judge_lists: 20,
            search: SearchConfig {
                simulations: 6_000,
                rungs: vec![3, 9, 24],
                leaves_max: 16,
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
    /// Of each rate: the strongest rival and the tree on fresh lists.
    pub judged: Vec<(f64, Comparison)>,
    /// Points of hits over the strongest rival of each rate, mean over all fresh lists, with its interval.
    pub gain_points: f64,
    /// 95 %.
    pub gain_interval: Option<(f64, f64)>,
}

impl SearchedRouter {
    /// The result in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let gain = self.gain_points;
        match self.gain_interval {
            Some((low, high)) if low > 0.0 => format!(
                "The tree is {gain:.2} points of hits ahead [{low:.2}, {high:.2}] of the strongest rule of each rate."
            ),
            Some((low, high)) => format!(
                "Nothing was learned: the tree is {gain:+.2} points [{low:+.2}, {high:+.2}] of the strongest rule of each rate. \
                 Try higher rates, older facts or more gateways, --refuse, or more --simulations."
            ),
            None => format!("{gain:+.2} points against the strongest rule, on too few lists to tell."),
        }
    }
}

impl Game for Fleet {
    type List = Requests;

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&SCHEMA, ROUTING_2)
    }

    fn play(&self, list: &Requests, scorer: Box<dyn Scorer>) -> Result<Loss, Error> {
        let outcome = simulate(list, self, &mut ScorerRouter::new(scorer)?)?;
        Ok(loss(&outcome, self))
    }
}

fn loss(outcome: &Outcome, fleet: &Fleet) -> Loss {
    let p99_s = outcome.quantile(0.99, |served| served.ttft_s);
    Loss {
        misses: 1.0 - outcome.hit_share(fleet.targets),
        // A long one where nobody was served.
        tail_s: if p99_s.is_finite() { p99_s } else { 1e6 },
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
    let stream =
        |name: &str, rate: f64, num: usize| config.draw(root.child(name, (rate * 1e6) as u64), num, rate);
    let (mut parts, mut raced, mut choice) = (Vec::new(), Vec::new(), Vec::new());
    for &rate in &settings.rates {
        let rival = strongest(&stream("tune", rate, CHOICE_LISTS)?, &fleet, root.0)?;
        let lists = stream("race", rate, search.num_lists() / num_parts)?;
        raced.push(against(&rival, lists, &fleet, root.0)?);
        choice.extend(stream("choice", rate, CHOICE_LISTS)?);
        parts.push(Part { rate, rival });
    }
    let kept = race(&fleet, &starts(&fleet)?, &raced, &search, watcher)?;
    let tree = best_of(&fleet, kept, &choice)?;
    judged(tree, config, settings, &fleet, &parts, root)
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
    tree: Tree,
    config: &ServingConfig,
    settings: &RoutingSearch,
    fleet: &Fleet,
    parts: &[Part],
    root: Seed,
) -> Result<SearchedRouter, Error> {
    let (mut tables, mut gains) = (Vec::new(), Vec::new());
    for part in parts {
        let lists = config.draw(
            root.child("judge", (part.rate * 1e6) as u64),
            settings.judge_lists,
            part.rate,
        )?;
        let mut table = compare_on(&lists, fleet, std::slice::from_ref(&part.rival), root.0)?;
        let outcomes = lists.par_iter().map(|list| {
            let mut router = ScorerRouter::new(Box::new(FlatTree::of(&tree)))?;
            Ok(simulate(list, fleet, &mut router)?)
        });
        let outcomes: Vec<Outcome> = outcomes.collect::<Result<_, Error>>()?;
        table.join("tree", &outcomes, fleet);
        let row = &table.routers[1];
        gains.extend(
            row.by_list
                .iter()
                .zip(&table.routers[0].by_list)
                .map(|(own, rival)| own - rival),
        );
        tables.push((part.rate, table));
    }
    Ok(SearchedRouter {
        tree,
        judged: tables,
        gain_points: mean(&gains),
        gain_interval: bootstrap_mean(&gains, 0.95),
    })
}

/// Rules by hand, as trees: the least of a weighted sum, alone and with a refusal where even the least believed times are late.
fn starts(fleet: &Fleet) -> Result<Vec<Tree>, Error> {
    let column = |name: &str, raw: f32| column(&SCHEMA, name, raw);
    let rules: [(&str, &[(&str, f32)]); 4] = [
        ("turns", &[("turns", -1.0)]),
        ("ttft", &[("ttft_share", 1.0)]),
        ("both", &[("ttft_share", 1.0), ("tpot_share", 1.0)]),
        ("requests", &[("running_requests", 1.0), ("sent_requests", 1.0)]),
    ];
    let (is_refuse, half) = column("is_refuse", 0.5);
    let leaf = |id: u32, score: f32| Node::Leaf {
        id,
        score,
        samples: 0,
        weight: 0.0,
    };
    let split = |(feature, threshold): (u16, f32), left: u32, right: u32| Node::Split {
        feature,
        threshold,
        left,
        right,
    };
    let never = vec![split((is_refuse, half), 1, 2), leaf(0, 1.0), leaf(1, 0.0)];
    let bounded = |shed: f32| {
        vec![
            split((is_refuse, half), 1, 2),
            leaf(0, 1.0),
            split(column("least_ttft_share", shed), 3, 4),
            split(column("least_tpot_share", shed), 5, 6),
            leaf(1, 2.0),
            leaf(2, 0.0),
            leaf(3, 2.0),
        ]
    };
    let mut shapes = vec![("", never)];
    if fleet.may_refuse {
        shapes.extend([("refuses at 0.9", bounded(0.9)), ("refuses at 1.1", bounded(1.1))]);
    }
    let mut trees = Vec::new();
    for (rule, weights) in &rules {
        for (words, nodes) in &shapes {
            let name = format!("{rule} {words}");
            trees.push(by_hand(fleet, name.trim(), weights, nodes)?);
        }
    }
    Ok(trees)
}
