//! What the flags about workloads mean: bouts to compare on, and an environment to train in.

use std::path::Path;

use pleach_env::config::{EnvConfig, WorkloadConfig};
use pleach_env::error::Error as EnvError;
use pleach_env::seed::Seed;
use pleach_env::simulate::SimConfig;
use pleach_env::workload::Workload;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::workload::import::{ImportOptions, ImportReport, import};
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::spec::ClusterSpec;

use crate::atomic_file::{read_json, read_toml};
use crate::cli::evaluate::{SchedulingArgs, WorkloadSource};
use crate::contest::Bout;
use crate::error::Error;

/// Largest cluster description, bytes.
const CLUSTER_BYTES_MAX: u64 = 1 << 20;
/// Most windows that a list may be cut into.
const NUM_WINDOWS_MAX: usize = 10_000;
/// Seconds of a day.
pub(crate) const DAY_S: f64 = 86_400.0;

/// Turns an environment's error into ours.
#[must_use]
pub fn env_error(error: EnvError) -> Error {
    match error {
        EnvError::Config(config) => Error::Config(Box::new(config)),
        other => Error::Data {
            file: Path::new("workload").to_path_buf(),
            line: 0,
            column: 0,
            message: other.to_string(),
        },
    }
}

/// What `workload write` puts beside a list: the cluster, and model classes that are not asked for here.
#[derive(Debug, serde::Deserialize)]
struct Beside {
    cluster: ClusterSpec,
}

/// Where jobs come from, once the name is known to be a preset, an environment or a file.
#[derive(Clone, Debug)]
enum Source<'a> {
    Generated(GeneratorConfig),
    File(&'a Path),
}

