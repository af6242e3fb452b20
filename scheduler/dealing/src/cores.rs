//! CPU and host memory of a deal: no job gets less than its part of a node unless it can use less, and what is left over goes to
//! those whose speed it raises most.
//!
//! A share that changes stops and restarts a job. So a job that keeps its seat keeps its share too where that is left over, and
//! gets a better one only when the present one has cost it what a restart costs.
//!
//! # Source
//! Synergy (OSDI'22): the demand of a class is the least CPU and memory with which it runs fastest (section 4.1), and no job
//! falls below the proportional share for the sake of another (TUNE). The order of handing out is ours.

use pleach_scheduler::cluster::{Cluster, JobState, Placement, Shape};
use pleach_scheduler::{GpuTypeId, JobId};

use super::rules::DealingRules;
use crate::profile::Profiles;
use crate::what_if::FreeResources;

/// A share that raises the speed by less is not handed out. *Assumed.*
const GAIN_MIN: f64 = 1.01;

/// What each GPU of a job comes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// Its due, or what it can use where that is less.
    pub(super) least: Shape,
    /// The least with which it runs fastest, no less than `least`.
    pub(super) best: Shape,
}

impl Demand {
    /// Just this.
    pub(super) fn fixed(shape: Shape) -> Demand {
        Demand {
            least: shape,
            best: shape,
        }
    }
}

/// The demands of all jobs.
#[derive(Debug)]
pub(super) struct Demands {
    profiles: Profiles,
}

impl Default for Demands {
    fn default() -> Demands {
        Demands {
            profiles: Profiles::new(0.0),
        }
    }
}

impl Demands {
    /// What a job wants on a type. Classes whose speed over CPU and memory is not known want what they ask for.
    pub(super) fn of(
        &mut self,
        cluster: &Cluster,
        rules: &DealingRules,
        id: JobId,
        kind: GpuTypeId,
    ) -> Demand {
        let job = cluster.job(id);
        let asked = cluster.shape(job.shape);
        if !rules.cores || cluster.class(job.request.class).sensitivity.is_none() {
            return Demand::fixed(asked);
        }
        let profile = self.profiles.of(cluster, id, kind);
        let shape = |[cpu_milli, memory_mib]: [f64; 2]| Shape {
            cpu_milli: cpu_milli as u32,
            memory_mib: memory_mib as u32,
            ..asked
        };
        let (best, due) = (shape(profile.best), shape(profile.fair));
        Demand {
            least: less(best, due),
            best,
        }
    }
}

/// The lesser of each input.
pub(super) fn less(one: Shape, other: Shape) -> Shape {
    Shape {
        cpu_milli: one.cpu_milli.min(other.cpu_milli),
        memory_mib: one.memory_mib.min(other.memory_mib),
        ..one
    }
}

fn minus(one: Shape, other: Shape) -> Shape {
    Shape {
        cpu_milli: one.cpu_milli.saturating_sub(other.cpu_milli),
        memory_mib: one.memory_mib.saturating_sub(other.memory_mib),
        ..one
    }
}

/// A job with its seat.
#[derive(Clone, Debug)]
pub(super) struct Seated {
    pub(super) job: JobId,
    pub(super) seat: Placement,
    pub(super) demand: Demand,
    /// What each of its GPUs comes with.
    pub(super) share: Shape,
}

impl Seated {
    fn keeps_seat(&self, cluster: &Cluster) -> bool {
        let job = cluster.job(self.job);
        job.state == JobState::Running && job.placement == self.seat
    }

    /// Whether it goes on without a restart.
    fn goes_on(&self, cluster: &Cluster) -> bool {
        self.keeps_seat(cluster) && cluster.shape(cluster.job(self.job).granted) == self.share
    }

    /// Its rate with another share over the rate with this one.
    fn gain(&self, cluster: &Cluster, share: Shape) -> f64 {
        let rate = |shape: Shape| cluster.facts_of(self.job, &self.seat, shape).rate;
        rate(share) / rate(self.share).max(f64::MIN_POSITIVE)
    }

    /// The best share that the seat's nodes have room for.
    fn in_reach(&self, free: &FreeResources) -> Shape {
        let room = free.room_beside(&self.seat);
        let most = Shape {
            cpu_milli: self.share.cpu_milli.saturating_add(room.cpu_milli),
            memory_mib: self.share.memory_mib.saturating_add(room.memory_mib),
            ..self.share
        };
        let best = less(self.demand.best, most);
        Shape {
            cpu_milli: best.cpu_milli.max(self.share.cpu_milli),
            memory_mib: best.memory_mib.max(self.share.memory_mib),
            ..best
        }
    }
}

/// Hands out what is left over.
pub(super) fn hand_out(
    cluster: &Cluster,
    rules: &DealingRules,
    free: &mut FreeResources,
    seated: &mut [Seated],
) {
    if !rules.cores {
        return;
    }
    for one in seated.iter_mut().filter(|one| one.keeps_seat(cluster)) {
        let present = cluster.shape(cluster.job(one.job).granted);
        let more = minus(present, one.share);
        if free.has_inputs(&one.seat, more) {
            free.take_inputs(&one.seat, more);
            one.share = present;
        }
    }
    let mut order: Vec<(f64, usize)> = Vec::new();
    for (at, one) in seated.iter().enumerate() {
        let gain = one.gain(cluster, one.demand.best);
        if one.share != one.demand.best && gain >= GAIN_MIN {
            let num_gpus: u32 = one.seat.iter().map(|slice| slice.num_gpus()).sum();
            let cost = part_of_nodes(cluster, &one.seat, minus(one.demand.best, one.share));
            order.push((f64::from(num_gpus) * (gain - 1.0) / cost.max(1e-9), at));
        }
    }
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, at) in order {
        let one = &mut seated[at];
        let share = one.in_reach(free);
        let gain = one.gain(cluster, share);
        let is_worth_it = if one.goes_on(cluster) {
            let ran_s = (cluster.now() - cluster.job(one.job).run_start).as_secs_f64();
            rules.reseat && ran_s * (gain - 1.0) >= rules.reseat_loss * cluster.restart_cost_s(one.job)
        } else {
            true
        };
        if gain >= GAIN_MIN && is_worth_it {
            free.take_inputs(&one.seat, minus(share, one.share));
            one.share = share;
        }
    }
}

/// What more for each GPU of a seat comes to in parts of its nodes: CPU and memory added up.
fn part_of_nodes(cluster: &Cluster, seat: &Placement, more: Shape) -> f64 {
    let parts = seat.iter().map(|slice| {
        let node = &cluster.nodes()[slice.node.index()];
        let part = |more: u32, all: u32| f64::from(more) / f64::from(all.max(1));
        let each = part(more.cpu_milli, node.cpu_milli) + part(more.memory_mib, node.memory_mib);
        each * f64::from(slice.num_gpus())
    });
    parts.sum()
}
