//! The stages of a training: how long the lists of jobs are, and the learner's settings.

use super::tasks::Task;
use pleach_experiments::error::Error;
use pleach_experiments::train::settings::TrainSettings;
use pleach_experiments::train::settings_file;

/// One stage of all trainings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Lists as long as the task's.
    AsLong,
    /// Going on from the best network of the first stage, on lists three times as long: there is a queue most of the time,
    /// which no network of the first stage has met. *Assumed*; lab/notes/suite.md says what it brings.
    Longer,
}

impl Stage {
    /// In the order in which they are gone through.
    pub const ALL: [Stage; 2] = [Stage::AsLong, Stage::Longer];

    /// Name of the stage in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::AsLong => "as-long",
            Stage::Longer => "longer",
        }
    }

    /// Jobs of a list over those of the task's.
    #[must_use]
    pub fn times(self) -> usize {
        match self {
            Stage::AsLong => 1,
            Stage::Longer => 3,
        }
    }

    /// What the folder of a training is called: `PhillyGang-v1-0`, `PhillyGang-v1-0-longer`.
    #[must_use]
    pub fn folder(self, task: Task, training: u32) -> String {
        let name = task.id.trim_start_matches("Pleach/");
        match self {
            Stage::AsLong => format!("{name}-{training}"),
            Stage::Longer => format!("{name}-{training}-{}", self.name()),
        }
    }

    /// The learner's settings for all tasks, those of its file over plain `pleach train`'s; the environment is the task's.
    ///
    /// # Errors
    /// Not in practice: the file is part of the program.
    pub fn settings(self) -> Result<TrainSettings, Error> {
        match self {
            Stage::AsLong => settings_file::evolution(),
            Stage::Longer => settings_file::evolution_longer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_stage_goes_on_with_a_network_of_the_size_of_the_first() {
        let [first, second] = Stage::ALL.map(|stage| stage.settings().unwrap());
        assert_eq!(first.train.network, second.train.network);
        assert_eq!(first.prior_weight, second.prior_weight);
        assert_eq!(first.constraint.metrics, second.constraint.metrics);
        assert!(Stage::Longer.times() > 1 && first.fine_tune.is_none());
    }
}
