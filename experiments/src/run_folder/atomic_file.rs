//! Files that exist whole or not at all.
//!
//! Every artefact is written to a temporary name beside its place, synced to the disk, and renamed. A run that is killed at
//! any instant leaves either the old file or the new one, and a reader never sees half of one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pleach_scheduler::Problem;
use pleach_scheduler::problem::files;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// End of the name of every temporary file.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// Keeps two writers of one process apart; the process id keeps two processes apart.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// A name that only our temporary files have: `.NAME.PROCESS.NUMBER.tmp`.
#[must_use]
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let inner = name
        .to_str()
        .and_then(|name| name.strip_prefix('.')?.strip_suffix(TEMPORARY_SUFFIX));
    let mut parts = inner.unwrap_or_default().rsplit('.');
    let mut number = || parts.next().is_some_and(|part| part.parse::<u64>().is_ok());
    number() && number() && parts.next().is_some()
}

/// Writes `path` through `fill`; makes the folders above it.
///
/// # Errors
/// [`Error::Problem`] where the disk or `fill` refuses. Then `path` is as it was before.
pub fn write_with(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(|source| Error::io("make folder", folder, source))?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .ok_or_else(|| {
            Error::io(
                "write",
                path,
                io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"),
            )
        })?;
    let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(
        ".{name}.{}.{number}{TEMPORARY_SUFFIX}",
        std::process::id()
    ));
    files::replace(path, &temporary, fill).map_err(|source| Error::io("write", path, source))
}

/// Writes `bytes` to `path`.
///
/// # Errors
/// As [`write_with`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_with(path, |writer| writer.write_all(bytes))
}

/// Writes `value` as indented JSON with a newline at the end.
///
/// # Errors
/// As [`write_with`], and [`Error::Failed`] where `value` has no JSON form.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Failed(format!("{} cannot be written as JSON: {error}", path.display())))?;
    text.push('\n');
    write(path, text.as_bytes())
}

/// Writes `value` as JSON on one line, for large states that are not meant for readers.
///
/// # Errors
/// As [`write_json`].
pub fn write_compact_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::Failed(format!("{} has no JSON form: {error}", path.display())))?;
    write(path, text.as_bytes())
}

/// Reads a file of at most `max_bytes`.
///
/// # Errors
/// [`Error::Problem`] where it cannot be read, [`Error::Problem`] where it is larger or not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String, Error> {
    let read = File::open(path).and_then(|file| files::at_most(file, max_bytes));
    let Some(bytes) = read.map_err(|source| Error::io("read", path, source))? else {
        return Err(Error::data(
            path,
            format!("larger than the limit of {max_bytes} bytes"),
        ));
    };
    String::from_utf8(bytes).map_err(|_| Error::data(path, "not UTF-8 text"))
}

/// Reads a JSON file of at most `max_bytes`.
///
/// # Errors
/// As [`read_text`], and [`Error::Problem`] with line and column where it does not parse.
pub fn read_json<T: DeserializeOwned>(path: &Path, max_bytes: u64) -> Result<T, Error> {
    let text = read_text(path, max_bytes)?;
    serde_json::from_str(&text).map_err(|error| Problem::json(path, error).into())
}

/// Reads TOML of at most `bytes_max` bytes.
///
/// # Errors
/// As [`read_text`], and [`Error::Problem`] with the place where the content has another form, or a key whose number is not finite.
pub fn read_toml<T: DeserializeOwned>(path: &Path, bytes_max: u64) -> Result<T, Error> {
    let refused = |message: String| Error::data(path, message);
    let text = read_text(path, bytes_max)?;
    let table = toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
    finite(&table).map_err(refused)?;
    toml::from_str(&text).map_err(|error| refused(error.to_string()))
}

/// Refuses `nan` and `inf`, which TOML has and JSON has not: there they would read as *not given*.
///
/// # Errors
/// The first key with such a number, in words.
pub fn finite(table: &toml::Table) -> Result<(), String> {
    table
        .iter()
        .try_for_each(|(name, value)| check_finite(name, value))
}

fn check_finite(key: &str, value: &toml::Value) -> Result<(), String> {
    match value {
        toml::Value::Float(number) if !number.is_finite() => Err(format!(
            "{key} = {value}: allowed are finite numbers. Give one, or leave the key out"
        )),
        toml::Value::Array(list) => {
            let mut places = list.iter().enumerate();
            places.try_for_each(|(place, value)| check_finite(&format!("{key}[{place}]"), value))
        }
        toml::Value::Table(table) => table
            .iter()
            .try_for_each(|(name, value)| check_finite(&format!("{key}.{name}"), value)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        let full = Path::new("/dev/full");
        assert!(write(full, b"x").is_err_and(|error| error.system().is_some()));
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_write_that_fails_halfway_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, b"old").unwrap();
        let result = write_with(&path, |writer| {
            writer.write_all(b"half of the new")?;
            writer.flush()?;
            Err(io::Error::other("disk full"))
        });
        assert!(result.is_err_and(|error| error.system().is_some()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn a_writer_that_panics_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            write_with(&path, |writer| {
                writer.write_all(b"half")?;
                panic!("killed")
            })
        }));
        assert!(outcome.is_err());
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn folders_above_are_made_and_json_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/a.json");
        write_json(&path, &vec![1.5, 2.0]).unwrap();
        let back: Vec<f64> = read_json(&path, 1000).unwrap();
        assert_eq!(back, [1.5, 2.0]);
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused_with_their_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        for (text, key) in [
            ("a = nan", "a = nan"),
            ("[a]\nb = [1.0, -inf]", "a.b[1] = -inf"),
            ("[[a]]\nb.c = inf", "a[0].b.c = inf"),
        ] {
            write(&path, text.as_bytes()).unwrap();
            let error = read_toml::<serde_json::Value>(&path, 100).unwrap_err();
            assert!(
                error.to_string().starts_with("data: ") && error.to_string().contains(key),
                "{error}"
            );
        }
        write(&path, b"a = 1.0").unwrap();
        assert_eq!(read_toml::<serde_json::Value>(&path, 100).unwrap()["a"], 1.0);
    }

    #[test]
    fn a_file_over_the_limit_or_broken_json_is_refused_with_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, b"[1,\n2,,").unwrap();
        assert!(
            read_json::<Vec<u8>>(&path, 3)
                .unwrap_err()
                .to_string()
                .contains("limit of 3 bytes")
        );
        let said = read_json::<Vec<u8>>(&path, 100).unwrap_err().to_string();
        assert!(said.contains(", line 2, column 3: "), "{said}");
    }
}
