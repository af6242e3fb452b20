//! A job's pods as a round sees them.

use crate::pod::PodSeen;
use crate::seats::Seats;
use crate::standing::Duty;
use crate::suspended::Owner;

/// The pods of a job.
#[derive(Clone, Debug)]
pub struct JobPods {
    /// Namespace and name, for people.
    pub name: String,
    /// Its pods in the order of their ranks; those that are ending only where there are no others.
    pub pods: Vec<PodSeen>,
    /// Whether these pods are there; else they are those that its Jobs would make.
    pub is_made: bool,
    /// Its Jobs that are or may be suspended.
    pub owners: Vec<Owner>,
    /// Pods on each unit, as decided; empty where nothing was.
    pub seats: Seats,
    /// What is to be done about its gates, whatever the policy says.
    pub duty: Duty,
    /// What is said of its run time and nothing holds it to; none where nothing is said.
    pub claim: Option<Claim>,
    /// Why it is left to kube-scheduler once it is its turn; none where the tables say all of it.
    pub turn: Option<String>,
    /// What its user or an operator should know of it.
    pub remark: Option<String>,
}

impl JobPods {
    /// Its Jobs whose marks have done their work: all pods that one is for have been let go, or are jobs of their own. By UID, and when
    /// they were let go, Unix time, s.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (String, i64)> {
        let is_held = self.pods.iter().any(|pod| pod.is_held());
        let owners = self
            .owners
            .iter()
            .filter(|owner| self.is_made && !owner.is_suspended);
        owners.filter_map(move |owner| {
            let mark = owner.mark.as_ref()?;
            let is_done = !is_held || mark.num_pods() < u64::from(owner.num_pods);
            is_done.then(|| (owner.uid.clone(), mark.at_s))
        })
    }
}

/// A run time that a user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Of the pod that says most, s.
    pub claim_s: i64,
    /// When it is ended all the same, s after its start; none: never.
    pub deadline_s: Option<i64>,
}
