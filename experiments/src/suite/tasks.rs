//! The tasks: an environment to train in and be judged on, and workloads of another kind that nobody was trained on.

use pleach_env::config::{EnvConfig, WorkloadConfig};
use pleach_env::workload::generate::GeneratorConfig;

use crate::error::Error;
use crate::scenario::env_error;

/// One task of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The environment's id; a change that alters results bumps its version.
    pub id: &'static str,
    /// Generator of the workloads that no policy was trained on, with its jobs and offered load.
    unseen: (&'static str, usize, u32),
}

/// All tasks.
pub const TASKS: [Task; 6] = [
    Task {
        id: "Pleach/PhillyGang-v1",
        unseen: ("itp-like", 300, 150),
    },
    Task {
        id: "Pleach/HeliosTenants-v1",
        unseen: ("philly-like", 300, 150),
    },
    Task {
        id: "Pleach/GavelMulti-v1",
        unseen: ("sia-philly", 300, 150),
    },
    Task {
        id: "Pleach/PhillyShare-v1",
        unseen: ("itp-like", 300, 150),
    },
    Task {
        id: "Pleach/Synergy-v1",
        unseen: ("synergy-single", 300, 150),
    },
    Task {
        id: "Pleach/Elastic-v1",
        unseen: ("sia-helios", 160, 150),
    },
];

impl Task {
    /// The task with this id.
    ///
    /// # Errors
    /// An unknown id.
    pub fn find(id: &str) -> Result<Task, Error> {
        TASKS.into_iter().find(|task| task.id == id).ok_or_else(|| {
            let known: Vec<&str> = TASKS.iter().map(|task| task.id).collect();
            let hint = "Ids carry a version, for example -v1.";
            Error::config("task", id, known.join(", "), hint)
        })
    }

    /// What is trained in and judged on.
    ///
    /// # Errors
    /// Not in practice: the ids are registered.
    pub fn env(&self) -> Result<EnvConfig, Error> {
        EnvConfig::registered(self.id).map_err(env_error)
    }

    /// Name of the generator that no policy was trained on.
    #[must_use]
    pub fn unseen_name(&self) -> &'static str {
        self.unseen.0
    }

    /// The same capabilities and knowledge on other jobs and another cluster.
    ///
    /// # Errors
    /// Not in practice: the presets exist.
    pub fn unseen_env(&self) -> Result<EnvConfig, Error> {
        let (preset, num_jobs, load_percent) = self.unseen;
        let generator = GeneratorConfig::preset(preset).map_err(env_error)?;
        let load = f64::from(load_percent) / 100.0;
        Ok(EnvConfig {
            workload: WorkloadConfig::Generate(generator.resized(Some(num_jobs), Some(load))),
            ..self.env()?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{episodes, seeds};

    #[test]
    fn every_task_has_jobs_to_train_on_and_others_that_come_from_elsewhere() {
        for task in TASKS {
            let (env, unseen) = (task.env().unwrap(), task.unseen_env().unwrap());
            assert_ne!(env.workload, unseen.workload);
            assert_eq!(env.sim, unseen.sim);
            for env in [env, unseen] {
                env.validate().unwrap();
                let bouts = episodes(&env, &seeds(0, "test", 1)).unwrap();
                assert!(bouts[0].workload.jobs.len() >= 100, "{}", task.id);
            }
        }
        let text = Task::find("Pleach/Philly").unwrap_err().to_string();
        assert!(text.contains("Pleach/GavelMulti-v1"), "{text}");
    }
}
