//! The first job that fits under one order: heuristics that differ only in the order.
//!
//! None of them leaves a job behind that fits, and none of them holds GPUs back, so large gangs can starve.

use super::heuristic::Heuristic;
use super::rank::{rank, under};
use crate::candidate::CandidateKind;
use crate::lens::{Lens, LensSet};
use crate::policy::Needs;

/// Starts the first job of an order that fits, on the tightest placement of its fastest free type.
///
/// # Source
/// *By arrival*: first-fit queueing, the default of most gang schedulers. *Shortest*: SJF without preemption (SJF-FFS of the WiseShare
/// study: shortest first, first fit); equal remaining times go to the older job. *Smallest GPU-time*: shortest remaining service first
/// (SRSF; Tiresias and Muri use it as a baseline), here without preemption. *Tenant's deficit*: weighted max-min fairness over GPUs
/// held now, as a capacity scheduler's queue order; unlike in Slurm's fair share usage is instantaneous, not decayed over days.
/// *Largest gang*, each on the fullest node that holds it: best-fit decreasing.
#[must_use]
pub fn greedy(name: &'static str, lens: Lens) -> Heuristic {
    let needs = Needs::first_fitting(LensSet::of(lens));
    Heuristic::new(name, needs, move |point, scores| {
        rank(point, scores, |candidate, job| match candidate.kind {
            CandidateKind::Start => under(point.cluster, lens, 0, job),
            _ => None,
        });
    })
}
