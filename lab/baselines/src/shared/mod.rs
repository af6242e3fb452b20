//! What the planners share: [`allocate_by_priority`] gives out GPUs along a priority order, [`what_if`] is what would be free
//! if some jobs were stopped, [`allocation`] carries a plan out, [`timer`] keeps rounds, [`linear_program`] solves linear and
//! integer programmes, [`pair_speeds`] remembers how jobs fare beside each other, [`settings`] reads what a planner is made from.

pub(crate) mod allocate_by_priority;
pub mod linear_program;
pub(crate) mod solution;
pub(crate) mod timer;

pub(crate) use pleach_dealing::{allocation, pair_speeds, settings, what_if};
