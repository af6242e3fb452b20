//! Policies on the same lists of a world.

use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;

use super::world::{Draw, Player, Policy, Turn, Verb, World};
use crate::error::Error;
use crate::evaluate::metric::Metric;
use crate::evaluate::results::{PolicyRun, Results};
use crate::evaluate::table::Table;
use crate::plot::{Axis, Mark, Plot};
use crate::progress::{Progress, Watcher};
use crate::report::{Block, Report, against};
use crate::run_folder::atomic_file;

/// What is compared, and how.
#[derive(Clone, Debug, Default)]
pub struct Comparing {
    /// Rules by name, trees and networks by file; none: those that the world names.
    pub policies: Vec<String>,
    /// Held against this one; none: the world's own choice.
    pub reference: Option<String>,
    /// By this metric; none: the world's first.
    pub metric: Option<String>,
    /// Whether plots are made.
    pub pictured: bool,
    /// Root of all randomness.
    pub seed: u64,
}

/// A comparison at one load.
pub struct At {
    /// The load, over that of the settings.
    pub load: f64,
    /// The scores.
    pub results: Results,
    /// The table.
    pub table: Table,
    /// The plots.
    pub plots: Vec<Plot>,
}

/// A comparison at one load or several.
pub struct Compared {
    /// In the order given.
    pub at: Vec<At>,
}

/// Scores at a load of several.
#[derive(Serialize)]
struct AtLoad<'a> {
    load: f64,
    #[serde(flatten)]
    results: &'a Results,
}

impl Compared {
    /// The scores of one load, or of each in turn.
    ///
    /// # Errors
    /// None in practice.
    pub fn json(&self) -> serde_json::Result<serde_json::Value> {
        match self.at.as_slice() {
            [only] => serde_json::to_value(&only.results),
            all => serde_json::to_value(
                all.iter()
                    .map(|at| AtLoad {
                        load: at.load,
                        results: &at.results,
                    })
                    .collect::<Vec<_>>(),
            ),
        }
    }

    /// Every play as a row of CSV; the loads in turn.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_csv(&self, path: &Path) -> Result<(), Error> {
        let mut text = String::new();
        for at in &self.at {
            let csv = at.results.csv()?;
            let rows = csv.split_once('\n').map_or(csv.as_str(), |(_, rows)| rows);
            text += if text.is_empty() { &csv } else { rows };
        }
        atomic_file::write(path, text.as_bytes())
    }

    /// Everything as a report.
    #[must_use]
    pub fn report(&self, title: &str) -> Report {
        let over = self.over_loads();
        let over = over
            .into_iter()
            .flat_map(|(table, plot)| std::iter::once(Block::from(table)).chain(plot.map(Block::from)));
        let report = Report::new(title).section("Over the load", over);
        self.at.iter().fold(report, |report, at| {
            let heading = match self.at.len() {
                1 => "Policies compared".to_string(),
                _ => format!("{} times the load", at.load),
            };
            let gains = against(&at.results).map(Block::from);
            let plots = at.plots.iter().cloned().map(Block::from);
            let blocks = std::iter::once(Block::from(at.table.clone()))
                .chain(gains)
                .chain(plots);
            report.section(&heading, blocks)
        })
    }

    /// The metric of each policy at each load, where there are several.
    #[must_use]
    pub fn over_loads(&self) -> Option<(Table, Option<Plot>)> {
        let first = &self.at.first().filter(|_| self.at.len() > 1)?.results;
        let metric = first.metric();
        let lines = first.policies().map(|(name, _)| {
            let value = |at: &At| {
                let mut all = at.results.policies();
                let found = all.find(|(other, _)| *other == name);
                found.and_then(|(_, summary)| summary.metrics.get(metric.key).copied())
            };
            let values = self.at.iter().map(|at| value(at).unwrap_or(f64::NAN)).collect();
            (name.to_string(), values)
        });
        let lines: Vec<(String, Vec<f64>)> = lines.collect();
        let header = self.at.iter().map(|at| format!("x{}, {}", at.load, metric.label));
        let table = Table {
            header: std::iter::once("policy".to_string()).chain(header).collect(),
            rows: lines
                .iter()
                .map(|(name, values)| {
                    let shown = values.iter().map(|value| metric.show(*value));
                    std::iter::once(name.clone()).chain(shown).collect()
                })
                .collect(),
            notes: vec!["x: times the load of the settings".into()],
        };
        let title = format!("{} over the load, one line for each policy", metric.label);
        let marks = lines.iter().map(|(name, values)| {
            let points = self.at.iter().zip(values).map(|(at, value)| (at.load, *value));
            Mark::line(name, points)
        });
        let plot = Plot::new(title, Axis::of("times the load"), Axis::of(metric.label));
        let plot = plot.of_policies().with(marks).if_any();
        Some((table, plot))
    }
}

/// Makes a player of a policy anew.
pub(super) type Make<'a> = Box<dyn Fn() -> Player<'a> + Sync + 'a>;

