//! Fragments: what of a node's free GPUs a class of tasks cannot use.
//!
//! Seen by a class, all that is free on a node is a fragment where the class cannot run there at all (type, CPU, memory, or
//! too few GPUs with enough left); else a GPU is one where less is left of it than the class takes of a GPU. The
//! fragmentation of a node is the mean over the classes, by how often they come.
//!
//! # Source
//! Weng et al., Beware of Fragmentation (ATC'23), section 4.1.

use pleach_scheduler::NodeId;
use pleach_scheduler::cluster::{Cluster, Demand, NodeState};

/// A class of tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskClass {
    /// GPUs.
    pub num_gpus: u32,
    /// What it takes of each, thousandths.
    pub gpu_milli: u32,
    /// CPU in all, thousandths of a core.
    pub cpu_milli: u64,
    /// Host memory in all, MiB.
    pub memory_mib: u64,
    /// Bit mask of the GPU types on which it can run.
    pub types: u64,
    /// How often it comes, as a part of all.
    pub popularity: f64,
}

impl TaskClass {
    /// The class of a demand. A gang larger than any node counts as a node full of it.
    #[must_use]
    pub fn of(cluster: &Cluster, demand: Demand, popularity: f64) -> TaskClass {
        let shape = cluster.shape(demand.shape);
        let kinds = cluster.types_in(demand.types);
        let most = kinds
            .map(|kind| cluster.node_gpus_max_of(kind))
            .max()
            .unwrap_or(1);
        let num_gpus = demand.num_gpus.min(most.max(1));
        TaskClass {
            num_gpus,
            gpu_milli: u32::from(shape.gpu_milli),
            cpu_milli: u64::from(shape.cpu_milli) * u64::from(num_gpus),
            memory_mib: u64::from(shape.memory_mib) * u64::from(num_gpus),
            types: demand.types,
            popularity,
        }
    }
}

/// What is free on a node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Room {
    /// Its GPU type.
    pub gpu_type: u8,
    /// CPU, thousandths of a core.
    pub cpu_milli: u64,
    /// Host memory, MiB.
    pub memory_mib: u64,
    /// What is left of each GPU, thousandths.
    pub gpus: Vec<u32>,
}

impl Room {
    /// As a node stands; nothing is free on one that is not up.
    #[must_use]
    pub fn of(cluster: &Cluster, id: NodeId) -> Room {
        let node = &cluster.nodes()[id.index()];
        let mut gpus: Vec<u32> = (0..node.num_gpus)
            .map(|gpu| u32::from(node.free >> gpu & 1 == 1) * 1000)
            .collect();
        if node.state == NodeState::Up {
            for gpu in cluster.shared_gpus_of(id) {
                gpus[gpu.gpu as usize] = u32::from(gpu.milli_left());
            }
        }
        Room {
            gpu_type: node.gpu_type.0,
            cpu_milli: u64::from(node.cpu_milli_free),
            memory_mib: u64::from(node.memory_mib_free),
            gpus,
        }
    }

    /// Whether anything is free here that is not free there.
    #[must_use]
    pub(crate) fn has_more_than(&self, other: &Room) -> bool {
        self.cpu_milli > other.cpu_milli
            || self.memory_mib > other.memory_mib
            || self.gpus.len() != other.gpus.len()
            || self.gpus.iter().zip(&other.gpus).any(|(gpu, other)| gpu > other)
    }

    /// Whether a task of the class can run on what is free.
    #[must_use]
    pub fn holds(&self, class: &TaskClass) -> bool {
        let fitting = self.gpus.iter().filter(|left| **left >= class.gpu_milli);
        class.types >> self.gpu_type & 1 == 1
            && self.cpu_milli >= class.cpu_milli
            && self.memory_mib >= class.memory_mib
            && fitting.count() >= class.num_gpus as usize
    }

    /// What a class cannot use, thousandths of GPUs.
    #[must_use]
    pub(crate) fn fragment_milli(&self, class: &TaskClass) -> u32 {
        if !self.holds(class) {
            return self.gpus.iter().sum();
        }
        self.gpus.iter().filter(|left| **left < class.gpu_milli).sum()
    }

    /// Mean over the classes, thousandths of GPUs.
    #[must_use]
    pub fn fragmentation(&self, mix: &[TaskClass]) -> f64 {
        let parts = mix
            .iter()
            .map(|class| class.popularity * f64::from(self.fragment_milli(class)));
        parts.sum()
    }

    /// What is left when a task of the class takes these GPUs.
    #[must_use]
    pub fn without(&self, class: &TaskClass, gpus: u64) -> Room {
        let mut room = self.clone();
        room.cpu_milli = room.cpu_milli.saturating_sub(class.cpu_milli);
        room.memory_mib = room.memory_mib.saturating_sub(class.memory_mib);
        for (gpu, left) in room.gpus.iter_mut().enumerate() {
            if gpus >> gpu & 1 == 1 {
                *left = left.saturating_sub(class.gpu_milli);
            }
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(num_gpus: u32, gpu_milli: u32, cpu_milli: u64) -> TaskClass {
        TaskClass {
            num_gpus,
            gpu_milli,
            cpu_milli,
            memory_mib: 0,
            types: 1,
            popularity: 0.5,
        }
    }

    #[test]
    fn what_a_class_cannot_use_is_a_fragment() {
        // A whole GPU, six tenths of one, three tenths of one; four cores.
        let room = Room {
            gpu_type: 0,
            cpu_milli: 4000,
            memory_mib: 0,
            gpus: vec![1000, 600, 300, 0],
        };
        // Half a GPU: the three tenths are too little.
        assert_eq!(room.fragment_milli(&class(1, 500, 1000)), 300);
        // A whole one: the parts are.
        assert_eq!(room.fragment_milli(&class(1, 1000, 1000)), 900);
        // Two whole ones cannot run: everything is.
        assert_eq!(room.fragment_milli(&class(2, 1000, 1000)), 1900);
        // Nor can a task that wants five cores, or another type.
        assert_eq!(room.fragment_milli(&class(1, 500, 5000)), 1900);
        let other = TaskClass {
            types: 2,
            ..class(1, 500, 0)
        };
        assert_eq!(room.fragment_milli(&other), 1900);
        // Half of the tasks are of the first kind, half of the second.
        let mix = [class(1, 500, 1000), class(1, 1000, 1000)];
        assert!((room.fragmentation(&mix) - 600.0).abs() < 1e-9);
        // A part of 0.3 takes the GPU with 0.3 left: the first class loses no more, the second has 0.3 less to miss.
        let part = class(1, 300, 0);
        assert!((room.without(&part, 0b100).fragmentation(&mix) - 300.0).abs() < 1e-9);
        // On the whole GPU it would leave 0.7 there, which the second class cannot use and now cannot run at all.
        assert!((room.without(&part, 0b1).fragmentation(&mix) - (0.5 * 300.0 + 0.5 * 1600.0)).abs() < 1e-9);
    }
}
