//! A service on leases: its replicas, whose GPUs they are, and when it acts next.

use pleach_scheduler::cluster::Submission;
use pleach_scheduler::cluster_spec::{Resources, Tasks};
use pleach_scheduler::{ClassId, Estimate, JobId, Problem, Provenance, TenantId, Time};
use pleach_serving::llm::{Autoscaler, Beside, Demand, Service, Yield, ps_of_s};

use super::service::{Grant, ServiceResult, ServiceSpec};
use crate::world::World;

/// An autoscaler sees at most so many jobs that would yield. *Assumed.*
const YIELDS_MAX: usize = 4;
/// Picoseconds of a microsecond.
const PS: u64 = 1_000_000;

fn ps_of(time: Time) -> u64 {
    time.0 as u64 * PS
}

/// A service and its leases.
pub(super) struct Leased<'a> {
    service: Service<'a>,
    autoscaler: &'a mut dyn Autoscaler,
    usual_per_s: &'a [f64],
    most: usize,
    load: Time,
    grace_ps: u64,
    /// What a replica asks of the cluster.
    request: Submission,
    /// The replica in each seat: its row in the cluster and its place among the grants.
    seats: Vec<Option<(JobId, usize)>>,
    grants: Vec<Grant>,
    /// When replicas that were taken back leave, and their seats.
    leaving: Vec<(Time, usize)>,
    next_tick: Option<Time>,
    num_preemptions: u64,
}

