//! A tree that is searched for: changed a little, judged on drawn lists, kept where less is lost.
//!
//! Four streams of lists share nothing: rules are tuned on *tune*, trees race against the strongest of each load on *race*, one of
//! those that the race kept is taken on *choice*, and *judge* judges it. Rules and trees are chosen by halving: all on a few lists, the
//! best quarter on three times as many, until the lists are played.

use std::path::{Path, PathBuf};

use pleach_scheduler::settings::Above;
use pleach_scheduler::tree::Tree;
use rayon::prelude::*;

use super::compare::{Make, plain, played, scored};
use super::compared::Compared;
use super::race::{Game, Raced, best_of, halved, race};
use super::world::{Draw, Player, Turn, Verb, World, columns_named, tree_over};
use crate::error::Error;
use crate::evaluate::gain::Gain;
use crate::evaluate::metric::{Better, Metric};
use crate::evaluate::results::Results;
use crate::judge::settled;
use crate::progress::Watcher;

pleach_scheduler::settings! {
    /// How a tree is searched for, or a network trained; what is left out is as the world says.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Searching {
        /// Loads of the lists, side by side
        pub loads: Vec<f64>, in Above(0.0, 1e6);
        /// Lists to play at least
        pub simulations: Option<u64>, in 1..=10_000_000;
        /// Most leaves
        pub leaves: Option<usize>, in 2..=256;
        /// Lists of each load on which the result is judged
        pub judge_lists: Option<usize>, in 1..=1_000;
        /// Lists of each load on which rules are tuned, and on which the tree is chosen
        pub tune_lists: Option<usize>, in 1..=1_000;
        /// Columns that the tree may not read, by name
        pub without: Vec<String>;
        /// A tree that a network imitates first, or that a search begins with too [default: rules by hand]
        pub teacher: Option<PathBuf>;
    }
}

/// What a search or a training found.
pub struct Searched {
    /// The tree.
    pub tree: Tree,
    /// The rules, the tree and the best that it began with, at each load on fresh lists.
    pub judged: Compared,
    /// By how much the tree is above each rule, over all fresh lists.
    pub gains: Vec<Gain>,
    /// The result in a sentence or two.
    pub verdict: String,
}

