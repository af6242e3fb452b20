//! Runs a policy on a workload from the first submission to the last finish.

use pleach_scheduler::cluster::{Capabilities, Cluster};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{JobLabels, Planner, PolicyError, Problem, Time};
use serde::{Deserialize, Serialize};

use crate::attribution::{Attribution, Waits};
use crate::availability::AvailabilityConfig;
use crate::batch_system::BatchSystem;
use crate::beliefs::BeliefErrors;
use crate::bound::LowerBounds;
use crate::error::Error;
use crate::failures::OutcomeModel;
use crate::metrics::{JobOutcome, Metrics};
use crate::occupancy::Occupancy;
use crate::world::{Advance, World};
use pleach_tables::schedule::Segment;
use pleach_workloads::Seed;
use pleach_workloads::estimates::EstimateModel;
use pleach_workloads::{JobSpec, Workload};

/// What a simulated cluster can do and what its scheduler knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimConfig {
    /// Preemption, reservation and the cost of a restart.
    pub capabilities: Capabilities,
    /// Jobs that fail, are retried, killed and given up; without, every job does all its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<OutcomeModel>,
    /// Nodes that come and go.
    pub capacity: AvailabilityConfig,
    /// The batch system that carries decisions out; without, they are made at every event and happen at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_system: Option<BatchSystem>,
    /// Give each job what is published of its class (state, memory, checkpoints, starts) and the cluster a store and guarded
    /// sharing, where the list says nothing ([`pleach_workloads::classes`]).
    #[serde(skip_serializing_if = "is_false")]
    pub class_facts: bool,
    /// How wrong the scheduler is about speeds and costs; without, it is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beliefs: Option<BeliefErrors>,
    /// How the scheduler's run time estimates come about.
    pub estimates: EstimateModel,
    /// Draws the errors of the estimates and the failures of nodes.
    pub seed: u64,
    /// Record the number of held GPUs over time.
    pub record_utilisation: bool,
    /// Divide the waiting time of each job into causes ([`crate::attribution`]).
    #[serde(skip_serializing_if = "is_false")]
    pub record_waits: bool,
    /// Record how spread out gangs run and how many nodes stand empty ([`crate::occupancy`]).
    #[serde(skip_serializing_if = "is_false")]
    pub record_occupancy: bool,
    /// Record which job runs where and when ([`crate::schedule`]).
    #[serde(skip_serializing_if = "is_false")]
    pub record_segments: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Everything that a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct SimResult {
    /// One outcome per job of the workload, in its order.
    pub jobs: Vec<JobOutcome>,
    /// Figures over all jobs.
    pub metrics: Metrics,
    /// (time s, held GPUs) at every change; empty unless asked for.
    pub utilisation: Vec<(f64, f64)>,
    /// Waiting time by cause, one per job of the workload, in its order; empty unless asked for.
    pub waits: Vec<Waits>,
    /// How the cluster was filled; none unless asked for.
    pub occupancy: Option<Occupancy>,
    /// Which job ran where and when: jobs by their number in the workload, nodes by theirs in the cluster; empty unless recorded.
    pub segments: Vec<Segment>,
    /// Passes in which there was something to decide.
    pub num_passes: u64,
}

/// Simulates a policy to the end.
///
/// # Errors
/// An invalid workload or cluster, or a policy that cannot decide.
pub fn simulate(
    workload: &Workload,
    config: &SimConfig,
    policy: &mut dyn Policy,
) -> Result<SimResult, Error> {
    let mut world = open(workload, config)?;
    world.set_tick(policy.needs().tick);
    let (name, mut pass) = (policy.name().to_string(), Pass::of_one_cluster());
    let plan = |cluster: &mut Cluster| {
        pass.run(cluster, policy)?;
        Ok(None)
    };
    let found = run(world, &name, plan, |_| false)?;
    Ok(found.expect("a run that is never hopeless is not broken off"))
}

/// Plans in a row that a planner may ask for between two events of jobs. *Assumed*: with a plan every minute 19 years in which no
/// job comes or goes, and some minutes of computing.
const WAKES_MAX: f64 = 1e7;

