//! How far a sweep is: which units are done, which failed and why, and which are left to run.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::index_list::compress;
use super::manifest::Manifest;
use super::rungs::{Place, places};
use super::unit::{FailureKind, ResultState, read_failure, read_result, unit_folder};

/// Failures that are listed one by one; the rest is counted.
const FAILURES_SHOWN_MAX: usize = 10;

/// State of a sweep. Serialises as the file that `status --json` writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Units of the sweep.
    pub num_units: usize,
    /// Units with a result.
    pub done: Vec<usize>,
    /// Units without a result that failed when last tried.
    pub failed: Vec<Failure>,
    /// Units without a result: never tried, broken off, or with a result of another configuration.
    pub missing: Vec<usize>,
    /// Units whose configuration did not come so far: not to be run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pruned: Vec<usize>,
    /// Units of rungs that follow one that is not decided yet: not to be run now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<usize>,
}

/// A failed unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Index.
    pub index: usize,
    /// What kind of failure.
    pub kind: FailureKind,
    /// Why.
    pub message: String,
}

impl Status {
    /// Looks at every unit below `out`.
    #[must_use]
    pub fn of(manifest: &Manifest, out: &Path) -> Status {
        let mut status = Status {
            num_units: manifest.num_units(),
            done: Vec::new(),
            failed: Vec::new(),
            missing: Vec::new(),
            pruned: Vec::new(),
            waiting: Vec::new(),
        };
        let places = places(manifest, out);
        for unit in manifest.units() {
            match places[unit.index] {
                Place::Runs => {}
                Place::Pruned => {
                    status.pruned.push(unit.index);
                    continue;
                }
                Place::Waits => {
                    status.waiting.push(unit.index);
                    continue;
                }
            }
            let folder = unit_folder(out, unit.index);
            if matches!(read_result(&folder, unit.index, &unit.hash), ResultState::Done(_)) {
                status.done.push(unit.index);
            } else if let Some(failure) = read_failure(&folder, unit) {
                status.failed.push(Failure {
                    index: unit.index,
                    kind: failure.kind,
                    message: failure.message,
                });
            } else {
                status.missing.push(unit.index);
            }
        }
        status
    }

    /// Units without a result, failed ones too, sorted: what is to be run next.
    #[must_use]
    pub fn to_run(&self) -> Vec<usize> {
        let mut indexes = self.missing.clone();
        indexes.extend(self.failed.iter().map(|failure| failure.index));
        indexes.sort_unstable();
        indexes
    }

    /// [`Status::to_run`] in array syntax, as `sbatch --array=` takes it.
    #[must_use]
    pub fn array(&self) -> String {
        compress(&self.to_run())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} of {} units done, {} failed, {} missing",
            self.done.len(),
            self.num_units,
            self.failed.len(),
            self.missing.len()
        )?;
        if !self.pruned.is_empty() || !self.waiting.is_empty() {
            let (pruned, waiting) = (self.pruned.len(), self.waiting.len());
            writeln!(out, "{pruned} pruned, {waiting} wait for the rung before theirs")?;
        }
        for failure in self.failed.iter().take(FAILURES_SHOWN_MAX) {
            let line = failure.message.lines().next().unwrap_or_default();
            let line: String = line.chars().filter(|c| !c.is_control()).take(160).collect();
            writeln!(out, "  unit {}: {line}", failure.index)?;
        }
        if self.failed.len() > FAILURES_SHOWN_MAX {
            writeln!(out, "  and {} more", self.failed.len() - FAILURES_SHOWN_MAX)?;
        }
        if !self.to_run().is_empty() {
            writeln!(out, "to run: {}", self.array())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::UnitError;
    use crate::sweep::manifest::tests::small;
    use crate::sweep::unit::run_unit;
    use serde_json::json;

    #[test]
    fn status_tells_done_failed_and_missing_apart_and_compresses_ranges() {
        let out = tempfile::tempdir().unwrap();
        let manifest = small();
        for index in [1, 3] {
            run_unit(&manifest.unit(index).unwrap(), out.path(), &|_| Ok(json!(1))).unwrap();
        }
        let failing = |_: &_| Err(UnitError::Config("load = 9:\nbad".into()));
        run_unit(&manifest.unit(5).unwrap(), out.path(), &failing).unwrap();
        let status = Status::of(&manifest, out.path());
        assert_eq!(
            (status.done.as_slice(), status.missing.as_slice()),
            ([1, 3].as_slice(), [0, 2, 4].as_slice())
        );
        assert_eq!(status.array(), "0,2,4-5");
        let text = status.to_string();
        assert!(
            text.starts_with("2 of 6 units done, 1 failed, 3 missing\n  unit 5: load = 9:\n"),
            "{text}"
        );
        assert!(text.ends_with("to run: 0,2,4-5\n"));
    }

    #[test]
    fn a_complete_sweep_has_nothing_to_run() {
        let out = tempfile::tempdir().unwrap();
        let manifest = small();
        for index in 0..6 {
            run_unit(&manifest.unit(index).unwrap(), out.path(), &|_| Ok(json!(1))).unwrap();
        }
        let status = Status::of(&manifest, out.path());
        assert!(status.to_string().starts_with("6 of 6 units done"));
        assert_eq!(status.array(), "");
    }
}
