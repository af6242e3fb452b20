//! Our simulator against published simulators that work in rounds, job by job.
//!
//! Recorded runs are read from `shared/data/golden` beside the repository; where they are missing the tests are
//! noted as skipped. How many runs there are of each simulator is asserted, so that none vanishes.
//! `cargo test -p pleach-reproduce --test reproduce round_simulators -- --nocapture` prints one line for each run.

mod blox;
mod gavel;
mod gavel_objectives;
mod gavel_targets;
mod planners;
mod recorded;
mod synergy;