/// Simulates a planner to the end. It plans at every event, and when it asked to be woken, unless it rests: then rounds that
/// change nothing are jumped over. A planner that asks to be woken for ever and starts nothing is simulated for ever.
///
/// # Errors
/// An invalid workload or cluster, a planner that cannot decide, or one whose rounds are so short, or jobs so long, that it would
/// plan more than ten million times before anything happens.
pub fn simulate_planner(
    workload: &Workload,
    config: &SimConfig,
    planner: &mut dyn Planner,
) -> Result<SimResult, Error> {
    let found = simulate_planner_within(workload, config, planner, f64::INFINITY)?;
    Ok(found.expect("nothing is above infinity"))
}

/// Plans between two looks at whether a run is still within its bound. *Assumed*: a look costs as much as a plan or less.
const PLANS_PER_LOOK: u64 = 16;

/// As [`simulate_planner`], but broken off, with no result, once the average JCT is sure to come out above `avg_jct_s_max`. It is
/// sure where what has been spent, and the rest of every job at the best speed that its class has anywhere, come to more. A run
/// that ends between two looks has its result all the same; beside a batch system there are no looks.
///
/// # Errors
/// As [`simulate_planner`], of what was simulated.
pub fn simulate_planner_within(
    workload: &Workload,
    config: &SimConfig,
    planner: &mut dyn Planner,
    avg_jct_s_max: f64,
) -> Result<Option<SimResult>, Error> {
    let name = planner.name().to_string();
    check_tasks(workload, planner)?;
    planner.read_labels(&mut labels(workload));
    let sum_s_max = avg_jct_s_max * workload.jobs.len() as f64 * (1.0 + 1e-9);
    let least_times = if sum_s_max.is_finite() && config.batch_system.is_none() {
        least_times(workload, config)
    } else {
        Vec::new()
    };
    let mut num_plans = 0;
    let is_hopeless = |world: &World| {
        num_plans += 1;
        !least_times.is_empty()
            && num_plans % PLANS_PER_LOOK == 0
            && world.jct_sum_s_min(&least_times) > sum_s_max
    };
    let plan = |cluster: &mut Cluster| {
        planner.plan(cluster)?;
        // The account of occupancy sums from event to event, and its last places depend on how many there are.
        let rests = planner.rests() && !config.record_occupancy;
        Ok(planner.wake_at(cluster).filter(|_| !rests))
    };
    run(open(workload, config)?, &name, plan, is_hopeless)
}

/// The least time that a second of each job's work can take, s; zeros where jobs may end before their work is done.
fn least_times(workload: &Workload, config: &SimConfig) -> Vec<f64> {
    if config.outcomes.is_some() {
        return vec![0.0; workload.jobs.len()];
    }
    LowerBounds::least_times(workload, &config.capabilities)
}

/// What a list says of its jobs beside what the cluster's tables hold, in the order of their rows.
pub fn labels(workload: &Workload) -> impl Iterator<Item = JobLabels<'_>> {
    workload.jobs.iter().map(|job| JobLabels {
        user: job.user.as_deref().unwrap_or_default(),
        account: &workload.cluster.tenants[usize::from(job.tenant)].name,
        partition: job.observed.as_deref().map_or("", |of| &of.partition),
        qos: job.observed.as_deref().map_or("", |of| &of.qos),
        constraint: job.observed.as_deref().map_or("", |of| &of.constraint),
        licences: job.observed.as_deref().map_or("", |of| &of.licences),
        held_s: job.observed.as_deref().map_or(0.0, |of| of.held_s),
    })
}

/// Refuses a planner that would cut tasks in two.
fn check_tasks(workload: &Workload, planner: &dyn Planner) -> Result<(), Error> {
    let cut = |job: &&JobSpec| !job.resources.tasks.is_any();
    match workload.jobs.iter().find(cut).filter(|_| !planner.places_tasks()) {
        None => Ok(()),
        Some(job) => Err(Error::Problem(Problem::new(
            "policy",
            planner.name(),
            format!("a policy that places gangs of tasks, as job {} is one", job.id),
            "this one shares out single GPUs; take another one, or a list without gpus_per_task and its like",
        ))),
    }
}

