//! `pleach distill stability`: how much refits of one teacher differ.

use pleach_distill::DistillConfig;
use serde::Serialize;

use crate::commands::Context;
use crate::flags::StabilityArgs;
use crate::progress::bars;
use pleach_experiments::distill::stability::{StabilityInput, stability};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::policy_spec::PolicySpec;
use pleach_experiments::run_folder::RunFolder;

/// What makes two reports the same.
#[derive(Serialize)]
struct Settings<'a> {
    args: &'a StabilityArgs,
    distill: &'a DistillConfig,
}

/// Distils a teacher several times and compares the trees.
///
/// # Errors
/// Flags that cannot be used, a folder in the way, a run that fails.
pub fn run(args: &StabilityArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let mut config = DistillConfig::default();
    if !args.leaves.is_empty() {
        config.leaves = args.leaves.iter().map(|leaves| usize::from(*leaves)).collect();
    }
    if let Some(rounds) = args.rounds {
        config.rounds = usize::from(rounds);
    }
    if let Some(episodes) = args.episodes {
        config.episodes = episodes as usize;
    }
    config.validate()?;
    let env = args.workload.source().env(&args.scheduling.config())?;
    env.validate()?;
    let teacher = PolicySpec::open(&args.teacher)?.remove(0);
    teacher.check(env.sim.capabilities)?;
    let settings = Settings {
        args,
        distill: &config,
    };
    let out = args.run.out.as_deref();
    let folder = RunFolder::open("stability", &settings, args.run.seed, out, args.run.existing())?;
    let input = StabilityInput {
        teacher,
        distill: config,
        num_fits: args.fits.into(),
        num_lists: args.lists.into(),
    };
    let (report, trees) = stability(&env, &input, args.run.seed, &bars(args.run.quiet))?;
    for (fit, tree) in trees.iter().enumerate() {
        let name = format!("trees/fit-{}.json", fit + 1);
        folder.write(&name, tree.to_json().as_bytes())?;
    }
    folder.write_json("stability.json", &report)?;
    let table = report.markdown();
    folder.write("stability.md", table.as_bytes())?;
    if let Some(path) = &args.run.json {
        context.write_json(path, &report)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !args.run.quiet {
        context.say(&table)?;
        context.say(&format!("written to {}", place.display()))?;
    }
    Ok(())
}
