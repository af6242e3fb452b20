//! `pleach evaluate`: policies against each other on the same lists of a world.

use pleach_env::schedule::{ENDINGS, Record};
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::schedule::RecordSettings;
use pleach_experiments::worlds::{AnyWorld, Comparing};
use pleach_experiments::{EvaluationConfig, JobsWorld};

use crate::commands::{Context, world};
use crate::flags::EvaluateArgs;
use crate::progress::bars;

/// Runs the comparison.
///
/// # Errors
/// Flags that name nothing, files that cannot be used, runs that fail.
pub fn run(args: &EvaluateArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let settings = args.config();
    let quiet = args.run.quiet();
    // A world of jobs has its policies already.
    let (world, policies) = match world::of(&settings.workload, &settings.set, &world::EVALUATE, context)? {
        Some(asked) => (asked.world, settings.policy.clone()),
        None => (jobs(&settings, args)?, Vec::new()),
    };
    // Before the work, so that a folder in the way costs none.
    let folder = match &args.run.out {
        Some(out) => {
            let existing = args.run.existing();
            let seed = settings.seed;
            Some(RunFolder::open("evaluate", &settings, seed, Some(out), existing)?)
        }
        None => None,
    };
    world::say_account(world.as_ref(), quiet, context)?;
    let asked = Comparing {
        policies,
        reference: settings.reference.clone(),
        metric: settings.own_metric(),
        pictured: is_pictured(args),
        ablated: args.ablate,
        regret: args.regret,
        seed: settings.seed,
    };
    let mut compared = world.compare(&asked, &bars(quiet))?;
    if let (Some(path), Some(at)) = (&args.schedule, compared.at.first_mut()) {
        let mut record = at.beside.record.take().unwrap_or_default();
        record.settings = RecordSettings::of(&settings).text();
        record.write(path)?;
    }
    if !quiet {
        world::say_tables(&compared, true, context)?;
    }
    if let Some(path) = args.run.json() {
        context.write_json(path, &compared)?;
    }
    let text = toml::to_string_pretty(&settings).unwrap_or_default();
    let report = compared
        .report("Policies compared")
        .made_by(&context.command_line, &text);
    if let Some(path) = &args.csv {
        compared.write_csv(path)?;
    }
    if let Some(path) = &args.html {
        report.write(path)?;
    }
    let Some(folder) = folder else {
        return Ok(());
    };
    folder.write_json("results.json", &compared)?;
    compared.write_csv(&folder.file("results.csv")?)?;
    report.write(&folder.file("report.html")?)?;
    for (file, table) in compared.tables() {
        folder.write(file, table.to_markdown().as_bytes())?;
    }
    world::finish(folder, quiet, context)
}

fn is_pictured(args: &EvaluateArgs) -> bool {
    args.html.is_some() || args.run.out.is_some()
}

/// Jobs, with what is to be recorded of their schedules.
fn jobs(settings: &EvaluationConfig, args: &EvaluateArgs) -> Result<Box<dyn AnyWorld>, Error> {
    let mut world = JobsWorld::open(settings)?;
    if let Some(path) = args.schedule.as_ref().filter(|path| !Record::can_write(path)) {
        let hint = "The ending says how it is written.";
        return Err(Error::config("schedule", path.display(), ENDINGS, hint));
    }
    world.sim.record_utilisation = is_pictured(args);
    world.sim.record_segments = args.schedule.is_some();
    Ok(Box::new(world))
}
