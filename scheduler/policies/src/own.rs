//! Policies and planners that a program has beside ours, by name at every door.
//!
//! A program says once which they are, before it opens one, and they never change after that: so they are a part of the program as
//! its code is, and no result depends on when they are asked for.

use std::sync::OnceLock;

use pleach_dealing::Entry;
use pleach_scheduler::heuristics::Info;
use pleach_scheduler::policy::Policy;

/// A policy of a program's own.
#[derive(Clone, Copy, Debug)]
pub struct OwnPolicy {
    /// Name and words for tables.
    pub info: Info,
    /// Makes a fresh one for every run.
    pub make: fn() -> Box<dyn Policy>,
}

#[derive(Debug)]
struct Own {
    policies: Vec<OwnPolicy>,
    planners: Vec<Entry>,
}

static OWN: OnceLock<Own> = OnceLock::new();

/// Keeps them; false where some are kept already.
pub(crate) fn keep(policies: Vec<OwnPolicy>, planners: Vec<Entry>) -> bool {
    OWN.set(Own { policies, planners }).is_ok()
}

/// Policies of the program's own, in the order in which they were named.
#[must_use]
pub fn own_policies() -> &'static [OwnPolicy] {
    OWN.get().map_or(&[], |own| own.policies.as_slice())
}

/// Planners of the program's own, in the order in which they were named.
#[must_use]
pub fn own_planners() -> &'static [Entry] {
    OWN.get().map_or(&[], |own| own.planners.as_slice())
}
