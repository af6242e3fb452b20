//! Shortest job first, beside a running job where that beats waiting for it.
//!
//! # Source
//! The pair test is that of SJF-BSBF (WiseShare, IWQoS'24): [`MeanEnds`].
//!
//! Deviations: the partner is the one with which both get most done, on exactly its GPUs (the paper gathers GPUs of several
//! partners); no sub-batches.

use super::heuristic::Heuristic;
use super::rank::{rank, under};
use crate::actions::{ActionKind, ActionSet};
use crate::candidate::{Candidate, CandidateKind};
use crate::cluster::Cluster;
use crate::ids::JobId;
use crate::lens::{Lens, LensSet};
use crate::physics::interference::MeanEnds;
use crate::policy::Needs;

/// Shortest jobs that are looked at for a place beside another.
const HEADS: usize = 4;

/// Shortest job first; a job that does not fit goes beside a running job where the pair test says so.
pub(super) fn sjf_share(name: &'static str) -> Heuristic {
    let needs = Needs {
        heads: HEADS,
        actions: ActionSet::of(ActionKind::Share),
        ..Needs::first_fitting(LensSet::of(Lens::Shortest))
    };
    Heuristic::new(name, needs, |point, scores| {
        rank(point, scores, |candidate, job| {
            match (candidate.kind, candidate.partner) {
                (CandidateKind::Start, None) => under(point.cluster, Lens::Shortest, 0, job),
                (CandidateKind::Start, Some(partner))
                    if beats_waiting(point.cluster, candidate, job, partner) =>
                {
                    under(point.cluster, Lens::Shortest, 1, job)
                }
                _ => None,
            }
        });
    })
}

/// Whether a newcomer and its partner finish earlier on average if they share now.
fn beats_waiting(cluster: &Cluster, candidate: &Candidate, job: JobId, partner: JobId) -> bool {
    let Some(facts) = candidate.facts else {
        return false;
    };
    let (now, running) = (cluster.now(), cluster.job(partner));
    let speed_a = cluster.packed_speed(job, &[partner], facts.gpu_type);
    let speed_b = cluster.packed_speed(partner, &[job], facts.gpu_type);
    let alone_a_s = cluster.job(job).remaining_s_at(now) / (facts.rate / speed_a);
    let alone_b_s = running.remaining_s_at(now) / running.rate_alone;
    MeanEnds::of(alone_a_s, alone_b_s, speed_a, speed_b).favour_sharing()
}