fn open(workload: &Workload, config: &SimConfig) -> Result<World, Error> {
    workload.validate()?;
    let seed = Seed(config.seed);
    let mut world = config.world(workload, seed, seed)?;
    if config.record_utilisation {
        world.record_utilisation();
    }
    if config.record_waits {
        world.record_waits();
    }
    if config.record_occupancy {
        world.record_occupancy();
    }
    if config.record_segments {
        world.record_segments();
    }
    Ok(world)
}

impl SimConfig {
    /// The world of these settings before its first event. The errors of the estimates have a seed of their own.
    pub(crate) fn world(&self, workload: &Workload, seed: Seed, estimates: Seed) -> Result<World, Error> {
        let mut filled = None;
        let workload = if self.class_facts {
            let filled = filled.insert(workload.clone());
            filled.fill_class_facts(self.capabilities.overheads == Some(Overheads::ByClass));
            filled
        } else {
            workload
        };
        self.estimates.validate()?;
        let estimates = self.estimates.estimates(workload, estimates);
        let mut world = match self.beliefs {
            None => World::new(workload, self.capabilities, &estimates)?,
            Some(errors) => {
                let seed = seed.child("beliefs", 0);
                World::with_beliefs(workload, self.capabilities, &estimates, errors, seed)?
            }
        };
        world.set_seed(seed.child("world", 0));
        if let Some(outcomes) = &self.outcomes {
            world.set_outcomes(outcomes, seed.child("outcomes", 0))?;
        }
        world.set_capacity(&self.capacity, seed.child("capacity", 0))?;
        if let Some(batch_system) = &self.batch_system {
            if self.capacity.keep_places_s > 0.0 {
                return Err(Error::Problem(Problem::new(
                    "capacity.keep_places_s",
                    self.capacity.keep_places_s,
                    "0 beside a batch system",
                    "it decides itself when a gang starts again; leave one of the two out",
                )));
            }
            world.set_batch_system(batch_system)?;
        }
        Ok(world)
    }
}

/// Plans after which their mean distance is taken for what it will be. *Assumed.*
const WAKES_SEEN: u64 = 1000;

/// Plans since a job came or went, that they may be foreseen to be too many.
#[derive(Clone, Debug, Default)]
struct Wakes {
    num_plans: u64,
    since: Time,
    /// Jobs that had come and gone.
    seen: usize,
}

impl Wakes {
    /// Counts a plan, and refuses those to come where there would be too many of them before anything happens.
    fn count(&mut self, world: &mut World, name: &str) -> Result<(), Problem> {
        let (now, seen) = (world.cluster().now(), world.num_comings_and_goings());
        if seen != self.seen || self.num_plans == 0 {
            *self = Wakes {
                num_plans: 1,
                since: now,
                seen,
            };
            return Ok(());
        }
        self.num_plans += 1;
        if !self.num_plans.is_multiple_of(WAKES_SEEN) {
            return Ok(());
        }
        let every_s = now.since(self.since).as_secs_f64() / (self.num_plans - 1) as f64;
        let until_s = world
            .next_of_jobs()
            .map_or(0.0, |next| next.since(now).as_secs_f64());
        Problem::refuse_if(
            until_s > WAKES_MAX * every_s,
            "run_time_s",
            format_args!("{until_s:.0} s more until a job comes or goes"),
            format_args!(
                "{:.0} s where {name} plans every {every_s:.0} s",
                WAKES_MAX * every_s
            ),
            "give shorter jobs, or the planner longer rounds (--policy-config)",
        )
    }
}

/// A simulation that stands still wherever something may be decided.
#[derive(Clone, Debug)]
pub struct Simulation {
    world: World,
    /// What plans, for errors.
    name: String,
    num_passes: u64,
    wake: Option<Time>,
    wakes: Wakes,
}

