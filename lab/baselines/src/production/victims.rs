//! Which jobs are stopped so that a virtual cluster gets its quota back: the newest jobs of the clusters
//! furthest above theirs.

use pleach_scheduler::cluster::{Cluster, Placement, Slice};
use pleach_scheduler::{JobId, Time};

use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// The jobs to stop for a job, and where it then runs.
pub(super) fn room_for(cluster: &Cluster, id: JobId) -> Option<(Vec<JobId>, Placement)> {
    let job = cluster.job(id);
    let milli = |tenant: usize| {
        let tenant = &cluster.tenants()[tenant];
        (tenant.used_milli, u64::from(tenant.quota_gpus) * 1000)
    };
    let mut above: Vec<(u64, u64)> = (0..cluster.tenants().len()).map(milli).collect();
    // Newest first.
    let mut running: Vec<(Time, JobId)> = cluster
        .running()
        .filter(|id| is_whole_gpu_job(cluster.job(*id)) && cluster.gives_back_whole_gpus(*id))
        .filter(|id| job.types >> cluster.job(*id).gpu_type.0 & 1 == 1)
        .map(|id| (cluster.job(id).run_start, id))
        .collect();
    running.sort_unstable_by(|a, b| b.cmp(a));
    let mut free = FreeResources::as_is(cluster);
    let mut victims: Vec<JobId> = Vec::new();
    loop {
        let most = (0..above.len())
            .filter(|at| *at != job.request.tenant.index() && above[*at].0 > above[*at].1)
            .max_by_key(|at| (above[*at].0 - above[*at].1, std::cmp::Reverse(*at)))?;
        let spare = above[most].0 - above[most].1;
        let of_tenant = running.iter().position(|(_, victim)| {
            let victim = cluster.job(*victim);
            victim.request.tenant.index() == most && victim.milli_held() <= spare
        });
        let Some(position) = of_tenant else {
            // Nothing that it can spare; look at the next one.
            above[most].0 = above[most].1;
            continue;
        };
        let (_, victim) = running.remove(position);
        above[most].0 -= cluster.job(victim).milli_held();
        let shape = cluster.shape(cluster.job(victim).granted);
        for slice in &cluster.job(victim).placement {
            free.give_back(*slice, shape);
        }
        victims.push(victim);
        let shape = cluster.shape(job.shape);
        let fits = cluster
            .types_in(job.types)
            .find_map(|kind| free.tightest(kind, job.request.num_gpus, shape));
        if let Some(placement) = fits {
            // Jobs that were chosen early may turn out not to be needed.
            return Some((needed(cluster, victims, &placement), placement));
        }
    }
}

/// Those of the jobs that hold GPUs of a placement, or CPU and memory on its nodes.
fn needed(cluster: &Cluster, jobs: Vec<JobId>, placement: &[Slice]) -> Vec<JobId> {
    let touches = |id: &JobId| {
        let held = &cluster.job(*id).placement;
        held.iter()
            .any(|held| placement.iter().any(|slice| slice.node == held.node))
    };
    jobs.into_iter().filter(touches).collect()
}
