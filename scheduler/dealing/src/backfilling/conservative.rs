//! Conservative backfilling: every waiting job has a reservation, and no job starts that would move one back.
//!
//! A job that comes gets the first slot in which its gang is believed to be free for as long as it is believed to run,
//! around the slots of all others. When a job leaves early, slots are moved forward in their order, each only into what is
//! free beside all others. A job starts when its slot begins. So with estimates that are exact, on a cluster where a gang
//! runs equally fast wherever it is put, no job starts later than it was first promised, nor later than under FIFO.
//!
//! # Source
//! Mu'alem and Feitelson (TPDS'01), section 2.2; compression as there.
//!
//! # Deviations
//! - Slots are counted in GPUs by type (and quota, where borrowing is off). CPU, memory and fractions may still keep a job
//!   from starting when its slot begins; it then holds its slot and tries again at every event.
//! - Of several GPU types a job takes the one with the earliest start; of those the fastest.
//! - Where jobs outlive their estimates, or nodes leave, slots that are no longer free are moved back, in their order.
//! - A cluster that stands idle although a job could run starts the oldest job that fits, whatever the slots say.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Placement, Slice, Template};
use pleach_scheduler::{ConfigError, GpuTypeId, JobId, NodeId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::calendar::{Ask, Calendar, Slot};
use crate::starts::tightest;

/// Settings of [`Conservative`]: it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConservativeConfig {}

/// A waiting job and its slot.
#[derive(Clone, Debug)]
struct Reservation {
    ask: Ask,
    /// How long it is believed to run on each type on which it can, fastest first.
    lengths: Vec<(GpuTypeId, Time)>,
    /// None while no type will ever have room, because nodes are away.
    slot: Option<Slot>,
}

impl Reservation {
    fn of(cluster: &Cluster, id: JobId) -> Reservation {
        let request = &cluster.job(id).request;
        let milli = u64::from(request.num_gpus) * u64::from(request.resources.gpu_milli);
        let mut lengths: Vec<(GpuTypeId, Time)> = cluster
            .types_in(cluster.job(id).types)
            .map(|kind| (kind, believed_length(cluster, id, kind)))
            .collect();
        lengths.sort_by_key(|(_, length)| *length);
        Reservation {
            ask: Ask {
                tenant: request.tenant,
                milli,
            },
            lengths,
            slot: None,
        }
    }

    /// The earliest slot; of equally early ones the fastest type.
    fn earliest(&self, calendar: &Calendar) -> Option<Slot> {
        let slots = self
            .lengths
            .iter()
            .filter_map(|(kind, length)| calendar.earliest(self.ask, *kind, *length));
        slots.min_by_key(|slot| slot.start)
    }
}

/// How long a job would run on a type at its tightest, with what it pays to start.
fn believed_length(cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Time {
    let job = cluster.job(id);
    let nodes = cluster.nodes().iter().enumerate();
    let mut largest: Vec<(u32, NodeId)> = nodes
        .filter(|(_, node)| node.gpu_type == kind)
        .map(|(number, node)| (node.num_gpus, NodeId(number as u32)))
        .collect();
    largest.sort_by_key(|(num_gpus, _)| std::cmp::Reverse(*num_gpus));
    let (mut placement, mut rest) = (Placement::new(), job.request.num_gpus);
    for (num_gpus, node) in largest {
        let take = rest.min(num_gpus);
        if take == 0 {
            break;
        }
        let gpus = u64::MAX >> (64 - take);
        placement.push(Slice { node, gpus });
        rest -= take;
    }
    let rate = cluster.job_facts(id, &placement).rate.max(1e-9);
    let rest_s = job.remaining_s_at(cluster.now()) / rate;
    Time::from_secs_f64((cluster.start_cost_s(id, kind) + rest_s).min(1e11))
}

/// The planner.
#[derive(Clone, Debug, Default)]
pub struct Conservative {
    reservations: BTreeMap<JobId, Reservation>,
    /// When each job was first promised to start. `[job]`
    promises: Vec<Option<Time>>,
    /// Running jobs, free and withheld GPUs as the last plan left them.
    left_at: (usize, u32, u32),
}

impl Conservative {
    /// # Errors
    /// None at present: there is nothing to set.
    pub fn new(_config: ConservativeConfig) -> Result<Conservative, ConfigError> {
        Ok(Conservative::default())
    }

    /// When a job was first promised to start; none before it came, or where nothing could be promised.
    #[must_use]
    pub fn first_promise(&self, id: JobId) -> Option<Time> {
        self.promises.get(id.index()).copied().flatten()
    }

    /// The reserved jobs, by the start of their slots.
    fn in_order(&self) -> Vec<(Time, JobId)> {
        let reserved = self.reservations.iter();
        let mut order: Vec<(Time, JobId)> = reserved
            .filter_map(|(id, reservation)| Some((reservation.slot?.start, *id)))
            .collect();
        order.sort_unstable();
        order
    }

    /// Draws the slots on the calendar, as they were where they are still free, else as early as can be.
    fn keep(&mut self, calendar: &mut Calendar, now: Time) {
        for (_, id) in self.in_order() {
            let Some(reservation) = self.reservations.get_mut(&id) else {
                continue;
            };
            let as_it_was = reservation.slot.map(|slot| Slot {
                start: slot.start.max(now),
                ..slot
            });
            let ask = reservation.ask;
            reservation.slot = as_it_was
                .filter(|slot| calendar.is_clear(ask, *slot))
                .or_else(|| reservation.earliest(calendar));
            if let Some(slot) = reservation.slot {
                calendar.take(ask, slot);
            }
        }
    }

    /// Moves slots forward, in their order.
    fn compress(&mut self, calendar: &mut Calendar) {
        for (_, id) in self.in_order() {
            let Some(reservation) = self.reservations.get_mut(&id) else {
                continue;
            };
            let (ask, Some(before)) = (reservation.ask, reservation.slot) else {
                continue;
            };
            calendar.give_back(ask, before);
            let earlier = reservation
                .earliest(calendar)
                .filter(|slot| slot.start < before.start);
            let slot = earlier.unwrap_or(before);
            calendar.take(ask, slot);
            reservation.slot = Some(slot);
        }
    }

    /// Gives slots to those that have none, by arrival.
    fn admit(&mut self, cluster: &Cluster, calendar: &mut Calendar) {
        self.promises.resize(cluster.jobs().len(), None);
        for (id, reservation) in &mut self.reservations {
            if reservation.slot.is_some() {
                continue;
            }
            reservation.slot = reservation.earliest(calendar);
            if let Some(slot) = reservation.slot {
                calendar.take(reservation.ask, slot);
                self.promises[id.index()].get_or_insert(slot.start);
            }
        }
    }

    /// Starts jobs whose slot has begun. Returns whether any started.
    fn start_due(&mut self, cluster: &mut Cluster) -> bool {
        let now = cluster.now();
        let (mut started, mut slices) = (false, Vec::new());
        for (start, id) in self.in_order() {
            if start > now {
                break;
            }
            let Some(slot) = self
                .reservations
                .get(&id)
                .and_then(|reservation| reservation.slot)
            else {
                continue;
            };
            let demand = cluster.demand(id);
            slices.clear();
            if cluster.has_room(demand)
                && cluster.fits_on(slot.kind, demand)
                && cluster.place_job(Template::Fastest, slot.kind, id, &mut slices)
            {
                cluster.start(id, Placement::from_slice(&slices));
                self.reservations.remove(&id);
                started = true;
            }
        }
        started
    }
}

impl Planner for Conservative {
    fn name(&self) -> &str {
        "conservative"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let state = |cluster: &Cluster| (cluster.num_running(), cluster.num_free(), cluster.num_withheld());
        let mut reservations = std::mem::take(&mut self.reservations);
        for id in cluster.pending() {
            let known = reservations.remove(&id);
            let reservation = known.unwrap_or_else(|| Reservation::of(cluster, id));
            self.reservations.insert(id, reservation);
        }
        if self.reservations.is_empty() {
            self.left_at = state(cluster);
            return Ok(());
        }
        let mut calendar = Calendar::of(cluster);
        self.keep(&mut calendar, cluster.now());
        if state(cluster) != self.left_at {
            self.compress(&mut calendar);
        }
        self.admit(cluster, &mut calendar);
        if !self.start_due(cluster) && cluster.num_running() == 0 {
            let mut slices = Vec::new();
            let waiting: Vec<JobId> = self.reservations.keys().copied().collect();
            for id in waiting {
                if let Some(placement) = tightest(cluster, id, &mut slices) {
                    cluster.start(id, placement);
                    self.reservations.remove(&id);
                    break;
                }
            }
        }
        self.left_at = state(cluster);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{preemptive_cluster, running, submit};

    fn at(planner: &mut Conservative, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        cluster.check();
        running(cluster)
    }

    fn promise_s(planner: &Conservative, id: u32) -> f64 {
        planner.first_promise(JobId(id)).unwrap().as_secs_f64()
    }

    #[test]
    fn a_job_may_go_ahead_only_if_it_delays_no_reservation_not_just_the_first() {
        // 4 GPUs. Job 0: 3 GPUs until 100 s. Job 1: 4 GPUs, slot 100-200 s. Job 2: 2 GPUs for 50 s, slot 200 s. Job 3: 1 GPU
        // for 250 s: EASY's only reservation, that of job 1, would stop it too; for 100 s it fits before job 1.
        let mut cluster = preemptive_cluster(1, 4);
        let mut planner = Conservative::default();
        for (num_gpus, run_s) in [(3, 100.0), (4, 100.0), (2, 50.0), (1, 250.0), (1, 100.0)] {
            submit(&mut cluster, num_gpus, run_s);
        }
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 4]);
        let promises = [0, 1, 2, 3, 4].map(|id| promise_s(&planner, id));
        assert_eq!(promises, [0.0, 100.0, 200.0, 200.0, 0.0]);
    }

    #[test]
    fn what_easy_lets_through_is_stopped_here_if_it_delays_the_second_in_line() {
        // 4 GPUs. Job 0: 2 GPUs until 100 s. Job 1: 3 GPUs, slot 100-200 s (one extra GPU). Job 2: 2 GPUs for 100 s: 0-100 s?
        // Two are free: it starts. Job 3: 4 GPUs, slot 200 s. Job 4: 1 GPU for 300 s from 100 s on: EASY would start it beside
        // job 1, in its extra GPU, when job 2 has ended; here it would delay job 3.
        let mut cluster = preemptive_cluster(1, 4);
        let mut planner = Conservative::default();
        for (num_gpus, run_s) in [(2, 100.0), (3, 100.0), (2, 100.0), (4, 100.0), (1, 300.0)] {
            submit(&mut cluster, num_gpus, run_s);
        }
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 2]);
        assert_eq!(promise_s(&planner, 4), 300.0);
        cluster.advance(Time::from_secs_f64(100.0));
        cluster.finish(JobId(0));
        cluster.finish(JobId(2));
        assert_eq!(at(&mut planner, &mut cluster, 100.0), [1]);
    }

    #[test]
    fn when_a_job_leaves_early_slots_move_forward_in_their_order() {
        // Job 0 holds all until 100 s; jobs 1 and 2 (4 GPUs, 50 s each) have slots at 100 s and 150 s. Job 0 ends at 40 s.
        let mut cluster = preemptive_cluster(1, 4);
        let mut planner = Conservative::default();
        for run_s in [100.0, 50.0, 50.0] {
            submit(&mut cluster, 4, run_s);
        }
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
        cluster.advance(Time::from_secs_f64(40.0));
        cluster.finish(JobId(0));
        assert_eq!(at(&mut planner, &mut cluster, 40.0), [1]);
        let slot = planner.reservations[&JobId(2)].slot.unwrap();
        assert_eq!(slot.start, Time::from_secs_f64(90.0));
        // The promise that counts is the first.
        assert_eq!(promise_s(&planner, 2), 150.0);
    }

    #[test]
    fn a_job_that_outlives_its_estimate_moves_slots_back_and_nobody_is_lost() {
        let mut cluster = preemptive_cluster(1, 4);
        let mut planner = Conservative::default();
        submit(&mut cluster, 4, 100.0);
        submit(&mut cluster, 4, 50.0);
        at(&mut planner, &mut cluster, 0.0);
        submit(&mut cluster, 1, 10.0);
        assert_eq!(at(&mut planner, &mut cluster, 120.0), [0]);
        assert_eq!(planner.wake_at(&cluster), None);
        cluster.advance(Time::from_secs_f64(130.0));
        cluster.finish(JobId(0));
        assert_eq!(at(&mut planner, &mut cluster, 130.0), [1]);
    }
}
