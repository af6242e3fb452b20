//! The last step of a training: the best network is folded, see [`pleach_network::fold`].

use std::path::Path;

use pleach_env::{SimConfig, simulate};
use pleach_network::{FeatureRanges, LearnedPolicy, TrainedNetwork, Watched, fold};
use rayon::prelude::*;

use crate::error::Error;
use crate::evaluate::instances::Instance;

/// Takes what never varies on the instances out of the network of a file, notes whether all their clusters have one GPU type, writes
/// the file again, and returns the network. Doing it twice changes nothing.
///
/// # Errors
/// A file that is no checkpoint or cannot be written; the first run, in order, that fails.
pub(crate) fn fold_network(
    path: &Path,
    instances: &[Instance],
    sim: &SimConfig,
) -> Result<LearnedPolicy, Error> {
    let mut network = TrainedNetwork::load(path)?;
    let policy = LearnedPolicy::from_network(&network)?;
    let seen = instances
        .par_iter()
        .map(|instance| {
            let sim = SimConfig {
                seed: instance.seed,
                ..sim.clone()
            };
            let mut watched = Watched::new(policy.clone());
            simulate(&instance.workload, &sim, &mut watched)?;
            Ok(watched.into_seen())
        })
        .collect::<Result<Vec<FeatureRanges>, Error>>()?;
    let nothing = FeatureRanges::new(policy.layout());
    let constants = seen.iter().fold(nothing, FeatureRanges::merge).constants();
    fold(policy.layout(), &mut network.parameters, &constants);
    network.contract.one_type = instances
        .iter()
        .all(|instance| instance.workload.cluster.gpu_types.len() == 1);
    network.save(path)?;
    LearnedPolicy::from_network(&network).map_err(Error::from)
}
