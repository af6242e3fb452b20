//! Where jobs come from: one workload of a name and a seed, and an environment to train in.
//!
//! Refused before any work: a workload that is listed twice, and flags of trace files where there is none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, Profile, generate};
use pleach_env::workload::import::{Format, ImportOptions, ImportReport, import};
use pleach_env::{EnvConfig, Seed, Split, WorkloadConfig};
use pleach_policies::place::is_path;
use pleach_scheduler::ActionKind;
use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_scheduler::heuristics::nearest_of;
use pleach_scheduler::policy::CandidateConfig;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::cluster_flag::cluster_of;
use crate::evaluate::day::{self, DAY_S, Day};
use crate::evaluate::flag_values;
use crate::evaluate::named_env::{env_named, is_list};
use crate::evaluate::sim_config::SchedulingConfig;
use crate::file_kind::FileKind;

/// What is played where no workload is given.
pub(crate) const DEFAULT_WORKLOAD: &str = "Pleach/Philly-v0";
/// What becomes of a list of which windows are drawn.
const LEARNED_FROM: &str = "learned from";
/// Where jobs come from, once the name is known to be a preset, an environment or a file.
#[derive(Clone, Debug)]
pub(crate) enum Source<'a> {
    Generated(GeneratorConfig),
    /// Windows of a list or a mixture, as an environment draws them.
    Drawn(Box<WorkloadConfig>),
    File(&'a Path),
}

/// Which jobs, and on which cluster. Everything but the names may be left out. The fields are flags of `pleach` too, in these words.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Workload")]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadSource {
    /// Presets, environment ids, trace files, profiles (docs/workloads.md), or the settings.toml of a training for its environment,
    /// repeated or with commas;
    /// `pleach workload` names them
    #[arg(long, value_name = "FILE|PRESET", value_delimiter = ',', action = ArgAction::Append, default_value = DEFAULT_WORKLOAD)]
    pub workload: Vec<String>,
    /// Layout of trace files, see docs/workloads.md [default: by the file's first lines]
    #[arg(long, value_name = "FORMAT", value_parser = flag_values::format())]
    pub format: Option<Format>,
    /// Cluster: a description in TOML or JSON, or nodes x GPUs : type, as in 16x8:A100,4x4:V100 [default: the workload's own]
    #[arg(long, value_name = "FILE|NxG:TYPE")]
    pub cluster: Option<PathBuf>,
    /// First day of a trace to take, from 0, or its date (UTC)
    #[arg(long, value_name = "DAY|DATE", value_parser = Day::read)]
    pub from_day: Option<Day>,
    /// Days of a trace to take, above 0, or a length such as 36h
    #[arg(long, value_name = "DAYS", value_parser = day::days)]
    #[serde(deserialize_with = "flag_values::in_files::days")]
    pub days: Option<f64>,
    /// Cut a trace into windows of so many days, above 0, at most 10,000 of them; each becomes a workload of its own, so results
    /// come in more pairs
    #[arg(long, value_name = "DAYS", value_parser = day::days)]
    #[serde(deserialize_with = "flag_values::in_files::days")]
    pub window_days: Option<f64>,
    /// Begin windows of a list with the jobs before them that still ran or waited, with what is left of their work: for evaluate
    /// those of --window-days, for train, distill and index all [default: windows begin in an empty cluster]
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_running: bool,
    /// Make walls of a trace's virtual clusters: each keeps to its own GPUs [default: one shared cluster]
    #[arg(long)]
    pub virtual_clusters: bool,
    /// Part of a list of one's own to take: train and validation are what a training or a distillation on the list sees, test is what
    /// neither sees [default: all of it; of a training's own list test]
    #[arg(long, value_name = "PART", value_parser = flag_values::split())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Jobs to take or to generate, 1 to 10,000,000 [default: the workload's own]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=10_000_000))]
    pub num_jobs: Option<u32>,
    /// Offered load, 0.01 to 10: stretches the times between arrivals so that the mean demand is this part of the cluster that is
    /// played on [default: the workload's own]
    #[arg(long, value_name = "LOAD", value_parser = flag_values::load)]
    pub load: Option<f64>,
}

impl WorkloadSource {
    /// One workload as it is.
    #[must_use]
    pub fn of(name: &str) -> WorkloadSource {
        WorkloadSource {
            workload: vec![name.to_string()],
            ..WorkloadSource::default()
        }
    }

