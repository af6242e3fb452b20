//! What a question is about: the tree, the list, a moment; and words that all answers use.

use std::sync::Arc;

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::tree::{TreePolicy, quantity};
use pleach_scheduler::{JobId, Time};

use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::evaluation::EvaluationConfig;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::workload_source::WorkloadSource;
use crate::worlds::jobs::JobsWorld;

/// Which tree, on which list.
#[derive(Clone, Debug, Default)]
pub struct ExplainConfig {
    /// The tree, as `pleach evaluate --policy` takes it.
    pub tree: String,
    /// Which jobs on which cluster.
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows.
    pub scheduling: SchedulingConfig,
    /// Root of all randomness; the list is the first of an evaluation with this seed.
    pub seed: u64,
}

/// Which decision is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// The first one at this time or later, s.
    Time(f64),
    /// The one with this number, from 1.
    Number(u64),
}

/// The answer to a question: a report, or that there is nothing to explain.
pub(super) enum Told<R> {
    /// A report.
    Report(Box<R>),
    /// There is none.
    Nothing {
        /// Why not.
        reason: String,
    },
}

/// A list, and how it is simulated.
pub(super) struct ListOf {
    pub(super) workload: Arc<Workload>,
    pub(super) sim: SimConfig,
}

/// The tree and the list.
pub(super) struct Subject {
    pub(super) policy: TreePolicy,
    list: ListOf,
}

impl std::ops::Deref for Subject {
    type Target = ListOf;

    fn deref(&self) -> &ListOf {
        &self.list
    }
}

impl Subject {
    pub(super) fn open(config: &ExplainConfig, note: &mut dyn FnMut(String)) -> Result<Subject, Error> {
        let opened = DOOR.open(&config.tree)?;
        let tree = opened.iter().find_map(|spec| Some((spec, spec.tree_policy()?)));
        let Some((spec, policy)) = tree else {
            return Err(Error::config(
                "tree",
                &config.tree,
                "a policy file with a tree or a formula, or a folder with one",
                "pleach distill --teacher makes a tree of any policy.",
            ));
        };
        Ok(Subject {
            policy: policy.clone(),
            list: ListOf::open(config, spec, note)?,
        })
    }
}

impl ListOf {
    pub(super) fn open(
        config: &ExplainConfig,
        spec: &PolicySpec,
        note: &mut dyn FnMut(String),
    ) -> Result<ListOf, Error> {
        let evaluation = EvaluationConfig {
            workload: config.workload.clone(),
            scheduling: config.scheduling.clone(),
            seeds: 1,
            seed: config.seed,
            ..EvaluationConfig::default()
        };
        let evaluation = JobsWorld::of(&evaluation, vec![spec.clone()])?;
        let mut instances = evaluation.instances(note)?;
        let (Some(instance), 0) = (instances.pop(), instances.len()) else {
            return Err(Error::config(
                "workload",
                config.workload.workload.join(","),
                "one list of jobs",
                "Give one name, and for a window of a trace --from-day and --days instead of --window-days.",
            ));
        };
        let sim = SimConfig {
            seed: instance.seed,
            ..evaluation.sim
        };
        Ok(ListOf {
            workload: instance.workload,
            sim,
        })
    }

    /// The job of a name.
    pub(super) fn find(&self, key: &str, name: &str) -> Result<JobId, Error> {
        let hint =
            || Ok("The trace file, or the list that `pleach workload write` makes, has the ids.".to_string());
        self.find_or(key, name, hint)
    }

    /// The same with another hint where there is none.
    pub(super) fn find_or(
        &self,
        key: &str,
        name: &str,
        hint: impl FnOnce() -> Result<String, Error>,
    ) -> Result<JobId, Error> {
        let jobs = &self.workload.jobs;
        if let Some(row) = jobs.iter().position(|job| job.id == name) {
            return Ok(JobId(row as u32));
        }
        let end = |job: Option<&pleach_env::workload::JobSpec>| {
            job.map_or("none", |job| job.id.as_str()).to_string()
        };
        Err(Error::config(
            key,
            name,
            format!(
                "the id of one of the list's {} jobs, {} to {}",
                jobs.len(),
                end(jobs.first()),
                end(jobs.last())
            ),
            hint()?,
        ))
    }

    pub(super) fn name(&self, job: JobId) -> &str {
        let found = self.workload.jobs.get(job.index());
        found.map_or("?", |job| job.id.as_str())
    }
}

/// How long a job has waited: `after 3,600 s (60.0 min) of waiting`.
pub(super) fn waited(cluster: &Cluster, job: JobId) -> String {
    match cluster.now() - cluster.job(job).submit {
        Time::ZERO => "as soon as it came".into(),
        wait => format!("after {} of waiting", quantity(wait.as_secs_f64(), "s")),
    }
}

/// A time of the list in words.
pub(super) fn clock(time: Time) -> String {
    quantity(time.as_secs_f64(), "s")
}
