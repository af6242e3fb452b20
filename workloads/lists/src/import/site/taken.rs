//! Rows that are taken from a source, and why others are not.

use pleach_scheduler::cluster_spec::SiteScheduler;
use pleach_tables::Account;

use super::reason::Reason;
use super::row::Row;
use crate::Error;
use crate::NUM_JOBS_MAX;

/// Rows that are taken, and how many were not, by reason.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub rows: Vec<Row>,
    pub account: Account,
    /// Whether a row of an id that was there before can be a further run.
    pub mapping_is_slurm: bool,
    /// The scheduler that the source names.
    pub scheduler: Option<SiteScheduler>,
}

impl Taken {
    pub(super) fn count_row(&mut self) -> Result<(), Error> {
        self.account.rows_read += 1;
        if self.rows.len() < NUM_JOBS_MAX {
            return Ok(());
        }
        let value = format!("more than {NUM_JOBS_MAX}");
        Err(crate::config("jobs", value, "at most 10,000,000", "cut the list"))
    }

    pub(super) fn leave_out(&mut self, reason: impl Into<Reason>) {
        let Reason { rule, cell } = reason.into();
        match cell.as_str() {
            "" => self.account.leave_out(rule, 1),
            cell => self.account.leave_out_for(rule, cell),
        }
    }
}
