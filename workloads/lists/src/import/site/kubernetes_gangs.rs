//! Recorded pods as jobs: by the rule that the controller has for live ones ([`pleach_site`]).
//!
//! A gang asks for the most GPUs that its pods had at once, on the nodes of that instant, from its first start to its last end. It was
//! submitted when the first of its objects in the document was made: with Kueue the pods of a Job are made when they are admitted, so
//! the Jobs belong into the document. Tasks of a Job, more than it runs at once, are submitted when their pods were made. Of a Job
//! that is not in the document the pods are taken for one gang.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster_spec::SiteScheduler;
use pleach_site::{Groups, ParallelJobs, Pod, names};

use super::reason::Reason;
use super::row::{Facts, Reader, Row};
use super::taken::Taken;

/// Most pods of a gang that are looked at.
const PODS_MAX: usize = 100_000;

pub(super) const POD: &str = "a pod of a gang: its GPUs are added to those of its first";
pub(super) const JOB_OF_SET: &str = "a Job of a JobSet: its GPUs are added to those of its first";
pub(super) const JOB_WITH_PODS: &str = "a Job whose pods are in the list: it says when they were asked for";
const ALONE: &str = "a pod of a Job that is not Indexed: it is taken for a job of its own";
const END_ASSUMED: &str = "a pod that failed at a time that is not known: until its gang went on without it";

/// A pod that ran.
#[derive(Clone, Debug, Default)]
pub(super) struct PodRow {
    pub line: u64,
    pub namespace: String,
    pub name: String,
    /// Labels and annotations that tell of gangs.
    pub words: BTreeMap<String, String>,
    /// Its native PodGroup.
    pub group: Option<String>,
    pub torch_nodes: Option<String>,
    pub made_s: Option<f64>,
    pub start_s: f64,
    pub end_s: Option<f64>,
    /// 0: none, and it is no job.
    pub num_gpus: u32,
    pub cores: f64,
    pub node: String,
    pub phase: String,
    pub limit_s: Option<f64>,
    pub queue: String,
    pub priority: String,
    pub of_type: String,
}

impl PodRow {
    /// What is noted of a pod without GPUs, with its cores as Slurm would write them.
    fn without_gpus<'a>(&'a self, cores: &'a str) -> Facts<'a> {
        let is_over = self.end_s.is_some();
        Facts {
            id: &self.name,
            submit_s: self.made_s,
            start_s: Some(self.start_s),
            end_s: self.end_s,
            tells_starts: true,
            gpus: cores,
            nodes: &self.node,
            state: if is_over { "COMPLETED" } else { "RUNNING" },
            ..Facts::default()
        }
    }
}

/// A Job that ran.
#[derive(Clone, Debug, Default)]
pub(super) struct JobRow {
    pub parallelism: u32,
    pub completions: Option<u32>,
    pub is_indexed: bool,
    /// What it tells where its pods are gone: all of them as one.
    pub as_pod: PodRow,
}

/// The objects of a document.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub pods: Vec<PodRow>,
    pub jobs: Vec<JobRow>,
    /// When native pod groups were made, by namespace and name.
    pub pod_groups: BTreeMap<(String, String), f64>,
    /// What pods with GPUs tell of their schedulers.
    pub schedulers: BTreeSet<Option<SiteScheduler>>,
    /// The RayCluster of each RayJob, and when that was made, by namespace and name.
    pub ray_jobs: BTreeMap<(String, String), (String, f64)>,
}

/// What is known of a gang.
#[derive(Default)]
struct Gang {
    line: u64,
    by: &'static str,
    pods: Vec<PodRow>,
    submit_s: Option<f64>,
    /// What its objects say, the first that says something.
    seen: PodRow,
    /// As its Jobs tell it, for pods that are gone.
    job: Option<PodRow>,
    /// Objects that were read: more pods than are looked at, all Jobs.
    num_pods: usize,
    num_jobs: usize,
}

