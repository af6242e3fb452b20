//! An inspection as a report: each section's pictures above its table.

use super::Inspection;
use super::plots::plots;
use super::tables::{PROFILES, sections};
use crate::report::{Block, Report};

/// The report of an inspection; [`Report::text`] is what a terminal shows.
#[must_use]
pub fn report(inspection: &Inspection) -> Report {
    let none = (inspection.sizes.num_jobs == 0).then(|| Block::Text("There are no jobs.".into()));
    let report = Report::new(format!("Workload {}", inspection.name)).note("workload describe");
    let sections = sections(inspection)
        .into_iter()
        .filter(|part| part.key != PROFILES);
    sections.fold(report.section("", none), |report, part| {
        let pictures = plots(part.key, inspection).into_iter().map(Block::from);
        report.section(&part.heading, pictures.chain([part.table.into()]))
    })
}
