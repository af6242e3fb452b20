//! What the writers of columns read: facts of a job, of a candidate, of all candidates.

use crate::candidate::{Candidate, CandidateKind, OpportunityCost};
use crate::cluster::Cluster;
use crate::ids::{JobId, Time};
use crate::pass::reservation::Reservation;

/// Of a job that is offered.
pub(crate) struct JobFacts {
    pub(crate) num_gpus: f32,
    /// Believed rest, s.
    pub(crate) remaining_s: f32,
    /// Time since submission, s.
    pub(crate) wait_s: f32,
    pub(crate) attained_gpu_s: f32,
    pub(crate) tenant_use_ratio: f32,
    pub(crate) num_preemptions: f32,
    /// Grows from job to job.
    pub(crate) arrival: f32,
    /// GPUs of the cluster.
    pub(crate) cluster_gpus: f32,
}

impl JobFacts {
    #[inline]
    pub(super) fn of(cluster: &Cluster, id: JobId) -> JobFacts {
        let (now, job) = (cluster.now(), cluster.job(id));
        JobFacts {
            num_gpus: job.request.num_gpus as f32,
            remaining_s: job.remaining_s_at(now) as f32,
            wait_s: job.age_s_at(now) as f32,
            attained_gpu_s: job.attained_gpu_s_at(now) as f32,
            tenant_use_ratio: cluster.tenant(job.request.tenant).use_ratio() as f32,
            num_preemptions: job.num_preemptions as f32,
            arrival: id.0 as f32,
            cluster_gpus: cluster.num_gpus() as f32,
        }
    }
}

/// Of a candidate about a job.
pub(crate) struct ActionFacts<'a> {
    pub(crate) candidate: &'a Candidate,
}

/// Of a candidate about a job, for what is a time.
pub(crate) struct TimeFacts<'a> {
    pub(crate) candidate: &'a Candidate,
    pub(crate) cluster: &'a Cluster,
    /// Believed time that it would hold its GPUs, restart included.
    pub(crate) duration_s: f32,
    /// None where every candidate's is plain.
    pub(crate) cost: Option<&'a OpportunityCost>,
}

impl TimeFacts<'_> {
    /// Of a reservation.
    #[inline]
    pub(crate) fn wait_to_fit_s(&self) -> Option<f32> {
        let is_reserve = self.candidate.kind == CandidateKind::Reserve;
        is_reserve.then_some(self.candidate.wait_to_fit_s as f32)
    }

    /// Of a candidate that stops jobs.
    #[inline]
    pub(crate) fn victims_remaining_s(&self) -> Option<f32> {
        let stops = !self.candidate.victims.is_empty();
        stops.then_some(self.candidate.stopped.remaining_s_min as f32)
    }

    /// Of a candidate beside a running job.
    #[inline]
    pub(crate) fn partner_remaining_s(&self) -> Option<f32> {
        let partner = self.candidate.partner?;
        Some(self.cluster.job(partner).remaining_s_at(self.cluster.now()) as f32)
    }
}

/// Of any candidate: GPUs, for shares of the cluster's.
pub(crate) struct RowFacts {
    /// Free after it.
    pub(crate) num_left: f32,
    /// Gang of the oldest pending job that it is not about; 0 without one.
    pub(crate) oldest_other_gpus: f32,
    pub(crate) cluster_gpus: f32,
}

/// Of the cluster and its queue.
pub(crate) struct ContextFacts<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) reservation: Option<&'a Reservation>,
    /// The oldest pending job.
    pub(crate) oldest: Option<JobId>,
}

impl ContextFacts<'_> {
    /// GPUs over all GPUs.
    pub(crate) fn share(&self, num_gpus: u32) -> f32 {
        num_gpus as f32 / self.cluster.num_gpus() as f32
    }

    /// Time until then, s; not negative.
    pub(crate) fn seconds_to(&self, time: Time) -> f32 {
        time.since(self.cluster.now()).as_secs_f64().max(0.0) as f32
    }

    fn types(&self) -> impl Iterator<Item = crate::ids::GpuTypeId> {
        let cluster = self.cluster;
        cluster.types_in(u64::MAX >> (64 - cluster.num_types()))
    }

    pub(crate) fn largest_free_fraction(&self) -> f32 {
        let cluster = self.cluster;
        let node_max = self.types().map(|kind| cluster.node_gpus_max_of(kind)).max();
        let largest = self.types().map(|kind| cluster.largest_free_of(kind)).max();
        largest.unwrap_or(0) as f32 / node_max.unwrap_or(1) as f32
    }

    pub(crate) fn empty_node_fraction(&self) -> f32 {
        let empty: u32 = self
            .types()
            .map(|kind| self.cluster.num_empty_nodes_of(kind))
            .sum();
        empty as f32 / self.cluster.nodes().len() as f32
    }

    pub(crate) fn next_finish_s(&self) -> f32 {
        let ends = self
            .types()
            .filter_map(|kind| self.cluster.running_of(kind).first());
        let next = ends.map(|(end, _)| *end).min();
        next.map_or(0.0, |end| self.seconds_to(end))
    }

    pub(crate) fn oldest_wait_s(&self) -> f32 {
        let waited = |job| self.cluster.job(job).age_s_at(self.cluster.now()) as f32;
        self.oldest.map_or(0.0, waited)
    }

    pub(crate) fn free_fastest_fraction(&self) -> f32 {
        let fastest = self.cluster.fastest_type();
        self.cluster.num_free_of(fastest) as f32 / self.cluster.num_gpus_of(fastest).max(1) as f32
    }
}
