//! A tree that dispatches, searched for: changed a little, judged on drawn lists, kept where more requests meet their
//! targets.
//!
//! Four streams of lists share nothing: rivals are tuned on the first, trees race on the second, one that the race kept
//! is taken on the third, and the fourth judges it. Whom it has to beat is the best of all rules, each with its margins,
//! its bounds for dropping requests, and a rule against cold starts, which alone is worth more than all the rest where
//! there is too much work.

use pleach_distill::search::{Branch, SearchConfig};
use pleach_env::Seed;
use pleach_scheduler::Scorer;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::Tree;
use pleach_serving::functions::{DISPATCHING_1, Dispatcher, Outcome, SCHEMA, ScorerDispatcher};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{DispatcherComparison, FunctionsConfig, Setup, lists};
use crate::error::Error;
use crate::progress::Watcher;
use crate::serving::gain::Gain;
use crate::serving::race::{
    Game, Loss, Raced, best_of, by_hand, column, nodes, numbers, race, settings as settings_of,
};

/// Lists on which rivals are tuned. *Assumed.*
const TUNE_LISTS: usize = 4;
/// Lists on which one of the kept trees is taken. *Assumed.*
const CHOICE_LISTS: usize = 12;

/// How a dispatcher is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DispatchSearch {
    /// Lists on which the result is judged.
    pub judge_lists: usize,
    /// Columns that the tree may not read, by name.
    pub without: Vec<String>,
    /// The search; `num_parts` and `seed` are set here.
    pub search: SearchConfig,
}

impl Default for DispatchSearch {
    fn default() -> DispatchSearch {
        DispatchSearch {
            judge_lists: 20,
            without: Vec::new(),
            search: SearchConfig {
                simulations: 2_000,
                rungs: vec![2, 6, 12],
                leaves_max: 16,
                ..SearchConfig::default()
            },
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct SearchedDispatcher {
    /// The tree.
    pub tree: Tree,
    /// The best tuned rule, tuned ESG as published, the tree: on fresh lists.
    pub judged: DispatcherComparison,
    /// Points of hits over the best tuned rule, and over tuned ESG.
    pub gains: [Gain; 2],
}

impl SearchedDispatcher {
    /// The result in a sentence or two.
    #[must_use]
    pub fn verdict(&self) -> String {
        let words = |place: usize| {
            let policy = &self.judged.policies[place].policy;
            format!("{} points of hits against {policy}", self.gains[place])
        };
        let wins = self.gains[0].is_sure();
        let first = if wins {
            "The tree is ahead of every rule"
        } else {
            "Nothing was won over the best rule"
        };
        format!("{first}: {}; {}.", words(0), words(1))
    }
}

/// A setup whose dispatcher may not read some columns.
struct Dispatched<'a> {
    setup: &'a Setup,
    without: Vec<u16>,
}

impl Game for Dispatched<'_> {
    type List = Seed;

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&SCHEMA, DISPATCHING_1)
    }

    fn without(&self) -> &[u16] {
        &self.without
    }

    fn play(&self, list: &Seed, scorer: Box<dyn Scorer>) -> Result<Loss, Error> {
        let mut dispatcher = ScorerDispatcher::new(scorer)?;
        Ok(loss(&self.setup.play(&mut dispatcher, *list)?))
    }

    fn play_tree(&self, list: &Seed, tree: &Tree) -> Result<Loss, Error> {
        let mut dispatcher = ScorerDispatcher::of_tree(tree)?;
        Ok(loss(&self.setup.play(&mut dispatcher, *list)?))
    }
}

fn loss(outcome: &Outcome) -> Loss {
    let p99_s = 1e-6 * outcome.latencies.quantile_us(0.99);
    Loss {
        misses: 1.0 - outcome.hit_share(),
        // A long one where nobody was served.
        tail_s: if p99_s.is_finite() { p99_s.max(1e-6) } else { 1e6 },
    }
}

/// Bounds for dropping: below so many times the fastest way on. *Ours*: the settings give about 6.5 times at arrival, and beyond
/// that all is dropped.
const SHEDS: [f64; 9] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 5.5, 6.0];

/// ESG as published, with a margin and a bound for dropping.
fn esg() -> Vec<String> {
    let mut names = Vec::new();
    for margin in [0.0, 0.1, 0.2, 0.3] {
        for shed in SHEDS {
            names.push(format!("esg:margin={margin}:shed={shed}"));
        }
    }
    names
}

/// All rules, tuned alike. *Ours*, as wide as pays anywhere at 105 to 150 % of the heavy setting.
fn rivals() -> Vec<String> {
    let mut names = Vec::new();
    for shed in SHEDS {
        for cold in [true, false] {
            for margin in [0.0, 0.1, 0.2] {
                names.push(format!("esg:edf=true:margin={margin}:shed={shed}:cold={cold}"));
                names.push(format!("edf:margin={margin}:shed={shed}:cold={cold}"));
                names.push(format!(
                    "infless:warm=true:margin={margin}:shed={shed}:cold={cold}"
                ));
                names.push(format!("nexus:margin={margin}:shed={shed}:cold={cold}"));
                names.push(format!("clockwork:margin={margin}:shed={shed}:cold={cold}"));
            }
            names.push(format!("esg:shed={shed}:cold={cold}"));
            names.push(format!("edf:margin=0.5:shed={shed}:cold={cold}"));
            names.push(format!("fast-gshare:warm=true:shed={shed}:cold={cold}"));
            names.push(format!("fastest:shed={shed}:cold={cold}"));
        }
    }
    names
}

