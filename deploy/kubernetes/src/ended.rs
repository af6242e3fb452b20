//! Jobs that have ended, from the pods that the API server still lists: how each one's last run went.
//!
//! A pod that has ended stays until it is deleted: by its Job with its time to live, by a user, or by the collector of pods once
//! there are thousands. So this is how jobs ended that have just left, and all the accounting that a cluster keeps by itself.
//!
//! A job's last run is the time up to its last end in which without a gap at least one of its pods ran: a pod that was made anew
//! in a gang that went on belongs to it, an attempt before a pause does not.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use pleach_daemon::history::{End, EndedJob};
use pleach_scheduler::ExternalId;

use crate::config::Settings;
use crate::gang::Jobs;
use crate::node::unit_name;
use crate::pod::{self, PodSeen, seconds};

/// Reasons of a pod's status that are the cluster's and not the pod's.
///
/// # Source
/// The kubelet's: `Evicted` for the want of a resource, `Terminated` and `NodeShutdown` where the node goes down, `Preempting` for
/// a critical pod; the node controller's `NodeLost`.
const CUT: [&str; 5] = ["Evicted", "Terminated", "NodeShutdown", "Preempting", "NodeLost"];

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its last run.
    pub job: EndedJob,
    /// Whether the cluster is the reason and not the job.
    pub is_cut: bool,
}

impl Ended {
    /// As a driver asks for it that saw the job before.
    #[must_use]
    pub fn end(&self) -> End {
        End {
            start_s: Some(self.job.start_s),
            end_s: self.job.end_s,
            is_cut: self.is_cut,
            nodes: self.job.nodes.clone(),
        }
    }
}

/// The run of one pod.
struct Run<'a> {
    seen: PodSeen,
    pod: &'a Pod,
    start_s: i64,
    end_s: i64,
    size: Option<u32>,
}

/// Jobs whose pods have ended, of those that are driven. Pods that do not show when they began or ended are left out.
#[must_use]
pub fn ended<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    jobs: impl Iterator<Item = &'a Job> + Clone,
    settings: &Settings,
) -> BTreeMap<ExternalId, Ended> {
    let index = Jobs::ended(jobs, settings.parallel_jobs);
    let mut runs: BTreeMap<ExternalId, Vec<Run<'_>>> = BTreeMap::new();
    for pod in pods.into_iter().filter(|pod| pod::has_ended(pod)) {
        let Some(seen) = pod::read(pod, settings) else {
            continue;
        };
        if !settings.drives(&seen.namespace) || pod::opts_out(pod, settings) {
            continue;
        }
        // A pod that was cut short may show no end: it counts all the same, so that its job is not taken to have ended by itself.
        let told_s = end_s(pod).or_else(|| seen.start_s.filter(|_| is_cut(pod)));
        let (Some(start_s), Some(end_s)) = (seen.start_s, told_s) else {
            continue;
        };
        let member = index.of(pod, &seen);
        // A replica that was taken back says nothing of how long jobs run.
        if seen.is_lease && member.size == Some(1) {
            continue;
        }
        runs.entry(member.id).or_default().push(Run {
            seen,
            pod,
            start_s,
            end_s: end_s.max(start_s),
            size: member.size,
        });
    }
    let last = |(id, runs)| Some((id, last_run(runs, settings)?));
    runs.into_iter().filter_map(last).collect()
}

/// The jobs that ended on their own since `since_s`, Unix time, and have no pods in `live`.
#[must_use]
pub fn accounting(
    ended: BTreeMap<ExternalId, Ended>,
    live: &BTreeSet<ExternalId>,
    since_s: i64,
) -> Vec<EndedJob> {
    let counts =
        |(id, ended): &(ExternalId, Ended)| !ended.is_cut && ended.job.end_s >= since_s && !live.contains(id);
    let jobs = ended.into_iter().filter(counts);
    jobs.map(|(_, ended)| ended.job).collect()
}

fn last_run(mut runs: Vec<Run<'_>>, settings: &Settings) -> Option<Ended> {
    runs.sort_by_key(|run| std::cmp::Reverse((run.end_s, run.start_s)));
    let end_s = runs.first()?.end_s;
    let mut start_s = runs.first()?.start_s;
    // Ends come latest first: behind a pod that ended before the run begins all others did so too.
    let mut num = 0;
    for run in &runs {
        if run.end_s < start_s {
            break;
        }
        start_s = start_s.min(run.start_s);
        num += 1;
    }
    runs.truncate(num);
    let first = runs.first()?;
    let num_pods = u32::try_from(num).unwrap_or(u32::MAX);
    let num_pods = num_pods.min(first.size.unwrap_or(u32::MAX)).max(1);
    let unit = |run: &Run<'_>| Some(unit_name(run.seen.node.as_deref()?, &run.seen.resource, settings));
    Some(Ended {
        is_cut: runs.iter().any(|run| is_cut(run.pod)),
        job: EndedJob {
            user: String::new(),
            account: pod::account(first.pod, settings),
            num_gpus: num_pods.saturating_mul(first.seen.num_gpus),
            start_s,
            end_s,
            nodes: runs.iter().filter_map(unit).collect(),
        },
    })
}

/// When its last container ended, Unix time, s.
fn end_s(pod: &Pod) -> Option<i64> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let ends = containers.filter_map(|container| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        seconds(ended.finished_at.as_ref())
    });
    ends.max()
}

/// Whether the cluster ended it.
///
/// # Source
/// The condition `DisruptionTarget` ("Pod disruption conditions" of the Kubernetes documentation): evicted by the API or a taint,
/// preempted, collected with its node, ended by the kubelet. [`CUT`] for what does not set it.
fn is_cut(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|one| one.type_ == "DisruptionTarget" && one.status == "True")
        || status
            .reason
            .as_deref()
            .is_some_and(|reason| CUT.contains(&reason))
}
