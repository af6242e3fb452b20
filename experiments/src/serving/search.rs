//! A tree that routes, searched for: changed a little, judged on drawn lists, kept where more requests are within their targets.
//!
//! Four streams of lists share nothing: on the first the strongest rival of each load is chosen among all rules and bounds, on the
//! second trees race against it, on the third one of those that the race kept is taken, on the fourth it is judged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pleach_distill::Dataset;
use pleach_distill::search::{
    Caller, Draft, Outcome as Judged, Question, Rows as Shown, SearchConfig, search,
};
use pleach_env::Seed;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::tree::{FlatTree, Node, Tree, TreeMeta};
use pleach_scheduler::{PolicyError, Rows, Scorer};
use pleach_serving::llm::{Fleet, Outcome, ROUTING_1, Requests, SCHEMA, ScorerRouter, simulate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::compare::{Comparison, compare_on};
use super::rivals::strongest;
use super::{ServingConfig, router};
use crate::error::Error;
use crate::evaluate::stats::{bootstrap_mean, mean};
use crate::progress::{Progress, Watcher};

/// Added to shares of misses, so that the last miss does not count for all. *Assumed.*
const FLOOR: f64 = 0.002;
/// Lists of each load for choosing the rival and the tree. *Assumed.*
const CHOICE_LISTS: usize = 8;
/// Rows of recorded decisions by which thresholds move.
const ROWS_MAX: usize = 20_000;

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

/// One rate: its fleet is the same, its rival its own.
struct Part {
    rate: f64,
    rival: String,
    race: Vec<(Requests, f64, f64)>,
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
    let in_parts = |lists: &usize| lists.div_ceil(num_parts.max(1)) * num_parts.max(1);
    let search_config = SearchConfig {
        seed: Seed(seed).child("search", 0),
        num_parts,
        rungs: settings.search.rungs.iter().map(in_parts).collect(),
        ..settings.search.clone()
    };
    search_config.validate()?;
    let root = Seed(seed).child("serving", 1);
    let of_each = search_config.num_lists() / num_parts;
    let rates = settings.rates.iter();
    let parts = rates
        .map(|rate| part(config, &fleet, *rate, of_each, root))
        .collect::<Result<Vec<_>, Error>>()?;
    let meta = meta("router", &search_config, &[]);
    let starts = starts(&fleet)?;
    let shown = recorded(&starts, &parts[num_parts / 2].race[0].0, &fleet)?;
    let drafts = starts
        .iter()
        .map(|tree| (tree.meta().name.clone(), Draft::of(tree)))
        .collect();

    let mut judge = |question: Question<'_>| -> Result<Vec<Judged>, Error> {
        let runs = question.runs.par_iter().map(|&(place, list)| {
            let (requests, miss, p99_s) = &parts[list % num_parts].race[list / num_parts];
            let outcome = play(requests, &fleet, question.trees[place].tree())?;
            Ok(Judged {
                ln_jct: ln(misses(&outcome, &fleet) / miss),
                ln_p99: ln(p99(&outcome) / p99_s),
            })
        });
        runs.collect()
    };
    let total = search_config.simulations;
    let mut keep = |state: &pleach_distill::search::SearchState| -> Result<(), Error> {
        let best = state.archive.best().map_or(0.0, |entry| entry.objective);
        let words = format!("{} trees, best objective {best:.4}", state.archive.num_entries());
        watcher.tell(Progress::At(state.simulations.min(total), &words));
        Ok(())
    };
    let mut caller = Caller {
        judge: &mut judge,
        keep: &mut keep,
    };
    let found = watcher.part("search", total as usize, || {
        search(drafts, (&meta, &shown), &search_config, None, &mut caller)
    });
    let state = found.map_err(|error| match error {
        pleach_distill::Error::Caller(error) => error,
        other => Error::Failed(other.to_string()),
    })?;

    let mut kept = Vec::new();
    for entry in state.archive.entries().chain([&state.best_start]) {
        kept.push(
            entry
                .draft
                .tree(&meta, &shown)
                .map_err(|error| Error::Failed(error.to_string()))?,
        );
    }
    let tree = chosen(kept, config, &fleet, &parts, root)?;
    judged(tree, config, settings, &fleet, &parts, root)
}

fn part(config: &ServingConfig, fleet: &Fleet, rate: f64, of_each: usize, root: Seed) -> Result<Part, Error> {
    let stream = |name: &str, num: usize| config.draw(root.child(name, (rate * 1e6) as u64), num, rate);
    let rival = strongest(&stream("tune", CHOICE_LISTS)?, fleet, root.0)?;
    let race = stream("race", of_each)?.into_par_iter().map(|requests| {
        let outcome = simulate(&requests, fleet, router(&rival, root.0)?.as_mut())?;
        let (miss, p99_s) = (misses(&outcome, fleet), p99(&outcome));
        Ok((requests, miss, p99_s))
    });
    Ok(Part {
        rate,
        race: race.collect::<Result<_, Error>>()?,
        rival,
    })
}

