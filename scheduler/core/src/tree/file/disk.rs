//! Policy files on disk: read up to a bound, written as a whole or not at all.

use std::fs::File;
use std::path::Path;

use crate::problem::files;
use crate::tree::error::TreeError;

/// Largest file that is read, bytes; the largest tree needs a quarter of it.
pub const MAX_BYTES: u64 = 1 << 20;

/// The text of a policy file.
///
/// # Errors
/// What the system refuses, more than [`MAX_BYTES`], what is no UTF-8.
pub(crate) fn read(path: &Path) -> Result<String, TreeError> {
    let read = File::open(path).and_then(|file| files::at_most(file, MAX_BYTES));
    let Some(bytes) = read.map_err(|source| io(path, source))? else {
        return Err(TreeError::TooLarge {
            bytes: MAX_BYTES + 1,
            max: MAX_BYTES,
        });
    };
    String::from_utf8(bytes).map_err(|error| TreeError::Json(error.to_string()))
}

/// Writes a policy file: to a temporary name beside it, synced, then renamed, so that no program ever reads half a policy.
///
/// # Errors
/// [`TreeError::Io`] where the system refuses.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), TreeError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    files::replace(path, Path::new(&name), |file| file.write_all(text.as_bytes()))
        .map_err(|source| io(path, source))
}

fn io(path: &Path, source: std::io::Error) -> TreeError {
    TreeError::Io {
        path: path.display().to_string(),
        source,
    }
}
