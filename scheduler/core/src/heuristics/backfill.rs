//! A reservation for the head of one order, and backfill in another: EASY and its relatives.

use super::heuristic::Heuristic;
use super::rank::{rank, under};
use crate::actions::{ActionKind, ActionSet};
use crate::candidate::CandidateKind;
use crate::lens::{Lens, LensSet, first_with_room};
use crate::policy::Needs;

/// Starts the head of an order as long as it fits. When it does not, reserves its nodes once in the pass and starts, in
/// the second order, what is believed not to delay it. With a reservation for the shortest job a large gang is not starved by the
/// longer jobs around it; an endless stream of shorter ones can still starve it.
///
/// # Source
/// EASY backfill (Lifka, JSSPP'95), on nodes as in Slurm: shadow time and nodes as in [`crate::pass::Reservation`]. Deviation: on a
/// cluster that cannot reserve, nothing is backfilled and the head blocks the queue, because otherwise it could starve. Filling the
/// shortest job first is SJBF (Tsafrir, Etsion and Feitelson, TPDS'07).
pub(super) fn backfill(name: &'static str, head: Lens, fill: Lens) -> Heuristic {
    let needs = Needs {
        heads: 1,
        actions: ActionSet::of(ActionKind::Reserve),
        ..Needs::first_fitting(LensSet::of(head).with(fill))
    };
    Heuristic::new(name, needs, move |point, scores| {
        let cluster = point.cluster;
        // The head of the whole queue, be it reserved or not: the candidates leave a reserved job out.
        let first = first_with_room(cluster, head);
        let may_fill = cluster.capabilities().can(ActionKind::Reserve);
        rank(point, scores, |candidate, job| match candidate.kind {
            CandidateKind::Start | CandidateKind::Reserve if Some(job) == first => {
                under(cluster, head, 0, job)
            }
            CandidateKind::Start if may_fill => under(cluster, fill, 1, job),
            _ => None,
        });
    })
}
