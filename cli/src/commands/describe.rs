//! `pleach workload describe`: a workload, its cluster, and what a policy makes of them.

use pleach_env::workload::Workload;
use pleach_env::{SimConfig, simulate};

use crate::commands::{Context, world};
use crate::flags::workload::WorkloadDescribeArgs;
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::report::Block;
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::run_folder::atomic_file;
use pleach_experiments::workload_report::simulated::Simulated;
use pleach_experiments::workload_report::{Inspection, page, tables};

/// Describes one workload.
///
/// # Errors
/// Flags that name nothing or more than one workload or policy, files that cannot be used, a simulation that fails.
pub fn run(args: &WorkloadDescribeArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(asked) = world::of(&args.workload, &args.of_world.set, &[], context)? {
        return world::describe(&asked, args, context);
    }
    let source = &args.workload;
    let name = source.only("described")?;
    let sim = args.scheduling.sim(&source.workload);
    let policy = policy(args, &sim)?;
    let quiet = args.run.quiet();
    // Before the work, so that a folder in the way costs none.
    let folder = match &args.run.out {
        Some(out) => Some(RunFolder::open(
            "workload-describe",
            args,
            args.run.seed(),
            Some(out),
            args.run.existing(),
        )?),
        None => None,
    };
    let seed = seeds(args.run.seed(), "test", 1)[0];
    let (workload, report) = source.workload(name, seed)?;
    let notes = match report {
        Some(report) => report.to_string(),
        None => source.assumed()?.unwrap_or_default(),
    };
    if !quiet && !notes.is_empty() {
        context.say(&notes)?;
    }
    let mut inspection = Inspection::of(&workload);
    if let Some(policy) = &policy
        && !workload.jobs.is_empty()
    {
        let sim = SimConfig { seed: seed.0, ..sim };
        inspection.simulated = Some(simulated(policy, workload, args.sim_jobs as usize, sim)?);
    }
    if !quiet {
        let heading = format!("Workload {}", inspection.name);
        context.say(&heading)?;
        if inspection.sizes.num_jobs == 0 {
            context.say("There are no jobs.")?;
        }
        for section in tables::sections(&inspection) {
            context.say(&format!(
                "\n{}\n{}",
                section.heading,
                section.table.to_terminal().trim_end()
            ))?;
        }
    }
    if let Some(path) = args.run.json() {
        context.write_json(path, &inspection)?;
    }
    if let Some(folder) = folder {
        let place = folder.path().to_path_buf();
        atomic_file::write_json(&folder.file("describe.json")?, &inspection)?;
        let importer = (!notes.is_empty()).then_some(Block::Code(notes));
        page::report(&inspection)
            .section("What the importer said", importer)
            .made_by(&context.command_line, "")
            .write(&folder.file("report.html")?)?;
        folder.finish()?;
        if !quiet {
            context.say(&format!("\nwritten to {}", place.display()))?;
        }
    }
    Ok(())
}

/// The policy to simulate; none where nothing is to be simulated.
fn policy(args: &WorkloadDescribeArgs, sim: &SimConfig) -> Result<Option<PolicySpec>, Error> {
    if args.no_simulate {
        return Ok(None);
    }
    let policy = DOOR.open_one(&args.policy)?;
    policy.check(sim.capabilities)?;
    Ok(Some(policy))
}

fn simulated(
    policy: &PolicySpec,
    mut workload: Workload,
    num_jobs_max: usize,
    sim: SimConfig,
) -> Result<Simulated, Error> {
    let num_left_out = workload.jobs.len().saturating_sub(num_jobs_max);
    workload.jobs.truncate(num_jobs_max);
    let sim = SimConfig {
        record_utilisation: true,
        record_waits: true,
        record_occupancy: true,
        ..sim
    };
    let result = simulate(&workload, &sim, &mut policy.policy()?)?;
    Ok(Simulated::of(policy.name(), &workload, num_left_out, result))
}
