//! Distilling a policy on the episodes of an environment, judged on validation workloads by their objective.

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

use crate::error::Error;
use crate::evaluate::policy_spec::PolicySpec;
use crate::progress::{Progress, Watcher};
use crate::train::objective;
use crate::train::validation::Validation;

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

/// Distils `teacher`; the tree is chosen and pruned by the objective of `validation`; `seed` decides which episodes it is watched
/// on. `watcher` is told of each episode and each judgement.
///
/// # Errors
/// Settings out of range, a teacher or a run that fails.
pub fn prune(
    env: &EnvConfig,
    teacher: &PolicySpec,
    config: &DistillConfig,
    validation: &Validation,
    seed: u64,
    watcher: &Watcher,
) -> Result<Distilled, Error> {
    let source = Source::open(env)?;
    let mut trained_by = BTreeMap::from([("seed".to_string(), serde_json::Value::from(seed))]);
    if validation.objective != objective::avg_jct() {
        trained_by.insert("objective".into(), serde_json::json!(validation.objective));
    }
    let label = Label {
        name: "tree".into(),
        estimates: vec![provenance(env.sim.estimates)],
        trained_by,
    };
    let judged_by = objective::in_words(&validation.objective);
    let mut run = |episode: Episode, policy: &mut dyn Policy| -> Result<(), Error> {
        watcher.tell(Progress::At(
            0,
            &format!("round {}, episode {}", episode.round, episode.number),
        ));
        let draw = Seed(seed).child("distilling", episode.number as u64);
        let workload = source.workload(env, draw)?;
        let sim = SimConfig {
            seed: draw.0,
            ..env.sim.clone()
        };
        simulate(&workload, &sim, policy)?;
        Ok(())
    };
    let mut judge = |tree: &TreePolicy| -> Result<f64, Error> {
        let ratio = validation.ratio(env, PolicySpec::tree("tree", tree.tree().clone())?)?;
        let message = format!(
            "{} leaves: {ratio:.3} of the {judged_by} of {}",
            tree.tree().num_leaves(),
            validation.best()
        );
        watcher.tell(Progress::At(0, &message));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;
    use crate::train::objective::Objective;

    #[test]
    fn the_objective_decides_which_tree_is_taken_and_how_far_it_is_pruned() {
        let env = env_of("Pleach/GavelMulti-v1", Some(60), Some(2.0)).unwrap();
        let teacher = PolicySpec::heuristic("sjf-best-type").unwrap();
        let config = DistillConfig {
            leaves: vec![2, 4, 8, 16],
            rounds: 1,
            episodes: 2,
            tolerance: 0.0,
            ..DistillConfig::default()
        };
        let distilled = |objective: &Objective| {
            let validation = Validation::by(objective, &env, 3, 4).unwrap();
            let distilled = prune(&env, &teacher, &config, &validation, 3, &Watcher::nobody()).unwrap();
            let tree = PolicySpec::tree("tree", distilled.tree.clone()).unwrap();
            let (ratio, metrics) = validation.judge(&env, tree).unwrap();
            assert_eq!(distilled.report.result.ratio, Some(ratio));
            (distilled, metrics)
        };
        let use_of_gpus = Objective::from([("utilisation".to_string(), 1.0)]);
        let (by_jct, jct) = distilled(&objective::avg_jct());
        let (by_use, used) = distilled(&use_of_gpus);
        // The same trees were there to choose among.
        let sizes = |distilled: &Distilled| -> Vec<usize> {
            let students = &distilled.report.students;
            students.iter().map(|student| student.leaves).collect()
        };
        assert_eq!(sizes(&by_jct), sizes(&by_use));
        // With no tolerance the best is taken, and it is another one.
        for distilled in [&by_jct, &by_use] {
            let report = &distilled.report;
            let mut ratios = report.students.iter().filter_map(|student| student.ratio);
            let best = report.students[report.taken].ratio.unwrap();
            assert!(ratios.all(|ratio| best <= ratio));
        }
        assert_ne!(by_jct.report.taken, by_use.report.taken);
        assert_ne!(by_jct.tree.num_leaves(), by_use.tree.num_leaves());
        assert!(jct["avg_jct_s"] < used["avg_jct_s"] && jct["utilisation"] < used["utilisation"]);
        // The file of the tree says by what it was chosen, if it was not the average JCT.
        let noted = |distilled: &Distilled| distilled.tree.meta().trained_by.get("objective").cloned();
        assert_eq!(noted(&by_use), Some(serde_json::json!({"utilisation": 1.0})));
        assert_eq!(noted(&by_jct), None);
    }
}
