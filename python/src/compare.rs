//! Comparisons and distillations for Python, with policies of ours and functions of Python side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleach_distill::DistillConfig;
use pleach_env::workload::generate::generate;
use pleach_env::{EnvConfig, Seed, SimConfig, Source, Split, WorkloadConfig};
use pleach_experiments::distill::prune;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::evaluate::metric::Metric;
use pleach_experiments::evaluate::stand_in::stand_ins;
use pleach_experiments::train::validation::Validation;
use pleach_experiments::{
    Error, EvaluationConfig, Instance, JobsWorld, PolicyRun, PolicySpec, Results, Runner, Watcher,
    WorkloadSource,
};
use pleach_scheduler::policy::CandidateConfig;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::callable::{Callable, offered};
use crate::errors::{of_env, of_experiment, refused};
use crate::interrupt::Work;
use crate::lockstep;
use crate::policy::Policy;
use crate::settings::settings;
use crate::workload::Workload;

/// Workloads on which a tree is chosen: as many as on the command line.
const NUM_VALIDATION: usize = 32;

pub(crate) fn read<T: DeserializeOwned>(key: &str, text: &str, hint: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| refused(key, error, "its keys", hint))
}

/// The exception of a function of Python where one was raised, else ours.
fn raised(policies: &[PyRef<'_, Policy>], error: Error) -> PyErr {
    let own = policies.iter().find_map(|policy| policy.take_failure());
    own.unwrap_or_else(|| of_experiment(error))
}

/// Where policies meet.
enum Arena {
    /// Workloads by name, in the conditions of the configuration.
    Named,
    /// Lists that are there, in the conditions of the configuration.
    Lists(Vec<Instance>),
    /// An environment by its id and its settings: its episodes, in its own conditions.
    Env(String, Box<EnvConfig>),
}

impl Arena {
    /// What functions choose among.
    fn offered(&self, config: &EvaluationConfig) -> PyResult<CandidateConfig> {
        match self {
            Arena::Named => offered(&config.workload, &config.scheduling),
            Arena::Lists(_) => offered(&WorkloadSource::default(), &config.scheduling),
            Arena::Env(_, env) => Ok(env.candidates),
        }
    }

    fn run(
        self,
        config: &EvaluationConfig,
        players: Vec<Player>,
        watcher: &Watcher,
    ) -> Result<Results, Error> {
        let specs: Vec<PolicySpec> = players.iter().map(|player| player.spec.clone()).collect();
        let (instances, sim) = match self {
            Arena::Named => {
                let world = JobsWorld::of(config, specs.clone())?;
                let drawn = world.instances(&mut |_| {})?;
                if players.iter().all(|player| player.of_many.is_none()) {
                    return world.run(&drawn, watcher);
                }
                // The instances have their facts.
                let sim = SimConfig {
                    class_facts: false,
                    ..config.scheduling.sim(&config.workload.workload)
                };
                (drawn, sim)
            }
            Arena::Lists(instances) => {
                config.scheduling.check()?;
                (instances, config.scheduling.sim(&[]))
            }
            Arena::Env(id, env) => (episodes(&env, &id, config)?, env.sim),
        };
        for spec in &specs {
            spec.check(sim.capabilities)?;
        }
        let metric = Metric::find(&config.metric)
            .ok_or_else(|| Error::config("metric", &config.metric, "a metric", "avg_jct_s is usual."))?;
        let first = specs.first().map(|spec| spec.name().to_owned());
        let runs = runs(&players, &instances, &sim, watcher)?;
        let reference = config.reference.clone().or(first);
        let results = Results::by(metric, "evaluate", runs, reference.as_deref())?;
        Ok(results.with_stand_ins(stand_ins(&specs, &instances, &sim)))
    }
}

/// What is compared: a policy, and beside it the function that it is, where that takes the decisions of many lists at once.
struct Player {
    spec: PolicySpec,
    of_many: Option<Callable>,
}

/// All runs, instance by instance, policy by policy.
fn runs(
    players: &[Player],
    instances: &[Instance],
    sim: &SimConfig,
    watcher: &Watcher,
) -> Result<Vec<PolicyRun>, Error> {
    let alone = |player: &&Player| player.of_many.is_none();
    let specs: Vec<PolicySpec> = players
        .iter()
        .filter(alone)
        .map(|player| player.spec.clone())
        .collect();
    let mut of_alone = Runner::new(sim)
        .watched("evaluate", watcher)
        .run(instances, &specs)?
        .into_iter();
    let mut of_many = Vec::new();
    for player in players {
        let played = |function| lockstep::play(function, player.spec.name(), instances, sim, watcher);
        of_many.push(
            player
                .of_many
                .as_ref()
                .map(played)
                .transpose()?
                .map(Vec::into_iter),
        );
    }
    let in_order = instances
        .iter()
        .flat_map(|_| 0..players.len())
        .filter_map(|place| match &mut of_many[place] {
            Some(runs) => runs.next(),
            None => of_alone.next(),
        });
    Ok(in_order.collect())
}

/// Episodes of an environment, the same as by its id where it has no other settings; one where all would be the same.
fn episodes(env: &EnvConfig, id: &str, config: &EvaluationConfig) -> Result<Vec<Instance>, Error> {
    // Of a list that is split, the part that was not trained on.
    let env = &env.in_split(Split::Test);
    let source = Source::open(env)?;
    let draw = |seed: Seed| -> Result<Instance, Error> {
        let mut workload = match &env.workload {
            WorkloadConfig::Generate(generator) => generate(generator, seed)?,
            WorkloadConfig::File { .. } | WorkloadConfig::Mixture(_) => source.workload(env, seed)?,
        };
        id.clone_into(&mut workload.name);
        Ok(Instance {
            workload: Arc::new(workload),
            seed: seed.0,
        })
    };
    let seeds = seeds(config.seed, "test", config.seeds as usize);
    let mut drawn: Vec<Instance> = seeds.into_iter().map(draw).collect::<Result<_, _>>()?;
    let is_drawn = WorkloadSource::default().is_drawn(&env.sim)?;
    if !is_drawn && drawn.iter().all(|one| one.workload == drawn[0].workload) {
        drawn.truncate(1);
    }
    Ok(drawn)
}

/// Lists with their seeds. Lists with one name get a seed each, as draws of a generator have: a run is identified by name and
/// seed.
fn lists(workloads: &[PyRef<'_, Workload>], seed: u64) -> Vec<Instance> {
    let mut seeds: BTreeMap<&str, u64> = BTreeMap::new();
    let instances = workloads.iter().map(|workload| {
        let next = seeds.entry(&workload.0.name).or_insert(seed);
        let seed = *next;
        *next = next.wrapping_add(1);
        Instance {
            workload: Arc::clone(&workload.0),
            seed,
        }
    });
    instances.collect()
}

/// Compares policies by a configuration in JSON, on workloads that are there, or in an environment (id and settings): the
/// results, and one object for each run, in JSON.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    policies: Vec<PyRef<'_, Policy>>,
    config: &str,
    workloads: Vec<PyRef<'_, Workload>>,
    env: Option<(String, String)>,
    num_threads: usize,
) -> PyResult<(String, String)> {
    let config: EvaluationConfig = read("config", config, "help(pleach.evaluate) names them.")?;
    let arena = match env {
        Some((id, changes)) => {
            let env = settings(&id, &changes).map_err(of_env)?;
            Arena::Env(id, Box::new(env))
        }
        None if workloads.is_empty() => Arena::Named,
        None => Arena::Lists(lists(&workloads, config.seed)),
    };
    let offered = arena.offered(&config)?;
    let own = Work::default();
    let mut specs: Vec<PolicySpec> = Vec::new();
    for policy in &policies {
        policy.among(&offered, &own.errands).join(&mut specs);
    }
    let of_many = policies
        .iter()
        .map(|policy| policy.of_many(&offered, &own.errands));
    let players = specs
        .into_iter()
        .zip(of_many)
        .map(|(spec, of_many)| Player { spec, of_many })
        .collect();
    let watcher = own.wish.watcher();
    let done = own.run(py, num_threads, move || arena.run(&config, players, &watcher))?;
    let results = done.map_err(|error| raised(&policies, error))?;
    let text = |value: Result<String, serde_json::Error>| {
        value.map_err(|error| of_experiment(Error::Failed(error.to_string())))
    };
    Ok((
        text(serde_json::to_string(&results))?,
        text(serde_json::to_string(results.runs()))?,
    ))
}

/// Distils a teacher on the episodes of an environment: the tree's file, the tree in words, the report in JSON.
#[pyfunction]
pub(crate) fn distill(
    py: Python<'_>,
    teacher: PyRef<'_, Policy>,
    id: &str,
    changes: &str,
    config: &str,
    seed: u64,
    num_threads: usize,
) -> PyResult<(String, String, String)> {
    let env = settings(id, changes).map_err(of_env)?;
    let config: DistillConfig = read("config", config, "help(pleach.distill) names them.")?;
    let own = Work::default();
    let spec = teacher.among(&env.candidates, &own.errands);
    spec.check(env.sim.capabilities).map_err(of_experiment)?;
    let watcher = own.wish.watcher();
    let done = own.run(py, num_threads, move || {
        let validation = Validation::new(&env, seed, NUM_VALIDATION)?;
        prune(&env, &spec, &config, &validation, seed, &watcher)
    })?;
    let distilled = done.map_err(|error| raised(&[teacher], error))?;
    let report = serde_json::to_string(&distilled.report)
        .map_err(|error| of_experiment(Error::Failed(error.to_string())))?;
    Ok((distilled.tree.to_json(), distilled.tree.to_text(), report))
}
