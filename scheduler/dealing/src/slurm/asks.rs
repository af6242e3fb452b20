//! Jobs of the cluster as Slurm's schedulers count them, and their plans as placements.

use pleach_scheduler::cluster::{Cluster, Placement, Slice};
use pleach_scheduler::{ActionKind, JobId, NodeId};

use super::nodes::{Ask, NodeSet, Nodes, Room};
use super::schedule::Planned;

/// What of a quantity a scheduler may count on: all of it where the cluster does not model it.
pub(crate) fn modelled(all: u32, left: u32) -> u64 {
    if all == 0 { u64::MAX / 4 } else { u64::from(left) }
}

/// What a job asks for: equal parts on as few nodes as its tasks need, on the largest ones of which there are enough of these empty
/// ones. None where no equal parts do, which the cluster places otherwise.
pub(super) fn ask_of(cluster: &Cluster, id: JobId, empty: &Nodes, among: &NodeSet) -> Option<Ask> {
    let job = cluster.job(id);
    let kinds = cluster.types_in(job.types);
    let mut sizes: Vec<u32> = kinds.map(|kind| cluster.node_gpus_max_of(kind)).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    sizes.dedup();
    let mut asks = sizes.into_iter().map(|size| ask_on(cluster, id, size));
    asks.find(|ask| empty.choose(ask, among).is_some())
}

/// The same on nodes of a size.
fn ask_on(cluster: &Cluster, id: JobId, size: u32) -> Ask {
    let job = cluster.job(id);
    let request = &job.request;
    let tasks = request.resources.tasks;
    let of_node = tasks.num_on(size).max(1);
    let nodes = request.num_gpus.div_ceil(of_node).max(1);
    let each = u32::from(tasks.gpus_per_task).max(1);
    let gpus = request.num_gpus.div_ceil(each).div_ceil(nodes) * each;
    let shape = cluster.shape(job.shape);
    Ask {
        nodes,
        of_each: Room {
            gpus,
            cpu_milli: u64::from(shape.cpu_milli) * u64::from(gpus),
            memory_mib: u64::from(shape.memory_mib) * u64::from(gpus),
        },
        whole: false,
        kinds: job.types,
        mixes: cluster.capabilities().can(ActionKind::MixTypes),
    }
}

/// Starts a job as planned; false where the cluster has no such room, which a later pass will see.
pub(super) fn start(cluster: &mut Cluster, plan: &Planned) -> bool {
    let id = JobId(plan.job);
    // Jobs without a row count in quotas too.
    if !cluster.has_room(cluster.demand(id)) {
        return false;
    }
    let num_gpus = cluster.job(id).request.num_gpus;
    let each = num_gpus.div_ceil(plan.on.len() as u32);
    let tasks = u32::from(cluster.job(id).request.resources.tasks.gpus_per_task).max(1);
    let each = each.div_ceil(tasks) * tasks;
    let (mut rest, mut placement) = (num_gpus, Placement::new());
    for node in &plan.on {
        let take = rest.min(each);
        let of = &cluster.nodes()[*node];
        if take == 0 || of.num_free() < take {
            return false;
        }
        placement.push(Slice {
            node: NodeId(*node as u32),
            gpus: of.lowest_free(take),
        });
        rest -= take;
    }
    if rest > 0 {
        return false;
    }
    cluster.start(id, placement);
    true
}
