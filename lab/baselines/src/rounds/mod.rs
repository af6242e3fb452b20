//! Rounds: GPUs are leased for a fixed time and given out anew when the leases end, so that over many rounds every job
//! receives the share of each GPU type that it is due.
//!
//! A policy that says *what each job is due* (a fraction of its time on every GPU type, alone or beside another job) need not
//! say *when*: at the end of each round a combination's priority on a type is its target over the share that it has received
//! there, the combinations of highest priority take the GPUs, and a combination keeps the GPUs that it had where it can. When
//! targets change, what a combination is still owed is kept as a deficit and breaks ties.
//!
//! [`Rounds`] is the bookkeeping, without a clock of its own: its caller says what was received and when targets
//! change; [`place()`] and [`apply_leases`] carry an allocation out. [`RoundPlanner`] is a planner that drives it all.
//!
//! # Source
//! Gavel (OSDI'20), section 5, and its simulator (stanford-futuredata/gavel at c4fa400): priorities, half a round of credit
//! for a new job, deficits, gangs placed by decreasing size. `lab/reproduce/tests/round_simulators` holds it to recorded runs.
//!
//! # What is deliberately not here
//! How targets come about (an optimiser), and more than two jobs on a GPU.

mod assign;
mod mechanism;
mod place;
mod planner;
#[cfg(test)]
mod tests;

pub use mechanism::{JobCombination, Lease, Rounds, Targets};
pub use place::{apply_leases, place};
pub use planner::{RoundPlanner, RoundRules};
