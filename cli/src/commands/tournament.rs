//! `pleach tournament`: everyone against everyone.

use serde_json::json;

use crate::commands::Context;
use crate::flags::TournamentArgs;
use crate::progress::bars;
use pleach_experiments::WorkloadSource;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::idle::idle;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::evaluate::run::{Grants, Runner};
use pleach_experiments::tournament::{Condition, Standing, field, report, standings, table};

/// Plays it, one workload and condition after the other.
///
/// # Errors
/// Names or files that cannot be used, simulations that fail, files that cannot be written.
pub fn run(args: &TournamentArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let field = field(&args.policy)?;
    args.whole().check()?;
    let seeds = seeds(args.report.seed(), "test", args.seeds as usize);
    let conditions: Vec<Condition> = args.conditions.all();
    let mut rounds: Vec<(String, Vec<Standing>)> = Vec::new();
    let mut records = Vec::new();
    let bars = bars(args.report.quiet());
    let sources = args.sources();
    let num_rounds = sources.len() * conditions.len();
    for source in sources {
        let name = source.workload.join(",");
        for (number, condition) in conditions.iter().enumerate() {
            let sim = condition.sim();
            let mut notes = Vec::new();
            let instances = source.instances(&sim, &seeds, &mut |note| notes.push(note))?;
            // What the importer mended is the same under every condition.
            if number == 0 && !args.report.quiet() {
                notes.iter().try_for_each(|note| context.say(note))?;
            }
            let is_list = source.workload.iter().any(|name| WorkloadSource::is_file(name));
            if let Some(idle) = idle(&instances, &sim, is_list)?.filter(|_| !args.report.quiet()) {
                context.say(&format!("{name}: {idle}"))?;
            }
            let num_jobs = instances
                .iter()
                .map(|instance| instance.workload.jobs.len())
                .max();
            let label = format!("{name} {}", condition.word());
            let matches = Runner::new(&sim)
                .granting(Grants::AsAsked)
                .watched(&label, &bars)
                .run_timed(&instances, &field, context.stopwatch)?;
            let standings = standings(&matches)?;
            let heading = format!("{name}, {}: {}", condition.word(), condition.describe());
            if !args.report.quiet() {
                context.say(&format!("{heading}\n{}", table(&standings).to_terminal()))?;
            }
            records.push(json!({"workload": name, "condition": condition.word(),
                "num_jobs": num_jobs, "load": source.load,
                "seeds": instances.iter().map(|instance| instance.seed).collect::<Vec<_>>(), "standings": standings}));
            rounds.push((heading, standings));
            // After each, so that what is done is kept if a later one is stopped.
            if let Some(path) = args.report.json() {
                let is_whole = rounds.len() == num_rounds;
                context.write_growing_json(path, is_whole, &json!({"schema": 1, "rounds": records}))?;
            }
            if let Some(path) = &args.page.html {
                report(&rounds, &context.command_line).write(path)?;
            }
        }
    }
    Ok(())
}
