//! A tournament as one HTML page.

use super::standings::{Standing, table};
use pleach_experiments::plot::text::escape;
use pleach_experiments::report::page::{html_table, page, preformatted, section};

/// The page: one table for each workload and condition, in the order in which they were played.
#[must_use]
pub fn render(rounds: &[(String, Vec<Standing>)], command_line: &str) -> String {
    let mut body = String::from("<h1>Tournament</h1>\n<p class=\"note\">");
    body.push_str(&escape(
        "Every scheduler gets the capabilities that it asks for; all meet the same workloads and seeds. The gap is that to the \
         lower bound on average JCT, which no scheduler can beat.",
    ));
    body.push_str("</p>\n");
    for (heading, standings) in rounds {
        section(&mut body, heading, Some(html_table(&table(standings))));
    }
    section(&mut body, "How this was made", Some(preformatted(command_line)));
    page("Tournament", &body)
}
