//! The simulated world: a scheduler's cluster plus the hidden truth, driven event by event.
//!
//! Events are ordered by (time, kind, id): at one instant jobs finish first, then nodes change their state, then jobs
//! arrive, then the scheduler decides. Between events every running job progresses at a constant rate, so an event costs
//! O(log n) in jobs and nothing in the size of the cluster. The scheduler sees only [`Cluster`]; true work lives here and
//! cannot leak.

mod batch;
mod credit;
mod delays;
mod ending;
mod failing;
mod failure_bound;
mod human;
mod incidents;
mod integrals;
mod kept;
mod kept_places;
mod leases;
mod meeting;
mod results;
mod round_clock;
mod rounds;
mod store;
mod telling;
mod tenants;
mod training;
mod true_pace;
mod truth;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pleach_scheduler::cluster::{Capabilities, Cluster, JobState, Placement, Submission};
use pleach_scheduler::cluster_spec::ModelClass;
use pleach_scheduler::decision::{Action, Decision};
use pleach_scheduler::{ClassId, Estimate, JobId, Problem, TenantId, Time};

use crate::attribution::Attribution;
use crate::availability::Availability;
use crate::beliefs::Truths;
use crate::metrics::JobOutcome;
use crate::occupancy::Occupancy;
use crate::segments::Segments;
use crate::site_failures::SiteFailures;
use pleach_tables::schedule::Ended;
use pleach_workloads::{Seed, Workload};

use truth::Truth;

pub use integrals::Integrals;
pub use rounds::{LeaseOutcome, LeaseTerms, RoundClock, RoundEnd, Seen};
pub use tenants::TenantIntegrals;
pub use training::Training;

/// What the next instant brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Something happened: the scheduler may decide.
    Event,
    /// Nothing will ever happen again.
    End,
}

/// The events and the truth of one run.
#[derive(Clone, Debug)]
pub struct World {
    cluster: Cluster,
    truth: Vec<Truth>,
    next_arrival: usize,
    /// (finish, job, run)
    finishes: BinaryHeap<Reverse<(Time, JobId, u32)>>,
    tick: Option<Time>,
    wake: Option<Time>,
    capacity: Availability,
    kept: kept::KeptPlaces,
    /// Seed of what only the truth knows: how long a restart takes where that is random.
    seed: Seed,
    /// Seed of the times to failure.
    outcome_seed: Seed,
    /// What is true where the scheduler's beliefs are not exact.
    truths: Option<Box<Truths>>,
    store: store::Store,
    /// Incidents beside the failures of nodes, and their seed.
    site: Option<SiteFailures>,
    incident_seed: Seed,
    /// Jobs that wait for a human, and when each has been looked after.
    held: BinaryHeap<Reverse<(Time, JobId)>>,
    decisions: Vec<Decision>,
    /// Jobs that an event touches beside its own; kept for its memory.
    touched: Vec<JobId>,
    outcomes: Vec<Option<JobOutcome>>,
    /// Jobs that have left and are seen to have left.
    num_finished: usize,
    /// Jobs that have left.
    num_left: usize,
    weight_in_system: f64,
    /// Isolated run times of the jobs that have left, s.
    best_left_s: f64,
    integrals: Integrals,
    by_tenant: Option<Box<TenantIntegrals>>,
    utilisation: Option<Vec<(f64, f64)>>,
    /// The clock of a scheduler that decides in rounds.
    rounds: Option<round_clock::Rounds>,
    /// The batch system between decisions and what comes of them.
    batch: Option<Box<delays::Batch>>,
    attribution: Option<Box<Attribution>>,
    occupancy: Option<Box<Occupancy>>,
    segments: Option<Box<Segments>>,
    /// Rows that are no jobs, where GPUs are leased.
    leases: Option<Box<training::Leases>>,
}

/// Finish events beyond which those of ended runs are thrown out: a few for each running job, so that a scheduler which
/// stops jobs all the time neither fills the memory nor pays much for the cleaning.
fn num_finishes_max(num_running: usize) -> usize {
    64 + 3 * num_running
}

impl World {
    /// A world at time zero. `estimates[i]` is what the scheduler knows of the length of job i.
    ///
    /// # Errors
    /// Where the cluster or a job cannot be.
    ///
    /// # Panics
    /// If there is not one estimate per job.
    pub fn new(
        workload: &Workload,
        capabilities: Capabilities,
        estimates: &[Estimate],
    ) -> Result<World, Problem> {
        World::of(workload, &workload.classes, capabilities, estimates)
    }

