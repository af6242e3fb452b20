//! What the cluster is asked to do: a list of jobs, the cluster they were meant for, and how fast each kind of job runs.
//!
//! A [`Workload`] comes from a file ([`mod@file`]), from a published list of jobs ([`import`]) or from a generator
//! ([`mod@generate`]); all three end in the same checked, sorted table, so that nothing downstream knows the difference.
//! What the scheduler *believes* about run times is a separate matter ([`estimates`]).
//!
//! Refused: jobs that can never run, run times that are not positive, ids that repeat, a clock that runs backwards.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod classes;
pub mod cluster;
mod columns;
pub mod embedded;
pub mod estimates;
pub mod file;
mod gavel_speeds;
pub mod generate;
mod history;
pub mod import;
pub mod normal;
mod observed;
pub mod plans;
mod seed;
mod select;

pub use columns::Columns;
pub use generate::{GeneratorConfig, generate};
pub use observed::Observed;
pub use pleach_scheduler::Problem as Error;
pub use seed::Seed;

use std::collections::BTreeSet;

use pleach_scheduler::cluster::{Capabilities, Cluster};
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::{ClassId, Time};
use pleach_tables as table;
use pleach_tables::is_printable;
use serde::{Deserialize, Serialize};

/// Latest submission, s: the year 2033 in Unix time, below which a float still names every microsecond.
pub const SUBMIT_S_MAX: f64 = 2e9;
/// Longest run time and estimate, s: 31 years.
pub const RUN_TIME_S_MAX: f64 = 1e9;
/// Shortest run time, s: one tick of the simulated clock.
pub const RUN_TIME_S_MIN: f64 = 1e-6;
/// Most work that a workload may hold, s, each job at its slowest: a tenth of the 292,000 years that the clock can count, so
/// that restarts and sharing have room.
pub(crate) const TOTAL_S_MAX: f64 = 9e11;
/// Most jobs that a workload may hold.
pub(crate) const NUM_JOBS_MAX: usize = pleach_tables::ROWS_MAX;

/// Jobs, the cluster they run on and the model classes they belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name for reports, for example the file's stem.
    pub name: String,
    /// The cluster.
    pub cluster: ClusterSpec,
    /// Model classes; a job names one by index. At least one.
    pub classes: Vec<ModelClass>,
    /// Jobs, sorted by submission; equal times keep the order of the source. `[num_jobs]`
    pub jobs: Vec<JobSpec>,
}

/// One job: a gang of GPUs for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Name, unique in the workload.
    pub id: String,
    /// Time of submission, 0 or later.
    pub submit: Time,
    /// GPUs that the gang needs at once.
    pub num_gpus: u32,
    /// True run time, s, above 0: alone, on the tightest placement, on the reference GPU type.
    pub run_time_s: f64,
    /// What the user asked for (the time limit), s, where the source has it.
    pub estimate_s: Option<f64>,
    /// Index into [`ClusterSpec::tenants`].
    pub tenant: u16,
    /// Index into [`Workload::classes`].
    pub class: u16,
    /// The user that submitted it, where known.
    pub user: Option<String>,
    /// How it ended in the source.
    pub outcome: Outcome,
    /// What it asks for besides the number of its GPUs.
    #[serde(default)]
    pub resources: Resources,
    /// How it went at its site, where the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Box<Observed>>,
}

impl JobSpec {
    /// A job on whole GPUs of the first tenant and class, without an estimate: submitted at `submit`, a gang of `num_gpus` for
    /// `run_time_s` s.
    #[must_use]
    pub fn new(id: impl Into<String>, submit: Time, num_gpus: u32, run_time_s: f64) -> JobSpec {
        JobSpec {
            id: id.into(),
            submit,
            num_gpus,
            run_time_s,
            estimate_s: None,
            tenant: 0,
            class: 0,
            user: None,
            resources: Resources::WHOLE_GPU,
            outcome: Outcome::Unknown,
            observed: None,
        }
    }

    /// GPUs that the job takes up while it runs, shares of a GPU counted as such.
    #[must_use]
    pub fn gpus(&self) -> f64 {
        f64::from(self.num_gpus) * (f64::from(self.resources.gpu_milli) / 1000.0)
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It did what it was meant to do.
    Completed,
    /// It ended with an error of its own or of the hardware.
    Failed,
    /// Its user or a time limit ended it.
    Killed,
    /// The source does not say.
    #[default]
    Unknown,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Outcome; 4] = [
        Outcome::Completed,
        Outcome::Failed,
        Outcome::Killed,
        Outcome::Unknown,
    ];

    /// The word used in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Killed => "killed",
            Outcome::Unknown => "unknown",
        }
    }
}

