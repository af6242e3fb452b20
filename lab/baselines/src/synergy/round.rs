//! A round of Synergy on paper: the cluster with every job away that may be moved, the jobs that are to run, and the
//! plan carried out.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, NodeState, Placement, Shape, Slice};
use pleach_scheduler::{GpuTypeId, JobId, NodeId};

use super::server_allocator::{Server, ServerAllocator};
use crate::shared::allocation::{Allocation, Grant as Granted, apply};
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};
use pleach_dealing::demand::Counts;

/// The round being planned.
pub(super) struct Round {
    /// Jobs that may be given out anew, in their order.
    pub(super) order: Vec<JobId>,
    /// Jobs on draining nodes.
    stays: Vec<JobId>,
    free: FreeResources,
    /// The servers of each type. `[type]`
    pub(super) allocators: Vec<ServerAllocator>,
    /// The nodes behind those servers. `[type][server]`
    nodes: Vec<Vec<NodeId>>,
    /// What is left of each quota, thousandths of GPUs; no limit where borrowing is allowed. `[tenant]`
    quota_milli: Vec<u64>,
}

impl Round {
    /// The cluster with every job away that may be moved.
    pub(super) fn begin(cluster: &Cluster, sort: impl FnOnce(Vec<JobId>) -> Vec<JobId>) -> Round {
        let up = |slice: &Slice| cluster.nodes()[slice.node.index()].state == NodeState::Up;
        let (mut stays, mut moves) = (Vec::new(), Vec::new());
        let jobs = cluster.active().into_iter();
        for id in jobs.filter(|id| is_whole_gpu_job(cluster.job(*id))) {
            if cluster.job(id).placement.iter().all(up) {
                moves.push(id);
            } else {
                stays.push(id);
            }
        }
        let running = |id: &JobId| cluster.job(*id).state == JobState::Running;
        let free = FreeResources::without(cluster, moves.iter().copied().filter(running));
        let mut quota_milli = vec![u64::MAX; cluster.tenants().len()];
        if !cluster.borrowing() {
            for (left, tenant) in quota_milli.iter_mut().zip(cluster.tenants()) {
                *left = (u64::from(tenant.quota_gpus) * 1000).saturating_sub(tenant.used_milli);
            }
            for id in moves.iter().copied().filter(running) {
                let job = cluster.job(id);
                quota_milli[job.request.tenant.index()] += job.milli_held();
            }
        }
        let num_types = cluster.num_types();
        let (mut servers, mut nodes) = (vec![Vec::new(); num_types], vec![Vec::new(); num_types]);
        for (number, node) in free.nodes().iter().enumerate() {
            let free = [f64::from(node.cpu_milli), f64::from(node.memory_mib)];
            servers[node.gpu_type.index()].push(Server::new(node.num_free(), free));
            nodes[node.gpu_type.index()].push(NodeId(number as u32));
        }
        Round {
            order: sort(moves),
            stays,
            free,
            allocators: servers.into_iter().map(ServerAllocator::new).collect(),
            nodes,
            quota_milli,
        }
    }

    fn milli(cluster: &Cluster, id: JobId) -> u64 {
        u64::from(cluster.job(id).request.num_gpus) * 1000
    }

    pub(super) fn has_quota(&self, cluster: &Cluster, id: JobId) -> bool {
        let tenant = cluster.job(id).request.tenant.index();
        self.quota_milli[tenant] >= Round::milli(cluster, id)
    }

    pub(super) fn charge(&mut self, cluster: &Cluster, id: JobId) {
        if !cluster.borrowing() {
            let tenant = cluster.job(id).request.tenant.index();
            self.quota_milli[tenant] -= Round::milli(cluster, id);
        }
    }

