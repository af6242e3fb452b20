//! What nodes have for whole tasks of a gang, counted; and what the types of an empty cluster have.

use std::collections::BTreeMap;

use crate::cluster_spec::Tasks;

/// Nodes by the GPUs that each has for whole tasks of a gang, 0 to 64, and the GPUs of all of them.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct NodeRooms([u32; 65], u32);

impl NodeRooms {
    pub(in crate::cluster) const NONE: NodeRooms = NodeRooms([0; 65], 0);

    pub(in crate::cluster) fn of(rooms: impl Iterator<Item = u32>) -> NodeRooms {
        let mut found = NodeRooms::NONE;
        rooms.for_each(|room| found.add(room, 1));
        found
    }

    pub(in crate::cluster) fn add(&mut self, room: u32, num_nodes: u32) {
        self.0[room as usize] += num_nodes;
        self.1 += room * num_nodes;
    }

    pub(in crate::cluster) fn remove(&mut self, room: u32) {
        self.0[room as usize] -= 1;
        self.1 -= room;
    }

    /// GPUs of the largest gang of such tasks, which may have so many nodes.
    pub(in crate::cluster) fn most(&self, tasks: Tasks) -> u32 {
        if tasks.nodes_max == 0 {
            return self.1;
        }
        let (mut nodes_left, mut most) = (tasks.most_nodes(), 0);
        for room in (1..self.0.len()).rev() {
            let num = (self.0[room] as usize).min(nodes_left);
            nodes_left -= num;
            most += (num * room) as u32;
        }
        most
    }

    /// Whether they hold a gang of such tasks; one that takes its nodes `whole`, of so many GPUs, may have one that is not.
    pub(in crate::cluster) fn hold(&self, tasks: Tasks, whole: Option<u32>, num_gpus: u32) -> bool {
        match whole {
            Some(size) => self.hold_whole(size, num_gpus),
            None => self.most(tasks) >= num_gpus,
        }
    }

    fn hold_whole(&self, size: u32, num_gpus: u32) -> bool {
        let (size, most) = (size.max(1), self.0.len() as u32 - 1);
        let num_whole = (size..=most).map(|room| self.0[room as usize]).sum::<u32>();
        let (wanted, rest) = (num_gpus / size, num_gpus % size);
        let others = (1..size.min(most + 1))
            .rev()
            .find(|room| self.0[*room as usize] > 0);
        num_whole > wanted || (num_whole == wanted && others.unwrap_or(0) >= rest)
    }

    /// GPUs of the roomiest node.
    pub(in crate::cluster) fn largest(&self) -> u32 {
        (1..self.0.len())
            .rev()
            .find(|room| self.0[*room] > 0)
            .unwrap_or(0) as u32
    }
}

/// What a type of the empty cluster has for gangs of the same tasks.
#[derive(Clone, Copy, Debug)]
pub(in crate::cluster) struct TypeRoom {
    /// GPUs in the roomiest node.
    pub(in crate::cluster) node: u32,
    /// GPUs in the roomiest rack.
    pub(in crate::cluster) rack: u32,
    /// GPUs in all.
    pub(in crate::cluster) all: u32,
}

/// The same of all types, by tasks; not of gangs that may be cut as one likes. `[type]`
pub(in crate::cluster) type TaskLimits = BTreeMap<Tasks, Vec<TypeRoom>>;
