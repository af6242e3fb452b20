//! A tournament: every scheduler that we have on several kinds of workloads, each with the capabilities that it asks for,
//! under ideal and under realistic conditions.
//!
//! All meet the same workloads with the same seeds. What a scheduler asks of its cluster (preemption, sharing, mixed types)
//! it gets, so a table compares whole systems: schedulers *and* what they need. The lower bound allows everything that any
//! of them may use.
//!
//! # What is deliberately not here
//! Tuning: planners run with their published settings. And `hadare`, unless it is named: its jobs train as several averaged
//! copies whose steps are taken to add up, which no other scheduler's jobs may do and which the lower bound does not know, so
//! it would win by an assumption.

mod command;
mod field;
mod flags;
mod page;
mod standings;
#[cfg(test)]
mod tests;

pub use field::{WORKLOADS, field};
pub use flags::TournamentArgs;
pub use page::report;
pub use standings::{COLUMNS, Standing, standings, table};
