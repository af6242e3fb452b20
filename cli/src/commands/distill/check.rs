//! `pleach distill check`: one report on a tree.

use std::path::Path;

use pleach_env::SimConfig;
use pleach_scheduler::Guards;
use pleach_scheduler::tree::{MAX_BYTES, Tree};
use serde::Serialize;

use crate::commands::Context;
use crate::flags::CheckArgs;
use crate::progress::bars;
use pleach_experiments::distill::ablate::{AblationReport, ablate};
use pleach_experiments::distill::check::{CheckReport, check};
use pleach_experiments::distill::drift::{DriftReport, drift};
use pleach_experiments::distill::guard::{GuardInput, GuardReport, guard};
use pleach_experiments::door::PolicySpec;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::Instance;
use pleach_experiments::report::{self, Block};
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::run_folder::atomic_file::read_text;
use pleach_experiments::worlds::{Certified, certified};
use pleach_experiments::{EvaluationConfig, JobsWorld};
use pleach_experiments::{SchedulingConfig, Watcher, WorkloadSource};

/// Policies beside a tree under guards, unless others are given.
const AGAINST: [&str; 3] = ["fifo", "easy", "gpu-time-reserve"];

/// What makes two reports the same.
#[derive(Serialize)]
struct Settings<'a> {
    tree_hash: String,
    before_hash: Option<String>,
    args: &'a CheckArgs,
}

/// All that was asked for.
#[derive(Serialize)]
struct Report {
    schema: u32,
    tree_hash: String,
    certificates: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<CheckReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ablation: Option<AblationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guards: Option<GuardReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<DriftReport>,
}

/// Reports what was asked for.
///
/// # Errors
/// Flags that cannot be used, a file that is no tree, a guard that it cannot obey, a folder in the way, a run that fails.
pub(super) fn run(args: &CheckArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(found) = certified(&args.file)? {
        return of_a_room(args, &found, context);
    }
    let tree = read(&args.file)?;
    let before = args.before.as_deref().map(read).transpose()?;
    refuse_guards(args, &tree)?;
    let settings = Settings {
        tree_hash: tree.hash(),
        before_hash: before.as_ref().map(Tree::hash),
        args,
    };
    let (seed, quiet) = (args.run.seed(), args.run.quiet());
    // Before the work, so that a folder in the way costs none.
    let folder = match args.run.out.as_deref() {
        Some(out) => Some(RunFolder::open(
            "check",
            &settings,
            seed,
            Some(out),
            args.run.existing(),
        )?),
        None => None,
    };
    let mut notes = Vec::new();
    let report = report(args, (&tree, before.as_ref()), &mut notes, &bars(quiet))?;
    if let Some(path) = args.run.json() {
        context.write_json(path, &report)?;
    }
    let words = report.markdown();
    if !quiet {
        notes.iter().try_for_each(|note| context.say(note))?;
        context.say(&words)?;
    }
    if let Some(folder) = folder {
        let place = folder.path().to_path_buf();
        folder.write_json("check.json", &report)?;
        folder.write("check.md", words.as_bytes())?;
        let guards = report.guards.iter().flat_map(GuardReport::plots);
        let drift = report.drift.iter().filter_map(DriftReport::plot);
        let page = report::Report::new("A tree, checked")
            .note(&format!("the tree {}", tree.meta().name))
            .section("Pictures", guards.chain(drift).map(Block::from))
            .section("Table", [Block::Code(words)])
            .made_by(&context.command_line, "");
        page.write(&folder.file("check.html")?)?;
        folder.finish()?;
        if !quiet {
            context.say(&format!("written to {}", place.display()))?;
        }
    }
    Ok(())
}

