//! `pleach distill check`: an edited tree against the version before.

use std::path::Path;

use pleach_scheduler::tree::{MAX_BYTES, Tree};

use crate::commands::Context;
use crate::flags::CheckArgs;
use crate::progress::bars;
use pleach_experiments::distill::check::check;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::policy_spec::PolicySpec;
use pleach_experiments::run_folder::atomic_file::read_text;

/// Compares two versions and prints the difference.
///
/// # Errors
/// Flags that cannot be used, a file that is no tree, a run that fails.
pub fn run(args: &CheckArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let (before, after) = (read(&args.before)?, read(&args.file)?);
    let parts = &args.parts;
    let env = parts.workload.source().env(&parts.scheduling.config())?;
    env.validate()?;
    for (name, tree) in [("before", &before), ("after", &after)] {
        PolicySpec::tree(name, tree.clone())?.check(env.sim.capabilities)?;
    }
    let report = check(
        &env,
        (&before, &after),
        parts.lists.into(),
        parts.seed,
        &bars(parts.quiet),
    )?;
    if let Some(path) = &parts.json {
        context.write_json(path, &report)?;
    }
    if !parts.quiet {
        context.say(&report.markdown())?;
    }
    Ok(())
}

/// A tree whose certificates, which an edit makes void, are not asked for.
fn read(path: &Path) -> Result<Tree, Error> {
    let text = read_text(path, MAX_BYTES)?;
    Tree::from_json_uncertified(&text).map_err(|error| Error::data(path, error.to_string()))
}
