//! `pleach distill --frontier`: size against performance.

use super::shared::Setup;
use crate::commands::Context;
use crate::commands::plots_page::plots_page;
use crate::flags::DistillArgs;
use crate::progress::bars;
use pleach_experiments::distill::frontier::{FrontierInput, frontier};
use pleach_experiments::error::Error;
use pleach_experiments::plot::text::escape;

/// Sizes if nobody says which, in leaves.
const LEAVES: [usize; 7] = [2, 4, 8, 16, 32, 64, 128];
/// Policies beside the trees if nobody says which.
const AGAINST: [&str; 2] = ["sjf", "gpu-time-reserve"];

/// Distils a teacher to trees of several sizes and reports them.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(args: &DistillArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let setup = Setup::of(args, &LEAVES)?;
    let against = args.beside.or(&AGAINST)?;
    for policy in &against {
        policy.check(setup.env.sim.capabilities)?;
    }
    let input = FrontierInput {
        teacher: setup.teacher()?.clone(),
        distill: setup.config.clone(),
        num_lists: setup.report_lists()?,
        against,
    };
    let folder = setup.folder("frontier", None, context)?;
    let (report, trees) = frontier(&setup.env, &input, setup.seed, &bars(setup.quiet))?;
    for tree in &trees {
        let name = format!("trees/leaves-{}.json", tree.num_leaves());
        folder.write(&name, tree.to_json().as_bytes())?;
    }
    folder.write_json("frontier.json", &report)?;
    let table = report.markdown();
    folder.write("frontier.md", table.as_bytes())?;
    let note = format!(
        "Trees distilled from {}, on lists that nothing was chosen by: average JCT over that of the heuristic that is best over the \
         part, geometric mean and paired 95 % interval.",
        escape(report.lines.first().map_or("", |row| &row.policy))
    );
    let settings = toml::to_string_pretty(&setup.config).unwrap_or_default();
    let made = [context.command_line.as_str(), &settings];
    let html = plots_page("Size against performance", &note, report.plots(), &table, &made);
    folder.write("frontier.html", html.as_bytes())?;
    if let Some(path) = args.run.json() {
        context.write_json(path, &report)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !setup.quiet {
        context.say(&table)?;
        context.say(&format!("written to {}", place.display()))?;
    }
    Ok(())
}
