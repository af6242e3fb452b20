//! Whether a finished run still is what it listed: sizes and hashes of `artefacts.json` against the files.
//!
//! A file that is not there is no lie, and neither is a checkpoint that says of itself that it is damaged: both are noticed
//! where they are needed, and made again where they can be. A file that is whole and another one is refused.

use pleach_scheduler::Problem;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use pleach_network::TrainedNetwork;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Names, sizes and hashes of all files of a finished run; written last.
pub const ARTEFACTS_FILE: &str = "artefacts.json";
/// Largest size of such a list, bytes.
const LIST_BYTES_MAX: u64 = 16 << 20;
/// How the name of a checkpoint ends.
const CHECKPOINT_EXTENSION: &str = "ckpt";
/// Bytes that are hashed at once.
const PART_BYTES: usize = 1 << 16;

/// One line of `artefacts.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artefact {
    /// Path inside the run's folder, with `/`.
    pub file: String,
    /// Size.
    pub size_bytes: u64,
    /// Hex SHA-256 of its bytes.
    pub sha256: String,
}

/// Whether a name leads to a place inside the folder that it is joined to.
#[must_use]
pub fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Size and hex SHA-256 of the first `num_bytes` of a reader, or of all where there are fewer.
///
/// # Errors
/// What the reader gives.
pub fn hash_reader(reader: impl Read, num_bytes: u64) -> io::Result<(u64, String)> {
    let (mut digest, mut reader) = (Sha256::new(), reader.take(num_bytes));
    let (mut part, mut size_bytes) = (vec![0; PART_BYTES], 0);
    loop {
        match reader.read(&mut part)? {
            0 => {
                let digest: [u8; 32] = digest.finalize().into();
                let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                return Ok((size_bytes, hex));
            }
            length => {
                digest.update(&part[..length]);
                size_bytes += length as u64;
            }
        }
    }
}

/// Checks the files of these names in a run's folder, or all that are listed if there are none. A run that is not finished
/// has no list and passes.
///
/// # Errors
/// [`Problem`] for the first file with other bytes than were listed: both hashes, and how to mend it.
pub fn verify(folder: &Path, only: &[&str], hint: &str) -> Result<(), Problem> {
    let list = folder.join(ARTEFACTS_FILE);
    if !list.is_file() {
        return Ok(());
    }
    let artefacts = read(&list)?;
    let is_asked = |artefact: &&Artefact| only.is_empty() || only.contains(&artefact.file.as_str());
    for artefact in artefacts.iter().filter(is_asked) {
        check(folder, artefact, hint)?;
    }
    Ok(())
}

fn read(list: &Path) -> Result<Vec<Artefact>, Problem> {
    let (mut text, file) = (String::new(), File::open(list).map_err(Problem::unread(list))?);
    let read = file.take(LIST_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(Problem::unread(list))?;
    if text.len() as u64 > LIST_BYTES_MAX {
        return Err(Problem::data(list, format!("more than {LIST_BYTES_MAX} bytes")));
    }
    serde_json::from_str(&text).map_err(|error| Problem::data(list, error.to_string()))
}

fn check(folder: &Path, artefact: &Artefact, hint: &str) -> Result<(), Problem> {
    if !is_inside(&artefact.file) {
        let list = folder.join(ARTEFACTS_FILE);
        let message = format!("it lists {:?}, which is not in the run's folder", artefact.file);
        return Err(Problem::data(&list, message));
    }
    let path = folder.join(&artefact.file);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(Problem::unread(&path))?,
    };
    let size_bytes = file.metadata().map_err(Problem::unread(&path))?.len();
    // A file of another size is another one; it is not read beyond what was listed.
    let (_, sha256) = hash_reader(file, artefact.size_bytes).map_err(Problem::unread(&path))?;
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
    Err(Problem::contract(
        format!("{}, by {ARTEFACTS_FILE} beside it", path.display()),
        format!("{} bytes of SHA-256 {}", artefact.size_bytes, artefact.sha256),
        found,
        format!("It was changed after the run had finished. {hint}"),
    ))
}
