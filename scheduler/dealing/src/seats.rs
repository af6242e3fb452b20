//! Which GPUs the winners of a deal get: larger gangs first. A gang keeps its seat unless it is loose; else it gets a tight seat
//! that moves no gang, else a tight seat from which gangs move whose turn comes later, smaller ones or equal, else a loose one.
//!
//! A seat is *loose* where the gang runs slower than on the tightest placement that the cluster could offer. A running gang
//! leaves a loose seat only when what the seat has cost it so far comes to the cost of a restart.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Placement, Shape, Slice};
use pleach_scheduler::{GpuTypeId, JobId, NodeId};

use super::cores::{Seated, less};
use super::count::Wish;
use super::rules::DealingRules;
use super::sizes::Sizes;
use crate::what_if::FreeResources;

/// Locality factors above this are those of a tight seat: rounding.
const TIGHT: f64 = 1.0 - 1e-9;

/// Seats while they are given out.
pub(super) struct Seats<'a> {
    cluster: &'a Cluster,
    rules: &'a DealingRules,
    sizes: &'a Sizes,
    /// What no winner has been given yet.
    unseated: FreeResources,
    /// Of that, what no winner is expected to keep.
    open: FreeResources,
    /// Winners that run on the type that they won and have not been asked yet, with the share that they keep at least.
    keepers: BTreeMap<JobId, Shape>,
}

