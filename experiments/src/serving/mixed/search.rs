//! A tree that says how many replicas there are, searched for: changed a little, played on drawn days, kept where it leaves more
//! training at a price for each miss.
//!
//! Four streams of days share nothing: rules are tuned on the first, trees race on the second, on the third all are brought to the
//! share of hits that is asked for and the best tree and rule are taken, and the fourth judges. So training is compared at equal
//! hits, each side with as little reserve as the third days allow.

use pleach_distill::search::{Branch, SearchConfig};
use pleach_env::Seed;
use pleach_scheduler::Scorer;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::{Node, Tree};
use pleach_serving::llm::{AUTOSCALING, AUTOSCALING_1, ScorerAutoscaler};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::compare::more_training_pct;
use super::timeline::{MixedDay, Played};
use super::tuned::{Level, Rule, mean_of, worth_gpu_h};
use super::{Day, MixedBench, MixedComparison, MixedConfig};
use crate::error::Error;
use crate::progress::{Progress, Watcher};
use crate::serving::gain::Gain;
use crate::serving::race::{
    Game, Loss, Raced, best_of, by_hand, column, nodes, numbers, race, settings as settings_of, split,
};

/// By how much less a tree may hit on fresh days and still be called ahead, points. *Assumed*: both sides are brought to the same
/// share on days that choose.
const HITS_SLACK_PCT: f64 = 0.05;

/// How an autoscaler is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoscalerSearch {
    /// Least share of requests within both targets, %.
    pub hits_pct: f64,
    /// Days on which rules are tuned, and on which all are brought to the share of hits.
    pub tune_days: usize,
    /// Days on which the result is judged.
    pub judge_days: usize,
    /// Columns that the tree may not read, by name.
    pub without: Vec<String>,
    /// The search; `num_parts` and `seed` are set here.
    pub search: SearchConfig,
}

impl Default for AutoscalerSearch {
    fn default() -> AutoscalerSearch {
        AutoscalerSearch {
            hits_pct: 99.9,
            tune_days: 3,
            judge_days: 10,
            without: Vec::new(),
            search: SearchConfig {
                simulations: 400,
                rungs: vec![1, 2, 4],
                starts: 4,
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
pub struct SearchedAutoscaler {
    /// The tree.
    pub tree: Tree,
    /// Tuned `reactive`, the best tuned rule, the tree, and what the search began with: on fresh days.
    pub judged: MixedComparison,
    /// Training of the tree over that of the two rules, less 1, %.
    pub gains: [Gain; 2],
    /// Training that a miss was worth in the search, GPU·s.
    pub price_gpu_s: f64,
    /// Settings of the two rules at the end of what was tried.
    pub edges: Vec<String>,
}

impl SearchedAutoscaler {
    /// The result in a sentence or two.
    #[must_use]
    pub fn verdict(&self) -> String {
        let words = |place: usize| {
            let rule = &self.judged.rows[place].autoscaler;
            format!("{} % of training against {rule}", self.gains[place])
        };
        let hits_pct = |place: usize| self.judged.rows[place].hits_pct();
        // More training for fewer hits is no win.
        let wins = self.gains[1].is_sure() && hits_pct(2) >= hits_pct(1) - HITS_SLACK_PCT;
        let first = if wins {
            "The tree is ahead of every rule"
        } else {
            "Nothing was won over the best rule"
        };
        let edges = if self.edges.is_empty() {
            "no setting of a rule stands at the end of what was tried".to_string()
        } else {
            format!("at the end of what was tried: {}", self.edges.join(", "))
        };
        let price = self.price_gpu_s;
        format!(
            "{first}: {}; {}. Hits: the tree {:.2} %, that rule {:.2} %. A miss cost {price:.1} GPU s; {edges}.",
            words(0),
            words(1),
            hits_pct(2),
            hits_pct(1)
        )
    }
}

/// A cluster whose autoscaler may not read some columns.
struct Scaled<'a> {
    bench: &'a MixedBench,
    price_gpu_s: f64,
    without: Vec<u16>,
}

impl Scaled<'_> {
    fn run(&self, day: &Day, mut autoscaler: ScorerAutoscaler) -> Result<Loss, Error> {
        Ok(self.loss(&self.bench.play(day, &mut autoscaler)?.0))
    }

    fn of_tree(&self, tree: &Tree) -> Result<ScorerAutoscaler, Error> {
        Ok(ScorerAutoscaler::of_tree(tree, self.bench.capacity_per_s)?)
    }

    /// The part of all GPU time that was not worth anything.
    fn loss(&self, day: &MixedDay) -> Loss {
        Loss {
            misses: 1.0 - worth_gpu_h(day, self.price_gpu_s) / self.bench.gpu_h(),
            tail_s: 1.0,
        }
    }

    fn play_days(&self, days: &[Day], tree: &Tree) -> Result<Vec<Played>, Error> {
        let played = days
            .par_iter()
            .map(|day| self.bench.play(day, &mut self.of_tree(tree)?));
        played.collect()
    }
}

impl Game for Scaled<'_> {
    type List = Day;

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&AUTOSCALING, AUTOSCALING_1)
    }

    fn without(&self) -> &[u16] {
        &self.without
    }

    fn play(&self, day: &Day, scorer: Box<dyn Scorer>) -> Result<Loss, Error> {
        self.run(day, ScorerAutoscaler::new(scorer, self.bench.capacity_per_s)?)
    }

    fn play_tree(&self, day: &Day, tree: &Tree) -> Result<Loss, Error> {
        self.run(day, self.of_tree(tree)?)
    }
}