/// That with the most hits on lists of its own.
fn strongest(setup: &Setup, names: &[String], seeds: &[Seed]) -> Result<String, Error> {
    let outcomes = setup.play_all(names, seeds)?;
    let table = DispatcherComparison::of(names, &outcomes);
    Ok(names[table.strongest].clone())
}

/// Searches.
///
/// # Errors
/// Settings out of range, a run that fails.
pub fn search_dispatcher(
    config: &FunctionsConfig,
    settings: &DispatchSearch,
    seed: u64,
    watcher: &Watcher,
) -> Result<SearchedDispatcher, Error> {
    if config.requests.is_some() {
        let hint = "Leave it out: trees are searched for on drawn lists.";
        return Err(Error::config(
            "requests",
            "a recorded list",
            "none with a search",
            hint,
        ));
    }
    let setup = config.setup(1.0)?;
    let search = settings_of(&settings.search, 1, seed)?;
    let tune = lists(seed, "tune", TUNE_LISTS);
    let rivals = [
        strongest(&setup, &rivals(), &tune)?,
        strongest(&setup, &esg(), &tune)?,
    ];
    let raced = lists(seed, "race", search.num_lists());
    let of_rival = setup.play_all(&rivals[..1], &raced)?;
    let raced: Vec<Raced<Seed>> = raced.into_iter().zip(of_rival[0].iter().map(loss)).collect();
    let game = Dispatched {
        setup: &setup,
        without: numbers(&SCHEMA, &settings.without)?,
    };
    let kept = race(&game, &starts(&game)?, &[raced], &search, watcher)?;
    let choice = lists(seed, "choice", CHOICE_LISTS);
    let tree = best_of(&game, kept, &choice.iter().collect::<Vec<_>>(), 3)?;
    judged(tree, &setup, rivals, &lists(seed, "judge", settings.judge_lists))
}

fn judged(
    tree: Tree,
    setup: &Setup,
    rivals: [String; 2],
    seeds: &[Seed],
) -> Result<SearchedDispatcher, Error> {
    let mut outcomes = setup.play_all(&rivals, seeds)?;
    let of_tree = seeds.par_iter().map(|seed| {
        let mut dispatcher: Box<dyn Dispatcher> = Box::new(ScorerDispatcher::of_tree(&tree)?);
        setup.play(dispatcher.as_mut(), *seed)
    });
    outcomes.push(of_tree.collect::<Result<_, Error>>()?);
    let [best, esg] = rivals;
    let judged = DispatcherComparison::of(&[best, esg, "tree".into()], &outcomes);
    let gains = [0, 1].map(|rival| Gain::of(&judged.policies[2].by_list, &judged.policies[rival].by_list));
    Ok(SearchedDispatcher { tree, judged, gains })
}

/// Rules by hand, as trees: orders and prices, each with a bound for dropping requests, with cold starts and without; those of which
/// a column is left.
fn starts(game: &Dispatched<'_>) -> Result<Vec<Tree>, Error> {
    let is_allowed = |name: &str| !game.without.contains(&column(&SCHEMA, name, 0.0).0);
    // Where the column may not be read the second one holds.
    let when = |name: &str, raw: f32, up_to: Branch, beyond: Branch| {
        let (feature, threshold) = column(&SCHEMA, name, raw);
        if is_allowed(name) {
            Branch::split(feature, threshold, up_to, beyond)
        } else {
            beyond
        }
    };
    // Dropping below a bound, waiting before what is cold or late, else running.
    let shape = |shed: f32, cold: u32| {
        let in_time = when("end_share", 1.0, Branch::Leaf(5), Branch::Leaf(3));
        let run = when("is_warm", 0.5, Branch::Leaf(cold), in_time);
        let act = when("is_wait", 0.5, run, Branch::Leaf(2));
        let shed = when("slack_share", shed, Branch::Leaf(6), Branch::Leaf(0));
        nodes(&when("is_shed", 0.5, act, shed))
    };
    let rules: [(&str, &[(&str, f32)]); 5] = [
        (
            "least slack, most slices",
            &[("slack_share", 1.0), ("slices", -0.5)],
        ),
        (
            "least slack, least cost",
            &[("slack_share", 1.0), ("cost_share", 0.5)],
        ),
        (
            "least rest, least slice time",
            &[("rest_s", 1.0), ("slice_s", 1.0)],
        ),
        (
            "least left, least slice time",
            &[("left_share", 1.0), ("slice_s", 1.0)],
        ),
        (
            "least rest to come, cost",
            &[("rest_share", 1.0), ("slack_share", 0.5), ("cost_share", 0.5)],
        ),
    ];
    let mut trees = Vec::new();
    for (rule, weights) in &rules {
        let weights: Vec<(&str, f32)> = weights
            .iter()
            .copied()
            .filter(|(name, _)| is_allowed(name))
            .collect();
        if weights.is_empty() {
            continue;
        }
        for (words, shed, cold) in [("", 1.2, 1), ("early", 5.5, 1), ("cold starts", 1.2, 4)] {
            let name = format!("{rule} {words}");
            trees.push(by_hand(game, name.trim(), &weights, &shape(shed, cold))?);
        }
    }
    Ok(trees)
}
