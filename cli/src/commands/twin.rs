//! `pleach twin`: a site's list as it went and as it is simulated.

use pleach_env::{SimConfig, simulate};
use pleach_experiments::door::DOOR;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::twin::{Twin, sections};

use crate::commands::Context;
use crate::flags::TwinArgs;

/// Simulates and compares.
///
/// # Errors
/// Flags that name nothing, a list of which nothing was observed, a simulation that fails.
pub fn run(args: &TwinArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let source = &args.workload;
    let name = source.only("simulated")?;
    let sim = args.scheduling.sim(&source.workload);
    let policy = DOOR.open_one(&args.policy)?;
    policy.check(sim.capabilities)?;
    let seed = seeds(args.report.seed(), "test", 1)[0];
    let (workload, report) = source.workload(name, seed)?;
    let sim = SimConfig { seed: seed.0, ..sim };
    let result = simulate(&workload, &sim, &mut policy.policy()?)?;
    let twin = Twin::of(policy.name(), &workload, &result.jobs)?;
    if !args.report.quiet() {
        if let Some(report) = report {
            context.say(report.to_string().trim_end())?;
        }
        for (heading, table) in sections(&twin) {
            context.say(&format!("\n{heading}\n{}", table.to_terminal().trim_end()))?;
        }
        context.say(&format!("\n{}", twin.verdict()))?;
    }
    match args.report.json() {
        Some(path) => context.write_json(path, &twin),
        None => Ok(()),
    }
}