/// Searches.
///
/// # Errors
/// Settings out of range, a run that fails.
pub fn search_autoscaler(
    config: &MixedConfig,
    settings: &AutoscalerSearch,
    seed: u64,
    watcher: &Watcher,
) -> Result<SearchedAutoscaler, Error> {
    let hits_pct = settings.hits_pct;
    if !(hits_pct > 0.0 && hits_pct < 100.0) {
        return Err(Error::config(
            "hits-pct",
            hits_pct,
            "above 0, below 100",
            "Try 99.9.",
        ));
    }
    let without = numbers(&AUTOSCALING, &settings.without)?;
    let bench = MixedBench::new(config)?;
    let search = settings_of(&settings.search, 1, seed)?;
    let root = Seed(seed).child("autoscaler", 0);
    let draw = |name: &str, num: usize| -> Result<Vec<Day>, Error> {
        let seeds = (0..num as u64).into_par_iter().map(|day| root.child(name, day));
        seeds.map(|seed| bench.day(seed)).collect()
    };
    let level = Level {
        bench: &bench,
        hits_pct,
        watcher,
    };
    let tune = draw("tune", settings.tune_days)?;
    let price_gpu_s = watcher.part("price of a miss", 0, || level.price_gpu_s(&tune))?;
    let rules = watcher.part("rules", 0, || tuned(&level, &tune, price_gpu_s))?;
    drop(tune);
    let game = Scaled {
        bench: &bench,
        price_gpu_s,
        without,
    };
    let choice = draw("choice", settings.tune_days)?;
    let rivals = watcher.part("rules at the hits", 0, || rivals(&level, &rules, &choice))?;
    let raced = draw("race", search.num_lists())?;
    let of_rival = level.play(&raced, &rivals[1].name)?;
    let of_rival = of_rival.iter().map(|(day, _)| game.loss(day));
    let raced: Vec<Raced<Day>> = raced.into_iter().zip(of_rival).collect();
    let kept = race(&game, &starts(&game, &rules)?, &[raced], &search, watcher)?;
    let trees = watcher.part("trees at the hits", 0, || brought(&game, &level, kept, &choice))?;
    drop(choice);
    let judge = draw("judge", settings.judge_days)?;
    judged(&game, &level, (rivals, trees), &judge)
}

