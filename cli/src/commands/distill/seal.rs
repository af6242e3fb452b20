//! `pleach distill seal`: a tree or a formula made ready to be deployed.

use pleach_scheduler::formula::ScoreFormula;
use pleach_scheduler::tree::{MAX_BYTES, Tree, TreeError};
use pleach_scheduler::{Guards, Problem, heuristics};

use super::check::DrawnLists;
use crate::commands::Context;
use crate::commands::export::forms;
use crate::flags::SealArgs;
use pleach_experiments::distill::bundle;
use pleach_experiments::distill::visits::record;
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::atomic_file::{read_text, write};

/// Seals the file, and writes a bundle where that is asked for.
///
/// # Errors
/// A file that is no tree, a name that is no heuristic's, a guard that the tree cannot obey, an unknown form, a file that cannot be
/// written, a folder in the way.
pub(super) fn run(args: &SealArgs, context: &mut Context<'_>) -> Result<(), Error> {
    // Before anything is written.
    let forms = forms(&args.forms)?;
    if let Some(folder) = &args.bundle {
        bundle::check(&forms, folder)?;
    }
    let refused = |error: TreeError| Error::data(&args.file, error.to_string());
    let text = read_text(&args.file, MAX_BYTES)?;
    if ScoreFormula::is_in(&text) {
        return formula(args, &text, context);
    }
    let mut tree = Tree::from_json_uncertified(&text).map_err(refused)?;
    let guards = guards(args, tree.guards());
    tree = tree.with_guards(guards).map_err(refused)?;
    if let Some(name) = &args.fallback {
        heuristics::by_name(name)
            .map_err(|error| Error::config("fallback", name, error.allowed, error.hint))?;
        tree = tree.with_fallback(Some(name.clone())).map_err(refused)?;
    }
    if args.gpu_types_max.is_some() {
        tree = tree.with_gpu_types_max(args.gpu_types_max).map_err(refused)?;
    }
    if let Some(wide) = args.wide.wide_gangs.clone() {
        tree = tree.with_wide_gangs(Some(wide)).map_err(refused)?;
    }
    if args.visits {
        tree = recorded(args, tree, context)?;
    }
    let certificates = tree.certify();
    let sealed = tree.with_certificates(certificates).with_golden();
    say(&sealed, context)?;
    write(&args.file, sealed.to_json().as_bytes())?;
    context.say(&format!("sealed: {}", args.file.display()))?;
    if let Some(folder) = &args.bundle {
        let manifest = bundle::bundle(&sealed, &forms, args.commit.clone(), folder)?;
        for file in &manifest.files {
            context.say(&format!("{} {}", file.sha256, file.file))?;
        }
        context.say(&format!("written to {}", folder.display()))?;
    }
    Ok(())
}

/// The guards of the flags over those of the file.
fn guards(args: &SealArgs, own: Guards) -> Guards {
    let overdue = args.overdue.map(|after| after.as_secs_f64());
    Guards {
        overdue_after_s: overdue.or(own.overdue_after_s),
        tenant_floor: args.floor.or(own.tenant_floor),
        ..own
    }
}

/// Seals a formula, which has neither a fallback nor leaves to be visited.
fn formula(args: &SealArgs, text: &str, context: &mut Context<'_>) -> Result<(), Error> {
    let of_trees = [
        ("fallback", args.fallback.is_some()),
        ("gpu-types-max", args.gpu_types_max.is_some()),
        ("wide-gangs", args.wide.wide_gangs.is_some()),
        ("visits", args.visits),
        ("bundle", args.bundle.is_some()),
    ];
    if let Some((flag, _)) = of_trees.iter().find(|(_, is_given)| *is_given) {
        let hint = "Leave it out; a daemon's settings name a fallback for every policy.";
        return Err(Error::config(*flag, "given", "none for a formula", hint));
    }
    let refused = |error: Problem| Error::data(&args.file, error);
    let formula = ScoreFormula::from_json_unsealed(text).map_err(refused)?;
    let guards = guards(args, formula.guards());
    let sealed = formula.with_guards(guards).map_err(refused)?.sealed();
    write(&args.file, sealed.to_json().as_bytes())?;
    context.say(sealed.in_words().trim_end())?;
    context.say(&format!("sealed: {}", args.file.display()))
}

/// What stands in the file from now on.
fn say(sealed: &Tree, context: &mut Context<'_>) -> Result<(), Error> {
    for own in sealed.certificates() {
        context.say(&own.in_words(sealed.schema()))?;
    }
    let golden = sealed.golden();
    context.say(&format!(
        "golden vectors: {} rows, SHA-256 {}",
        golden.num_rows, golden.sha256
    ))?;
    let fallback = sealed.fallback().unwrap_or("none named");
    context.say(&format!("fallback: {fallback}"))?;
    match sealed.visits() {
        Some(visits) => {
            let on = serde_json::to_string(&visits.recorded_on).unwrap_or_default();
            context.say(&format!("visits: {} decisions on {on}", visits.num_decisions))
        }
        None => context.say("visits: none, so nothing watches for drift (--visits)"),
    }
}

/// The tree with visits of the lists of the flags.
fn recorded(args: &SealArgs, tree: Tree, context: &mut Context<'_>) -> Result<Tree, Error> {
    let flags = (&args.workload, &args.scheduling);
    let lists = DrawnLists::of(&tree, flags, (args.seeds, args.draws.seed))?;
    for note in &lists.notes {
        context.say(note)?;
    }
    let visits = record(&tree, &lists.instances, &lists.sim, args.draws.seed)?;
    tree.with_visits(visits)
        .map_err(|error| Error::Failed(format!("these lists are no histogram: {error}")))
}
