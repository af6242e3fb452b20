//! Published steps of trainings: rows that levels are fitted to, and rows that judge the law.
//!
//! # Source
//! Each row names its own. A row is fitted to or judges by its `half`; one without, by the parity of the CRC-32 of its fields
//! with `|` between them: even fits. Both were settled before anything was fitted.

use std::collections::BTreeMap;

use super::row::{Fields, Published, read_row};

/// Some rows of each GPU type, each with its source.
pub(super) const SAMPLE: &str = include_str!("../plans.csv");

/// Rows that the law says something of, and how many are left out for which reason.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// What is left.
    pub rows: Vec<Published>,
    /// Rows by why they are left out.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl Rows {
    /// Adds the rows of a table with a header.
    ///
    /// # Errors
    /// A text that is no such table.
    pub fn add(&mut self, text: &str) -> Result<(), csv::Error> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers()?.clone();
        for record in reader.records() {
            let record = record?;
            match read_row(&Fields::new(&header, &record)) {
                Ok(row) => self.rows.push(row),
                Err(why) => *self.left_out.entry(why).or_default() += 1,
            }
        }
        Ok(())
    }
}
