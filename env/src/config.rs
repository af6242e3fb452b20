//! Settings of an environment.

use std::path::PathBuf;
use std::sync::Arc;

use pleach_scheduler::Problem;
use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::{DECISION_1, FeatureSchema, View};
use pleach_scheduler::policy::CandidateConfig;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::reward::RewardConfig;
use crate::simulate::SimConfig;
use crate::split::Split;
use crate::vector::Spaces;
use pleach_workloads::Seed;
use pleach_workloads::Workload;
use pleach_workloads::generate::{GeneratorConfig, generate};
use pleach_workloads::import::{ImportOptions, import};

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
        /// The part of the list that windows are drawn from; none = all of it, whatever they are for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        split: Option<Split>,
        /// Offered load of the whole list, 0.01 to 10: its times are stretched to it. None = its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load: Option<f64>,
        /// Whether a window begins with the jobs before it that have not ended ([`Workload::slice_with_running`]).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep_running: bool,
    },
    /// One of these for every episode, drawn by its seed with equal chances: several loads, sizes of cluster, kinds of jobs
    /// or hardware. What a cluster can do and what its scheduler knows is the same for all. One that is listed twice comes
    /// twice as often.
    Mixture(Vec<WorkloadConfig>),
}

impl WorkloadConfig {
    /// The same with another number of jobs in an episode, another offered load, or both; in a mixture, in every part.
    #[must_use]
    pub fn resized(self, num_jobs: Option<usize>, load: Option<f64>) -> WorkloadConfig {
        match self {
            WorkloadConfig::Generate(generator) => {
                WorkloadConfig::Generate(generator.resized(num_jobs, load))
            }
            WorkloadConfig::Mixture(parts) => {
                let parts = parts.into_iter().map(|part| part.resized(num_jobs, load));
                WorkloadConfig::Mixture(parts.collect())
            }
            WorkloadConfig::File {
                path,
                options,
                num_jobs: own_jobs,
                split,
                load: own_load,
                keep_running,
            } => WorkloadConfig::File {
                path,
                options,
                num_jobs: num_jobs.unwrap_or(own_jobs),
                split,
                load: load.or(own_load),
                keep_running,
            },
        }
    }

    /// The same with windows of another part of lists that are split; what is not split, or is generated, stays.
    #[must_use]
    pub fn in_split(mut self, wanted: Split) -> WorkloadConfig {
        match &mut self {
            WorkloadConfig::Generate(_) => {}
            WorkloadConfig::File { split, .. } => *split = split.map(|_| wanted),
            WorkloadConfig::Mixture(parts) => {
                for part in parts {
                    *part = part.clone().in_split(wanted);
                }
            }
        }
        self
    }

    /// Whether episodes are windows of a list, or of a mixture with one.
    #[must_use]
    pub fn is_list(&self) -> bool {
        match self {
            WorkloadConfig::Generate(_) => false,
            WorkloadConfig::File { .. } => true,
            WorkloadConfig::Mixture(parts) => parts.iter().any(WorkloadConfig::is_list),
        }
    }

    /// Whether it has a list that is split.
    #[must_use]
    pub fn is_split(&self) -> bool {
        match self {
            WorkloadConfig::Generate(_) => false,
            WorkloadConfig::File { split, .. } => split.is_some(),
            WorkloadConfig::Mixture(parts) => parts.iter().any(WorkloadConfig::is_split),
        }
    }
}

/// Settings of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvConfig {
    /// Where episodes come from.
    pub workload: WorkloadConfig,
    /// What the cluster can do and what its scheduler knows. Its seed is not used: the episode's seed decides.
    pub sim: SimConfig,
    /// Candidates of a decision point.
    pub candidates: CandidateConfig,
    /// What is rewarded.
    pub reward: RewardConfig,
    /// Truncates an episode after this many steps.
    pub max_steps: Option<u64>,
    /// The view that observations show, by name: `decision-1` unless a newer one is wanted. Part of what a registered id stands for.
    #[serde(skip_serializing_if = "is_first_view")]
    pub columns: String,
}

fn is_first_view(columns: &String) -> bool {
    columns == DECISION_1.name
}

impl Default for EnvConfig {
    fn default() -> EnvConfig {
        EnvConfig {
            workload: WorkloadConfig::Generate(GeneratorConfig::default()),
            sim: SimConfig::default(),
            candidates: CandidateConfig::default(),
            reward: RewardConfig::default(),
            max_steps: None,
            columns: DECISION_1.name.into(),
        }
    }
}

