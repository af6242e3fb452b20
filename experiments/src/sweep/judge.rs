//! What a unit learned, played on lists that all units of the sweep share.
//!
//! Rungs are ranked on lists of their own. So the lists that the sweep reports on chose no configuration on the way.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::policy_unit::{STAND_IN, means};
use super::unit_error::UnitError;
use crate::door::DOOR;
use crate::error::Error;
use crate::evaluate::evaluation::EvaluationConfig;
use crate::evaluate::instances::{Instance, seeds};
use crate::evaluate::run::Runner;
use crate::evaluate::stand_in::stand_ins;
use crate::run_folder::hash::hash_json;
use crate::worlds::jobs::JobsWorld;

/// Key of the runs in a result.
pub(super) const JUDGED: &str = "judged";
/// Name of a unit's own policy in them.
pub(super) const OWN: &str = "this unit";

/// Refuses what could not be judged, before anything is learned.
///
/// # Errors
/// A policy beside it, a workload or a setting that cannot be used.
pub fn check(config: &EvaluationConfig) -> Result<(), UnitError> {
    let policies = DOOR.open_all(&with_any(config)).map_err(Error::from)?;
    JobsWorld::of(config, policies)?;
    Ok(())
}

/// The policies beside the learned one. Without any this is `fifo`: in other evaluations an empty list means all heuristics.
fn with_any(config: &EvaluationConfig) -> Vec<String> {
    match config.policy.as_slice() {
        [] => vec!["fifo".to_string()],
        named => named.to_vec(),
    }
}

/// The policy at `learned` and those that the configuration names, on its workloads: `metrics`, the means of the first, and `judged`,
/// a run for each policy and list. `is_rung` where they are to be those that rungs are ranked on.
///
/// # Errors
/// A policy or workload that cannot be used, a run that fails.
pub fn judge(
    config: &EvaluationConfig,
    learned: &Path,
    is_rung: bool,
) -> Result<Map<String, Value>, UnitError> {
    let place = learned.display().to_string();
    let mut policies = DOOR.open(&place).map_err(Error::from)?;
    policies.truncate(1);
    policies = vec![policies.remove(0).named(Some(OWN))];
    if !config.policy.is_empty() {
        policies.extend(DOOR.open_all(&config.policy).map_err(Error::from)?);
    }
    let evaluation = JobsWorld::of(config, policies)?;
    let stream = if is_rung { "sweep/rung" } else { "test" };
    let drawn = seeds(config.seed, stream, config.seeds as usize);
    let instances = config.workload.instances(&evaluation.sim, &drawn, &mut |_| {})?;
    let lists: Vec<String> = instances.iter().map(list_hash).collect::<Result<_, _>>()?;
    let mut sim = evaluation.sim.clone();
    // The instances have their facts.
    sim.class_facts = false;
    let runs = Runner::new(&sim).run(&instances, &evaluation.policies)?;
    let others = stand_ins(&evaluation.policies, &instances, &sim);
    let num = evaluation.policies.len();
    let shown = runs.iter().enumerate().map(|(index, run)| {
        let mut shown = json!({
            "policy": run.policy, "workload": run.workload, "list": lists[index / num], "seed": run.seed,
            "metrics": run.metrics,
        });
        if let Some(other) = others.get(&run.policy) {
            shown[STAND_IN] = other.as_str().into();
        }
        shown
    });
    let mut value = Map::new();
    value.insert(JUDGED.to_string(), shown.collect());
    value.insert(
        "metrics".to_string(),
        means(runs.iter().step_by(num).map(|run| &run.metrics)),
    );
    Ok(value)
}

/// Which jobs on which cluster, whatever they are called.
fn list_hash(instance: &Instance) -> Result<String, UnitError> {
    let mut workload = (*instance.workload).clone();
    workload.name.clear();
    let value = serde_json::to_value(&workload);
    let value = value.map_err(|error| UnitError::Failed(format!("the jobs cannot be written: {error}")))?;
    Ok(hash_json(&value)[..16].to_string())
}