impl Workload {
    /// Checks everything that the simulator relies on.
    ///
    /// # Errors
    /// The first job or key that is wrong, with its value, what is allowed and how to mend it.
    pub fn validate(&self) -> Result<(), Error> {
        self.cluster.validate()?;
        Error::refuse_if(
            self.classes.is_empty() || self.classes.len() > usize::from(u16::MAX),
            "classes",
            format_args!("{} classes", self.classes.len()),
            "1 to 65,535 classes",
            "one class with speed 1 will do",
        )?;
        for class in &self.classes {
            self.cluster.validate_class(class)?;
        }
        Error::refuse_if(
            self.jobs.len() > NUM_JOBS_MAX,
            "jobs",
            format_args!("{} jobs", self.jobs.len()),
            "at most 10,000,000",
            "take a window",
        )?;
        let gangs = GangLimits::new(&self.cluster, &self.classes);
        let mut resources = Feasible::new(self);
        let mut ids = BTreeSet::new();
        let mut last = Time::ZERO;
        let slowest: Vec<f64> = self.classes.iter().map(slowest_rate).collect();
        let mut total_s = 0.0;
        for (index, job) in self.jobs.iter().enumerate() {
            self.validate_job(index, job, &gangs)?;
            resources.check(self, index, job)?;
            if job.submit < last {
                let value = format!("{} s", job.submit.as_secs_f64());
                let allowed = format!("{} s or later", last.as_secs_f64());
                return Err(job_error(
                    index,
                    "submit",
                    value,
                    &allowed,
                    "sort the jobs by submission",
                ));
            }
            last = job.submit;
            // One after the other, each at its slowest, they must not outlast the clock.
            total_s += job.run_time_s / slowest[usize::from(job.class)];
            if total_s > TOTAL_S_MAX {
                let value = format!("{total_s:.3e} s of work up to here on the slowest GPUs");
                let allowed = format!("{TOTAL_S_MAX:.0e} s");
                return Err(job_error(
                    index,
                    "run_time_s",
                    value,
                    &allowed,
                    "take fewer or shorter jobs",
                ));
            }
            if !ids.insert(job.id.as_str()) {
                return Err(job_error(
                    index,
                    "id",
                    job.id.clone(),
                    "an id not used before",
                    "rename one",
                ));
            }
        }
        Ok(())
    }

    fn validate_job(&self, index: usize, job: &JobSpec, gangs: &GangLimits) -> Result<(), Error> {
        let bad = |key: &str, value: String, allowed: &str, hint: &str| {
            Err(job_error(index, key, value, allowed, hint))
        };
        if job.id.is_empty() || !is_printable(&job.id) {
            return bad(
                "id",
                format!("{:?}", job.id),
                "1 to 256 printable characters",
                "rename the job",
            );
        }
        if let Some(user) = &job.user
            && (user.is_empty() || !is_printable(user))
        {
            return bad(
                "user",
                format!("{user:?}"),
                "1 to 256 printable characters",
                "leave it out",
            );
        }
        if job.submit < Time::ZERO || job.submit.as_secs_f64() > SUBMIT_S_MAX {
            let value = format!("{} s", job.submit.as_secs_f64());
            return bad(
                "submit",
                value,
                "0 to 2e9 s",
                "start the clock at the first submission",
            );
        }
        if !is_span(job.run_time_s) {
            return bad(
                "run_time_s",
                job.run_time_s.to_string(),
                "1e-6 to 1e9 s",
                "remove the job",
            );
        }
        if let Some(estimate_s) = job.estimate_s
            && !is_span(estimate_s)
        {
            return bad(
                "estimate_s",
                estimate_s.to_string(),
                "1e-6 to 1e9 s",
                "leave it out",
            );
        }
        if usize::from(job.tenant) >= self.cluster.tenants.len() {
            let allowed = format!("0 to {}", self.cluster.tenants.len() - 1);
            return bad(
                "tenant",
                job.tenant.to_string(),
                &allowed,
                "declare it in the cluster",
            );
        }
        if usize::from(job.class) >= self.classes.len() {
            let allowed = format!("0 to {}", self.classes.len() - 1);
            return bad("class", job.class.to_string(), &allowed, "declare it in classes");
        }
        job.resources.validate(format_args!("jobs[{index}].resources"))?;
        let tasks = job.resources.tasks;
        tasks.validate_gang(format_args!("jobs[{index}]"), job.num_gpus)?;
        let elastic = self.classes[usize::from(job.class)].elastic;
        if elastic.is_some() && !tasks.is_any() {
            let hint = "a job that may have other numbers of GPUs is cut as one likes";
            let allowed = "no tasks: the class is elastic";
            return bad("resources.tasks", format!("{tasks:?}"), allowed, hint);
        }
        if elastic.is_some_and(|elastic| !elastic.can_hold(job.num_gpus)) {
            let allowed =
                "a number of GPUs over which its class can share out its batch, at most its gpus_max";
            return bad(
                "num_gpus",
                job.num_gpus.to_string(),
                allowed,
                "see elastic.profile of the class",
            );
        }
        let most = gangs.most(job.tenant, job.class);
        if most == 0 {
            let allowed =
                "no gang at all: the GPU types of its class have no nodes, or its tenant has no quota";
            let hint = "add nodes, give the tenant a quota, or allow borrowing";
            return bad("num_gpus", job.num_gpus.to_string(), allowed, hint);
        }
        if job.num_gpus == 0 || job.num_gpus > most {
            let allowed = format!("1 to {most}");
            let hint = "a gang runs on one GPU type and, without borrowing, within its tenant's quota";
            return bad("num_gpus", job.num_gpus.to_string(), &allowed, hint);
        }
        Ok(())
    }
}

