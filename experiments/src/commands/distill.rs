//! `pleach distill`: a tree from any policy.

use pleach_distill::DistillConfig;
use serde::Serialize;

use crate::atomic_file::read_toml;
use crate::cli::DistillArgs;
use crate::commands::Context;
use crate::commands::evaluate::COLUMNS;
use crate::contest::contest;
use crate::contestant::{Contestant, TREE_FILE};
use crate::error::Error;
use crate::progress::Bar;
use crate::pruning::prune;
use crate::report::Report;
use crate::results::Results;
use crate::run_folder::RunFolder;
use crate::scenario::{episodes, seeds};
use crate::table::Table;
use crate::validation::Validation;

/// Largest configuration, bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Workloads on which the tree is chosen.
const NUM_VALIDATION: usize = 32;

/// What makes two distillations the same: the flags, and what the file of `--config` says.
#[derive(Serialize)]
struct Settings<'a> {
    args: &'a DistillArgs,
    distill: &'a DistillConfig,
}

/// Runs the distillation.
///
/// # Errors
/// Flags that cannot be used, a folder in the way, a run that fails.
pub fn run(args: &DistillArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let config = config(args)?;
    let env = args.workload.env(&args.scheduling)?;
    env.validate().map_err(crate::scenario::env_error)?;
    // A run's folder may hold a network and a tree; the network is the teacher.
    let mut teachers = Contestant::open(&args.teacher)?;
    let teacher = teachers.remove(0);
    teacher.check(env.sim.capabilities)?;
    let (seed, quiet) = (args.run.seed, args.run.quiet);
    let folder = RunFolder::open(
        "distill",
        &Settings {
            args,
            distill: &config,
        },
        seed,
        args.run.out.as_deref(),
        args.run.existing(),
    )?;
    let validation = Validation::new(&env, seed, NUM_VALIDATION)?;
    let bar = Bar::new(quiet, "distill", 0);
    let distilled = prune(&env, &teacher, &config, &validation, seed, &|note| {
        bar.at(0, note)
    })?;
    bar.end();
    let text = distilled.tree.to_text();
    folder.write(TREE_FILE, distilled.tree.to_json().as_bytes())?;
    folder.write("tree.txt", text.as_bytes())?;
    folder.write("tree.dot", distilled.tree.to_dot().as_bytes())?;
    folder.write_json("distill.json", &distilled.report)?;

    let mut contestants = Contestant::open_all(&[])?;
    if !contestants
        .iter()
        .any(|contestant| contestant.name() == teacher.name())
    {
        contestants.push(teacher.clone());
    }
    // `tree-2` where the teacher is a tree of that name.
    Contestant::tree("tree", distilled.tree.clone())?.join(&mut contestants);
    let bouts = episodes(&env, &seeds(seed, "test", args.test_seeds as usize))?;
    let mut sim = env.sim.clone();
    sim.record_utilisation = true;
    let bar = Bar::new(quiet, "compare", (bouts.len() * contestants.len()) as u64);
    let runs = contest(&bouts, &contestants, &sim, &|| bar.step())?;
    bar.end();
    let results = Results::new("distill", runs, Some(teacher.name()))?;
    let table = Table::compare(&results, &COLUMNS);
    let settings = toml::to_string_pretty(&config).unwrap_or_default();
    let report = Report {
        title: "A tree from a policy",
        command_line: &context.command_line,
        config: &settings,
        results: &results,
        learning: None,
        tree: Some(&text),
    };
    report.write(&folder.file("report.html")?)?;
    results.write_json(&folder.file("results.json")?)?;
    results.write_csv(&folder.file("results.csv")?)?;
    if let Some(path) = &args.run.json {
        results.write_json(path)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !quiet {
        context.say(&table.to_terminal())?;
        context.say(&text)?;
        let agreement = 100.0 * distilled.report.result.fidelity.agreement;
        context.say(&format!(
            "fidelity {agreement:.1} %; written to {}",
            place.display()
        ))?;
    }
    Ok(())
}

fn config(args: &DistillArgs) -> Result<DistillConfig, Error> {
    let mut config = DistillConfig::default();
    if let Some(path) = &args.config {
        config = read_toml(path, CONFIG_BYTES_MAX)?;
    }
    if !args.leaves.is_empty() {
        config.leaves = args.leaves.iter().map(|leaves| usize::from(*leaves)).collect();
    }
    if let Some(depth) = args.depth {
        config.cart.depth_max = usize::from(depth);
    }
    if let Some(rounds) = args.rounds {
        config.rounds = usize::from(rounds);
    }
    if let Some(episodes) = args.episodes {
        config.episodes = episodes as usize;
    }
    config
        .validate()
        .map_err(|error| Error::Config(Box::new(error)))?;
    Ok(config)
}
