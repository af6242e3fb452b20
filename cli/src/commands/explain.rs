//! `pleach explain`: why a tree did what it did.

use pleach_experiments::error::Error;
use pleach_experiments::explain::explain;

use crate::commands::{Context, world};
use crate::flags::ExplainArgs;

/// Simulates the list and answers.
///
/// # Errors
/// A policy that is no tree, a list that cannot be used, a job or a decision that is not there.
pub fn run(args: &ExplainArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(asked) = world::of(&args.workload, &args.of_world.set, &world::EXPLAIN, context)? {
        return world::explain(&asked, args, context);
    }
    let mut notes = Vec::new();
    let answer = explain(&args.config(), &args.question(), &mut |note| notes.push(note))?;
    notes.iter().try_for_each(|note| context.say(note))?;
    context.say(answer.to_string().trim_end())?;
    match &args.data.json {
        Some(path) => context.write_json(path, &answer),
        None => Ok(()),
    }
}