impl Simulation {
    /// Before its first event; `name` is what plans.
    ///
    /// # Errors
    /// An invalid workload or cluster.
    pub fn open(workload: &Workload, config: &SimConfig, name: &str) -> Result<Simulation, Error> {
        Ok(Simulation::of(open(workload, config)?, name))
    }

    fn of(world: World, name: &str) -> Simulation {
        Simulation {
            world,
            name: name.to_string(),
            num_passes: 0,
            wake: None,
            wakes: Wakes::default(),
        }
    }

    /// Goes on to the next instant at which something may be decided, which [`Simulation::decided`] ends; none is left where this is
    /// false.
    pub fn advance(&mut self) -> bool {
        while !self.world.is_over() {
            self.world.wake_at(self.wake);
            // An idle cluster with jobs may not hold, so there is always a next event until the last finish. Were it not so,
            // the figures would be those of the easy jobs only: better no figures.
            assert_eq!(
                self.world.advance(),
                Advance::Event,
                "jobs are left but nothing will ever happen"
            );
            if self.world.may_decide() {
                self.num_passes += u64::from(self.world.cluster().num_pending() > 0);
                return true;
            }
        }
        false
    }

    /// The cluster, on which decisions are made.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        self.world.cluster_mut()
    }

    /// What was decided is carried out; it goes on at the next event, or at `wake` where that comes first.
    ///
    /// # Errors
    /// So many wakes that it would not end.
    pub fn decided(&mut self, wake: Option<Time>) -> Result<(), Problem> {
        self.wake = wake;
        self.world.carry_out();
        if wake.is_some() {
            self.wakes.count(&mut self.world, &self.name)?;
        }
        Ok(())
    }

    /// Jobs in the system times s so far.
    #[must_use]
    pub fn jobs_s(&self) -> f64 {
        self.world.integrals().jobs_s
    }

    /// What it gave, at its end.
    #[must_use]
    pub fn end(mut self) -> SimResult {
        let jobs: Vec<JobOutcome> = self.world.outcomes().copied().collect();
        assert_littles_law(self.jobs_s(), &jobs);
        SimResult {
            metrics: self.world.metrics(),
            jobs,
            utilisation: self.world.take_utilisation(),
            waits: self
                .world
                .attribution()
                .map(Attribution::waits)
                .unwrap_or_default(),
            occupancy: self.world.take_occupancy(),
            segments: self.world.take_segments(),
            num_passes: self.num_passes,
        }
    }
}

/// Drives a world to its end; `plan` decides, and returns when it is to be called again. `name` is the planner's. None where
/// `is_hopeless` was true after a plan.
fn run(
    world: World,
    name: &str,
    mut plan: impl FnMut(&mut Cluster) -> Result<Option<Time>, PolicyError>,
    mut is_hopeless: impl FnMut(&World) -> bool,
) -> Result<Option<SimResult>, Error> {
    let mut simulation = Simulation::of(world, name);
    while simulation.advance() {
        let wake = plan(simulation.cluster_mut())?;
        simulation.decided(wake)?;
        if is_hopeless(&simulation.world) {
            return Ok(None);
        }
    }
    Ok(Some(simulation.end()))
}

/// Little's law, which holds for every run from empty to empty: the time integral of the number of jobs in the system is
/// the sum of their JCTs. Cheap, so always on: a job that is lost, counted twice or moved in time breaks it.
fn assert_littles_law(jobs_s: f64, jobs: &[JobOutcome]) {
    let sum_jct_s: f64 = jobs.iter().map(JobOutcome::jct_s).sum();
    // A time of 2e9 s as a float is exact to a quarter of a microsecond.
    let slack_s = 1e-9 * sum_jct_s + 1e-6 * jobs.len() as f64;
    assert!(
        (jobs_s - sum_jct_s).abs() <= slack_s,
        "{} jobs were in the system for {jobs_s} s and took {sum_jct_s} s: a job was lost or miscounted",
        jobs.len()
    );
}
