//! The one runner: policies on workloads with seeds, side by side over threads, in a fixed order. Each run is also measured
//! against what no schedule of its workload can beat.

use std::time::Duration;

use pleach_env::Error as EnvError;
use pleach_env::bound::LowerBounds;
use pleach_env::schedule::Segment;
use pleach_env::workload::Workload;
use pleach_env::{JobOutcome, SimConfig, SimResult, simulate_planner};
use pleach_scheduler::cluster::{Capabilities, Cluster};
use pleach_scheduler::{Planner, PolicyError, Time};
use rayon::prelude::*;

use super::instances::Instance;
use super::results::PolicyRun;
use super::stand_in::doubles;
use crate::door::PolicySpec;
use crate::error::Error;
use crate::progress::{Progress, Watcher};

/// Time since the program began, for the time that planning takes. It does not reach a decision.
pub type Stopwatch<'a> = &'a (dyn Fn() -> Duration + Sync);

/// Runs policies on instances.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    sim: &'a SimConfig,
    grants: Grants,
    label: &'a str,
    watcher: Option<&'a Watcher>,
}

/// What a policy may do with its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grants {
    /// What the simulated cluster can do.
    OfCluster,
    /// That, and what the policy asks for.
    AsAsked,
}

/// A run, and how long its plans took.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedRun {
    /// What came of it.
    pub run: PolicyRun,
    /// Plans with jobs to plan for.
    pub num_plans: u64,
    /// Time of all of them on the wall clock.
    pub planning: Duration,
    /// The longest.
    pub planning_max: Duration,
    /// Which job ran where and when; empty unless the simulation is to record it.
    pub segments: Vec<Segment>,
}

impl<'a> Runner<'a> {
    /// Runs in this simulated cluster; the seed of its draws is each instance's.
    #[must_use]
    pub fn new(sim: &'a SimConfig) -> Runner<'a> {
        Runner {
            sim,
            grants: Grants::OfCluster,
            label: "",
            watcher: None,
        }
    }

    /// The same with other grants.
    #[must_use]
    pub fn granting(self, grants: Grants) -> Runner<'a> {
        Runner { grants, ..self }
    }

    /// The same, watched: the runs are a part of the work with this name, and each of them a step.
    #[must_use]
    pub fn watched(self, label: &'a str, watcher: &'a Watcher) -> Runner<'a> {
        let watcher = Some(watcher);
        Runner {
            label,
            watcher,
            ..self
        }
    }

    /// Runs every policy on every instance, those that decide as another of them ([`stand_ins`](super::stand_in::stand_ins)) once
    /// for both. Results are in the order instance by instance, policy by policy, whatever the
    /// number of threads.
    ///
    /// # Errors
    /// The first run, in that order, that failed, or that was better than its workload's lower bound.
    pub fn run(&self, instances: &[Instance], policies: &[PolicySpec]) -> Result<Vec<PolicyRun>, Error> {
        let workloads: Vec<&Workload> = instances
            .iter()
            .map(|instance| instance.workload.as_ref())
            .collect();
        let doubles = match self.grants {
            Grants::OfCluster => doubles(policies, &workloads, self.sim),
            Grants::AsAsked => (0..policies.len()).collect(),
        };
        let is_own = |place: &usize| doubles[*place] == *place;
        let own: Vec<usize> = (0..policies.len()).filter(is_own).collect();
        let played: Vec<PolicySpec> = own.iter().map(|place| policies[*place].clone()).collect();
        let runs = self.run_timed(instances, &played, &|| Duration::ZERO)?;
        let mut all = Vec::with_capacity(instances.len() * policies.len());
        for runs in runs.chunks(own.len().max(1)) {
            for (policy, double) in policies.iter().zip(&doubles) {
                let run = &runs[own.partition_point(|place| place < double)].run;
                all.push(PolicyRun {
                    policy: policy.name().to_string(),
                    ..run.clone()
                });
            }
        }
        Ok(all)
    }

    /// As [`Runner::run`], with the times of plans.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn run_timed(
        &self,
        instances: &[Instance],
        policies: &[PolicySpec],
        stopwatch: Stopwatch<'_>,
    ) -> Result<Vec<TimedRun>, Error> {
        // One bound for all: with everything that any of them may use.
        let mut most = self.sim.capabilities;
        for policy in policies {
            most = self.granted(policy, most)?;
        }
        // A bound holds for the work of the list. Where the model of outcomes lets jobs end before it, there is none.
        let bounds_of = |instance: &Instance| LowerBounds::of(&instance.workload, &most);
        let bounds: Vec<Option<LowerBounds>> = instances
            .par_iter()
            .map(|instance| self.sim.outcomes.is_none().then(|| bounds_of(instance)))
            .collect();
        let pairs: Vec<(&Instance, Option<LowerBounds>, &PolicySpec)> = instances
            .iter()
            .zip(bounds)
            .flat_map(|(instance, bounds)| policies.iter().map(move |policy| (instance, bounds, policy)))
            .collect();
        let silent = Watcher::silent();
        let watcher = self.watcher.unwrap_or(&silent);
        in_parallel(self.label, watcher, &pairs, |(instance, bounds, policy)| {
            let timed = self.run_one(instance, policy, stopwatch, watcher)?;
            Ok(match bounds {
                Some(bounds) if !policy.copies_jobs() => TimedRun {
                    run: timed.run.against(*bounds)?,
                    ..timed
                },
                _ => timed,
            })
        })
    }

    fn granted(&self, policy: &PolicySpec, capabilities: Capabilities) -> Result<Capabilities, Error> {
        match self.grants {
            Grants::OfCluster => Ok(capabilities),
            Grants::AsAsked => Ok(capabilities.with_actions(policy.asks()?)),
        }
    }

    /// One policy on one instance.
    ///
    /// # Errors
    /// A run that fails.
    pub(crate) fn run_one(
        &self,
        instance: &Instance,
        policy: &PolicySpec,
        stopwatch: Stopwatch<'_>,
        watcher: &Watcher,
    ) -> Result<TimedRun, Error> {
        let sim = SimConfig {
            seed: instance.seed,
            capabilities: self.granted(policy, self.sim.capabilities)?,
            ..self.sim.clone()
        };
        let mut planner = Timed {
            inner: policy.make_planner()?,
            stopwatch,
            watcher,
            num_plans: 0,
            planning: Duration::ZERO,
            planning_max: Duration::ZERO,
        };
        let mut result = simulate_planner(&instance.workload, &sim, &mut planner)
            .map_err(|error| failed(policy, &instance.workload, error))?;
        Ok(TimedRun {
            segments: std::mem::take(&mut result.segments),
            run: run_of(policy.name(), instance, result),
            num_plans: planner.num_plans,
            planning: planner.planning,
            planning_max: planner.planning_max,
        })
    }
}

