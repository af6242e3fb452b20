//! Settings of an environment, and the registered ones.

use std::path::PathBuf;
use std::sync::Arc;

use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::error::ConfigError;
use pleach_scheduler::observation::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES};
use pleach_scheduler::policy::CandidateConfig;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::registered;
use crate::reward::RewardConfig;
use crate::seed::Seed;
use crate::simulate::SimConfig;
use crate::vector::Spaces;
use crate::workload::Workload;
use crate::workload::generate::{GeneratorConfig, generate};
use crate::workload::import::{ImportOptions, import};

/// Where episodes come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadConfig {
    /// A fresh workload for every episode.
    Generate(GeneratorConfig),
    /// A window of consecutive jobs of a file for every episode, at a place that the seed decides.
    File {
        /// The file, in any format that the importers know.
        path: PathBuf,
        /// How it is read.
        #[serde(default)]
        options: Box<ImportOptions>,
        /// Jobs of one episode.
        num_jobs: usize,
    },
}

/// Settings of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvConfig {
    /// Where episodes come from.
    pub workload: WorkloadConfig,
    /// What the cluster can do and what the scheduler is told. Its seed is not used: the episode's seed decides.
    pub sim: SimConfig,
    /// Candidates of a decision point.
    pub candidates: CandidateConfig,
    /// What is rewarded.
    pub reward: RewardConfig,
    /// Truncates an episode after this many steps.
    pub max_steps: Option<u64>,
}

impl Default for EnvConfig {
    fn default() -> EnvConfig {
        EnvConfig {
            workload: WorkloadConfig::Generate(GeneratorConfig::default()),
            sim: SimConfig::default(),
            candidates: CandidateConfig::default(),
            reward: RewardConfig::default(),
            max_steps: None,
        }
    }
}

impl EnvConfig {
    /// The settings registered under an id.
    ///
    /// # Errors
    /// An unknown id; the error lists the known ones.
    pub fn registered(id: &str) -> Result<EnvConfig, Error> {
        match registered::ALL.iter().find(|(known, ..)| *known == id) {
            Some((_, _, config)) => Ok(config()),
            None => Err(Error::Config(ConfigError {
                key: "env id".into(),
                value: id.into(),
                allowed: EnvConfig::ids().collect::<Vec<_>>().join(", "),
                hint: "ids carry a version, for example -v0".into(),
            })),
        }
    }

    /// All registered ids.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        registered::ALL.iter().map(|(id, ..)| *id)
    }

    /// What a registered environment is, in one line.
    #[must_use]
    pub fn describe(id: &str) -> Option<&'static str> {
        registered::ALL
            .iter()
            .find(|(known, ..)| *known == id)
            .map(|(_, line, _)| *line)
    }

    /// Checks the ranges of all settings.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        self.candidates.validate()?;
        self.sim.estimates.validate()?;
        self.sim.capabilities.validate()?;
        self.sim.capacity.validate()?;
        if let Some(outcomes) = &self.sim.outcomes {
            outcomes.validate()?;
        }
        let weights = [self.reward.jct, self.reward.slowdown, self.reward.utilisation];
        let checks = [
            (
                "reward",
                weights[0],
                weights.iter().all(|weight| (0.0..=1e6).contains(weight)),
                "weights from 0 to 1e6",
            ),
            (
                "max_steps",
                self.max_steps.map_or(1.0, |most| most as f64),
                self.max_steps != Some(0),
                "at least 1",
            ),
        ];
        for (key, value, ok, allowed) in checks {
            if !ok {
                return Err(Error::Config(ConfigError {
                    key: key.into(),
                    value: value.to_string(),
                    allowed: allowed.into(),
                    hint: "leave it out for the default".into(),
                }));
            }
        }
        Ok(())
    }

    /// Sizes of an observation under these settings; the same for all settings of this version.
    #[must_use]
    pub fn spaces(&self) -> Spaces {
        Spaces {
            num_global: NUM_GLOBAL_FEATURES,
            num_candidates: MAX_CANDIDATES,
            num_features: NUM_CANDIDATE_FEATURES,
        }
    }
}

/// Makes the workload of each episode.
#[derive(Clone, Debug)]
pub struct Source(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Generate,
    File(Arc<Workload>),
}

impl Source {
    /// Opens the source that the settings name; a file is read once, here.
    ///
    /// # Errors
    /// A file that cannot be read, or holds fewer jobs than an episode needs.
    pub fn open(config: &EnvConfig) -> Result<Source, Error> {
        match &config.workload {
            WorkloadConfig::Generate(_) => Ok(Source(Kind::Generate)),
            WorkloadConfig::File {
                path,
                options,
                num_jobs,
            } => {
                let (workload, _) = import(path, options)?;
                if *num_jobs == 0 || *num_jobs > workload.jobs.len() {
                    return Err(Error::Config(ConfigError {
                        key: "workload.file.num_jobs".into(),
                        value: num_jobs.to_string(),
                        allowed: format!("1 to {}, the jobs of the file", workload.jobs.len()),
                        hint: "200 to 500 jobs make a good episode".into(),
                    }));
                }
                Ok(Source(Kind::File(Arc::new(workload))))
            }
        }
    }

    /// The workload of the episode with this seed.
    ///
    /// # Errors
    /// Where the generator refuses its settings.
    pub fn workload(&self, config: &EnvConfig, seed: Seed) -> Result<Workload, Error> {
        match (&self.0, &config.workload) {
            (Kind::File(all), WorkloadConfig::File { num_jobs, .. }) => {
                let last = all.jobs.len().saturating_sub(*num_jobs);
                let start = seed.stream("window", 0).random_range(0..=last);
                Ok(all.slice(start, *num_jobs))
            }
            (_, WorkloadConfig::Generate(generator)) => generate(generator, seed.child("workload", 0)),
            (Kind::Generate, WorkloadConfig::File { .. }) => {
                unreachable!("the source was opened for these settings")
            }
        }
    }
}
