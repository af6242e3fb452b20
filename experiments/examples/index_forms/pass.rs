//! Passes over a cluster whose leases have ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pleach_baselines::dealing::{Dealer, DealingRules, Order, PassOrder, Step};
use pleach_experiments::index_search::Searched;
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::observation::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES};
use pleach_scheduler::policy::{CandidateConfig, DecisionPoint, Needs, Policy};
use pleach_scheduler::{
    ActionKind, ActionSet, ConfigError, FeatureSchema, GpuTypeId, JobId, Planner, PolicyError,
};

/// Weights: of a candidate's features; of the cluster's, which count for *hold*; for staying on a type and for moving to another.
const NUM_WEIGHTS: usize = NUM_CANDIDATE_FEATURES + NUM_GLOBAL_FEATURES + 2;

/// Who runs where, shared by an order and its policy.
type Kept = Arc<Mutex<BTreeMap<JobId, GpuTypeId>>>;

/// A weighted sum of features as a policy.
struct Linear {
    weights: Vec<f64>,
    kept: Kept,
}

fn needs() -> Needs {
    let config = CandidateConfig {
        actions: ActionSet::of(ActionKind::Resize),
        ..CandidateConfig::default()
    };
    config.needs()
}

impl Policy for Linear {
    fn name(&self) -> &str {
        "linear"
    }

    fn needs(&self) -> Needs {
        needs()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let kept = self.kept.lock().unwrap_or_else(|broken| broken.into_inner());
        let (own, rest) = self.weights.split_at(NUM_CANDIDATE_FEATURES);
        let (of_hold, of_keeping) = rest.split_at(NUM_GLOBAL_FEATURES);
        let sum = |weights: &[f64], features: &[f32]| -> f64 {
            weights
                .iter()
                .zip(features)
                .map(|(weight, value)| weight * f64::from(*value))
                .sum()
        };
        for (index, (candidate, score)) in point.candidates.iter().zip(scores).enumerate() {
            let mut value = sum(own, point.observation.row(index));
            match (candidate.job, candidate.facts) {
                (Some(job), Some(facts)) => match kept.get(&job) {
                    Some(kind) if *kind == facts.gpu_type => value += of_keeping[0],
                    Some(_) => value += of_keeping[1],
                    None => {}
                },
                _ => value += sum(of_hold, point.observation.global),
            }
            *score = value as f32;
        }
        Ok(())
    }
}

/// The order of such a policy, which is told who runs where.
struct KeepingOrder {
    order: PassOrder<Linear>,
    kept: Kept,
}

impl Order for KeepingOrder {
    fn look(&mut self, cluster: &Cluster, movable: &[JobId]) -> Result<(), PolicyError> {
        let kept = movable.iter().map(|id| (*id, cluster.job(*id).gpu_type));
        *self.kept.lock().unwrap_or_else(|broken| broken.into_inner()) = kept.collect();
        self.order.look(cluster, movable)
    }

    fn of_job(&self, cluster: &Cluster, id: JobId) -> f64 {
        self.order.of_job(cluster, id)
    }

    fn of_type(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        self.order.of_type(cluster, id, kind)
    }

    fn of_step(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId, step: &Step) -> f64 {
        self.order.of_step(cluster, id, kind, step)
    }
}

/// Weights of passes, as numbers.
pub struct Passes {
    /// The rules of deals, which the search leaves as they are.
    pub rules: DealingRules,
}

impl Searched for Passes {
    fn first(&self) -> Vec<f64> {
        let mut weights = vec![0.0; NUM_WEIGHTS];
        let schema = FeatureSchema::current();
        // Least attained service for each GPU, as `las-deal` has it: natural logarithms of what the features have scaled.
        let by_hand = [
            ("is_hold", -60.0),
            ("attained_gpu_s", -18.4),
            ("num_gpus", 1.15),
            ("speed_ratio", 8.0),
            ("type_advantage", 2.0),
            ("locality", 4.0),
        ];
        for (name, weight) in by_hand {
            weights[schema.joined_index(name).unwrap_or(0)] = weight;
        }
        weights[NUM_WEIGHTS - 2] = 0.4;
        weights
    }

    fn steps(&self) -> Vec<f64> {
        vec![1.0; NUM_WEIGHTS]
    }

    fn planner(&self, numbers: &[f64]) -> Result<Box<dyn Planner>, ConfigError> {
        let kept = Kept::default();
        let policy = Linear {
            weights: numbers.to_vec(),
            kept: kept.clone(),
        };
        let order = KeepingOrder {
            order: PassOrder::new(policy),
            kept,
        };
        Ok(Box::new(Dealer::new("pass", self.rules, order)?))
    }
}
