//! The GPUs that a newcomer could share: which job has each of them, and what becomes of that while a plan is drawn up.

use pleach_scheduler::cluster::{Cluster, NodeState, Placement, Shape, ShapeId, Slice};
use pleach_scheduler::{GpuTypeId, JobId, NodeId};

/// A running job and those of its GPUs that it has to itself.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) job: JobId,
    /// Type of these GPUs.
    pub(super) kind: GpuTypeId,
    /// Rest of the job alone, s.
    pub(super) alone_s: f64,
    /// Its GPUs with no other resident, node by node.
    pub(super) gpus: Placement,
}

/// All hosts, by the position of their first GPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
}

impl Hosts {
    /// The jobs that could be joined now: whole-GPU jobs without CPU or memory of their own, on open nodes.
    pub(super) fn of(cluster: &Cluster) -> Hosts {
        let mut hosts: Vec<Host> = cluster
            .running()
            .filter_map(|id| Host::of(cluster, id))
            .filter(|host| !host.gpus.is_empty())
            .collect();
        hosts.sort_unstable_by_key(Host::first);
        Hosts { hosts }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Host)> {
        self.hosts.iter().enumerate()
    }

    pub(super) fn get(&self, index: usize) -> &Host {
        &self.hosts[index]
    }

    /// GPUs of a type that have one resident.
    pub(super) fn num_of(&self, kind: GpuTypeId) -> u32 {
        let of_type = self.hosts.iter().filter(|host| host.kind == kind);
        of_type.map(Host::num_gpus).sum()
    }

    /// A job was started: the GPUs that it shares are full, and the others can be joined from now on.
    pub(super) fn started(&mut self, cluster: &Cluster, id: JobId) {
        let job = cluster.job(id);
        if job.is_sharing {
            self.hosts.retain_mut(|host| {
                for slice in &job.placement {
                    for theirs in host.gpus.iter_mut().filter(|theirs| theirs.node == slice.node) {
                        theirs.gpus &= !slice.gpus;
                    }
                }
                host.gpus.retain(|slice| slice.gpus != 0);
                !host.gpus.is_empty()
            });
        }
        if let Some(host) = Host::of(cluster, id).filter(|host| !host.gpus.is_empty()) {
            let at = self.hosts.partition_point(|other| other.first() < host.first());
            self.hosts.insert(at, host);
        }
    }
}

impl Host {
    /// A running job and those of its GPUs that others may join; none if no job may join it.
    fn of(cluster: &Cluster, id: JobId) -> Option<Host> {
        let job = cluster.job(id);
        if cluster.shape(job.granted) != Shape::PLAIN || job.is_forked {
            return None;
        }
        let own = |slice: &Slice| {
            let node = &cluster.nodes()[slice.node.index()];
            if node.state != NodeState::Up || node.gpu_type != job.gpu_type {
                return Slice { gpus: 0, ..*slice };
            }
            let mut gpus = slice.gpus;
            if job.is_sharing {
                let owner = |gpu: &u32| cluster.gpus()[(node.first_gpu + gpu) as usize];
                gpus = (0..node.num_gpus)
                    .filter(|gpu| gpus >> gpu & 1 == 1 && owner(gpu) == Some(id))
                    .fold(0, |mask, gpu| mask | 1 << gpu);
            }
            Slice { gpus, ..*slice }
        };
        let mut gpus: Placement = job.placement.iter().map(own).collect();
        gpus.retain(|slice| slice.gpus != 0);
        Some(Host {
            job: id,
            kind: job.gpu_type,
            alone_s: job.remaining_s_at(cluster.now()) / job.rate_alone,
            gpus,
        })
    }

    pub(super) fn num_gpus(&self) -> u32 {
        self.gpus.iter().map(|slice| slice.num_gpus()).sum()
    }

    fn first(&self) -> (NodeId, u32) {
        let first = self.gpus.first();
        first.map_or((NodeId(0), 0), |slice| (slice.node, slice.gpus.trailing_zeros()))
    }
}

/// Whether a job asks for whole GPUs and nothing else, so that it can share them.
pub(super) fn can_share(cluster: &Cluster, id: JobId) -> bool {
    cluster.job(id).shape == ShapeId::PLAIN
}

/// A gang on all free GPUs of a type and on GPUs of these hosts, in this order, until it is whole; none if it does not
/// become whole.
pub(super) fn gathered<'a>(
    cluster: &Cluster,
    kind: GpuTypeId,
    num_gpus: u32,
    hosts: impl Iterator<Item = &'a Host>,
) -> Option<Placement> {
    let mut rest = num_gpus;
    let mut masks: Vec<(NodeId, u64)> = Vec::new();
    let free = cluster.nodes().iter().enumerate();
    let free = free.filter(|(_, node)| node.gpu_type == kind && node.free != 0);
    let free = free.map(|(index, node)| Slice {
        node: NodeId(index as u32),
        gpus: node.free,
    });
    for slice in free.chain(hosts.flat_map(|host| host.gpus.iter().copied())) {
        let mut left = slice.gpus;
        for _ in 0..rest {
            left &= left.wrapping_sub(1);
        }
        let gpus = slice.gpus & !left;
        if gpus == 0 {
            break;
        }
        rest -= gpus.count_ones();
        masks.push((slice.node, gpus));
    }
    masks.sort_unstable();
    let mut placement = Placement::new();
    for (node, gpus) in masks {
        add(&mut placement, node, gpus);
    }
    (rest == 0).then_some(placement)
}

/// Adds GPUs of a node that is the last of the placement, or comes after it.
fn add(placement: &mut Placement, node: NodeId, gpus: u64) {
    match placement.last_mut() {
        Some(slice) if slice.node == node => slice.gpus |= gpus,
        _ => placement.push(Slice { node, gpus }),
    }
}
