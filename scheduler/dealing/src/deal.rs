//! One deal: wishes are counted out, winners seated, what is left of CPU and memory handed out, losers join as guests.

use pleach_scheduler::cluster::{Cluster, Job, NodeState};
use pleach_scheduler::{JobId, PolicyError};

use super::cores::{Demands, Seated, hand_out};
use super::count::{Room, Wish, asks, count, wishes};
use super::guests::add_guests;
use super::order::{Ask, Order};
use super::rules::DealingRules;
use super::seats::Seats;
use super::sizes::Sizes;
use crate::allocation::{Allocation, Grant};
use crate::pair_speeds::PairSpeeds;
use crate::what_if::{FreeResources, is_whole_gpu_job};

/// How often jobs are looked at again that found no CPU or memory beside the GPUs that they won. *Assumed.*
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

/// Whether a running job, and any job that shares its GPUs, has run for as long as it is left alone for after a start. The end of
/// such a stint starts no deal: deals at those times only stop more jobs (lab/notes/tournament.md).
fn has_had_its_stint(cluster: &Cluster, rules: &DealingRules, id: JobId) -> bool {
    let had = |id: JobId| {
        let ran_s = (cluster.now() - cluster.job(id).run_start).as_secs_f64();
        ran_s >= rules.stint * cluster.restart_cost_s(id)
    };
    let job = cluster.job(id);
    let first = job.placement.first().filter(|_| job.is_sharing);
    // Two jobs that share have all of their GPUs in common, so one GPU shows the other job.
    let beside = first.map(|slice| cluster.residents(slice.node, slice.gpus.trailing_zeros()));
    had(id) && beside.into_iter().flatten().all(had)
}

/// What is looked up of jobs and kept from deal to deal.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    speeds: PairSpeeds,
    sizes: Sizes,
    demands: Demands,
}

/// The running jobs that a deal may stop or move: those on whole GPUs of open nodes that have had their stint, without `stays`.
pub(super) fn movable(cluster: &Cluster, rules: &DealingRules, stays: &[JobId]) -> Vec<JobId> {
    let may_move = |id: &JobId| {
        is_movable(cluster, cluster.job(*id)) && !stays.contains(id) && has_had_its_stint(cluster, rules, *id)
    };
    cluster.running().filter(may_move).collect()
}

/// A deal that is open: what may be dealt, of which scores say what comes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opened {
    /// What may be dealt, by job, type and size.
    pub asks: Vec<Ask>,
    /// Running jobs that may be stopped or moved.
    pub movable: Vec<JobId>,
    /// Whether this is a deal of all GPUs, and not of the free ones alone.
    pub(super) is_due: bool,
}

/// Opens a deal: `order` looks at the cluster, and all jobs that wait or are movable are listed. Where it does not move, all that runs
/// stays; else `stays` do.
pub(super) fn open(
    cluster: &mut Cluster,
    rules: &DealingRules,
    order: &mut dyn Order,
    lookups: &mut Lookups,
    (is_due, stays): (bool, &[JobId]),
) -> Result<Opened, PolicyError> {
    let movable = match is_due {
        true => movable(cluster, rules, stays),
        false => Vec::new(),
    };
    order.look(cluster, &movable)?;
    if is_due && rules.resize {
        choose_batches_anew(cluster);
    }
    Ok(Opened {
        asks: asks_of(cluster, rules, lookups, &movable),
        movable,
        is_due,
    })
}

/// What may be dealt to the jobs that wait and to those that may be stopped or moved, by job, type and size.
pub(super) fn asks_of(
    cluster: &Cluster,
    rules: &DealingRules,
    lookups: &mut Lookups,
    movable: &[JobId],
) -> Vec<Ask> {
    let pending = cluster.pending().filter(|id| is_whole_gpu_job(cluster.job(*id)));
    let mut players: Vec<JobId> = pending.chain(movable.iter().copied()).collect();
    players.sort_unstable();
    lookups.sizes.look(cluster, rules, &players);
    asks(cluster, rules, &lookups.sizes, &players)
}

/// Elastic jobs that run choose their batches for their present progress, so that their rates are compared as they are now.
fn choose_batches_anew(cluster: &mut Cluster) {
    let is_elastic = |id: &JobId| cluster.class(cluster.job(*id).request.class).elastic.is_some();
    let elastic: Vec<JobId> = cluster.running().filter(is_elastic).collect();
    for id in elastic {
        cluster.retune(id);
    }
}

/// Which jobs run where until the next deal. A running job that is not movable stays.
pub(super) fn deal(
    cluster: &mut Cluster,
    rules: &DealingRules,
    lookups: &mut Lookups,
    opened: &Opened,
    scores: &[f64],
) -> Allocation {
    let mut plan = plan(cluster, rules, lookups, opened, scores);
    let mut allocation = plan.settled;
    for one in plan.seated {
        let granted = cluster.number_shape(one.share);
        // With more than 65,536 different shares the job waits.
        if granted.is_some() {
            let gang = Grant::gang(one.seat);
            allocation.insert(one.job, Grant { granted, ..gang });
        }
    }
    let wishes = plan.wishes;
    add_guests(
        cluster,
        rules,
        &mut lookups.speeds,
        &wishes,
        &mut plan.room,
        &mut allocation,
    );
    allocation
}

/// What a deal comes to before guests join.
struct Plan {
    wishes: Vec<Wish>,
    room: Room,
    /// Jobs that stay where they are whatever others get.
    settled: Allocation,
    seated: Vec<Seated>,
}

fn plan(
    cluster: &Cluster,
    rules: &DealingRules,
    lookups: &mut Lookups,
    opened: &Opened,
    scores: &[f64],
) -> Plan {
    let movable = &opened.movable;
    let mut settled = Allocation::new();
    let mut may_move = vec![false; cluster.jobs().len()];
    movable.iter().for_each(|id| may_move[id.index()] = true);
    for id in cluster.running() {
        let job = cluster.job(id);
        if !may_move[id.index()] && is_whole_gpu_job(job) {
            let stays = Grant {
                placement: job.placement.clone(),
                granted: Some(job.granted),
                copies: None,
            };
            settled.insert(id, stays);
        }
    }
    let sizes = &lookups.sizes;
    let wishes = wishes(cluster, rules, &mut lookups.demands, &opened.asks, scores);
    let free = FreeResources::without(cluster, movable.iter().copied());
    let mut room = Room::of(cluster, &free, movable);
    let mut seats = Seats::new(cluster, rules, sizes, free);
    let mut is_out = vec![false; cluster.jobs().len()];
    let mut seated = Vec::new();
    let mut rest = wishes.clone();
    for _ in 0..ROUNDS_MAX {
        let mut winners = count(cluster, &rest, &mut room, &mut is_out);
        seats.expect(&mut winners);
        let mut failed = Vec::new();
        for winner in &winners {
            match seats.seat(winner) {
                Some(one) => seated.push(one),
                None => failed.push((winner.job, winner.kind)),
            }
        }
        if failed.is_empty() {
            break;
        }
        for winner in winners
            .iter()
            .filter(|winner| failed.contains(&(winner.job, winner.kind)))
        {
            room.give_back(cluster, winner);
            is_out[winner.job.index()] = false;
        }
        rest.retain(|wish| !is_out[wish.job.index()] && !failed.contains(&(wish.job, wish.kind)));
    }
    hand_out(cluster, rules, &mut seats.into_left(), &mut seated);
    Plan {
        wishes,
        room,
        settled,
        seated,
    }
}
