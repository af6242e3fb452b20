//! The rounds of a log that decided about one job, looked for from the newest file back.

use std::path::Path;

use pleach_scheduler::ExternalId;

use super::segments::{self, Segment};
use crate::error::Error;
use crate::files;
use crate::record::{DecidedRound, LINE_MAX};

/// The last rounds of a log that decided about a job, newest last, at most `most`. A file that begins when the job was not there
/// yet is the last that is looked into, once there is a decision.
///
/// # Errors
/// As [`crate::replay::Replay`].
pub fn rounds_of(folder: &Path, job: ExternalId, most: usize) -> Result<Vec<DecidedRound>, Error> {
    let mut found: Vec<DecidedRound> = Vec::new();
    let files = match folder.exists() {
        true => segments::files(folder).map_err(Error::file(folder))?,
        false => Vec::new(),
    };
    for Segment { path, .. } in files.iter().rev() {
        let (mut rounds, began_with) = in_file(path, job, most)?;
        rounds.append(&mut found);
        rounds.drain(..rounds.len().saturating_sub(most));
        found = rounds;
        if found.len() >= most || (!found.is_empty() && !began_with) {
            break;
        }
    }
    Ok(found)
}

/// The last rounds of one file that decided about a job, and whether the file began when the job was there.
fn in_file(path: &Path, job: ExternalId, most: usize) -> Result<(Vec<DecidedRound>, bool), Error> {
    let mut found = Vec::new();
    let word = format!("\"{job}\"");
    let mut lines = segments::open(path).map_err(Error::file(path))?;
    let (mut line, mut row, mut began_with) = (String::new(), 0, false);
    while files::log_line(&mut lines, &mut line, LINE_MAX).map_err(Error::file(path))? {
        row += 1;
        if !line.contains(&word) {
            continue;
        }
        began_with |= row == 1;
        let round = DecidedRound::read(&line).map_err(|error| Error::Text {
            path: path.to_owned(),
            line: row,
            reason: error.to_string(),
        })?;
        if round.is_about(job) {
            found.push(round);
            if found.len() > most {
                found.remove(0);
            }
        }
    }
    Ok((found, began_with))
}
