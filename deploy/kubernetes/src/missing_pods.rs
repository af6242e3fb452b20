//! Nodes that did not get pods which were let go to them.

use pleach_daemon::system::Late;
use pleach_scheduler::ExternalId;

use crate::job_pods::JobPods;

/// Units that did not get pods of a job which were let go to them.
#[must_use]
pub fn late(job: ExternalId, pods: &JobPods) -> Vec<Late> {
    let mut late: Vec<Late> = Vec::new();
    for pod in pods
        .pods
        .iter()
        .filter(|pod| pod.node.is_none() && !pod.is_held())
    {
        let Some(mark) = &pod.decided else { continue };
        if late.iter().all(|other| other.node.as_ref() != Some(&mark.seat)) {
            late.push(Late {
                job,
                node: Some(mark.seat.clone()),
                reason: pod
                    .unbound
                    .clone()
                    .unwrap_or_else(|| "kube-scheduler gives no reason".into()),
                pause_s: 0,
            });
        }
    }
    late
}
