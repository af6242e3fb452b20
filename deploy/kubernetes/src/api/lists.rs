//! What a round looks at: as it is kept by watches, else by lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

use super::{Cluster, ENDED, key, shared, trim};
use crate::error::Error;
use crate::names;
use crate::observe::Lists;
use crate::pod;

/// Jobs that are asked for one by one in a round; more are listed all at once. *Ours*.
const MISSING_MAX: usize = 50;

impl Cluster {
    /// All nodes, all pods that have not ended, and the Jobs that those which may be driven are of: as they are kept after
    /// [`Cluster::watch`], else by lists.
    ///
    /// # Errors
    /// A list that cannot be had, or is too long; what is kept is too old.
    pub async fn lists(&self) -> Result<Lists, Error> {
        let mut unread = Vec::new();
        let nodes = match self.kept_nodes(&mut unread).await? {
            Some(nodes) => nodes,
            None => shared(self.nodes().await?),
        };
        let pods = match self.kept_pods(&mut unread).await? {
            Some(pods) => pods,
            None => shared(self.pods().await?),
        };
        let jobs = self.jobs_of(&pods, &mut unread).await?;
        let kueue = match self.settings.drive.is_order() {
            true => Some(self.kueue().await?),
            false => None,
        };
        let others = match self.settings.drive.is_order() {
            true => Vec::new(),
            false => self.others(&mut unread).await?,
        };
        let mut lists = Lists {
            nodes,
            pods,
            jobs,
            others,
            kueue,
            unread,
            ..Lists::default()
        };
        if !self.settings.drive.is_order() {
            self.read_bounds(&mut lists).await?;
            self.read_volumes(&mut lists).await?;
        }
        Ok(lists)
    }

    /// All pods that have ended and are still listed, and all Jobs where one of those pods is of one.
    ///
    /// # Errors
    /// As [`Cluster::lists`].
    pub async fn ended(&self) -> Result<(Vec<Arc<Pod>>, Vec<Arc<Job>>), Error> {
        // What is missing here a round says of what lives.
        let mut unread = Vec::new();
        let pods = match self.kept_ended(&mut unread).await? {
            Some(pods) => pods,
            None => shared(self.pods_with(ENDED).await?),
        };
        if !pods.iter().any(|pod| self.job_of(pod).is_some()) {
            return Ok((pods, Vec::new()));
        }
        let jobs = match self.kept_jobs(&mut unread).await? {
            Some(jobs) => jobs,
            None => shared(self.jobs().await?),
        };
        Ok((pods, jobs))
    }

    /// The Jobs that live pods are of, and whose pods count with theirs, and those that wait without pods. Those that ended well stay
    /// in the list until they are deleted, so Jobs without a success are listed, Jobs of JobSets, and of the others those that are missing are asked for
    /// one by one; all, where they are many.
    ///
    /// # Source
    /// `status.successful` is a field that Jobs can be selected by: `JobToSelectableFields` of Kubernetes' `pkg/registry/batch/job`.
    async fn jobs_of(&self, pods: &[Arc<Pod>], unread: &mut Vec<String>) -> Result<Vec<Arc<Job>>, Error> {
        if self.settings.drive.is_order() && !pods.iter().any(|pod| self.job_of(pod).is_some()) {
            return Ok(Vec::new());
        }
        let kept = self.kept_jobs(unread).await?;
        if let Some(picked) = kept.as_ref().and_then(|all| self.picked.jobs(pods, all)) {
            return Ok(picked);
        }
        let asked: BTreeSet<(&str, &str)> = pods.iter().filter_map(|pod| self.job_of(pod)).collect();
        let has_sets = pods
            .iter()
            .any(|pod| pod::word(pod, names::JOBSET_NAME).is_some());
        let mut jobs = match kept.clone() {
            Some(mut jobs) => {
                jobs.retain(|job| {
                    let is_begun = job
                        .status
                        .as_ref()
                        .and_then(|status| status.succeeded)
                        .unwrap_or(0)
                        == 0;
                    let labels = job.metadata.labels.as_ref();
                    let is_of_set = labels.is_some_and(|labels| labels.contains_key(names::JOBSET_NAME));
                    // What was suspended again may have pods that ended well.
                    let is_noted = job.metadata.annotations.is_some();
                    is_begun || is_noted || has_sets && is_of_set || asked.contains(&key(&**job))
                });
                jobs
            }
            None => self.listed_jobs(has_sets).await?,
        };
        let known: BTreeSet<(&str, &str)> = jobs.iter().map(|job| key(&**job)).collect();
        // A pod may be shown before its Job.
        let missing: Vec<(&str, &str)> = asked.difference(&known).copied().collect();
        if missing.len() > MISSING_MAX {
            return Ok(shared(self.jobs().await?));
        }
        if let (true, Some(all)) = (missing.is_empty(), kept) {
            self.picked.note_jobs(pods, all, &jobs);
        }
        let mut found = Vec::new();
        for (namespace, name) in missing {
            let api: Api<Job> = Api::namespaced(self.client.clone(), namespace);
            let what = format!("job {namespace}/{name}");
            if let Some(mut job) = self.ask(&what, api.get_opt(name)).await? {
                trim::job(&mut job, self.settings.tenant_label.as_deref());
                found.push(Arc::new(job));
            }
        }
        jobs.extend(found);
        Ok(jobs)
    }

    /// Jobs without a success, and those of JobSets where there are some.
    async fn listed_jobs(&self, has_sets: bool) -> Result<Vec<Arc<Job>>, Error> {
        let begun = ListParams::default().fields("status.successful=0");
        let trim = |job: &mut Job| trim::job(job, self.settings.tenant_label.as_deref());
        let mut jobs = self.list("jobs", begun, trim).await?;
        if has_sets {
            let of_sets = ListParams::default().labels(names::JOBSET_NAME);
            let mut of_sets = self.list("jobs", of_sets, trim).await?;
            let known: BTreeSet<(&str, &str)> = jobs.iter().map(key).collect();
            of_sets.retain(|job| !known.contains(&key(job)));
            jobs.extend(of_sets);
        }
        Ok(shared(jobs))
    }

    /// Namespace and name of the Job of a pod that a round looks at; none of others.
    fn job_of<'a>(&self, pod: &'a Pod) -> Option<(&'a str, &'a str)> {
        let name = pod::word(pod, names::JOB_NAME).or_else(|| pod::word(pod, names::JOB_NAME_OLD))?;
        let asks = |spec| !pod::gpus(spec, &self.settings).is_empty();
        if !pod::has_gate(pod) && !pod.spec.as_ref().is_some_and(asks) {
            return None;
        }
        Some((pod.metadata.namespace.as_deref()?, name))
    }
}
