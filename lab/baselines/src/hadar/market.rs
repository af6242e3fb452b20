//! What a plan has left to give: free GPUs, what tenants may still take, and what a GPU costs.

use pleach_scheduler::NodeId;
use pleach_scheduler::cluster::{Cluster, Placement};

use super::utility::{Prices, Request};
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// What does not change while a round is planned.
#[derive(Clone, Copy, Debug)]
pub struct Market<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Prices of the round.
    pub prices: &'a Prices,
    /// Nodes of each type, lowest first. `[type]`
    pub nodes_of: &'a [Vec<NodeId>],
}

/// Nodes of each type, lowest first. `[type]`
#[must_use]
pub fn nodes_of(cluster: &Cluster) -> Vec<Vec<NodeId>> {
    let mut nodes_of = vec![Vec::new(); cluster.num_types()];
    for (index, node) in cluster.nodes().iter().enumerate() {
        nodes_of[node.gpu_type.index()].push(NodeId(index as u32));
    }
    nodes_of
}

/// What a plan leaves.
#[derive(Clone, Debug)]
pub struct Stock {
    /// Free GPUs, CPU and memory.
    pub free: FreeResources,
    /// GPUs that are free, in all.
    pub num_free: u32,
    /// GPUs that are free, by type. `[type]`
    pub num_free_of: Vec<u32>,
    /// GPUs that each tenant may still take; empty where tenants may borrow. `[tenant]`
    pub quotas: Vec<u32>,
}

impl Stock {
    /// Before anything is planned: all but what jobs hold that are not moved. Running jobs are moved where `moves`, but for
    /// those that hold parts of GPUs.
    #[must_use]
    pub fn new(cluster: &Cluster, moves: bool) -> Stock {
        let free = if moves {
            FreeResources::emptied(cluster)
        } else {
            FreeResources::as_is(cluster)
        };
        let mut num_free_of = vec![0; cluster.num_types()];
        for node in free.nodes() {
            num_free_of[node.gpu_type.index()] += node.num_free();
        }
        Stock {
            free,
            num_free: num_free_of.iter().sum(),
            num_free_of,
            quotas: quotas(cluster, moves),
        }
    }

    /// Whether the tenant of a job may take so many GPUs more.
    #[must_use]
    pub fn has_quota(&self, cluster: &Cluster, request: &Request, num_gpus: u32) -> bool {
        let tenant = cluster.job(request.id).request.tenant.index();
        self.quotas.get(tenant).is_none_or(|left| *left >= num_gpus)
    }

    /// Takes GPUs for a job.
    ///
    /// # Panics
    /// If they are not free.
    pub fn take(&mut self, cluster: &Cluster, request: &Request, placement: &Placement) {
        self.free.take(placement, request.shape);
        let tenant = cluster.job(request.id).request.tenant.index();
        for slice in placement {
            let kind = self.free.nodes()[slice.node.index()].gpu_type;
            let num_gpus = slice.num_gpus();
            self.num_free -= num_gpus;
            self.num_free_of[kind.index()] -= num_gpus;
            if let Some(left) = self.quotas.get_mut(tenant) {
                *left -= num_gpus;
            }
        }
    }
}

/// GPUs that each tenant may take if the jobs that a plan moves are stopped; empty where tenants may borrow.
fn quotas(cluster: &Cluster, moves: bool) -> Vec<u32> {
    if cluster.borrowing() {
        return Vec::new();
    }
    let tenants = cluster.tenants().iter();
    let mut used_milli: Vec<u64> = tenants.map(|tenant| tenant.used_milli).collect();
    for id in cluster.running() {
        let job = cluster.job(id);
        if moves && is_whole_gpu_job(job) {
            used_milli[job.request.tenant.index()] -= job.milli_held();
        }
    }
    let both = cluster.tenants().iter().zip(used_milli);
    both.map(|(tenant, used)| ((u64::from(tenant.quota_gpus) * 1000).saturating_sub(used) / 1000) as u32)
        .collect()
}
