//! One unit: run its work, and keep the result or the reason why there is none.
//!
//! `units/K/result.json` holds index, hash, value and a hash of the value and nothing else, so a second run of the unit gives
//! the same bytes. A value that was changed afterwards is no result: it is refused where it is gathered, and run again.
//! `units/K/error.json` is there after a failure and goes away with success.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::{ManifestUnit, UnitSpec};
use super::unit_error::UnitError;
use crate::error::{EXIT_AGAIN, EXIT_DONE, Error};
use crate::run_folder::atomic_file::{read_json, write_json};
use crate::run_folder::hash::hash_json;
use crate::run_folder::lock::RunLock;
use crate::run_folder::remove_temporaries;

/// Name of a result in the folder of its unit.
pub(crate) const RESULT_FILE: &str = "result.json";
/// Size of a result, at most; larger artefacts belong in files of their own.
pub(crate) const RESULT_BYTES_MAX: u64 = 16 << 20;
/// Version of a result's layout; 2 came with `value_hash`.
pub const RESULT_SCHEMA: u32 = 2;
/// Length of an error's text, at most, bytes.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// What a unit does: a function of its specification and nothing else.
pub type Work<'a> = dyn Fn(&UnitSpec) -> Result<Value, UnitError> + Sync + 'a;

fn kind_of(error: &UnitError) -> FailureKind {
    match error {
        UnitError::Config(_) => FailureKind::Config,
        UnitError::Temporary(_) => FailureKind::Temporary,
        UnitError::Failed(_) => FailureKind::Failed,
    }
}

/// How a unit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its result was there already.
    Skipped,
    /// Another process is at work on it.
    Busy,
    /// It ran.
    Done,
    /// It failed; the reason is in its error file.
    Failed(UnitError),
}

impl Ending {
    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Ending::Skipped | Ending::Done => EXIT_DONE,
            Ending::Busy => EXIT_AGAIN,
            Ending::Failed(error) => error.exit_code(),
        }
    }
}

/// `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitResult {
    /// Version of the layout, [`RESULT_SCHEMA`].
    pub schema: u32,
    /// Place in the manifest.
    pub index: usize,
    /// Hash of the unit that made it.
    pub hash: String,
    /// Hex SHA-256 of `hash` and `value`, in canonical JSON.
    pub value_hash: String,
    /// What the work returned.
    pub value: Value,
}

/// Kind of a failure as the error file spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Bad configuration.
    Config,
    /// Worth another try.
    Temporary,
    /// Anything else.
    Failed,
}

/// `error.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitFailure {
    /// Version of the layout, 1.
    pub schema: u32,
    /// Place in the manifest.
    pub index: usize,
    /// Hash of the unit that failed.
    pub hash: String,
    /// What kind of failure.
    pub kind: FailureKind,
    /// Why.
    pub message: String,
}

/// The folder of unit `index` below `out`.
#[must_use]
pub(crate) fn unit_folder(out: &Path, index: usize) -> PathBuf {
    out.join("units").join(index.to_string())
}

/// Runs one unit unless its result is there, or another process is at work on it; a panic of the work is a failure of the unit.
///
/// # Errors
/// [`Error::Problem`] where the result or the reason of a failure cannot be written.
pub fn run_unit(spec: &UnitSpec, out: &Path, work: &Work<'_>) -> Result<Ending, Error> {
    let folder = unit_folder(out, spec.index);
    // Held until the result is there: the next holder finds it.
    let _lock = match RunLock::take(&folder) {
        Ok(lock) => lock,
        Err(Error::Temporary(_)) => return Ok(Ending::Busy),
        Err(error) => return Err(error),
    };
    clear_temporaries(&folder)?;
    if matches!(read_result(&folder, spec.index, &spec.hash), ResultState::Done(_)) {
        remove_error(&folder)?;
        return Ok(Ending::Skipped);
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| work(spec)));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(UnitError::Failed(format!("panicked: {text}")))
    });
    match outcome {
        Ok(value) => {
            let result = UnitResult {
                schema: RESULT_SCHEMA,
                index: spec.index,
                hash: spec.hash.clone(),
                value_hash: value_hash(&spec.hash, &value),
                value,
            };
            write_json(&folder.join(RESULT_FILE), &result)?;
            remove_error(&folder)?;
            Ok(Ending::Done)
        }
        Err(error) => {
            let mut message = error.to_string();
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
            let (hash, kind) = (spec.hash.clone(), kind_of(&error));
            let failure = UnitFailure {
                schema: 1,
                index: spec.index,
                hash,
                kind,
                message,
            };
            write_json(&folder.join("error.json"), &failure)?;
            Ok(Ending::Failed(error))
        }
    }
}

/// Removes what writers that were killed left in a folder, if there is one. A writer is at work for the moment of a small file only,
/// so of another process that runs the same unit there is nothing to take away.
pub(super) fn clear_temporaries(folder: &Path) -> Result<(), Error> {
    match remove_temporaries(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("read", folder, error)),
        _ => Ok(()),
    }
}

/// Hash of a value that cannot be that of another unit.
fn value_hash(hash: &str, value: &Value) -> String {
    hash_json(&serde_json::json!({"hash": hash, "value": value}))
}

