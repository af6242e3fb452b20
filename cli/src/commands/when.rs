//! `pleach when`: when a job would start.

use pleach_experiments::error::Error;
use pleach_experiments::when::{asked, hindcast, hindcast_page, list_of, page, recorded, when};

use crate::commands::Context;
use crate::flags::WhenArgs;
use crate::progress::bars;

/// Forecasts, or scores forecasts.
///
/// # Errors
/// Files that cannot be used, a job that the cluster cannot hold, a simulation that fails.
pub fn run(args: &WhenArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let opened = list_of(
        &args.list,
        args.cluster.as_deref(),
        args.policy.as_deref(),
        &args.scheduling,
    )?;
    let (workload, sim, policy) = opened;
    let (workload, is_played) = recorded(workload, &sim, &policy)?;
    let quiet = args.report.quiet();
    if is_played && !quiet {
        context.say(&format!(
            "the list does not say when its jobs began: it is played under {} first",
            policy.name()
        ))?;
    }
    let asked = asked(&workload, (&sim, &policy), args.report.seed(), &args.method);
    let watcher = bars(quiet);
    if args.hindcast {
        let found = hindcast(&asked, args.at, is_played, &watcher)?;
        let report = hindcast_page(&found);
        if !quiet {
            context.say(report.text().trim_end())?;
        }
        if let Some(path) = &args.page.html {
            report.made_by(&context.command_line, "").write(path)?;
        }
        return args
            .report
            .json()
            .map_or(Ok(()), |path| context.write_json(path, &found));
    }
    let answer = when(&asked, args.at, &args.ask(), &watcher)?;
    if !quiet {
        context.say(&answer.words())?;
    }
    if let Some(path) = &args.page.html {
        page(&answer).made_by(&context.command_line, "").write(path)?;
    }
    args.report
        .json()
        .map_or(Ok(()), |path| context.write_json(path, &answer))
}
