//! `pleach distill ablate`: what each leaf and each feature of a tree is worth.

use pleach_scheduler::tree::Tree;

use crate::commands::Context;
use crate::flags::AblateArgs;
use crate::progress::bars;
use pleach_experiments::distill::ablate::ablate;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::policy_spec::PolicySpec;

/// Runs the ablations and prints them.
///
/// # Errors
/// Flags that cannot be used, a file that is no tree, a run that fails.
pub fn run(args: &AblateArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let tree = Tree::load(&args.file).map_err(|error| Error::data(&args.file, error.to_string()))?;
    let parts = &args.parts;
    let env = parts.workload.source().env(&parts.scheduling.config())?;
    env.validate()?;
    PolicySpec::tree("tree", tree.clone())?.check(env.sim.capabilities)?;
    let report = ablate(&env, &tree, parts.lists.into(), parts.seed, &bars(parts.quiet))?;
    if let Some(path) = &parts.json {
        context.write_json(path, &report)?;
    }
    if !parts.quiet {
        context.say(&report.markdown())?;
    }
    Ok(())
}
