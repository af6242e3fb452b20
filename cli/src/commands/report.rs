//! `pleach report`: what was promised of a policy, and what became of it.

use std::path::Path;

use pleach_experiments::decide::site_list;
use pleach_experiments::error::Error;
use pleach_experiments::file_kind::FileKind;
use pleach_experiments::promise::{self, ReviewInput, page, review};

use super::twin::since_s;
use crate::commands::Context;
use crate::flags::ReportArgs;
use crate::progress::bars;

/// Reviews.
///
/// # Errors
/// Files that cannot be used, a list without jobs that began and ended since, a simulation that fails.
pub fn run(args: &ReportArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let promise = promise::read(&args.promise)?;
    let found = site_list(
        &args.jobs,
        args.nodes.as_deref(),
        args.mapping.as_deref(),
        args.cluster.as_deref(),
        None,
    );
    let found = found.map_err(|error| FileKind::Jobs.or_other(&args.jobs, error))?;
    let (quiet, workload) = (args.machine.words.quiet, found.workload);
    if !quiet {
        context.say(found.report.to_string().trim_end())?;
    }
    let input = ReviewInput {
        promise: &promise,
        folder: args.promise.parent().unwrap_or(Path::new("")),
        workload: &workload,
        since_s: since_s(args.since_day, &workload)?,
        margin: args.margin,
    };
    let found = review(&input, &bars(quiet))?;
    let report = page(&found);
    if !quiet {
        context.say(&format!("\n{}", report.text().trim_end()))?;
    }
    if let Some(path) = &args.page.html {
        report.made_by(&context.command_line, "").write(path)?;
    }
    match &args.data.json {
        Some(path) => context.write_json(path, &found),
        None => Ok(()),
    }
}
