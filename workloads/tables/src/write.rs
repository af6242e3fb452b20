//! Writing rows: fields of CSV, columns of Parquet, and files that are whole or not there.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use pleach_problem::files;

use crate::Problem;

/// A column of a Parquet file over rows `R`.
pub struct Column<'a, R> {
    /// Its name.
    pub name: &'static str,
    /// What stands in it.
    pub values: Values<'a, R>,
}

/// What stands in a column, row by row.
pub enum Values<'a, R> {
    /// Text in every row.
    Text(Box<dyn Fn(&'a R) -> Cow<'a, str> + 'a>),
    /// Text that may be missing.
    OptionalText(Box<dyn Fn(&'a R) -> Option<&'a str> + 'a>),
    /// A number in every row.
    Number(Box<dyn Fn(&'a R) -> f64 + 'a>),
    /// A number that may be missing.
    OptionalNumber(Box<dyn Fn(&'a R) -> Option<f64> + 'a>),
    /// A whole number in every row, at most `i32::MAX`; what is above is written as that.
    Count(Box<dyn Fn(&'a R) -> u32 + 'a>),
}

/// Whether a file is written and named as Parquet.
#[must_use]
pub fn is_parquet_name(path: &Path) -> bool {
    has_ending(path, "parquet")
}

/// Whether a file is written and named as gzip.
#[must_use]
pub fn is_gzip_name(path: &Path) -> bool {
    has_ending(path, "gz")
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}

/// A field of CSV.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

/// Writes a file through a temporary neighbour, so that a crash leaves the old one or the new one. A pipe or a device is written to:
/// a rename would put a file in its place.
///
/// # Errors
/// What the system says; nothing is left behind then.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Problem> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    files::replace(path, &path.with_file_name(name), write).map_err(Problem::unwritten(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        // By a link: were it replaced, the link would be a file.
        let folder = tempfile::tempdir().unwrap();
        for (device, is_full) in [("/dev/null", false), ("/dev/full", true)] {
            let path = folder.path().join("device");
            std::os::unix::fs::symlink(device, &path).unwrap();
            let written = replace(&path, |out| out.write_all(b"x"));
            assert_eq!(written.is_err(), is_full, "{device}");
            assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink(), "{device}");
            std::fs::remove_file(&path).unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
