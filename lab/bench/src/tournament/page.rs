//! The report of a tournament.

use super::standings::{Standing, table};
use pleach_experiments::report::{Block, Report};

/// One table for each workload and condition, in the order in which they were played.
#[must_use]
pub fn report(rounds: &[(String, Vec<Standing>)], command_line: &str) -> Report {
    let about = "Every scheduler gets the capabilities that it asks for; all meet the same workloads and seeds. The gap is that to the \
                 lower bound on average JCT, which no scheduler can beat.";
    let sections = rounds.iter().fold(
        Report::new("Tournament").section("", [Block::Note(about.into())]),
        |report, (heading, standings)| report.section(heading, [table(standings).into()]),
    );
    sections.made_by(command_line, "")
}