impl WorkloadSource {
    fn source<'a>(&self, name: &'a str) -> Result<Source<'a>, Error> {
        if let Ok(config) = EnvConfig::registered(name) {
            return match config.workload {
                WorkloadConfig::Generate(generator) => Ok(Source::Generated(self.adjusted(generator))),
                WorkloadConfig::File { .. } | WorkloadConfig::Mixture(_) => {
                    Err(Error::Failed(format!("{name} has no generator")))
                }
            };
        }
        if let Ok(generator) = GeneratorConfig::preset(name) {
            return Ok(Source::Generated(self.adjusted(generator)));
        }
        let path = Path::new(name);
        if path.is_file() {
            return Ok(Source::File(path));
        }
        let known: Vec<&str> = EnvConfig::ids().chain(GeneratorConfig::PRESETS).collect();
        let allowed = format!("{}, or a file with jobs", known.join(", "));
        Err(Error::config(
            "workload",
            name,
            allowed,
            "There is no such file; see docs/workloads.md.",
        ))
    }

    fn adjusted(&self, generator: GeneratorConfig) -> GeneratorConfig {
        generator.resized(self.num_jobs.map(|num| num as usize), self.load)
    }

    fn cluster_override(&self) -> Result<Option<ClusterSpec>, Error> {
        let Some(path) = &self.cluster else {
            return Ok(None);
        };
        let spec: ClusterSpec = if path.extension().is_some_and(|extension| extension == "json") {
            read_json(path, CLUSTER_BYTES_MAX)?
        } else if read_toml::<toml::Table>(path, CLUSTER_BYTES_MAX)?.contains_key("cluster") {
            read_toml::<Beside>(path, CLUSTER_BYTES_MAX)?.cluster
        } else {
            read_toml(path, CLUSTER_BYTES_MAX)?
        };
        spec.validate().map_err(|error| Error::Config(Box::new(error)))?;
        Ok(Some(spec))
    }

    fn options(&self) -> Result<ImportOptions, Error> {
        let from_s = self.from_day.map(|day| day * DAY_S);
        let to_s = self.days.map(|days| from_s.unwrap_or(0.0) + days * DAY_S);
        Ok(ImportOptions {
            format: self.format,
            cluster: self.cluster_override()?,
            virtual_clusters: self.virtual_clusters,
            from_s,
            to_s,
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
                let mut workload = generate(&generator, seed).map_err(env_error)?;
                workload.name = name.to_string();
                if let Some(cluster) = self.cluster_override()? {
                    workload.cluster = cluster;
                    workload.validate().map_err(env_error)?;
                    // The generator offered it to its own cluster.
                    workload = self.loaded(workload)?;
                }
                Ok((workload, None))
            }
            Source::File(path) => {
                let (workload, report) = import(path, &self.options()?).map_err(env_error)?;
                Ok((self.loaded(workload)?, Some(report)))
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
            .map_err(env_error)
    }

    /// All bouts of a comparison: each name with each seed. A file gives one bout, or one for each window; with
    /// estimates, outcomes, failures or restarts that are drawn, each of them with each seed. `note` is told what importers mended.
    ///
    /// # Errors
    /// As [`WorkloadSource::workload`].
    pub fn bouts(
        &self,
        sim: &SimConfig,
        seeds: &[Seed],
        note: &mut dyn FnMut(String),
    ) -> Result<Vec<Bout>, Error> {
        let mut bouts = Vec::new();
        let drawn = matches!(sim.estimates, EstimateModel::LogNormal { .. })
            || sim.outcomes.is_some()
            || sim.capacity.node_mtbf_s.is_some()
            || sim.capabilities.overheads == Some(Overheads::TaccEmpirical);
        for name in &self.workload {
            if let Source::Generated(_) = self.source(name)? {
                for seed in seeds {
                    let (workload, _) = self.workload(name, *seed)?;
                    bouts.push(Bout {
                        workload,
                        seed: seed.0,
                    });
                }
                continue;
            }
            let (whole, report) = self.workload(name, Seed(0))?;
            if let Some(report) = report {
                note(report.to_string());
            }
            let windows = self.windows(whole)?;
            for seed in if drawn { seeds } else { &seeds[..1] } {
                bouts.extend(windows.iter().map(|workload| Bout {
                    workload: workload.clone(),
                    seed: seed.0,
                }));
            }
        }
        Ok(bouts)
    }

    /// Cuts a list into windows of equal length; windows without jobs are left out.
    fn windows(&self, whole: Workload) -> Result<Vec<Workload>, Error> {
        let (Some(days), Some(first), Some(last)) = (self.window_days, whole.jobs.first(), whole.jobs.last())
        else {
            return Ok(vec![whole]);
        };
        let (length_s, span_s) = (days * DAY_S, whole.arrival_span_s());
        let (first_s, last_s) = (first.submit.as_secs_f64(), last.submit.as_secs_f64());
        // A window does not hold its end, so a job that comes at the end of the last begins another.
        let num = (span_s / length_s).floor() + 1.0;
        if num > NUM_WINDOWS_MAX as f64 {
            let shortest = (span_s / DAY_S / (NUM_WINDOWS_MAX - 1) as f64 * 1e4).ceil() / 1e4;
            return Err(Error::config(
                "window_days",
                days,
                format!("at most {NUM_WINDOWS_MAX} windows, and these are {num}"),
                format!("Give --window-days {shortest} or more."),
            ));
        }
        let edge_s = |number: usize| first_s + number as f64 * length_s;
        let cut = |number: usize| {
            let mut window = whole.window(edge_s(number), edge_s(number + 1));
            window.name = format!("{}#{number}", whole.name);
            window
        };
        // One more where the division was rounded down: then the last job comes after all these.
        let num = num as usize + usize::from(edge_s(num as usize) <= last_s);
        Ok((0..num)
            .map(cut)
            .filter(|window| !window.jobs.is_empty())
            .collect())
    }

    /// An environment whose episodes are drawn from the first workload.
    ///
    /// # Errors
    /// As [`WorkloadSource::workload`].
    pub fn env(&self, scheduling: &SchedulingArgs) -> Result<EnvConfig, Error> {
        let name = self.workload.first().map_or("Pleach/Philly-v0", String::as_str);
        let workload = match self.source(name)? {
            Source::Generated(generator) => WorkloadConfig::Generate(generator),
            Source::File(path) => WorkloadConfig::File {
                path: path.to_path_buf(),
                options: Box::new(ImportOptions {
                    max_jobs: None,
                    ..self.options()?
                }),
                num_jobs: self.num_jobs.map_or(300, |num| num as usize),
            },
        };
        let sim = scheduling.sim(self);
        let mut config = EnvConfig {
            workload,
            sim,
            ..EnvConfig::default()
        };
        config.candidates.share = config.sim.capabilities.sharing != Sharing::Off;
        Ok(config)
    }
}

/// `num` seeds that follow from one, in a stream of their own: training, validation and test never share one.
#[must_use]
pub fn seeds(root: u64, stream: &str, num: usize) -> Vec<Seed> {
    (0..num as u64)
        .map(|index| Seed(root).child(stream, index))
        .collect()
}

/// The workloads of an environment for these seeds.
///
/// # Errors
/// Where a workload cannot be drawn.
pub fn episodes(env: &EnvConfig, seeds: &[Seed]) -> Result<Vec<Bout>, Error> {
    let source = pleach_env::config::Source::open(env).map_err(env_error)?;
    let bout = |seed: &Seed| {
        let workload = source.workload(env, *seed).map_err(env_error)?;
        Ok(Bout {
            workload,
            seed: seed.0,
        })
    };
    seeds.iter().map(bout).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::ids::Time;

    fn source(name: &str) -> WorkloadSource {
        WorkloadSource {
            workload: vec![name.to_string()],
            ..WorkloadSource::default()
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

    /// A list of one-GPU jobs of 60 s that come at these times, s, on eight GPUs.
    fn list_of(submit_s: &[f64]) -> Workload {
        let (mut workload, _) = WorkloadSource {
            num_jobs: Some(submit_s.len() as u32),
            ..source("philly-like")
        }
        .workload("philly-like", Seed(1))
        .unwrap();
        for (job, at_s) in workload.jobs.iter_mut().zip(submit_s) {
            job.submit = Time::from_secs_f64(*at_s);
        }
        workload
    }

    #[test]
    fn windows_hold_every_job_also_where_the_last_comes_at_the_end_of_one() {
        let days = |window_days: f64| WorkloadSource {
            window_days: Some(window_days),
            ..WorkloadSource::default()
        };
        let windows = days(1.0).windows(list_of(&[0.0, 86_400.0])).unwrap();
        let jobs: Vec<usize> = windows.iter().map(|window| window.jobs.len()).collect();
        assert_eq!(jobs, [1, 1]);
        assert_eq!(windows[1].jobs[0].submit, Time::ZERO);
        // No length of a window loses a job to rounding.
        for window_days in [0.1, 0.3, 0.7, 1.0 / 3.0, 5.0] {
            let times: Vec<f64> = (0..40)
                .map(|number| 17.3 + f64::from(number) * window_days * 86_400.0)
                .collect();
            let windows = days(window_days).windows(list_of(&times)).unwrap();
            let num: usize = windows.iter().map(|window| window.jobs.len()).sum();
            assert_eq!(num, 40, "{window_days}");
        }
        let refused = days(0.001).windows(list_of(&[0.0, 8_640_000.0])).unwrap_err();
        assert!(
            refused.to_string().contains("these are 100001") && refused.to_string().contains("0.0101"),
            "{refused}"
        );
        let fewest = days(0.0101).windows(list_of(&[0.0, 8_640_000.0])).unwrap();
        assert_eq!(fewest.len(), 2);
    }
}
