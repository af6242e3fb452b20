//! Nodes that come and go: drain, fail, return, be reclaimed; and GPUs that are kept from all jobs for a while.

use crate::cluster::Cluster;
use crate::cluster::tables::{NodeState, Slice};
use crate::ids::{JobId, NodeId};

impl Cluster {
    /// Takes CPU (thousandths of a core) and host memory (MiB) of a node for jobs that are not in the tables: no more than is
    /// free there, and nothing where it is not modelled. A snapshot of the cluster does not hold it: a program that knows of
    /// other jobs makes tables anew.
    pub fn set_aside(&mut self, node: NodeId, cpu_milli: u32, memory_mib: u32) {
        self.places
            .changes
            .note_type(self.places.nodes[node.index()].gpu_type);
        let node = &mut self.places.nodes[node.index()];
        let (cpu_milli, memory_mib) = (
            cpu_milli.min(node.cpu_milli_free),
            memory_mib.min(node.memory_mib_free),
        );
        node.cpu_milli -= cpu_milli;
        node.cpu_milli_free -= cpu_milli;
        node.memory_mib -= memory_mib;
        node.memory_mib_free -= memory_mib;
    }

    /// Changes a node's state. A draining node keeps its jobs and takes no new ones; a node that goes down stops its
    /// jobs, which go back to the queue with what their last checkpoint holds and are written to `stopped`, lowest
    /// first; a node that comes up offers its idle GPUs again.
    pub fn set_node_state(&mut self, id: NodeId, state: NodeState, stopped: &mut Vec<JobId>) {
        if state == NodeState::Down {
            let start = stopped.len();
            self.jobs_of(id, stopped);
            for job in &stopped[start..] {
                self.fail(*job);
            }
        }
        self.places
            .changes
            .note_type(self.places.nodes[id.index()].gpu_type);
        let node = &mut self.places.nodes[id.index()];
        let idle = node.free | node.withheld;
        if state != NodeState::Up {
            node.kept = 0;
        }
        let offered = if state == NodeState::Up {
            idle & !node.kept
        } else {
            0
        };
        let (before, rack) = (node.num_free(), node.rack);
        self.places.num_not_up -= usize::from(node.state != NodeState::Up);
        self.places.num_not_up += usize::from(state != NodeState::Up);
        node.state = state;
        (node.free, node.withheld) = (offered, idle & !offered);
        let after = node.num_free();
        let rack = &mut self.places.racks[rack.index()];
        rack.num_free = rack.num_free - before + after;
        self.places.free.moved(id, node, before);
    }

    /// The jobs that hold GPUs of a node, lowest first.
    pub fn jobs_of(&self, id: NodeId, out: &mut Vec<JobId>) {
        let start = out.len();
        let node = &self.places.nodes[id.index()];
        let rows = node.first_gpu..node.first_gpu + node.num_gpus;
        out.extend(rows.filter_map(|row| self.places.gpus[row as usize]));
        for gpu in self.places.shared.of_node(node.first_gpu, node.num_gpus) {
            out.extend(gpu.residents.iter().map(|resident| resident.job));
        }
        out[start..].sort_unstable();
        let mut kept = start;
        for at in start..out.len() {
            if at == start || out[at] != out[kept - 1] {
                out[kept] = out[at];
                kept += 1;
            }
        }
        out.truncate(kept);
    }

    /// Takes GPUs that no job holds from what a node offers, or gives them to it.
    pub(in crate::cluster) fn move_free(&mut self, id: NodeId, gpus: u64, give: bool) {
        if gpus == 0 {
            return;
        }
        let node = &mut self.places.nodes[id.index()];
        self.places.changes.note_type(node.gpu_type);
        let before = node.num_free();
        if !give {
            node.free &= !gpus;
        } else if node.state == NodeState::Up {
            node.free |= gpus;
        } else {
            node.withheld |= gpus;
        }
        let after = node.num_free();
        let rack = &mut self.places.racks[node.rack.index()];
        rack.num_free = rack.num_free - before + after;
        self.places.free.moved(id, node, before);
    }

    /// Keeps free GPUs from all jobs until they are given up. A node that leaves loses what is kept there.
    ///
    /// # Panics
    /// If one of them is not free.
    pub fn keep(&mut self, slices: &[Slice]) {
        for slice in slices {
            let node = &self.places.nodes[slice.node.index()];
            assert_eq!(slice.gpus & !node.free, 0, "{slice:?} is not free to be kept");
            self.move_free(slice.node, slice.gpus, false);
            let node = &mut self.places.nodes[slice.node.index()];
            (node.withheld, node.kept) = (node.withheld | slice.gpus, node.kept | slice.gpus);
        }
    }

    /// Gives kept GPUs up: they are free.
    ///
    /// # Panics
    /// If one of them is not kept.
    pub fn give_up_kept(&mut self, slices: &[Slice]) {
        for slice in slices {
            let node = &mut self.places.nodes[slice.node.index()];
            assert_eq!(slice.gpus & !node.kept, 0, "{slice:?} is not kept");
            (node.withheld, node.kept) = (node.withheld & !slice.gpus, node.kept & !slice.gpus);
            self.move_free(slice.node, slice.gpus, true);
        }
    }

    /// GPUs that no job holds and none may use now, because their nodes are draining or down, or because they are kept.
    #[must_use]
    pub fn num_withheld(&self) -> u32 {
        let withheld = self.places.nodes.iter().map(|node| node.withheld);
        withheld.map(u64::count_ones).sum()
    }
}
