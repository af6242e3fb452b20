//! `pleach reproduce`: published figures, run again.

use serde_json::json;

use crate::commands::Context;
use crate::flags::ReproduceArgs;
use crate::progress::bars;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::table::Table;
use pleach_reproduce::figures::{Benchmark, Effort, Reproduction, benchmarks, find};

/// Runs the benchmarks that were named, or lists all.
///
/// # Errors
/// An unknown id, a folder of lists that is not there, a simulation that fails, a file that cannot be written.
pub fn run(args: &ReproduceArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if args.ids.is_empty() {
        return context.say(&list().to_terminal());
    }
    let chosen: Vec<&Benchmark> = if args.ids.iter().any(|id| id == "all") {
        benchmarks().collect()
    } else {
        args.ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?
    };
    if let Some(folder) = &args.data
        && !folder.is_dir()
    {
        return Err(Error::config(
            "data",
            folder.display(),
            "a folder with published job lists",
            "There is no such folder; leave --data out for generated lists.",
        ));
    }
    let effort = Effort {
        seed: args.report.seed(),
        num_seeds: args.seeds.map(|seeds| seeds as usize),
        smoke: args.smoke,
        data: args.data.clone(),
        watcher: bars(args.report.quiet()),
    };
    let mut done: Vec<(&Benchmark, Reproduction)> = Vec::new();
    let num_chosen = chosen.len();
    for benchmark in chosen {
        let mut reproduction = (benchmark.run)(&effort)?;
        if effort.smoke {
            reproduction.findings.clear();
        }
        if !args.report.quiet() {
            context.say(&format!("{}\n", reproduction.text(benchmark)))?;
        }
        done.push((benchmark, reproduction));
        // After each, so that what is done is kept if a later one is stopped.
        if let Some(path) = args.report.json() {
            let figures: Vec<_> = done
                .iter()
                .map(|(benchmark, reproduction)| {
                    json!({"id": benchmark.id, "title": benchmark.title, "source": benchmark.source,
                        "figures": reproduction.figures, "findings": reproduction.findings})
                })
                .collect();
            let is_whole = done.len() == num_chosen;
            context.write_growing_json(path, is_whole, &json!({"schema": 1, "benchmarks": figures}))?;
        }
        if let Some(path) = &args.page.html {
            Reproduction::report(&done, &context.command_line).write(path)?;
        }
    }
    Ok(())
}

fn list() -> Table {
    let rows = benchmarks().map(|benchmark| {
        [benchmark.id, benchmark.title, benchmark.source]
            .map(str::to_string)
            .to_vec()
    });
    Table {
        header: ["id", "what", "source"].map(str::to_string).to_vec(),
        rows: rows.collect(),
        notes: vec!["pleach reproduce ID runs one; --smoke first shows that it runs".into()],
    }
}
