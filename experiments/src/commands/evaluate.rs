//! `pleach evaluate`: policies against each other on the same workloads.

use pleach_env::capacity::CapacityConfig;

use crate::atomic_file::read_toml;
use crate::cli::EvaluateArgs;
use crate::commands::Context;
use crate::contest::contest;
use crate::contestant::Contestant;
use crate::error::Error;
use crate::metric::{MAIN, Metric};
use crate::progress::Bar;
use crate::report::Report;
use crate::results::Results;
use crate::run_folder::RunFolder;
use crate::scenario::seeds;
use crate::table::Table;

/// Largest file with settings of planners, bytes.
const POLICY_CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Columns of the printed table.
pub const COLUMNS: [&str; 9] = [
    "avg_jct_s",
    "avg_jct_gap",
    "p99_jct_s",
    "avg_slowdown",
    "avg_wait_s",
    "makespan_s",
    "makespan_gap",
    "utilisation",
    "fairness",
];

/// Runs the comparison.
///
/// # Errors
/// Flags that name nothing, files that cannot be used, runs that fail.
pub fn run(args: &EvaluateArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let mut contestants = Contestant::open_all(&args.policy)?;
    if let Some(path) = &args.policy_config {
        let settings: serde_json::Value = read_toml(path, POLICY_CONFIG_BYTES_MAX)?;
        Contestant::configure(&mut contestants, &settings)?;
    }
    let reference = reference(args, &contestants)?;
    args.workload.check()?;
    let mut sim = args.scheduling.sim(&args.workload);
    for contestant in &contestants {
        contestant.check(sim.capabilities)?;
    }
    let quiet = args.run.quiet;
    // Before the work, so that a folder in the way costs none.
    let folder = match &args.run.out {
        Some(out) => Some(RunFolder::open(
            "evaluate",
            args,
            args.run.seed,
            Some(out),
            args.run.existing(),
        )?),
        None => None,
    };
    let mut notes = Vec::new();
    let seeds = seeds(args.run.seed, "test", args.seeds as usize);
    let bouts = args.workload.bouts(&sim, &seeds, &mut |note| notes.push(note))?;
    if !quiet {
        notes.iter().try_for_each(|note| context.say(note))?;
    }
    let wants_page = args.html.is_some() || args.run.out.is_some();
    sim.record_utilisation = wants_page;
    let bar = Bar::new(quiet, "evaluate", (bouts.len() * contestants.len()) as u64);
    let runs = contest(&bouts, &contestants, &sim, &|| bar.step())?;
    bar.end();
    let results = Results::by(
        Metric::find(&args.metric).unwrap_or(MAIN),
        "evaluate",
        runs,
        reference.as_deref(),
    )?
    .drawn(args.workload.is_drawn(&sim)?);
    let mut columns = COLUMNS.to_vec();
    if sim.capabilities.preemption {
        columns.push("preemptions");
    }
    if sim.outcomes.is_some() || sim.capacity != CapacityConfig::default() {
        columns.extend(["failures", "lost_work"]);
    }
    if !quiet {
        context.say(&Table::compare(&results, &columns).to_terminal())?;
    }
    if let Some(path) = &args.run.json {
        context.write_json(path, &results)?;
    }
    let config = toml::to_string_pretty(args).unwrap_or_default();
    let tree = contestants.iter().find_map(Contestant::text);
    let report = Report {
        title: "Policies compared",
        command_line: &context.command_line,
        config: &config,
        results: &results,
        learning: None,
        tree: tree.as_deref(),
    };
    if let Some(path) = &args.csv {
        results.write_csv(path)?;
    }
    if let Some(path) = &args.html {
        report.write(path)?;
    }
    if let Some(folder) = folder {
        let place = folder.path().to_path_buf();
        results.write_json(&folder.file("results.json")?)?;
        results.write_csv(&folder.file("results.csv")?)?;
        report.write(&folder.file("report.html")?)?;
        folder.write(
            "table.md",
            Table::compare(&results, &columns).to_markdown().as_bytes(),
        )?;
        folder.finish()?;
        if !quiet {
            context.say(&format!("written to {}", place.display()))?;
        }
    }
    Ok(())
}

/// Whom the others are measured against; checked before the work.
fn reference(args: &EvaluateArgs, contestants: &[Contestant]) -> Result<Option<String>, Error> {
    let names: Vec<&str> = contestants.iter().map(Contestant::name).collect();
    match &args.reference {
        Some(name) if !names.contains(&name.as_str()) => Err(Error::config(
            "reference",
            name,
            names.join(", "),
            "Name a policy of this comparison.",
        )),
        Some(name) => Ok(Some(name.clone())),
        None => Ok(names.first().map(ToString::to_string)),
    }
}
