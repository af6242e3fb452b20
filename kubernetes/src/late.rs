//! Nodes that did not get pods which were let go to them, as an operator is told and as the memory takes it in.

use pleach_scheduler::ExternalId;

use crate::job_pods::JobPods;

/// What was done before the decisions of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What an operator should know of it.
    pub notes: Vec<String>,
    /// Nodes that did not get pods which were let go to them.
    pub late: Vec<Late>,
}

/// A node that did not get a pod in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// The job of the pod.
    pub job: ExternalId,
    /// Its name.
    pub name: String,
    /// The unit.
    pub unit: String,
    /// Why, in the words of kube-scheduler.
    pub reason: String,
}

impl Late {
    /// For the log: it is not sent there again for so long, s.
    #[must_use]
    pub fn told(&self, lasts_s: i64) -> String {
        let Late {
            name, unit, reason, ..
        } = self;
        format!("{name} did not get to {unit}: {reason}; it is not sent there again for {lasts_s} s")
    }
}

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
        if late.iter().all(|other| other.unit != mark.seat) {
            late.push(Late {
                job,
                name: pods.name.clone(),
                unit: mark.seat.clone(),
                reason: pod
                    .unbound
                    .clone()
                    .unwrap_or_else(|| "kube-scheduler gives no reason".into()),
            });
        }
    }
    late
}