impl EnvConfig {
    /// Checks the ranges of all settings.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        self.view()?;
        self.candidates.validate()?;
        self.sim.estimates.validate()?;
        self.sim.capabilities.validate()?;
        self.sim.capacity.validate()?;
        if let Some(batch_system) = &self.sim.batch_system {
            batch_system.validate()?;
        }
        if let Some(beliefs) = &self.sim.beliefs {
            beliefs.validate()?;
        }
        if let Some(outcomes) = &self.sim.outcomes {
            outcomes.validate()?;
        }
        let (weight, is_in_range) = self.reward.checked();
        let checks = [
            ("reward", weight, is_in_range, "weights from 0 to 1e6"),
            (
                "max_steps",
                self.max_steps.map_or(1.0, |most| most as f64),
                self.max_steps != Some(0),
                "at least 1",
            ),
        ];
        for (key, value, ok, allowed) in checks {
            if !ok {
                return Err(Error::Problem(Problem::new(
                    key,
                    value,
                    allowed,
                    "leave it out for the default",
                )));
            }
        }
        Ok(())
    }

    /// The same with windows of another part of lists that are split.
    #[must_use]
    pub fn in_split(&self, split: Split) -> EnvConfig {
        EnvConfig {
            workload: self.workload.clone().in_split(split),
            ..self.clone()
        }
    }

    /// The view that observations show.
    ///
    /// # Errors
    /// A name that no view has.
    pub fn view(&self) -> Result<&'static View, Error> {
        let view = FeatureSchema::current().view_named(&self.columns);
        view.map_err(|known| {
            let hint = "leave it out for the first one, or see `pleach policies --features`";
            Error::Problem(Problem::new("columns", &self.columns, known, hint))
        })
    }

    /// Sizes of an observation: those of its view; of the first one where [`EnvConfig::view`] refuses the name.
    #[must_use]
    pub fn spaces(&self) -> Spaces {
        Spaces::of(self.view().unwrap_or(&DECISION_1), MAX_CANDIDATES)
    }
}

/// Makes the workload of each episode.
#[derive(Clone, Debug)]
pub struct Source(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Generate,
    File(Arc<Workload>),
    Mixture(Vec<Source>),
}

impl Source {
    /// Opens the source that the settings name; a file is read once, here.
    ///
    /// # Errors
    /// A file that cannot be read, or holds fewer jobs than an episode needs; a mixture without parts, or of mixtures.
    pub fn open(config: &EnvConfig) -> Result<Source, Error> {
        Source::open_workload(&config.workload)
    }

    fn open_workload(workload: &WorkloadConfig) -> Result<Source, Error> {
        match workload {
            WorkloadConfig::Generate(_) => Ok(Source(Kind::Generate)),
            WorkloadConfig::Mixture(parts) => {
                let nested = |part: &WorkloadConfig| matches!(part, WorkloadConfig::Mixture(_));
                if parts.is_empty() || parts.iter().any(nested) {
                    return Err(Error::Problem(Problem::new(
                        "workload.mixture",
                        format!("{} parts", parts.len()),
                        "at least one part, and none that is a mixture itself",
                        "name the parts side by side; one that is listed twice comes twice as often",
                    )));
                }
                let sources = parts.iter().map(Source::open_workload);
                Ok(Source(Kind::Mixture(sources.collect::<Result<_, _>>()?)))
            }
            WorkloadConfig::File {
                path,
                options,
                num_jobs,
                split,
                load,
                ..
            } => Source::of_list(import(path, options)?.0, *num_jobs, *split, *load),
        }
    }

    /// The source of a list that was read already: of windows of `num_jobs`, from a part of it, at a load, as in
    /// [`WorkloadConfig::File`].
    ///
    /// # Errors
    /// As [`Source::open`], but for the file.
    pub fn of_list(
        list: Workload,
        num_jobs: usize,
        split: Option<Split>,
        load: Option<f64>,
    ) -> Result<Source, Error> {
        let mut workload = list;
        if let Some(load) = load {
            if !(0.01..=10.0).contains(&load) {
                let hint = "leave it out for the load of the list";
                let error = Problem::new("workload.file.load", load, "0.01 to 10", hint);
                return Err(Error::Problem(error));
            }
            workload = workload.scaled_load(load / workload.offered_load())?;
        }
        if split.is_some() {
            Split::check(&workload.jobs, num_jobs)?;
        }
        if num_jobs == 0 || num_jobs > workload.jobs.len() {
            return Err(Error::Problem(Problem::new(
                "workload.file.num_jobs",
                num_jobs,
                format!("1 to {}, the jobs of the file", workload.jobs.len()),
                "200 to 500 jobs make a good episode",
            )));
        }
        Ok(Source(Kind::File(Arc::new(workload))))
    }

    /// The workload of the episode with this seed.
    ///
    /// # Errors
    /// Where the generator refuses its settings.
    pub fn workload(&self, config: &EnvConfig, seed: Seed) -> Result<Workload, Error> {
        self.draw(&config.workload, seed)
    }