    pub(crate) fn source<'a>(&self, name: &'a str) -> Result<Source<'a>, Error> {
        if let Some(config) = env_named(name)? {
            return match config.workload {
                WorkloadConfig::Generate(generator) => Ok(Source::Generated(self.adjusted(generator))),
                drawn => {
                    let num_jobs = self.num_jobs.map(|num| num as usize);
                    let split = self.split.unwrap_or(Split::Test);
                    let drawn = drawn.resized(num_jobs, self.load).in_split(split);
                    Ok(Source::Drawn(Box::new(drawn)))
                }
            };
        }
        let path = Path::new(name);
        if Profile::is_file(path) || GeneratorConfig::preset(name).is_ok() {
            return Ok(Source::Generated(self.adjusted(GeneratorConfig::preset(name)?)));
        }
        if path.is_file() {
            return Ok(Source::File(path));
        }
        if path.is_dir() || is_path(name) {
            let what = if path.is_dir() {
                "is a folder"
            } else {
                "there is no such file"
            };
            let allowed = "a file with jobs that is there, or a name";
            let hint = "Names of workloads: pleach workload.";
            return Err(Error::config(
                "workload",
                format!("{name} ({what})"),
                allowed,
                hint,
            ));
        }
        let known: Vec<&str> = EnvConfig::ids().chain(GeneratorConfig::names()).collect();
        let allowed = format!("{}, or a file with jobs", known.join(", "));
        let nearest = nearest_of(&known, name).unwrap_or_default();
        let hint = format!("Did you mean {nearest}?");
        let value = format!("{name} (there is no such name or file)");
        Err(Error::config("workload", value, allowed, hint))
    }

    /// Refuses what would only be found out after the work: an unknown name, a workload that is listed twice, and flags
    /// for trace files where no workload is one.
    ///
    /// # Errors
    /// The first of these.
    pub fn check(&self) -> Result<(), Error> {
        self.check_ranges()?;
        let mut places = BTreeSet::new();
        let (mut has_file, mut has_split) = (false, false);
        for name in &self.workload {
            let place = match self.source(name)? {
                Source::Generated(_) => PathBuf::from(name),
                Source::Drawn(drawn) => {
                    has_split |= drawn.is_split();
                    PathBuf::from(name)
                }
                Source::File(path) => {
                    has_file = true;
                    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
                }
            };
            let hint = "It is listed twice: take it out once; --seeds gives more runs of it.";
            let is_again = !places.insert(place);
            Error::refuse_if(is_again, "workload", name, "each workload once", hint)?;
        }
        let split = self
            .split
            .filter(|_| !has_split)
            .map(|split| ("split", split.to_string()));
        match self.trace_flag().or(split) {
            Some((key, value)) if !has_file => Err(Error::config(
                key,
                value,
                format!("none for {}, which is generated", self.workload.join(",")),
                "The flag is for trace files: leave it out, or give a file to --workload.",
            )),
            _ => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), Error> {
        let above_0 = |value: f64| value.is_finite() && value > 0.0;
        let numbers = [
            ("days", self.days, above_0(self.days.unwrap_or(1.0)), "above 0"),
            (
                "window_days",
                self.window_days,
                above_0(self.window_days.unwrap_or(1.0)),
                "above 0",
            ),
            (
                "num_jobs",
                self.num_jobs.map(f64::from),
                (1..=10_000_000).contains(&self.num_jobs.unwrap_or(1)),
                "1 to 10000000",
            ),
            (
                "load",
                self.load,
                (0.01..=10.0).contains(&self.load.unwrap_or(1.0)),
                "0.01 to 10",
            ),
        ];
        for (key, value, fits, allowed) in numbers {
            let hint = "Leave it out for what the workload has.";
            Error::refuse_if(!fits, key, value.unwrap_or_default(), allowed, hint)?;
        }
        Ok(())
    }

    /// The first flag that only trace files have, and its value.
    fn trace_flag(&self) -> Option<(&'static str, String)> {
        let days = |key, value: Option<f64>| value.map(|value| (key, value.to_string()));
        self.format
            .map(|format| ("format", format.word().to_string()))
            .or_else(|| self.from_day.map(|day| ("from_day", day.to_string())))
            .or_else(|| days("days", self.days))
            .or_else(|| days("window_days", self.window_days))
            .or_else(|| {
                let running = ("keep_running", "true".to_string());
                self.keep_running.then_some(running)
            })
            .or_else(|| {
                let walls = ("virtual_clusters", "true".to_string());
                self.virtual_clusters.then_some(walls)
            })
    }

    /// The one workload of a command that takes no more; `done` says what becomes of it, as in `described`.
    ///
    /// # Errors
    /// Several workloads, or one cut into windows; as [`WorkloadSource::check`].
    pub fn only(&self, done: &str) -> Result<&str, Error> {
        self.check()?;
        if let Some(days) = self.window_days {
            let allowed = format!("none here: one workload is {done}");
            let hint = "Give --from-day and --days.";
            return Err(Error::config("window_days", days, allowed, hint));
        }
        Error::refuse_if(
            self.keep_running && done != LEARNED_FROM,
            "keep_running",
            true,
            format_args!("none here: a whole list is {done}, and no job comes before it"),
            "Leave it out.",
        )?;
        match self.workload.as_slice() {
            [name] => Ok(name),
            names => {
                let allowed = format!("one workload, for one is {done}");
                let hint = "Run it once for each.";
                Err(Error::config("workload", names.join(","), allowed, hint))
            }
        }
    }

    fn adjusted(&self, generator: GeneratorConfig) -> GeneratorConfig {
        generator.resized(self.num_jobs.map(|num| num as usize), self.load)
    }

    /// Whether a name means a file with jobs, and no preset or environment.
    #[must_use]
    pub fn is_file(name: &str) -> bool {
        is_list(name)
    }

    fn cluster_override(&self) -> Result<Option<ClusterSpec>, Error> {
        let given = self.cluster.as_deref().map(cluster_of).transpose()?;
        Ok(given.map(|(cluster, _)| cluster))
    }

    /// What was assumed of the cluster that `--cluster` names, in a line; none where it says all.
    ///
    /// # Errors
    /// A cluster that cannot be read.
    pub fn assumed(&self) -> Result<Option<String>, Error> {
        let given = self.cluster.as_deref().map(cluster_of).transpose()?;
        Ok(given.and_then(|(_, assumed)| assumed))
    }

    fn options(&self) -> Result<ImportOptions, Error> {
        let (from_s, dated) = self.from_day.map(Day::begins_s).unzip();
        let to_s = self.days.map(|days| from_s.unwrap_or(0.0) + days * DAY_S);
        Ok(ImportOptions {
            format: self.format,
            cluster: self.cluster_override()?,
            virtual_clusters: self.virtual_clusters,
            from_s,
            to_s,
            dated: dated.unwrap_or(false),
            max_jobs: self.num_jobs.map(|num| num as usize),
        })
    }

    /// One workload of a name and a seed, with what the importer has to say.
    ///
    /// # Errors
    /// A name that is neither known nor a file, or a file that cannot be used.
    pub fn workload(&self, name: &str, seed: Seed) -> Result<(Workload, Option<ImportReport>), Error> {
        match self.source(name)? {
            Source::Generated(generator) => {
                let mut workload = generate(&generator, seed)?;
                workload.name = name.to_string();
                if let Some(cluster) = self.cluster_override()? {
                    workload = workload.on_cluster(cluster)?;
                    // The generator offered it to its own cluster.
                    workload = self.loaded(workload)?;
                }
                Ok((workload, None))
            }
            Source::Drawn(drawn) => {
                let env = EnvConfig {
                    workload: *drawn,
                    ..EnvConfig::default()
                };
                let source = pleach_env::Source::open(&env)?;
                let mut workload = source.workload(&env, seed)?;
                workload.name = name.to_string();
                if let Some(cluster) = self.cluster_override()? {
                    workload = workload.on_cluster(cluster)?;
                }
                Ok((workload, None))
            }
            Source::File(path) => {
                let read = import(path, &self.options()?);
                let (workload, mut report) = read.map_err(|error| FileKind::Jobs.or_other(path, error))?;
                report.notes.extend(self.assumed()?);
                let workload = self.loaded(workload)?;
                let Some(split) = self.split else {
                    return Ok((workload, Some(report)));
                };
                let range = split.range(&workload.jobs);
                report.notes.push(format!(
                    "the part {split}: {} of {} jobs",
                    range.len(),
                    workload.jobs.len()
                ));
                Ok((workload.slice(range.start, range.len()), Some(report)))
            }
        }
    }

    /// The same jobs at the load that was asked for, on the workload's present cluster.
    fn loaded(&self, workload: Workload) -> Result<Workload, Error> {
        let Some(load) = self.load else {
            return Ok(workload);
        };
        workload
            .scaled_load(load / workload.offered_load())
            .map_err(Error::from)
    }

    /// An environment whose episodes are drawn from the workload.
    ///
    /// # Errors
    /// As [`WorkloadSource::only`] and [`WorkloadSource::workload`]; a cluster for generated jobs, which an environment does not
    /// take; a list that is too short to be split.
    pub fn env(&self, scheduling: &SchedulingConfig) -> Result<EnvConfig, Error> {
        if self.workload.len() > 1 {
            return self.env_of_several(scheduling);
        }
        let name = self.only(LEARNED_FROM)?;
        scheduling.check()?;
        if let Some(split) = self.split {
            let allowed =
                "none here: the first part is for training, the next for choosing, the last for judging";
            return Err(Error::config("split", split, allowed, "Leave it out."));
        }
        let workload = match self.source(name)? {
            Source::Generated(generator) => {
                if let Some(path) = &self.cluster {
                    let hint =
                        "Write the jobs with it first (pleach workload write --cluster), and give that file.";
                    let allowed = "none here for generated jobs";
                    return Err(Error::config("cluster", path.display(), allowed, hint));
                }
                WorkloadConfig::Generate(generator)
            }
            Source::Drawn(drawn) => {
                let workload = drawn.in_split(Split::Train);
                let env = EnvConfig {
                    workload,
                    ..EnvConfig::default()
                };
                if env.workload.is_split() {
                    pleach_env::Source::open(&env)?;
                }
                env.workload
            }
            Source::File(path) => {
                let options = ImportOptions {
                    max_jobs: None,
                    ..self.options()?
                };
                // Of a long list this is the most of the work, so it is read once.
                let (list, _) = import(path, &options)?;
                let num_jobs = match self.num_jobs {
                    Some(num_jobs) => num_jobs as usize,
                    None => window_of(&list),
                };
                let (split, load) = (Some(Split::Train), self.load);
                pleach_env::Source::of_list(list, num_jobs, split, load)?;
                WorkloadConfig::File {
                    path: path.to_path_buf(),
                    options: Box::new(options),
                    num_jobs,
                    split,
                    load,
                    keep_running: self.keep_running,
                }
            }
        };
        Ok(EnvConfig {
            workload,
            sim: scheduling.sim(&self.workload),
            candidates: self.candidates(scheduling)?,
            ..EnvConfig::default()
        })
    }

    /// The same for learners from rewards: where the workload is one environment, with its rewards, columns and ends.
    ///
    /// # Errors
    /// As [`WorkloadSource::env`].
    pub fn env_to_learn_in(&self, scheduling: &SchedulingConfig) -> Result<EnvConfig, Error> {
        let env = self.env(scheduling)?;
        let [name] = self.workload.as_slice() else {
            return Ok(env);
        };
        let own = env_named(name)?.unwrap_or_default();
        Ok(EnvConfig {
            workload: env.workload,
            sim: env.sim,
            candidates: env.candidates,
            ..own
        })
    }

    /// What policies that read features choose among on these workloads. It is what the first of them offers where it is an
    /// environment (sizes, cores), else the default; and to share GPUs where the cluster can.
    ///
    /// # Errors
    /// Settings of a training that cannot be read.
    pub fn candidates(&self, scheduling: &SchedulingConfig) -> Result<CandidateConfig, Error> {
        let own = self.workload.first().map(|name| env_named(name)).transpose()?;
        let mut candidates = own.flatten().unwrap_or_default().candidates;
        let can = scheduling.sim(&self.workload).capabilities;
        let shares = can.actions().contains(ActionKind::Share);
        candidates.actions = candidates.actions.set(ActionKind::Share, shares);
        Ok(candidates)
    }

    /// An environment whose episodes are of several kinds in turn by chance.
    fn env_of_several(&self, scheduling: &SchedulingConfig) -> Result<EnvConfig, Error> {
        let mut parts = Vec::new();
        let mut first = None;
        for name in &self.workload {
            let alone = WorkloadSource {
                workload: vec![name.clone()],
                ..self.clone()
            };
            let env = alone.env(scheduling)?;
            parts.push(env.workload.clone());
            first.get_or_insert(env);
        }
        let workload = WorkloadConfig::Mixture(parts);
        Ok(EnvConfig {
            workload,
            ..first.unwrap_or_default()
        })
    }
}