/// A rule with as little reserve as the hits allow.
struct Rival {
    name: String,
    edges: Vec<&'static str>,
}

/// Tuned `reactive`, and the rule that trains most, each with as little reserve as the hits allow.
fn rivals(level: &Level<'_>, rules: &[Rule; 3], days: &[Day]) -> Result<[Rival; 2], Error> {
    let at_level = rules.iter().map(|rule| {
        level.least(|reserve| {
            let name = rule.text(1.0 / reserve);
            let played = level.play(days, &name)?;
            Ok((name, played))
        })
    });
    let at_level: Vec<(String, Vec<Played>)> = at_level.collect::<Result<_, _>>()?;
    let training = |place: usize| mean_of(&at_level[place].1, |day| day.training_gpu_h);
    let best = (0..rules.len()).max_by(|one, other| training(*one).total_cmp(&training(*other)));
    Ok([0, best.unwrap_or(0)].map(|place| Rival {
        name: at_level[place].0.clone(),
        edges: rules[place].edges(),
    }))
}

/// The best tree that the race kept and the best that it began with, each with as little reserve as the hits allow.
fn brought(game: &Scaled<'_>, level: &Level<'_>, kept: Vec<Tree>, days: &[Day]) -> Result<[Tree; 2], Error> {
    let start = kept[kept.len() - 1].clone();
    let tree = best_of(game, kept, &days.iter().collect::<Vec<_>>(), 1)?;
    let least = |tree: Tree| -> Result<Tree, Error> {
        let (tree, _) = level.least(|reserve| {
            let tree = with_reserve(&tree, reserve)?;
            let played = game.play_days(days, &tree)?;
            level.watcher.tell(Progress::Step);
            Ok((tree, played))
        })?;
        Ok(tree)
    };
    Ok([least(tree)?, least(start)?])
}

fn judged(
    game: &Scaled<'_>,
    level: &Level<'_>,
    (rivals, [tree, start]): ([Rival; 2], [Tree; 2]),
    days: &[Day],
) -> Result<SearchedAutoscaler, Error> {
    let played = vec![
        level.play(days, &rivals[0].name)?,
        level.play(days, &rivals[1].name)?,
        game.play_days(days, &tree)?,
        game.play_days(days, &start)?,
    ];
    let [plain, best] = &rivals;
    let names = [plain.name.as_str(), best.name.as_str(), "tree", "best start"].map(str::to_string);
    let judged = MixedComparison::of(game.bench, &names, played);
    let gains = [0, 1].map(|rival| {
        let gains = more_training_pct(&judged.rows[2].days, &judged.rows[rival].days);
        Gain::of_differences(&gains)
    });
    let words = |rival: &Rival| -> Vec<String> {
        let edges = rival.edges.iter();
        edges.map(|key| format!("{key} of {}", rival.name)).collect()
    };
    let mut edges = words(plain);
    edges.extend(words(best).into_iter().filter(|_| best.name != plain.name));
    Ok(SearchedAutoscaler {
        tree,
        judged,
        gains,
        price_gpu_s: game.price_gpu_s,
        edges,
    })
}

/// The rules at their best for a price: `reactive` as it is, with roots in reserve and units, and `seasonal`, each from where the one
/// before stands and from there in patience.
fn tuned(level: &Level<'_>, days: &[Day], price_gpu_s: f64) -> Result<[Rule; 3], Error> {
    let best_from = |start: Rule| -> Result<Rule, Error> {
        let [one, other] = [start.patient(), start].map(|start| level.climbed(start, days, price_gpu_s));
        let (one, other) = (one?, other?);
        Ok(if one.0 > other.0 { one.1 } else { other.1 })
    };
    let plain = best_from(Rule::plain())?;
    let staffed = best_from(plain.staffed())?;
    let seasonal = best_from(staffed.seasonal())?;
    Ok([plain, staffed, seasonal])
}

