//! Jobs on a cluster: policies choose which job starts where, planners deal all GPUs, and the average JCT is to be little. Policies come
//! through the door of all policies; lists, cluster and knowledge from the flags of a comparison.

mod describe;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::time::Duration;

use pleach_env::SimConfig;
use pleach_env::availability::AvailabilityConfig;
use pleach_env::bound::LowerBounds;
use pleach_env::schedule::Record;
use pleach_scheduler::ActionSet;
use pleach_scheduler::features::{DECISION_1, FeatureSchema, View};

use super::compare::compare_on;
use super::compared::{At, Beside, Comparing, check_reference};
use super::world::{Description, Draw, Loss, Player, Policy, Turn, Verb, Without, World};
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::ablation::Ablation;
use crate::evaluate::evaluation::{COLUMNS, EvaluationConfig, no_settings};
use crate::evaluate::idle::idle_runs;
use crate::evaluate::instances::{Instance, seeds};
use crate::evaluate::metric::{METRICS, Metric, metric_of};
use crate::evaluate::results::{PolicyRun, Results};
use crate::evaluate::run::{Runner, TimedRun};
use crate::evaluate::stand_in::stand_ins;
use crate::evaluate::workload_source::WorkloadSource;
use crate::progress::Watcher;
use crate::regret;
use crate::report::Block;
use crate::run_folder::atomic_file::read_toml;
use crate::schedule::run_of;

/// Largest file with settings of planners, bytes.
const POLICY_CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Policies, lists of jobs and a cluster that fit each other.
#[derive(Clone, Debug)]
pub struct JobsWorld {
    /// The policies that are compared; a description simulates the first.
    pub policies: Vec<PolicySpec>,
    /// The simulated cluster.
    pub sim: SimConfig,
    /// Jobs that a description simulates, at most.
    pub described_jobs: usize,
    config: EvaluationConfig,
    read: OnceLock<Read>,
}

/// The lists of a comparison, and what importers mended.
#[derive(Clone, Debug)]
struct Read {
    instances: Vec<Instance>,
    notes: Vec<String>,
}

impl JobsWorld {
    /// Opens the policies, and refuses before the work what would be found out after it.
    ///
    /// # Errors
    /// [`Error::Problem`] for what is unknown, out of range, or asks for more than the cluster can do; files that cannot be
    /// used.
    pub fn open(config: &EvaluationConfig) -> Result<JobsWorld, Error> {
        JobsWorld::of(config, DOOR.open_all(&config.policy)?)
    }

    /// The same with policies that are there already, instead of those that the configuration names.
    ///
    /// # Errors
    /// As [`JobsWorld::open`].
    pub fn of(config: &EvaluationConfig, mut policies: Vec<PolicySpec>) -> Result<JobsWorld, Error> {
        no_settings(&config.set)?;
        if let Some(path) = &config.policy_config {
            let settings: serde_json::Value = read_toml(path, POLICY_CONFIG_BYTES_MAX)?;
            PolicySpec::configure(&mut policies, &settings)?;
        }
        let names: Vec<&str> = policies.iter().map(PolicySpec::name).collect();
        check_reference(config.reference.as_deref(), &names)?;
        config.workload.check()?;
        config.scheduling.check()?;
        let sim = config.scheduling.sim(&config.workload.workload);
        for policy in &policies {
            policy.check(sim.capabilities)?;
        }
        Error::refuse_if(
            !(1..=10_000).contains(&config.seeds),
            "seeds",
            config.seeds,
            "1 to 10000",
            "Ten is usual.",
        )?;
        metric_of(METRICS, Some(&config.metric))?;
        Ok(JobsWorld {
            policies,
            sim,
            described_jobs: usize::MAX,
            config: config.clone(),
            read: OnceLock::new(),
        })
    }

    /// All workloads with their seeds; `note` receives what importers mended.
    ///
    /// # Errors
    /// A workload that cannot be made.
    pub fn instances(&self, note: &mut dyn FnMut(String)) -> Result<Vec<Instance>, Error> {
        let seeds = seeds(self.config.seed, "test", self.config.seeds as usize);
        self.config.workload.instances(&self.sim, &seeds, note)
    }

    /// Runs every policy on every instance.
    ///
    /// # Errors
    /// The first run, in the order of policies and instances, that failed.
    pub fn run(&self, instances: &[Instance], watcher: &Watcher) -> Result<Results, Error> {
        Ok(self.played(instances, watcher)?.results)
    }

    /// Where every job of every run was and when.
    ///
    /// # Errors
    /// As [`JobsWorld::run`].
    pub fn record(&self, instances: &[Instance], watcher: &Watcher) -> Result<Record, Error> {
        let mut world = self.clone();
        world.sim.record_segments = true;
        let record = world.played(instances, watcher)?.beside.record;
        Ok(record.unwrap_or_default())
    }

