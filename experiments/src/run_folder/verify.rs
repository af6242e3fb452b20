//! Whether a finished run still is what it listed: sizes and hashes of `artefacts.json` against the files.
//!
//! A file that is not there is no lie, and neither is a checkpoint that says of itself that it is damaged: both are noticed
//! where they are needed, and made again where they can be. A file that is whole and another one is refused.

use std::fs::File;
use std::io;
use std::path::Path;

use pleach_network::TrainedNetwork;

use super::atomic_file;
use super::description::Artefact;
use super::hash::hash_reader;
use super::names::{ARTEFACTS_FILE, DESCRIPTION_BYTES_MAX, is_inside};
use crate::error::Error;

/// How the name of a checkpoint ends.
const CHECKPOINT_EXTENSION: &str = "ckpt";

/// Checks the files of these names in a run's folder, or all that are listed if there are none. A run that is not finished
/// has no list and passes.
///
/// # Errors
/// [`Error::Contract`] for the first file with other bytes than were listed: both hashes, and how to mend it.
pub(crate) fn verify(folder: &Path, only: &[&str], hint: &str) -> Result<(), Error> {
    let list = folder.join(ARTEFACTS_FILE);
    if !list.is_file() {
        return Ok(());
    }
    let artefacts: Vec<Artefact> = atomic_file::read_json(&list, DESCRIPTION_BYTES_MAX)?;
    let is_asked = |artefact: &&Artefact| only.is_empty() || only.contains(&artefact.file.as_str());
    for artefact in artefacts.iter().filter(is_asked) {
        check(folder, artefact, hint)?;
    }
    Ok(())
}

fn check(folder: &Path, artefact: &Artefact, hint: &str) -> Result<(), Error> {
    if !is_inside(&artefact.file) {
        let list = folder.join(ARTEFACTS_FILE);
        let message = format!("it lists {:?}, which is not in the run's folder", artefact.file);
        return Err(Error::data(&list, message));
    }
    let path = folder.join(&artefact.file);
    let failed = |source| Error::io("read", &path, source);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    let size_bytes = file.metadata().map_err(failed)?.len();
    // A file of another size is another one; it is not read beyond what was listed.
    let (_, sha256) = hash_reader(file, artefact.size_bytes).map_err(failed)?;
    if (size_bytes, &sha256) == (artefact.size_bytes, &artefact.sha256) {
        return Ok(());
    }
    let is_checkpoint = path
        .extension()
        .is_some_and(|extension| extension == CHECKPOINT_EXTENSION);
    // It reads the network part of checkpoints, too, and notices damage of the rest.
    if is_checkpoint && TrainedNetwork::load(&path).is_err() {
        return Ok(());
    }
    let found = if size_bytes == artefact.size_bytes {
        format!("SHA-256 {sha256}")
    } else {
        format!(
            "{size_bytes} bytes, the first {} of SHA-256 {sha256}",
            artefact.size_bytes
        )
    };
    Err(Error::Contract {
        what: format!("{}, by {ARTEFACTS_FILE} beside it", path.display()),
        expected: format!("{} bytes of SHA-256 {}", artefact.size_bytes, artefact.sha256),
        found,
        hint: format!("It was changed after the run had finished. {hint}"),
    })
}
