//! Whether and where jobs fit that ask for more than whole GPUs: fractions, CPU, host memory, tasks on a node each.
//!
//! Plain jobs are counted against the free GPUs of a type; every other shape is looked up node by node, because GPUs
//! without cores, or cores without GPUs, are of no use to it. Ties go to the lowest node and GPU.

use std::cmp::Reverse;
use std::ops::Range;

use smallvec::SmallVec;

use crate::ActionKind;
use crate::cluster::jobs::queue::Demand;
use crate::cluster::jobs::shape::{Shape, ShapeId, units};
use crate::cluster::places::task_limits::NodeRooms;
use crate::cluster::tables::{Node, NodeState, Slice, Submission};
use crate::cluster::{Cluster, SharedGpu, Template, bits};
use crate::ids::{GpuTypeId, JobId, NodeId, RackId};

/// GPUs of a gang that a node takes, the node and its rack.
pub(in crate::cluster) type NodeRoom = (u32, NodeId, RackId);

impl Cluster {
    /// Whether a gang of this demand fits on a type now, quotas apart.
    #[must_use]
    #[inline]
    pub fn fits_on(&self, kind: GpuTypeId, demand: Demand) -> bool {
        if demand.shape == ShapeId::PLAIN {
            return self.fits_plain(kind, demand.num_gpus);
        }
        self.fits_shaped(kind, self.shape(demand.shape), demand.num_gpus)
    }

    /// Whether so many GPUs, each with what the shape says, are free on a type now, quotas apart.
    #[must_use]
    pub(crate) fn fits_gang(&self, kind: GpuTypeId, shape: Shape, num_gpus: u32) -> bool {
        if shape == Shape::PLAIN {
            self.fits_plain(kind, num_gpus)
        } else {
            self.fits_shaped(kind, shape, num_gpus)
        }
    }

    #[inline]
    fn fits_plain(&self, kind: GpuTypeId, num_gpus: u32) -> bool {
        self.places.free.num_free[kind.index()] >= num_gpus
            && (!self.facts.capabilities.consolidated || self.places.free.fits_consolidated(kind, num_gpus))
    }

    #[inline(never)]
    fn fits_shaped(&self, kind: GpuTypeId, shape: Shape, num_gpus: u32) -> bool {
        if shape.is_gpus_alone() {
            return self.free_rooms(kind, shape.tasks).most(shape.tasks) >= num_gpus;
        }
        if shape.tasks.nodes_max == 1 {
            // Nodes are filled from the first: where some are free, the last ones are.
            let may = shape.is_fractional() || num_gpus <= self.places.free.largest_free(kind);
            return may && self.hosts_of(kind, shape).rev().any(|hosts| hosts >= num_gpus);
        }
        if shape.tasks.nodes_max > 0 {
            return NodeRooms::of(self.hosts_of(kind, shape)).most(shape.tasks) >= num_gpus;
        }
        let mut found = 0_u32;
        for hosts in self.hosts_of(kind, shape) {
            found = found.saturating_add(hosts);
            if found >= num_gpus {
                return true;
            }
        }
        false
    }

    /// What a shape's number stands for.
    #[must_use]
    pub fn shape(&self, id: ShapeId) -> Shape {
        self.jobs.shapes.get(id)
    }

