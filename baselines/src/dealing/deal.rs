//! One deal: wishes are counted out, winners seated, losers join as guests.

use pleach_scheduler::JobId;
use pleach_scheduler::cluster::{Cluster, Job, NodeState};

use super::count::{Room, count, wishes};
use super::guests::add_guests;
use super::order::Order;
use super::rules::DealingRules;
use super::seats::Seats;
use crate::shared::allocation::{Allocation, Grant};
use crate::shared::pair_speeds::PairSpeeds;
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// How often those are looked at again who found no CPU or memory beside the GPUs that they won. *Assumed.*
const ROUNDS_MAX: usize = 4;

/// Whether a running job takes part in a deal. Jobs that hold fractions of a GPU, run as copies or on a node that takes no
/// jobs stay where they are.
fn is_movable(cluster: &Cluster, job: &Job) -> bool {
    let on_open_nodes = || {
        let mut nodes = job
            .placement
            .iter()
            .map(|slice| &cluster.nodes()[slice.node.index()]);
        nodes.all(|node| node.state == NodeState::Up)
    };
    is_whole_gpu_job(job) && !job.is_forked && on_open_nodes()
}

/// Who runs where until the next deal. Where `moves` is false everybody who runs stays, and free GPUs are filled.
pub(super) fn deal(
    cluster: &Cluster,
    rules: &DealingRules,
    order: &dyn Order,
    speeds: &mut PairSpeeds,
    moves: bool,
) -> Allocation {
    let mut allocation = Allocation::new();
    let mut movable: Vec<JobId> = Vec::new();
    for id in cluster.running() {
        let job = cluster.job(id);
        if moves && is_movable(cluster, job) {
            movable.push(id);
        } else if is_whole_gpu_job(job) {
            let stays = Grant {
                placement: job.placement.clone(),
                granted: Some(job.granted),
                copies: None,
            };
            allocation.insert(id, stays);
        }
    }
    let pending = cluster.pending().filter(|id| is_whole_gpu_job(cluster.job(*id)));
    let players: Vec<JobId> = pending.chain(movable.iter().copied()).collect();
    let wishes = wishes(cluster, order, &players);
    let free = FreeResources::without(cluster, movable.iter().copied());
    let mut room = Room::of(cluster, &free, &movable);
    let mut seats = Seats::new(cluster, rules, free);
    let mut is_out = vec![false; cluster.jobs().len()];
    let has_seat = |id: JobId| !cluster.job(id).placement.is_empty();
    let mut rest = wishes.clone();
    for _ in 0..ROUNDS_MAX {
        let mut winners = count(cluster, &rest, &mut room, &mut is_out);
        seats.expect(&mut winners, has_seat);
        let mut failed = Vec::new();
        for wish in &winners {
            match seats.seat(wish) {
                Some(seat) => {
                    let job = cluster.job(wish.job);
                    let mut grant = Grant::gang(seat);
                    if has_seat(wish.job) && job.placement == grant.placement {
                        grant.granted = Some(job.granted);
                    }
                    allocation.insert(wish.job, grant);
                }
                None => failed.push(*wish),
            }
        }
        if failed.is_empty() {
            break;
        }
        for wish in &failed {
            room.give_back(cluster, wish);
            is_out[wish.job.index()] = false;
        }
        rest.retain(|wish| !is_out[wish.job.index()] && !failed.contains(wish));
    }
    add_guests(cluster, rules, speeds, &wishes, &mut room, &mut allocation);
    allocation
}
