//! What a unit of an evaluation does: one policy on one workload, drawn with the unit's seed.

use std::collections::BTreeMap;

use pleach_env::Seed;
use serde_json::{Value, json};

use crate::door::DOOR;
use crate::error::Error;
use crate::evaluate::evaluation::EvaluationConfig;
use crate::evaluate::run::Runner;
use crate::evaluate::stand_in::stand_ins;
use crate::evaluate::stats::mean;
use crate::evaluate::workload_source::WorkloadSource;
use crate::progress::Watcher;
use crate::sweep::UnitError;
use crate::worlds::jobs::JobsWorld;
use crate::worlds::{AnyWorld, Comparing, not_read, of_pairs, open};

/// Key of a result that says whose decisions the policy's are, and why, where they are another's: `as sjf: no preemption`.
pub(super) const STAND_IN: &str = "stand_in";

/// Refuses a configuration before anything runs.
///
/// # Errors
/// A setting out of its range, a policy that there is not, several policies.
pub fn check(config: &EvaluationConfig) -> Result<(), UnitError> {
    match world_of(config)? {
        Some(world) => {
            one_policy(config)?;
            Ok(world.check(&config.policy)?)
        }
        None => opened(config).map(drop),
    }
}

/// The world of a unit; none where it is that of jobs.
fn world_of(config: &EvaluationConfig) -> Result<Option<Box<dyn AnyWorld>>, UnitError> {
    let Some((world, _)) = open(&config.workload.workload, of_pairs(&config.set)?)? else {
        return Ok(None);
    };
    let read = EvaluationConfig {
        policy: config.policy.clone(),
        set: config.set.clone(),
        workload: WorkloadSource {
            workload: config.workload.workload.clone(),
            ..WorkloadSource::default()
        },
        seed: config.seed,
        ..EvaluationConfig::default()
    };
    let [given, read] = [config, &read].map(|config| json!(config));
    match first_other(&given, &read) {
        Some(key) => Err(not_read(&key, world.name()).into()),
        None => Ok(Some(world)),
    }
}

/// The first key whose value is another, of tables in tables.
fn first_other(one: &Value, other: &Value) -> Option<String> {
    let changed = |(key, value): (&String, &Value)| match value {
        Value::Object(_) => first_other(value, &other[key]),
        _ => (other.get(key) != Some(value)).then(|| key.clone()),
    };
    one.as_object()?.iter().find_map(changed)
}

/// A policy on the lists of a world, drawn with the unit's seed.
fn of_world(world: &dyn AnyWorld, config: &EvaluationConfig, seed: u64) -> Result<Value, UnitError> {
    let asked = Comparing {
        policies: config.policy.clone(),
        seed,
        ..Comparing::default()
    };
    let compared = world.compare(&asked, &Watcher::silent())?;
    let [at] = compared.at.as_slice() else {
        let hint = "Put loads under [grid]: a unit each.";
        return Err(Error::config("loads", compared.at.len(), "one load in a unit", hint).into());
    };
    let runs = at.results.runs();
    let policy = at
        .results
        .policies()
        .map(|(name, _)| name)
        .next()
        .unwrap_or_default();
    Ok(
        json!({"policy": policy, "workload": world.name(), "metrics": means(runs.iter().map(|run| &run.metrics))}),
    )
}

/// The policy of a unit.
fn one_policy(config: &EvaluationConfig) -> Result<&String, Error> {
    let [policy] = config.policy.as_slice() else {
        let hint = "Put the list under [grid]: a unit each.";
        let found = config.policy.join(",");
        return Err(Error::config("policy", found, "one policy in a unit", hint));
    };
    Ok(policy)
}

fn opened(config: &EvaluationConfig) -> Result<JobsWorld, UnitError> {
    let policy = DOOR.open_one(one_policy(config)?).map_err(Error::from)?;
    Ok(JobsWorld::of(config, vec![policy])?)
}

/// Runs the policy on the workload of the seed. Where that is several, as of windows, `runs` has each and `metrics` their means.
///
/// # Errors
/// As [`check`], and runs that fail.
pub fn work(config: &EvaluationConfig, seed: u64) -> Result<Value, UnitError> {
    if let Some(world) = world_of(config)? {
        return of_world(world.as_ref(), config, seed);
    }
    let evaluation = opened(config)?;
    let source = &config.workload;
    let instances = source.instances(&evaluation.sim, &[Seed(seed)], &mut |_| {})?;
    let mut sim = evaluation.sim.clone();
    // The instances have their facts.
    sim.class_facts = false;
    let runs = Runner::new(&sim).run(&instances, &evaluation.policies)?;
    let first = runs.first();
    let first = first.ok_or_else(|| UnitError::Failed("the workload has no jobs".into()))?;
    let mut value = json!({"policy": first.policy, "workload": first.workload, "metrics": first.metrics});
    if runs.len() > 1 {
        value["workload"] = source.workload.join(",").into();
        value["metrics"] = means(runs.iter().map(|run| &run.metrics));
        let shown = runs.iter();
        let shown =
            shown.map(|run| json!({"workload": run.workload, "seed": run.seed, "metrics": run.metrics}));
        value["runs"] = shown.collect();
    }
    if let Some(other) = stand_ins(&evaluation.policies, &instances, &sim).remove(&first.policy) {
        value[STAND_IN] = other.into();
    }
    Ok(value)
}

/// The mean of each metric that all runs have.
pub(super) fn means<'a>(runs: impl Iterator<Item = &'a BTreeMap<String, f64>>) -> Value {
    let runs: Vec<_> = runs.collect();
    let Some(first) = runs.first() else {
        return json!({});
    };
    let of = |key: &String| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| run.get(key).copied()).collect();
        values.map(|values| (key.clone(), json!(mean(&values))))
    };
    Value::Object(first.keys().filter_map(of).collect())
}
