//! Who yields where a lease needs a GPU and none is free: the job whose stop loses least, GPU·s.
//!
//! A stop loses what the job did since its last checkpoint, where it is not given the time to save, and the next restart, less what
//! the present one had still to pay, all of it times the GPUs of the gang: taking one GPU stops all of them. Of equals the one that
//! began last yields.

use std::cmp::Ordering;

use pleach_scheduler::cluster::{Cluster, JobState, Placement, Submission, Template};
use pleach_scheduler::{GpuTypeId, JobId, Time};
use pleach_serving::llm::Yield;

/// What stopping a running job would lose, GPU·s.
fn loss_gpu_s(cluster: &Cluster, id: JobId) -> f64 {
    let (now, job) = (cluster.now(), cluster.job(id));
    let done_s = job.executed_s_at(now);
    let kept_s = cluster.kept_at_stop_s(id, done_s, job.saved_s, 1.0);
    let unpaid_s = (job.cost_left_s - (now - job.rate_since).as_secs_f64()).max(0.0);
    let restart_s = cluster.restart_cost_s(id) - unpaid_s;
    f64::from(job.num_held) * (done_s - kept_s + cluster.stop_cost_s(id) + restart_s)
}

/// A job that might yield.
struct Running {
    loss_gpu_s: f64,
    began: Time,
    id: JobId,
}

fn running(cluster: &Cluster) -> impl Iterator<Item = Running> {
    let jobs = cluster.running().filter(|id| {
        let job = cluster.job(*id);
        job.state == JobState::Running && !job.is_lease
    });
    jobs.map(|id| Running {
        loss_gpu_s: loss_gpu_s(cluster, id),
        began: cluster.job(id).run_start,
        id,
    })
}

fn in_order(one: &Running, other: &Running) -> Ordering {
    let loss = one.loss_gpu_s.total_cmp(&other.loss_gpu_s);
    loss.then(other.began.cmp(&one.began)).then(other.id.cmp(&one.id))
}

/// The first jobs that would yield, at most so many.
pub(super) fn yields(cluster: &Cluster, most: usize) -> Vec<Yield> {
    let mut jobs: Vec<Running> = running(cluster).collect();
    jobs.sort_unstable_by(in_order);
    let first = jobs.iter().take(most).map(|job| Yield {
        gpus: cluster.job(job.id).num_held as usize,
        loss_gpu_s: job.loss_gpu_s,
    });
    first.collect()
}

/// Where a lease of one GPU can be placed now, and how many jobs were stopped for it; none where leases have all GPUs.
pub(super) fn make_room(cluster: &mut Cluster, request: &Submission) -> Option<(Placement, u64)> {
    let mut num_stopped = 0;
    loop {
        let mut slices = Vec::new();
        for kind in 0..cluster.num_types() {
            let kind = GpuTypeId(kind as u8);
            if cluster.place(Template::BestValue, kind, request.num_gpus, &mut slices) {
                return Some((Placement::from_slice(&slices), num_stopped));
            }
        }
        let least = running(cluster).min_by(in_order)?;
        cluster.preempt(least.id);
        num_stopped += 1;
    }
}
