//! Who yields where a lease needs a GPU and none is free: the job whose stop loses least, GPU·s.
//!
//! A stop loses what the job did since its last checkpoint, where it is not given the time to save, and the next restart, less what
//! the present one had still to pay, all of it times the GPUs of the gang: taking one GPU stops all of them. Of equals the one that
//! began last yields.

use pleach_scheduler::cluster::{Cluster, JobState, Placement, Submission, Template};
use pleach_scheduler::{GpuTypeId, JobId};

/// What stopping a running job would lose, GPU·s.
pub(super) fn loss_gpu_s(cluster: &Cluster, id: JobId) -> f64 {
    let (now, job) = (cluster.now(), cluster.job(id));
    let done_s = job.executed_s_at(now);
    let kept_s = cluster.kept_at_stop_s(id, done_s, job.saved_s, 1.0);
    let unpaid_s = (job.cost_left_s - (now - job.rate_since).as_secs_f64()).max(0.0);
    let restart_s = cluster.restart_cost_s(id) - unpaid_s;
    f64::from(job.num_held) * (done_s - kept_s + cluster.stop_cost_s(id) + restart_s)
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
        let jobs = cluster.running().filter(|id| {
            let job = cluster.job(*id);
            job.state == JobState::Running && !job.is_lease
        });
        let least = jobs.min_by(|one, other| {
            let (began, others) = (cluster.job(*one).run_start, cluster.job(*other).run_start);
            let loss = loss_gpu_s(cluster, *one).total_cmp(&loss_gpu_s(cluster, *other));
            loss.then(others.cmp(&began)).then(other.cmp(one))
        });
        cluster.preempt(least?);
        num_stopped += 1;
    }
}
