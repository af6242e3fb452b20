//! `pleach verify`: a record of a schedule, checked.

use pleach_experiments::error::Error;
use pleach_experiments::schedule::{Checked, check, replay, table};

use crate::commands::Context;
use crate::flags::VerifyArgs;
use crate::progress::bars;

/// Faults of a run that are printed.
const FAULTS_SHOWN_MAX: usize = 20;

/// Checks every run of the record.
///
/// # Errors
/// Files that cannot be used; a run that breaks a rule, once all broken rules are reported.
pub fn run(args: &VerifyArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let (record, settings, mut notes) = args.made.open(args.report.seed())?;
    let (sim, instances) = settings.instances(&mut |note| notes.push(note))?;
    let mut checked = check(&record, &instances, &sim, settings.observed || args.observed)?;
    if args.replay {
        replay(
            &record,
            &settings,
            &instances,
            &bars(args.report.quiet()),
            &mut checked,
        )?;
    }
    if !args.report.quiet() {
        notes.iter().try_for_each(|note| context.say(note))?;
        context.say(table(&checked).to_terminal().trim_end())?;
        for run in checked.iter().filter(|run| run.num_faults > 0) {
            context.say(&faults(run))?;
        }
    }
    if let Some(path) = args.report.json() {
        context.write_json(path, &checked)?;
    }
    let num_faults: u64 = checked.iter().map(|run| run.num_faults).sum();
    match num_faults {
        0 => Ok(()),
        num => Err(Error::Failed(format!(
            "{}: {num} faults in {} of {} schedules",
            args.made.record.display(),
            checked.iter().filter(|run| run.num_faults > 0).count(),
            checked.len()
        ))),
    }
}

/// The first faults of a run in words.
fn faults(run: &Checked) -> String {
    let shown = run.faults.iter().take(FAULTS_SHOWN_MAX);
    let mut lines = vec![format!(
        "\n{} on {} with seed {}:",
        run.policy, run.workload, run.seed
    )];
    lines.extend(shown.map(|(_, fault)| format!("  {fault}")));
    if run.num_faults > FAULTS_SHOWN_MAX as u64 {
        let more = run.num_faults - FAULTS_SHOWN_MAX as u64;
        lines.push(format!("  and {more} more (--json lists the first 1000)"));
    }
    lines.join("\n")
}
