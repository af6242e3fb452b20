//! Gangs that are cut into tasks: what nodes have for whole tasks of them, now, empty, or once others have ended.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::cluster::jobs::shape::Shape;
use crate::cluster::places::fit::NodeRoom;
use crate::cluster::places::task_limits::{NodeRooms, TypeRoom};
use crate::cluster::tables::{Node, NodeState, Slice, lowest, num_in};
use crate::cluster_spec::Tasks;
use crate::ids::{GpuTypeId, JobId, NodeId};

impl Cluster {
    /// What an empty type has for a gang.
    #[inline]
    pub(in crate::cluster) fn type_room(&self, kind: GpuTypeId, tasks: Tasks) -> TypeRoom {
        if tasks.is_any() {
            return TypeRoom {
                node: self.places.free.node_gpus_max[kind.index()],
                rack: self.places.free.rack_gpus_max[kind.index()],
                all: self.places.free.num_gpus[kind.index()],
            };
        }
        match self.jobs.task_limits.get(&tasks) {
            Some(rooms) => rooms[kind.index()],
            None => self.count_room(kind, tasks),
        }
    }

    /// Whether some gang that has come is cut into tasks.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        !self.jobs.task_limits.is_empty()
    }

    /// Notes what the types have for gangs of such tasks.
    pub(in crate::cluster) fn know_tasks(&mut self, tasks: Tasks) {
        if !tasks.is_any() && !self.jobs.task_limits.contains_key(&tasks) {
            let kinds = (0..self.num_types()).map(|kind| GpuTypeId(kind as u8));
            let rooms = kinds.map(|kind| self.count_room(kind, tasks)).collect();
            self.jobs.task_limits.insert(tasks, rooms);
        }
    }

    /// GPUs for whole tasks of a shape on a node that had so much to spare.
    pub(in crate::cluster) fn room_in(&self, id: NodeId, spare: Spare, shape: Shape) -> u32 {
        if spare.num_gpus == 0 || !self.allows(shape.nodes, id) {
            return 0;
        }
        let served = shape.served_by(spare.cpu_milli, spare.memory_mib);
        shape.tasks.num_on(spare.num_gpus.min(served))
    }

    /// What jobs would give back of each node: GPUs, and what comes with them.
    pub(in crate::cluster) fn given_by(
        &self,
        jobs: impl Iterator<Item = JobId>,
    ) -> BTreeMap<NodeId, (u64, Spare)> {
        let mut given: BTreeMap<NodeId, (u64, Spare)> = BTreeMap::new();
        for id in jobs {
            let job = &self.jobs.rows[id.index()];
            let with = self.shape(job.granted);
            for slice in &job.placement {
                let (gpus, spare) = given.entry(slice.node).or_default();
                *gpus |= slice.gpus;
                spare.add(Spare::of(with, slice.num_gpus()));
            }
        }
        given
    }

    fn count_room(&self, kind: GpuTypeId, tasks: Tasks) -> TypeRoom {
        let room = |node: &Node| tasks.num_on(node.num_gpus);
        let nodes = self.places.nodes.iter().filter(|node| node.gpu_type == kind);
        let all = NodeRooms::of(nodes.map(room));
        let racks = self.places.racks.iter().filter(|rack| rack.gpu_type == kind);
        let in_rack = racks.map(|rack| {
            let first = rack.first_node.index();
            let nodes = &self.places.nodes[first..first + rack.num_nodes as usize];
            NodeRooms::of(nodes.iter().map(room)).most(tasks)
        });
        TypeRoom {
            node: all.largest(),
            rack: in_rack.max().unwrap_or(0),
            all: all.most(tasks),
        }
    }

    /// What the free GPUs of a type have for whole tasks.
    pub(in crate::cluster) fn free_rooms(&self, kind: GpuTypeId, tasks: Tasks) -> NodeRooms {
        // Which nodes have nothing free does not matter: there are no more of them than these.
        let mut rooms = NodeRooms::NONE;
        rooms.add(0, self.places.nodes.len() as u32);
        for free in self.places.free.levels(kind) {
            rooms.add(tasks.num_on(free), self.places.free.num_nodes_with(kind, free));
        }
        rooms
    }

    /// As [`Cluster::place_over`], for a gang of whole GPUs that is cut into tasks: on the victims' nodes first, or, where it could
    /// not have so many nodes, on those with most room.
    pub(crate) fn place_tasks_over(
        &self,
        kind: GpuTypeId,
        (shape, num_gpus): (Shape, u32),
        victims: &[JobId],
        out: &mut Vec<Slice>,
    ) -> bool {
        let tasks = shape.tasks;
        if tasks.is_any() {
            return self.place_over(kind, num_gpus, victims, out);
        }
        let given = self.given_by(victims.iter().copied());
        // Whether no victim is on the node, its GPUs for whole tasks, the node, and its GPUs.
        let mut nodes: Vec<(bool, u32, NodeId, u64)> = Vec::new();
        for (id, node) in self.places.nodes.iter().enumerate() {
            let (id, is_up) = (NodeId(id as u32), node.state == NodeState::Up);
            let (more, mut spare) = given.get(&id).copied().unwrap_or_default();
            let gpus = node.free | more;
            spare.add(Spare::left_of(node));
            spare.num_gpus = num_in(gpus);
            let room = self.room_in(id, spare, shape);
            if node.gpu_type == kind && is_up && room > 0 {
                nodes.push((!given.contains_key(&id), room, id, gpus));
            }
        }
        let single = nodes
            .iter()
            .filter(|(is_free, room, ..)| !is_free && *room >= num_gpus);
        if let Some(best) = single.min_by_key(|(_, room, id, _)| (*room, *id)).copied() {
            return fill(&[best], (tasks, num_gpus), out);
        }
        nodes.sort_unstable_by_key(|(is_free, room, id, _)| (*is_free, Reverse(*room), *id));
        if fill(&nodes, (tasks, num_gpus), out) {
            return true;
        }
        nodes.sort_unstable_by_key(|(_, room, id, _)| (Reverse(*room), *id));
        fill(&nodes, (tasks, num_gpus), out)
    }
}

