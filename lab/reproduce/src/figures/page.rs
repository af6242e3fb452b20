//! What a benchmark gives, as text for the terminal and as a page.

use super::{Benchmark, Figure, Reproduction};
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::plot::Plot;
use pleach_experiments::report::{Block, Report};

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

    /// The report of one or more benchmarks.
    #[must_use]
    pub fn report(done: &[(&Benchmark, Reproduction)], command_line: &str) -> Report {
        let report = Report::new("Published figures, run again");
        let sections = done.iter().fold(report, |report, (benchmark, own)| {
            let about = format!("{}. {}", benchmark.source, benchmark.setup);
            let plots = own.plots.iter().map(|(title, plot)| {
                let title = format!("{title}: {}", plot.title);
                Block::Plot(Plot {
                    title,
                    ..plot.clone()
                })
            });
            let blocks = [Block::Note(about), own.table().into()].into_iter();
            let blocks = blocks
                .chain(own.findings.iter().cloned().map(Block::Text))
                .chain(plots);
            report.section(
                &format!("{}: {}", benchmark.id, benchmark.title),
                blocks.chain(Block::tables(&own.tables)),
            )
        });
        sections.made_by(command_line, "")
    }
}
