//! The two classic preemptive orders: shortest remaining time and least attained service.
//!
//! Where the cluster cannot preempt, both are their non-preemptive selves: no candidate stops anything.

use super::heuristic::Heuristic;
use super::rank::{rank, under};
use crate::actions::{ActionKind, ActionSet};
use crate::candidate::{Candidate, CandidateKind};
use crate::cluster::{Cluster, service_class};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, LensSet};
use crate::policy::{DecisionPoint, Needs};

/// First jobs of the order that may stop others although they do not fit. *Assumed*: more would rarely find victims that
/// the first ones did not.
const HEADS: usize = 8;

/// How often service classes are looked at again while nothing happens, s. *Assumed*: one GPU needs 54 minutes to
/// leave the first class, eight GPUs seven.
const TICK_S: f64 = 300.0;

fn needs(lens: Lens, tick: Option<Time>) -> Needs {
    Needs {
        heads: HEADS,
        actions: ActionSet::of(ActionKind::Preempt),
        tick,
        ..Needs::first_fitting(LensSet::of(lens))
    }
}

/// Shortest remaining time first: a pending job may stop running ones that would end later than it does by more than
/// the cost of their restart, so no two jobs stop each other in turn.
///
/// # Source
/// SRTF as the full-knowledge baseline of Tiresias (NSDI'19) and Synergy (OSDI'22). Deviation: those restart the whole
/// cluster's allocation at each event; here running jobs stay unless a shorter pending job needs their GPUs.
pub(super) fn srtf(name: &'static str) -> Heuristic {
    let needs = needs(Lens::Shortest, None);
    Heuristic::new(name, needs, |point, scores| {
        let cluster = point.cluster;
        rank(point, scores, |candidate, job| match candidate.kind {
            CandidateKind::Start => under(cluster, Lens::Shortest, 0, job),
            CandidateKind::Preempt if outlast(point, candidate, job) => {
                under(cluster, Lens::Shortest, 0, job)
            }
            _ => None,
        });
    })
}

/// Whether every victim would end later than the newcomer, the victim's restart included.
fn outlast(point: &DecisionPoint<'_>, candidate: &Candidate, job: JobId) -> bool {
    let cluster = point.cluster;
    let Some(facts) = candidate.facts else {
        return false;
    };
    let row = cluster.job(job);
    let own_s = cluster.resume_cost_s(job) + row.remaining_s_at(cluster.now()) / facts.rate;
    let victims = point.candidates.victims(candidate);
    victims.iter().all(|victim| {
        let limit = cluster.now() + Time::from_secs_f64(own_s + cluster.restart_cost_s(*victim));
        cluster.job(*victim).expected_finish > limit
    })
}

/// Least attained service in classes: jobs that received less than 3,250 / 7,200 / 18,000 GPU·s go before the others,
/// by arrival within a class, and may stop running jobs of higher classes.
///
/// # Source
/// Tiresias (NSDI'19), discretised 2D-LAS with the constants of the released code. Deviations: within a class, jobs
/// that run stay and pending ones go by arrival, not by first start; demotion is noticed at an event or a tick of
/// 5 minutes, not at its instant; no promotion of starved jobs (the released default); the placement does not look at
/// a model's skew.
pub(super) fn las(name: &'static str) -> Heuristic {
    let needs = needs(Lens::LeastAttained, Some(Time::from_secs_f64(TICK_S)));
    Heuristic::new(name, needs, |point, scores| {
        let cluster = point.cluster;
        rank(point, scores, |candidate, job| {
            let class = class_of(cluster, job);
            let served_more = |victim: &JobId| class_of(cluster, *victim) > class;
            match candidate.kind {
                CandidateKind::Start => under(cluster, Lens::LeastAttained, 0, job),
                CandidateKind::Preempt if point.candidates.victims(candidate).iter().all(served_more) => {
                    under(cluster, Lens::LeastAttained, 0, job)
                }
                _ => None,
            }
        });
    })
}

fn class_of(cluster: &Cluster, job: JobId) -> u8 {
    service_class(cluster.job(job).attained_gpu_s_at(cluster.now()))
}