impl Objects {
    /// Makes rows of them.
    pub(super) fn rows(self, reader: &mut Reader<'_>, taken: &mut Taken) {
        let Objects {
            pods,
            jobs,
            pod_groups,
            ray_jobs,
            ..
        } = self;
        let named = ray_jobs.iter();
        let named = named
            .map(|((namespace, name), (cluster, _))| (namespace.as_str(), cluster.as_str(), name.as_str()));
        let groups = Groups::new(jobs.iter().map(JobRow::view), ParallelJobs::default()).with_ray_jobs(named);
        let mut gangs: BTreeMap<String, Gang> = BTreeMap::new();
        let mut gangs_of_job: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        let (pods, others): (Vec<PodRow>, Vec<PodRow>) = pods.into_iter().partition(|pod| pod.num_gpus > 0);
        for pod in &others {
            if let Err(reason) = reader.row(pod.line, &pod.without_gpus(&format!("cpu={}", pod.cores))) {
                taken.leave_out(reason);
            }
        }
        for pod in pods {
            let (by, name, is_assumed) = gang_of(&pod, &groups);
            taken.account.mend(ALONE, u64::from(is_assumed));
            let job = pod
                .words
                .get(names::JOB_NAME)
                .or(pod.words.get(names::JOB_NAME_OLD));
            let job = job.map(|job| (pod.namespace.clone(), job.clone()));
            let (place, gang) = place(&mut gangs, &pod, by, &name);
            let of = (pod.namespace.clone(), name);
            gang.submitted(match by {
                names::NATIVE_GROUP => pod_groups.get(&of).copied(),
                names::RAY_JOB => ray_jobs.get(&of).map(|(_, made_s)| *made_s),
                _ => None,
            });
            if let Some(job) = job {
                gangs_of_job.entry(job).or_default().insert(place);
            }
            gang.num_pods += 1;
            gang.look_at(&pod, pod.made_s);
            if gang.pods.len() < PODS_MAX {
                gang.pods.push(pod);
            }
        }
        for job in &jobs {
            let of = (job.as_pod.namespace.clone(), job.as_pod.name.clone());
            let of = gangs_of_job.get(&of).into_iter().flatten();
            take_job(job, &mut gangs, of.cloned().collect(), taken);
        }
        for (name, mut gang) in gangs {
            (1..gang.num_pods).for_each(|_| taken.leave_out(POD));
            match gang.num_pods {
                0 => (1..gang.num_jobs).for_each(|_| taken.leave_out(JOB_OF_SET)),
                _ => (0..gang.num_jobs).for_each(|_| taken.leave_out(JOB_WITH_PODS)),
            }
            if gang.pods.is_empty() {
                gang.pods.extend(gang.job.take());
            }
            taken.account.mend(END_ASSUMED, end_all(&mut gang.pods));
            match row(&name, &gang, reader) {
                Ok(row) => taken.rows.push(row),
                Err(reason) => taken.leave_out(reason),
            }
        }
    }
}

/// What tells the gang of a pod, its name, and whether it is an assumption that there is none.
fn gang_of(pod: &PodRow, groups: &Groups<'_>) -> (&'static str, String, bool) {
    let word = |name: &str| pod.words.get(name).map(String::as_str);
    let view = Pod {
        namespace: &pod.namespace,
        name: &pod.name,
        word: &word,
        native_group: pod.group.as_deref(),
        torch_nodes: pod.torch_nodes.as_deref(),
    };
    let gang = groups.of(&view);
    let (by, is_assumed) = (gang.key.by, gang.remark.is_some());
    if !gang.is_alone() {
        return (by, gang.key.name, false);
    }
    let job = word(names::JOB_NAME).or_else(|| word(names::JOB_NAME_OLD));
    match (job, groups.job(&view), word(names::JOB_INDEX)) {
        // Attempts of one index, and of a Job of one pod, are one job.
        (Some(name), Some(_), Some(index)) => (by, format!("{name}/{index}"), false),
        (Some(name), Some(job), None) if job.parallelism.max(job.completions.unwrap_or(1)) <= 1 => {
            (names::JOB_NAME, name.to_owned(), false)
        }
        (Some(name), None, _) => (names::JOB_NAME, name.to_owned(), false),
        _ => (by, gang.key.name, is_assumed),
    }
}