impl<'a> Leased<'a> {
    pub(super) fn new(
        spec: ServiceSpec<'a>,
        tenant: TenantId,
        class: ClassId,
    ) -> Result<Leased<'a>, Problem> {
        let request = Submission {
            tenant,
            class,
            num_gpus: u32::from(spec.replica_gpus),
            estimate_s: Estimate {
                value: 1.0,
                provenance: Provenance::Oracle,
            },
            resources: Resources {
                tasks: Tasks::of(spec.replica_gpus),
                ..Resources::default()
            },
        };
        let mut service = Service::new(spec.requests, spec.fleet, spec.router)?;
        if spec.record_routes {
            service.record_routes();
        }
        Ok(Leased {
            service,
            usual_per_s: spec.usual_per_s,
            most: spec.fleet.num_replicas,
            load: Time::from_secs_f64(spec.load_s),
            grace_ps: ps_of_s(spec.grace_s),
            request,
            seats: vec![None; spec.fleet.num_replicas],
            grants: Vec::new(),
            leaving: Vec::new(),
            next_tick: spec.autoscaler.period_s().map(Time::from_secs_f64),
            autoscaler: spec.autoscaler,
            num_preemptions: 0,
        })
    }

    /// When it acts next; none: never.
    pub(super) fn next(&self) -> Option<Time> {
        let leaving = self.leaving.iter().map(|(time, _)| *time);
        leaving.chain(self.next_tick).min()
    }

    /// Whether all requests have come.
    pub(super) fn is_through(&self) -> bool {
        self.service.to_come().is_empty()
    }

    /// Does what is due now; true where a lease began or ended.
    pub(super) fn serve(&mut self, world: &mut World, is_begin: bool) -> Result<bool, Problem> {
        let now = world.cluster().now();
        let is_due = self.next().is_some_and(|next| next <= now);
        if !is_begin && !is_due {
            return Ok(false);
        }
        self.service.play(ps_of(now))?;
        let mut has_changed = self.let_leave(world, now)?;
        let is_tick = self.next_tick.is_some_and(|tick| tick <= now);
        if is_begin || is_tick {
            has_changed |= self.scale(world, now, is_begin)?;
        }
        if let (Some(tick), Some(period_s)) = (self.next_tick.filter(|_| is_tick), self.autoscaler.period_s())
        {
            self.next_tick = Some(tick + Time::from_secs_f64(period_s));
        }
        Ok(has_changed)
    }

    /// Replicas that were taken back and are through give their GPUs back.
    fn let_leave(&mut self, world: &mut World, now: Time) -> Result<bool, Problem> {
        let mut due: Vec<(Time, usize)> = self
            .leaving
            .iter()
            .copied()
            .filter(|(time, _)| *time <= now)
            .collect();
        self.leaving.retain(|(time, _)| *time > now);
        due.sort_unstable();
        for (_, seat) in &due {
            self.service.release(*seat, ps_of(now))?;
            let (lease, grant) = self.seats[*seat].take().expect("somebody is there to leave");
            world.end_lease(lease);
            self.grants[grant].ended = Some(now);
        }
        Ok(!due.is_empty())
    }

    /// Asks how many replicas there should be, and makes it so.
    fn scale(&mut self, world: &mut World, now: Time, is_begin: bool) -> Result<bool, Problem> {
        let (cluster, gpus) = (world.cluster(), self.request.num_gpus);
        let nodes = cluster.nodes().iter();
        let first = cluster.yielding(&|_| true).into_iter().take(YIELDS_MAX);
        let yields: Vec<Yield> = first
            .map(|job| Yield {
                gpus: cluster.job(job.id).num_held as usize,
                loss_gpu_s: job.loss_gpu_s,
            })
            .collect();
        let waiting_gpus = cluster.pending().map(|id| cluster.job(id).request.num_gpus).min();
        let demand = Demand {
            now_s: now.as_secs_f64(),
            load: self.service.load(ps_of(now)),
            most: self.most,
            replica_gpus: gpus as usize,
            node_replicas: nodes.map(|node| node.num_gpus / gpus).max().unwrap_or(1).max(1) as usize,
            usual_per_s: self.usual_per_s,
            beside: Beside {
                training_gpus: world.training_gpus() as usize,
                idle_gpus: cluster.num_free() as usize,
                waiting_gpus: waiting_gpus.unwrap_or(0) as usize,
                yields: &yields,
            },
            to_come: self.service.to_come(),
        };
        let wanted = self.autoscaler.want(&demand)?.min(self.most);
        let mut has_changed = false;
        for _ in demand.up()..wanted {
            let Some(changed) = self.one_more(world, now, is_begin)? else {
                break;
            };
            has_changed |= changed;
        }
        for _ in wanted..demand.up() {
            self.one_less(now);
        }
        // A replica that has nothing to do leaves at once.
        Ok(has_changed | self.let_leave(world, now)?)
    }

    /// One that was to leave is kept, or GPUs are leased, which is a change; none where there are none to be had.
    fn one_more(&mut self, world: &mut World, now: Time, is_begin: bool) -> Result<Option<bool>, Problem> {
        if let Some(seat) = self.service.last_to_leave() {
            self.service.keep(seat);
            self.leaving.retain(|(_, other)| *other != seat);
            if let Some((_, grant)) = self.seats[seat] {
                self.grants[grant].reclaimed = None;
            }
            return Ok(Some(false));
        }
        let Some(seat) = self.service.free_seat() else {
            return Ok(None);
        };
        let demand = world.cluster_mut().demand_of(&self.request)?;
        let Some(room) = world.cluster_mut().make_room(demand, &|_| true) else {
            return Ok(None);
        };
        self.num_preemptions += room.stopped.len() as u64;
        let lease = world.grant(self.request, room.placement)?;
        let ready = if is_begin { now } else { now + self.load };
        self.service.grant(seat, ps_of(ready));
        self.seats[seat] = Some((lease, self.grants.len()));
        self.grants.push(Grant {
            seat,
            granted: now,
            ready,
            reclaimed: None,
            ended: None,
        });
        Ok(Some(true))
    }

    /// The one that has least to do is taken back.
    fn one_less(&mut self, now: Time) {
        let Some(seat) = self.service.least_busy(ps_of(now)) else {
            return;
        };
        let until_ps = self.service.reclaim(seat, ps_of(now), self.grace_ps);
        self.leaving.push((Time(until_ps.div_ceil(PS) as i64), seat));
        if let Some((_, grant)) = self.seats[seat] {
            self.grants[grant].reclaimed = Some(now);
        }
    }

    /// Requests under way are served to their end.
    pub(super) fn finish(mut self, end: Time) -> Result<ServiceResult, Problem> {
        // Routes of what comes by the end are those of the leases up to then.
        self.service.play(ps_of(end))?;
        let held_s = |grant: &Grant| (grant.ended.unwrap_or(end) - grant.granted).as_secs_f64();
        Ok(ServiceResult {
            num_returned: self.service.num_returned(),
            routes: self.service.take_routes(),
            leased_gpu_s: f64::from(self.request.num_gpus) * self.grants.iter().map(held_s).sum::<f64>(),
            num_preemptions: self.num_preemptions,
            grants: self.grants,
            outcome: self.service.finish()?,
        })
    }
}
