//! A run that is trained further than it was begun for: `pleach train --extend`.
//!
//! A run's length stands in its settings, in every checkpoint and in the first line of its log. All are brought to the new one
//! before the run goes on; a run that is killed meanwhile is brought there by its next start. Where nothing in the settings
//! goes by parts of the whole length, the end is then bit-equal to that of a run that had it from the beginning.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use pleach_agents::Checkpoint;
use pleach_agents::learner::way;
use pleach_network::TrainedNetwork;
use serde_json::Value;

use super::settings::TrainSettings;
use super::trained::CHECKPOINTS;
use crate::door::BEST_CHECKPOINT;
use crate::error::Error;
use crate::run_folder::atomic_file;

/// The log whose first line holds the settings, and the key of the length there.
const LOG: &str = "metrics.jsonl";
const LENGTH_KEY: &str = "hparams/train.num_updates";
/// Longest first line, bytes; settings take a few thousand.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Brings what is in a run's folder to a length of so many updates; nothing where it has that already.
///
/// # Errors
/// A file that cannot be written. Files that cannot be read are skipped: the command that needs one reports it.
pub(super) fn adopt_length(folder: &Path, num_updates: u64) -> Result<(), Error> {
    for (_, file) in Checkpoint::numbered_in(&folder.join(CHECKPOINTS))? {
        let Ok(mut checkpoint) = Checkpoint::load(&file) else {
            continue;
        };
        if checkpoint.config.num_updates != num_updates {
            checkpoint.config.num_updates = num_updates;
            checkpoint.save(&file)?;
        }
    }
    adopt_length_in_network(&folder.join(BEST_CHECKPOINT), num_updates)?;
    adopt_length_in_log(&folder.join(LOG), num_updates)
}

fn adopt_length_in_network(path: &Path, num_updates: u64) -> Result<(), Error> {
    let Ok(mut network) = TrainedNetwork::load(path) else {
        return Ok(());
    };
    let provenance = &mut network.provenance;
    if provenance.num_updates != num_updates {
        provenance.num_updates = num_updates;
        if let Some(length) = provenance.settings.get_mut("num_updates") {
            *length = num_updates.into();
        }
        network.save(path)?;
    }
    Ok(())
}

fn adopt_length_in_log(path: &Path, num_updates: u64) -> Result<(), Error> {
    let failed = |source| Error::io("read", path, source);
    // A pipe in its place is for others to read.
    if !path.is_file() {
        return Ok(());
    }
    let mut rest = BufReader::new(File::open(path).map_err(failed)?);
    let mut first = Vec::new();
    let mut line = rest.by_ref().take(LINE_BYTES_MAX);
    line.read_until(b'\n', &mut first).map_err(failed)?;
    let Ok(mut settings) = serde_json::from_slice::<Value>(&first) else {
        return Ok(());
    };
    let Some(length) = settings.get_mut(LENGTH_KEY) else {
        return Ok(());
    };
    if *length == num_updates {
        return Ok(());
    }
    *length = num_updates.into();
    atomic_file::write_with(path, |writer| {
        writeln!(writer, "{settings}")?;
        std::io::copy(&mut rest, writer).map(drop)
    })
}

/// In what a run of `settings` that ended after `before` updates and was extended to their length differs from one that had
/// it from the beginning; nothing where they are bit-equal.
#[must_use]
pub fn differences_from_whole(settings: &TrainSettings, before: u64) -> Vec<String> {
    let train = &settings.train;
    let mut differences = Vec::new();
    if before == 0 {
        return differences;
    }
    let mut falls = |key: &str, first: f64, last: f64| {
        if first != last {
            differences.push(format!(
                "{key} goes from {first} to {last} over all updates: it had come to {last} and goes on from in between"
            ));
        }
    };
    for (key, first, last) in way(train.learner).annealed(train) {
        falls(key, first, last);
    }
    if !settings.curriculum.is_default() {
        differences
            .push("the stages of curriculum are parts of all updates: they are gone through again".into());
    }
    if !before.is_multiple_of(train.restart_every) {
        let every = train.restart_every;
        differences.push(format!(
            "train.restart_every = {every}: new episodes begin after update {before}"
        ));
    }
    if settings.validate_every == 0 || !before.is_multiple_of(settings.validate_every) {
        differences.push(format!("it was validated after update {before}, too"));
    }
    differences
}
