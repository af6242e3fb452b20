//! One process at a time in a run's folder.
//!
//! Two trainings in one folder would overwrite each other's checkpoints and cut each other's logs. A process that works in the
//! folder locks the file `lock` there. The system lets go of it when the process ends, however it ends, so nothing has to be
//! cleared away after a `kill -9`. A run that came to nothing removes the file; a process that has opened this file opens a new
//! one.
//!
//! Where the file system knows no locks, there is none.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use crate::error::Error;

/// Name of the file that is locked.
pub(crate) const LOCK_FILE: &str = "lock";

/// The folder is ours for as long as this lives.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Takes the folder, and makes it if it is not there.
    ///
    /// # Errors
    /// [`Error::Temporary`] where another process works in it, or one that was killed has not quite ended; [`Error::Problem`].
    pub fn take(folder: &Path) -> Result<RunLock, Error> {
        /// Processes that come to nothing while this one comes: more are no accident.
        const TRIES: usize = 16;
        for _ in 1..TRIES {
            let lock = RunLock::take_once(folder)?;
            if lock.is_there(folder) {
                return Ok(lock);
            }
        }
        RunLock::take_once(folder)
    }

    /// Whether the file that is locked is still the one that others find.
    #[cfg(unix)]
    fn is_there(&self, folder: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;

        let of = |found: std::io::Result<fs::Metadata>| found.map(|file| (file.dev(), file.ino())).ok();
        of(self.file.metadata()) == of(fs::metadata(folder.join(LOCK_FILE)))
    }

    #[cfg(not(unix))]
    fn is_there(&self, folder: &Path) -> bool {
        folder.join(LOCK_FILE).exists()
    }

    fn take_once(folder: &Path) -> Result<RunLock, Error> {
        fs::create_dir_all(folder).map_err(|source| Error::io("make folder", folder, source))?;
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|source| Error::io("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(RunLock { file }),
            Err(TryLockError::WouldBlock) => Err(Error::Temporary(format!(
                "out = {}: allowed is a folder in which no other process runs. Wait until that one has ended, or give \
                 another --out.",
                folder.display()
            ))),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(RunLock { file }),
            Err(TryLockError::Error(source)) => Err(Error::io("lock", &path, source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::EXIT_AGAIN;

    #[test]
    fn a_folder_is_one_holders_until_it_lets_go() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("new/run");
        let first = RunLock::take(&folder).unwrap();
        let refused = RunLock::take(&folder).unwrap_err();
        assert_eq!(refused.exit_code(), EXIT_AGAIN);
        let said = refused.to_string();
        assert!(
            said.contains("no other process") && said.contains("new/run"),
            "{said}"
        );
        assert!(!said.contains('\n'));
        drop(first);
        RunLock::take(&folder).unwrap();
        assert_eq!(fs::read(folder.join(LOCK_FILE)).unwrap(), b"");
    }
}