    /// Which part of a mixture the episode with this seed is of, from 0; none without a mixture.
    #[must_use]
    pub fn part(&self, seed: Seed) -> Option<usize> {
        match &self.0 {
            Kind::Mixture(sources) => Some(seed.stream("mixture", 0).random_range(0..sources.len())),
            Kind::Generate | Kind::File(_) => None,
        }
    }

    /// How a list that is split is split, in a line; none for what is not.
    #[must_use]
    pub fn split_in_words(&self, config: &EnvConfig) -> Option<String> {
        match (&self.0, &config.workload) {
            (Kind::File(all), WorkloadConfig::File { num_jobs, split, .. }) => {
                split.map(|_| Split::in_words(&all.jobs, *num_jobs))
            }
            _ => None,
        }
    }

    fn draw(&self, workload: &WorkloadConfig, seed: Seed) -> Result<Workload, Error> {
        match (&self.0, workload) {
            (Kind::Mixture(sources), WorkloadConfig::Mixture(parts)) => {
                let part = self.part(seed).unwrap_or(0);
                sources[part].draw(&parts[part], seed)
            }
            (
                Kind::File(all),
                WorkloadConfig::File {
                    num_jobs,
                    split,
                    keep_running,
                    ..
                },
            ) => {
                let of = split.map_or(0..all.jobs.len(), |split| split.range(&all.jobs));
                let last = of.end.saturating_sub(*num_jobs).max(of.start);
                let start = seed.stream("window", 0).random_range(of.start..=last);
                Ok(match keep_running {
                    true => all.slice_with_running(start, *num_jobs),
                    false => all.slice(start, *num_jobs),
                })
            }
            (_, WorkloadConfig::Generate(generator)) => Ok(generate(generator, seed.child("workload", 0))?),
            (_, WorkloadConfig::File { .. } | WorkloadConfig::Mixture(_)) => {
                unreachable!("the source was opened for these settings")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_jobs(num_jobs: usize) -> WorkloadConfig {
        WorkloadConfig::Generate(GeneratorConfig::default().with(num_jobs, 0.8))
    }

    fn mixture(parts: Vec<WorkloadConfig>) -> EnvConfig {
        EnvConfig {
            workload: WorkloadConfig::Mixture(parts),
            ..EnvConfig::default()
        }
    }

    #[test]
    fn an_episode_of_a_mixture_is_that_of_the_part_which_its_seed_draws() {
        let parts = vec![of_jobs(10), of_jobs(20), of_jobs(20)];
        let config = mixture(parts.clone());
        let source = Source::open(&config).unwrap();
        let mut counts = [0; 3];
        for number in 0..300 {
            let seed = Seed(number);
            let part = source.part(seed).unwrap();
            counts[part] += 1;
            if number < 20 {
                let alone = EnvConfig {
                    workload: parts[part].clone(),
                    ..EnvConfig::default()
                };
                let expected = Source::open(&alone).unwrap().workload(&alone, seed).unwrap();
                assert_eq!(source.workload(&config, seed).unwrap(), expected);
            }
        }
        // 100 each, with a deviation of 8.
        assert!(
            counts.iter().all(|count| (70..=130).contains(count)),
            "{counts:?}"
        );
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<EnvConfig>(&text).unwrap(), config);
    }

    #[test]
    fn a_mixture_of_nothing_or_of_mixtures_is_refused() {
        for parts in [vec![], vec![WorkloadConfig::Mixture(vec![of_jobs(10)])]] {
            let text = Source::open(&mixture(parts)).unwrap_err().to_string();
            assert!(text.contains("workload.mixture"), "{text}");
        }
    }

    #[test]
    fn every_part_is_resized_and_only_lists_that_are_split_change_their_part() {
        let file = |num_jobs, split, load| WorkloadConfig::File {
            path: "jobs.csv".into(),
            options: Box::default(),
            num_jobs,
            split,
            load,
            keep_running: false,
        };
        let whole = WorkloadConfig::Mixture(vec![of_jobs(10), file(20, None, None)]);
        let expected = WorkloadConfig::Mixture(vec![of_jobs(30), file(30, None, None)]);
        assert_eq!(whole.clone().resized(Some(30), None), expected);
        assert_eq!(
            file(10, None, None).resized(None, Some(0.5)),
            file(10, None, Some(0.5))
        );
        assert_eq!(whole.clone().in_split(Split::Test), whole);
        assert!(!whole.is_split());
        let split = WorkloadConfig::Mixture(vec![of_jobs(10), file(20, Some(Split::Train), None)]);
        let test = WorkloadConfig::Mixture(vec![of_jobs(10), file(20, Some(Split::Test), None)]);
        assert!(split.is_split());
        assert_eq!(split.in_split(Split::Test), test);
        let text = toml::to_string(&test).unwrap();
        assert_eq!(toml::from_str::<WorkloadConfig>(&text).unwrap(), test);
    }
}
