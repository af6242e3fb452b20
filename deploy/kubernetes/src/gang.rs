//! Which pods have to start together, how many they are, and the id of such a job.
//!
//! A pod is told by the first of: our own label, Kueue's pod group, the scheduler plugins' pod group, Volcano's group, its
//! JobSet, its Indexed Job. Pods of a plain Job are jobs of their own, unless it is indexed and runs all its indexes at once: then
//! they are ranks of one program. Of one that is not indexed the annotation [`names::PARALLEL`] says it, else the settings.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use pleach_scheduler::ExternalId;
use sha2::{Digest, Sha256};

use crate::config::ParallelJobs;
use crate::names;
use crate::pod::{PodSeen, seconds, word};

/// What a pod belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// What told it: a label, or `pod`.
    pub by: &'static str,
    /// The name there.
    pub name: String,
}

/// The job that a pod is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Its key.
    pub key: Key,
    /// Its id, which a pod that takes another one's place keeps.
    pub id: ExternalId,
    /// Pods in all; none where nobody tells.
    pub size: Option<u32>,
    /// What makes it anew under another id.
    pub owner: Option<ExternalId>,
    /// When its owner was made, Unix time, s.
    pub created_s: Option<i64>,
    /// What its owner allows it to run, s.
    pub limit_s: Option<i64>,
    /// What its user should know; none where there is nothing to be said.
    pub remark: Option<String>,
}

/// Jobs by namespace and name, and the pods of each JobSet.
#[derive(Debug, Default)]
pub struct Jobs<'a> {
    jobs: BTreeMap<(&'a str, &'a str), &'a Job>,
    sets: BTreeMap<(&'a str, &'a str), BTreeMap<&'a str, Part>>,
    parallel: ParallelJobs,
}

impl<'a> Jobs<'a> {
    /// Makes the index.
    #[must_use]
    pub fn new(list: &'a [Job], parallel: ParallelJobs) -> Jobs<'a> {
        let mut jobs = Jobs {
            parallel,
            ..Jobs::default()
        };
        for job in list {
            let meta = &job.metadata;
            let (Some(namespace), Some(name)) = (meta.namespace.as_deref(), meta.name.as_deref()) else {
                continue;
            };
            jobs.jobs.insert((namespace, name), job);
            let label = |key: &str| {
                meta.labels
                    .as_ref()
                    .and_then(|labels| labels.get(key))
                    .map(String::as_str)
            };
            let (Some(set), Some(part)) = (label(names::JOBSET_NAME), label(names::REPLICATED_JOB)) else {
                continue;
            };
            let replicas: u32 = label(names::REPLICAS)
                .and_then(|text| text.parse().ok())
                .unwrap_or(1);
            let parts = jobs.sets.entry((namespace, set)).or_default();
            let part: &mut Part = parts.entry(part).or_default();
            part.replicas = part.replicas.max(replicas);
            part.num_seen = part.num_seen.saturating_add(1);
            // A part may ask for no GPUs: a launcher. Its pods are no part of the gang that waits for GPUs.
            if asks_for_devices(job) {
                part.num_pods = part.num_pods.saturating_add(num_pods(job));
                part.pods_each = parallelism(job);
            }
        }
        jobs
    }

    /// The job that a pod is part of.
    #[must_use]
    pub fn of(&self, pod: &Pod, seen: &PodSeen) -> Membership {
        let namespace = seen.namespace.as_str();
        let key = |by, name: &str| Key {
            namespace: namespace.to_owned(),
            by,
            name: name.to_owned(),
        };
        let number = |name| word(pod, name).and_then(|text| text.trim().parse::<u32>().ok());
        let own_size = number(names::GANG_SIZE).filter(|size| *size > 0);
        let name = word(pod, names::JOB_NAME).or_else(|| word(pod, names::JOB_NAME_OLD));
        let job = name.and_then(|name| self.jobs.get(&(namespace, name)));
        let created_s = job.and_then(|job| seconds(job.metadata.creation_timestamp.as_ref()));
        let limit_s = job
            .and_then(|job| job.spec.as_ref()?.active_deadline_seconds)
            .filter(|limit_s| *limit_s > 0);
        let found = |key: Key, size: Option<u32>| Membership {
            id: id(&[&key.namespace, key.by, &key.name]),
            key,
            size: own_size.or(size),
            owner: None,
            created_s,
            limit_s,
            remark: None,
        };
        for by in [
            names::GANG,
            names::KUEUE_GROUP,
            names::POD_GROUP,
            names::POD_GROUP_OLD,
            names::VOLCANO_GROUP,
        ] {
            if let Some(name) = word(pod, by) {
                return found(key(by, name), number(names::KUEUE_TOTAL));
            }
        }
        if let Some(set) = word(pod, names::JOBSET_NAME) {
            let parts = self.sets.get(&(namespace, set));
            let size = parts.map(|parts| {
                parts
                    .values()
                    .fold(0_u32, |sum, part| sum.saturating_add(part.total()))
            });
            return found(key(names::JOBSET_NAME, set), size.filter(|size| *size > 0));
        }
        let told = match word(pod, names::PARALLEL) {
            Some("gang") => Some(ParallelJobs::Gang),
            Some("alone") => Some(ParallelJobs::Alone),
            _ => None,
        };
        let taken_for = told.unwrap_or(self.parallel);
        let remark = |job: &Job| assumed(job, taken_for).filter(|_| told.is_none());
        if let (Some(name), Some(job)) = (name, job)
            && is_gang(job, taken_for)
        {
            let gang = found(key(names::JOB_NAME, name), Some(num_pods(job)));
            return Membership {
                remark: remark(job),
                ..gang
            };
        }
        let key = key("pod", &seen.name);
        let has_own_id = job.is_some() && seen.index.is_some();
        Membership {
            owner: seen.owner.as_deref().filter(|_| !has_own_id).map(of_uid),
            // An index of a Job keeps its id when its pod is made anew.
            id: match (job.and_then(|job| job.metadata.uid.as_deref()), seen.index) {
                (Some(uid), Some(index)) => id(&[uid, &index.to_string()]),
                _ => of_uid(&seen.uid),
            },
            key,
            size: Some(1),
            created_s: created_s.filter(|_| seen.index.is_some()),
            limit_s,
            remark: job.and_then(|job| remark(job)),
        }
    }
}

/// Pods that a Job runs at once.
fn parallelism(job: &Job) -> u32 {
    let of = job.spec.as_ref().and_then(|spec| spec.parallelism).unwrap_or(1);
    u32::try_from(of).unwrap_or(0)
}

/// Pods that it runs now: those that succeeded are not made again.
fn num_pods(job: &Job) -> u32 {
    let of = |num: Option<i32>| num.and_then(|num| u32::try_from(num).ok());
    let succeeded = of(job.status.as_ref().and_then(|status| status.succeeded)).unwrap_or(0);
    let completions = of(job.spec.as_ref().and_then(|spec| spec.completions));
    let left = completions.map(|num| num.saturating_sub(succeeded).max(1));
    parallelism(job).min(left.unwrap_or(u32::MAX))
}

/// The Jobs of one part of a JobSet.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    replicas: u32,
    num_seen: u32,
    num_pods: u32,
    pods_each: u32,
}

