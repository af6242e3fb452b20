//! Direct search: trees that are changed a little, judged in the simulator, and kept where they schedule better.
//!
//! A teacher finds splits that imitate it well, and the simulator knows which splits pay. The search keeps an [`Archive`] of the
//! best trees of each size, changes some of them ([`changed`]), and races the children: all on a few lists of jobs, the better
//! ones on more, the best on all. Every child plays the same lists as all trees before it. What is to be little is
//! [`SearchConfig::objective`]: the mean logarithm of the ratio of average JCT to the caller's baseline over several *parts*
//! (lists as long as usual, longer ones, low loads), more for each part that loses, more for a long tail.
//!
//! The judge is the caller's, and so is the final word: the lists of the race chose the tree, so what it is worth must come from
//! others.
//!
//! # Source
//! Archive by size: MAP-Elites (Mouret and Clune, arXiv 1504.04909) with size as the one descriptor. Racing on shared instances:
//! F-Race (Birattari et al., GECCO'02) and successive halving (Jamieson and Talwalkar, AISTATS'16). Moves, their shares, sizes of
//! the race and the objective: an experiment of ours, whose figures stand in docs/distilling.md.

mod archive;
mod config;
mod draft;
mod field;
mod moves;
mod race;
mod rows;
mod standing;

use pleach_scheduler::tree::TreeMeta;

pub use archive::{Archive, Entry};
pub use config::{Outcome, SearchConfig};
pub use draft::{Branch, Draft};
pub use field::{Caller, Question, STATE_SCHEMA, SearchState};
pub use moves::{Move, changed};
pub use rows::Rows;
pub use standing::Standing;

use crate::error::Error;
use crate::search::field::Field;
use crate::search::race::race;

/// Searches from some trees, or goes on from a state.
///
/// `meta` is what the files of the trees say beside their drafts; `rows` are candidates as they come, by which thresholds move.
/// The same arguments give the same state, whether it was interrupted between batches or not.
///
/// # Errors
/// Settings out of range, a start that cannot be a tree, what the caller's functions report, an outcome that is not finite.
pub fn search<E>(
    starts: Vec<(String, Draft)>,
    (meta, rows): (&TreeMeta, &Rows),
    config: &SearchConfig,
    state: Option<SearchState>,
    caller: &mut Caller<'_, E>,
) -> Result<SearchState, Error<E>> {
    config.validate()?;
    let field = Field { meta, rows, config };
    let mut state = match state {
        Some(state) => {
            state.check(config)?;
            state
        }
        None => {
            let state = field.begun(starts, caller)?;
            (caller.keep)(&state).map_err(Error::Caller)?;
            state
        }
    };
    while state.simulations < config.simulations && state.archive.num_entries() > 0 {
        let mut rng = config.seed.stream("search.batch", state.batch);
        let children = field.children(&state.archive, &mut rng);
        if children.is_empty() {
            break;
        }
        race(&field, children, &mut state, caller)?;
        state.batch += 1;
        (caller.keep)(&state).map_err(Error::Caller)?;
    }
    Ok(state)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy_tests;
