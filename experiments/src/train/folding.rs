//! The last step of a training: the best network is folded, see [`pleach_network::fold`].

use std::path::Path;

use pleach_env::simulate::{SimConfig, simulate};
use pleach_network::{FeatureRanges, LearnedPolicy, TrainedNetwork, Watched, fold};
use rayon::prelude::*;

use crate::contest::Bout;
use crate::error::Error;
use crate::scenario::env_error;
use crate::settings::network_error;

/// Takes what never varies on the bouts out of the network of a file, notes whether all their clusters have one GPU type, writes
/// the file again, and returns the network. Doing it twice changes nothing.
///
/// # Errors
/// A file that is no network or cannot be written; the first run, in order, that fails.
pub fn fold_network(path: &Path, bouts: &[Bout], sim: &SimConfig) -> Result<LearnedPolicy, Error> {
    let mut network = TrainedNetwork::load(path).map_err(network_error)?;
    let policy = LearnedPolicy::from_network(&network).map_err(network_error)?;
    let seen = bouts
        .par_iter()
        .map(|bout| {
            let sim = SimConfig {
                seed: bout.seed,
                ..sim.clone()
            };
            let mut watched = Watched::new(policy.clone());
            simulate(&bout.workload, &sim, &mut watched).map_err(env_error)?;
            Ok(watched.into_seen())
        })
        .collect::<Result<Vec<FeatureRanges>, Error>>()?;
    let nothing = FeatureRanges::new(policy.layout());
    let constants = seen.iter().fold(nothing, FeatureRanges::merge).constants();
    fold(policy.layout(), &mut network.parameters, &constants);
    network.contract.one_type = bouts
        .iter()
        .all(|bout| bout.workload.cluster.gpu_types.len() == 1);
    network.save(path).map_err(network_error)?;
    LearnedPolicy::from_network(&network).map_err(network_error)
}
