//! Benchmarks: how fast the program is on a machine, whether learning wins, and every scheduler against every other.
//!
//! Beside this crate lie scripts: `lists` plays policies on many lists, `peers` compares with other learners and libraries.
//!
//! # What is deliberately not here
//! Comparisons on one cluster: those are `pleach evaluate`. Figures with their conditions: those are in `lab/notes`.

pub mod speed;
pub mod suite;
pub mod tournament;

pub use speed::BenchArgs;
pub use suite::SuiteArgs;
pub use tournament::TournamentArgs;
