//! What would be free if some running jobs were stopped: GPUs, CPU and host memory of every node, on which a planner draws
//! up a plan before any job is touched.
//!
//! Only whole GPUs count. GPUs with a resident that holds a fraction are not free here, nor are those of nodes that drain
//! or are down. Ties go to the lowest node and the lowest GPU.

use pleach_scheduler::cluster::{AllowedSets, Cluster, Job, NodeState, Placement, Shape, Slice};
use pleach_scheduler::{GpuTypeId, JobId, NodeId};

/// What is free on a node, as the plan leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFree {
    /// Type of its GPUs.
    pub gpu_type: GpuTypeId,
    /// Free GPUs, as a bit mask.
    pub free: u64,
    /// Free CPU, thousandths of a core.
    pub cpu_milli: u32,
    /// Free host memory, MiB.
    pub memory_mib: u32,
}

impl NodeFree {
    /// Number of free GPUs.
    #[must_use]
    pub fn num_free(&self) -> u32 {
        self.free.count_ones()
    }
}

/// What is free on all nodes.
#[derive(Clone, Debug)]
pub struct FreeResources {
    nodes: Vec<NodeFree>,
    allowed: AllowedSets,
}

impl FreeResources {
    /// The cluster as it is.
    #[must_use]
    pub fn as_is(cluster: &Cluster) -> FreeResources {
        let nodes = cluster.nodes().iter().map(|node| NodeFree {
            gpu_type: node.gpu_type,
            free: node.free,
            cpu_milli: node.cpu_milli_free,
            memory_mib: node.memory_mib_free,
        });
        FreeResources {
            nodes: nodes.collect(),
            allowed: cluster.allowed().clone(),
        }
    }

    /// The cluster as it would be if these running jobs were stopped. Those that hold fractions must not be among them.
    pub fn without(cluster: &Cluster, stopped: impl IntoIterator<Item = JobId>) -> FreeResources {
        let mut free = FreeResources::as_is(cluster);
        for id in stopped {
            let job = cluster.job(id);
            debug_assert!(is_whole_gpu_job(job), "{id:?} holds a fraction");
            let shape = cluster.shape(job.granted);
            for slice in &job.placement {
                let node = &cluster.nodes()[slice.node.index()];
                if node.state == NodeState::Up {
                    free.give_back(*slice, shape);
                }
            }
        }
        free
    }

    /// The cluster as it would be if every running job were stopped but those that hold fractions.
    #[must_use]
    pub fn emptied(cluster: &Cluster) -> FreeResources {
        FreeResources::without(
            cluster,
            cluster.running().filter(|id| is_whole_gpu_job(cluster.job(*id))),
        )
    }

    /// Every node. `[node]`
    #[must_use]
    pub fn nodes(&self) -> &[NodeFree] {
        &self.nodes
    }

    /// Free GPUs of a type.
    #[must_use]
    pub fn num_free_of(&self, kind: GpuTypeId) -> u32 {
        let of_type = self.nodes.iter().filter(|node| node.gpu_type == kind);
        of_type.map(NodeFree::num_free).sum()
    }

    /// Whether all of a placement is free, with what each of its GPUs comes with.
    #[must_use]
    pub fn has(&self, placement: &[Slice], shape: Shape) -> bool {
        placement.iter().all(|slice| {
            let node = &self.nodes[slice.node.index()];
            let (cpu_milli, memory_mib) = needs(*slice, shape);
            slice.gpus & !node.free == 0 && cpu_milli <= node.cpu_milli && memory_mib <= node.memory_mib
        })
    }

    /// Takes a placement.
    ///
    /// # Panics
    /// If it is not free.
    pub fn take(&mut self, placement: &[Slice], shape: Shape) {
        assert!(self.has(placement, shape), "a plan takes what is taken");
        for slice in placement {
            let node = &mut self.nodes[slice.node.index()];
            let (cpu_milli, memory_mib) = needs(*slice, shape);
            node.free &= !slice.gpus;
            node.cpu_milli -= cpu_milli;
            node.memory_mib -= memory_mib;
        }
    }

    /// CPU and host memory that are free beside each GPU of a placement.
    #[must_use]
    pub fn room_beside(&self, placement: &[Slice]) -> Shape {
        let mut room = Shape {
            cpu_milli: u32::MAX,
            memory_mib: u32::MAX,
            ..Shape::PLAIN
        };
        for slice in placement {
            let node = &self.nodes[slice.node.index()];
            let each = |free: u32| free.checked_div(slice.num_gpus()).unwrap_or(0);
            room.cpu_milli = room.cpu_milli.min(each(node.cpu_milli));
            room.memory_mib = room.memory_mib.min(each(node.memory_mib));
        }
        room
    }

    /// Whether so much more CPU and host memory is free beside each GPU of a placement.
    #[must_use]
    pub fn has_inputs(&self, placement: &[Slice], more: Shape) -> bool {
        let room = self.room_beside(placement);
        more.cpu_milli <= room.cpu_milli && more.memory_mib <= room.memory_mib
    }

    /// Takes more CPU and host memory beside GPUs that are taken already.
    ///
    /// # Panics
    /// If they are not free.
    pub fn take_inputs(&mut self, placement: &[Slice], more: Shape) {
        assert!(self.has_inputs(placement, more), "a plan takes what is taken");
        for slice in placement {
            let (cpu_milli, memory_mib) = needs(*slice, more);
            let node = &mut self.nodes[slice.node.index()];
            node.cpu_milli -= cpu_milli;
            node.memory_mib -= memory_mib;
        }
    }

