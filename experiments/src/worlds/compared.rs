//! A comparison of policies on the lists of a world: what is asked for, and what is found, as JSON, CSV, tables and a report.

use std::path::Path;

use pleach_env::schedule::Record;
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::evaluate::results::Results;
use crate::evaluate::table::Table;
use crate::plot::{Axis, Mark, Plot};
use crate::report::{Block, Report, about, plots};
use crate::run_folder::atomic_file;

/// What is compared, and how.
#[derive(Clone, Debug, Default)]
pub struct Comparing {
    /// Rules by name, trees and networks by file; none: those that the world names.
    pub policies: Vec<String>,
    /// Held against this one; none: the world's own choice.
    pub reference: Option<String>,
    /// By this metric; none: the world's first.
    pub metric: Option<String>,
    /// Whether plots are made.
    pub pictured: bool,
    /// Whether one thing after the other is taken away.
    pub ablated: bool,
    /// Simulations of a search on each list that sees it, beside the rules; none: no search.
    pub regret: Option<u32>,
    /// Root of all randomness.
    pub seed: u64,
}

/// A comparison at one load.
pub struct At {
    /// The load, over that of the settings.
    pub load: f64,
    /// The scores.
    pub results: Results,
    /// The table.
    pub table: Table,
    /// The same with what a report has room for.
    pub whole: Table,
    /// The plots.
    pub plots: Vec<Plot>,
    /// What is shown beside the scores.
    pub beside: Beside,
}

/// What a comparison shows beside its scores.
#[derive(Default)]
pub struct Beside {
    /// Tables, each with its file in a run's folder and its heading.
    pub tables: Vec<(&'static str, &'static str, Table)>,
    /// The tree or formula of the first policy that is one.
    pub tree: Option<Block>,
    /// Which job ran where and when, where it was asked for.
    pub record: Option<Record>,
}

impl At {
    fn sections(&self) -> impl Iterator<Item = (&'static str, Vec<Block>)> + '_ {
        let summary = [("Summary", vec![Block::from(self.whole.clone())])];
        let plots = plots(&self.results);
        let plots = plots
            .into_iter()
            .map(|(heading, plot)| (heading, plot.map(Block::from).into_iter().collect()));
        let own = [("Plays", self.plots.iter().cloned().map(Block::from).collect())];
        let tables = self.beside.tables.iter();
        let tables = tables.map(|(_, heading, table)| (*heading, vec![Block::from(table.clone())]));
        let tree = [("The tree", self.beside.tree.iter().cloned().collect())];
        summary
            .into_iter()
            .chain(plots)
            .chain(own)
            .chain(tables)
            .chain(tree)
    }
}

/// A comparison at one load or several.
pub struct Compared {
    /// In the order given.
    pub at: Vec<At>,
}

/// Scores at a load of several.
#[derive(Serialize)]
struct AtLoad<'a> {
    load: f64,
    #[serde(flatten)]
    results: &'a Results,
}

/// The scores of one load, or of each in turn.
impl Serialize for Compared {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.at.as_slice() {
            [only] => only.results.serialize(to),
            all => to.collect_seq(
                all.iter()
                    .map(|At { load, results, .. }| AtLoad { load: *load, results }),
            ),
        }
    }
}

impl Compared {
    /// The tables, each with its file in a run's folder; where there are several loads, of the first alone.
    pub fn tables(&self) -> impl Iterator<Item = (&'static str, &Table)> {
        let at = self.at.iter().take(1);
        at.flat_map(|at| {
            let beside = at.beside.tables.iter().map(|(file, _, table)| (*file, table));
            std::iter::once(("table.md", &at.table)).chain(beside)
        })
    }

    /// Every play as a row of CSV; the loads in turn.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_csv(&self, path: &Path) -> Result<(), Error> {
        let mut text = String::new();
        for at in &self.at {
            let csv = at.results.csv()?;
            let rows = csv.split_once('\n').map_or(csv.as_str(), |(_, rows)| rows);
            text += if text.is_empty() { &csv } else { rows };
        }
        atomic_file::write(path, text.as_bytes())
    }

    /// Everything as a report.
    #[must_use]
    pub fn report(&self, title: &str) -> Report {
        let over = self.over_loads();
        let over = over
            .into_iter()
            .flat_map(|(table, plot)| std::iter::once(Block::from(table)).chain(plot.map(Block::from)));
        let mut report = Report::new(title);
        if let Some(at) = self.at.first() {
            report = report.note(&about(&at.results));
        }
        let report = report.section("Over the load", over);
        self.at.iter().fold(report, |report, at| match self.at.len() {
            1 => at.sections().fold(report, |report, (heading, blocks)| {
                report.section(heading, blocks)
            }),
            _ => {
                let blocks = at.sections().flat_map(|(_, blocks)| blocks);
                report.section(&format!("{} times the load", at.load), blocks)
            }
        })
    }

    /// The metric of each policy at each load, where there are several.
    #[must_use]
    pub fn over_loads(&self) -> Option<(Table, Option<Plot>)> {
        let first = &self.at.first().filter(|_| self.at.len() > 1)?.results;
        let metric = first.metric();
        let lines = first.policies().map(|(name, _)| {
            let value = |at: &At| {
                let mut all = at.results.policies();
                let found = all.find(|(other, _)| *other == name);
                found.and_then(|(_, summary)| summary.metrics.get(metric.key).copied())
            };
            let values = self.at.iter().map(|at| value(at).unwrap_or(f64::NAN)).collect();
            (name.to_string(), values)
        });
        let lines: Vec<(String, Vec<f64>)> = lines.collect();
        let header = self.at.iter().map(|at| format!("x{}, {}", at.load, metric.label));
        let table = Table {
            header: std::iter::once("policy".to_string()).chain(header).collect(),
            rows: lines
                .iter()
                .map(|(name, values)| {
                    let shown = values.iter().map(|value| metric.show(*value));
                    std::iter::once(name.clone()).chain(shown).collect()
                })
                .collect(),
            notes: vec!["x: times the load of the settings".into()],
        };
        let title = format!("{} over the load, one line for each policy", metric.label);
        let marks = lines.iter().map(|(name, values)| {
            let points = self.at.iter().zip(values).map(|(at, value)| (at.load, *value));
            Mark::line(name, points)
        });
        let plot = Plot::new(title, Axis::of("times the load"), Axis::of(metric.label));
        let plot = plot.of_policies().with(marks).if_any();
        Some((table, plot))
    }
}

/// Refuses a reference that is not compared.
///
/// # Errors
/// The name with those that are.
pub(super) fn check_reference(reference: Option<&str>, names: &[&str]) -> Result<(), Error> {
    match reference.filter(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let hint = "Name a policy of this comparison.";
            Err(Error::config("reference", name, names.join(", "), hint))
        }
    }
}