    /// The same where the scheduler believes the classes to be others.
    fn of(
        workload: &Workload,
        believed: &[ModelClass],
        capabilities: Capabilities,
        estimates: &[Estimate],
    ) -> Result<World, Problem> {
        assert_eq!(workload.jobs.len(), estimates.len(), "one estimate per job");
        let cluster = Cluster::new(&workload.cluster, believed, capabilities)?;
        let truth: Vec<Truth> = workload
            .jobs
            .iter()
            .zip(estimates)
            .map(|(job, estimate)| {
                let speed = &workload.classes[usize::from(job.class)].speed;
                let best = speed.iter().copied().fold(0.0, f64::max);
                let submission = Submission {
                    tenant: TenantId(job.tenant),
                    class: ClassId(job.class),
                    num_gpus: job.num_gpus,
                    estimate_s: *estimate,
                    resources: job.resources,
                };
                Truth {
                    outcome: job.outcome,
                    ..Truth::of(job.submit, submission, job.run_time_s, job.run_time_s / best)
                }
            })
            .collect();
        if capabilities.consolidated {
            // The other limits were checked when the workload was.
            check_consolidated(&cluster, &truth)?;
        }
        Ok(World {
            cluster,
            next_arrival: 0,
            finishes: BinaryHeap::new(),
            tick: None,
            wake: None,
            capacity: Availability::default(),
            kept: kept::KeptPlaces::default(),
            seed: Seed(0),
            outcome_seed: Seed(0),
            truths: None,
            store: store::Store::default(),
            site: None,
            incident_seed: Seed(0),
            held: BinaryHeap::new(),
            decisions: Vec::new(),
            touched: Vec::new(),
            outcomes: vec![None; truth.len()],
            num_finished: 0,
            num_left: 0,
            weight_in_system: 0.0,
            best_left_s: 0.0,
            integrals: Integrals::default(),
            by_tenant: None,
            utilisation: None,
            rounds: None,
            batch: None,
            attribution: None,
            occupancy: None,
            segments: None,
            leases: None,
            truth,
        })
    }

    /// Makes room for everything that is to come, so that neither events nor decisions about whole GPUs allocate.
    pub fn reserve(&mut self) {
        let requests = self.truth.iter().map(|truth| &truth.submission);
        self.cluster.reserve(requests);
        let num_running = self.truth.len().min(self.cluster.num_gpus() as usize);
        self.decisions.reserve(num_running + 2);
        self.finishes.reserve(num_finishes_max(num_running) + 1);
    }

    /// Puts the finish of a job's present run on the list.
    fn push_finish(&mut self, id: JobId) {
        let truth = &self.truth[id.index()];
        let finish = self.cluster.now() + truth.span().max(Time(1));
        let run = truth.run;
        if self.finishes.len() >= num_finishes_max(self.cluster.num_running()) {
            let truth = &self.truth;
            self.finishes
                .retain(|Reverse((_, id, run))| *run == truth[id.index()].run);
        }
        self.finishes.push(Reverse((finish, id, run)));
    }

    /// Lets the scheduler decide at least this often while jobs wait, at whole multiples.
    pub fn set_tick(&mut self, tick: Option<Time>) {
        self.tick = tick.filter(|tick| *tick > Time::ZERO);
    }

    /// Sets the seed of what only the truth knows. Call it before the first event.
    pub(crate) fn set_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    /// Lets the scheduler decide at this time too, once; a time that is not in the future is no wish.
    pub fn wake_at(&mut self, wake: Option<Time>) {
        self.wake = wake;
    }

    /// What the scheduler knows.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster, for a pass to change; follow it with [`World::carry_out`].
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// Time integrals up to now.
    #[must_use]
    pub fn integrals(&self) -> Integrals {
        self.integrals
    }

    /// Moves the integrals of each tenant since the last call to `into`; nothing where [`World::record_tenants`] was not called.
    pub fn take_by_tenant(&mut self, into: &mut TenantIntegrals) {
        if let Some(by_tenant) = &mut self.by_tenant {
            std::mem::swap(&mut **by_tenant, into);
            by_tenant.clear(into.waiting_s.len());
        }
    }

