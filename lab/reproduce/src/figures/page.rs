//! What a benchmark gives, as text for the terminal and as a page.

use super::{Benchmark, Figure, Reproduction};
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::plot::text::escape;
use pleach_experiments::report::page::{html_table, page, preformatted, section};

impl Reproduction {
    /// The figures as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        let header = ["figure", "published", "ours", "95 % interval", "tolerance", ""];
        Table {
            header: header.map(str::to_string).to_vec(),
            rows: self.figures.iter().map(Figure::row).collect(),
            notes: Vec::new(),
        }
    }

    /// For the terminal.
    #[must_use]
    pub fn text(&self, benchmark: &Benchmark) -> String {
        let mut text = format!(
            "{}: {}\nsource: {}\nset-up: {}\n\n{}",
            benchmark.id,
            benchmark.title,
            benchmark.source,
            benchmark.setup,
            self.table().to_terminal().trim_end()
        );
        for (heading, table) in &self.tables {
            text.push_str(&format!("\n\n{heading}\n{}", table.to_terminal().trim_end()));
        }
        for finding in &self.findings {
            text.push_str(&format!("\n\nwith the default seeds: {finding}"));
        }
        text
    }

    /// The HTML of one or more benchmarks.
    #[must_use]
    pub fn html(done: &[(&Benchmark, Reproduction)], command_line: &str) -> String {
        let mut body = String::from("<h1>Published figures, run again</h1>\n");
        for (benchmark, reproduction) in done {
            let heading = format!("{}: {}", benchmark.id, benchmark.title);
            let mut content = format!(
                "<p class=\"note\">{}. {}</p>\n{}",
                escape(benchmark.source),
                escape(benchmark.setup),
                html_table(&reproduction.table())
            );
            for finding in &reproduction.findings {
                content.push_str(&format!("<p>{}</p>\n", escape(finding)));
            }
            section(&mut body, &heading, Some(content));
            for (heading, svg) in &reproduction.plots {
                body.push_str(&format!("<h3>{}</h3>\n{svg}", escape(heading)));
            }
            for (heading, table) in &reproduction.tables {
                body.push_str(&format!("<h3>{}</h3>\n{}", escape(heading), html_table(table)));
            }
        }
        section(&mut body, "How this was made", Some(preformatted(command_line)));
        page("Published figures, run again", &body)
    }
}
