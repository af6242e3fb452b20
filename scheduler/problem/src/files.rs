//! Reads that end at a bound, and files that exist whole or not at all: once for all crates.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// What is read, if it is no longer than `most` bytes; none else. What the system says of the size of a pipe or a device is not
/// believed.
///
/// # Errors
/// What the system says.
pub fn at_most(from: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // One byte more than allowed, so that a file of exactly the bound differs from a larger one.
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Removes the temporary file unless the write came to its end, also when the writer panics.
struct Temporary<'a>(Option<&'a Path>);

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // The cause is the first error; that the remains cannot be removed either adds nothing.
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes `path` through `fill` under the name `temporary` in the same folder, syncs it and renames it: whatever happens, there is
/// the old file or the new one. A pipe or a device is written to, for a rename would put a file in its place.
///
/// # Errors
/// What the system or `fill` says; nothing is left behind then.
pub fn replace(
    path: &Path,
    temporary: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        fill(&mut out)?;
        return out.flush();
    }
    let mut out = BufWriter::new(File::create(temporary)?);
    let mut unfinished = Temporary(Some(temporary));
    fill(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    drop(file);
    fs::rename(temporary, path)?;
    unfinished.0 = None;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Makes the rename durable where folders can be synced; it is atomic all the same.
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        let _ = folder.sync_all();
    }
    Ok(())
}
