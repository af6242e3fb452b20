//! `pleach when`: when a job would start.

use std::path::Path;
use std::thread;
use std::time::Duration;

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use pleach_experiments::door::PolicySpec;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::day::DAY_S;
use pleach_experiments::when::{Kept, asked, hindcast, hindcast_page, list_of, page, recorded, starts, when};

use crate::commands::{Context, when_served};
use crate::flags::WhenArgs;
use crate::progress::bars;

/// Forecasts, or scores forecasts.
///
/// # Errors
/// Files that cannot be used, a job that the cluster cannot hold, a simulation that fails.
pub fn run(args: &WhenArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if args.list.starts_with(when_served::SCHEME) {
        return when_served::run(args, context);
    }
    if let Some(path) = &args.answers {
        return answers(args, path, context);
    }
    let (workload, sim, policy, is_played) = opened(args)?;
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

/// The list with starts, and whether those were played.
fn opened(args: &WhenArgs) -> Result<(Workload, SimConfig, PolicySpec, bool), Error> {
    let (cluster, policy) = (args.cluster.as_deref(), args.policy.as_deref());
    let (workload, sim, policy) = list_of(&args.list, cluster, policy, &args.scheduling)?;
    let (workload, is_played) = recorded(workload, &sim, &policy)?;
    Ok((workload, sim, policy, is_played))
}

/// Writes the forecasts of all that waits, once or again and again.
fn answers(args: &WhenArgs, path: &Path, context: &mut Context<'_>) -> Result<(), Error> {
    let watcher = bars(args.report.quiet());
    let mut kept = Kept::default();
    loop {
        let written = opened(args).and_then(|(workload, sim, policy, _)| {
            let asked = asked(&workload, (&sim, &policy), args.report.seed(), &args.method);
            context.write_json(path, &starts(&asked, args.at, &mut kept, &watcher)?)
        });
        let Some(days) = args.every else {
            return written;
        };
        // A list that is just being written, or has no job yet, is there a moment later.
        if let Err(error) = written {
            context.say(&error.to_string())?;
        }
        thread::sleep(Duration::from_secs_f64((days * DAY_S).max(1.0)));
    }
}