    fn played(&self, instances: &[Instance], watcher: &Watcher) -> Result<At, Error> {
        let asked = Comparing {
            reference: self.config.reference.clone(),
            metric: self.config.own_metric(),
            ..Comparing::default()
        };
        Ok(compare_on(self, (instances, 1.0), &asked, watcher)?.0)
    }

    fn policy(&self, name: &str) -> Result<&PolicySpec, Error> {
        let found = self.policies.iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| {
            let hint = "Name a policy of this comparison.";
            Error::config("policy", name, World::policies(self).join(", "), hint)
        })
    }

    /// The lists, read once.
    fn read(&self) -> Result<&Read, Error> {
        if let Some(read) = self.read.get() {
            return Ok(read);
        }
        let mut notes = Vec::new();
        let instances = self.instances(&mut |note| notes.push(note))?;
        Ok(self.read.get_or_init(|| Read { instances, notes }))
    }
}

/// The record of runs `[policy][list]`, list by list, policy by policy.
fn record(instances: &[Instance], outcomes: &mut [Vec<TimedRun>]) -> Record {
    let mut record = Record::default();
    for (place, instance) in instances.iter().enumerate() {
        for runs in &mut *outcomes {
            let TimedRun { run, segments, .. } = &mut runs[place];
            let segments = std::mem::take(segments);
            record
                .runs
                .push(run_of(&run.policy, &instance.workload, run.seed, segments));
        }
    }
    record
}

impl World for JobsWorld {
    type List = Instance;
    type Outcome = TimedRun;