/// The gang of a name, and its key. The key names its source too (a label or a field) where a gang of another source has the
/// name.
fn place<'a>(
    gangs: &'a mut BTreeMap<String, Gang>,
    of: &PodRow,
    by: &'static str,
    name: &str,
) -> (String, &'a mut Gang) {
    let mut place = format!("{}/{name}", of.namespace);
    if gangs.get(&place).is_some_and(|known| known.by != by) {
        place = format!("{place} ({by})");
    }
    let gang = gangs.entry(place.clone()).or_insert_with(|| Gang {
        line: of.line,
        by,
        seen: PodRow {
            namespace: of.namespace.clone(),
            ..PodRow::default()
        },
        ..Gang::default()
    });
    (place, gang)
}

/// Takes a Job to the gangs of its pods, or as a gang of its own where they are gone.
fn take_job(job: &JobRow, gangs: &mut BTreeMap<String, Gang>, of_pods: Vec<String>, taken: &mut Taken) {
    // What it runs at once was all asked for when it was made; of tasks only their pods tell.
    let is_at_once = job.parallelism >= job.completions.unwrap_or(1);
    let made_s = job.as_pod.made_s.filter(|_| is_at_once);
    let set = job.as_pod.words.get(names::JOBSET_NAME);
    if let (None, [first, others @ ..]) = (set, &of_pods[..]) {
        for place in others.iter().chain([first]) {
            if let Some(gang) = gangs.get_mut(place) {
                gang.look_at(&job.as_pod, made_s);
            }
        }
        taken.leave_out(JOB_WITH_PODS);
        return;
    }
    let (by, name) = match (set, of_pods.first()) {
        (Some(set), _) => (names::JOBSET_NAME, set),
        _ => (names::JOB_NAME, &job.as_pod.name),
    };
    let (_, gang) = place(gangs, &job.as_pod, by, name);
    gang.num_jobs += 1;
    gang.look_at(&job.as_pod, job.as_pod.made_s);
    // The Jobs of a JobSet are one gang.
    match &mut gang.job {
        Some(found) => {
            found.num_gpus = found.num_gpus.saturating_add(job.as_pod.num_gpus);
            found.start_s = found.start_s.min(job.as_pod.start_s);
            found.end_s = found.end_s.zip(job.as_pod.end_s).map(|(a, b)| a.max(b));
        }
        None => gang.job = Some(job.as_pod.clone()),
    }
}

impl Gang {
    fn submitted(&mut self, made_s: Option<f64>) {
        if let Some(at) = made_s {
            self.submit_s = Some(self.submit_s.map_or(at, |known| known.min(at)));
        }
    }

    /// Takes what an object says of it.
    fn look_at(&mut self, object: &PodRow, made_s: Option<f64>) {
        self.submitted(made_s);
        let seen = &mut self.seen;
        seen.limit_s = seen.limit_s.or(object.limit_s);
        for (field, text) in [
            (&mut seen.queue, &object.queue),
            (&mut seen.priority, &object.priority),
            (&mut seen.of_type, &object.of_type),
        ] {
            if field.is_empty() {
                field.clone_from(text);
            }
        }
    }
}

/// Gives pods that have ended at a time that is not known the creation of the next pod of their gang as their end, else the last end
/// of the others; how many.
fn end_all(pods: &mut [PodRow]) -> u64 {
    let mut made: Vec<f64> = pods.iter().filter_map(|pod| pod.made_s).collect();
    made.sort_by(f64::total_cmp);
    let last_s = pods.iter().filter_map(|pod| pod.end_s).reduce(f64::max);
    let mut num = 0;
    for pod in pods {
        let has_ended = matches!(pod.phase.as_str(), "Failed" | "Succeeded");
        if pod.end_s.is_some() || !has_ended {
            continue;
        }
        let next_s = made.get(made.partition_point(|at| *at <= pod.start_s)).copied();
        pod.end_s = next_s.or(last_s.filter(|at| *at > pod.start_s));
        num += u64::from(pod.end_s.is_some());
    }
    num
}

