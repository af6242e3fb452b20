//! The head of one order, or no job: head-of-line blocking.

use super::heuristic::Heuristic;
use super::rank::{rank, under};
use crate::candidate::CandidateKind;
use crate::lens::{Lens, LensSet};
use crate::policy::Needs;

/// Only the first job of an order may start; while it does not fit, everyone behind it waits. Where quotas bind, a first
/// job without room holds up its own tenant only, as if each tenant had a queue and a cluster of its own.
///
/// # Source
/// *By arrival*: the textbook baseline of the Philly, Tiresias, Gavel and Helios studies (YARN's capacity scheduler within one queue).
/// *Shortest*: the non-preemptive SJF of the Helios (SC'21) and Lucid (ASPLOS'23) simulators.
#[must_use]
pub fn head_of_line(name: &'static str, lens: Lens) -> Heuristic {
    let needs = Needs {
        heads: 1,
        tenants_in_order: true,
        fitting: 0,
        ..Needs::first_fitting(LensSet::of(lens))
    };
    Heuristic::new(name, needs, move |point, scores| {
        rank(point, scores, |candidate, job| {
            let is_head = candidate.heads.contains(lens);
            (candidate.kind == CandidateKind::Start && is_head)
                .then(|| under(point.cluster, lens, 0, job))
                .flatten()
        });
    })
}