    /// Whether every job has left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.num_finished == self.truth.len()
    }

    /// Jobs that have left.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn num_finished(&self) -> usize {
        self.num_finished
    }

    /// Makes true what the scheduler decided since the last call.
    pub fn carry_out(&mut self) {
        let mut decisions = std::mem::take(&mut self.decisions);
        self.cluster.take_decisions(&mut decisions);
        self.count_at_store(&decisions);
        for decision in decisions.drain(..) {
            let job = decision.row;
            match decision.action {
                Action::Start => {
                    self.dequeued(job, &decision.placement);
                    self.started(job);
                    self.told_began(&decision);
                }
                Action::Preempt => {
                    self.requeued(job);
                    let ran = self.truth[job.index()].rate > 0.0;
                    let added_s = self.stopped(job);
                    let kept_s = self.saves_at_stop(job, ran);
                    let truth = &mut self.truth[job.index()];
                    let done_s = truth.done_s();
                    truth.saved_s = kept_s;
                    if kept_s < done_s {
                        truth.lose(kept_s);
                    }
                    self.told_ended(job, Ended::Preempted, done_s - kept_s + added_s);
                    self.requeued_behind(job, &decision.placement);
                }
                // The pass that reserved keeps to it; nothing happens in the world.
                Action::Reserve => {}
            }
            self.cluster.recycle(decision);
        }
        self.decisions = decisions;
        self.drop_the_ended();
        self.follow_rates();
        if let Some(series) = &mut self.utilisation {
            let held = f64::from(self.cluster.num_gpus() - self.cluster.num_free());
            if series.last().is_none_or(|(_, last)| *last != held) {
                series.push((self.cluster.now().as_secs_f64(), held));
            }
        }
    }

    /// Reports to the accounts that a job has left the queue.
    fn dequeued(&mut self, id: JobId, placement: &Placement) {
        if let Some(account) = &mut self.attribution {
            account.left(self.cluster.now(), id);
        }
        if let Some(account) = &mut self.occupancy {
            account.started(&self.cluster, id, placement);
        }
    }

    /// Reports to the accounts that a job has lost its gang and waits again.
    fn requeued(&mut self, id: JobId) {
        if let Some(account) = &mut self.attribution {
            account.entered(&self.cluster, id);
        }
        if let Some(account) = &mut self.occupancy {
            account.ended(&self.cluster, id);
        }
    }

    fn started(&mut self, id: JobId) {
        // A lease has no work.
        if self.cluster.job(id).is_lease {
            return;
        }
        self.set_truth_of_start(id);
        self.next_incident(id);
        if self.begins(id) {
            self.push_finish(id);
        }
    }

    /// A job has lost its gang; the work that this adds to what it has to do, in seconds of the reference run.
    fn stopped(&mut self, id: JobId) -> f64 {
        let added_s = self.cluster.stop_cost_s(id);
        self.book(id);
        self.writes_no_more(id);
        let truth = &mut self.truth[id.index()];
        (truth.rest_s, truth.work_s) = (truth.rest_s + added_s, truth.work_s + added_s);
        truth.rate = 0.0;
        truth.run += 1;
        added_s
    }

    /// Running jobs whose neighbours came or left go on at their new rate.
    fn follow_rates(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.clear();
        self.cluster.take_rerated(&mut touched);
        if self.rounds.is_some() {
            // Rates hold for a whole lease; the next one begins at the rates of its time.
            touched.clear();
        }
        for id in &touched {
            let (job, truth) = (self.cluster.job(*id), &self.truth[id.index()]);
            // Several changes at one instant leave one rate; a job that has stopped since has none.
            let rate = job.rate * truth.pace;
            if job.state != JobState::Running || truth.rate == 0.0 || truth.rate == rate {
                continue;
            }
            self.book(*id);
            let truth = &mut self.truth[id.index()];
            truth.rate = rate;
            truth.run += 1;
            self.push_finish(*id);
        }
        self.touched = touched;
    }

    /// Moves to the next instant at which anything happens and lets it happen.
    pub fn advance(&mut self) -> Advance {
        match self.next_event() {
            Some(next) => self.advance_to(next),
            None => {
                self.wake = None;
                return Advance::End;
            }
        }
        Advance::Event
    }

    /// Moves to the next event, which is then.
    pub(crate) fn advance_to(&mut self, next: Time) {
        let now = self.cluster.now();
        self.wake = None;
        assert!(
            next < Time::MAX,
            "the clock has run out: a job goes on for longer than 292,000 years"
        );
        self.integrate((next - now).as_secs_f64());
        if let Some(account) = &mut self.attribution {
            account.settle(&self.cluster);
        }
        if let Some(account) = &mut self.occupancy {
            account.pass(&self.cluster, next);
        }
        self.cluster.advance(next);
        while let Some(Reverse((time, id, run))) = self.finishes.peek().copied() {
            if time > next {
                break;
            }
            self.finishes.pop();
            let is_stale = run != self.truth[id.index()].run;
            if !is_stale && !self.meets_incident(id) && !self.ends_unseen(id) {
                if self.truth[id.index()].ends_in_failure() {
                    self.trial_fails(id);
                } else {
                    self.finish(id);
                }
            }
        }
        self.follow_rates();
        self.see_failures();
        while let Some(change) = self.capacity.pop(next) {
            if !self.fails_unseen(change) {
                self.change_capacity(change);
            }
        }
        while let Some(truth) = self
            .truth
            .get(self.next_arrival)
            .filter(|truth| truth.submit <= next)
        {
            let (submission, weight) = (truth.submission, truth.weight());
            let id = self
                .cluster
                .submit(submission)
                .expect("the workload was validated against its cluster");
            debug_assert_eq!(id.index(), self.next_arrival);
            if let Some(account) = &mut self.attribution {
                account.entered(&self.cluster, id);
            }
            self.next_arrival += 1;
            self.weight_in_system += weight;
        }
        self.let_go();
        self.settle_kept_places();
        self.settle_round();
        self.note_event();
    }
}

/// Gangs that scattered GPUs could hold, but whole nodes and one node for the rest never can.
fn check_consolidated(cluster: &Cluster, jobs: &[Truth]) -> Result<(), Problem> {
    let too_large = |job: &&Truth| !cluster.could_run(&job.submission);
    match jobs.iter().find(too_large) {
        None => Ok(()),
        Some(job) => Err(Problem::new(
            "capabilities.consolidated",
            format!("a gang of {} GPUs", job.submission.num_gpus),
            "gangs that whole nodes and one node for the rest can hold",
            "remove the job, or let gangs scatter",
        )),
    }
}

#[cfg(test)]
mod kept_places_tests;
#[cfg(test)]
mod tests;
