//! Verbs on worlds that are not of jobs: each command hands over to the one here where `--workload` says requests, calls or a service.

use std::path::Path;
use std::sync::Arc;

use pleach_agents::TrainConfig;
use pleach_experiments::WorkloadSource;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::evaluation::no_settings;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::judge::state_file;
use pleach_experiments::progress::Stopped;
use pleach_experiments::report::{Block, Report};
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::worlds::{
    AnyWorld, Compared, Searched, Searching, Settings, Training, kinds, not_read, of_pairs, open, read,
};
use pleach_scheduler::settings::{Field, Settings as _};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::commands::Context;
use crate::flags::workload::WorkloadWriteArgs;
use crate::flags::{DistillArgs, ExplainArgs, TrainArgs};
use crate::progress::bars;

/// Keys of `--set` that say how is searched and learned, and not what the world is.
const SEARCH: &str = "search.";
const TRAIN: &str = "train.";

/// A world with what its command was asked for.
pub(super) struct Asked {
    pub(super) world: Box<dyn AnyWorld>,
    settings: Settings,
    search: Searching,
    train: Settings,
}

/// Flags that every verb reads in every world.
const OF_ALL: [&str; 9] = [
    "workload", "set", "seed", "out", "json", "quiet", "threads", "resume", "force",
];

/// The world that `--workload` and `--set` stand for; none where it is that of jobs. `reads` are the flags that the verb looks at there
/// beside those of all.
///
/// # Errors
/// Settings that are not there, settings of a world of jobs, flags that the verb would not look at.
pub(super) fn of(
    source: &WorkloadSource,
    pairs: &[String],
    reads: &[&str],
    context: &Context<'_>,
) -> Result<Option<Asked>, Error> {
    let asked = of_world(source, pairs, reads, context)?;
    if asked.is_none() {
        no_settings(pairs)?;
    }
    Ok(asked)
}

fn of_world(
    source: &WorkloadSource,
    pairs: &[String],
    reads: &[&str],
    context: &Context<'_>,
) -> Result<Option<Asked>, Error> {
    let (mut settings, mut search, mut train) = (Settings::new(), Settings::new(), Settings::new());
    let pairs = of_pairs(pairs)?;
    for (key, value) in pairs.clone() {
        match (key.strip_prefix(SEARCH), key.strip_prefix(TRAIN)) {
            (Some(key), _) => search.insert(key.into(), value),
            (_, Some(key)) => train.insert(key.into(), value),
            _ => settings.insert(key, value),
        };
    }
    let Some((world, settings)) = open(&source.workload, settings)? else {
        return Ok(None);
    };
    let search = read(&search)?;
    let keys = pairs
        .keys()
        .filter(|key| key.starts_with(SEARCH) || key.starts_with(TRAIN));
    let is_read = |word: &&String| {
        let is_of = |read: &&str| word == read || *read == TRAIN && word.starts_with(TRAIN);
        OF_ALL.iter().chain(reads).any(is_of)
    };
    match context.given.iter().chain(keys).find(|word| !is_read(word)) {
        Some(word) => Err(not_read(word, world.name())),
        None => Ok(Some(Asked {
            world,
            settings,
            search,
            train,
        })),
    }
}

/// What a folder is of: the world with its settings, and what else was asked for. What is left out is not there.
pub(super) fn about(asked: &Asked, key: &str, more: &impl Serialize) -> Value {
    plain(&serde_json::json!({"world": asked.world.name(), "settings": asked.settings, key: more}))
}

