//! An inspection as one HTML page: each section's pictures above its table.

use std::fmt::Write as _;
use std::path::Path;

use super::Inspection;
use super::plots::plots;
use super::tables::{PROFILES, sections};
use crate::error::Error;
use crate::plot::text::escape;
use crate::report::page::{html_table, page, preformatted, section};
use crate::run_folder::atomic_file;

/// The page. `notes` is what the importer had to say.
#[must_use]
pub fn render(inspection: &Inspection, command_line: &str, notes: &str) -> String {
    let title = format!("Workload {}", inspection.name);
    let mut body = format!("<h1>{}</h1>\n", escape(&title));
    let _ = writeln!(
        body,
        "<p class=\"note\">Pleach {} · workload describe</p>",
        env!("CARGO_PKG_VERSION")
    );
    if inspection.sizes.num_jobs == 0 {
        body.push_str("<p>There are no jobs.</p>\n");
    }
    for part in sections(inspection)
        .into_iter()
        .filter(|part| part.key != PROFILES)
    {
        let pictures = plots(part.key, inspection);
        let content = format!(
            "<div class=\"wide least\">{pictures}</div>\n{}",
            html_table(&part.table)
        );
        section(&mut body, &part.heading, Some(content));
    }
    let notes = (!notes.is_empty()).then(|| preformatted(notes));
    section(&mut body, "What the importer said", notes);
    section(&mut body, "How this was made", Some(preformatted(command_line)));
    page(&title, &body)
}

/// Writes the page.
///
/// # Errors
/// [`Error::Problem`].
pub fn write(inspection: &Inspection, command_line: &str, notes: &str, path: &Path) -> Result<(), Error> {
    atomic_file::write(path, render(inspection, command_line, notes).as_bytes())
}