/// Columns that say how much of what replicas serve is taken: the larger the reserve the lower their thresholds.
const SHARES: [&str; 5] = [
    "load_share",
    "peak_share",
    "usual_share",
    "forecast_share",
    "open_share",
];

/// The same tree with another reserve, a factor.
pub(super) fn with_reserve(tree: &Tree, factor: f64) -> Result<Tree, Error> {
    let is_share = |number: u16| SHARES.contains(&AUTOSCALING.features[usize::from(number)].name);
    let roots = column(&AUTOSCALING, "spare_roots", 0.0).0;
    let mut nodes: Vec<Node> = tree.nodes().to_vec();
    for node in &mut nodes {
        if let Node::Split {
            feature, threshold, ..
        } = node
        {
            if is_share(*feature) {
                *threshold = (f64::from(*threshold) / factor) as f32;
            } else if *feature == roots {
                *threshold = (f64::from(*threshold) * factor) as f32;
            }
        }
    }
    Tree::over(&AUTOSCALING, tree.meta().clone(), &nodes).map_err(|error| Error::Failed(error.to_string()))
}

/// Ranks of leaves: what does not serve the load, the most that can be done then, what serves it.
const SHORT: u32 = 0;
const MOST: u32 = 2;
const ENOUGH: u32 = 4;

/// Time after a grant in which a start takes nobody back, s. *Assumed.*
const HOLDS_S: [f32; 2] = [0.0, 600.0];

/// Rules by hand, as trees: the fewest replicas that serve a load with a reserve; fewer only where the highest load of the last
/// minutes allows, some only a while after the last grant; with and without regard to whole gangs and to what is idle.
fn starts(game: &Scaled<'_>, rules: &[Rule; 3]) -> Result<Vec<Tree>, Error> {
    let is_allowed = |name: &str| !game.without.contains(&column(&AUTOSCALING, name, 0.0).0);
    let mut trees = Vec::new();
    for share in ["load_share", "forecast_share"] {
        for factor in [0.94, 1.0, 1.08_f32] {
            for gangs in [false, true] {
                for hold_s in HOLDS_S {
                    let mut read = vec![share, "peak_share"];
                    read.extend(["gained_gpus", "idle_gpus"].iter().filter(|_| gangs));
                    read.extend(Some("since_more_s").filter(|_| hold_s > 0.0));
                    if !read.iter().all(|name| is_allowed(name)) {
                        continue;
                    }
                    let bound = factor * rules[usize::from(gangs)].target() as f32;
                    let words = if gangs { " in gangs" } else { "" };
                    let name = format!("{share} {bound:.2}{words}, held {hold_s} s");
                    let (root, weights) = start((share, bound), gangs, hold_s);
                    trees.push(by_hand(game, &name, weights, &nodes(&root))?);
                }
            }
        }
    }
    Ok(trees)
}

/// The tree of a start, and the weights of its key.
fn start((share, bound): (&str, f32), gangs: bool, hold_s: f32) -> (Branch, &'static [(&'static str, f32)]) {
    let when =
        |name: &str, raw: f32, up_to: Branch, beyond: Branch| split(&AUTOSCALING, name, raw, up_to, beyond);
    let (short, most, enough) = (Branch::Leaf(SHORT), Branch::Leaf(MOST), Branch::Leaf(ENOUGH));
    let more = when("coming", 3.5, short.clone(), most);
    let more = when(share, bound, enough.clone(), more);
    let mut fewer = when("peak_share", bound, enough, short.clone());
    if hold_s > 0.0 {
        fewer = when("since_more_s", hold_s, short.clone(), fewer);
    }
    if gangs {
        let fewer = when("gained_gpus", 0.5, short, fewer);
        let weights = &[("replicas", 0.5), ("idle_gpus", 1.0)];
        return (when("is_fewer", 0.5, more, fewer), weights);
    }
    let fewer = when("leaving", 1.5, fewer, short);
    (when("is_fewer", 0.5, more, fewer), &[("replicas", 1.0)])
}