/// What is certain of a tree of a room that serves. All other parts are of jobs.
fn of_a_room(args: &CheckArgs, found: &Certified, context: &mut Context<'_>) -> Result<(), Error> {
    let given = [
        ("before", args.before.is_some()),
        ("ablate", args.ablate),
        ("after", !args.after.is_empty()),
        ("floor", !args.floor.is_empty()),
        ("drift", args.drift),
        ("out", args.run.out.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
        let value = args.file.display();
        return Err(Error::config(
            *flag,
            value,
            "a tree of jobs",
            "Leave the flag out.",
        ));
    }
    if !args.run.quiet() {
        context.say(found.tree.to_text().trim_end())?;
        for (said, verdict) in &found.verdicts {
            context.say(&verdict.in_words(said, found.tree.schema()))?;
        }
    }
    match args.run.json() {
        Some(path) => context.write_json(path, &found.verdicts),
        None => Ok(()),
    }
}

/// A tree whose certificates, which an edit makes void, are not asked for.
fn read(path: &Path) -> Result<Tree, Error> {
    let text = read_text(path, MAX_BYTES)?;
    Tree::from_json_uncertified(&text).map_err(|error| Error::data(path, error.to_string()))
}

/// Refuses guards that the tree cannot obey, before anything runs.
fn refuse_guards(args: &CheckArgs, tree: &Tree) -> Result<(), Error> {
    Error::refuse_if(
        args.after.is_empty() && args.floor.is_empty() && !args.beside.against.is_empty(),
        "against",
        "given",
        "none without --after or --floor, which alone use it",
        "Leave it out.",
    )?;
    let own = tree.guards();
    let overdue = args.after.iter().map(|after| Guards {
        overdue_after_s: Some(after.as_secs_f64()),
        ..own
    });
    let floors = args.floor.iter().map(|floor| Guards {
        tenant_floor: Some(*floor),
        ..own
    });
    for guards in overdue.chain(floors) {
        let obeyed = tree.clone().with_guards(guards);
        obeyed.map_err(|error| Error::data(&args.file, error.to_string()))?;
    }
    Ok(())
}

/// What was asked for, part by part. `notes` gets what importers mended.
fn report(
    args: &CheckArgs,
    (tree, before): (&Tree, Option<&Tree>),
    notes: &mut Vec<String>,
    watcher: &Watcher,
) -> Result<Report, Error> {
    let (seed, num_lists) = (args.run.seed(), usize::from(args.lists));
    let asks_for_guards = !(args.after.is_empty() && args.floor.is_empty());
    let mut report = Report {
        schema: 1,
        tree_hash: tree.hash(),
        certificates: tree
            .certify()
            .iter()
            .map(|own| own.in_words(tree.schema()))
            .collect(),
        before: None,
        ablation: None,
        guards: None,
        drift: None,
    };
    if before.is_some() || args.ablate || asks_for_guards {
        let env = args.workload.env(&args.scheduling)?;
        env.validate()?;
        for tree in [Some(tree), before].into_iter().flatten() {
            PolicySpec::tree("tree", tree.clone()).check(env.sim.capabilities)?;
        }
        if let Some(before) = before {
            report.before = Some(check(&env, (before, tree), num_lists, seed, watcher)?);
        }
        if args.ablate {
            report.ablation = Some(ablate(&env, tree, num_lists, seed, watcher)?);
        }
        if asks_for_guards {
            let against = args.beside.or(&AGAINST)?;
            for policy in &against {
                policy.check(env.sim.capabilities)?;
            }
            let input = GuardInput {
                tree: tree.clone(),
                overdue_after_s: args.after.iter().map(|after| after.as_secs_f64()).collect(),
                tenant_floors: args.floor.clone(),
                num_lists,
                against,
            };
            report.guards = Some(guard(&env, &input, seed, watcher)?);
        }
    }
    if args.drift {
        let flags = (&args.workload, &args.scheduling);
        let lists = DrawnLists::of(tree, flags, (args.seeds, seed))?;
        let on = (lists.instances.as_slice(), &lists.sim);
        report.drift = Some(drift(tree, on, args.window, args.limit)?);
        notes.extend(lists.notes);
    }
    Ok(report)
}

impl Report {
    /// All of it in Markdown.
    fn markdown(&self) -> String {
        let certain = ("What is certain", Some(self.certificates.join("\n")));
        let parts = [
            (
                "Against the version before",
                self.before.as_ref().map(CheckReport::markdown),
            ),
            (
                "What leaves and features are worth",
                self.ablation.as_ref().map(AblationReport::markdown),
            ),
            (
                "What guards cost",
                self.guards.as_ref().map(GuardReport::markdown),
            ),
            ("Drift", self.drift.as_ref().map(DriftReport::markdown)),
        ];
        let mut text = String::new();
        for (title, part) in [certain].into_iter().chain(parts) {
            if let Some(part) = part {
                text.push_str(&format!("# {title}\n\n{}\n\n", part.trim_end()));
            }
        }
        text
    }
}

/// The lists of the flags, as an evaluation has them.
pub(super) struct DrawnLists {
    /// The lists.
    pub(super) instances: Vec<Instance>,
    /// What is known and allowed on them.
    pub(super) sim: SimConfig,
    /// What importers mended.
    pub(super) notes: Vec<String>,
}

impl DrawnLists {
    /// Reads or draws them.
    ///
    /// # Errors
    /// Flags that cannot be used, a tree that cannot run there, a file that cannot be read.
    pub(super) fn of(
        tree: &Tree,
        (workload, scheduling): (&WorkloadSource, &SchedulingConfig),
        (seeds, seed): (u32, u64),
    ) -> Result<DrawnLists, Error> {
        let config = EvaluationConfig {
            workload: workload.clone(),
            scheduling: scheduling.clone(),
            seeds,
            seed,
            ..EvaluationConfig::default()
        };
        let evaluation = JobsWorld::of(&config, vec![PolicySpec::tree("tree", tree.clone())])?;
        let mut notes = Vec::new();
        let instances = evaluation.instances(&mut |note| notes.push(note))?;
        Ok(DrawnLists {
            instances,
            sim: evaluation.sim,
            notes,
        })
    }
}