impl<'a> Seats<'a> {
    /// No winner is seated yet.
    pub(super) fn new(
        cluster: &'a Cluster,
        rules: &'a DealingRules,
        sizes: &'a Sizes,
        unseated: FreeResources,
    ) -> Seats<'a> {
        Seats {
            cluster,
            rules,
            sizes,
            open: unseated.clone(),
            unseated,
            keepers: BTreeMap::new(),
        }
    }

    /// What no winner was given.
    pub(super) fn into_left(self) -> FreeResources {
        self.unseated
    }

    /// The share that a running job keeps at least where it stays.
    fn kept_share(&self, wish: &Wish) -> Shape {
        let granted = self.cluster.shape(self.cluster.job(wish.job).granted);
        if self.rules.cores {
            less(wish.demand.least, granted)
        } else {
            granted
        }
    }

    /// Puts winners into the order in which they are seated, and notes which of them may keep their seats.
    pub(super) fn expect(&mut self, winners: &mut [Wish]) {
        let cluster = self.cluster;
        let keeps = |wish: &&Wish| {
            let job = cluster.job(wish.job);
            !job.placement.is_empty() && job.gpu_type == wish.kind && job.num_held == wish.num_gpus
        };
        let keepers = winners.iter().filter(keeps);
        self.keepers = keepers.map(|wish| (wish.job, self.kept_share(wish))).collect();
        // Equals stay in the order of their scores.
        winners.sort_by_key(|wish| (Reverse(wish.num_gpus), !self.keepers.contains_key(&wish.job)));
        self.open = self.unseated.clone();
        for (id, share) in &self.keepers {
            let job = cluster.job(*id);
            // Of two on the same GPUs one keeps them.
            if self.open.has(&job.placement, *share) {
                self.open.take(&job.placement, *share);
            }
        }
    }

    /// Seats a winner with the least that it is to have; none where CPU or host memory leave it no place.
    pub(super) fn seat(&mut self, wish: &Wish) -> Option<Seated> {
        let (cluster, id) = (self.cluster, wish.job);
        let job = cluster.job(id);
        let (num_gpus, shape) = (wish.num_gpus, wish.demand.least);
        let kept = self.keepers.get(&id).copied();
        let kept = kept.filter(|share| self.unseated.has(&job.placement, *share));
        if let Some(share) = kept.filter(|_| !self.may_leave(wish)) {
            return Some(self.take(wish, job.placement.clone(), share));
        }
        if self.keepers.remove(&id).is_some() {
            self.refresh(&job.placement);
        }
        let is_tight = |seat: &Placement| self.locality(wish, seat) >= TIGHT;
        let spare = self.best(&self.open, wish.kind, num_gpus, shape);
        let tight = self.well_fed(wish).filter(is_tight);
        let tight = tight.or_else(|| spare.clone().filter(is_tight));
        let tight = tight.or_else(|| {
            let over_others = self.rules.reseat && num_gpus > 1;
            let seat = over_others.then(|| self.best(&self.unseated, wish.kind, num_gpus, shape));
            seat.flatten().filter(is_tight)
        });
        if let (None, Some(share)) = (&tight, kept) {
            return Some(self.take(wish, job.placement.clone(), share));
        }
        let loose = || spare.or_else(|| self.best(&self.unseated, wish.kind, num_gpus, shape));
        let seat = tight.or_else(loose)?;
        Some(self.take(wish, seat, shape))
    }

    /// A seat in what is open with as much CPU and memory as the job can use, if it can use more than the least.
    fn well_fed(&self, wish: &Wish) -> Option<Placement> {
        let is_hungry = wish.demand.best != wish.demand.least;
        let best = is_hungry.then(|| self.best(&self.open, wish.kind, wish.num_gpus, wish.demand.best));
        best.flatten()
    }

    /// What a seat leaves of a gang's speed on the tightest one.
    fn locality(&self, wish: &Wish, seat: &Placement) -> f64 {
        let elastic = self.sizes.locality(wish.kind, wish.job, seat);
        elastic.unwrap_or_else(|| self.cluster.job_facts(wish.job, seat).locality)
    }

    /// Whether a running gang may leave its seat for a better one.
    fn may_leave(&self, wish: &Wish) -> bool {
        if !self.rules.reseat {
            return false;
        }
        let id = wish.job;
        let job = self.cluster.job(id);
        let locality = self.locality(wish, &job.placement);
        let ran_s = (self.cluster.now() - job.run_start).as_secs_f64();
        let lost_s = ran_s * (1.0 / locality - 1.0);
        locality < TIGHT && lost_s >= self.rules.reseat_loss * self.cluster.restart_cost_s(id)
    }

    /// Gives a seat away. Winners that were to keep a part of it look for another.
    fn take(&mut self, wish: &Wish, seat: Placement, share: Shape) -> Seated {
        self.unseated.take(&seat, share);
        self.keepers.remove(&wish.job);
        let mut moved: Vec<JobId> = Vec::new();
        for slice in &seat {
            let mut rest = slice.gpus;
            while rest != 0 {
                let gpu = rest.trailing_zeros();
                rest &= rest - 1;
                let there = self.cluster.residents(slice.node, gpu);
                moved.extend(there.into_iter().filter(|other| self.keepers.contains_key(other)));
            }
        }
        for other in moved {
            if self.keepers.remove(&other).is_some() {
                self.refresh(&self.cluster.job(other).placement);
            }
        }
        self.refresh(&seat);
        Seated {
            job: wish.job,
            seat,
            demand: wish.demand,
            share,
        }
    }

    /// Works out anew what is open on the nodes of a placement.
    fn refresh(&mut self, placement: &[Slice]) {
        for slice in placement {
            self.open.copy_node(slice.node, &self.unseated);
            let node = &self.cluster.nodes()[slice.node.index()];
            let residents = (0..node.num_gpus).flat_map(|gpu| self.cluster.residents(slice.node, gpu));
            let mut kept: Vec<JobId> = residents.filter(|id| self.keepers.contains_key(id)).collect();
            kept.sort_unstable();
            kept.dedup();
            for id in kept {
                let job = self.cluster.job(id);
                let parts = job.placement.iter().copied();
                let here: Vec<Slice> = parts.filter(|part| part.node == slice.node).collect();
                let share = self.keepers[&id];
                if self.open.has(&here, share) {
                    self.open.take(&here, share);
                }
            }
        }
    }

    /// The tightest seat in what is left, from which fewest GPUs of others move: one node, the fullest that will do; else the
    /// rack that needs fewest nodes; else the nodes with most room.
    fn best(&self, left: &FreeResources, kind: GpuTypeId, num_gpus: u32, shape: Shape) -> Option<Placement> {
        let cluster = self.cluster;
        let mut single: Option<(u32, u32, NodeId)> = None;
        let mut hosts: Vec<(u32, NodeId)> = Vec::new();
        let mut total = 0;
        for (index, node) in left.nodes().iter().enumerate() {
            if node.gpu_type != kind || node.free == 0 {
                continue;
            }
            let id = NodeId(index as u32);
            let num = left.hosts(id, shape);
            if num == 0 {
                continue;
            }
            total += num;
            hosts.push((num, id));
            if num >= num_gpus {
                let moved = num_gpus.saturating_sub(self.open.hosts(id, shape));
                let key = (moved, num, id);
                if single.is_none_or(|best| key < best) {
                    single = Some(key);
                }
            }
        }
        if let Some((_, _, node)) = single {
            return Some(Placement::from_slice(&[self.pick(left, node, num_gpus)]));
        }
        if total < num_gpus {
            return None;
        }
        if cluster.capabilities().consolidated && shape.tasks.is_any() {
            let chosen = whole_nodes(&hosts, cluster.node_gpus_max_of(kind), num_gpus)?;
            let slices = chosen.into_iter().map(|(num, node)| self.pick(left, node, num));
            return Some(slices.collect());
        }
        let racks = hosts.chunk_by(|a, b| rack_of(cluster, a.1) == rack_of(cluster, b.1));
        let rooms = racks.map(|rack| (rack, rack.iter().map(|(num, _)| num).sum::<u32>()));
        let whole = rooms.filter(|(_, room)| *room >= num_gpus);
        // The first of equals.
        let best = whole
            .map(|(rack, room)| (fewest(rack, num_gpus), room))
            .filter(|(chosen, _)| chosen.len() <= shape.tasks.most_nodes())
            .min_by_key(|(chosen, room)| (chosen.len(), *room));
        let chosen = best.map_or_else(|| fewest(&hosts, num_gpus), |(chosen, _)| chosen);
        if chosen.len() > shape.tasks.most_nodes() {
            return None;
        }
        let slices = chosen.into_iter().map(|(num, node)| self.pick(left, node, num));
        Some(slices.collect())
    }

    /// GPUs of a node: those that no winner keeps first, the lowest first.
    fn pick(&self, left: &FreeResources, node: NodeId, num: u32) -> Slice {
        let open = self.open.nodes()[node.index()].free & left.nodes()[node.index()].free;
        let first = lowest(open, num);
        let others = left.nodes()[node.index()].free & !open;
        let gpus = first | lowest(others, num - first.count_ones());
        Slice { node, gpus }
    }
}

