//! Comparisons and distillations for Python, with policies of ours and functions of Python side by side.

use std::collections::BTreeMap;

use pleach_distill::DistillConfig;
use pleach_experiments::distill::prune;
use pleach_experiments::evaluate::evaluation::{Evaluation, EvaluationConfig};
use pleach_experiments::evaluate::metric::Metric;
use pleach_experiments::evaluate::policy_spec::PolicySpec;
use pleach_experiments::evaluate::results::Results;
use pleach_experiments::train::validation::Validation;
use pleach_experiments::{Error, Instance, Runner};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::errors::{of_env, of_experiment, refused};
use crate::interrupt::{self, Wish};
use crate::policy::Policy;
use crate::settings::settings;
use crate::workload::Workload;

/// Workloads on which a tree is chosen: as many as on the command line.
const NUM_VALIDATION: usize = 32;

fn read<T: DeserializeOwned>(key: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| refused(key, error, "its keys", "See docs/python.md."))
}

/// The exception of a function of Python where one was raised, else ours.
fn raised(policies: &[PyRef<'_, Policy>], error: Error) -> PyErr {
    let own = policies.iter().find_map(|policy| policy.take_failure());
    own.unwrap_or_else(|| of_experiment(error))
}

/// Compares policies by a configuration in JSON, or on workloads that are there: the results, and one object for each run, in
/// JSON.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    policies: Vec<PyRef<'_, Policy>>,
    config: &str,
    workloads: Vec<PyRef<'_, Workload>>,
    num_threads: usize,
) -> PyResult<(String, String)> {
    let config: EvaluationConfig = read("config", config)?;
    let mut specs: Vec<PolicySpec> = Vec::new();
    for policy in &policies {
        policy.spec.clone().join(&mut specs);
    }
    // Of lists with one name each has a seed of its own, as draws of a generator have: runs are told apart by both.
    let mut seeds: BTreeMap<&str, u64> = BTreeMap::new();
    let instances: Vec<Instance> = workloads
        .iter()
        .map(|workload| {
            let next = seeds.entry(&workload.0.name).or_insert(config.seed);
            let seed = *next;
            *next = next.wrapping_add(1);
            Instance {
                workload: (*workload.0).clone(),
                seed,
            }
        })
        .collect();
    let wish = Wish::default();
    let watcher = wish.watcher();
    let done = interrupt::run(py, num_threads, &wish, move || -> Result<Results, Error> {
        if instances.is_empty() {
            let evaluation = Evaluation::of(&config, specs)?;
            let drawn = evaluation.instances(&mut |_| {})?;
            return evaluation.run(&drawn, &watcher);
        }
        config.scheduling.check()?;
        let sim = config.scheduling.sim(&[]);
        for spec in &specs {
            spec.check(sim.capabilities)?;
        }
        let metric = Metric::find(&config.metric)
            .ok_or_else(|| Error::config("metric", &config.metric, "a metric", "avg_jct_s is usual."))?;
        let first = specs.first().map(|spec| spec.name().to_owned());
        let runs = Runner::new(&sim)
            .watched("evaluate", &watcher)
            .run(&instances, &specs)?;
        let reference = config.reference.clone().or(first);
        Results::by(metric, "evaluate", runs, reference.as_deref())
    })?;
    let results = done.map_err(|error| raised(&policies, error))?;
    let text = |value: Result<String, serde_json::Error>| {
        value.map_err(|error| of_experiment(Error::Failed(error.to_string())))
    };
    Ok((
        text(serde_json::to_string(&results))?,
        text(serde_json::to_string(results.runs()))?,
    ))
}

/// Settings of the candidates of an environment with these changes, in JSON.
#[pyfunction]
pub(crate) fn candidates_of(id: &str, changes: &str) -> PyResult<String> {
    let env = settings(id, changes).map_err(of_env)?;
    serde_json::to_string(&env.candidates).map_err(|error| of_experiment(Error::Failed(error.to_string())))
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
    let config: DistillConfig = read("config", config)?;
    let spec = teacher.spec.clone();
    spec.check(env.sim.capabilities).map_err(of_experiment)?;
    let wish = Wish::default();
    let watcher = wish.watcher();
    let done = interrupt::run(py, num_threads, &wish, move || {
        let validation = Validation::new(&env, seed, NUM_VALIDATION)?;
        prune(&env, &spec, &config, &validation, seed, &watcher)
    })?;
    let distilled = done.map_err(|error| raised(&[teacher], error))?;
    let report = serde_json::to_string(&distilled.report)
        .map_err(|error| of_experiment(Error::Failed(error.to_string())))?;
    Ok((distilled.tree.to_json(), distilled.tree.to_text(), report))
}
