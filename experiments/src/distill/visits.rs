//! Lists simulated under a tree, with a function that sees for each decision in which leaves its candidates end.

use pleach_env::{SimConfig, simulate_planner};
use pleach_scheduler::tree::{Tree, TreePolicy, Visits};
use pleach_scheduler::{DecisionPoint, PolicyError, PolicyPlanner, Watched};
use serde_json::json;

use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::run_folder::hash::hash_bytes;

/// Simulates the lists one after the other and shows the leaves' numbers of all that may be chosen, decision by decision, with the
/// list's number.
///
/// # Errors
/// A run that fails.
pub(super) fn watch(
    tree: &Tree,
    (instances, sim): (&[Instance], &SimConfig),
    mut visit: impl FnMut(usize, &[u32]) + Send,
) -> Result<(), Error> {
    let policy = TreePolicy::new(tree.clone());
    let (mut leaves, mut offered) = (Vec::new(), Vec::new());
    for (number, instance) in instances.iter().enumerate() {
        let sim = SimConfig {
            seed: instance.seed,
            ..sim.clone()
        };
        let seen =
            |policy: &TreePolicy, point: &DecisionPoint<'_>, scores: &[f32]| -> Result<(), PolicyError> {
                leaves.resize(scores.len(), 0);
                policy.leaves(&point.observation, &mut leaves)?;
                let may = leaves.iter().zip(point.observation.mask).filter(|(_, may)| **may);
                offered.clear();
                offered.extend(may.map(|(leaf, _)| *leaf));
                visit(number, &offered);
                Ok(())
            };
        let mut planner = PolicyPlanner::new(Watched::new(policy.clone(), seen));
        simulate_planner(&instance.workload, &sim, &mut planner)?;
    }
    Ok(())
}

/// Records what a tree is offered on lists: the histogram for its file, with where it comes from.
///
/// # Errors
/// A run that fails, a list without a JSON form.
pub fn record(tree: &Tree, instances: &[Instance], sim: &SimConfig, seed: u64) -> Result<Visits, Error> {
    let mut visits = Visits::none(tree.num_leaves());
    watch(tree, (instances, sim), |_, offered| visits.add(offered))?;
    let mut names: Vec<&str> = instances.iter().map(|list| list.workload.name.as_str()).collect();
    names.dedup();
    let num_jobs: usize = instances.iter().map(|list| list.workload.jobs.len()).sum();
    let mut hashes = String::new();
    for list in instances {
        let jobs = serde_json::to_vec(&list.workload.jobs)
            .map_err(|error| Error::Failed(format!("{}: {error}", list.workload.name)))?;
        hashes.push_str(&hash_bytes(&jobs));
    }
    visits.recorded_on = [
        // Enough to know them again; a trace that is cut into hundreds of windows has as many names.
        ("workloads", json!(&names[..names.len().min(16)])),
        ("num_lists", json!(instances.len())),
        ("num_jobs", json!(num_jobs)),
        ("jobs_sha256", json!(hash_bytes(hashes.as_bytes()))),
        ("seed", json!(seed)),
    ]
    .map(|(key, value)| (key.to_string(), value))
    .into();
    Ok(visits)
}