fn misses(outcome: &Outcome, fleet: &Fleet) -> f64 {
    1.0 - outcome.hit_share(fleet.targets) + FLOOR
}

/// 99th percentile of the time to the first token, s; a long one where nobody was served.
fn p99(outcome: &Outcome) -> f64 {
    let p99_s = outcome.quantile(0.99, |served| served.ttft_s);
    if p99_s.is_finite() { p99_s } else { 1e6 }
}

fn play(requests: &Requests, fleet: &Fleet, tree: &Tree) -> Result<Outcome, Error> {
    Ok(simulate(requests, fleet, &mut ScorerRouter::of_tree(tree)?)?)
}

/// The kept tree with the most hits on lists of its own.
fn chosen(
    trees: Vec<Tree>,
    config: &ServingConfig,
    fleet: &Fleet,
    parts: &[Part],
    root: Seed,
) -> Result<Tree, Error> {
    let mut lists = Vec::new();
    for part in parts {
        lists.extend(config.draw(
            root.child("choice", (part.rate * 1e6) as u64),
            CHOICE_LISTS,
            part.rate,
        )?);
    }
    let hits = trees.par_iter().map(|tree| {
        let each = lists
            .iter()
            .map(|list| Ok(play(list, fleet, tree)?.hit_share(fleet.targets)));
        Ok(mean(&each.collect::<Result<Vec<f64>, Error>>()?))
    });
    let hits: Vec<f64> = hits.collect::<Result<_, Error>>()?;
    let best =
        (0..trees.len()).max_by(|&one, &other| hits[one].total_cmp(&hits[other]).then(other.cmp(&one)));
    let mut trees = trees;
    Ok(trees.swap_remove(best.expect("the race kept a tree")))
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
        let outcomes = lists.par_iter().map(|list| play(list, fleet, &tree));
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

fn meta(name: &str, search: &SearchConfig, key_weights: &[KeyWeight]) -> TreeMeta {
    TreeMeta {
        name: name.into(),
        tie_key: TieKey::Index,
        key_weights: key_weights.to_vec(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: BTreeMap::from([("search".to_string(), serde_json::json!(search))]),
    }
}

/// Number of a column and its scaled value of a raw one.
fn column(name: &str, raw: f32) -> (u16, f32) {
    let features = SCHEMA.features.iter();
    let number = features
        .clone()
        .position(|feature| feature.name == name)
        .expect("the schema has it");
    (number as u16, SCHEMA.features[number].encode(raw))
}

/// Rules by hand, as trees: the least of a weighted sum, alone and with a refusal where even the least believed times are late.
fn starts(fleet: &Fleet) -> Result<Vec<Tree>, Error> {
    let key = |terms: &[(&str, f32)]| -> Vec<KeyWeight> {
        let mut weights: Vec<KeyWeight> = terms
            .iter()
            .map(|(name, weight)| KeyWeight {
                feature: column(name, 0.0).0,
                weight: *weight,
            })
            .collect();
        weights.sort_by_key(|weight| weight.feature);
        weights
    };
    let rules = [
        ("turns", key(&[("turns", -1.0)])),
        ("ttft", key(&[("ttft_share", 1.0)])),
        ("both", key(&[("ttft_share", 1.0), ("tpot_share", 1.0)])),
        (
            "requests",
            key(&[("running_requests", 1.0), ("sent_requests", 1.0)]),
        ),
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
            let name = format!("hand: {rule} {words}");
            let made = Tree::over(
                &SCHEMA,
                meta(name.trim(), &SearchConfig::default(), weights),
                nodes,
            );
            trees.push(made.map_err(|error| Error::Failed(error.to_string()))?);
        }
    }
    Ok(trees)
}

/// Keeps the rows that a tree is asked about.
struct Recorder {
    flat: FlatTree,
    kept: Arc<Mutex<Dataset>>,
}

impl Scorer for Recorder {
    fn schema(&self) -> &'static FeatureSchema {
        self.flat.schema()
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.flat.score_rows(rows, scores)?;
        let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let choice = scores.iter().position(|score| *score == best).unwrap_or(0);
        let mut kept = self
            .kept
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.offer_rows(&rows, (scores, choice), |_| [0.0; TieKey::ALL.len()]);
        Ok(())
    }
}

/// Rows as the rules meet them.
fn recorded(starts: &[Tree], requests: &Requests, fleet: &Fleet) -> Result<Shown, Error> {
    let dataset = Dataset::of(&SCHEMA, ROUTING_1, Seed(0), 200_000);
    let kept = Arc::new(Mutex::new(dataset));
    for tree in starts {
        let recorder = Recorder {
            flat: FlatTree::of(tree),
            kept: Arc::clone(&kept),
        };
        simulate(requests, fleet, &mut ScorerRouter::new(Box::new(recorder))?)?;
    }
    let kept = kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Shown::of(&kept, ROWS_MAX))
}
