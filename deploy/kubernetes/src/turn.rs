//! Held pods that the tables cannot express: they wait for their turn, and then they are left to kube-scheduler.
//!
//! The policy is shown a job that asks for as many GPUs, without what the tables have no word for. It waits among the others, and
//! once the policy starts it the gates are lifted, without a node. To let such pods go at once would put them before all jobs.

use pleach_daemon::snapshot::{JobSeen, Phase};

use crate::pod::PodSeen;

/// What a job is shown as; none where its held pods ask for no GPUs, or are for another scheduler.
pub(crate) fn stand_in(job: &JobSeen, pods: &[PodSeen]) -> Option<JobSeen> {
    let held = || pods.iter().filter(|pod| pod.is_held() && !pod.is_of_others);
    let largest = held().max_by_key(|pod| pod.num_gpus)?;
    let alike = held().filter(|pod| pod.resource == largest.resource);
    let num_gpus = alike.fold(0_u32, |sum, pod| sum.saturating_add(pod.num_gpus));
    let cpu_milli = held().fold(0_u64, |sum, pod| sum.saturating_add(pod.cpu_milli()));
    let gpus_per_node = Some(largest.num_gpus).filter(|num| *num > 0)?;
    let num_nodes = num_gpus.div_ceil(gpus_per_node);
    Some(JobSeen {
        phase: Phase::Waiting,
        num_nodes,
        gpus_per_node,
        is_packed: num_nodes > 1,
        num_cpus: u32::try_from(cpu_milli.div_ceil(1000)).unwrap_or(u32::MAX),
        nodes: Vec::new(),
        start_s: None,
        ..job.clone()
    })
}