/// Does all tasks side by side, as a part of the work with this name. Results are in the order of the tasks, whatever the
/// number of threads.
///
/// # Errors
/// The first task, in their order, that failed.
pub fn in_parallel<T: Sync, R: Send>(
    label: &str,
    watcher: &Watcher,
    tasks: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let one = |task: &T| {
        let done = work(task);
        watcher.tell(Progress::Step);
        done
    };
    let done: Vec<Result<R, Error>> =
        watcher.part(label, tasks.len(), || tasks.par_iter().map(one).collect());
    done.into_iter().collect()
}

/// A planner with a stopwatch.
struct Timed<'a> {
    inner: Box<dyn Planner>,
    stopwatch: Stopwatch<'a>,
    watcher: &'a Watcher,
    num_plans: u64,
    planning: Duration,
    planning_max: Duration,
}

impl Planner for Timed<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if cluster.num_pending() + cluster.num_running() == 0 {
            return self.inner.plan(cluster);
        }
        if self.watcher.asked_to_stop(self.num_plans, 0).is_some() {
            return Err(PolicyError::Stopped);
        }
        let before = (self.stopwatch)();
        self.inner.plan(cluster)?;
        let took = (self.stopwatch)().saturating_sub(before);
        self.num_plans += 1;
        self.planning += took;
        self.planning_max = self.planning_max.max(took);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.inner.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        self.inner.rests()
    }

    fn places_tasks(&self) -> bool {
        self.inner.places_tasks()
    }
}

fn failed(policy: &PolicySpec, workload: &Workload, error: EnvError) -> Error {
    match error {
        EnvError::Problem(problem) => problem.into(),
        other => Error::Failed(format!("{} on {}: {other}", policy.name(), workload.name)),
    }
}

/// What a run leaves in the results.
fn run_of(policy: &str, instance: &Instance, result: SimResult) -> PolicyRun {
    let num_gpus = instance.workload.cluster.num_gpus() as f64;
    let metrics = result.metrics.fields().into_iter();
    let utilisation = result.utilisation.iter();
    PolicyRun {
        policy: policy.to_string(),
        workload: instance.workload.name.clone(),
        seed: instance.seed,
        metrics: metrics.map(|(key, value)| (key.to_string(), value)).collect(),
        jct_s: result.jobs.iter().map(JobOutcome::jct_s).collect(),
        utilisation: utilisation
            .map(|(time_s, held)| (*time_s, held / num_gpus))
            .collect(),
    }
}
