//! `pleach distill drift`: how far what a tree is offered has moved.

use pleach_env::SimConfig;
use pleach_scheduler::tree::{Tree, TreeError};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::plots_page::plots_page;
use crate::flags::DriftArgs;
use crate::flags::evaluate::{SchedulingFlags, WorkloadFlags};
use pleach_experiments::distill::drift::drift;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::evaluation::{Evaluation, EvaluationConfig};
use pleach_experiments::evaluate::instances::Instance;
use pleach_experiments::evaluate::policy_spec::PolicySpec;
use pleach_experiments::plot::text::escape;
use pleach_experiments::run_folder::RunFolder;

/// The lists of the flags, as an evaluation has them.
pub struct Lists {
    /// The lists.
    pub instances: Vec<Instance>,
    /// What is known and allowed on them.
    pub sim: SimConfig,
    /// What importers mended.
    pub notes: Vec<String>,
}

impl Lists {
    /// Reads or draws them.
    ///
    /// # Errors
    /// Flags that cannot be used, a tree that cannot run there, a file that cannot be read.
    pub fn of(
        tree: &Tree,
        (workload, scheduling): (&WorkloadFlags, &SchedulingFlags),
        (seeds, seed): (u32, u64),
    ) -> Result<Lists, Error> {
        let config = EvaluationConfig {
            workload: workload.source(),
            scheduling: scheduling.config(),
            seeds,
            seed,
            ..EvaluationConfig::default()
        };
        let evaluation = Evaluation::of(&config, vec![PolicySpec::tree("tree", tree.clone())?])?;
        let mut notes = Vec::new();
        let instances = evaluation.instances(&mut |note| notes.push(note))?;
        Ok(Lists {
            instances,
            sim: evaluation.sim,
            notes,
        })
    }
}

/// What makes two reports the same.
#[derive(Serialize)]
struct Settings<'a> {
    tree_hash: String,
    window: u32,
    limit: f64,
    seeds: u32,
    workload: &'a WorkloadFlags,
    scheduling: &'a SchedulingFlags,
}

/// Simulates the lists and reports the index.
///
/// # Errors
/// Flags that cannot be used, a file that is no tree or has no visits, a folder in the way, a run that fails.
pub fn run(args: &DriftArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let refused = |error: TreeError| Error::data(&args.file, error.to_string());
    let tree = Tree::load(&args.file).map_err(refused)?;
    let seed = args.run.seed;
    let flags = (&args.workload, &args.scheduling);
    let lists = Lists::of(&tree, flags, (args.seeds, seed))?;
    let report = drift(&tree, (&lists.instances, &lists.sim), args.window, args.limit)?;
    let settings = Settings {
        tree_hash: tree.hash(),
        window: args.window,
        limit: args.limit,
        seeds: args.seeds,
        workload: &args.workload,
        scheduling: &args.scheduling,
    };
    let (out, existing) = (args.run.out.as_deref(), args.run.existing());
    let folder = RunFolder::open("drift", &settings, seed, out, existing)?;
    folder.write_json("drift.json", &report)?;
    let table = report.markdown();
    folder.write("drift.md", table.as_bytes())?;
    let note = format!(
        "What the tree {} is offered on these lists against the lists of its file.",
        escape(&tree.meta().name)
    );
    let plots = report
        .plot()
        .map(|plot| ("Drift".to_string(), plot))
        .into_iter()
        .collect();
    let html = plots_page("Drift", &note, plots, &table, &[&context.command_line]);
    folder.write("drift.html", html.as_bytes())?;
    if let Some(path) = &args.run.json {
        context.write_json(path, &report)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !args.run.quiet {
        lists.notes.iter().try_for_each(|note| context.say(note))?;
        context.say(&table)?;
        context.say(&format!("written to {}", place.display()))?;
    }
    Ok(())
}