    /// Takes jobs in their order as long as GPUs and quotas last, and says on which type each is to run.
    pub(super) fn choose(&self, cluster: &Cluster, order: &[JobId]) -> Vec<(JobId, GpuTypeId)> {
        let mut left: Vec<u32> = self.allocators.iter().map(ServerAllocator::num_free).collect();
        let mut quota_milli = self.quota_milli.clone();
        let mut chosen = Vec::new();
        for &id in order {
            if left.iter().all(|left| *left == 0) {
                break;
            }
            let job = cluster.job(id);
            let (num_gpus, tenant) = (job.request.num_gpus, job.request.tenant.index());
            let mut open = types_of(cluster, id).into_iter();
            let kind = open.find(|kind| left[kind.index()] >= num_gpus);
            let (Some(kind), true) = (kind, quota_milli[tenant] >= Round::milli(cluster, id)) else {
                continue;
            };
            left[kind.index()] -= num_gpus;
            if !cluster.borrowing() {
                quota_milli[tenant] -= Round::milli(cluster, id);
            }
            chosen.push((id, kind));
        }
        chosen
    }

    /// Where a running job is now, if it is on this type.
    pub(super) fn counts_now(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Counts {
        let mut counts = Counts::new();
        for slice in &cluster.job(id).placement {
            let Ok(server) = self.nodes[kind.index()].binary_search(&slice.node) else {
                return Counts::new();
            };
            counts.insert(server, slice.num_gpus());
        }
        counts
    }

    /// Makes the cluster run what was given out. On each node a job keeps GPUs that it has there; the rest take the lowest.
    pub(super) fn carry_out(mut self, cluster: &mut Cluster) {
        let mut gpus: BTreeMap<(JobId, NodeId), u64> = BTreeMap::new();
        for own in [true, false] {
            for (allocator, nodes) in self.allocators.iter().zip(&self.nodes) {
                for (id, holding) in &allocator.held {
                    for (server, count) in &holding.counts {
                        let node = nodes[*server];
                        let mask = gpus.entry((*id, node)).or_default();
                        let missing = count - mask.count_ones();
                        let mut free = self.free.nodes()[node.index()].free;
                        if own {
                            let now = cluster.job(*id).placement.iter();
                            free &= now
                                .filter(|slice| slice.node == node)
                                .fold(0, |all, slice| all | slice.gpus);
                        }
                        let taken = lowest(free, missing);
                        *mask |= taken;
                        if taken != 0 {
                            self.free.take(&[Slice { node, gpus: taken }], Shape::PLAIN);
                        }
                    }
                }
            }
        }
        let mut allocation = Allocation::new();
        for id in &self.stays {
            let job = cluster.job(*id);
            let placement = job.placement.clone();
            allocation.insert(
                *id,
                Granted {
                    granted: Some(job.granted),
                    ..Granted::gang(placement)
                },
            );
        }
        for (allocator, nodes) in self.allocators.iter().zip(&self.nodes) {
            for (id, holding) in &allocator.held {
                let [cpu_milli, memory_mib] = holding.each.map(|input| input as u32);
                let granted = cluster.number_shape(Shape {
                    cpu_milli,
                    memory_mib,
                    ..Shape::PLAIN
                });
                let slices = holding.counts.keys().map(|server| {
                    let node = nodes[*server];
                    let gpus = gpus[&(*id, node)];
                    Slice { node, gpus }
                });
                let placement: Placement = slices.collect();
                // With more than 65,536 different grants the job waits.
                if granted.is_some() {
                    let granted = Granted {
                        granted,
                        ..Granted::gang(placement)
                    };
                    allocation.insert(*id, granted);
                }
            }
        }
        apply(cluster, &allocation);
    }
}

/// The lowest bits of a mask.
fn lowest(mask: u64, num: u32) -> u64 {
    let mut rest = mask;
    for _ in 0..num {
        rest &= rest.wrapping_sub(1);
    }
    mask & !rest
}

/// The types on which a job can run, those first on which its class is fastest.
pub(super) fn types_of(cluster: &Cluster, id: JobId) -> Vec<GpuTypeId> {
    let job = cluster.job(id);
    let speed = &cluster.class(job.request.class).speed;
    let mut kinds: Vec<GpuTypeId> = cluster.types_in(job.types).collect();
    kinds.sort_by(|a, b| speed[b.index()].total_cmp(&speed[a.index()]));
    kinds
}
