//! Jobs as pods: how many, what each asks for, where they may be, where they are.

use pleach_scheduler::cluster::{Cluster, JobState, Node, NodeState, Placement, Slice};
use pleach_scheduler::{ActionKind, JobId, NodeId, Time};

use crate::slurm::{Nodes, Room, modelled};

/// The node of a pod, and since when it is there; none without one.
pub(super) type On = Option<(usize, Time)>;

/// A job that waits or runs.
#[derive(Clone, Debug)]
pub(super) struct Pods {
    /// What each asks for.
    pub(super) ask: Room,
    pub(super) priority: i32,
    /// GPU types that they may have, as a bit mask.
    pub(super) kinds: u64,
    /// Whether they may be on nodes of different types.
    mixes: bool,
    pub(super) on: Vec<On>,
    /// The job as it was seen.
    pub(super) seen: JobState,
}

fn room(node: &Node, gpus: u32, cpu_milli: u32, memory_mib: u32) -> Room {
    Room {
        gpus,
        cpu_milli: modelled(node.cpu_milli, cpu_milli),
        memory_mib: modelled(node.memory_mib, memory_mib),
    }
}

/// The nodes, empty.
pub(super) fn empty(cluster: &Cluster) -> Nodes {
    let nodes = cluster.nodes().iter();
    let all = nodes
        .clone()
        .map(|node| room(node, node.num_gpus, node.cpu_milli, node.memory_mib));
    Nodes::new(all.collect(), nodes.map(|node| node.gpu_type.0).collect())
}

/// What is free of one in the tables; nothing where it is away.
pub(super) fn free_of(node: &Node) -> Room {
    match node.state {
        NodeState::Up => room(node, node.num_free(), node.cpu_milli_free, node.memory_mib_free),
        _ => Room::default(),
    }
}

impl Pods {
    /// The pods of a job: its tasks; where it has none, equal ones, as few as fit on empty nodes. None of leases and fractions of
    /// GPUs, of tasks that are bound to few nodes, and where no equal pods fit.
    pub(super) fn of(cluster: &Cluster, empty: &Nodes, id: JobId, priority: i32) -> Option<Pods> {
        let job = cluster.job(id);
        let (request, tasks) = (&job.request, job.request.resources.tasks);
        if job.is_lease
            || request.resources.is_fractional()
            || tasks.nodes_max > 0
            || tasks.tasks_per_node_max > 0
        {
            return None;
        }
        let shape = cluster.shape(job.shape);
        let mixes = cluster.capabilities().can(ActionKind::MixTypes);
        let made = |num: u32| {
            let gpus = request.num_gpus / num;
            let ask = Room {
                gpus,
                cpu_milli: u64::from(shape.cpu_milli) * u64::from(gpus),
                memory_mib: u64::from(shape.memory_mib) * u64::from(gpus),
            };
            let enough = |kinds: &u64| {
                let of = empty.all.iter().zip(&empty.kinds);
                let of = of.filter(|(_, kind)| kinds >> **kind & 1 == 1);
                of.map(|(all, _)| all.times(ask)).sum::<usize>() >= num as usize
            };
            let kinds: u64 = match mixes {
                true => Some(job.types).filter(enough).unwrap_or(0),
                false => cluster
                    .types_in(job.types)
                    .map(|kind| 1 << kind.0)
                    .filter(enough)
                    .sum(),
            };
            (kinds != 0).then(|| Pods {
                ask,
                priority,
                kinds,
                mixes,
                on: vec![None; num as usize],
                seen: job.state,
            })
        };
        let mut nums = (1..=request.num_gpus).filter(|num| request.num_gpus.is_multiple_of(*num));
        match tasks.is_any() {
            true => nums.find_map(made),
            false => made(request.num_gpus / u32::from(tasks.gpus_per_task).max(1)),
        }
    }

    /// Whether the rest of them may be on a node.
    pub(super) fn may_be(&self, nodes: &Nodes, node: usize) -> bool {
        self.kinds_left(nodes) >> nodes.kinds[node] & 1 == 1
    }

    /// The types that the rest of them may have.
    pub(super) fn kinds_left(&self, nodes: &Nodes) -> u64 {
        match self.on.iter().flatten().next().filter(|_| !self.mixes) {
            Some((node, _)) => 1 << nodes.kinds[*node],
            None => self.kinds,
        }
    }

    /// Whether some hold places that the tables do not know of.
    pub(super) fn is_in_parts(&self) -> bool {
        self.seen != JobState::Running && self.on.iter().any(Option::is_some)
    }

    /// The GPUs of all of them; none where the tables have no room, as others have taken it.
    pub(super) fn placement(&self, cluster: &Cluster) -> Option<Placement> {
        let mut nodes: Vec<usize> = self.on.iter().flatten().map(|(node, _)| *node).collect();
        nodes.sort_unstable();
        let slice = |pods: &[usize]| {
            let node = &cluster.nodes()[pods[0]];
            (free_of(node).times(self.ask) >= pods.len()).then(|| Slice {
                node: NodeId(pods[0] as u32),
                gpus: node.lowest_free(self.ask.gpus * pods.len() as u32),
            })
        };
        nodes.chunk_by(|one, next| one == next).map(slice).collect()
    }
}
