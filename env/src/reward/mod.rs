//! Rewards: named time integrals, mixed by weight or in [words](Expression).
//!
//! By Little's law the time integral of the number of jobs in the system is the sum of all JCTs, so its negative,
//! handed out piece by piece as time passes, is a dense reward whose undiscounted return is the objective itself.

mod expression;
mod quantities;
mod registry;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::expression::Expression;
use self::expression::Summed;
pub use self::quantities::markdown as reward_markdown;
pub use self::registry::{OwnReward, register_rewards};
use crate::world::{Integrals, World};
use pleach_workloads::Workload;

/// What is rewarded: weights of three integrals, each scaled such that 1 is a natural unit of the workload, or an expression. In
/// files it is a table of the weights, or the text of the expression.
#[derive(Clone, Debug, PartialEq)]
pub enum RewardConfig {
    /// Weights.
    Weights(RewardWeights),
    /// In words.
    Expression(Expression),
}

/// Weights of the integrals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardWeights {
    /// Weight of minus the average JCT over the average isolated run time.
    pub jct: f64,
    /// Weight of minus the average slowdown.
    pub slowdown: f64,
    /// Weight of the held GPU time over the workload's isolated GPU time.
    pub utilisation: f64,
}

impl Default for RewardWeights {
    fn default() -> RewardWeights {
        RewardWeights {
            jct: 1.0,
            slowdown: 0.0,
            utilisation: 0.0,
        }
    }
}

impl Default for RewardConfig {
    fn default() -> RewardConfig {
        RewardConfig::Weights(RewardWeights::default())
    }
}

impl RewardConfig {
    /// Whether nothing is ever paid.
    #[must_use]
    pub fn pays_nothing(&self) -> bool {
        match self {
            RewardConfig::Weights(weights) => {
                [weights.jct, weights.slowdown, weights.utilisation] == [0.0; 3]
            }
            RewardConfig::Expression(expression) => expression.is_nothing(),
        }
    }

    /// The first weight and whether all are in their range, 0 to 1e6.
    pub(crate) fn checked(&self) -> (f64, bool) {
        match self {
            RewardConfig::Weights(weights) => {
                let all = [weights.jct, weights.slowdown, weights.utilisation];
                (all[0], all.iter().all(|weight| (0.0..=1e6).contains(weight)))
            }
            RewardConfig::Expression(_) => (1.0, true),
        }
    }
}

impl Serialize for RewardConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RewardConfig::Weights(weights) => weights.serialize(serializer),
            RewardConfig::Expression(expression) => serializer.serialize_str(expression.text()),
        }
    }
}

impl<'de> Deserialize<'de> for RewardConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RewardConfig, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = RewardConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("weights (jct, slowdown, utilisation) or an expression")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RewardConfig, E> {
                Expression::parse(text)
                    .map(RewardConfig::Expression)
                    .map_err(E::custom)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RewardConfig, M::Error> {
                RewardWeights::deserialize(MapAccessDeserializer::new(map)).map(RewardConfig::Weights)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// Reads integrals as rewards: each reading is what was gained since the last.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    last: Integrals,
    pays: Pays,
    /// Whether what is paid depends on [`World::excess_run_s`], which takes a look at all jobs.
    reads_excess: bool,
}

#[derive(Clone, Debug)]
enum Pays {
    /// Reward per unit of each integral.
    Weights {
        jobs_s: f64,
        slowdown: f64,
        held_gpu_s: f64,
    },
    Expression(Vec<(Summed, f64)>),
}

impl Meter {
    pub(crate) fn new(config: &RewardConfig, workload: &Workload) -> Meter {
        let pays = match config {
            RewardConfig::Weights(weights) => Pays::of(weights, workload),
            RewardConfig::Expression(expression) => Pays::Expression(expression.weights(workload)),
        };
        let reads_excess = match &pays {
            Pays::Weights { .. } => false,
            Pays::Expression(weights) => weights.iter().any(|(summed, _)| summed.reads_excess()),
        };
        Meter {
            last: Integrals::default(),
            pays,
            reads_excess,
        }
    }

    /// The same, reading the excess whatever the reward names.
    pub(crate) fn reading_excess(self, also: bool) -> Meter {
        Meter {
            reads_excess: self.reads_excess || also,
            ..self
        }
    }

    /// The reward of what was gained since the last reading, and what that was.
    pub(crate) fn read(&mut self, world: &World) -> (f32, Integrals) {
        let mut now = world.integrals();
        if self.reads_excess {
            now.excess_run_s = world.excess_run_s();
        }
        self.pay(now)
    }

    fn pay(&mut self, now: Integrals) -> (f32, Integrals) {
        let gained = now.since(std::mem::replace(&mut self.last, now));
        let reward = match &self.pays {
            Pays::Weights {
                jobs_s,
                slowdown,
                held_gpu_s,
            } => jobs_s * gained.jobs_s + slowdown * gained.slowdown + held_gpu_s * gained.held_gpu_s,
            Pays::Expression(weights) => weights
                .iter()
                .map(|(summed, weight)| weight * summed.of(&gained))
                .sum(),
        };
        (reward as f32, gained)
    }
}

impl Pays {
    fn of(weights: &RewardWeights, workload: &Workload) -> Pays {
        let num_jobs = workload.jobs.len().max(1) as f64;
        let run_s: f64 = workload.jobs.iter().map(|job| job.run_time_s).sum();
        let gpu_s: f64 = workload
            .jobs
            .iter()
            .map(|job| job.run_time_s * f64::from(job.num_gpus))
            .sum();
        Pays::Weights {
            jobs_s: -weights.jct / run_s.max(f64::MIN_POSITIVE),
            slowdown: -weights.slowdown / num_jobs,
            held_gpu_s: weights.utilisation / gpu_s.max(f64::MIN_POSITIVE),
        }
    }
}
