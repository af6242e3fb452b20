//! A reservation: GPUs held back for a job that does not fit yet, as in EASY backfill.
//!
//! # Source
//! EASY: at the *shadow time* enough running jobs are believed to have ended for the reserved gang; what is free then
//! beyond the gang is *extra*. Another job may start if it is believed to end before the shadow time, or if it takes
//! only extra GPUs. The count is of GPUs of one type, not of nodes, so a fragmented cluster may still make the gang
//! loose, never late by the estimates.

use crate::cluster::{Cluster, Demand};
use crate::ids::{GpuTypeId, JobId, TenantId, Time};

/// GPUs held back for one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reservation {
    /// The job.
    pub job: JobId,
    /// The type on which it will run.
    pub gpu_type: GpuTypeId,
    /// When it is believed to fit.
    pub shadow: Time,
    /// GPUs of the type that others may take without delaying it.
    pub extra: u32,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Quota that its tenant's other jobs may take without delaying it; without limit where borrowing is allowed.
    pub room: u32,
}

impl Reservation {
    /// The earliest believed fit of a job over its types; none if no type holds the gang.
    #[must_use]
    pub fn earliest(cluster: &Cluster, job: JobId) -> Option<Reservation> {
        let demand = cluster.demand(job);
        let mut best: Option<Reservation> = None;
        for kind in cluster.types_in(demand.types) {
            if let Some((shadow, free)) = earliest_fit(cluster, kind, demand.num_gpus)
                && best.is_none_or(|other| shadow < other.shadow)
            {
                best = Some(Reservation {
                    job,
                    gpu_type: kind,
                    shadow,
                    extra: free - demand.num_gpus,
                    tenant: demand.tenant,
                    room: cluster.quota_left(demand.tenant).saturating_sub(demand.num_gpus),
                });
            }
        }
        best
    }

    /// Whether a start on `kind` that is believed to end at `end` leaves the reserved job its GPUs and its quota in time.
    #[must_use]
    pub fn allows(&self, demand: &Demand, kind: GpuTypeId, end: Time) -> bool {
        let gpus = kind != self.gpu_type || demand.num_gpus <= self.extra;
        let quota = demand.tenant != self.tenant || demand.num_gpus <= self.room;
        end <= self.shadow || (gpus && quota)
    }

    /// Books a start that [`Reservation::allows`] let through.
    pub(crate) fn book(&mut self, demand: &Demand, kind: GpuTypeId, end: Time) {
        if end <= self.shadow {
            return;
        }
        if kind == self.gpu_type {
            self.extra = self.extra.saturating_sub(demand.num_gpus);
        }
        if demand.tenant == self.tenant {
            self.room = self.room.saturating_sub(demand.num_gpus);
        }
    }
}

/// When `num_gpus` of a type are believed to be free, and how many are free then.
fn earliest_fit(cluster: &Cluster, kind: GpuTypeId, num_gpus: u32) -> Option<(Time, u32)> {
    let mut free = cluster.num_free_of(kind);
    if free >= num_gpus {
        return Some((cluster.now(), free));
    }
    // A job that has outlived its estimate is believed to end in a second.
    let soon = cluster.now() + Time::from_secs_f64(1.0);
    let mut running = cluster.running_of(kind).iter().peekable();
    while let Some((end, job)) = running.next() {
        free += cluster.job(*job).request.num_gpus;
        let end = (*end).max(soon);
        // Jobs that end together free their GPUs together.
        let more_at_once = running.peek().is_some_and(|(next, _)| (*next).max(soon) == end);
        if free >= num_gpus && !more_at_once {
            return Some((end, free));
        }
    }
    None
}