    fn name(&self) -> &'static str {
        "jobs"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    /// With those that only this cluster has something to say in.
    fn columns(&self, _results: &Results) -> Vec<&'static str> {
        let mut columns = COLUMNS.to_vec();
        let can = self.sim.capabilities.actions();
        if !can.intersection(ActionSet::STOPPING).is_empty() {
            columns.push("preemptions");
        }
        if self.sim.outcomes.is_some() || self.sim.capacity != AvailabilityConfig::default() {
            columns.extend(["failures", "lost_work"]);
        }
        columns
    }

    fn report_columns(&self, results: &Results) -> Vec<&'static str> {
        results.known().iter().map(|metric| metric.key).collect()
    }

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (FeatureSchema::current(), DECISION_1)
    }

    fn policies(&self) -> Vec<String> {
        let names = self.policies.iter().map(PolicySpec::name);
        names.map(str::to_string).collect()
    }

    /// Those that the world was opened with.
    fn opened(&self, names: &[String]) -> Result<Vec<Policy>, Error> {
        for name in names {
            self.policy(name)?;
        }
        Ok(names.iter().cloned().map(Policy::Rule).collect())
    }

    fn asked(&self) -> (Vec<f64>, usize) {
        (vec![1.0], self.config.seeds as usize)
    }

    fn draw(&self, draw: Draw<'_>) -> Result<Vec<Instance>, Error> {
        if draw.verb == Verb::Compare && (draw.seed, draw.load) == (self.config.seed, 1.0) {
            return Ok(self.read()?.instances.clone());
        }
        let source = WorkloadSource {
            load: Some(draw.load * self.config.workload.load.unwrap_or(1.0)),
            ..self.config.workload.clone()
        };
        let drawn = seeds(draw.seed, draw.stream, draw.num);
        source.instances(&self.sim, &drawn, &mut |_| {})
    }

    fn play(&self, list: &Instance, turn: Turn<'_>, player: Player<'_>) -> Result<TimedRun, Error> {
        let Player::Rule(name) = player else {
            let hint = "pleach distill searches trees of jobs, pleach train learns networks of them.";
            let allowed = "a policy by name in a world of jobs";
            return Err(Error::config("policy", "rows that are scored", allowed, hint));
        };
        let policy = self.policy(name)?;
        // The lists have their facts.
        let sim = SimConfig {
            class_facts: false,
            ..self.sim.clone()
        };
        let silent = Watcher::silent();
        let watcher = turn.watcher.unwrap_or(&silent);
        Runner::new(&sim).run_one(list, policy, &|| Duration::ZERO, watcher)
    }

    fn figures(&self, outcome: &TimedRun) -> Vec<(&'static str, f64)> {
        let of = |metric: &'static Metric| Some((metric.key, *outcome.run.metrics.get(metric.key)?));
        METRICS.iter().filter_map(of).collect()
    }

    /// With the gaps to what no schedule of the list beats. The bound holds for the work of the list: where the model of outcomes lets
    /// jobs end before it, there is none.
    fn runs(
        &self,
        list: &Instance,
        _: (usize, f64),
        plays: &[(&str, &TimedRun)],
    ) -> Result<Vec<PolicyRun>, Error> {
        let bounds = || LowerBounds::of(&list.workload, &self.sim.capabilities);
        let bounds = self.sim.outcomes.is_none().then(bounds);
        let run = |(name, timed): &(&str, &TimedRun)| {
            let copies_jobs = self.policy(name)?.copies_jobs();
            let run = timed.run.clone();
            match bounds.filter(|_| !copies_jobs) {
                Some(bounds) => run.against(bounds),
                None => Ok(run),
            }
        };
        plays.iter().map(run).collect()
    }

    fn with_facts(&self, results: Results, lists: &[Instance]) -> Result<Results, Error> {
        let results = results
            .drawn(self.config.workload.is_drawn(&self.sim)?)
            .in_world(self.sim.in_words());
        Ok(results.with_stand_ins(stand_ins(&self.policies, lists, &self.sim)))
    }

    fn beside(
        &self,
        lists: &[Instance],
        (results, outcomes): (&Results, &mut [Vec<TimedRun>]),
        asked: &Comparing,
        watcher: &Watcher,
    ) -> Result<Beside, Error> {
        let regret = asked
            .regret
            .map(|num| regret::table(&self.sim, (&self.policies, lists), results, num, watcher))
            .transpose()?;
        let drawn = |policy: &PolicySpec| match policy.tree_policy() {
            Some(policy) => Some(Block::from(policy.tree())),
            None => policy.text().map(Block::Code),
        };
        Ok(Beside {
            tables: regret
                .map(|table| ("regret.md", "What can be won", table))
                .into_iter()
                .collect(),
            tree: self.policies.iter().find_map(drawn),
            record: self.sim.record_segments.then(|| record(lists, outcomes)),
        })
    }

    fn without<'a>(&'a self, lists: &'a [Instance]) -> Box<dyn Iterator<Item = Without<JobsWorld>> + 'a> {
        let of = move |ablation: Ablation| {
            let (sim, lists) = ablation.of(&self.sim, lists)?;
            let sim = SimConfig {
                record_utilisation: false,
                record_segments: false,
                ..sim
            };
            let can = |policy: &&PolicySpec| policy.check(sim.capabilities).is_ok();
            let world = JobsWorld {
                policies: self.policies.iter().filter(can).cloned().collect(),
                sim: sim.clone(),
                ..self.clone()
            };
            Some(Without {
                words: ablation.words(&self.sim),
                world,
                lists: Some(lists),
            })
        };
        Box::new(Ablation::ALL.into_iter().filter_map(of))
    }

    fn account(&self) -> Vec<String> {
        // A list that cannot be read is refused where it is played.
        self.read().map(|read| read.notes.clone()).unwrap_or_default()
    }

    /// That no job waits, where the lists could be others.
    fn notes(&self, results: &Results) -> Vec<String> {
        let source = &self.config.workload;
        let is_list = source.workload.iter().any(|name| WorkloadSource::is_file(name));
        let is_part = source.window_days.is_some() || source.num_jobs.is_some();
        let idle = (is_part || !is_list).then(|| idle_runs(results.runs(), is_list));
        idle.flatten().into_iter().collect()
    }

    fn loss(&self, outcome: &TimedRun) -> Loss {
        let of = |key: &str| outcome.run.metrics.get(key).copied().unwrap_or(f64::INFINITY);
        Loss {
            misses: of("avg_jct_s"),
            tail_s: of("p99_jct_s"),
            cost: 0.0,
        }
    }

    fn describe(&self, seed: u64) -> Result<Description, Error> {
        let seed = seeds(seed, "test", 1)[0];
        let policy = self.policies.first().map(|policy| (policy, self.described_jobs));
        describe::describe((&self.config.workload, seed), &self.sim, policy)
    }
}

/// Runs every policy on every workload with every seed.
///
/// ```
/// use pleach_experiments::{EvaluationConfig, evaluate};
///
/// let config: EvaluationConfig = toml::from_str(
///     "policy = ['fifo', 'srtf']\nseeds = 2\n[workload]\nworkload = ['philly-like']\nnum_jobs = 40",
/// )?;
/// let results = evaluate(&config)?;
/// assert_eq!(results.runs().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`JobsWorld::open`], [`JobsWorld::instances`] and [`JobsWorld::run`].
pub fn evaluate(config: &EvaluationConfig) -> Result<Results, Error> {
    let world = JobsWorld::open(config)?;
    let instances = world.instances(&mut |_| {})?;
    world.run(&instances, &Watcher::silent())
}