/// What is in the place of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultState {
    /// The result of this unit.
    Done(Box<UnitResult>),
    /// The result of this unit with another value than it was written with.
    Altered {
        /// Hash that was written.
        written: String,
        /// Hash of what is there.
        found: String,
    },
    /// A result of something else, or no result at all under its name.
    Stale,
    /// Nothing.
    Missing,
}

/// Looks for the result of unit `index` with `hash`. A file that is not that result counts as none.
#[must_use]
pub(crate) fn read_result(folder: &Path, index: usize, hash: &str) -> ResultState {
    let path = folder.join(RESULT_FILE);
    match read_json::<UnitResult>(&path, RESULT_BYTES_MAX) {
        Ok(result) if result.schema == RESULT_SCHEMA && result.index == index && result.hash == hash => {
            let found = value_hash(&result.hash, &result.value);
            if found == result.value_hash {
                return ResultState::Done(Box::new(result));
            }
            let written = result.value_hash;
            ResultState::Altered { written, found }
        }
        Err(error)
            if error
                .system()
                .is_some_and(|said| said.kind() == io::ErrorKind::NotFound) =>
        {
            ResultState::Missing
        }
        _ => ResultState::Stale,
    }
}

/// Why the unit failed last time, if it did and has not changed since.
#[must_use]
pub(crate) fn read_failure(folder: &Path, unit: &ManifestUnit) -> Option<UnitFailure> {
    let failure: UnitFailure = read_json(&folder.join("error.json"), RESULT_BYTES_MAX).ok()?;
    (failure.index == unit.index && failure.hash == unit.hash).then_some(failure)
}

fn remove_error(folder: &Path) -> Result<(), Error> {
    let path = folder.join("error.json");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::manifest::tests::small;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_unit_is_skipped_once_it_is_done_and_its_bytes_do_not_change() {
        let out = tempfile::tempdir().unwrap();
        let spec = small().unit(2).unwrap();
        let calls = AtomicUsize::new(0);
        let work = |spec: &UnitSpec| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(json!({"avg_jct_s": spec.config["load"], "seed": spec.seed}))
        };
        assert_eq!(run_unit(&spec, out.path(), &work).unwrap(), Ending::Done);
        let path = out.path().join("units/2/result.json");
        let bytes = fs::read(&path).unwrap();
        assert_eq!(run_unit(&spec, out.path(), &work).unwrap(), Ending::Skipped);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        fs::remove_file(&path).unwrap();
        run_unit(&spec, out.path(), &work).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn a_unit_with_a_changed_configuration_runs_again() {
        let out = tempfile::tempdir().unwrap();
        let mut spec = small().unit(0).unwrap();
        run_unit(&spec, out.path(), &|_| Ok(json!(1))).unwrap();
        spec.hash = "0".repeat(64);
        assert_eq!(
            run_unit(&spec, out.path(), &|_| Ok(json!(2))).unwrap(),
            Ending::Done
        );
    }

    #[test]
    fn each_failure_has_its_exit_code_and_success_clears_it() {
        let out = tempfile::tempdir().unwrap();
        let manifest = small();
        let spec = manifest.unit(1).unwrap();
        let folder = unit_folder(out.path(), 1);
        for (error, code, kind) in [
            (UnitError::Config("load".into()), 2, FailureKind::Config),
            (UnitError::Temporary("no disk".into()), 75, FailureKind::Temporary),
            (UnitError::Failed("bug".into()), 1, FailureKind::Failed),
        ] {
            let ending = run_unit(&spec, out.path(), &|_| Err(error.clone())).unwrap();
            assert_eq!(ending.exit_code(), code);
            assert_eq!(read_failure(&folder, &manifest.units()[1]).unwrap().kind, kind);
        }
        assert_eq!(
            run_unit(&spec, out.path(), &|_| Ok(json!(1)))
                .unwrap()
                .exit_code(),
            0
        );
        assert_eq!(read_failure(&folder, &manifest.units()[1]), None);
    }

    #[test]
    fn a_crash_while_it_works_or_writes_leaves_no_result() {
        let out = tempfile::tempdir().unwrap();
        let spec = small().unit(0).unwrap();
        let ending = run_unit(&spec, out.path(), &|_| panic!("boom {}", 1)).unwrap();
        assert_eq!(
            ending,
            Ending::Failed(UnitError::Failed("panicked: boom 1".into()))
        );
        // A process killed in mid-write leaves its temporary file; it is never taken for a result.
        let folder = unit_folder(out.path(), 0);
        fs::write(folder.join(".result.json.1.0.tmp"), "{\"schema\": 1, \"ind").unwrap();
        assert_eq!(read_result(&folder, 0, &spec.hash), ResultState::Missing);
        // Nor is half a file under the right name, as a copy that broke off would leave.
        fs::write(folder.join("result.json"), "{\"schema\": 1, \"ind").unwrap();
        assert_eq!(read_result(&folder, 0, &spec.hash), ResultState::Stale);
        assert_eq!(
            run_unit(&spec, out.path(), &|_| Ok(json!(1))).unwrap(),
            Ending::Done
        );
        // And nothing is left of it; the lock stays, as that of a run does.
        let mut names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["lock", "result.json"]);
    }
}
