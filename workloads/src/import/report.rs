//! What an import did: rows in, jobs out, and every rule that changed or excluded a row.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Format;

/// A rule that was applied to some rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// What was wrong and what was done.
    pub rule: String,
    /// Rows it was applied to; of mended rows, those that became jobs.
    pub rows: u64,
    /// Whether the rows were left out rather than mended.
    pub excluded: bool,
}

/// The account of an import; rows read = jobs + rows of the excluding rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Format of the list.
    pub format: Format,
    /// Rows in the file, without the header.
    pub rows_read: u64,
    /// Jobs in the workload.
    pub jobs: u64,
    /// Time on the list's own clock that became 0, s.
    pub origin_s: f64,
    /// Work of the jobs on the reference GPU type, GPU x h.
    pub gpu_hours: f64,
    /// Work over capacity between the first and the last submission; absent where all jobs come at once.
    pub offered_load: Option<f64>,
    /// Rules that were applied: those that left rows out, then those that mended some that stayed; in the order in which
    /// they first were.
    pub repairs: Vec<Repair>,
    /// Choices that the list does not settle, such as the size of the cluster, with their source.
    pub notes: Vec<String>,
}

impl ImportReport {
    pub(crate) fn new(format: Format) -> ImportReport {
        ImportReport {
            format,
            rows_read: 0,
            jobs: 0,
            origin_s: 0.0,
            gpu_hours: 0.0,
            offered_load: None,
            repairs: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Rows left out by any rule.
    #[must_use]
    pub(crate) fn rows_excluded(&self) -> u64 {
        self.repairs
            .iter()
            .filter(|repair| repair.excluded)
            .map(|repair| repair.rows)
            .sum()
    }

    /// Rows that the rule starting with `start` was applied to; 0 where it was not.
    #[must_use]
    pub fn rows_of(&self, start: &str) -> u64 {
        self.repairs
            .iter()
            .filter(|repair| repair.rule.starts_with(start))
            .map(|repair| repair.rows)
            .sum()
    }

    pub(crate) fn mend(&mut self, rule: &str, rows: u64) {
        count(&mut self.repairs, rule, rows, false);
    }

    pub(crate) fn exclude(&mut self, rule: &str, rows: u64) {
        count(&mut self.repairs, rule, rows, true);
    }
}

/// Adds to a rule's count; no entry for no rows.
pub(crate) fn count(repairs: &mut Vec<Repair>, rule: &str, rows: u64, excluded: bool) {
    if rows == 0 {
        return;
    }
    match repairs
        .iter_mut()
        .find(|known| known.rule == rule && known.excluded == excluded)
    {
        Some(known) => known.rows += rows,
        None => repairs.push(Repair {
            rule: rule.into(),
            rows,
            excluded,
        }),
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} list: {} rows read, {} jobs, {} rows excluded; {:.0} GPU h",
            self.format.word(),
            self.rows_read,
            self.jobs,
            self.rows_excluded(),
            self.gpu_hours
        )?;
        match self.offered_load {
            Some(load) => writeln!(out, "; offered load {load:.3}; time 0 is {} s", self.origin_s)?,
            None => writeln!(out, "; time 0 is {} s", self.origin_s)?,
        }
        for repair in &self.repairs {
            let verb = if repair.excluded { "excluded" } else { "mended" };
            writeln!(out, "  {verb}: {}: {} rows", repair.rule, repair.rows)?;
        }
        for note in &self.notes {
            writeln!(out, "  note: {note}")?;
        }
        Ok(())
    }
}
