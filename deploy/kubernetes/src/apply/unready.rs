//! Pods that are bound and do not begin: an image that is not there, a volume that does not mount. They hold GPUs for nothing.

use pleach_daemon::system::Late;
use pleach_scheduler::ExternalId;

use super::Hands;
use crate::error::Error;
use crate::job_pods::JobPods;
use crate::pod::PodSeen;

impl Hands<'_> {
    /// Takes the GPUs back from a job of which pods were bound long ago and have not begun: of all its pods where they were bound
    /// together, else of those that are stuck, for the others have worked. What an operator should know, and the nodes for a while
    /// not to be tried again; none is the rule.
    pub(super) async fn give_up_unready(
        &mut self,
        id: ExternalId,
        job: &JobPods,
        now_s: i64,
    ) -> Result<Option<(String, Vec<Late>)>, Error> {
        let limit_s = self.settings.ready_limit_s;
        let is_stuck = |pod: &&PodSeen| {
            let bound_s = pod
                .bound_s
                .filter(|_| pod.node.is_some() && pod.decided.is_some());
            !pod.has_begun && bound_s.is_some_and(|bound_s| now_s - bound_s > limit_s)
        };
        let stuck: Vec<&PodSeen> = job.pods.iter().filter(is_stuck).collect();
        let Some(stuck_s) = stuck.iter().filter_map(|pod| pod.bound_s).min() else {
            return Ok(None);
        };
        let names: Vec<&str> = stuck.iter().map(|pod| pod.name.as_str()).collect();
        let what = format!(
            "{}, of {}: bound {} s ago and not begun",
            names.join(", "),
            job.name,
            now_s - stuck_s
        );
        if !self.settings.recreate || !job.pods.iter().all(|pod| pod.is_owned) {
            let end = "its pods must be deleted by hand: no controller would make them anew";
            return Ok(Some((format!("{what}; {end}"), Vec::new())));
        }
        let first_s = job
            .pods
            .iter()
            .filter_map(|pod| pod.bound_s)
            .min()
            .unwrap_or(stuck_s);
        let is_together = stuck_s - first_s <= limit_s;
        let evicted: Vec<PodSeen> = match is_together {
            true => job.pods.clone(),
            false => stuck.iter().map(|pod| (*pod).clone()).collect(),
        };
        if let Err(refused) = self.may_be_evicted(&evicted).await {
            return Ok(Some((format!("{what}; {}", refused.why), Vec::new())));
        }
        self.evict(&evicted).await?;
        let late = stuck.iter().filter_map(|pod| {
            Some(Late {
                job: id,
                node: Some(pod.decided.as_ref()?.seat.clone()),
                reason: format!("{} did not begin there within {limit_s} s", pod.name),
                pause_s: 0,
            })
        });
        let num = evicted.len();
        let note = format!("{what}; {num} of its pods are evicted, so that its GPUs are free for others");
        Ok(Some((note, late.collect())))
    }
}
