//! `pleach distill guard`: what a guard costs.

use pleach_scheduler::Guards;
use pleach_scheduler::tree::{Tree, TreeError};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::plots_page::plots_page;
use crate::flags::GuardArgs;
use crate::flags::evaluate::{SchedulingFlags, WorkloadFlags};
use crate::progress::bars;
use pleach_experiments::distill::guard::{GuardInput, guard};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::policy_spec::PolicySpec;
use pleach_experiments::plot::text::escape;
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::run_folder::atomic_file::write;

/// Times after which a job is overdue if nobody says which, h.
const AFTER_H: [f64; 8] = [1.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 192.0];

/// What makes two reports the same.
#[derive(Serialize)]
struct Settings<'a> {
    tree_hash: String,
    overdue_after_s: &'a [f64],
    #[serde(skip_serializing_if = "<[f64]>::is_empty")]
    tenant_floors: &'a [f64],
    lists: u16,
    against: &'a [String],
    workload: &'a WorkloadFlags,
    scheduling: &'a SchedulingFlags,
}

/// Simulates the guards, reports them, and writes one into the file where that is asked for.
///
/// # Errors
/// Flags that cannot be used, a file that is no tree, a guard that it cannot obey, a folder in the way, a run that fails.
pub fn run(args: &GuardArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let refused = |error: TreeError| Error::data(&args.file, error.to_string());
    let tree = Tree::load(&args.file).map_err(refused)?;
    let written = (args.write.map(|after| after.as_secs_f64()), args.write_floor);
    let (overdue_after_s, tenant_floors) = shown(args, written);
    let with = |guards: (Option<f64>, Option<f64>)| under(&tree, guards).map_err(refused);
    // All of them before anything runs.
    for after_s in &overdue_after_s {
        with((Some(*after_s), None))?;
    }
    for floor in &tenant_floors {
        with((None, Some(*floor)))?;
    }
    let env = args.workload.source().env(&args.scheduling.config())?;
    env.validate()?;
    let against = PolicySpec::open_all(&args.against)?;
    let own = PolicySpec::tree("tree", tree.clone())?;
    for policy in against.iter().chain([&own]) {
        policy.check(env.sim.capabilities)?;
    }
    let (seed, quiet) = (args.run.seed, args.run.quiet);
    let (out, existing) = (args.run.out.as_deref(), args.run.existing());
    let settings = Settings {
        tree_hash: tree.hash(),
        overdue_after_s: &overdue_after_s,
        tenant_floors: &tenant_floors,
        lists: args.lists,
        against: &args.against,
        workload: &args.workload,
        scheduling: &args.scheduling,
    };
    let folder = RunFolder::open("guard", &settings, seed, out, existing)?;
    let input = GuardInput {
        tree: tree.clone(),
        overdue_after_s,
        tenant_floors,
        num_lists: args.lists.into(),
        against,
    };
    let report = guard(&env, &input, seed, &bars(quiet))?;
    folder.write_json("guard.json", &report)?;
    let table = report.markdown();
    folder.write("guard.md", table.as_bytes())?;
    let note = format!(
        "The tree {} on the same lists without a guard and with several: what the longest wait becomes, and what average JCT.",
        escape(&tree.meta().name)
    );
    let title = "What a guard costs";
    let html = plots_page(title, &note, report.plots(), &table, &[&context.command_line]);
    folder.write("guard.html", html.as_bytes())?;
    if let Some(path) = &args.run.json {
        context.write_json(path, &report)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    let is_written = written != (None, None);
    if is_written {
        write(&args.file, with(written)?.to_json().as_bytes())?;
    }
    if !quiet {
        context.say(&table)?;
        context.say(&format!("written to {}", place.display()))?;
        if is_written {
            context.say(&format!("the guard stands in {}", args.file.display()))?;
        }
    }
    Ok(())
}

/// Times after which a job is overdue, s, and floors that are shown; those that are written too.
fn shown(args: &GuardArgs, written: (Option<f64>, Option<f64>)) -> (Vec<f64>, Vec<f64>) {
    let mut overdue_after_s: Vec<f64> = args.after.iter().map(|after| after.as_secs_f64()).collect();
    let mut tenant_floors = args.floor.clone();
    tenant_floors.extend(written.1);
    if overdue_after_s.is_empty() && tenant_floors.is_empty() {
        overdue_after_s = AFTER_H.iter().map(|hours| 3600.0 * hours).collect();
    }
    overdue_after_s.extend(written.0);
    (overdue_after_s, tenant_floors)
}

/// The tree under a time after which jobs are overdue, and a floor, beside its own guards.
fn under(tree: &Tree, (after_s, floor): (Option<f64>, Option<f64>)) -> Result<Tree, TreeError> {
    let own = tree.guards();
    tree.clone().with_guards(Guards {
        overdue_after_s: after_s.or(own.overdue_after_s),
        tenant_floor: floor.or(own.tenant_floor),
        ..own
    })
}