/// Asks the cluster itself whether jobs that want more than whole GPUs can ever run on it.
struct Feasible {
    /// Built for the first job that needs it; most workloads have none.
    cluster: Option<Cluster>,
    quotas: Option<Vec<u32>>,
}

impl Feasible {
    fn new(workload: &Workload) -> Feasible {
        let tenants = workload.cluster.tenants.iter().map(|tenant| tenant.quota_gpus);
        Feasible {
            cluster: None,
            quotas: (!workload.cluster.borrowing).then(|| tenants.collect()),
        }
    }

    fn check(&mut self, workload: &Workload, index: usize, job: &JobSpec) -> Result<(), Error> {
        if job.resources == Resources::WHOLE_GPU {
            return Ok(());
        }
        let cluster = match &mut self.cluster {
            Some(cluster) => cluster,
            none => none.insert(Cluster::new(
                &workload.cluster,
                &workload.classes,
                Capabilities::DEFAULT,
            )?),
        };
        let most = cluster.largest_gang(ClassId(job.class), &job.resources);
        let milli = u64::from(job.resources.gpu_milli) * u64::from(job.num_gpus);
        let has_quota = |quotas: &Vec<u32>| milli <= u64::from(quotas[usize::from(job.tenant)]) * 1000;
        if job.num_gpus > most || !self.quotas.as_ref().is_none_or(has_quota) {
            let value = format!("{} GPUs with {:?} each", job.num_gpus, job.resources);
            let allowed =
                format!("at most {most} such GPUs on one type of this cluster, within the tenant's quota");
            let hint = "CPU and memory come from the node of the GPU; enlarge the nodes or lower the request";
            return Err(job_error(index, "resources", value, &allowed, hint));
        }
        Ok(())
    }
}

/// The largest gang that each tenant and class can ever start.
pub(crate) struct GangLimits {
    /// Largest pool of one usable GPU type. `[class]`
    class: Vec<u32>,
    /// Quota where it binds, else no limit. `[tenant]`
    tenant: Vec<u32>,
}

impl GangLimits {
    pub(crate) fn new(cluster: &ClusterSpec, classes: &[ModelClass]) -> GangLimits {
        let pools = num_gpus_by_type(cluster);
        let class = classes
            .iter()
            .map(|class| {
                let usable = pools.iter().zip(&class.speed).filter(|(_, speed)| **speed > 0.0);
                usable.map(|(num_gpus, _)| *num_gpus).max().unwrap_or(0)
            })
            .collect();
        let limit = |quota_gpus| if cluster.borrowing { u32::MAX } else { quota_gpus };
        let tenant = cluster.tenants.iter().map(|tenant| limit(tenant.quota_gpus));
        GangLimits {
            class,
            tenant: tenant.collect(),
        }
    }

    pub(crate) fn most(&self, tenant: u16, class: u16) -> u32 {
        self.class[usize::from(class)].min(self.tenant[usize::from(tenant)])
    }
}

/// The slowest rate of a class on any type that it can use, its loosest placement included.
fn slowest_rate(class: &ModelClass) -> f64 {
    let speeds = class.speed.iter().copied().filter(|speed| *speed > 0.0);
    let loosest = class.locality.more_nodes.min(class.locality.cross_rack);
    speeds.fold(f64::INFINITY, f64::min) * loosest
}

/// GPUs of each type. `[num_gpu_types]`
#[must_use]
pub fn num_gpus_by_type(cluster: &ClusterSpec) -> Vec<u32> {
    let of = |name: &str| {
        let groups = cluster.node_groups.iter().filter(|group| group.gpu_type == name);
        groups.fold(0_u32, |sum, group| {
            sum.saturating_add(group.count.saturating_mul(group.gpus_per_node))
        })
    };
    cluster.gpu_types.iter().map(|gpu| of(&gpu.name)).collect()
}

pub(crate) fn is_span(seconds: f64) -> bool {
    (RUN_TIME_S_MIN..=RUN_TIME_S_MAX).contains(&seconds)
}

