//! Jobs and their copies while a round of HadarE is planned: a node's GPUs go to the copies with the largest payoffs.

use pleach_scheduler::cluster::{Cluster, Placement, Slice};
use pleach_scheduler::physics::mixed::Copies;
use pleach_scheduler::{GpuTypeId, NodeId};

use super::market::Stock;
use super::utility::{Prices, Request};
use crate::shared::allocation::Grant;
use crate::shared::what_if::FreeResources;

/// A job and its copies as a plan grows.
#[derive(Clone, Debug)]
pub(super) struct Fork {
    pub(super) request: Request,
    pub(super) copies: Copies,
    /// What a start costs, s.
    pub(super) start_s: f64,
    pub(super) slices: Placement,
    pub(super) sum_rates: f64,
    /// Whether a copy is where the job does not run now.
    pub(super) moves: bool,
    /// Utility with the copies so far; 0 without any.
    pub(super) utility: f64,
    /// What a copy of so many GPUs of a type would add elsewhere than where the job runs, since the last copy.
    pub(super) known: Option<(GpuTypeId, u32, f64)>,
}

impl Fork {
    /// Utility with one more copy at a rate.
    fn with(&self, rate: f64, moves: bool) -> f64 {
        let useful = 1.0 - self.copies.consolidation_s(self.slices.len() as u32 + 1) / self.copies.round_s;
        let rate = (self.sum_rates + rate) * useful;
        if rate <= 0.0 {
            return 0.0;
        }
        let start_s = if self.moves || moves { self.start_s } else { 0.0 };
        self.request.utility(start_s + self.request.rest_s / rate)
    }
}

/// A copy that a node could take.
#[derive(Clone, Copy, Debug)]
struct Copy {
    fork: usize,
    num_gpus: u32,
    rate: f64,
    /// The slice that the job has there now, if it is still free.
    stays: Option<Slice>,
    /// What it adds to the utility.
    gain: f64,
}

/// Nodes with room, the fastest for the average job first.
pub(super) fn nodes_by_speed(cluster: &Cluster, stock: &Stock, requests: &[Request]) -> Vec<NodeId> {
    let mut value = vec![0.0_f64; cluster.num_types()];
    for request in requests {
        for (value, speed) in value.iter_mut().zip(&cluster.class(request.class).speed) {
            *value += speed;
        }
    }
    let nodes = stock.free.nodes().iter().enumerate();
    let free = nodes.filter(|(_, node)| node.free != 0);
    let mut nodes: Vec<(f64, NodeId)> = free
        .map(|(index, node)| (value[node.gpu_type.index()], NodeId(index as u32)))
        .collect();
    nodes.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    nodes.into_iter().map(|(_, node)| node).collect()
}

/// Gives a node's GPUs to the copies with the largest payoffs, at the sizes that fit now. Whether any was given.
pub(super) fn serve(
    cluster: &Cluster,
    stock: &mut Stock,
    prices: &Prices,
    node: NodeId,
    forks: &mut [Fork],
    copies_max: usize,
) -> bool {
    if stock.free.nodes()[node.index()].free == 0 {
        return false;
    }
    let mut open = candidates(cluster, &stock.free, node, forks, copies_max);
    let mut any = false;
    loop {
        let price = prices.at(&stock.free, node.index());
        let payoff = |copy: &Copy| copy.gain - price * f64::from(copy.num_gpus);
        let best = (0..open.len()).reduce(|best, at| {
            if payoff(&open[at]) > payoff(&open[best]) {
                at
            } else {
                best
            }
        });
        let Some(best) = best else {
            return any;
        };
        let copy = open.remove(best);
        if give(cluster, stock, node, copy, &mut forks[copy.fork]) {
            any = true;
            open.retain(|copy| copy.num_gpus <= stock.free.hosts(node, forks[copy.fork].request.shape));
        }
    }
}

/// The copies that a node could take, at most one of each job, and only such that help.
fn candidates(
    cluster: &Cluster,
    free: &FreeResources,
    node: NodeId,
    forks: &mut [Fork],
    copies_max: usize,
) -> Vec<Copy> {
    let kind = free.nodes()[node.index()].gpu_type;
    let mut open = Vec::new();
    for (index, fork) in forks.iter_mut().enumerate() {
        let request = &fork.request;
        let is_here = fork.slices.iter().any(|slice| slice.node == node);
        if request.types >> kind.0 & 1 == 0 || fork.slices.len() >= copies_max || is_here {
            continue;
        }
        let num_gpus = free.hosts(node, request.shape).min(request.num_gpus);
        if num_gpus == 0 {
            continue;
        }
        let job = cluster.job(request.id);
        let here = job.placement.iter().find(|slice| slice.node == node).copied();
        let stays = here.filter(|slice| slice.num_gpus() == num_gpus && free.has(&[*slice], request.shape));
        let part = f64::from(num_gpus) / f64::from(request.num_gpus);
        let rate = cluster.class(request.class).speed[kind.index()] * part;
        let gain = match fork.known {
            Some((known, num, gain)) if stays.is_none() && (known, num) == (kind, num_gpus) => gain,
            _ => fork.with(rate, stays.is_none()) - fork.utility,
        };
        if stays.is_none() {
            fork.known = Some((kind, num_gpus, gain));
        }
        if gain > 0.0 {
            open.push(Copy {
                fork: index,
                num_gpus,
                rate,
                stays,
                gain,
            });
        }
    }
    open
}

/// Gives a node's GPUs to a copy, if they and the quota still suffice; whether they do.
fn give(cluster: &Cluster, stock: &mut Stock, node: NodeId, copy: Copy, fork: &mut Fork) -> bool {
    let shape = fork.request.shape;
    let fits = stock.free.hosts(node, shape) >= copy.num_gpus;
    if !fits || !stock.has_quota(cluster, &fork.request, copy.num_gpus) {
        return false;
    }
    let stays = copy.stays.filter(|slice| stock.free.has(&[*slice], shape));
    let slice = stays.unwrap_or_else(|| stock.free.lowest(node, copy.num_gpus));
    stock.take(cluster, &fork.request, &Placement::from_slice(&[slice]));
    fork.known = None;
    fork.utility = fork.with(copy.rate, stays.is_none());
    fork.moves |= stays.is_none();
    fork.sum_rates += copy.rate;
    fork.slices.push(slice);
    true
}

/// One whole copy is the plain gang. Slices are in the order of the nodes, so that equal plans are equal placements.
pub(super) fn grant(mut fork: Fork) -> Grant {
    fork.slices.sort_unstable_by_key(|slice| slice.node);
    let is_whole = fork.slices.len() == 1 && fork.slices[0].num_gpus() == fork.request.num_gpus;
    Grant {
        copies: (!is_whole).then_some(fork.copies),
        ..Grant::gang(fork.slices)
    }
}
