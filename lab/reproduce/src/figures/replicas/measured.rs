//! Rows that are read, and errors of the law by group.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::quantile;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::run_folder::atomic_file::read_text;

use super::rows::{Held, Row};
use crate::figures::figure::show;

/// Where the rows lie in a folder of published data.
const ROWS: &str = "measured/serving.csv";
/// Bytes of them at most.
const ROWS_BYTES_MAX: u64 = 64 << 20;
/// Some rows, each with its source.
const SAMPLE: &str = include_str!("../replicas.csv");

/// Rows, those that the law can be held to, and how many are left out, by reason.
pub(super) struct Measured {
    pub rows: Vec<Row>,
    pub held: Vec<Held>,
    left_out: BTreeMap<&'static str, usize>,
}

impl Measured {
    /// Of a folder, or those that the program has.
    pub fn read(folder: Option<&Path>) -> Result<Measured, Error> {
        let path = folder.map_or_else(|| PathBuf::from("replicas.csv"), |folder| folder.join(ROWS));
        let wrong = |error: csv::Error| Error::data(&path, error.to_string());
        let text = match folder {
            Some(_) => read_text(&path, ROWS_BYTES_MAX)?,
            None => SAMPLE.to_string(),
        };
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<Row> = reader.deserialize().collect::<Result<_, _>>().map_err(wrong)?;
        let (mut held, mut left_out) = (Vec::new(), BTreeMap::new());
        for (place, row) in rows.iter().enumerate() {
            match row.held(place) {
                Ok(one) => held.push(one),
                Err(why) => *left_out.entry(why).or_default() += 1,
            }
        }
        let measured = Measured { rows, held, left_out };
        for half in ["judge", "calibrate"] {
            if measured.half(half).is_empty() {
                let hint = "Without --data the program takes rows of its own.";
                return Err(Error::config(
                    "data",
                    "no such row",
                    format!("rows to {half} by"),
                    hint,
                ));
            }
        }
        Ok(measured)
    }

    /// Rows marked to judge by or to fit by.
    pub fn half(&self, half: &str) -> Vec<&Held> {
        let held = self.held.iter();
        held.filter(|held| self.rows[held.row].half == half).collect()
    }

    /// Groups of a row.
    pub fn groups(&self, held: &Held) -> [String; 9] {
        let row = &self.rows[held.row];
        let part = if held.is_mixture() {
            "mixtures of experts"
        } else {
            "dense"
        };
        let copies = if held.server.num_copies > 1 {
            "copies of attention"
        } else {
            "split attention"
        };
        [
            "all".into(),
            part.into(),
            copies.into(),
            held.kind.name().into(),
            format!("GPU {}", row.gpu),
            format!("model {}", row.model),
            format!("engine {}", held.server.engine.name),
            format!("precision {}", row.precision),
            format!("source {}", source(row)),
        ]
    }

    pub fn table_left_out(&self) -> (String, Table) {
        let left = self.left_out.iter();
        let left = left.map(|(why, num)| vec![(*why).to_string(), num.to_string()]);
        ("Rows left out".into(), table(&["why", "rows"], left.collect()))
    }
}

/// The publisher of a row.
pub(super) fn source(row: &Row) -> &str {
    row.source.split([':', ' ', '@']).next().unwrap_or_default()
}

pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        header: header.iter().map(ToString::to_string).collect(),
        rows,
        notes: Vec::new(),
    }
}

/// Errors in %, sorted.
#[derive(Default)]
pub(super) struct Errors(Vec<f64>);

impl Errors {
    pub fn add(&mut self, error: f64) {
        let error = 100.0 * error.abs();
        let place = self.0.partition_point(|other| *other < error);
        self.0.insert(place, error);
    }

    pub fn part(&self, part: f64) -> f64 {
        quantile(&self.0, part).unwrap_or_default()
    }

    /// Rows, median and 90th percentile.
    pub fn cells(&self) -> [String; 3] {
        if self.0.is_empty() {
            return ["0".into(), "-".into(), "-".into()];
        }
        [
            self.0.len().to_string(),
            show(self.part(0.5)),
            show(self.part(0.9)),
        ]
    }
}