/// Searches; `file` keeps the state of the race, which goes on from it.
///
/// # Errors
/// Settings out of range, columns that are not there.
pub fn search<W: World>(
    world: &mut W,
    asked: &Searching,
    (seed, file): (u64, Option<&Path>),
    watcher: &Watcher,
) -> Result<Searched, Error> {
    let habits = world.habits();
    let loads = match asked.loads.as_slice() {
        [] => habits.loads.clone(),
        given => given.to_vec(),
    };
    let mut config = habits.search;
    config.simulations = asked.simulations.unwrap_or(config.simulations);
    config.leaves_max = asked.leaves.unwrap_or(config.leaves_max);
    let config = settled(&config, loads.len(), seed)?;
    let without = columns_named(world.schema().0, &asked.without)?;
    let starts = starts(world, &without, asked)?;
    let (tune_lists, first) = habits.tune_lists;
    let tune_lists = asked.tune_lists.unwrap_or(tune_lists);
    let choice_lists = asked.tune_lists.unwrap_or(habits.choice_lists);
    let draw = |stream: &'static str, load: f64, num: usize| Draw {
        verb: Verb::Search,
        seed,
        stream,
        number: 0,
        load,
        num,
    };
    let of_all = |world: &W, stream: &'static str, num: usize| -> Result<Vec<W::List>, Error> {
        let lists = loads.iter().map(|load| world.draw(draw(stream, *load, num)));
        Ok(lists
            .collect::<Result<Vec<_>, Error>>()?
            .into_iter()
            .flatten()
            .collect())
    };
    let tune = of_all(world, "tune", tune_lists)?;
    world.tune(&tune, watcher)?;
    let choice = of_all(world, "choice", choice_lists)?;
    let (mut rivals, mut raced) = (Vec::new(), Vec::new());
    for (place, &load) in loads.iter().enumerate() {
        let own = |lists: usize| place * lists..(place + 1) * lists;
        let strongest = match world.settled_rivals(&choice[own(choice_lists)], watcher)? {
            Some(rivals) => rivals,
            None => strongest(world, &tune[own(tune_lists)], first, seed)?,
        };
        let lists = world.draw(draw("race", load, config.num_lists() / loads.len()))?;
        let losses = lists.into_par_iter().enumerate().map(|(place, list)| {
            let turn = turn(place, seed);
            let loss = world.loss(&world.play(&list, turn, Player::Rule(&strongest[0]))?);
            Ok((list, loss))
        });
        raced.push(losses.collect::<Result<Vec<Raced<W::List>>, Error>>()?);
        rivals.push(strongest);
    }
    drop(tune);
    let game = Game {
        world: &*world,
        without,
    };
    let kept = race(&game, &starts, &raced, (&config, file), watcher)?;
    drop(raced);
    let start = kept[kept.len() - 1].clone();
    // A list of each load in turn, so that the first ones are of all loads.
    let in_turn: Vec<&W::List> = (0..choice_lists)
        .flat_map(|list| choice.iter().skip(list).step_by(choice_lists))
        .collect();
    let tree = best_of(&game, kept, &in_turn, habits.first_of_choice * loads.len())?;
    let [tree, start] = [tree, start].map(|tree| world.settled(tree, &choice, watcher));
    let (tree, start) = (tree?, start?);
    drop(choice);
    let judge_lists = asked.judge_lists.unwrap_or(habits.judge_lists);
    let judge = Judge {
        lists: &|load| world.draw(draw("judge", load, judge_lists)),
        rivals: loads.iter().copied().zip(rivals).collect(),
        own: &[
            ("tree", &|| Player::tree(&tree)),
            ("best start", &|| Player::tree(&start)),
        ],
        seed,
    };
    let (judged, gains) = judge.judged(world, watcher)?;
    let verdict = verdict(world, ("tree", "tree"), &gains[0], &judged);
    Ok(Searched {
        judged,
        gains: gains.into_iter().next().unwrap_or_default(),
        verdict,
        tree,
    })
}

/// The trees to begin with: rules by hand and the teacher.
///
/// # Errors
/// None, or a teacher that reads what may not be read.
fn starts<W: World>(world: &W, without: &[u16], asked: &Searching) -> Result<Vec<Tree>, Error> {
    let mut starts = world.starts(without)?;
    if let Some(path) = &asked.teacher {
        starts.push(tree_over(world.schema().0, path)?);
    }
    let is_allowed = |tree: &Tree| !tree.reads().iter().any(|column| without.contains(column));
    if !starts.is_empty() && starts.iter().all(is_allowed) {
        return Ok(starts);
    }
    let allowed = format!("columns with which a rule of {} is a tree", world.name());
    let hint = "Leave the tree a column that a rule reads; pleach distill searches trees of jobs.";
    Err(Error::config("without", asked.without.join(", "), allowed, hint))
}

/// The turn of a rule that may draw.
pub(super) fn turn(place: usize, seed: u64) -> Turn<'static> {
    Turn {
        seed,
        ..Turn::of(place as u64)
    }
}

/// The strongest of each group of rules, by halving from `first` lists on.
pub(super) fn strongest<W: World>(
    world: &W,
    lists: &[W::List],
    first: usize,
    seed: u64,
) -> Result<Vec<String>, Error> {
    let mut found: Vec<String> = Vec::new();
    for group in world.rivals() {
        let best = halved(group, lists.len(), first, |name, place| {
            let outcome = world.play(&lists[place], turn(place, seed), Player::Rule(name))?;
            let loss = world.loss(&outcome);
            Ok((loss.misses, loss.cost))
        })?;
        if !found.contains(&best) {
            found.push(best);
        }
    }
    Ok(found)
}

/// A policy of one's own in a judgement: its name, and one play of it.
pub(super) type Own<'a> = (&'a str, &'a (dyn Fn() -> Player<'a> + Sync));

