//! The job that a live pod is part of: which pods have to start together ([`pleach_site`] says it), and an id that lasts.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use pleach_scheduler::ExternalId;
pub use pleach_site::Key;
use pleach_site::{Groups, ParallelJobs, SetPart};
use sha2::{Digest, Sha256};

use crate::names;
use crate::pod::{PodSeen, seconds, word};

/// The job that a pod is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Its key.
    pub key: Key,
    /// Its id, which a pod that takes another one's place keeps.
    pub id: ExternalId,
    /// Pods in all; none where that is not known.
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

/// Jobs by namespace and name, and the groups that they make.
#[derive(Debug, Default)]
pub struct Jobs<'a> {
    jobs: BTreeMap<(&'a str, &'a str), &'a Job>,
    groups: Groups<'a>,
}

impl<'a> Jobs<'a> {
    /// Makes the index.
    #[must_use]
    pub fn new(list: impl Iterator<Item = &'a Job> + Clone, parallel: ParallelJobs) -> Jobs<'a> {
        Jobs::seen(list, parallel, |view| view)
    }

    /// The same for pods that have ended: the size of a Job is what it ran at once, not what is left to run.
    #[must_use]
    pub fn ended(list: impl Iterator<Item = &'a Job> + Clone, parallel: ParallelJobs) -> Jobs<'a> {
        Jobs::seen(list, parallel, |view| pleach_site::Job { succeeded: 0, ..view })
    }

    fn seen(
        list: impl Iterator<Item = &'a Job> + Clone,
        parallel: ParallelJobs,
        as_seen: fn(pleach_site::Job<'a>) -> pleach_site::Job<'a>,
    ) -> Jobs<'a> {
        let named = |job: &'a Job| Some((job.metadata.namespace.as_deref()?, job.metadata.name.as_deref()?));
        let views = list
            .clone()
            .filter_map(|job| Some(as_seen(view(named(job)?, job))));
        Jobs {
            jobs: list.filter_map(|job| Some((named(job)?, job))).collect(),
            groups: Groups::new(views, parallel),
        }
    }

    /// With the RayJobs of [`Groups::with_ray_jobs`].
    #[must_use]
    pub fn with_ray_jobs(self, jobs: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Jobs<'a> {
        Jobs {
            groups: self.groups.with_ray_jobs(jobs),
            ..self
        }
    }

    /// The job that a pod is part of.
    #[must_use]
    pub fn of(&self, pod: &Pod, seen: &PodSeen) -> Membership {
        let words = |name: &str| word(pod, name);
        let spec = pod.spec.as_ref();
        let view = pleach_site::Pod {
            namespace: &seen.namespace,
            name: &seen.name,
            word: &words,
            native_group: spec.and_then(|spec| spec.scheduling_group.as_ref()?.pod_group_name.as_deref()),
            torch_nodes: spec.and_then(torch_nodes),
        };
        let job = self
            .groups
            .job(&view)
            .and_then(|job| self.jobs.get(&(job.namespace, job.name)));
        let created_s = job.and_then(|job| seconds(job.metadata.creation_timestamp.as_ref()));
        let limit_s = job
            .and_then(|job| job.spec.as_ref()?.active_deadline_seconds)
            .filter(|limit_s| *limit_s > 0);
        let gang = self.groups.of(&view);
        let (key, size, remark) = (gang.key, gang.size, gang.remark);
        if key.by != "pod" {
            return Membership {
                id: id(&[&key.namespace, key.by, &key.name]),
                key,
                size,
                owner: None,
                created_s,
                limit_s,
                remark,
            };
        }
        let has_own_id = job.is_some() && seen.index.is_some();
        Membership {
            owner: seen.owner.as_deref().filter(|_| !has_own_id).map(of_uid),
            // An index of a Job keeps its id when its pod is made anew.
            id: match (job.and_then(|job| job.metadata.uid.as_deref()), seen.index) {
                (Some(uid), Some(index)) => id(&[uid, &index.to_string()]),
                _ => of_uid(&seen.uid),
            },
            key,
            size,
            created_s: created_s.filter(|_| seen.index.is_some()),
            limit_s,
            remark,
        }
    }
}

/// A Job as [`pleach_site`] looks at it.
pub(crate) fn view<'a>((namespace, name): (&'a str, &'a str), job: &'a Job) -> pleach_site::Job<'a> {
    let spec = job.spec.as_ref();
    let count = |num: Option<i32>| num.map(|num| u32::try_from(num).unwrap_or(0));
    let labels = job.metadata.labels.as_ref();
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    let set = label(names::JOBSET_NAME).zip(label(names::REPLICATED_JOB));
    pleach_site::Job {
        namespace,
        name,
        parallelism: count(spec.and_then(|spec| spec.parallelism)).unwrap_or(1),
        completions: count(spec.and_then(|spec| spec.completions)),
        succeeded: count(job.status.as_ref().and_then(|status| status.succeeded)).unwrap_or(0),
        is_indexed: spec.is_some_and(|spec| spec.completion_mode.as_deref() == Some("Indexed")),
        asks_for_devices: asks_for_devices(job),
        set: set.map(|(set, part)| SetPart {
            set,
            part,
            replicas: label(names::REPLICAS)
                .and_then(|text| text.parse().ok())
                .unwrap_or(1),
        }),
    }
}

/// What a container has in [`pleach_site::names::TORCH_NODES`].
fn torch_nodes(spec: &PodSpec) -> Option<&str> {
    let variables = spec
        .containers
        .iter()
        .flat_map(|container| container.env.iter().flatten());
    let mut nodes = variables.filter(|variable| variable.name == pleach_site::names::TORCH_NODES);
    nodes.next()?.value.as_deref()
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
