//! Suspends Jobs whose pods wait, and lets those go that are to start.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pleach_scheduler::ExternalId;

use super::Hands;
use crate::api::Cluster;
use crate::error::Error;
use crate::job_pods::JobPods;
use crate::let_go::{LetGo, Place};
use crate::mark::Decided;
use crate::node::node_of;
use crate::suspended::Owner;
use crate::suspended::maker::JOB;

/// Jobs that a round suspends at most; the others are suspended in the next ones. *Ours*.
const SUSPENDED_MAX: usize = 50;

/// Jobs that are let go and have no pods yet, at most. The Job controller sends 20 requests a second where `--kube-api-qps` says
/// nothing else, some three for a pod; a Job whose pods come after `release_limit_s` would be suspended again. *Ours*.
const RESUMED_MAX: usize = 200;

impl Hands<'_> {
    /// Whether a Job more may be let go.
    pub(super) fn may_resume(&self) -> bool {
        self.num_unmade < RESUMED_MAX
    }

    /// Lets the Jobs of a job make their pods, which go to these seats; without seats they wait with their gates.
    pub(super) async fn resume(
        &mut self,
        job: &JobPods,
        seats: &[(String, u32)],
        now_s: i64,
    ) -> Result<(), Error> {
        self.expect(job, seats, now_s);
        for (owner, mark) in self.marked(job, seats, now_s) {
            let sent = resumed((self.cluster, &self.let_go), &owner, mark.as_deref()).await;
            self.hear(sent)?;
        }
        Ok(())
    }

    /// The same without waiting for the answers, beside other requests.
    pub(super) async fn begin_resume(
        &mut self,
        id: ExternalId,
        job: &JobPods,
        seats: &[(String, u32)],
        now_s: i64,
    ) {
        self.expect(job, seats, now_s);
        let (owners, cluster) = (self.marked(job, seats, now_s), self.cluster.clone());
        let let_go = self.let_go.clone();
        let sent = async move {
            for (owner, mark) in &owners {
                resumed((&cluster, &let_go), owner, mark.as_deref()).await?;
            }
            Ok(())
        };
        self.begin(id, sent).await;
    }

    /// Tells the webhook where the one pod of a Job goes; of all others nothing, for their pods wait for each other.
    fn expect(&self, job: &JobPods, seats: &[(String, u32)], now_s: i64) {
        let ([owner], [pod], [(seat, 1)]) = (&job.owners[..], &job.pods[..], seats) else {
            return;
        };
        let Ok(hostname) = self.hostname(pod, node_of(seat)) else {
            return;
        };
        if *owner.kind == JOB && owner.num_pods == 1 && pod.other_gate().is_none() {
            let limit = Duration::from_secs(u64::try_from(self.settings.release_limit_s).unwrap_or(0));
            let place = Place {
                hostname,
                mark: self.text_of_mark(&Decided::any_of(&owner.uid), seat, seats, now_s),
                gpus: BTreeMap::from([(pod.resource.clone(), pod.num_gpus)]),
                until: Instant::now() + limit,
            };
            self.let_go.expect(&owner.uid, place);
        }
    }

    /// The Jobs of a job, each with the text of its mark.
    fn marked(&self, job: &JobPods, seats: &[(String, u32)], now_s: i64) -> Vec<(Owner, Option<String>)> {
        let seat = seats.first().map(|(unit, _)| unit.as_str());
        let mark = |owner: &Owner| Some(self.text_of_mark(&owner.uid, seat?, seats, now_s));
        job.owners
            .iter()
            .map(|owner| (owner.clone(), mark(owner)))
            .collect()
    }

    /// Suspends the Jobs of a job; those that were let go and got no pods are not let go again for a while.
    pub(super) async fn suspend(&mut self, job: &JobPods, now_s: i64) -> Result<Option<String>, Error> {
        if self.num_suspended >= SUSPENDED_MAX {
            return Ok(None);
        }
        let pause_s = if job.is_made {
            0
        } else {
            self.settings.release_limit_s
        };
        for owner in job.owners.iter().filter(|owner| !owner.is_suspended) {
            self.let_go.forget(&owner.uid);
            let not_before_s = if pause_s > 0 { now_s + pause_s } else { 0 };
            let sent = self.cluster.suspend(owner, not_before_s).await;
            self.hear(sent)?;
            self.num_suspended += 1;
        }
        Ok((pause_s > 0).then(|| {
            let name = &job.name;
            format!("{name} was let go and its pods were not made within {pause_s} s: its Job is suspended again for as long")
        }))
    }
}

/// Lets a Job make its pods; of one that could not be let go the webhook is to know no place.
async fn resumed(
    (cluster, let_go): (&Cluster, &LetGo),
    owner: &Owner,
    mark: Option<&str>,
) -> Result<(), Error> {
    let sent = cluster.resume(owner, mark).await;
    if sent.is_err() {
        let_go.forget(&owner.uid);
    }
    sent
}
