//! `pleach workload describe`: what a list of a world is like; of jobs also their cluster, and what a policy makes of them.

use pleach_experiments::door::DOOR;
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::worlds::AnyWorld;
use pleach_experiments::{EvaluationConfig, JobsWorld};

use crate::commands::{Context, world};
use crate::flags::workload::WorkloadDescribeArgs;

/// Describes one list.
///
/// # Errors
/// Flags that name nothing or more than one workload or policy, files that cannot be used, a simulation that fails.
pub fn run(args: &WorkloadDescribeArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let (quiet, seed) = (args.run.quiet(), args.run.seed());
    let asked = world::of(&args.workload, &args.of_world.set, &[], context)?;
    let about = match &asked {
        Some(asked) => world::about(asked, "world", &asked.world.name()),
        None => world::plain(args),
    };
    let world = asked.map_or_else(|| jobs(args), |asked| Ok(asked.world))?;
    // Before the work, so that a folder in the way costs none.
    let folder = match &args.run.out {
        Some(out) => {
            let existing = args.run.existing();
            Some(RunFolder::open(
                "workload-describe",
                &about,
                seed,
                Some(out),
                existing,
            )?)
        }
        None => None,
    };
    let found = world.describe(seed)?;
    if !quiet {
        context.say(&found.said)?;
    }
    if let Some(path) = args.run.json() {
        context.write_json(path, &found.json)?;
    }
    let Some(folder) = folder else {
        return Ok(());
    };
    folder.write_json("describe.json", &found.json)?;
    found
        .report
        .made_by(&context.command_line, "")
        .write(&folder.file("report.html")?)?;
    world::finish(folder, quiet, context)
}

/// Jobs, with the policy that plays them unless nothing is to be simulated.
fn jobs(args: &WorkloadDescribeArgs) -> Result<Box<dyn AnyWorld>, Error> {
    args.workload.only("described")?;
    let policies = match args.no_simulate {
        true => Vec::new(),
        false => vec![DOOR.open_one(&args.policy)?],
    };
    let config = EvaluationConfig {
        workload: args.workload.clone(),
        scheduling: args.scheduling.clone(),
        ..EvaluationConfig::default()
    };
    let mut world = JobsWorld::of(&config, policies)?;
    world.described_jobs = args.sim_jobs as usize;
    Ok(Box::new(world))
}
