//! What a service is given, and what becomes of it.

use pleach_scheduler::Time;
use pleach_serving::llm::{Autoscaler, Fleet, Outcome, Requests, Route, Router};

/// A service and how it leases.
pub struct ServiceSpec<'a> {
    /// What is asked of it.
    pub requests: &'a Requests,
    /// Its replicas, at most as many at once, and its gateways.
    pub fleet: &'a Fleet,
    /// GPUs of a replica, all of one node: 1 to 64.
    pub replica_gpus: u8,
    /// Chooses the replica for each request.
    pub router: &'a mut dyn Router,
    /// Decides how many replicas there should be.
    pub autoscaler: &'a mut dyn Autoscaler,
    /// From the grant of its GPUs until the model is loaded and takes requests, s.
    pub load_s: f64,
    /// What a replica that is taken back is given to serve what it has, s.
    pub grace_s: f64,
    /// Usual rates of equal parts of a day, 1/s, from midnight on, as other days have them; empty: nothing is known.
    pub usual_per_s: &'a [f64],
    /// Whether to record where each request is sent.
    pub record_routes: bool,
}

/// One replica's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Seat in the service.
    pub seat: usize,
    /// When it got its GPUs.
    pub granted: Time,
    /// When it takes requests.
    pub ready: Time,
    /// When it was taken back, to take no more requests; none: never, or it was kept after all.
    pub reclaimed: Option<Time>,
    /// When it gave its GPUs back; none: not before the end.
    pub ended: Option<Time>,
}

/// What became of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceResult {
    /// Its requests.
    pub outcome: Outcome,
    /// Its leases, by when they were granted.
    pub grants: Vec<Grant>,
    /// GPU·s that they held.
    pub leased_gpu_s: f64,
    /// Jobs that were stopped for it.
    pub num_preemptions: u64,
    /// Requests that went back to the gateways because a grace was over.
    pub num_returned: u64,
    /// Which request was sent to which seat and when, by time; empty unless it is recorded.
    pub routes: Vec<Route>,
}
