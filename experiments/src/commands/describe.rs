//! `pleach workload describe`: a workload, its cluster, and what a policy makes of them.

use pleach_env::simulate::{SimConfig, simulate};
use pleach_env::workload::Workload;

use crate::atomic_file;
use crate::cli::workload::WorkloadDescribeArgs;
use crate::commands::Context;
use crate::contestant::Contestant;
use crate::error::Error;
use crate::inspect::simulated::Simulated;
use crate::inspect::{Inspection, page, tables};
use crate::run_folder::RunFolder;
use crate::scenario::{env_error, seeds};

/// Describes one workload.
///
/// # Errors
/// Flags that name nothing or more than one workload or policy, files that cannot be used, a simulation that fails.
pub fn run(args: &WorkloadDescribeArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let name = args.workload.only("described")?;
    let sim = args.scheduling.sim(&args.workload);
    let contestant = policy(args, &sim)?;
    let quiet = args.run.quiet;
    // Before the work, so that a folder in the way costs none.
    let folder = match &args.run.out {
        Some(out) => Some(RunFolder::open(
            "workload-describe",
            args,
            args.run.seed,
            Some(out),
            args.run.existing(),
        )?),
        None => None,
    };
    let seed = seeds(args.run.seed, "test", 1)[0];
    let (workload, report) = args.workload.workload(name, seed)?;
    let notes = report.map(|report| report.to_string()).unwrap_or_default();
    if !quiet && !notes.is_empty() {
        context.say(&notes)?;
    }
    let mut inspection = Inspection::of(&workload);
    if let Some(contestant) = &contestant
        && !workload.jobs.is_empty()
    {
        let sim = SimConfig { seed: seed.0, ..sim };
        inspection.simulated = Some(simulated(contestant, workload, args.sim_jobs as usize, sim)?);
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
    if let Some(path) = &args.run.json {
        context.write_json(path, &inspection)?;
    }
    if let Some(folder) = folder {
        let place = folder.path().to_path_buf();
        atomic_file::write_json(&folder.file("describe.json")?, &inspection)?;
        page::write(
            &inspection,
            &context.command_line,
            &notes,
            &folder.file("report.html")?,
        )?;
        folder.finish()?;
        if !quiet {
            context.say(&format!("\nwritten to {}", place.display()))?;
        }
    }
    Ok(())
}

/// The policy to simulate; none where nothing is to be simulated.
fn policy(args: &WorkloadDescribeArgs, sim: &SimConfig) -> Result<Option<Contestant>, Error> {
    if args.no_simulate {
        return Ok(None);
    }
    let mut found = Contestant::open(&args.policy)?;
    let contestant = found.remove(0);
    if let Some(other) = found.first() {
        let words = format!("{} and {}", contestant.name(), other.name());
        return Err(Error::config(
            "policy",
            words,
            "one policy",
            "Name the file of the one you mean.",
        ));
    }
    contestant.check(sim.capabilities)?;
    Ok(Some(contestant))
}

fn simulated(
    contestant: &Contestant,
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
    let result = simulate(&workload, &sim, &mut contestant.policy()?).map_err(env_error)?;
    Ok(Simulated::of(contestant.name(), &workload, num_left_out, result))
}