pub(crate) fn config(key: impl Into<String>, value: impl ToString, allowed: &str, hint: &str) -> Error {
    Error::new(key, value, allowed, hint)
}

fn job_error(index: usize, key: &str, value: String, allowed: &str, hint: &str) -> Error {
    config(format!("jobs[{index}].{key}"), value, allowed, hint)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pleach_scheduler::cluster_spec::{LocalityFactors, TenantSpec};

    pub(crate) fn class_of(num_types: usize) -> ModelClass {
        ModelClass {
            name: "any".into(),
            speed: vec![1.0; num_types],
            locality: LocalityFactors::NONE,
            ..ModelClass::default()
        }
    }

    pub(crate) fn job(id: &str, submit_s: f64, num_gpus: u32, run_time_s: f64) -> JobSpec {
        JobSpec::new(id, Time::from_secs_f64(submit_s), num_gpus, run_time_s)
    }

    pub(crate) fn workload(jobs: Vec<JobSpec>) -> Workload {
        Workload {
            name: "test".into(),
            cluster: ClusterSpec::uniform(2, 4, 2),
            classes: vec![class_of(1)],
            jobs,
        }
    }

    fn refusal(change: impl FnOnce(&mut Workload)) -> String {
        let mut workload = workload(vec![job("a", 0.0, 1, 5.0), job("b", 1.0, 8, 5.0)]);
        workload.validate().unwrap();
        change(&mut workload);
        workload.validate().unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_impossible_job_is_refused_by_name() {
        assert!(refusal(|w| w.jobs[1].num_gpus = 9).contains("jobs[1].num_gpus = 9: allowed is 1 to 8"));
        assert!(refusal(|w| w.jobs[0].num_gpus = 0).contains("num_gpus"));
        assert!(refusal(|w| w.jobs[0].run_time_s = f64::NAN).contains("run_time_s = NaN"));
        assert!(refusal(|w| w.jobs[0].run_time_s = 0.0).contains("run_time_s"));
        assert!(refusal(|w| w.jobs[0].estimate_s = Some(-1.0)).contains("estimate_s"));
        assert!(refusal(|w| w.jobs[1].id = "a".into()).contains("not used before"));
        assert!(refusal(|w| w.jobs[0].id = "a\nb".into()).contains("printable"));
        assert!(refusal(|w| w.jobs[0].user = Some(String::new())).contains("user"));
        assert!(refusal(|w| w.jobs[0].submit = Time(-1)).contains("submit"));
        assert!(refusal(|w| w.jobs.swap(0, 1)).contains("sort the jobs"));
        assert!(refusal(|w| w.jobs[0].tenant = 1).contains("tenant"));
        assert!(refusal(|w| w.jobs[0].class = 1).contains("class"));
        assert!(refusal(|w| w.classes.clear()).contains("classes"));
    }

    #[test]
    fn work_that_outlasts_the_clock_is_refused() {
        let text = refusal(|w| {
            w.classes[0].speed = vec![1e-6];
            w.jobs[1].run_time_s = 1e9;
        });
        assert!(
            text.contains("jobs[1].run_time_s") && text.contains("9e11"),
            "{text}"
        );
        let mut long = workload((0..900).map(|n| job(&n.to_string(), 0.0, 1, 1e9)).collect());
        long.validate().unwrap();
        long.jobs.push(job("last", 0.0, 1, 1e9));
        assert!(long.validate().is_err());
    }

    #[test]
    fn a_class_without_nodes_is_refused_with_the_reason() {
        let text = refusal(|w| {
            w.cluster.borrowing = false;
            w.cluster.tenants[0].quota_gpus = 0;
        });
        assert!(text.contains("no gang at all"), "{text}");
    }

    #[test]
    fn without_borrowing_a_gang_must_fit_its_tenants_quota() {
        let text = refusal(|w| {
            w.cluster.tenants = vec![TenantSpec {
                name: "t".into(),
                quota_gpus: 4,
            }];
            w.cluster.borrowing = false;
        });
        assert!(text.contains("1 to 4"), "{text}");
    }

    #[test]
    fn a_gang_must_fit_on_one_gpu_type() {
        let mut mixed = workload(vec![job("a", 0.0, 6, 1.0)]);
        mixed.cluster.gpu_types.push(mixed.cluster.gpu_types[0].clone());
        mixed.cluster.gpu_types[1].name = "slow".into();
        let mut group = mixed.cluster.node_groups[0].clone();
        group.gpu_type = "slow".into();
        group.count = 1;
        mixed.cluster.node_groups.push(group);
        mixed.classes = vec![class_of(2)];
        mixed.validate().unwrap();
        mixed.classes[0].speed[0] = 0.0;
        assert!(mixed.validate().unwrap_err().to_string().contains("1 to 4"));
    }
}
