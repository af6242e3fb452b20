//! One judge of what plays lists of jobs: searched trees, formulas, networks with a standby.
//!
//! Lists come in parts, each with a baseline: the best rival there, or a policy that is given. What a policy comes to is a ratio to
//! the baseline on each list; rows have paired intervals.

mod acceptance;
mod baselines;
mod kinds;
mod lists;
mod plays;
mod race;

pub use acceptance::{Acceptance, PartRow, in_words, markdown, paired};
pub use kinds::{CHOSEN, Kind, PARTS, REPORTED, SEARCHED, kinds_of};
pub use lists::{List, Lists};
pub use plays::{Figures, Rivals};
pub use race::state_file;

#[cfg(test)]
pub(crate) use acceptance::verdict;
pub(crate) use acceptance::{CHOICE_LISTS, nearly_best};
pub(crate) use kinds::{env_of, instances};
pub(crate) use race::{kept_in, raced, settled};
