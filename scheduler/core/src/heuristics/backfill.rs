//! A reservation for the head of one order, and backfill in another: EASY and its relatives.

use super::rank::{rank, under};
use crate::actions::{ActionKind, ActionSet};
use crate::candidate::CandidateKind;
use crate::error::PolicyError;
use crate::lens::{Lens, LensSet, first_with_room};
use crate::policy::{DecisionPoint, Needs, Policy};

/// Starts the head of an order as long as it fits. When it does not, reserves its nodes once in the pass and starts, in
/// the second order, what is believed not to delay it.
///
/// # Source
/// EASY backfill (Lifka, JSSPP'95), on nodes as in Slurm: shadow time and nodes as in [`crate::pass::Reservation`]. Deviation: on a
/// cluster that cannot reserve, nothing is backfilled and the head blocks the queue, because otherwise it could starve.
#[derive(Clone, Debug)]
pub struct Backfill {
    name: &'static str,
    head: Lens,
    fill: Lens,
}

impl Backfill {
    /// EASY: head and backfill in arrival order.
    #[must_use]
    pub fn easy() -> Backfill {
        Backfill::new("easy", Lens::Arrival, Lens::Arrival)
    }

    /// EASY whose backfill takes the shortest job first.
    ///
    /// # Source
    /// SJBF, shortest job backfilled first (Tsafrir, Etsion and Feitelson, TPDS'07).
    #[must_use]
    pub(crate) fn easy_sjf() -> Backfill {
        Backfill::new("easy-sjf", Lens::Arrival, Lens::Shortest)
    }

    /// Shortest first, with a reservation for the shortest job when it does not fit. A large gang is not starved by the
    /// longer jobs around it; an endless stream of shorter ones can still starve it.
    #[must_use]
    pub(crate) fn sjf_reserve() -> Backfill {
        Backfill::new("sjf-reserve", Lens::Shortest, Lens::Shortest)
    }

    /// As [`Backfill::sjf_reserve`], by remaining GPU-time.
    #[must_use]
    pub(crate) fn gpu_time_reserve() -> Backfill {
        Backfill::new("gpu-time-reserve", Lens::SmallestGpuTime, Lens::SmallestGpuTime)
    }

    fn new(name: &'static str, head: Lens, fill: Lens) -> Backfill {
        Backfill { name, head, fill }
    }
}

impl Policy for Backfill {
    fn name(&self) -> &str {
        self.name
    }

    fn needs(&self) -> Needs {
        Needs {
            heads: 1,
            actions: ActionSet::of(ActionKind::Reserve),
            ..Needs::first_fitting(LensSet::of(self.head).with(self.fill))
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let cluster = point.cluster;
        // The head of the whole queue, be it reserved or not: the candidates leave a reserved job out.
        let head = first_with_room(cluster, self.head);
        let may_fill = cluster.capabilities().can(ActionKind::Reserve);
        rank(&point, scores, |candidate, job| match candidate.kind {
            CandidateKind::Start | CandidateKind::Reserve if Some(job) == head => {
                under(cluster, self.head, 0, job)
            }
            CandidateKind::Start if may_fill => under(cluster, self.fill, 1, job),
            _ => None,
        });
        Ok(())
    }
}
