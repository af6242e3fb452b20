//! The simulated world: a scheduler's cluster plus the hidden truth, driven event by event.
//!
//! Events are ordered by (time, kind, id): at one instant jobs finish first, then jobs arrive, then the scheduler
//! decides. Between events every running job progresses at a constant rate, so an event costs O(log n) in jobs and
//! nothing in the size of the cluster. The scheduler sees only [`Cluster`]; true work lives here and cannot leak.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pleach_scheduler::cluster::{Capabilities, Cluster, Decision, Demand, JobState, Submission};
use pleach_scheduler::error::ConfigError;
use pleach_scheduler::estimate::Estimate;
use pleach_scheduler::ids::{ClassId, JobId, TenantId, Time};

use crate::metrics::{JobOutcome, Metrics, SLOWDOWN_BOUND_S};
use crate::workload::Workload;

/// Hidden truth of one job.
#[derive(Clone, Copy, Debug)]
struct Truth {
    submit: Time,
    submission: Submission,
    /// Work that was left when the present run began, in seconds of the reference run.
    rest_s: f64,
    /// When the present run began.
    run_start: Time,
    /// True progress per second in the present run; zero while the job does not run.
    rate: f64,
    /// Start-up cost of the present run, s.
    cost_s: f64,
    /// Run time alone at the best speed of its class, s.
    isolated_s: f64,
    /// Counts runs, so that the finish event of an ended run is recognised as stale.
    run: u32,
}

impl Truth {
    /// What a second in the system adds to the job's slowdown.
    fn weight(&self) -> f64 {
        1.0 / self.isolated_s.max(SLOWDOWN_BOUND_S)
    }
}

/// What the present instant brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
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
    decisions: Vec<Decision>,
    outcomes: Vec<Option<JobOutcome>>,
    num_finished: usize,
    weight_in_system: f64,
    integrals: Integrals,
    utilisation: Option<Vec<(f64, f64)>>,
}

/// Time integrals over the run, from which rewards are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Integrals {
    /// Jobs in the system x s. By Little's law its final value is the sum of all JCTs.
    pub jobs_s: f64,
    /// Sum over jobs in the system of 1 / isolated run time (bounded at 10 s), x s: the sum of all slowdowns, unbounded below.
    pub slowdown: f64,
    /// Held GPUs x s.
    pub held_gpu_s: f64,
}

/// Finish events beyond which those of ended runs are thrown out: a few for each running job, so that a scheduler which
/// stops jobs all the time neither fills the memory nor pays much for the cleaning.
fn num_stale_max(num_running: usize) -> usize {
    64 + 3 * num_running
}

