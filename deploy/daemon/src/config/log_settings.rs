//! How much of the decision log a daemon keeps, and the check of ranges that all settings use.

use pleach_scheduler::Problem;

/// How much of the decision log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Most bytes of all its files, at least 65,536: `log_bytes_max`.
    pub bytes_max: u64,
    /// Days, 1 to 3660: `log_days`.
    pub days: u32,
}

impl Default for LogSettings {
    /// Two weeks, in at most 4 GiB: *ours*, twice what 5,000 nodes and 20,000 jobs need (docs/deploy-slurm.md).
    fn default() -> LogSettings {
        LogSettings {
            bytes_max: 4 << 30,
            days: 14,
        }
    }
}

impl LogSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        in_ranges(&[
            ("log_bytes_max", self.bytes_max as f64, 65_536.0, 1e15),
            ("log_days", f64::from(self.days), 1.0, 3660.0),
        ])
    }
}

/// What stands behind a value out of its range.
pub(super) const DEFAULT_HINT: &str = "leave it out for the default";

/// Checks values by key, value, least and most.
///
/// # Errors
/// The first value out of its range.
pub fn in_ranges(ranges: &[(&str, f64, f64, f64)]) -> Result<(), Problem> {
    for (key, value, least, most) in ranges {
        if !(least..=most).contains(&value) {
            return Err(Problem::new(
                *key,
                value,
                format!("{least} to {most}"),
                DEFAULT_HINT,
            ));
        }
    }
    Ok(())
}
