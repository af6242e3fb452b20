//! What an import did: rows in, jobs out, and every rule that changed or excluded a row.

use std::fmt;

use pleach_tables::Account;
use serde::{Deserialize, Serialize};

use super::Format;

/// The account of an import; rows kept = jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Format of the list.
    pub format: Format,
    /// Rows read, kept and left out, by reason.
    #[serde(flatten)]
    pub account: Account,
    /// Jobs in the workload.
    pub jobs: u64,
    /// Time on the list's own clock that became 0, s.
    pub origin_s: f64,
    /// Work of the jobs on the reference GPU type, GPU x h.
    pub gpu_hours: f64,
    /// Work over capacity between the first and the last submission; absent where all jobs come at once.
    pub offered_load: Option<f64>,
    /// Choices that the list does not settle, such as the size of the cluster, with their source.
    pub notes: Vec<String>,
}

impl ImportReport {
    pub(crate) fn new(format: Format, account: Account) -> ImportReport {
        ImportReport {
            format,
            account,
            jobs: 0,
            origin_s: 0.0,
            gpu_hours: 0.0,
            offered_load: None,
            notes: Vec::new(),
        }
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, sums) = (self.format.word(), self.account.sums("rows"));
        write!(out, "{word} list: {sums}; {:.0} GPU h", self.gpu_hours)?;
        match self.offered_load {
            Some(load) => writeln!(out, "; offered load {load:.3}; time 0 is {} s", self.origin_s)?,
            None => writeln!(out, "; time 0 is {} s", self.origin_s)?,
        }
        for line in self.account.lines("rows") {
            writeln!(out, "  {line}")?;
        }
        for note in &self.notes {
            writeln!(out, "  note: {note}")?;
        }
        Ok(())
    }
}
