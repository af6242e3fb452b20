//! Elastic sizes of a training: the numbers of GPUs for which it has a plan, with the rate of the best plan at each.
//!
//! Its batch stays, so a step does the same work on any number of GPUs. A resize costs a restart, in which the new plan reads the
//! state; what software needs that cannot load a state
//! which was cut otherwise (10 to 31 minutes for scripts that convert it) is left out.

use pleach_scheduler::Problem;
use pleach_scheduler::cluster_spec::{ClusterSpec, ElasticJob, ModelClass};
use pleach_scheduler::physics::sizes::Sizes;

use super::model::Training;
use super::search::sizes;
use super::time::Machine;

/// The elastic sizes of a training whose class is made for `num_gpus`: of the wanted ones those with a plan on every type on
/// which the class runs, at rates on the first of these types over that of `num_gpus`; none where fewer than two are left.
/// *Assumed*: sizes scale on other types as on that one, and lose as much by a loose placement as the class's own.
///
/// # Errors
/// More sizes than a table holds.
pub fn elastic_of(
    training: &Training,
    num_gpus: u32,
    wanted: &[u32],
    class: &ModelClass,
    cluster: &ClusterSpec,
) -> Result<Option<ElasticJob>, Problem> {
    let usable = class.speed.iter().enumerate().filter(|(_, speed)| **speed > 0.0);
    let machines: Vec<Machine> = usable
        .filter_map(|(kind, _)| Machine::of_cluster(cluster, kind, training))
        .collect();
    let Some((first, others)) = machines.split_first() else {
        return Ok(None);
    };
    let found = sizes(training, first, wanted.iter().copied());
    let runs_everywhere = |size: u32| {
        others
            .iter()
            .all(|machine| !sizes(training, machine, [size]).is_empty())
    };
    let rates = found.iter().filter(|size| runs_everywhere(size.num_gpus));
    let rates: Vec<(u32, f64)> = rates
        .map(|size| (size.num_gpus, size.tokens_per_s(training)))
        .collect();
    let own = rates.iter().find(|(size, _)| *size == num_gpus);
    let (Some((_, own)), true) = (own, rates.len() > 1) else {
        return Ok(None);
    };
    let table: Vec<(u32, f64)> = rates.iter().map(|(size, rate)| (*size, rate / own)).collect();
    let table = Sizes::new(&table)?;
    Ok(Some(ElasticJob {
        gpus_max: table.largest(),
        profile: table.into(),
    }))
}