impl Part {
    /// Pods of it in all. Jobs that are not there yet are like the others.
    fn total(self) -> u32 {
        let missing = self.replicas.saturating_sub(self.num_seen);
        self.num_pods
            .saturating_add(missing.saturating_mul(self.pods_each))
    }
}

/// Whether all pods of a Job run at once, are more than one and start together: indexes are ranks of one program, others where they
/// are taken for a gang. More completions than pods at once are tasks.
fn is_gang(job: &Job, taken_for: ParallelJobs) -> bool {
    let Some(spec) = &job.spec else { return false };
    let is_all = spec.completions == spec.parallelism;
    let starts_at_once = match spec.completion_mode.as_deref() {
        Some("Indexed") => is_all,
        // Without completions the first that ends well ends the Job: a gang too.
        _ => taken_for == ParallelJobs::Gang && (is_all || spec.completions.is_none()),
    };
    starts_at_once && parallelism(job) > 1
}

/// What was assumed of a Job that runs pods at once and does not say whether they need each other: an Indexed one with more
/// completions says that its indexes are tasks.
fn assumed(job: &Job, taken_for: ParallelJobs) -> Option<String> {
    let is_indexed = job.spec.as_ref()?.completion_mode.as_deref() == Some("Indexed");
    let (num, name) = (parallelism(job), job.metadata.name.as_deref()?);
    let namespace = job.metadata.namespace.as_deref()?;
    let assumed = match is_gang(job, taken_for) {
        true => "it is assumed that they start together",
        false => "it is assumed that each of them is a job of its own, and some may run while others wait",
    };
    (num > 1 && !is_indexed).then(|| {
        format!(
            "Job {namespace}/{name} runs {num} pods at once and is not Indexed: {assumed}; the annotation {} of its pods says it \
             (gang, alone), and so does `completionMode: Indexed` with as many completions",
            names::PARALLEL
        )
    })
}

/// Whether a pod of it asks for any extended resource.
fn asks_for_devices(job: &Job) -> bool {
    let spec = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    containers
        .filter_map(|container| container.resources.as_ref())
        .any(|resources| {
            let names = resources
                .limits
                .iter()
                .flatten()
                .chain(resources.requests.iter().flatten());
            names.into_iter().any(|(name, _)| name.contains('/'))
        })
}

/// The id of an object.
fn of_uid(uid: &str) -> ExternalId {
    uid.parse().unwrap_or_else(|_| id(&[uid]))
}

/// An id of words: a UUID of version 8, the hash of them.
fn id(words: &[&str]) -> ExternalId {
    let mut hash = Sha256::new();
    for word in words {
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word.as_bytes());
    }
    let digest = hash.finalize();
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let text = format!(
        "{}-{}-8{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(16, 20),
        part(20, 32)
    );
    // A text of this form is always an id.
    text.parse().unwrap_or(ExternalId::number(0))
}
