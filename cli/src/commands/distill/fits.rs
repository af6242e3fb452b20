//! `pleach distill --fits`: how much refits of one teacher differ.

use super::shared::Setup;
use crate::commands::Context;
use crate::flags::DistillArgs;
use crate::progress::bars;
use pleach_experiments::distill::stability::{StabilityInput, stability};
use pleach_experiments::error::Error;

/// Distils a teacher several times and compares the trees.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(args: &DistillArgs, num_fits: u16, context: &mut Context<'_>) -> Result<(), Error> {
    let setup = Setup::of(args, &[])?;
    let input = StabilityInput {
        teacher: setup.teacher()?.clone(),
        distill: setup.config.clone(),
        num_fits: num_fits.into(),
        num_lists: setup.report_lists()?,
    };
    let folder = setup.folder("stability", None, context)?;
    let (report, trees) = stability(&setup.env, &input, setup.seed, &bars(setup.quiet))?;
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
    if !setup.quiet {
        context.say(&table)?;
        context.say(&format!("written to {}", place.display()))?;
    }
    Ok(())
}
