//! The tasks: an environment to train in and be judged on, and workloads of another kind that no policy was trained on.

use pleach_env::workload::Error as WorkloadError;
use pleach_env::workload::generate::{GeneratorConfig, Paper, PolluxConfig};
use pleach_env::{EnvConfig, WorkloadConfig};

use pleach_experiments::error::Error;

/// One task of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The environment's id; a change that alters results bumps its version.
    pub id: &'static str,
    /// Jobs of an episode.
    pub num_jobs: usize,
    /// What the workloads are that no policy was trained on.
    pub unseen: &'static str,
    generator: fn() -> Result<GeneratorConfig, WorkloadError>,
}

/// All tasks.
pub const TASKS: [Task; 8] = [
    Task {
        id: "Pleach/PhillyGang-v1",
        num_jobs: 300,
        unseen: "itp-like jobs",
        generator: || preset("itp-like", 300),
    },
    Task {
        id: "Pleach/HeliosTenants-v1",
        num_jobs: 300,
        unseen: "philly-like jobs",
        generator: || preset("philly-like", 300),
    },
    Task {
        id: "Pleach/GavelMulti-v1",
        num_jobs: 300,
        unseen: "sia-philly jobs and GPU types",
        generator: || preset("sia-philly", 300),
    },
    Task {
        id: "Pleach/GavelShare-v1",
        num_jobs: 300,
        unseen: "sia-philly jobs and GPU types",
        generator: || preset("sia-philly", 300),
    },
    Task {
        id: "Pleach/PhillyShare-v1",
        num_jobs: 300,
        unseen: "itp-like jobs",
        generator: || preset("itp-like", 300),
    },
    Task {
        id: "Pleach/Synergy-v1",
        num_jobs: 300,
        unseen: "synergy-single jobs",
        generator: || preset("synergy-single", 300),
    },
    Task {
        id: "Pleach/Elastic-v1",
        num_jobs: 160,
        unseen: "pollux jobs on three GPU types",
        generator: || {
            Ok(GeneratorConfig::Paper(Paper::Pollux(PolluxConfig {
                heterogeneous: true,
                ncf: false,
                jobs_per_hour: None,
                load: UNSEEN_LOAD,
                ..PolluxConfig::default()
            })))
        },
    },
    Task {
        id: "Pleach/LlmSite-v1",
        num_jobs: 600,
        unseen: "alibaba-2026 jobs",
        generator: || preset("alibaba-2026", 600),
    },
];

/// Jobs of a long list over those of the task's: most of an episode goes by in filling and emptying the
/// cluster, most of a long list with a queue. *Assumed*.
pub const LONGER: usize = 4;

/// Offered load of the workloads that no policy was trained on: there is a queue. *Assumed*.
const UNSEEN_LOAD: f64 = 1.5;

fn preset(name: &str, num_jobs: usize) -> Result<GeneratorConfig, WorkloadError> {
    Ok(GeneratorConfig::preset(name)?.resized(Some(num_jobs), Some(UNSEEN_LOAD)))
}

impl Task {
    /// The task with this id; a realistic one is the same task in the world that is measured.
    ///
    /// # Errors
    /// An unknown id.
    pub fn find(id: &str) -> Result<Task, Error> {
        let known = || TASKS.into_iter().chain(TASKS.iter().filter_map(Task::realistic));
        known().find(|task| task.id == id).ok_or_else(|| {
            let known: Vec<&str> = known().map(|task| task.id).collect();
            let hint = "Ids carry a version, for example -v1.";
            Error::config("task", id, known.join(", "), hint)
        })
    }

    /// The same task in the world that is measured.
    fn realistic(&self) -> Option<Task> {
        let name = self.id.strip_suffix("-v1")?;
        let id = EnvConfig::ids().find(|id| id.strip_suffix("Realistic-v2") == Some(name))?;
        Some(Task { id, ..*self })
    }

    /// What is trained in and judged on.
    ///
    /// # Errors
    /// Not in practice: the ids are registered.
    pub fn env(&self) -> Result<EnvConfig, Error> {
        EnvConfig::registered(self.id).map_err(Error::from)
    }

    /// The same with lists of so many times as many jobs.
    ///
    /// # Errors
    /// Not in practice: all tasks have generators.
    pub fn env_times(&self, times: usize) -> Result<EnvConfig, Error> {
        let env = self.env()?;
        let workload = env.workload.resized(Some(times * self.num_jobs), None);
        Ok(EnvConfig { workload, ..env })
    }

    /// The same capabilities and knowledge on other jobs and another cluster.
    ///
    /// # Errors
    /// Not in practice: the presets exist.
    pub fn unseen_env(&self) -> Result<EnvConfig, Error> {
        Ok(EnvConfig {
            workload: WorkloadConfig::Generate((self.generator)()?),
            ..self.env()?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_experiments::evaluate::instances::{episodes, seeds};

    #[test]
    fn every_task_has_jobs_to_train_on_and_others_that_come_from_elsewhere() {
        let realistic: Vec<Task> = TASKS.iter().filter_map(Task::realistic).collect();
        // The site of today is in the realistic world itself.
        assert_eq!(realistic.len(), TASKS.len() - 1);
        for task in TASKS.into_iter().chain(realistic) {
            assert_eq!(Task::find(task.id).unwrap().id, task.id);
            let (env, unseen) = (task.env().unwrap(), task.unseen_env().unwrap());
            assert_ne!(env.workload, unseen.workload);
            assert_eq!(env.sim, unseen.sim);
            for env in [env, unseen] {
                env.validate().unwrap();
                let instances = episodes(&env, &seeds(0, "test", 1)).unwrap();
                assert!(instances[0].workload.jobs.len() >= 100, "{}", task.id);
            }
        }
        for task in TASKS {
            for (env, times) in [
                (task.env().unwrap(), 1),
                (task.env_times(LONGER).unwrap(), LONGER),
            ] {
                let instances = episodes(&env, &seeds(0, "test", 1)).unwrap();
                assert_eq!(
                    instances[0].workload.jobs.len(),
                    times * task.num_jobs,
                    "{}",
                    task.id
                );
            }
        }
        let text = Task::find("Pleach/Philly").unwrap_err().to_string();
        assert!(text.contains("Pleach/GavelMulti-v1"), "{text}");
    }
}
