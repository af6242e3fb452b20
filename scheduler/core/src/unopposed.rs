//! Unopposed starts: no other job wants these GPUs. A policy that learned what to do where jobs wait keeps its habits on an
//! almost empty cluster: a gang waits for a place that need not come, or is spread over racks to keep whole nodes free that no
//! job needs. A policy that has to make unopposed starts does neither.
//!
//! A start is unopposed if
//!
//! 1. the job runs as fast there as it ever can: on its fastest GPU type, at a tightest place;
//! 2. all other jobs that wait for that type could start beside it now, each at a tightest place. So it can be put before all
//!    else that would be done. No job that is there starts later or looser for it: one of their best schedules begins with it;
//! 3. in the place of a hold, it leaves enough for jobs that are yet to come: two fifths of the type's GPUs stay free, or it is
//!    believed to end within an hour. For jobs that come one after the other it can pay to keep a long and wide gang waiting,
//!    which is what networks learned under load.
//!
//! # What is deliberately not here
//! Waiting for a busy faster GPU type or for a tighter place, which may pay. Jobs that ask for more than whole GPUs, or for less,
//! and elastic jobs, which could have another size: counts of GPUs do not show what they leave to others, so no start is
//! unopposed among them.
//!
//! # Source
//! Ours.

use crate::ActionKind;
use crate::candidate::{Candidate, CandidateKind};
use crate::cluster::{Cluster, FreeCounts, Kept, PlacementFacts, ShapeId, Slice};
use crate::ids::{ClassId, GpuTypeId, JobId, TenantId};

/// Share of a type's GPUs that is enough for jobs that are yet to come.
///
/// # Source
/// Chosen by simulation, as [`SHORT_S`]; lab/notes/suite.md has what it is worth.
const SPARE_RATIO: f64 = 0.4;

/// A start that is believed to be over within so many seconds leaves enough, however wide it is.
const SHORT_S: f64 = 3600.0;

/// What an unopposed start is made in the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InPlaceOf {
    /// Nothing would start until something happens.
    Hold,
    /// The same job would start, slower.
    SlowerStart,
}

/// Tells which starts of a decision point are unopposed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unopposed<'a>(&'a Cluster);

impl<'a> Unopposed<'a> {
    /// None where counts of free GPUs do not show which jobs can run beside which.
    pub(crate) fn new(cluster: &'a Cluster) -> Option<Unopposed<'a>> {
        let capabilities = cluster.capabilities();
        let is_told = !(capabilities.consolidated || capabilities.can(ActionKind::MixTypes));
        is_told.then_some(Unopposed(cluster))
    }

    /// Whether a candidate with this placement is an unopposed start.
    pub(crate) fn is(self, candidate: &Candidate, placement: &[Slice], in_place_of: InPlaceOf) -> bool {
        let (CandidateKind::Start, Some(job), Some(facts)) = (candidate.kind, candidate.job, candidate.facts)
        else {
            return false;
        };
        candidate.partner.is_none()
            && candidate.granted.is_none()
            && self.is_at_its_best(job, &facts)
            && (in_place_of == InPlaceOf::SlowerStart || self.leaves_enough(job, &facts))
            && self.all_could_start(facts.gpu_type)
            && self.all_fit_tightly_beside(job, facts.gpu_type, placement)
    }

    /// Whether the job can never run faster.
    fn is_at_its_best(self, job: JobId, facts: &PlacementFacts) -> bool {
        let class = self.0.class(self.0.job(job).request.class);
        let here = class.speed[facts.gpu_type.index()];
        let mut kinds = self.0.types_in(self.0.demand(job).types);
        self.has_one_size(self.0.job(job).request.class)
            && facts.locality >= 1.0
            && kinds.all(|kind| class.speed[kind.index()] <= here)
    }

    /// Whether jobs of a class can have no other size and no other cores.
    fn has_one_size(self, class: ClassId) -> bool {
        let class = self.0.class(class);
        class.elastic.is_none() && class.sensitivity.is_none()
    }

    /// Whether the start leaves enough for jobs that are yet to come.
    fn leaves_enough(self, job: JobId, facts: &PlacementFacts) -> bool {
        let cluster = self.0;
        let left = cluster.num_free_of(facts.gpu_type).saturating_sub(facts.num_gpus);
        let run_s = cluster.resume_cost_s(job) + cluster.job(job).remaining_s_at(cluster.now()) / facts.rate;
        f64::from(left) >= SPARE_RATIO * f64::from(cluster.num_gpus_of(facts.gpu_type)) || run_s <= SHORT_S
    }

    /// Whether free GPUs and quotas are enough for all jobs that wait for a type, which ask for whole GPUs and nothing else.
    fn all_could_start(self, kind: GpuTypeId) -> bool {
        let cluster = self.0;
        let mut free = u64::from(cluster.num_free_of(kind));
        let mut groups = cluster
            .queue()
            .groups()
            .filter(|(demand, _)| demand.types >> kind.0 & 1 == 1);
        let has_gpus = groups.all(|(demand, group)| {
            let gpus = group.rows(Kept::Arrival).len() as u64 * u64::from(demand.num_gpus);
            let is_left = free.checked_sub(gpus).filter(|_| demand.shape == ShapeId::PLAIN);
            free = is_left.unwrap_or(0);
            is_left.is_some()
        });
        let tenants = cluster.tenants().iter().zip(0..);
        let mut left = tenants.map(|(tenant, id)| (tenant.pending_gpus, cluster.quota_left(TenantId(id))));
        has_gpus && left.all(|(pending, left)| pending <= u64::from(left))
    }

    /// Whether all other jobs that wait for a type have tightest places on it beside a start. The widest choose first.
    fn all_fit_tightly_beside(self, job: JobId, kind: GpuTypeId, placement: &[Slice]) -> bool {
        let cluster = self.0;
        let mut groups: Vec<_> = cluster.queue().groups().collect();
        groups.retain(|(demand, _)| demand.types >> kind.0 & 1 == 1);
        groups.sort_by_key(|(demand, _)| std::cmp::Reverse(demand.num_gpus));
        let jobs = groups
            .iter()
            .flat_map(|(_, group)| group.rows(Kept::Arrival).iter());
        let mut others = jobs
            .map(|row| row.row().1)
            .filter(|other| *other != job)
            .peekable();
        if others.peek().is_none() {
            return true;
        }
        let mut free = FreeCounts::now(cluster, kind);
        free.take(cluster, placement);
        others.all(|other| {
            let request = &cluster.job(other).request;
            if !self.has_one_size(request.class) {
                return false;
            }
            let spread = free.start(cluster, request.num_gpus);
            let factor = spread.and_then(|spread| cluster.factor_of(request.class, request.num_gpus, spread));
            factor.is_some_and(|factor| factor >= 1.0)
        })
    }
}

#[cfg(test)]
mod best_schedule_tests;
#[cfg(test)]
mod tests;
