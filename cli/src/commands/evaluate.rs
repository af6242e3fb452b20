//! `pleach evaluate`: policies against each other on the same workloads.

use pleach_env::schedule::{ENDINGS, Record};
use pleach_experiments::WorkloadSource;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::ablation::ablations;
use pleach_experiments::evaluate::evaluation::Evaluation;
use pleach_experiments::evaluate::idle::idle_runs;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::regret;
use pleach_experiments::report::{Block, compared};
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::schedule::RecordSettings;

use crate::commands::{Context, world};
use crate::flags::EvaluateArgs;
use crate::progress::bars;

/// Runs the comparison.
///
/// # Errors
/// Flags that name nothing, files that cannot be used, runs that fail.
pub fn run(args: &EvaluateArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let settings = args.config();
    if let Some(asked) = world::of(&settings.workload, &settings.set, &world::EVALUATE, context)? {
        return world::evaluate(&asked, args, context);
    }
    let mut evaluation = Evaluation::open(&settings)?;
    let quiet = args.run.quiet();
    if let Some(path) = args.schedule.as_ref().filter(|path| !Record::can_write(path)) {
        let hint = "The ending says how it is written.";
        return Err(Error::config("schedule", path.display(), ENDINGS, hint));
    }
    // Before the work, so that a folder in the way costs none.
    let folder = match &args.run.out {
        Some(out) => {
            let existing = args.run.existing();
            let seed = args.run.seed();
            Some(RunFolder::open("evaluate", &settings, seed, Some(out), existing)?)
        }
        None => None,
    };
    let mut notes = Vec::new();
    let instances = evaluation.instances(&mut |note| notes.push(note))?;
    if !quiet {
        notes.iter().try_for_each(|note| context.say(note))?;
    }
    evaluation.sim.record_utilisation = args.html.is_some() || args.run.out.is_some();
    evaluation.sim.record_segments = args.schedule.is_some();
    let (results, mut record) = evaluation.run_recorded(&instances, &bars(quiet))?;
    if let Some(path) = &args.schedule {
        record.settings = RecordSettings::of(&settings).text();
        record.write(path)?;
    }
    drop(record);
    evaluation.sim.record_segments = false;
    let mut table = Table::compare(&results, &evaluation.columns());
    let source = &settings.workload;
    let is_list = source.workload.iter().any(|name| WorkloadSource::is_file(name));
    let is_part = source.window_days.is_some() || source.num_jobs.is_some();
    if is_part || !is_list {
        table.notes.extend(idle_runs(results.runs(), is_list));
    }
    if !quiet {
        context.say(&table.to_terminal())?;
    }
    let without = match args.ablate {
        true => Some(ablations(&evaluation, &instances, &results, &bars(quiet))?),
        false => None,
    };
    if let Some(without) = without.as_ref().filter(|_| !quiet) {
        context.say(&format!("\n{}", without.to_terminal()))?;
    }
    let regret = args
        .regret
        .map(|num| regret::table(&evaluation, &instances, &results, num, &bars(quiet)));
    let regret = regret.transpose()?;
    if let Some(regret) = regret.as_ref().filter(|_| !quiet) {
        context.say(&format!("\n{}", regret.to_terminal()))?;
    }
    if let Some(path) = args.run.json() {
        context.write_json(path, &results)?;
    }
    let config = toml::to_string_pretty(&settings).unwrap_or_default();
    let tree = evaluation
        .policies
        .iter()
        .find_map(|policy| match policy.tree_policy() {
            Some(policy) => Some(Block::from(policy.tree())),
            None => policy.text().map(Block::Code),
        });
    let report = compared("Policies compared", &results)
        .section("One thing taken away", without.clone().map(Block::from))
        .section("What can be won", regret.clone().map(Block::from))
        .section("The tree", tree)
        .made_by(&context.command_line, &config);
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
        folder.write("table.md", table.to_markdown().as_bytes())?;
        if let Some(without) = without {
            folder.write("ablation.md", without.to_markdown().as_bytes())?;
        }
        if let Some(regret) = regret {
            folder.write("regret.md", regret.to_markdown().as_bytes())?;
        }
        folder.finish()?;
        if !quiet {
            context.say(&format!("written to {}", place.display()))?;
        }
    }
    Ok(())
}
