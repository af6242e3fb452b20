//! `pleach distill`: a tree from any policy, or from a search, and what else is done with one.

mod check;
mod fits;
mod frontier;
mod seal;
mod search;
mod shared;
mod teacher;

pub(super) use self::shared::{next_steps, write_tree};
use crate::commands::Context;
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
    refuse_unused(args)?;
    match (args.search, args.frontier, args.fits) {
        (true, ..) => search::run(args, context),
        (_, true, _) => frontier::run(args, context),
        (.., Some(num_fits)) => fits::run(args, num_fits, context),
        _ => teacher::run(args, context),
    }
}

/// Refuses flags of distilling that a search or a report does not look at.
fn refuse_unused(args: &DistillArgs) -> Result<(), Error> {
    let (of_search, of_report) = (args.search, args.frontier || args.fits.is_some());
    let alone = of_search && args.teacher.is_none();
    let unused = [
        ("depth", of_search && args.depth.is_some()),
        ("part-lists", of_search && args.part_lists.is_some()),
        ("rounds", alone && args.rounds.is_some()),
        ("episodes", alone && args.episodes.is_some()),
        ("config", alone && args.config.is_some()),
        ("monotone", of_search && !args.monotone.is_empty()),
        (
            "objective",
            (of_search || of_report) && !args.objective.is_empty(),
        ),
        ("test-seeds", of_report && args.test_seeds.is_some()),
        (
            "against",
            !(of_search || args.frontier || args.beside.against.is_empty()),
        ),
    ];
    let way = match (args.search, args.frontier, args.fits) {
        (true, ..) => "with --search (rounds, episodes and config only with --teacher)",
        (_, true, _) => "with --frontier",
        (.., Some(_)) => "with --fits",
        _ => "of a teacher alone",
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
