//! The page of a run: what was found, step by step, and at its end what is to be done.

use std::fmt::Write as _;

use pleach_env::workload::Workload;

use super::found::Decided;
use crate::evaluate::table::Table;
use crate::plot::text::escape;
use crate::report::page::{html_table, page, preformatted, section};
use crate::twin::under_table;

/// What the page tells beside the result.
pub(super) struct Told<'a> {
    pub list: &'a Workload,
    pub described: &'a [(String, Table)],
    pub explained: &'a str,
    pub tree: Option<String>,
    pub commands: &'a [String],
}

/// The HTML text.
pub(super) fn render(decided: &Decided, told: &Told<'_>) -> String {
    let title = "From the list to a decision";
    let verdict = decided.verdict.line();
    let mut body = format!("<h1>{title}</h1>\n<p><strong>{}</strong></p>\n", escape(&verdict));
    let _ = writeln!(
        body,
        "<p class=\"note\">Pleach {} · {} jobs · {} nodes, {} GPUs · searched in until day {}, chosen until day {}, judged after it</p>",
        env!("CARGO_PKG_VERSION"),
        told.list.jobs.len(),
        told.list
            .cluster
            .node_groups
            .iter()
            .map(|group| group.count)
            .sum::<u32>(),
        told.list.cluster.num_gpus(),
        decided.parts.learn_days,
        decided.parts.choose_days
    );
    let tables = |tables: &[(String, Table)]| {
        tables.iter().fold(String::new(), |mut html, (heading, table)| {
            let _ = write!(html, "<h3>{}</h3>\n{}", escape(heading), html_table(table));
            html
        })
    };
    let twin = &decided.twin;
    let fit = twin
        .fit
        .as_ref()
        .map(|fit| format!("<p>{}</p>\n", escape(&fit.line())));
    let words = format!("<p>{}</p>\n{}", escape(&twin.verdict), fit.unwrap_or_default());
    section(
        &mut body,
        "Is the simulation like the site?",
        Some(words + &tables(&twin.tables)),
    );
    let judged = html_table(&under_table(&decided.judged));
    section(
        &mut body,
        "Judged on days that nothing was chosen by",
        Some(judged),
    );
    let compared = html_table(&under_table(&decided.compared));
    section(
        &mut body,
        "Candidates on the days in which was chosen",
        Some(compared),
    );
    section(&mut body, "The tree", told.tree.as_deref().map(preformatted));
    let explained = Some(told.explained).filter(|text| !text.is_empty());
    section(
        &mut body,
        "Where it decides otherwise",
        explained.map(preformatted),
    );
    section(&mut body, "The list", Some(tables(told.described)));
    let commands = preformatted(&told.commands.join("\n"));
    section(&mut body, "The same by hand", Some(commands));
    let mut last = format!("<p><strong>{}</strong></p>\n", escape(&verdict));
    if let Some(shadow) = &decided.shadow {
        let _ = write!(
            last,
            "<p>First as a shadow, which touches nothing:</p>\n{}",
            preformatted(shadow)
        );
    }
    section(&mut body, "What to do", Some(last));
    page(title, &body)
}
