//! Jobs whose pods come only when something above lets them in, as Kueue does.

use pleach_scheduler::JobId;
use pleach_scheduler::cluster::{Cluster, JobState};

use super::{FREED, Kubernetes};

impl Kubernetes {
    /// The same, where only the pods of jobs come that are let in.
    pub(crate) fn gated(self) -> Kubernetes {
        Kubernetes {
            is_gated: true,
            ..self
        }
    }

    /// The pods of a job come, on nodes with these GPU types.
    pub(crate) fn let_in(&mut self, cluster: &Cluster, id: JobId, kinds: u64) {
        if self.jobs.contains_key(&id) || self.others.contains(&id) {
            return;
        }
        self.see(cluster, id);
        if let Some(pods) = self.jobs.get_mut(&id).filter(|pods| pods.kinds & kinds != 0) {
            pods.kinds &= kinds;
        }
    }

    /// The pods of a job go, and do not come again until it is let in.
    pub(crate) fn evict(&mut self, cluster: &mut Cluster, id: JobId) {
        if cluster.job(id).state == JobState::Running {
            cluster.preempt(id);
        }
        self.to_come.retain(|(_, pod)| pod.0 != id);
        self.others.retain(|other| *other != id);
        for number in 0..self.jobs.remove(&id).map_or(0, |pods| pods.on.len()) {
            self.queue.remove((id, number as u32));
        }
        self.wake(cluster.now() + FREED);
    }
}
