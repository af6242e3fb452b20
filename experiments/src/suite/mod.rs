//! The task suite: does learning win? Several trainings on each of several kinds of clusters, against every scheduler that we have
//! with the same knowledge and capabilities, on held-out workloads, on lists four times as long, and on jobs of a kind
//! that nobody was trained on.

mod judge;
mod tasks;
mod verdict;

pub use judge::{Judgement, baselines, judge};
pub use tasks::{LONGER, TASKS, Task};
pub use verdict::Verdict;

use crate::error::Error;
use crate::settings::TrainSettings;

/// The learner's settings for all tasks; the environment is the task's.
///
/// # Errors
/// Not in practice: the file is part of the program.
pub fn settings() -> Result<TrainSettings, Error> {
    let text = include_str!("../../configs/suite.toml");
    toml::from_str(text).map_err(|error| Error::Failed(error.to_string()))
}
