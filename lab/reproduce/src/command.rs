//! `pleach reproduce`: published figures, run again.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::command::flags::{PageFlag, ReportFlags};
use pleach_experiments::command::{Context, Runs};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::evaluate::table::Table;
use serde_json::json;

use crate::figures::{Benchmark, Effort, Reproduction, benchmarks, find};

/// Runs published results again and shows ours beside them: figure, interval, tolerance, verdict, plots. Without an id it
/// lists what can be reproduced.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach reproduce                                      what there is
  pleach reproduce B1 --html b1.html                    one, with plots
  pleach reproduce all --seeds 10 --json figures.json

A missed figure is a finding, not an error: the exit code is 0 whatever the verdicts.")]
pub struct ReproduceArgs {
    /// Ids of benchmarks, or all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Seeds for each point [default: the benchmark's own]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=1000))]
    pub seeds: Option<u32>,
    /// A few small points only: to see that it runs, not to trust the figures
    #[arg(long)]
    pub smoke: bool,
    /// Folder with published job lists, for the benchmarks that can use them; generated ones otherwise
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Results for readers.
    #[command(flatten)]
    pub page: PageFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

impl Runs for ReproduceArgs {
    const NAME: &'static str = "reproduce";
    const ABOUT: &'static str = "Run published results again and show ours beside them";

    fn run(&self, context: &mut Context<'_>) -> Result<(), Error> {
        if self.ids.is_empty() {
            return context.say(&list().to_terminal());
        }
        let chosen: Vec<&Benchmark> = if self.ids.iter().any(|id| id == "all") {
            benchmarks().collect()
        } else {
            self.ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?
        };
        if let Some(folder) = &self.data
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
            seed: self.report.seed(),
            num_seeds: self.seeds.map(|seeds| seeds as usize),
            smoke: self.smoke,
            data: self.data.clone(),
            watcher: (context.bars)(self.report.quiet()),
        };
        let mut done: Vec<(&Benchmark, Reproduction)> = Vec::new();
        let num_chosen = chosen.len();
        for benchmark in chosen {
            let mut reproduction = (benchmark.run)(&effort)?;
            if effort.smoke {
                reproduction.findings.clear();
            }
            if !self.report.quiet() {
                context.say(&format!("{}\n", reproduction.text(benchmark)))?;
            }
            done.push((benchmark, reproduction));
            // After each, so that what is done is kept if a later one is stopped.
            if let Some(path) = self.report.json() {
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
            if let Some(path) = &self.page.html {
                Reproduction::report(&done, &context.command_line).write(path)?;
            }
        }
        Ok(())
    }
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