fn row(name: &str, gang: &Gang, reader: &mut Reader<'_>) -> Result<Row, Reason> {
    let (pods, seen) = (&gang.pods[..], &gang.seen);
    let start_s = pods.iter().map(|pod| pod.start_s).fold(f64::INFINITY, f64::min);
    let is_over = pods.iter().all(|pod| pod.end_s.is_some());
    let end_s = pods
        .iter()
        .filter_map(|pod| pod.end_s)
        .fold(f64::NEG_INFINITY, f64::max);
    let has = |phase: &str| pods.iter().any(|pod| pod.phase == phase);
    let last = pods.iter().filter(|pod| pod.end_s == Some(end_s));
    let ended_well = last.clone().count() > 0 && last.clone().all(|pod| pod.phase == "Succeeded");
    let state = match () {
        () if !is_over && has("Running") => "RUNNING",
        // A pod that was made again and ended well made up for the one before.
        () if has("Failed") && !(ended_well && is_replaced(pods)) => "FAILED",
        () if has("Succeeded") => "COMPLETED",
        () if is_over => "UNKNOWN",
        () => "RUNNING",
    };
    let (num_gpus, mut nodes) = most_at_once(pods);
    nodes.retain(|node| !node.is_empty());
    nodes.sort_unstable();
    nodes.dedup();
    let gpus = num_gpus.to_string();
    let asked = match seen.of_type.as_str() {
        "" => gpus.clone(),
        of_type => format!("gres/gpu={num_gpus},gres/gpu:{of_type}={num_gpus}"),
    };
    let facts = Facts {
        id: name,
        submit_s: gang.submit_s,
        start_s: Some(start_s),
        end_s: is_over.then_some(end_s),
        tells_starts: true,
        time_limit: &seen.limit_s.map(|limit| limit.to_string()).unwrap_or_default(),
        gpus: &gpus,
        gpus_asked: &asked,
        num_nodes: &match nodes.len() {
            0 => String::new(),
            num => num.to_string(),
        },
        nodes: &nodes.join(","),
        tenant: &seen.namespace,
        state,
        partition: &seen.queue,
        qos: &seen.priority,
        ..Facts::default()
    };
    reader.row(gang.line, &facts)
}

/// Whether each pod that failed had ended when another one began.
fn is_replaced(pods: &[PodRow]) -> bool {
    let mut failed = pods.iter().filter(|pod| pod.phase == "Failed");
    failed.all(|pod| {
        pods.iter()
            .any(|next| pod.end_s.is_some_and(|end_s| next.start_s >= end_s))
    })
}

/// The most GPUs that pods had at one instant, and the nodes of the last such: a pod that was made again in place of another does not
/// count beside it.
fn most_at_once(pods: &[PodRow]) -> (u32, Vec<&str>) {
    let mut changes: Vec<(f64, i64)> = Vec::new();
    for pod in pods {
        changes.push((pod.start_s, i64::from(pod.num_gpus)));
        changes.extend(pod.end_s.map(|end| (end, -i64::from(pod.num_gpus))));
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most, mut at_s) = (0, 0, f64::NEG_INFINITY);
    for (when_s, change) in changes {
        now += change;
        if now >= most {
            (most, at_s) = (now, when_s);
        }
    }
    let then = pods
        .iter()
        .filter(|pod| pod.start_s <= at_s && pod.end_s.is_none_or(|end_s| end_s > at_s));
    (
        u32::try_from(most).unwrap_or(u32::MAX),
        then.map(|pod| pod.node.as_str()).collect(),
    )
}
