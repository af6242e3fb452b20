//! Shortest job first at the sizes where GPUs do most. Running jobs grow while no job waits, and shrink while one does.
//!
//! # Source
//! Sizes by what the next GPUs add: Optimus (EuroSys'18). The two rules are ours. A job starts at the size, of half, all and
//! twice what it asked for, at which a GPU does most. While no job waits, the running job that gains most grows, if it gains at
//! least [`GAIN_MIN`] restarts. While a job waits, a running job gives half of its GPUs away if that is enough for the waiting
//! job and the given half does less than [`MARGIN_MIN`] of what GPUs do at its most efficient size. Where jobs cannot be resized
//! this is shortest job first at the most efficient sizes.

use super::heuristic::Heuristic;
use super::rank::rank_rows;
use crate::actions::{ActionKind, ActionSet, CandidateKind};
use crate::candidate::Candidate;
use crate::cluster::{Cluster, Demand};
use crate::ids::JobId;
use crate::lens::{Lens, LensSet, first_jobs, lens_key};
use crate::policy::Needs;

/// Least time that a job must gain by growing, in restarts. *Assumed*: it may have to shrink again.
const GAIN_MIN: f64 = 2.0;

/// Least progress of each GPU of a job's last half, over that of a GPU at its most efficient size, while others wait. *Assumed.*
const MARGIN_MIN: f64 = 0.5;

/// Shortest jobs of which half may fit although the whole does not, and running jobs that are looked at.
const HEADS: usize = 8;

/// Shortest job first; running elastic jobs grow and shrink.
pub(super) fn sjf_resize(name: &'static str) -> Heuristic {
    let needs = Needs {
        heads: HEADS,
        actions: ActionSet::of(ActionKind::Sizes).with(ActionKind::Resize),
        ..Needs::first_fitting(LensSet::of(Lens::Shortest))
    };
    Heuristic::new(name, needs, |point, scores| {
        let cluster = point.cluster;
        let short_of = short_of(cluster);
        rank_rows(point, scores, |index, candidate, job| {
            let facts = candidate.facts.filter(|_| candidate.partner.is_none())?;
            match candidate.kind {
                CandidateKind::Start => {
                    let efficiency = point.candidates.opportunity_cost(index).gpu_efficiency;
                    let key = lens_key(cluster, Lens::Shortest, job);
                    Some((0, key, job, -(efficiency * 1e9) as i64, facts.num_gpus))
                }
                CandidateKind::Resize => {
                    let worth = match short_of {
                        None => gain_s(cluster, candidate, job)?,
                        Some(num_gpus) => spared(cluster, candidate, job, num_gpus)?,
                    };
                    Some((1, -(worth * 1e6) as i64, job, 0, 0))
                }
                _ => None,
            }
        });
    })
}

/// GPUs that the shortest waiting job within its quota lacks on half of what it asked for, if it is elastic, or on all of it, at
/// least 1; none where no such job waits.
fn short_of(cluster: &Cluster) -> Option<u32> {
    let mut first = Vec::new();
    let has_room = |demand: &Demand| cluster.has_room(*demand);
    first_jobs(cluster, Lens::Shortest, 1, has_room, |_| true, &mut first);
    let (_, shortest) = *first.first()?;
    let request = &cluster.job(shortest).request;
    let is_elastic = cluster.class(request.class).elastic.is_some();
    let least = if is_elastic {
        request.num_gpus.div_ceil(2)
    } else {
        request.num_gpus
    };
    Some(least.saturating_sub(cluster.num_free()).max(1))
}

/// Time by which a job is believed to end earlier if it grows so, s; none where that is too little.
fn gain_s(cluster: &Cluster, candidate: &Candidate, id: JobId) -> Option<f64> {
    let (job, facts) = (cluster.job(id), candidate.facts?);
    let (rest_s, cost_s) = (job.remaining_s_at(cluster.now()), cluster.restart_cost_s(id));
    let gain_s = rest_s / job.rate - rest_s / facts.rate - cost_s;
    let pays = facts.num_gpus > job.num_held && gain_s > 0.0 && gain_s >= GAIN_MIN * cost_s;
    pays.then_some(gain_s)
}

/// By how much the last half of a job's GPUs does less than GPUs at its most efficient size, as a part of that; none where the
/// job needs it, or it would not be enough for the waiting job.
fn spared(cluster: &Cluster, candidate: &Candidate, id: JobId, num_gpus: u32) -> Option<f64> {
    let (job, facts) = (cluster.job(id), candidate.facts?);
    let given = job.num_held.saturating_sub(facts.num_gpus);
    let speed = cluster.class(job.request.class).speed[facts.gpu_type.index()];
    let peak = speed * job.pace.peak_per_gpu * f64::from(given);
    let ends_soon = job.remaining_s_at(cluster.now()) / job.rate < GAIN_MIN * cluster.restart_cost_s(id);
    let margin = (job.rate - facts.rate) / peak;
    let may_go = given >= num_gpus && margin < MARGIN_MIN && !ends_soon;
    may_go.then_some(1.0 - margin)
}