/// Without what is left out.
pub(super) fn plain(whole: &impl Serialize) -> Value {
    let mut whole = serde_json::json!(whole);
    strip(&mut whole);
    whole
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Says what was read of a list, and what was left out.
pub(super) fn say_account(world: &dyn AnyWorld, quiet: bool, context: &mut Context<'_>) -> Result<(), Error> {
    match world.account() {
        lines if lines.is_empty() || quiet => Ok(()),
        lines => context.say(&lines.join("\n")),
    }
}

/// Flags that `pleach evaluate` reads.
pub(super) const EVALUATE: [&str; 6] = ["policy", "reference", "metric", "csv", "html", "ablate"];

pub(super) fn finish(folder: RunFolder, quiet: bool, context: &mut Context<'_>) -> Result<(), Error> {
    let place = folder.path().to_path_buf();
    folder.finish()?;
    match quiet {
        true => Ok(()),
        false => context.say(&format!("written to {}", place.display())),
    }
}

/// The tables of a comparison, where there are several loads that of all loads first.
pub(super) fn say_tables(
    compared: &Compared,
    with_all: bool,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    let over = compared
        .over_loads()
        .filter(|_| with_all)
        .map(|(table, _)| table.to_terminal());
    let several = compared.at.len() > 1;
    let each = compared.at.iter().map(|at| match several {
        true => format!("{} times the load\n{}", at.load, at.table.to_terminal()),
        false => at.table.to_terminal(),
    });
    let tables = compared.at.iter().flat_map(|at| &at.beside.tables);
    let tables = tables.map(|(_, _, table)| table.to_terminal());
    let all: Vec<String> = over
        .into_iter()
        .chain(each)
        .chain(tables)
        .map(|text| text.trim_end().to_string())
        .collect();
    context.say(&all.join("\n\n"))
}

/// Flags and settings that `pleach distill --search` reads.
pub(super) const DISTILL: [&str; 11] = [
    "search",
    "simulations",
    "leaves",
    "accept-lists",
    "search.loads",
    "search.simulations",
    "search.leaves",
    "search.judge_lists",
    "search.tune_lists",
    "search.without",
    "search.teacher",
];

/// `pleach distill --search`.
pub(super) fn distill(mut asked: Asked, args: &DistillArgs, context: &mut Context<'_>) -> Result<(), Error> {
    Error::refuse_if(
        !args.search,
        "search",
        "left out",
        "given beside this world",
        "Give --search; a network is trained and pruned by pleach train --workload.",
    )?;
    let quiet = args.run.quiet();
    let seed = args.run.seed();
    let searching = Searching {
        simulations: args.simulations.or(asked.search.simulations),
        leaves: args
            .leaves
            .iter()
            .max()
            .map(|leaves| usize::from(*leaves))
            .or(asked.search.leaves),
        judge_lists: args.accept_lists.map(usize::from).or(asked.search.judge_lists),
        ..asked.search.clone()
    };
    say_account(asked.world.as_ref(), quiet, context)?;
    let about = about(&asked, "search", &searching);
    let folder = RunFolder::open(
        "distill",
        &about,
        seed,
        args.run.out.as_deref(),
        args.run.existing(),
    )?;
    let state = state_file(folder.path());
    let found = asked
        .world
        .search(&searching, (seed, Some(&state)), &bars(quiet))?;
    let text = serde_json::to_string_pretty(&about).unwrap_or_default();
    found_in(
        &found,
        (folder, "A tree from a search", &text),
        (quiet, args.run.json()),
        context,
    )
}

/// Writes what a search or a training found into its folder, and says it.
fn found_in(
    found: &Searched,
    (folder, title, settings): (RunFolder, &str, &str),
    (quiet, to): (bool, Option<&Path>),
    context: &mut Context<'_>,
) -> Result<(), Error> {
    folder.write("tree.json", found.tree.to_json().as_bytes())?;
    let words = found.tree.to_text();
    folder.write("tree.txt", words.as_bytes())?;
    folder.write_json("results.json", &found.judged)?;
    let report: Report = found.judged.report(title);
    report
        .section("The tree", [Block::from(&found.tree)])
        .section("Verdict", [Block::Verdict(found.verdict.clone())])
        .made_by(&context.command_line, settings)
        .write(&folder.file("report.html")?)?;
    if !quiet {
        say_tables(&found.judged, false, context)?;
        context.say(&format!("\n{}\n{}", words.trim_end(), found.verdict))?;
    }
    if let Some(path) = to {
        context.write_json(path, &found.judged)?;
    }
    finish(folder, quiet, context)
}

/// Flags and settings that `pleach train` reads.
const OF_TRAINING: [&str; 6] = [
    "learner",
    "search.loads",
    "search.teacher",
    "search.leaves",
    "search.judge_lists",
    TRAIN,
];

/// `pleach train`, whose `--set` is of its settings where the world is of jobs.
pub(super) fn train_of(
    source: &WorkloadSource,
    pairs: &[String],
    context: &Context<'_>,
) -> Result<Option<Asked>, Error> {
    of_world(source, pairs, &OF_TRAINING, context)
}

/// `pleach train`.
pub(super) fn train(asked: &Asked, args: &TrainArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let mut train = Training::default().train;
    train.learner = args.request.learner.unwrap_or(train.learner);
    let seed = args.run.seed();
    let training = Training {
        loads: asked.search.loads.clone(),
        teacher: asked.search.teacher.clone(),
        leaves: asked.search.leaves.unwrap_or(Training::default().leaves),
        judge_lists: asked
            .search
            .judge_lists
            .unwrap_or(Training::default().judge_lists),
        train: with(train, &asked.train)?,
    };
    let quiet = args.run.quiet();
    say_account(asked.world.as_ref(), quiet, context)?;
    training.train.check()?;
    let about = about(asked, "training", &training);
    let folder = RunFolder::open(
        "train",
        &about,
        seed,
        args.run.out.as_deref(),
        args.run.existing(),
    )?;
    let listening = context.stop.listen();
    let stop = Arc::clone(&context.stop);
    let watcher = bars(quiet).stopped_by(move |_, _| stop.asked().map(|signal| Stopped { signal }));
    let found = asked
        .world
        .train(&asked.settings, (&training, seed), folder.path(), &watcher)?;
    drop(listening);
    let text = serde_json::to_string_pretty(&about).unwrap_or_default();
    found_in(
        &found,
        (folder, "A network and its tree", &text),
        (quiet, args.run.json()),
        context,
    )
}

/// Settings of a learner with some changed, by their paths.
fn with(train: TrainConfig, changes: &Settings) -> Result<TrainConfig, Error> {
    let refused = |error: serde_json::Error| {
        let said = pleach_scheduler::settings::with_nearest(&error.to_string());
        Error::config(
            "set",
            said,
            "keys of train in settings.toml",
            "Leave it out for its default.",
        )
    };
    let mut whole = serde_json::to_value(train).map_err(refused)?;
    for (path, value) in changes {
        let mut place = &mut whole;
        for part in path.split('.') {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[part];
        }
        *place = value.clone();
    }
    serde_json::from_value(whole).map_err(refused)
}

/// Flags that `pleach explain` reads.
pub(super) const EXPLAIN: [&str; 2] = ["decision", "why-not"];

/// `pleach explain`.
pub(super) fn explain(asked: &Asked, args: &ExplainArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let decision = args.decision.unwrap_or(1);
    let place = Path::new(&args.tree);
    let place = if place.is_dir() {
        place.join("tree.json")
    } else {
        place.to_path_buf()
    };
    let mut told = asked.world.explain(&place, decision as usize, args.draws.seed)?;
    if let Some(row) = &args.why_not {
        told.keep(row)?;
    }
    context.say(told.in_words().trim_end())?;
    match &args.data.json {
        Some(path) => context.write_json(path, &told),
        None => Ok(()),
    }
}

/// `pleach workload settings`.
pub(super) fn settings(world: &str, context: &mut Context<'_>) -> Result<(), Error> {
    let fields = kinds()
        .filter(|kind| kind.name == world)
        .flat_map(|kind| (kind.keys)());
    let fields = fields.chain(Searching::fields("search"));
    let row = |field: Field| vec![field.key, field.default, field.allowed, field.words];
    let table = Table {
        header: ["key", "default", "allowed", "what it is"]
            .map(str::to_string)
            .to_vec(),
        rows: fields.map(row).collect(),
        notes: vec!["train.KEY is a key of train in settings.toml, such as train.num_updates=60".into()],
    };
    context.say(&table.to_terminal())
}

/// `pleach workload write`.
pub(super) fn write(asked: &Asked, args: &WorkloadWriteArgs, context: &mut Context<'_>) -> Result<(), Error> {
    args.target.check("to", &args.to)?;
    let said = asked.world.write(&args.to, args.draws.seed)?;
    context.say(&format!("{said}, written to {}", args.to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_a_search_is_read_by_a_verb() {
        let read = DISTILL.iter().chain(&OF_TRAINING);
        let mut read: Vec<&str> = read.copied().filter(|word| word.starts_with(SEARCH)).collect();
        read.sort_unstable();
        read.dedup();
        let mut keys: Vec<String> = Searching::fields("search")
            .into_iter()
            .map(|field| field.key)
            .collect();
        keys.sort_unstable();
        assert_eq!(read, keys);
    }
}
