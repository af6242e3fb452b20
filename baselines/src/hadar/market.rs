//! What a plan has left to give: free GPUs, what tenants may still take, and what a GPU costs.

use pleach_scheduler::cluster::{Cluster, Placement};
use pleach_scheduler::ids::NodeId;

use super::utility::{Prices, Wish};
use crate::shared::board::{Board, is_on_board};

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
    pub board: Board,
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
        let board = if moves {
            Board::emptied(cluster)
        } else {
            Board::as_is(cluster)
        };
        let mut num_free_of = vec![0; cluster.num_types()];
        for space in board.spaces() {
            num_free_of[space.gpu_type.index()] += space.num_free();
        }
        Stock {
            board,
            num_free: num_free_of.iter().sum(),
            num_free_of,
            quotas: quotas(cluster, moves),
        }
    }

    /// Whether the tenant of a job may take so many GPUs more.
    #[must_use]
    pub fn has_quota(&self, cluster: &Cluster, wish: &Wish, num_gpus: u32) -> bool {
        let tenant = cluster.job(wish.id).request.tenant.index();
        self.quotas.get(tenant).is_none_or(|left| *left >= num_gpus)
    }

    /// Takes GPUs for a job.
    ///
    /// # Panics
    /// If they are not free.
    pub fn take(&mut self, cluster: &Cluster, wish: &Wish, placement: &Placement) {
        self.board.take(placement, wish.shape);
        let tenant = cluster.job(wish.id).request.tenant.index();
        for slice in placement {
            let kind = self.board.spaces()[slice.node.index()].gpu_type;
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
        if moves && is_on_board(job) {
            used_milli[job.request.tenant.index()] -= job.milli_held();
        }
    }
    let both = cluster.tenants().iter().zip(used_milli);
    both.map(|(tenant, used)| ((u64::from(tenant.quota_gpus) * 1000).saturating_sub(used) / 1000) as u32)
        .collect()
}
