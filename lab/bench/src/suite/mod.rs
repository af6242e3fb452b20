//! The task suite: does learning win? Several trainings on each of several kinds of clusters, against every scheduler that we have
//! with the same knowledge and capabilities, on held-out workloads, on lists four times as long, and on jobs of a kind
//! that no policy was trained on.
//!
//! A training has two stages: on lists as long as the task's, and, going on from the network that was best there, on lists three
//! times as long. Both networks are compared.

mod command;
mod compare;
mod flags;
mod stage;
mod tasks;

pub use compare::{Comparison, Learned, compare};
pub use flags::SuiteArgs;
pub use stage::Stage;
pub use tasks::{LONGER, TASKS, Task};
