//! The report of a run: what was found, step by step, and at its end what is to be done.

use pleach_env::workload::Workload;
use pleach_scheduler::tree::Tree;

use super::found::Decided;
use super::verdict::Decision;
use crate::evaluate::table::Table;
use crate::plot::Plot;
use crate::report::{Block, Report};
use crate::twin::{Trust, under_plot, under_table};

/// What the report tells beside the result.
pub(super) struct Told<'a> {
    pub list: &'a Workload,
    pub list_file: &'a str,
    pub described: &'a [(String, Table)],
    pub explained: &'a str,
    pub tree: Option<&'a Tree>,
    /// The twin's pictures.
    pub plots: Vec<Plot>,
    pub commands: &'a [String],
}

/// The report.
pub(super) fn report(decided: &Decided, told: Told<'_>) -> Report {
    let (twin, parts) = (&decided.twin, &decided.parts);
    let cluster = &told.list.cluster;
    let about = format!(
        "{} jobs · {} nodes, {} GPUs · searched in until day {}, chosen until day {}, judged after it · {}",
        told.list.jobs.len(),
        cluster.node_groups.iter().map(|group| group.count).sum::<u32>(),
        cluster.num_gpus(),
        parts.learn_days,
        parts.choose_days,
        decided.world
    );
    let verdict = || Block::Verdict(decided.verdict.line());
    let compared = |title: &str, under| {
        let plot = under_plot(title, under).map(Block::from);
        plot.into_iter().chain([under_table(under).into()])
    };
    let fit = twin.fit.as_ref().map(|fit| Block::Text(fit.line()));
    let words = [Block::Text(twin.verdict.clone())].into_iter().chain(fit);
    let explained = Some(told.explained).filter(|text| !text.is_empty());
    Report::new("From the list to a decision")
        .note(&about)
        .section("The decision", [verdict()])
        .section(
            "Is the simulation like the site?",
            words
                .chain(told.plots.into_iter().map(Block::from))
                .chain(Block::tables(&twin.tables)),
        )
        .section(
            "Judged on days that nothing was chosen by",
            compared("Completion times on the days that judge", &decided.judged),
        )
        .section(
            "Candidates on the days in which was chosen",
            compared("Completion times of the candidates", &decided.compared),
        )
        .section("The tree", told.tree.map(Block::from))
        .section(
            "Where it decides otherwise",
            explained.map(|text| Block::Code(text.to_string())),
        )
        .section("The list", Block::tables(told.described))
        .section(
            "The same by hand",
            told.commands.iter().cloned().map(Block::Command),
        )
        .section(
            "What to do",
            [verdict()].into_iter().chain(next(decided, told.list_file)),
        )
}

/// The next step: words and a command.
fn next(decided: &Decided, list: &str) -> [Block; 2] {
    let twin = &decided.twin;
    let (words, command) = match (decided.verdict.decision, twin.trust, &decided.shadow) {
        (Decision::Deploy, _, Some(lines)) if lines.starts_with('#') => {
            ("The change, a file of its own beside this page:", lines.clone())
        }
        (Decision::Deploy, _, Some(shadow)) => ("First as a shadow, which touches nothing:", shadow.clone()),
        (_, None | Some(Trust::No), _) => (
            "Make the simulation like the site first: give the list the times at which jobs began, the site's own policy, its limits \
             and its reservations in the site's file. This holds the simulation against the site under other policies:",
            format!("pleach twin --workload {list} --policy easy,fifo,fifo-skip,fair-share --fit"),
        ),
        (Decision::NothingToWin, ..) => (
            "Leave the scheduler as it is, and run this again when jobs wait longer. What the same jobs would meet at a load of 1.5:",
            format!("pleach evaluate --workload {list} --load 1.5"),
        ),
        _ => (
            "A list of more weeks makes the intervals narrower: export it, and run this again. All policies on the whole list:",
            format!(
                "pleach twin --workload {list} --policy {} --under all",
                twin.policy
            ),
        ),
    };
    [Block::Text(words.to_string()), Block::Command(command)]
}