/// Takes the lowest GPUs of nodes in their order; false (and nothing written) if that is too little or too many nodes.
fn fill(nodes: &[(bool, u32, NodeId, u64)], (tasks, num_gpus): (Tasks, u32), out: &mut Vec<Slice>) -> bool {
    let (start, mut rest) = (out.len(), num_gpus);
    for (_, room, node, gpus) in nodes.iter().take(tasks.most_nodes()) {
        if rest == 0 {
            break;
        }
        let take = rest.min(*room);
        out.push(Slice {
            node: *node,
            gpus: lowest(*gpus, take),
        });
        rest -= take;
    }
    if rest > 0 {
        out.truncate(start);
    }
    rest == 0
}

/// What a node has to spare.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::cluster) struct Spare {
    pub(in crate::cluster) num_gpus: u32,
    pub(in crate::cluster) cpu_milli: u32,
    pub(in crate::cluster) memory_mib: u32,
}

impl Spare {
    /// What is free on a node.
    pub(in crate::cluster) fn left_of(node: &Node) -> Spare {
        Spare {
            num_gpus: node.num_free(),
            cpu_milli: node.cpu_milli_free,
            memory_mib: node.memory_mib_free,
        }
    }

    /// So many GPUs with what comes with each of them.
    pub(in crate::cluster) fn of(shape: Shape, num_gpus: u32) -> Spare {
        Spare {
            num_gpus,
            cpu_milli: shape.cpu_milli * num_gpus,
            memory_mib: shape.memory_mib * num_gpus,
        }
    }

    pub(in crate::cluster) fn add(&mut self, more: Spare) {
        self.num_gpus += more.num_gpus;
        self.cpu_milli += more.cpu_milli;
        self.memory_mib += more.memory_mib;
    }

    /// What is still missing to so much.
    pub(in crate::cluster) fn lacks(self, wanted: Spare) -> Spare {
        Spare {
            num_gpus: wanted.num_gpus.saturating_sub(self.num_gpus),
            cpu_milli: wanted.cpu_milli.saturating_sub(self.cpu_milli),
            memory_mib: wanted.memory_mib.saturating_sub(self.memory_mib),
        }
    }

    /// Whether it is as much of each.
    pub(in crate::cluster) fn covers(self, wanted: Spare) -> bool {
        self.lacks(wanted) == Spare::default()
    }

