//! `pleach distill`: a tree from any policy, or from a search, and what else is done with one.

mod check;
mod formula;
mod seal;
mod search;
mod shared;
mod teacher;

pub(super) use self::shared::{next_steps, write_tree};
use crate::commands::{Context, world};
use crate::flags::{DistillArgs, DistillCommand};
use pleach_experiments::error::Error;

/// Runs the distillation.
///
/// # Errors
/// Flags that cannot be used, a folder in the way, a run that fails.
pub fn run(args: &DistillArgs, context: &mut Context<'_>) -> Result<(), Error> {
    match &args.command {
        Some(DistillCommand::Check(args)) => return check::run(args, context),
        Some(DistillCommand::Seal(args)) => return seal::run(args, context),
        None => {}
    }
    if let Some(asked) = world::of(&args.workload, &args.of_world.set, &world::DISTILL, context)? {
        return world::distill(asked, args, context);
    }
    refuse_unused(args)?;
    match args.search {
        true if !args.form.is_tree() => formula::run(args, context),
        true => search::run(args, context),
        false => teacher::run(args, context),
    }
}

/// Refuses flags of distilling that a search does not look at, and those of a search alone.
fn refuse_unused(args: &DistillArgs) -> Result<(), Error> {
    let of_search = args.search;
    let alone = of_search && args.teacher.is_none();
    let unused = [
        ("depth", of_search && args.depth.is_some()),
        ("part-lists", of_search && args.part_lists.is_some()),
        ("rounds", alone && args.rounds.is_some()),
        ("episodes", alone && args.episodes.is_some()),
        ("config", alone && args.config.is_some()),
        ("monotone", of_search && !args.monotone.is_empty()),
        ("objective", of_search && !args.objective.is_empty()),
        ("against", !(of_search || args.beside.against.is_empty())),
        ("form", !(of_search || args.form.is_tree())),
    ];
    let way = match args.search {
        true => "with --search (rounds, episodes and config only with --teacher)",
        false => "of a teacher alone",
    };
    match unused.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Error::config(
            *flag,
            "given",
            format!("none {way}, which does not use it"),
            "Leave it out.",
        )),
        None => Ok(()),
    }
}