/// A judgement on fresh lists.
pub(super) struct Judge<'a, L> {
    /// Lists of a load.
    pub lists: &'a (dyn Fn(f64) -> Result<Vec<L>, Error> + Sync),
    /// Of each load the rules to beat.
    pub rivals: Vec<(f64, Vec<String>)>,
    /// Policies that are judged.
    pub own: &'a [Own<'a>],
    /// Root of all randomness.
    pub seed: u64,
}

impl<L: Send + Sync> Judge<'_, L> {
    /// The scores of all at each load, and of each own policy by how much it is above each rule over all loads.
    pub(super) fn judged<W: World<List = L>>(
        &self,
        world: &W,
        watcher: &Watcher,
    ) -> Result<(Compared, Vec<Vec<Gain>>), Error> {
        let metric = &world.metrics()[0];
        let num_rivals = self
            .rivals
            .iter()
            .map(|(_, rivals)| rivals.len())
            .min()
            .unwrap_or(0);
        let mut values = vec![Vec::new(); num_rivals + self.own.len()];
        let mut at = Vec::new();
        for (load, rivals) in &self.rivals {
            let lists = (self.lists)(*load)?;
            let names: Vec<String> = rivals
                .iter()
                .cloned()
                .chain(self.own.iter().map(|(name, _)| (*name).to_string()))
                .collect();
            let players: Vec<(usize, Make<'_>)> = rivals
                .iter()
                .map(|rival| (0, Box::new(move || Player::Rule(rival)) as Make<'_>))
                .chain(
                    self.own
                        .iter()
                        .map(|(_, player)| (0, Box::new(move || (*player)()) as Make<'_>)),
                )
                .collect();
            let outcomes = played(world, &players, &lists, ("judge", self.seed, watcher))?;
            let results = scored(
                world,
                &names,
                (&lists, &outcomes),
                (*load, None, Some(rivals[0].as_str())),
            )?;
            let shown = rivals[..num_rivals].iter().map(String::as_str);
            let shown = shown.chain(self.own.iter().map(|(name, _)| *name));
            for (all, name) in values.iter_mut().zip(shown) {
                all.extend(results.values(name, metric.key));
            }
            at.push(plain(world, *load, results));
        }
        let gains = values[num_rivals..].iter().map(|own| {
            let rivals = values[..num_rivals].iter();
            rivals.map(|rival| Gain::by(metric.versus, own, rival)).collect()
        });
        let gains = gains.collect();
        Ok((Compared { at }, gains))
    }
}

/// Whether an interval lies on the better side of nothing.
pub(super) fn is_ahead(metric: &Metric, gain: &Gain) -> bool {
    match metric.better {
        Better::Lower => gain.interval.is_some_and(|(_, high)| high < 0.0),
        Better::Higher | Better::Neither => gain.is_sure(),
    }
}

/// The result in a sentence or two.
pub(super) fn verdict<W: World>(
    world: &W,
    (what, name): (&str, &str),
    gains: &[Gain],
    judged: &Compared,
) -> String {
    let scores: Vec<(f64, &Results)> = judged.at.iter().map(|at| (at.load, &at.results)).collect();
    let metric = &world.metrics()[0];
    let (wins, remarks) = world.remarks(name, is_ahead(metric, &gains[0]), &scores);
    let first = match (gains[0].interval, wins) {
        (None, _) => format!("Too few lists to tell whether the {what} is ahead"),
        (_, true) => format!("The {what} is ahead of every rule"),
        _ => "Nothing was won over the best rule".into(),
    };
    let rivals = judged.at[0].results.policies().map(|(name, _)| name);
    let several = judged.at.len() > 1;
    let against = gains.iter().zip(rivals).map(|(gain, rival)| {
        let rival = if several {
            "the strongest rule of each load"
        } else {
            rival
        };
        format!("{gain} in {} over {rival}", metric.label)
    });
    let against = against.collect::<Vec<_>>().join("; ");
    format!("{first}: {against}.{remarks}")
}