    /// What each node of a type could take now; of whole GPUs nodes without a free one are passed over.
    fn hosts_of(&self, kind: GpuTypeId, shape: Shape) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let is_open = move |node: &Node| node.gpu_type == kind && (node.free != 0 || shape.is_fractional());
        let nodes = self.places.nodes.iter().enumerate();
        nodes
            .filter(move |(_, node)| is_open(node))
            .map(move |(id, node)| self.hosts(NodeId(id as u32), node, shape))
    }

    /// GPUs of a node that could each take one unit of the shape now, in whole tasks.
    pub(in crate::cluster) fn hosts(&self, id: NodeId, node: &Node, shape: Shape) -> u32 {
        let mut gpus = node.num_free();
        let has_none = gpus == 0 && !shape.is_fractional();
        if has_none || node.state != NodeState::Up || !self.allows(shape.nodes, id) {
            return 0;
        }
        let facts = &self.facts.of_types[node.gpu_type.index()];
        if !facts.serves(shape) {
            return 0;
        }
        if shape.is_fractional() {
            let shared = self.places.shared.of_node(node.first_gpu, node.num_gpus);
            gpus += shared.filter(|gpu| facts.joins(gpu, shape)).count() as u32;
        }
        shape
            .tasks
            .num_on(shape.served_of(gpus, node.cpu_milli_free, node.memory_mib_free))
    }

    /// Whether a pending job could have a GPU of a node now, with what comes with it: a free one or, if it asks for a part, a
    /// part of a shared one.
    #[must_use]
    pub fn takes_gpu(&self, id: JobId, node: NodeId, gpu: u32) -> bool {
        let shape = self.shape(self.job(id).shape);
        let is_allowed = self.allows(shape.nodes, node);
        let node = &self.places.nodes[node.index()];
        let facts = self.facts.of_types[node.gpu_type.index()];
        let served = shape.served_by(node.cpu_milli_free, node.memory_mib_free) > 0;
        let shared = || self.places.shared.get(node.first_gpu + gpu);
        node.state == NodeState::Up
            && is_allowed
            && served
            && facts.serves(shape)
            && (node.free >> gpu & 1 == 1 || shared().is_some_and(|gpu| facts.joins(gpu, shape)))
    }

    /// The shared GPUs of a node, lowest first.
    pub fn shared_gpus_of(&self, node: NodeId) -> impl Iterator<Item = &SharedGpu> {
        let node = &self.places.nodes[node.index()];
        self.places.shared.of_node(node.first_gpu, node.num_gpus)
    }

    /// GPUs of an empty node that could each take one unit of the shape, in whole tasks.
    pub(in crate::cluster) fn hosts_when_empty(&self, id: NodeId, node: &Node, shape: Shape) -> u32 {
        let served = shape.served_by(node.cpu_milli, node.memory_mib);
        if self.allows(shape.nodes, id) && self.facts.of_types[node.gpu_type.index()].serves(shape) {
            shape.tasks.num_on(served.min(node.num_gpus))
        } else {
            0
        }
    }

    /// Whether a request could run if no other job did, on the nodes that are up and on one GPU type.
    #[must_use]
    pub fn could_run(&self, request: &Submission) -> bool {
        let Some(class_types) = self.facts.class_types.get(request.class.index()) else {
            return false;
        };
        let shape = Shape::of(&request.resources);
        let memory_mib = units(request.resources.gpu_memory_gib, 1024.0);
        self.types_in(*class_types).any(|kind| {
            let most = self.gang_max(kind, shape, |node| node.state == NodeState::Up);
            memory_mib <= self.facts.of_types[kind.index()].memory_mib && most >= request.num_gpus
        })
    }

    /// The `num` GPUs of a node that a shape takes: parts of shared GPUs with the least left, then the lowest free ones; where
    /// the batch system chooses, the lowest of both.
    fn pick(&self, node: &Node, shape: Shape, num: u32) -> u64 {
        let (mut taken, mut rest) = (0_u64, num);
        if shape.is_fractional() && self.facts.capabilities.lowest_gpu {
            return self.lowest_open(node, shape, num);
        }
        if shape.is_fractional() {
            let facts = self.facts.of_types[node.gpu_type.index()];
            let mut parts: Vec<(u16, u32)> = self
                .places
                .shared
                .of_node(node.first_gpu, node.num_gpus)
                .filter(|gpu| facts.joins(gpu, shape))
                .map(|gpu| (gpu.milli_left(), gpu.gpu))
                .collect();
            parts.sort_unstable();
            for (_, gpu) in parts.into_iter().take(rest as usize) {
                taken |= 1 << gpu;
                rest -= 1;
            }
        }
        taken | node.lowest_free(rest)
    }

    /// The `num` GPUs of a node with the lowest indices that have room for one unit of a fraction each.
    fn lowest_open(&self, node: &Node, shape: Shape, num: u32) -> u64 {
        let facts = self.facts.of_types[node.gpu_type.index()];
        let shared = self.places.shared.of_node(node.first_gpu, node.num_gpus);
        let joined = shared.filter(|gpu| facts.joins(gpu, shape));
        let mut rest = joined.fold(node.free, |open, gpu| open | 1 << gpu.gpu);
        let mut taken = 0;
        for _ in 0..num {
            let lowest = rest & rest.wrapping_neg();
            (taken, rest) = (taken | lowest, rest & !lowest);
        }
        taken
    }

    /// Writes the placement of a job on one type; false (and nothing written) if it does not fit there.
    pub fn place_job(&self, template: Template, kind: GpuTypeId, id: JobId, out: &mut Vec<Slice>) -> bool {
        let demand = self.demand(id);
        self.place_gang(template, kind, self.shape(demand.shape), demand.num_gpus, out)
    }

    /// As [`Cluster::place_job`], for so many GPUs, each with what the shape says.
    pub(crate) fn place_gang(
        &self,
        template: Template,
        kind: GpuTypeId,
        shape: Shape,
        num_gpus: u32,
        out: &mut Vec<Slice>,
    ) -> bool {
        if shape == Shape::PLAIN {
            return self.place(template, kind, num_gpus, out);
        }
        self.place_shaped(template, kind, shape, num_gpus, out)
    }

    fn place_shaped(
        &self,
        template: Template,
        kind: GpuTypeId,
        shape: Shape,
        num_gpus: u32,
        out: &mut Vec<Slice>,
    ) -> bool {
        if num_gpus == 1 && shape.is_fractional() && self.place_part(kind, shape, |_| true, out) {
            return true;
        }
        let hosts = |id, node: &Node| self.hosts(id, node, shape);
        self.place_on_hosts(template, (kind, shape, num_gpus), hosts, out)
    }

    /// Writes the placement of a gang on nodes that take so many of its GPUs each; false (and nothing written) if they hold too few.
    pub(in crate::cluster) fn place_on_hosts(
        &self,
        template: Template,
        (kind, shape, num_gpus): (GpuTypeId, Shape, u32),
        hosts: impl Fn(NodeId, &Node) -> u32,
        out: &mut Vec<Slice>,
    ) -> bool {
        // Of a busy cluster most nodes have nothing free.
        let hosts = |id, node: &Node| match node.free {
            0 if !shape.is_fractional() => 0,
            _ => hosts(id, node),
        };
        if shape.tasks.nodes_max == 1 {
            let Some(room) = self.closest(kind, num_gpus, hosts) else {
                return false;
            };
            self.fill(&[room], shape, num_gpus, out);
            return true;
        }
        // On the stack but on large clusters: behind a reservation this is the step path.
        let mut nodes: SmallVec<[NodeRoom; 64]> = SmallVec::new();
        for (id, node) in self.places.nodes.iter().enumerate() {
            if node.gpu_type == kind {
                let hosts = hosts(NodeId(id as u32), node);
                if hosts > 0 {
                    nodes.push((hosts, NodeId(id as u32), node.rack));
                }
            }
        }
        let rooms = NodeRooms::of(nodes.iter().map(|(hosts, ..)| *hosts));
        let holds = rooms.hold(shape.tasks, self.whole_gpus(kind, shape), num_gpus);
        if holds {
            let turn = self.in_turn(template, (kind, shape, num_gpus), &mut nodes);
            self.fill(turn, shape, num_gpus, out);
        }
        holds
    }

    /// The node that takes a gang with the fewest GPUs to spare, the first of equal ones.
    fn closest(
        &self,
        kind: GpuTypeId,
        num_gpus: u32,
        hosts: impl Fn(NodeId, &Node) -> u32,
    ) -> Option<NodeRoom> {
        let mut best: Option<NodeRoom> = None;
        for (id, node) in (0..).map(NodeId).zip(&self.places.nodes) {
            let hosts = if node.gpu_type == kind { hosts(id, node) } else { 0 };
            if hosts >= num_gpus.max(1) && best.is_none_or(|(least, ..)| hosts < least) {
                best = Some((hosts, id, node.rack));
                if hosts == num_gpus {
                    break;
                }
            }
        }
        best
    }

    /// GPUs of the nodes that a gang takes whole but for one, where it is placed so.
    pub(in crate::cluster) fn whole_gpus(&self, kind: GpuTypeId, shape: Shape) -> Option<u32> {
        let is_consolidated = self.facts.capabilities.consolidated && shape == Shape::PLAIN;
        is_consolidated.then(|| self.places.free.node_gpus_max[kind.index()])
    }

    /// Of nodes with room for a gang, which together hold it, those that it fills in their order; sorts them for that.
    pub(in crate::cluster) fn in_turn<'a>(
        &self,
        template: Template,
        (kind, shape, num_gpus): (GpuTypeId, Shape, u32),
        nodes: &'a mut [NodeRoom],
    ) -> &'a [NodeRoom] {
        let most_nodes = shape.tasks.most_nodes().min(nodes.len());
        let whole = self.whole_gpus(kind, shape);
        if template == Template::Fragments && whole.is_none() {
            nodes.sort_unstable();
            // The most fragmented that are few enough.
            let holds = |nodes: &[NodeRoom]| {
                nodes.iter().map(|(hosts, ..)| u64::from(*hosts)).sum::<u64>() >= u64::from(num_gpus)
            };
            let first = nodes.windows(most_nodes).position(holds).unwrap_or(0);
            return &nodes[first..];
        }
        let rooms = nodes.iter().enumerate();
        let single = rooms.filter(|(_, (hosts, ..))| *hosts >= num_gpus);
        if let Some((at, _)) = single.min_by_key(|(_, room)| **room) {
            return &nodes[at..=at];
        }
        // Several nodes: the rack that needs the fewest of them; else the fewest nodes anywhere.
        nodes.sort_unstable_by_key(|(hosts, node, rack)| (*rack, Reverse(*hosts), *node));
        let mut best: Option<((usize, u32), Range<usize>)> = None;
        let mut first = 0;
        for rack in nodes.chunk_by(|a, b| a.2 == b.2) {
            let here = first..first + rack.len();
            first = here.end;
            let Some(needed) = nodes_needed(rack, num_gpus).filter(|needed| *needed <= most_nodes) else {
                continue;
            };
            // Of racks that need as few, the one with the fewest GPUs to spare, where GPUs alone count.
            let room: u32 = rack.iter().map(|(hosts, ..)| hosts).sum();
            let key = (needed, if shape == Shape::PLAIN { room } else { 0 });
            if best.as_ref().is_none_or(|(other, _)| key < *other) {
                best = Some((key, here));
            }
        }
        let is_allowed = |rack: &[NodeRoom]| whole.is_none_or(|size| num_partial(rack, num_gpus, size) <= 1);
        if let Some((_, rack)) = best.filter(|(_, rack)| is_allowed(&nodes[rack.clone()])) {
            return &nodes[rack];
        }
        nodes.sort_unstable_by_key(|(hosts, node, _)| (Reverse(*hosts), *node));
        nodes
    }

    /// A part of the shared GPU that has the least left, on a node that is open; where the batch system chooses, of the lowest open
    /// GPU beside it.
    pub(in crate::cluster) fn place_part(
        &self,
        kind: GpuTypeId,
        shape: Shape,
        is_open: impl Fn(NodeId) -> bool,
        out: &mut Vec<Slice>,
    ) -> bool {
        let facts = self.facts.of_types[kind.index()];
        let mut parts = self.places.shared.partial_of(kind, shape.gpu_milli);
        let found = parts.find(|gpu| {
            let node = &self.places.nodes[gpu.node.index()];
            node.state == NodeState::Up
                && is_open(gpu.node)
                && self.allows(shape.nodes, gpu.node)
                && shape.served_by(node.cpu_milli_free, node.memory_mib_free) > 0
                && facts.joins(gpu, shape)
        });
        if let Some(gpu) = found {
            let gpus = match self.facts.capabilities.lowest_gpu {
                true => self.lowest_open(&self.places.nodes[gpu.node.index()], shape, 1),
                false => 1 << gpu.gpu,
            };
            out.push(Slice { node: gpu.node, gpus });
        }
        found.is_some()
    }

    fn fill(&self, nodes: &[NodeRoom], shape: Shape, num_gpus: u32, out: &mut Vec<Slice>) {
        let mut rest = num_gpus;
        for (hosts, node, _) in nodes {
            if rest == 0 {
                break;
            }
            let take = rest.min(*hosts);
            out.push(Slice {
                node: *node,
                gpus: self.pick(&self.places.nodes[node.index()], shape, take),
            });
            rest -= take;
        }
        debug_assert_eq!(rest, 0, "the nodes were counted to hold the gang");
    }

    /// The GPUs that the end of a running job gives back, believing the ends of those it shares with: a shared GPU
    /// comes with the resident that ends last. Of a gang on several types, those of the type that sets its pace.
    #[must_use]
    #[inline(always)]
    pub(crate) fn gpus_freed_by(&self, id: JobId) -> u32 {
        let job = self.job(id);
        let is_apart = job.is_sharing || job.is_forked || self.places.num_not_up > 0;
        if !is_apart && !self.facts.capabilities.can(ActionKind::MixTypes) {
            return job.num_held;
        }
        self.slices_freed_by(id).map(|(_, freed)| freed.num_gpus()).sum()
    }

    /// The same node by node: what it holds of each node that takes jobs, and what of that is free then, which may be nothing.
    pub(crate) fn slices_freed_by(&self, id: JobId) -> impl Iterator<Item = (Slice, Slice)> + '_ {
        let job = self.job(id);
        let of_type = |slice: &&Slice| {
            let node = &self.places.nodes[slice.node.index()];
            node.gpu_type == job.gpu_type && node.state == NodeState::Up
        };
        let is_last = move |row: u32| match self.places.shared.get(row) {
            None => true,
            Some(gpu) => {
                let key = |id: JobId| (self.job(id).expected_finish, id);
                gpu.residents.iter().all(|other| key(other.job) <= key(id))
            }
        };
        let is_alone = self.places.shared.is_empty();
        job.placement.iter().filter(of_type).map(move |slice| {
            if is_alone {
                return (*slice, *slice);
            }
            let first = self.places.nodes[slice.node.index()].first_gpu;
            let freed = bits(slice.gpus).filter(|gpu| is_last(first + gpu));
            let freed = Slice {
                node: slice.node,
                gpus: freed.fold(0, |gpus, gpu| gpus | 1 << gpu),
            };
            (*slice, freed)
        })
    }
}

/// How many of the nodes, taken in this order, hold the gang; none if all together do not.
fn nodes_needed(nodes: &[NodeRoom], num_gpus: u32) -> Option<usize> {
    let mut rest = num_gpus;
    for (position, (hosts, ..)) in nodes.iter().enumerate() {
        rest = rest.saturating_sub(*hosts);
        if rest == 0 {
            return Some(position + 1);
        }
    }
    None
}

/// How many of the nodes, taken in this order, a gang fills with less than so many GPUs.
fn num_partial(nodes: &[NodeRoom], num_gpus: u32, size: u32) -> usize {
    let (mut rest, mut num) = (num_gpus, 0);
    for (hosts, ..) in nodes {
        let take = rest.min(*hosts);
        num += usize::from(take > 0 && take < size);
        rest -= take;
    }
    num
}
