//! What the planners share: [`give_out`] deals GPUs along a priority order, [`board`] is a scratch copy of the cluster on which
//! a plan is drawn up, [`layout`] carries a plan out, [`timer`] keeps rounds, [`program`] solves linear and integer programmes,
//! [`settings`] reads what a planner is made from.

pub(crate) mod answer;
pub(crate) mod board;
pub(crate) mod give_out;
pub(crate) mod layout;
pub mod program;
pub(crate) mod settings;
pub(crate) mod timer;
