//! `pleach tournament`: everyone against everyone.

use pleach_experiments::WorkloadSource;
use pleach_experiments::command::{Context, Runs};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::condition::Condition;
use pleach_experiments::evaluate::idle::idle;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::evaluate::run::{Grants, Runner};
use serde_json::json;

use super::{Standing, TournamentArgs, field, report, standings, table};

impl Runs for TournamentArgs {
    const NAME: &'static str = "tournament";
    const ABOUT: &'static str = "Play all schedulers against each other on several kinds of workloads";

    /// Plays it, one workload and condition after the other.
    fn run(&self, context: &mut Context<'_>) -> Result<(), Error> {
        let field = field(&self.policy)?;
        self.whole().check()?;
        let seeds = seeds(self.report.seed(), "test", self.seeds as usize);
        let conditions = &self.conditions.condition;
        let mut rounds: Vec<(String, Vec<Standing>)> = Vec::new();
        let mut records = Vec::new();
        let bars = (context.bars)(self.report.quiet());
        let sources = self.sources();
        let num_rounds = sources.len() * conditions.len();
        for source in sources {
            let name = source.workload.join(",");
            for (number, condition) in conditions.iter().enumerate() {
                let sim = condition.sim();
                let mut notes = Vec::new();
                let instances = source.instances(&sim, &seeds, &mut |note| notes.push(note))?;
                // What the importer mended is the same under every condition.
                if number == 0 && !self.report.quiet() {
                    notes.iter().try_for_each(|note| context.say(note))?;
                }
                let is_list = source.workload.iter().any(|name| WorkloadSource::is_file(name));
                if let Some(idle) = idle(&instances, &sim, is_list)?.filter(|_| !self.report.quiet()) {
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
                let heading = format!("{name}, {}: {}", condition.word(), describe(*condition));
                if !self.report.quiet() {
                    context.say(&format!("{heading}\n{}", table(&standings).to_terminal()))?;
                }
                records.push(json!({"workload": name, "condition": condition.word(),
                "num_jobs": num_jobs, "load": source.load,
                "seeds": instances.iter().map(|instance| instance.seed).collect::<Vec<_>>(), "standings": standings}));
                rounds.push((heading, standings));
                // After each, so that what is done is kept if a later one is stopped.
                if let Some(path) = self.report.json() {
                    let is_whole = rounds.len() == num_rounds;
                    context.write_growing_json(path, is_whole, &json!({"schema": 1, "rounds": records}))?;
                }
                if let Some(path) = &self.page.html {
                    report(&rounds, &context.command_line).write(path)?;
                }
            }
        }
        Ok(())
    }
}

/// A condition in words.
fn describe(condition: Condition) -> &'static str {
    match condition {
        Condition::Ideal => "run times known, starting and stopping free",
        Condition::Realistic => {
            "run times guessed from the jobs that have ended; starts, memory, checkpoints and sharing as published for their \
             models; failures of a production site"
        }
        Condition::Realistic10s => "as realistic, but each start costs 10 s",
        Condition::Realistic60s => "as realistic, but each start costs 60 s",
        Condition::Realistic250s => "as realistic, but each start costs 250 s",
        Condition::Overheads => "run times known; everything else as realistic",
        Condition::Estimates => "run times guessed from the jobs that have ended, starting and stopping free",
    }
}
