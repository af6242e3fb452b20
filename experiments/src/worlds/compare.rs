//! Policies on the same lists of a world, as they are and with one thing after the other taken away.

use rayon::prelude::*;

use super::compared::{At, Beside, Compared, Comparing, check_reference};
use super::world::{Draw, Player, Turn, Verb, World};
use crate::error::Error;
use crate::evaluate::metric::metric_of;
use crate::evaluate::results::{PolicyRun, Results};
use crate::evaluate::table::{Table, versus_cell};
use crate::progress::{Progress, Watcher};

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
    (lists, outcomes): (&[W::List], &[Vec<W::Outcome>]),
    (load, metric, reference): (f64, Option<&str>, Option<&str>),
) -> Result<Results, Error> {
    let known = world.metrics();
    let metric = metric_of(known, metric)?;
    let figures: Vec<Vec<Vec<(&'static str, f64)>>> = outcomes
        .iter()
        .map(|lists| lists.iter().map(|outcome| world.figures(outcome)).collect())
        .collect();
    let strongest = &names[world.reference(names, &figures)];
    let runs = (0..lists.len()).into_par_iter().map(|place| {
        let plays = names.iter().zip(outcomes);
        let plays: Vec<(&str, &W::Outcome)> = plays.map(|(name, all)| (name.as_str(), &all[place])).collect();
        world.runs(&lists[place], (place, load), &plays)
    });
    let runs: Vec<Vec<PolicyRun>> = runs.collect::<Result<_, Error>>()?;
    let reference = reference.unwrap_or(strongest);
    let results = Results::of_world((known, metric), "evaluate", runs.concat(), Some(reference))?;
    world.with_facts(results, lists)
}

/// The table of scores, with the world's own lines below.
pub(super) fn table_of<W: World>(world: &W, results: &Results, columns: &[&str]) -> Table {
    let mut table = Table::compare(results, columns);
    table.notes.extend(world.notes(results));
    table
}

/// Scores without plots, and without what is beside them.
pub(super) fn plain<W: World>(world: &W, load: f64, results: Results) -> At {
    At {
        load,
        table: table_of(world, &results, &world.columns(&results)),
        whole: table_of(world, &results, &world.report_columns(&results)),
        results,
        plots: Vec::new(),
        beside: Beside::default(),
    }
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
    let policies = world.opened(&names)?;
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    check_reference(asked.reference.as_deref(), &known)?;
    metric_of(world.metrics(), asked.metric.as_deref())?;
    Error::refuse_if(
        asked.ablated && world.without(lists).next().is_none(),
        "ablate",
        world.name(),
        "a world of which something can be taken away",
        "Leave --ablate out.",
    )?;
    let (mut shown, mut players) = (Vec::new(), Vec::new());
    for (form, words) in world.forms().iter().enumerate() {
        for (name, policy) in names.iter().zip(&policies) {
            let separator = if words.is_empty() { "" } else { ", " };
            shown.push(format!("{name}{separator}{words}"));
            players.push((form, Box::new(move || policy.player()) as Make<'_>));
        }
    }
    let mut outcomes = played(world, &players, lists, (world.name(), asked.seed, watcher))?;
    let (metric, reference) = (asked.metric.as_deref(), asked.reference.as_deref());
    let results = scored(world, &shown, (lists, &outcomes), (load, metric, reference))?;
    let mut at = plain(world, load, results);
    if asked.pictured {
        at.plots = world.plots(&shown, &outcomes);
    }
    at.beside = world.beside(lists, (&at.results, &mut outcomes), asked, watcher)?;
    if asked.ablated {
        let table = ablated(world, (&names, lists), &at, watcher)?;
        at.beside
            .tables
            .insert(0, ("ablation.md", "One thing taken away", table));
    }
    Ok((at, outcomes))
}

/// The comparison as it is, and without one thing after the other. Nothing is trained or tuned anew. A policy that needs what was taken
/// away has no ratio there.
fn ablated<W: World>(
    world: &W,
    (names, lists): (&[String], &[W::List]),
    at: &At,
    watcher: &Watcher,
) -> Result<Table, Error> {
    let (results, metric) = (&at.results, at.results.metric());
    let reference = results.reference().unwrap_or_default();
    let shown = results.policies().map(|(name, _)| name);
    let others: Vec<&str> = shown.filter(|name| *name != reference).collect();
    let mut table = Table {
        header: vec!["without".to_string(), format!("{reference}: {}", metric.label)],
        rows: vec![row("nothing: as it is", results, reference, &others)],
        notes: Vec::new(),
    };
    table.header.extend(others.iter().map(ToString::to_string));
    for without in world.without(lists) {
        let is_there = |name: &&String| without.world.opened(std::slice::from_ref(*name)).is_ok();
        let asked = Comparing {
            policies: names.iter().filter(is_there).cloned().collect(),
            reference: Some(reference.to_string()),
            metric: Some(metric.key.to_string()),
            ..Comparing::default()
        };
        let words = without.words;
        if !asked.policies.iter().any(|name| name == reference) {
            table
                .notes
                .push(format!("{words}: {reference} cannot do without"));
            continue;
        }
        let lists = without.lists.as_deref().unwrap_or(lists);
        let (found, _) = compare_on(&without.world, (lists, at.load), &asked, watcher)?;
        table.rows.push(row(words, &found.results, reference, &others));
    }
    table.notes.push(format!(
        "{} over that of {reference} on the same workloads, 95 % interval; nothing was trained or tuned anew",
        metric.label
    ));
    Ok(table)
}

fn row(words: &str, results: &Results, reference: &str, others: &[&str]) -> Vec<String> {
    let metric = results.metric();
    let of = |name: &str| {
        let mut all = results.policies();
        all.find(|(own, _)| *own == name).map(|(_, summary)| summary)
    };
    let absolute = of(reference).and_then(|summary| summary.metrics.get(metric.key));
    let absolute = absolute.map_or("-".to_string(), |value| metric.show(*value));
    let versus = |name: &&str| of(name).map_or("-".to_string(), |summary| versus_cell(metric, summary));
    let cells = others.iter().map(versus);
    [words.to_string(), absolute].into_iter().chain(cells).collect()
}
