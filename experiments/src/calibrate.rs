//! Where a network stands back: below which queue a heuristic decides, and which one.
//!
//! What a network has learned is what to do where jobs wait. On a cluster that is almost empty it has nothing to order, and habits
//! that pay in a queue (wide gangs wait for a tight place) cost. So a standby is chosen by simulation, over lists of two lengths and
//! two low loads. A loss of one percent on a part is borne, what is beyond counts three times.

use pleach_env::{EnvConfig, Split};
use pleach_network::{LearnedPolicy, Standby, TrainedNetwork};
use pleach_scheduler::portable_math::ln;
use serde::Serialize;

use crate::door::PolicySpec;
use crate::error::Error;
use crate::judge::{Lists, PARTS, PartRow, REPORTED, Rivals};
use crate::progress::Watcher;

/// Queues that are tried, in GPUs that waiting jobs ask for, over all GPUs. *Assumed.*
pub const RATIOS: [f64; 8] = [0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5];

/// A loss on a part that is borne, and how often the rest of it is counted besides. *Assumed.*
const LOSS: (f64, f64) = (1.01, 2.0);

/// A 99th percentile of JCT that is borne, over the best heuristic's, and the weight of the rest. *Assumed.*
const TAIL: (f64, f64) = (1.05, 0.3);

/// The mean over the parts of the logarithm of the ratio of average JCT, twice what a part loses beyond 1 %, and 0.3 times what the
/// 99th percentile is beyond 1.05.
#[must_use]
pub fn objective(parts: &[PartRow]) -> f64 {
    let num = parts.len().max(1) as f64;
    let of = |part: &PartRow| {
        let jct = ln(part.jct.mean);
        let lost = (jct - ln(LOSS.0)).max(0.0);
        let tail = (part.p99 - TAIL.0).max(0.0);
        jct / num + LOSS.1 * lost + TAIL.1 * tail / num
    };
    parts.iter().map(of).sum()
}

/// What a standby is worth.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The policy that decides while the queue is below a bound; none: the network decides always.
    pub standby: Option<Standby>,
    /// What is to be little, [`objective`].
    pub objective: f64,
    /// Average JCT and its 99th percentile over those of the best heuristic of each part.
    pub parts: Vec<PartRow>,
}

/// What was tried, and what came of it on lists that nothing was chosen by.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// The network alone, then with the heuristic that it corrects and with the best ones of the parts.
    pub tried: Vec<Tried>,
    /// The one with the least objective, the earlier of two that are equal.
    pub chosen: usize,
    /// The network alone, on other lists.
    pub before: Vec<PartRow>,
    /// The network with the standby that was chosen, on the same.
    pub after: Vec<PartRow>,
}