/// Plays `[player][list]`, each player with its form of the machines; `watcher` hears of each play, or of the steps of the plays.
pub(super) fn played<W: World>(
    world: &W,
    players: &[(usize, Make<'_>)],
    lists: &[W::List],
    (label, seed, watcher): (&str, u64, &Watcher),
) -> Result<Vec<Vec<W::Outcome>>, Error> {
    let steps: usize = lists.iter().map(|list| world.steps(list)).sum();
    let runs: Vec<(usize, usize)> = (0..players.len())
        .flat_map(|player| (0..lists.len()).map(move |list| (player, list)))
        .collect();
    let play = |&(player, list): &(usize, usize)| {
        let (form, make) = &players[player];
        let turn = Turn {
            place: list as u64,
            seed,
            form: *form,
            second: (*form > 0).then(make),
            watcher: Some(watcher),
        };
        let done = world.play(&lists[list], turn, make());
        if steps == 0 {
            watcher.tell(Progress::Step);
        }
        done
    };
    let total = if steps == 0 {
        runs.len()
    } else {
        steps * players.len()
    };
    let outcomes: Vec<Result<W::Outcome, Error>> =
        watcher.part(label, total, || runs.par_iter().map(play).collect());
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, Error>>()?;
    let (mut left, mut all) = (outcomes.into_iter(), Vec::new());
    for _ in players {
        all.push(left.by_ref().take(lists.len()).collect());
    }
    Ok(all)
}

/// The scores of plays `[policy][list]`.
pub(super) fn scored<W: World>(
    world: &W,
    names: &[String],
    outcomes: &[Vec<W::Outcome>],
    (load, metric, reference): (f64, Option<&str>, Option<&str>),
) -> Result<Results, Error> {
    let known = world.metrics();
    let metric = match metric {
        None => &known[0],
        Some(key) => metric_of(known, key)?,
    };
    let figures: Vec<Vec<Vec<(&'static str, f64)>>> = outcomes
        .iter()
        .map(|lists| lists.iter().map(|outcome| world.figures(outcome)).collect())
        .collect();
    let strongest = &names[world.reference(names, &figures)];
    let workload = match load {
        1.0 => world.name().to_string(),
        load => format!("{} x{load}", world.name()),
    };
    let runs = names.iter().zip(figures).flat_map(|(name, lists)| {
        let workload = &workload;
        lists
            .into_iter()
            .enumerate()
            .map(move |(list, figures)| PolicyRun {
                policy: name.clone(),
                workload: workload.clone(),
                seed: list as u64,
                metrics: figures
                    .into_iter()
                    .filter(|(_, value)| value.is_finite())
                    .map(|(key, value)| (key.to_string(), value))
                    .collect(),
                ..PolicyRun::default()
            })
    });
    let reference = reference.unwrap_or(strongest);
    Results::of_world((known, metric), "evaluate", runs.collect(), Some(reference))
}

fn metric_of(known: &'static [Metric], key: &str) -> Result<&'static Metric, Error> {
    known.iter().find(|metric| metric.key == key).ok_or_else(|| {
        let keys: Vec<&str> = known.iter().map(|metric| metric.key).collect();
        let hint = format!("{} is usual.", keys[0]);
        Error::config("metric", key, keys.join(", "), hint)
    })
}

/// The table of scores, with the world's own lines below.
pub(super) fn table_of<W: World>(world: &W, results: &Results) -> Table {
    let mut table = Table::compare(results, &world.columns(results));
    table.notes.extend(world.notes(results));
    table
}

/// Policies by name or file.
///
/// # Errors
/// A name that is not there, a file of something else.
pub(super) fn named<W: World>(world: &W, names: &[String]) -> Result<Vec<Policy>, Error> {
    let schema = world.schema().0;
    names.iter().map(|name| Policy::open(name, schema)).collect()
}

/// Plays all policies on all lists, at each of the world's loads.
///
/// # Errors
/// A policy or a setting that cannot be used.
pub fn compare<W: World>(world: &W, asked: &Comparing, watcher: &Watcher) -> Result<Compared, Error> {
    let (loads, num) = world.asked();
    let at = loads.iter().map(|load| {
        let lists = world.draw(Draw {
            verb: Verb::Compare,
            seed: asked.seed,
            stream: "compare",
            number: 0,
            load: *load,
            num,
        })?;
        Ok(compare_on(world, (&lists, *load), asked, watcher)?.0)
    });
    Ok(Compared {
        at: at.collect::<Result<_, Error>>()?,
    })
}

/// Scores, and what became of the lists `[policy][list]`.
pub type Played<W> = (At, Vec<Vec<<W as World>::Outcome>>);

/// The same on lists of a load, with what became of them `[policy][list]`.
///
/// # Errors
/// As [`compare`].
pub fn compare_on<W: World>(
    world: &W,
    (lists, load): (&[W::List], f64),
    asked: &Comparing,
    watcher: &Watcher,
) -> Result<Played<W>, Error> {
    let names = match asked.policies.as_slice() {
        [] => world.policies(),
        given => given.to_vec(),
    };
    let policies = named(world, &names)?;
    if let Some(reference) = asked.reference.as_ref().filter(|name| !names.contains(name)) {
        let hint = "Name a policy of this comparison.";
        return Err(Error::config("reference", reference, names.join(", "), hint));
    }
    let (mut shown, mut players) = (Vec::new(), Vec::new());
    for (form, words) in world.forms().iter().enumerate() {
        for (name, policy) in names.iter().zip(&policies) {
            let separator = if words.is_empty() { "" } else { ", " };
            shown.push(format!("{name}{separator}{words}"));
            players.push((form, Box::new(move || policy.player()) as Make<'_>));
        }
    }
    let outcomes = played(world, &players, lists, (world.name(), asked.seed, watcher))?;
    let (metric, reference) = (asked.metric.as_deref(), asked.reference.as_deref());
    let results = scored(world, &shown, &outcomes, (load, metric, reference))?;
    let at = At {
        load,
        table: table_of(world, &results),
        results,
        plots: match asked.pictured {
            true => world.plots(&shown, &outcomes),
            false => Vec::new(),
        },
    };
    Ok((at, outcomes))
}