    fn take(&mut self, less: Spare) {
        self.num_gpus -= less.num_gpus;
        self.cpu_milli -= less.cpu_milli;
        self.memory_mib -= less.memory_mib;
    }

    /// What is left of it, no less than nothing.
    pub(in crate::cluster) fn less(self, less: Spare) -> Spare {
        less.lacks(self)
    }
}

/// What nodes of a type have free, as it would be if some running jobs had ended, for one gang with whole GPUs.
#[derive(Clone, Debug)]
pub(crate) struct TaskRoom {
    pub(in crate::cluster) kind: GpuTypeId,
    pub(in crate::cluster) shape: Shape,
    pub(in crate::cluster) num_gpus: u32,
    /// `[node]`
    pub(in crate::cluster) free: Vec<Spare>,
    rooms: NodeRooms,
    /// GPUs of the nodes that it takes whole but for one; none if it need not.
    whole: Option<u32>,
    /// Nodes of a place for the gang.
    pub(in crate::cluster) nodes: Vec<NodeRoom>,
}

impl Default for TaskRoom {
    fn default() -> TaskRoom {
        TaskRoom {
            kind: GpuTypeId(0),
            shape: Shape::PLAIN,
            num_gpus: 0,
            free: Vec::new(),
            rooms: NodeRooms::NONE,
            whole: None,
            nodes: Vec::new(),
        }
    }
}

impl TaskRoom {
    /// As they are now.
    pub(crate) fn now(cluster: &Cluster, kind: GpuTypeId, gang: (Shape, u32)) -> TaskRoom {
        let mut room = TaskRoom::default();
        room.begin(cluster, kind, gang);
        room
    }

    /// As they are now, for another gang.
    pub(crate) fn begin(&mut self, cluster: &Cluster, kind: GpuTypeId, (shape, num_gpus): (Shape, u32)) {
        (self.kind, self.shape, self.num_gpus) = (kind, shape, num_gpus);
        self.whole = cluster.whole_gpus(kind, shape);
        self.free.clear();
        self.free.extend(
            cluster
                .places
                .nodes
                .iter()
                .map(|node| match node.gpu_type == kind {
                    true => Spare::left_of(node),
                    false => Spare::default(),
                }),
        );
        self.rooms = match shape.is_gpus_alone() {
            true => cluster.free_rooms(kind, shape.tasks),
            false => {
                let nodes = (0..).map(NodeId).zip(&self.free);
                NodeRooms::of(nodes.map(|(id, spare)| cluster.room_in(id, *spare, shape)))
            }
        };
    }

    /// Whether the gang fits.
    pub(crate) fn fits(&self) -> bool {
        self.rooms.hold(self.shape.tasks, self.whole, self.num_gpus)
    }

    /// A job gives GPUs back, with what comes with them; those of other types and of nodes that take no jobs do not count.
    pub(crate) fn give(&mut self, cluster: &Cluster, job: JobId, slice: Slice) {
        let with = cluster.shape(cluster.job(job).granted);
        self.change(cluster, slice.node, |free| {
            free.add(Spare::of(with, slice.num_gpus()))
        });
    }

    /// A job ends: what it shares with others that end later stays theirs.
    pub(crate) fn end(&mut self, cluster: &Cluster, job: JobId) {
        let with = cluster.shape(cluster.job(job).granted);
        for (slice, freed) in cluster.slices_freed_by(job) {
            let given = Spare {
                num_gpus: freed.num_gpus(),
                ..Spare::of(with, slice.num_gpus())
            };
            self.change(cluster, slice.node, |free| free.add(given));
        }
    }

    /// What was given back is not after all.
    pub(crate) fn take(&mut self, cluster: &Cluster, job: JobId, slice: Slice) {
        let with = cluster.shape(cluster.job(job).granted);
        self.change(cluster, slice.node, |free| {
            free.take(Spare::of(with, slice.num_gpus()))
        });
    }

    fn change(&mut self, cluster: &Cluster, id: NodeId, change: impl Fn(&mut Spare)) {
        let node = &cluster.places.nodes[id.index()];
        if node.gpu_type != self.kind || node.state != NodeState::Up {
            return;
        }
        let free = &mut self.free[id.index()];
        self.rooms.remove(cluster.room_in(id, *free, self.shape));
        change(free);
        self.rooms.add(cluster.room_in(id, *free, self.shape), 1);
    }
}
