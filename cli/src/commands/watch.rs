//! `pleach watch`: a record as a page that can be watched.

use pleach_experiments::error::Error;
use pleach_experiments::watch::report;

use crate::commands::Context;
use crate::flags::WatchArgs;

/// Writes the page.
///
/// # Errors
/// Files that cannot be used; a record that is not of this list, or larger than a page.
pub fn run(args: &WatchArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let (record, settings, mut notes) = args.made.open(args.draws.seed)?;
    let (_, instances) = settings.instances(&mut |note| notes.push(note))?;
    report(&record, &instances, &context.command_line)?.write(&args.out)?;
    if !args.quiet.quiet {
        notes.iter().try_for_each(|note| context.say(note))?;
        context.say(&format!("{}: open it in a browser", args.out.display()))?;
    }
    Ok(())
}