impl World {
    /// A world at time zero. `estimates[i]` is what the scheduler is told of job i.
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
    ) -> Result<World, ConfigError> {
        assert_eq!(workload.jobs.len(), estimates.len(), "one estimate per job");
        let cluster = Cluster::new(&workload.cluster, &workload.classes, capabilities)?;
        let truth: Vec<Truth> = workload
            .jobs
            .iter()
            .zip(estimates)
            .map(|(job, estimate)| {
                let speed = &workload.classes[usize::from(job.class)].speed;
                let best = speed.iter().copied().fold(0.0, f64::max);
                Truth {
                    submit: job.submit,
                    submission: Submission {
                        tenant: TenantId(job.tenant),
                        class: ClassId(job.class),
                        num_gpus: job.num_gpus,
                        estimate_s: *estimate,
                    },
                    rest_s: job.run_time_s,
                    run_start: Time::ZERO,
                    rate: 0.0,
                    cost_s: 0.0,
                    isolated_s: job.run_time_s / best,
                    run: 0,
                }
            })
            .collect();
        Ok(World {
            cluster,
            next_arrival: 0,
            finishes: BinaryHeap::new(),
            tick: None,
            decisions: Vec::new(),
            outcomes: vec![None; truth.len()],
            num_finished: 0,
            weight_in_system: 0.0,
            integrals: Integrals::default(),
            utilisation: None,
            truth,
        })
    }

    /// Makes room for everything that is to come, so that no event and no decision allocates.
    pub fn reserve(&mut self) {
        let mut demands: Vec<(Demand, usize)> = Vec::new();
        for truth in &self.truth {
            let demand = self.cluster.demand_of(&truth.submission);
            match demands.binary_search_by_key(&demand, |(known, _)| *known) {
                Ok(at) => demands[at].1 += 1,
                Err(at) => demands.insert(at, (demand, 1)),
            }
        }
        self.cluster.reserve(demands);
        let num_running = self.truth.len().min(self.cluster.num_gpus() as usize);
        self.decisions.reserve(num_running + 1);
        self.finishes.reserve(num_stale_max(num_running) + 1);
    }

    /// Records the number of held GPUs whenever it changes.
    pub fn record_utilisation(&mut self) {
        self.utilisation = Some(Vec::new());
    }

    /// Lets the scheduler decide at least this often while jobs wait, at whole multiples.
    pub fn set_tick(&mut self, tick: Option<Time>) {
        self.tick = tick.filter(|tick| *tick > Time::ZERO);
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

    /// Whether every job has left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.num_finished == self.truth.len()
    }

    /// Jobs that have left.
    #[must_use]
    pub fn num_finished(&self) -> usize {
        self.num_finished
    }

    /// Makes true what the scheduler decided since the last call.
    pub fn carry_out(&mut self) {
        let mut decisions = std::mem::take(&mut self.decisions);
        self.cluster.take_decisions(&mut decisions);
        for decision in decisions.drain(..) {
            match decision {
                Decision::Start { job, .. } => self.started(job),
                Decision::Preempt { job } => self.stopped(job),
            }
            self.cluster.recycle(decision);
        }
        self.decisions = decisions;
        if let Some(series) = &mut self.utilisation {
            let held = f64::from(self.cluster.num_gpus() - self.cluster.num_free());
            if series.last().is_none_or(|(_, last)| *last != held) {
                series.push((self.cluster.now().as_secs_f64(), held));
            }
        }
    }

    fn started(&mut self, id: JobId) {
        let (now, job) = (self.cluster.now(), self.cluster.job(id));
        // A job that was started and stopped again within one pass never ran.
        if job.state != JobState::Running || job.run_start != now {
            return;
        }
        let truth = &mut self.truth[id.index()];
        // The scheduler's beliefs about rate and restart cost are true in this model; only run times are hidden.
        (truth.run_start, truth.rate, truth.cost_s) = (now, job.rate, job.run_cost_s);
        let span = Time::from_secs_f64(truth.cost_s + truth.rest_s / truth.rate);
        let finish = Reverse((now + span.max(Time(1)), id, truth.run));
        if self.finishes.len() >= num_stale_max(self.cluster.num_running()) {
            let truth = &self.truth;
            self.finishes
                .retain(|Reverse((_, id, run))| *run == truth[id.index()].run);
        }
        self.finishes.push(finish);
    }

    fn stopped(&mut self, id: JobId) {
        let truth = &mut self.truth[id.index()];
        let ran_s = (self.cluster.now() - truth.run_start).as_secs_f64() - truth.cost_s;
        truth.rest_s = (truth.rest_s - ran_s.max(0.0) * truth.rate).max(0.0);
        truth.rate = 0.0;
        truth.run += 1;
    }

    /// Moves to the next instant at which anything happens and lets it happen.
    pub fn advance(&mut self) -> Instant {
        self.drop_stale();
        let finish = self.finishes.peek().map(|Reverse((time, ..))| *time);
        let arrival = self.truth.get(self.next_arrival).map(|truth| truth.submit);
        // Ticks matter only while somebody waits and something runs; otherwise nothing can change between events.
        let now = self.cluster.now();
        let tick = self
            .tick
            .filter(|_| self.cluster.num_pending() > 0 && self.cluster.num_running() > 0);
        let tick = tick.map(|tick| Time((now.0 / tick.0 + 1) * tick.0));
        let Some(next) = [finish, arrival, tick].into_iter().flatten().min() else {
            return Instant::End;
        };
        self.integrate((next - now).as_secs_f64());
        self.cluster.advance(next);
        while let Some(Reverse((time, id, run))) = self.finishes.peek().copied() {
            if time > next {
                break;
            }
            self.finishes.pop();
            if run == self.truth[id.index()].run {
                self.finish(id);
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
            self.next_arrival += 1;
            self.weight_in_system += weight;
        }
        Instant::Event
    }

    fn drop_stale(&mut self) {
        while let Some(Reverse((_, id, run))) = self.finishes.peek() {
            if *run == self.truth[id.index()].run {
                break;
            }
            self.finishes.pop();
        }
    }

    fn finish(&mut self, id: JobId) {
        self.cluster.finish(id);
        let (job, truth) = (self.cluster.job(id), &mut self.truth[id.index()]);
        truth.run += 1;
        self.num_finished += 1;
        self.weight_in_system -= truth.weight();
        self.outcomes[id.index()] = Some(JobOutcome {
            submit_s: truth.submit.as_secs_f64(),
            first_start_s: job.first_start.unwrap_or(truth.submit).as_secs_f64(),
            finish_s: self.cluster.now().as_secs_f64(),
            isolated_s: truth.isolated_s,
            num_gpus: truth.submission.num_gpus,
            tenant: truth.submission.tenant.0,
            num_preemptions: job.num_preemptions,
            held_s: job.attained_gpu_s / f64::from(truth.submission.num_gpus),
        });
    }

    fn integrate(&mut self, dt_s: f64) {
        let in_system = self.next_arrival - self.num_finished;
        self.integrals.jobs_s += in_system as f64 * dt_s;
        self.integrals.slowdown += self.weight_in_system * dt_s;
        self.integrals.held_gpu_s += f64::from(self.cluster.num_gpus() - self.cluster.num_free()) * dt_s;
    }

    /// Outcomes of the jobs that have left, in order of submission.
    pub fn outcomes(&self) -> impl Iterator<Item = &JobOutcome> {
        self.outcomes.iter().flatten()
    }

    /// Figures over the jobs that have left.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let jobs: Vec<JobOutcome> = self.outcomes().copied().collect();
        Metrics::of(&jobs, self.cluster.num_gpus())
    }

    /// Takes the utilisation series: (time s, held GPUs) at every change.
    pub fn take_utilisation(&mut self) -> Vec<(f64, f64)> {
        self.utilisation.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::{job, workload};
    use pleach_scheduler::cluster::Slice;
    use pleach_scheduler::estimate::Provenance;
    use pleach_scheduler::ids::NodeId;

    fn world_of(jobs: Vec<crate::workload::JobSpec>) -> World {
        let workload = workload(jobs);
        let oracle = |job: &crate::workload::JobSpec| Estimate {
            value: job.run_time_s,
            provenance: Provenance::Oracle,
        };
        let estimates: Vec<Estimate> = workload.jobs.iter().map(oracle).collect();
        let capabilities = Capabilities {
            preemption: true,
            restart_cost_s: 5.0,
            ..Capabilities::default()
        };
        World::new(&workload, capabilities, &estimates).unwrap()
    }

    fn start(world: &mut World, id: u32, gpus: u64) {
        let placement = [Slice {
            node: NodeId(0),
            gpus,
        }]
        .into_iter()
        .collect();
        world.cluster_mut().start(JobId(id), placement);
    }

    #[test]
    fn a_preempted_job_keeps_its_progress_and_pays_for_the_restart() {
        // 100 s of work: 30 s run, stopped at 30 s, started again at 50 s: 50 + 5 (restart) + 70 = 125 s.
        let mut world = world_of(vec![
            job("a", 0.0, 2, 100.0),
            job("b", 30.0, 1, 1.0),
            job("c", 50.0, 1, 1.0),
        ]);
        assert_eq!(world.advance(), Instant::Event);
        start(&mut world, 0, 0b11);
        world.carry_out();
        world.advance();
        world.cluster_mut().preempt(JobId(0));
        world.carry_out();
        world.advance();
        assert_eq!(
            world.cluster().now(),
            Time::from_secs_f64(50.0),
            "the first run's finish at 100 s is stale"
        );
        start(&mut world, 0, 0b11);
        start(&mut world, 1, 0b100);
        start(&mut world, 2, 0b1000);
        world.carry_out();
        while world.advance() == Instant::Event {}
        let a = *world.outcomes().next().unwrap();
        assert_eq!((a.finish_s, a.held_s, a.num_preemptions), (125.0, 105.0, 1));
        assert!(world.is_over());
        // Jobs in the system: a for 125 s, b for 21 s, c for 1 s.
        assert_eq!(world.integrals().jobs_s, 147.0);
        assert_eq!(world.integrals().held_gpu_s, 2.0 * 105.0 + 1.0 + 1.0);
        let slowdown = 125.0 / 100.0 + 21.0 / 10.0 + 1.0 / 10.0;
        assert!((world.integrals().slowdown - slowdown).abs() < 1e-9);
    }

    #[test]
    fn at_one_instant_jobs_leave_before_jobs_arrive() {
        let mut world = world_of(vec![job("a", 0.0, 4, 10.0), job("b", 10.0, 4, 10.0)]);
        world.advance();
        start(&mut world, 0, 0b1111);
        world.carry_out();
        world.advance();
        assert_eq!((world.num_finished(), world.cluster().num_pending()), (1, 1));
        assert_eq!(world.cluster().num_free(), 8);
    }

    #[test]
    fn a_job_of_a_microsecond_and_one_of_thirty_years_are_exact() {
        let mut world = world_of(vec![job("short", 0.0, 1, 1e-6), job("long", 0.0, 1, 1e9)]);
        world.advance();
        start(&mut world, 0, 0b1);
        start(&mut world, 1, 0b10);
        world.carry_out();
        while world.advance() == Instant::Event {}
        let finishes: Vec<f64> = world.outcomes().map(|job| job.finish_s).collect();
        assert_eq!(finishes, [1e-6, 1e9]);
    }
}
