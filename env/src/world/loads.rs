//! Who reads from the site's store.

use pleach_scheduler::Time;

/// Jobs that load their state.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    /// When each of those who load is done.
    pub(super) until: Vec<Time>,
    /// How many begin to load in the pass that is carried out.
    pub(super) num_new: usize,
}
