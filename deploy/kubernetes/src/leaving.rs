//! GPUs that pods hold which are being stopped, by unit: where there are leases, they wait for these rather than stop further
//! jobs.
//!
//! Whose they were does not matter: a job whose pods have all been made anew, and wait, gives back what the old ones hold until they
//! have ended. Places that a job keeps for the pods that replace lost ones go to no other job. No lease waits for a pod without
//! end: a pod's own word on how long it may take counts up to a limit of the operator's.

use std::collections::BTreeMap;

use pleach_daemon::snapshot::Phase;

use crate::clock::Clock;
use crate::config::Settings;
use crate::job_pods::JobPods;
use crate::node::unit_name;
use crate::pod::PodSeen;

/// Adds what a job gives back. `ending` are its pods that are being stopped while others are there.
pub(crate) fn count(
    phase: &Phase,
    (job, ending): (&JobPods, &[PodSeen]),
    (settings, clock): (&Settings, &Clock),
    leaving: &mut BTreeMap<String, u32>,
) {
    if settings.leases.is_none() {
        return;
    }
    let mut kept = kept(phase, job, settings);
    for pod in job.pods.iter().chain(ending).filter(|pod| pod.is_ending) {
        let Some(node) = &pod.node else { continue };
        let unit = unit_name(node, &pod.resource, settings);
        if let Some(num) = kept.get_mut(&unit).filter(|num| **num > 0) {
            *num -= 1;
        } else if is_waited_for(pod, settings, clock) {
            let entry = leaving.entry(unit).or_default();
            *entry = entry.saturating_add(pod.num_gpus);
        }
    }
}

/// Places of each unit that are for pods which come in the stead of others.
fn kept(phase: &Phase, job: &JobPods, settings: &Settings) -> BTreeMap<String, u32> {
    if !matches!(phase, Phase::Running | Phase::Released { .. }) {
        return BTreeMap::new();
    }
    let mut kept: BTreeMap<String, u32> = job.seats.iter().cloned().collect();
    for pod in &job.pods {
        let unit = pod
            .node
            .as_deref()
            .map(|node| unit_name(node, &pod.resource, settings));
        if let Some(num) = unit.and_then(|unit| kept.get_mut(&unit)) {
            *num = num.saturating_sub(1);
        }
    }
    kept
}

/// Whether a pod is going, and may still go in time: within what it was given, at most [`grace_max_s`], and what kubelets and
/// requests take beside.
///
/// [`grace_max_s`]: crate::leases::LeaseSettings::grace_max_s
fn is_waited_for(pod: &PodSeen, settings: &Settings, clock: &Clock) -> bool {
    let Some(gone_s) = pod.gone_s else { return false };
    let told_s = gone_s.saturating_sub(pod.grace_s);
    let grace_s = pod.grace_s.min(settings.leases.grace_max_s);
    let until_s = told_s
        .saturating_add(grace_s)
        .saturating_add(settings.release_limit_s);
    !clock.is_past(until_s)
}
