//! Starts on the tightest placement of the fastest type that has room, as the cluster itself places jobs.

use pleach_scheduler::JobId;
use pleach_scheduler::cluster::{Cluster, JobState, Placement, Slice, Template};

/// Starts, along an order, every pending job that has a place now, on its tightest placement. Returns how many.
pub fn start_what_fits(cluster: &mut Cluster, order: &[JobId]) -> usize {
    let (mut num_started, mut slices) = (0, Vec::new());
    for &id in order {
        if cluster.job(id).state == JobState::Pending
            && let Some(placement) = tightest(cluster, id, &mut slices)
        {
            cluster.start(id, placement);
            num_started += 1;
        }
    }
    num_started
}

/// The tightest placement of a pending job on the fastest type that has room; none if it does not fit now.
pub fn tightest(cluster: &Cluster, id: JobId, slices: &mut Vec<Slice>) -> Option<Placement> {
    let demand = cluster.demand(id);
    let class = cluster.job(id).request.class;
    let kind = cluster.preferred_type(Template::Fastest, class, cluster.fitting_types(demand))?;
    slices.clear();
    cluster
        .place_job(Template::Fastest, kind, id, slices)
        .then(|| Placement::from_slice(slices))
}
