//! `pleach distill --fits`: how much refits of one teacher differ.

use super::shared::{Settings, config, report_lists};
use crate::commands::Context;
use crate::flags::DistillArgs;
use crate::progress::bars;
use pleach_experiments::distill::stability::{StabilityInput, stability};
use pleach_experiments::door::DOOR;
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::RunFolder;

/// Distils a teacher several times and compares the trees.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(
    args: &DistillArgs,
    (teacher, num_fits): (&str, u16),
    context: &mut Context<'_>,
) -> Result<(), Error> {
    let (config, num_lists) = (config(args, &[])?, report_lists(args)?);
    let env = args.workload.env(&args.scheduling)?;
    env.validate()?;
    let teacher = DOOR.open(teacher)?.remove(0);
    teacher.check(env.sim.capabilities)?;
    let settings = Settings {
        args,
        distill: &config,
        objective: None,
    };
    let (seed, quiet) = (args.run.seed(), args.run.quiet());
    let (out, existing) = (args.run.out.as_deref(), args.run.existing());
    let folder = RunFolder::open("stability", &settings, seed, out, existing)?;
    let input = StabilityInput {
        teacher,
        distill: config,
        num_fits: num_fits.into(),
        num_lists,
    };
    let (report, trees) = stability(&env, &input, seed, &bars(quiet))?;
    for (fit, tree) in trees.iter().enumerate() {
        let name = format!("trees/fit-{}.json", fit + 1);
        folder.write(&name, tree.to_json().as_bytes())?;
    }
    folder.write_json("stability.json", &report)?;
    let table = report.markdown();
    folder.write("stability.md", table.as_bytes())?;
    if let Some(path) = args.run.json() {
        context.write_json(path, &report)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !quiet {
        context.say(&table)?;
        context.say(&format!("written to {}", place.display()))?;
    }
    Ok(())
}
