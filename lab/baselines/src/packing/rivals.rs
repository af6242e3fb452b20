//! What FGD is compared with: other scores for the same search, least wins.
//!
//! # Source
//! Weng et al. (ATC'23), section 6.1, names them; their formulas here are ours after its words: resources are parts of the
//! largest node's, weighted alike.

use pleach_scheduler::NodeId;
use pleach_scheduler::cluster::Cluster;

use super::fragment::{Room, TaskClass};

/// The most CPU, memory and GPUs (thousandths) of any node.
pub(super) fn largest(cluster: &Cluster) -> [f64; 3] {
    let mut largest = [1.0_f64; 3];
    for node in cluster.nodes() {
        let node = [node.cpu_milli, node.memory_mib, node.num_gpus * 1000];
        for (most, has) in largest.iter_mut().zip(node) {
            *most = most.max(f64::from(has));
        }
    }
    largest
}

fn has(room: &Room) -> [f64; 3] {
    let gpus: u32 = room.gpus.iter().sum();
    [room.cpu_milli as f64, room.memory_mib as f64, f64::from(gpus)]
}

/// What is left, summed over the resources.
pub(super) fn best_fit(after: &Room, largest: [f64; 3]) -> f64 {
    has(after).iter().zip(largest).map(|(has, most)| has / most).sum()
}

/// What is wanted times what is there, summed over the resources.
pub(super) fn dot_product(room: &Room, class: &TaskClass, largest: [f64; 3]) -> f64 {
    let gpus = f64::from(class.num_gpus * class.gpu_milli);
    let wants = [class.cpu_milli as f64, class.memory_mib as f64, gpus];
    let parts = has(room).into_iter().zip(wants).zip(largest);
    parts
        .map(|((has, wants), most)| has / most * (wants / most))
        .sum()
}

/// A shared GPU, then a free one on a node in use, then one on an idle node; within that, the least left.
pub(super) fn gpu_packing(room: &Room, num_gpus: u32, gpus: u64) -> f64 {
    let first = room.gpus[gpus.trailing_zeros() as usize];
    let left: u32 = room.gpus.iter().sum();
    let tier = match (first < 1000, left < num_gpus * 1000) {
        (true, _) => 0.0,
        (false, true) => 1.0,
        (false, false) => 2.0,
    };
    let rest = if first < 1000 { first } else { left };
    tier * 1e6 + f64::from(rest)
}

/// How alike a task and those of a node are, by GPUs and the part of each: all of them, some, no task there, none.
///
/// # Source
/// hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0), read for its behaviour: bands of a score, the fuller node first within one.
pub(super) fn cluster_tier(cluster: &Cluster, node: NodeId, class: &TaskClass) -> f64 {
    let mut jobs = Vec::new();
    cluster.jobs_of(node, &mut jobs);
    let is_alike = |id: &pleach_scheduler::JobId| {
        let there = TaskClass::of(cluster, cluster.demand(*id), 0.0);
        (there.num_gpus, there.gpu_milli) == (class.num_gpus, class.gpu_milli)
    };
    let tier = match jobs.iter().filter(|id| is_alike(id)).count() {
        _ if jobs.is_empty() => 2.0,
        num if num == jobs.len() => 0.0,
        0 => 3.0,
        _ => 1.0,
    };
    tier * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_prefer_what_their_names_say() {
        let room = |cpu_milli, gpus: &[u32]| Room {
            gpu_type: 0,
            cpu_milli,
            memory_mib: 0,
            gpus: gpus.to_vec(),
        };
        let largest = [8000.0, 1.0, 2000.0];
        // 2 of 8 cores and 0.5 of 2 GPUs left: 0.25 + 0.25.
        assert_eq!(best_fit(&room(2000, &[500, 0]), largest), 0.5);
        let task = TaskClass {
            num_gpus: 1,
            gpu_milli: 500,
            cpu_milli: 4000,
            memory_mib: 0,
            types: 1,
            popularity: 1.0,
        };
        // 1/4 x 1/2 of CPU and 1/4 x 1/4 of GPUs.
        assert_eq!(dot_product(&room(2000, &[500, 0]), &task, largest), 0.1875);
        let part = gpu_packing(&room(0, &[500, 1000]), 2, 0b1);
        let in_use = gpu_packing(&room(0, &[500, 1000]), 2, 0b10);
        let idle = gpu_packing(&room(0, &[1000, 1000]), 2, 0b1);
        assert!(part < in_use && in_use < idle);
    }
}