/// The network with the standby that is best on `num_lists` lists of each part, or without one.
///
/// # Errors
/// Lists that cannot be drawn, a run that fails.
pub fn calibrate(
    network: &TrainedNetwork,
    env: &EnvConfig,
    seed: u64,
    num_lists: usize,
    watcher: &Watcher,
) -> Result<(TrainedNetwork, Calibration), Error> {
    let lists = Lists::draw(
        &env.in_split(Split::Validation),
        &PARTS,
        (seed, "calibrate"),
        num_lists,
        Rivals::Heuristics,
        watcher,
    )?;
    let mut names: Vec<&String> = network.contract.prior.iter().map(|prior| &prior.policy).collect();
    for name in &lists.best {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let standby = |name: &&String| {
        let policy = (*name).clone();
        RATIOS.map(|pending_gpus_ratio| {
            Some(Standby {
                policy: policy.clone(),
                pending_gpus_ratio,
            })
        })
    };
    let mut tried = Vec::new();
    for standby in std::iter::once(None).chain(names.iter().flat_map(standby)) {
        let outcomes = lists.all(&policy(&with(network, standby.clone()))?)?;
        let parts = lists.rows(&outcomes);
        tried.push(Tried {
            standby,
            objective: objective(&parts),
            parts,
        });
    }
    let least = |a: &usize, b: &usize| tried[*a].objective.total_cmp(&tried[*b].objective);
    let chosen = (0..tried.len()).min_by(least).unwrap_or(0);
    let result = with(network, tried[chosen].standby.clone());
    let fresh = Lists::draw(
        &env.in_split(Split::Test),
        &REPORTED,
        (seed, "calibrate/report"),
        num_lists,
        Rivals::Heuristics,
        watcher,
    )?;
    let before = fresh.rows(&fresh.all(&policy(&with(network, None))?)?);
    let after = fresh.rows(&fresh.all(&policy(&result)?)?);
    let calibration = Calibration {
        tried,
        chosen,
        before,
        after,
    };
    Ok((result, calibration))
}

fn with(network: &TrainedNetwork, standby: Option<Standby>) -> TrainedNetwork {
    let mut network = network.clone();
    network.contract.standby = standby;
    network
}

fn policy(network: &TrainedNetwork) -> Result<PolicySpec, Error> {
    Ok(PolicySpec::network(
        "network",
        LearnedPolicy::from_network(network)?,
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pleach_env::{Seed, Source, simulate};

    use super::*;
    use crate::train::fine_tuning::network_at;

    fn reference() -> TrainedNetwork {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkpoints/reference/PhillyGang-v1.ckpt");
        network_at(&place).unwrap()
    }

    fn ends_s(network: &TrainedNetwork) -> Vec<f64> {
        let mut env = EnvConfig::registered("Pleach/PhillyGang-v1").unwrap();
        env.workload = env.workload.resized(Some(80), None);
        let list = Source::open(&env).unwrap().workload(&env, Seed(3)).unwrap();
        let mut policy = policy(network).unwrap().policy().unwrap();
        let result = simulate(&list, &env.sim, &mut policy).unwrap();
        result.jobs.iter().map(|job| job.finish_s).collect()
    }

    #[test]
    fn a_standby_decides_below_its_queue_and_nowhere_else() {
        let network = reference();
        let prior = network.contract.prior.clone().unwrap();
        let always = |policy: &str, pending_gpus_ratio| {
            let policy = policy.to_string();
            with(
                &network,
                Some(Standby {
                    policy,
                    pending_gpus_ratio,
                }),
            )
        };
        // A network that says nothing leaves everything to the heuristic that it corrects.
        let mut silent = network.clone();
        silent.parameters.fill(0.0);
        assert_eq!(ends_s(&always(&prior.policy, 100.0)), ends_s(&silent));
        assert_ne!(ends_s(&silent), ends_s(&network));
        assert_eq!(ends_s(&always(&prior.policy, 1e-9)), ends_s(&network));
        assert_ne!(ends_s(&always("fifo", 0.5)), ends_s(&network));
    }

    #[test]
    fn a_network_with_a_standby_reads_the_cluster() {
        let mut alone = reference();
        let contract = &mut alone.contract;
        (contract.prior, contract.wide_gangs, contract.unopposed_starts) = (None, None, false);
        assert!(!policy(&alone).unwrap().reads_cluster());
        let standby = Standby {
            policy: "sjf".into(),
            pending_gpus_ratio: 0.5,
        };
        assert!(policy(&with(&alone, Some(standby))).unwrap().reads_cluster());
    }

    #[test]
    fn a_standby_that_cannot_be_is_refused() {
        for (name, ratio, words) in [
            ("sjf", 0.0, "standby.pending_gpus_ratio = 0"),
            ("sjf", f64::NAN, "standby.pending_gpus_ratio = NaN"),
            ("sjff", 1.0, "sjff"),
        ] {
            let standby = Standby {
                policy: name.into(),
                pending_gpus_ratio: ratio,
            };
            let error = policy(&with(&reference(), Some(standby)))
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn what_is_chosen_is_best_of_what_was_tried_and_may_be_nobody() {
        let mut env = EnvConfig::registered("Pleach/PhillyGang-v1").unwrap();
        env.workload = env.workload.resized(Some(30), None);
        let (result, calibration) = calibrate(&reference(), &env, 0, 2, &Watcher::silent()).unwrap();
        let chosen = &calibration.tried[calibration.chosen];
        assert!(
            calibration
                .tried
                .iter()
                .all(|tried| tried.objective >= chosen.objective)
        );
        assert!(calibration.tried[0].standby.is_none());
        assert_eq!(result.contract.standby, chosen.standby);
        assert_eq!(result.parameters, reference().parameters);
    }
}