    /// Gives a slice back. Packed jobs give the same GPUs back twice, which is fine.
    pub fn give_back(&mut self, slice: Slice, shape: Shape) {
        let node = &mut self.nodes[slice.node.index()];
        let (cpu_milli, memory_mib) = needs(slice, shape);
        node.free |= slice.gpus;
        node.cpu_milli += cpu_milli;
        node.memory_mib += memory_mib;
    }

    /// Makes one node what it is elsewhere.
    pub fn copy_node(&mut self, node: NodeId, from: &FreeResources) {
        self.nodes[node.index()] = from.nodes[node.index()];
    }

    /// GPUs of a node that can be taken with what each comes with, in whole tasks.
    #[must_use]
    pub fn hosts(&self, node: NodeId, shape: Shape) -> u32 {
        if !self.allowed.allow(shape.nodes, node) {
            return 0;
        }
        let node = &self.nodes[node.index()];
        let by = |free: u32, each: u32| free.checked_div(each).unwrap_or(u32::MAX);
        let num_gpus = node
            .num_free()
            .min(by(node.cpu_milli, shape.cpu_milli))
            .min(by(node.memory_mib, shape.memory_mib));
        shape.tasks.num_on(num_gpus)
    }

    /// The tightest placement of a gang on one type: the fullest node that holds it; else the nodes with most room first.
    #[must_use]
    pub fn tightest(&self, kind: GpuTypeId, num_gpus: u32, shape: Shape) -> Option<Placement> {
        let mut nodes: Vec<(u32, NodeId)> = self.hosts_of(kind, shape);
        if let Some(best) = nodes.iter().filter(|(hosts, _)| *hosts >= num_gpus).min() {
            return Some(Placement::from_slice(&[self.lowest(best.1, num_gpus)]));
        }
        nodes.sort_unstable_by_key(|(hosts, node)| (std::cmp::Reverse(*hosts), *node));
        nodes.truncate(shape.tasks.most_nodes());
        self.fill(&nodes, num_gpus)
    }

    /// Nodes of a type that can take something, with the GPUs that they can take.
    fn hosts_of(&self, kind: GpuTypeId, shape: Shape) -> Vec<(u32, NodeId)> {
        let nodes = self.nodes.iter().enumerate();
        let of_type = nodes.filter(|(_, node)| node.gpu_type == kind && node.free != 0);
        let nodes = of_type.map(|(index, _)| NodeId(index as u32));
        nodes
            .map(|node| (self.hosts(node, shape), node))
            .filter(|(hosts, _)| *hosts > 0)
            .collect()
    }

    fn fill(&self, nodes: &[(u32, NodeId)], num_gpus: u32) -> Option<Placement> {
        let (mut rest, mut placement) = (num_gpus, Placement::new());
        for (hosts, node) in nodes {
            let take = rest.min(*hosts);
            if take > 0 {
                placement.push(self.lowest(*node, take));
                rest -= take;
            }
        }
        (rest == 0).then_some(placement)
    }

    /// The lowest free GPUs of a node.
    #[must_use]
    pub fn lowest(&self, node: NodeId, num: u32) -> Slice {
        let free = self.nodes[node.index()].free;
        let mut rest = free;
        for _ in 0..num {
            rest &= rest.wrapping_sub(1);
        }
        Slice {
            node,
            gpus: free & !rest,
        }
    }
}

/// Whether a plan may move the job about: it asks for whole GPUs.
#[must_use]
pub fn is_whole_gpu_job(job: &Job) -> bool {
    job.request.resources.gpu_milli == 1000
}

/// CPU in thousandths of a core and host memory in MiB that a slice takes.
fn needs(slice: Slice, shape: Shape) -> (u32, u32) {
    let num_gpus = slice.num_gpus();
    (shape.cpu_milli * num_gpus, shape.memory_mib * num_gpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{place, preemptive_cluster, submit};

    fn nodes_of(placement: &[Slice]) -> Vec<(u32, u32)> {
        let pairs = placement.iter().map(|slice| (slice.node.0, slice.num_gpus()));
        pairs.collect()
    }

    #[test]
    fn what_would_be_free_is_the_cluster_with_some_jobs_away() {
        let mut cluster = preemptive_cluster(2, 4);
        let jobs = [3, 4].map(|num_gpus| {
            let id = submit(&mut cluster, num_gpus, 1e3);
            place(&mut cluster, id);
            id
        });
        let kind = GpuTypeId(0);
        assert_eq!(FreeResources::as_is(&cluster).num_free_of(kind), 1);
        assert_eq!(FreeResources::without(&cluster, [jobs[0]]).num_free_of(kind), 4);
        assert_eq!(FreeResources::emptied(&cluster).num_free_of(kind), 8);
    }

    #[test]
    fn plans_are_drawn_up_tight_and_take_what_they_show() {
        // Node 0 has 1 GPU left, node 1 has 2, node 2 all 4.
        let cluster = preemptive_cluster(3, 4);
        let (kind, shape) = (
            GpuTypeId(0),
            cluster.shape(pleach_scheduler::cluster::ShapeId::PLAIN),
        );
        let mut free = FreeResources::as_is(&cluster);
        free.take(&[free.lowest(NodeId(0), 3), free.lowest(NodeId(1), 2)], shape);
        assert_eq!(nodes_of(&free.tightest(kind, 2, shape).unwrap()), [(1, 2)]);
        assert_eq!(
            nodes_of(&free.tightest(kind, 6, shape).unwrap()),
            [(2, 4), (1, 2)]
        );
        assert_eq!(free.tightest(kind, 8, shape), None);
        let all = free.tightest(kind, 7, shape).unwrap();
        free.take(&all, shape);
        assert_eq!(free.num_free_of(kind), 0);
    }
}
