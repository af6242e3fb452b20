//! What becomes of what is in the folder already: a run to go on in, one to replace, or something that is not ours and stays
//! untouched.

use std::fs;
use std::path::Path;

use super::description::RunDescription;
use super::files::{clear, holds_no_results, remove_if_there, remove_results_of_nothing, remove_temporaries};
use super::names::{CONFIG_FILE, DESCRIPTION_BYTES_MAX, RUN_FILE, SETTINGS_FILE};
use super::verify;
use crate::error::Error;
use crate::run_folder::atomic_file;
use crate::run_folder::differences;
use crate::run_folder::lock::LOCK_FILE;
use pleach_policies::ARTEFACTS_FILE;
use pleach_scheduler::Problem;

/// What to do about a file that is not what the finished run listed.
const MEND: &str = "Put the run's own file back, or remove this one: --resume then makes it again. --force replaces the run.";

/// What to do with a folder that holds a run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse if it is finished or of another configuration; go on in a broken-off one, and take over one without results.
    Refuse,
    /// Go on in it, finished or not; its configuration must be the same.
    Resume,
    /// Replace it.
    Replace,
    /// Go on in a broken-off one of the same configuration, replace any other.
    Renew,
}

impl Existing {
    /// From the flags `--force` and `--resume`, which are not given together.
    #[must_use]
    pub fn from_flags(force: bool, resume: bool) -> Existing {
        match (force, resume) {
            (true, _) => Existing::Replace,
            (false, true) => Existing::Resume,
            (false, false) => Existing::Refuse,
        }
    }
}

/// Refuses a place that holds anything but a run of ours, before a file is put there.
pub(super) fn refuse_foreign(path: &Path) -> Result<(), Error> {
    let shown = path.display();
    Error::refuse_if(
        path.exists() && !path.is_dir(),
        "out",
        &shown,
        "a folder",
        "A file has this name; give another --out.",
    )?;
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::io("read", path, source)),
    };
    let mut empty = true;
    for entry in entries {
        let name = entry
            .map_err(|source| Error::io("read", path, source))?
            .file_name();
        empty &= atomic_file::is_temporary(&name) || name == LOCK_FILE;
    }
    Error::refuse_if(
        !(empty || path.join(RUN_FILE).is_file()),
        "out",
        shown,
        "a new or empty folder, or an earlier run",
        "It holds files that are not a run of ours, and they stay untouched.",
    )
}

/// Makes `path`, which is ours and locked, ready for `wanted` with the configuration `text`, or says why not.
pub(super) fn prepare(
    path: &Path,
    (wanted, text): (&RunDescription, &str),
    existing: Existing,
) -> Result<(), Error> {
    let shown = path.display();
    remove_temporaries(path).map_err(|source| Error::io("read", path, source))?;
    if !path.join(RUN_FILE).is_file() {
        return Ok(());
    }
    let finished = path.join(ARTEFACTS_FILE).is_file();
    if existing == Existing::Replace || (existing == Existing::Renew && finished) {
        return clear(path);
    }
    let found: RunDescription = atomic_file::read_json(&path.join(RUN_FILE), DESCRIPTION_BYTES_MAX)?;
    if existing == Existing::Renew && &found != wanted {
        return clear(path);
    }
    // What was refused before it made anything must not stand in the way of the corrected command.
    if existing == Existing::Refuse && &found != wanted && holds_no_results(path)? {
        return remove_results_of_nothing(path);
    }
    if &found != wanted {
        return Err(Problem::contract(
            format!("the run in {shown}"),
            describe(wanted),
            describe(&found),
            format!(
                "{}Give another --out, or --force to replace it.",
                mend(path, wanted, text, &found)
            ),
        )
        .into());
    }
    Error::refuse_if(
        finished && existing == Existing::Refuse,
        "out",
        &shown,
        "a folder without a finished run",
        "It is finished: --resume goes on in it, --force replaces it.",
    )?;
    verify(path, &[], MEND)?;
    remove_if_there(&path.join(ARTEFACTS_FILE))
}

/// What differs from the run that is there, key by key, and how to have the same; empty where that is not known.
fn mend(path: &Path, wanted: &RunDescription, text: &str, found: &RunDescription) -> String {
    let is_same = found.config_hash == wanted.config_hash;
    if found.command != wanted.command || (is_same && found.seed == wanted.seed) {
        return String::new();
    }
    let there = atomic_file::read_text(&path.join(CONFIG_FILE), DESCRIPTION_BYTES_MAX);
    let tables = there.map(|there| (toml::from_str(text), toml::from_str(&there)));
    let differences = match &tables {
        Ok((Ok(here), Ok(there))) => differences::in_words(here, there),
        _ => String::new(),
    };
    let mut words = String::new();
    if !differences.is_empty() {
        words = format!("Different here: {differences}. ");
    }
    let settings = path.join(SETTINGS_FILE);
    if settings.is_file() {
        let (settings, seed) = (settings.display(), found.seed);
        words.push_str(&format!("The same as there: --config {settings} --seed {seed}. "));
    }
    words
}

fn describe(run: &RunDescription) -> String {
    format!(
        "{} {} seed {} config {}",
        run.command, run.version, run.seed, run.config_hash
    )
}
