//! The race that every search of trees is: drafts are changed a little, the caller plays them, and what is found is kept in a file
//! after each batch, from which the search goes on.

use std::path::{Path, PathBuf};

use pleach_distill::search::{Caller, Draft, Outcome, Question, Rows, SearchConfig, SearchState, search};
use pleach_env::Seed;
use pleach_scheduler::Problem;
use pleach_scheduler::tree::TreeMeta;

use crate::error::Error;
use crate::progress::{Progress, Watcher};
use crate::run_folder::atomic_file;

/// Largest state that is read, bytes.
const STATE_BYTES_MAX: u64 = 256 << 20;

/// The file of the state in a run's folder.
#[must_use]
pub fn state_file(folder: &Path) -> PathBuf {
    folder.join("search-state.json")
}

/// The state of a search that was broken off; none where none was.
///
/// # Errors
/// A file that is none.
pub(crate) fn kept_in(state: &Path) -> Result<Option<SearchState>, Error> {
    if !state.exists() {
        return Ok(None);
    }
    let kept = atomic_file::read_json(state, STATE_BYTES_MAX);
    kept.map(Some).map_err(|error| Problem::contract("state of the search", "what this version of the program wrote after a batch", error, format!(
            "Put the file back as it was, or remove {}: the search then begins anew, with the same result.",
            state.display()
        )).into())
}

/// The settings with what lists in so many parts decide: the parts, and rungs that are multiples of them.
///
/// # Errors
/// Settings out of range.
pub(crate) fn settled(config: &SearchConfig, num_parts: usize, seed: u64) -> Result<SearchConfig, Error> {
    let in_parts = |lists: &usize| lists.div_ceil(num_parts.max(1)) * num_parts.max(1);
    let settled = SearchConfig {
        seed: Seed(seed).child("search", config.seed.0),
        num_parts,
        rungs: config.rungs.iter().map(in_parts).collect(),
        ..config.clone()
    };
    settled.validate()?;
    Ok(settled)
}

/// Plays trees on lists, with the outcome of each run.
pub(crate) type Judge<'a> = dyn FnMut(Question<'_>) -> Result<Vec<Outcome>, Error> + 'a;

/// Races drafts that begin with `starts`, or goes on from what was kept; `file` keeps the state after each batch.
///
/// # Errors
/// Settings out of range, a state of another search, what `judge` says.
pub(crate) fn raced(
    starts: Vec<(String, Draft)>,
    (meta, rows, config): (&TreeMeta, &Rows, &SearchConfig),
    (kept, file): (Option<SearchState>, Option<&Path>),
    judge: &mut Judge<'_>,
    watcher: &Watcher,
) -> Result<SearchState, Error> {
    let mut keep = |state: &SearchState| -> Result<(), Error> {
        if let Some(file) = file {
            atomic_file::write_compact_json(file, state)?;
        }
        let best = state.archive.best().map_or(0.0, |entry| entry.objective);
        let words = format!("{} trees, best objective {best:.4}", state.archive.num_entries());
        watcher.tell(Progress::At(state.simulations.min(config.simulations), &words));
        Ok(())
    };
    let mut caller = Caller {
        judge,
        keep: &mut keep,
    };
    let found = watcher.part("search", config.simulations as usize, || {
        search(starts, (meta, rows), config, kept, &mut caller)
    });
    found.map_err(|error| match error {
        pleach_distill::Error::Caller(error) => error,
        pleach_distill::Error::Problem(problem) => problem.into(),
        other => Error::Failed(other.to_string()),
    })
}
