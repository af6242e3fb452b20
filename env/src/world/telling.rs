//! The accounts that a world keeps on request, and what it reports to them. An account that was not requested costs only the
//! check whether it was.

use pleach_scheduler::JobId;
use pleach_scheduler::cluster::JobState;
use pleach_scheduler::decision::Decision;
use pleach_tables::schedule::{Ended, Segment};

use super::{TenantIntegrals, World};
use crate::occupancy::Occupancy;
use crate::segments::Segments;

impl World {
    /// Records the number of held GPUs whenever it changes.
    pub fn record_utilisation(&mut self) {
        self.utilisation = Some(Vec::new());
    }

    /// Keeps time integrals of each tenant; call it before the first event.
    pub fn record_tenants(&mut self) {
        let num_tenants = self.cluster.tenants().len();
        self.by_tenant = Some(Box::new(TenantIntegrals::zeros(num_tenants)));
    }

    /// Divides waiting time into causes; call it before the first event.
    pub fn record_waits(&mut self) {
        self.attribution = Some(Box::default());
    }

    /// Records how spread out gangs run and how many nodes stand empty; call it before the first event.
    pub fn record_occupancy(&mut self) {
        self.occupancy = Some(Box::new(Occupancy::new(&self.cluster)));
    }

    /// Records which job runs where and when; call it before the first event.
    pub fn record_segments(&mut self) {
        self.segments = Some(Box::new(Segments::new(self.truth.len())));
    }

    /// Takes the segments up to now: none unless [`World::record_segments`] was called. A job that runs has one that ends with the
    /// record.
    pub fn take_segments(&mut self) -> Vec<Segment> {
        if self.segments.is_some() {
            for index in 0..self.cluster.jobs().len() {
                if self.cluster.jobs()[index].state == JobState::Running {
                    self.book(JobId(index as u32));
                }
            }
        }
        self.segments
            .take()
            .map(|account| account.take())
            .unwrap_or_default()
    }

    /// Books what a job paid and did at the present rate, and tells it.
    #[inline]
    pub(super) fn book(&mut self, id: JobId) {
        let (now, truth) = (self.cluster.now(), &mut self.truth[id.index()]);
        if let Some(account) = &mut self.segments {
            let before = *truth;
            truth.book(now);
            let ran_s = (now - before.since).as_secs_f64() - before.cost_left_s;
            // What a lease did is settled by its terms and not by the rate alone.
            let rate = match &self.rounds {
                Some(_) if ran_s > 0.0 => (before.rest_s - truth.rest_s) / ran_s,
                _ => before.rate,
            };
            account.ran(now, id, before.cost_left_s, rate);
        } else {
            truth.book(now);
        }
    }

    /// The work of a lease is credited.
    pub(super) fn told_lease(&mut self, id: JobId, work_s: f64) {
        if let Some(account) = &mut self.segments {
            let (now, truth) = (self.cluster.now(), &self.truth[id.index()]);
            let ran_s = (now - truth.since).as_secs_f64() - truth.cost_left_s;
            let rate = if ran_s > 0.0 { work_s / ran_s } else { 0.0 };
            account.ran(now, id, truth.cost_left_s, rate);
        }
    }

    /// A job has got GPUs.
    pub(super) fn told_began(&mut self, decision: &Decision) {
        if let Some(account) = &mut self.segments {
            let is_forked = self.cluster.job(decision.row).is_forked;
            account.began(self.cluster.now(), decision, is_forked);
        }
    }

    /// A job has given its GPUs back, which added so much to what it has to do. One that had left before that was seen has nothing
    /// more to do.
    pub(super) fn told_ended(&mut self, id: JobId, ended: Ended, lost_s: f64) {
        if let Some(account) = &mut self.segments {
            let truth = &self.truth[id.index()];
            match truth.unseen {
                Some(end) if end.leaves => account.ended(id, truth.ended(), 0.0),
                _ => account.ended(id, ended, lost_s),
            }
        }
    }
}
