//! One process at a time in a run's folder.
//!
//! Two trainings in one folder would overwrite each other's checkpoints and cut each other's logs. The file `lock` in the
//! folder is locked by whoever works there; the system lets go of it when the process ends, however it ends, so nothing has to
//! be cleared away after a `kill -9`. The file itself stays: to remove it while another process waits for it would let two in.
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
    _file: File,
}

impl RunLock {
    /// Takes the folder, and makes it if it is not there.
    ///
    /// # Errors
    /// [`Error::Temporary`] where another process works in it, or one that was killed has not quite ended; [`Error::Io`].
    pub fn take(folder: &Path) -> Result<RunLock, Error> {
        fs::create_dir_all(folder).map_err(|source| Error::io("make folder", folder, source))?;
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|source| Error::io("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(RunLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Temporary(format!(
                "out = {}: allowed is a folder in which no other process runs. Wait until that one has ended, or give \
                 another --out.",
                folder.display()
            ))),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                Ok(RunLock { _file: file })
            }
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
