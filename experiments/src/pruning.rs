//! Distilling a policy on the episodes of an environment, judged on validation workloads.

use std::collections::BTreeMap;

use pleach_distill::{DistillConfig, Distilled, Episode, Label, distill};
use pleach_env::config::{EnvConfig, Source};
use pleach_env::seed::Seed;
use pleach_env::simulate::{SimConfig, simulate};
use pleach_env::workload::estimates::EstimateModel;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::error::PolicyError;
use pleach_scheduler::estimate::Provenance;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy, TieKey};
use pleach_scheduler::tree::TreePolicy;

use crate::contestant::Contestant;
use crate::error::Error;
use crate::scenario::env_error;
use crate::validation::Validation;

/// Provenance of the estimates of a model.
#[must_use]
pub fn provenance(model: EstimateModel) -> Provenance {
    match model {
        EstimateModel::Oracle => Provenance::Oracle,
        EstimateModel::UserLimit { .. } => Provenance::UserLimit,
        EstimateModel::LogNormal { .. } | EstimateModel::History { .. } => Provenance::Predicted,
    }
}

/// A teacher that asks for no more than its cluster can do, so that its tree can be used wherever it was made.
struct Offered {
    teacher: Box<dyn Policy>,
    capabilities: Capabilities,
}

impl Policy for Offered {
    fn name(&self) -> &str {
        self.teacher.name()
    }

    fn needs(&self) -> Needs {
        let needs = self.teacher.needs();
        Needs {
            preempt: needs.preempt && self.capabilities.preemption,
            reserve: needs.reserve && self.capabilities.reservation,
            ..needs
        }
    }

    fn tie_key(&self) -> TieKey {
        self.teacher.tie_key()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.teacher.score(point, scores)
    }
}

/// Distils `teacher`; `seed` decides which episodes it is watched on. `note` is told of each episode and each judgement.
///
/// # Errors
/// Settings out of range, a teacher or a run that fails.
pub fn prune(
    env: &EnvConfig,
    teacher: &Contestant,
    config: &DistillConfig,
    validation: &Validation,
    seed: u64,
    note: &dyn Fn(String),
) -> Result<Distilled, Error> {
    let source = Source::open(env).map_err(env_error)?;
    let label = Label {
        name: "tree".into(),
        estimates: vec![provenance(env.sim.estimates)],
        trained_by: BTreeMap::from([("seed".to_string(), serde_json::Value::from(seed))]),
    };
    let mut run = |episode: Episode, policy: &mut dyn Policy| -> Result<(), Error> {
        note(format!("round {}, episode {}", episode.round, episode.number));
        let draw = Seed(seed).child("distilling", episode.number as u64);
        let workload = source.workload(env, draw).map_err(env_error)?;
        let sim = SimConfig {
            seed: draw.0,
            ..env.sim.clone()
        };
        simulate(&workload, &sim, policy).map_err(env_error)?;
        Ok(())
    };
    let mut judge = |tree: &TreePolicy| -> Result<f64, Error> {
        let ratio = validation.ratio(env, Contestant::tree("tree", tree.tree().clone())?)?;
        note(format!(
            "{} leaves: JCT {ratio:.3} of {}",
            tree.tree().num_leaves(),
            validation.best()
        ));
        Ok(ratio)
    };
    let mut teacher = Offered {
        teacher: teacher.policy()?,
        capabilities: env.sim.capabilities,
    };
    let config = DistillConfig {
        seed: Seed(seed).child("distill", 0),
        ..config.clone()
    };
    distill(&mut teacher, &config, &label, &mut run, &mut judge).map_err(|error| match error {
        pleach_distill::Error::Caller(error) => error,
        other => Error::Failed(other.to_string()),
    })
}
