//! Kinds of lists: as long as usual, longer ones, and low loads. A tree that is good where it was made can lose a fifth where the
//! cluster is half empty, and nothing that looks at one kind of list sees it.

use std::sync::Arc;

use pleach_env::{EnvConfig, Seed, Source, WorkloadConfig};
use rayon::prelude::*;

use crate::error::Error;
use crate::evaluate::instances::{Instance, seeds};

/// A kind of lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Name in tables.
    pub name: &'static str,
    /// Jobs over those of an episode.
    pub times: usize,
    /// Offered load; none = that of the workload.
    pub load: Option<f64>,
    /// Lists over those of other parts, at least one: long ones cost more.
    pub share: f64,
}

const fn kind(name: &'static str, times: usize, load: Option<f64>, share: f64) -> Kind {
    Kind {
        name,
        times,
        load,
        share,
    }
}

/// What a tree or a standby is judged on beside its task.
pub const PARTS: [Kind; 4] = [
    kind("as long", 1, None, 1.0),
    kind("twice as long", 2, None, 1.0),
    kind("load 0.6", 1, Some(0.6), 1.0),
    kind("load 0.3", 1, Some(0.3), 1.0),
];

/// What a search looks at. Long lists are where there is most to win, so they are half of it.
pub const SEARCHED: [Kind; 4] = [
    PARTS[0],
    PARTS[1],
    kind("four times as long", 4, None, 1.0),
    PARTS[2],
];

/// What one of the trees that a search kept is chosen on: an almost idle cluster besides, where nothing is to be won and something to
/// be lost.
pub const CHOSEN: [Kind; 5] = [SEARCHED[0], SEARCHED[1], SEARCHED[2], SEARCHED[3], PARTS[3]];

/// What a result is reported on.
pub const REPORTED: [Kind; 5] = [
    PARTS[0],
    kind("twice as long", 2, None, 0.5),
    kind("four times as long", 4, None, 0.5),
    PARTS[2],
    PARTS[3],
];

/// An environment with lists of a kind, where an episode has `num_jobs` jobs.
pub(crate) fn env_of(env: &EnvConfig, kind: Kind, num_jobs: usize) -> EnvConfig {
    let num_jobs = (kind.times > 1).then_some(kind.times * num_jobs);
    EnvConfig {
        workload: env.workload.clone().resized(num_jobs, kind.load),
        ..env.clone()
    }
}

/// The kinds that an environment has: jobs from a file are as many as they are, and have the load that they have unless the list is
/// split.
#[must_use]
pub fn kinds_of(env: &EnvConfig, kinds: &[Kind]) -> Vec<Kind> {
    let has = |kind: &&Kind| match &env.workload {
        WorkloadConfig::File { num_jobs, split, .. } => {
            let has_load = kind.load.is_none() || split.is_some();
            has_load && Source::open(&env_of(env, **kind, *num_jobs)).is_ok()
        }
        WorkloadConfig::Generate(_) | WorkloadConfig::Mixture(_) => true,
    };
    kinds.iter().filter(has).copied().collect()
}

/// Draws `num` lists of each kind, less where it has a smaller share, in turn one of each with the place of its kind.
pub(crate) fn instances(
    env: &EnvConfig,
    kinds: &[Kind],
    (seed, stream): (u64, &str),
    num: usize,
) -> Result<Vec<(usize, Instance)>, Error> {
    let first = Source::open(env)?.workload(env, Seed(seed).child(stream, 0))?;
    let num_jobs = first.jobs.len();
    let mut of_kind: Vec<std::vec::IntoIter<Instance>> = Vec::new();
    for kind in kinds {
        let env = env_of(env, *kind, num_jobs);
        let source = Source::open(&env)?;
        let count = ((num as f64 * kind.share) as usize).max(1);
        let drawn = seeds(seed, &format!("{stream}/{}", kind.name), count);
        let instances: Vec<Instance> = drawn
            .par_iter()
            .map(|seed| {
                let workload = source.workload(&env, *seed)?;
                let seed = seed.0;
                Ok(Instance {
                    workload: Arc::new(workload),
                    seed,
                })
            })
            .collect::<Result<_, Error>>()?;
        of_kind.push(instances.into_iter());
    }
    let mut instances: Vec<(usize, Instance)> = Vec::new();
    let mut is_left = true;
    while is_left {
        is_left = false;
        for (part, left) in of_kind.iter_mut().enumerate() {
            if let Some(instance) = left.next() {
                instances.push((part, instance));
                is_left = true;
            }
        }
    }
    Ok(instances)
}