/// Jobs of a window where no number is given: 300, or a quarter of the smallest part of a list that is shorter.
fn window_of(list: &Workload) -> usize {
    (Split::num_jobs_min(&list.jobs) / 4).clamp(5, 300)
}

/// An environment by id with another load and number of jobs.
///
/// # Errors
/// An unknown id.
pub fn env_of(id: &str, num_jobs: Option<u32>, load: Option<f64>) -> Result<EnvConfig, Error> {
    let mut env = EnvConfig::registered(id)?;
    resize(&mut env, num_jobs, load);
    Ok(env)
}

/// Gives an environment another load and number of jobs, where they are given.
pub fn resize(env: &mut EnvConfig, num_jobs: Option<u32>, load: Option<f64>) {
    let num_jobs = num_jobs.map(|num| num as usize);
    env.workload = env.workload.clone().resized(num_jobs, load);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_kinds_are_episodes_of_several_kinds() {
        let both = WorkloadSource {
            workload: vec!["philly-like".into(), "gavel-multi".into()],
            num_jobs: Some(20),
            load: Some(1.5),
            ..WorkloadSource::default()
        };
        let env = both.env(&SchedulingConfig::default()).unwrap();
        let WorkloadConfig::Mixture(parts) = &env.workload else {
            panic!("{:?}", env.workload);
        };
        for (part, name) in parts.iter().zip(&both.workload) {
            let alone = WorkloadSource {
                workload: vec![name.clone()],
                ..both.clone()
            };
            assert_eq!(*part, alone.env(&SchedulingConfig::default()).unwrap().workload);
        }
        assert_eq!(parts.len(), 2);
    }

    fn source(name: &str) -> WorkloadSource {
        WorkloadSource {
            workload: vec![name.to_string()],
            ..WorkloadSource::default()
        }
    }

    #[test]
    fn candidates_are_those_of_the_environment_and_elsewhere_the_default() {
        let plain = SchedulingConfig::default();
        for id in EnvConfig::ids() {
            let own = EnvConfig::registered(id).unwrap().candidates;
            assert_eq!(source(id).candidates(&plain).unwrap(), own, "{id}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, "[env.candidates]\nheads = 4\ncores = true\n").unwrap();
        let trained = source(path.to_str().unwrap()).candidates(&plain).unwrap();
        assert!(trained.heads == 4 && trained.actions.contains(ActionKind::GrantCores));
        let shared = SchedulingConfig {
            sharing: Some(pleach_scheduler::cluster::Sharing::Mps),
            ..plain.clone()
        };
        for list in [source("philly-like"), WorkloadSource::default()] {
            assert_eq!(list.candidates(&plain).unwrap(), CandidateConfig::default());
            let actions = CandidateConfig::default().actions.with(ActionKind::Share);
            assert_eq!(list.candidates(&shared).unwrap().actions, actions);
        }
    }

    #[test]
    fn a_name_that_is_misspelt_is_refused_with_the_nearest_one() {
        for (name, nearest) in [
            ("gavelmulti", "gavel-multi"),
            ("Pleach/Sinergy-v1", "Pleach/Synergy-v1"),
        ] {
            let text = source(name).check().unwrap_err().to_string();
            assert!(text.contains(&format!("Did you mean {nearest}?")), "{text}");
        }
    }

    #[test]
    fn the_load_of_generated_jobs_is_that_on_the_cluster_that_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("twice.toml");
        let (own, _) = source("philly-like").workload("philly-like", Seed(1)).unwrap();
        let mut cluster = own.cluster.clone();
        cluster.node_groups[0].count *= 2;
        std::fs::write(&path, toml::to_string(&cluster).unwrap()).unwrap();
        let args = WorkloadSource {
            cluster: Some(path),
            num_jobs: Some(50),
            load: Some(0.7),
            ..source("philly-like")
        };
        let (workload, _) = args.workload("philly-like", Seed(1)).unwrap();
        assert!(workload.cluster.num_gpus() > own.cluster.num_gpus());
        assert!((workload.offered_load() - 0.7).abs() < 1e-3);
    }
}