fn rack_of(cluster: &Cluster, node: NodeId) -> usize {
    cluster.nodes()[node.index()].rack.index()
}

/// Fewest nodes that hold a gang, and how many GPUs it takes of each: those with most room, and for the rest the one that
/// it fills best. They have enough room together.
fn fewest(hosts: &[(u32, NodeId)], num_gpus: u32) -> Vec<(u32, NodeId)> {
    let mut order = hosts.to_vec();
    order.sort_unstable_by_key(|(num, node)| (Reverse(*num), *node));
    let (mut rest, mut chosen) = (num_gpus, Vec::new());
    for (at, (num, node)) in order.iter().enumerate() {
        if *num >= rest {
            let last = order[at..].iter().filter(|(num, _)| *num >= rest);
            let last = last.min_by_key(|(num, node)| (*num, *node));
            chosen.push((rest, last.map_or(*node, |(_, node)| *node)));
            break;
        }
        chosen.push((*num, *node));
        rest -= num;
    }
    chosen
}

/// Whole nodes, which have `size` GPUs each, and one node for the rest: the fullest that holds it. None where they are not there.
fn whole_nodes(hosts: &[(u32, NodeId)], size: u32, num_gpus: u32) -> Option<Vec<(u32, NodeId)>> {
    let (num_whole, rest) = ((num_gpus / size) as usize, num_gpus % size);
    let whole = hosts.iter().filter(|(num, _)| *num == size);
    let mut chosen: Vec<(u32, NodeId)> = whole.take(num_whole).copied().collect();
    if rest > 0 {
        let others = hosts
            .iter()
            .filter(|(num, node)| *num >= rest && chosen.iter().all(|(_, other)| other != node));
        let (_, node) = others.min()?;
        chosen.push((rest, *node));
    }
    (chosen.len() == num_whole + usize::from(rest > 0)).then_some(chosen)
}

/// The lowest `num` set bits of a mask, or all of them.
fn lowest(mask: u64, num: u32) -> u64 {
    let mut rest = mask;
    for _ in 0..num {
        rest &= rest.wrapping_sub(1);
    }
    mask & !rest
}
