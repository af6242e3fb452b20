//! Distilling a policy on the episodes of an environment, judged on validation workloads by their objective; searching for a
//! tree.

pub mod ablate;
pub mod bundle;
pub mod check;
mod choice;
pub mod drift;
pub mod guard;
pub mod narrow;
mod recorded;
pub mod search;
mod search_report;
mod shuffled;
pub mod side_by_side;
pub mod starts;
pub mod visits;

use std::collections::BTreeMap;

use pleach_distill::{DistillConfig, Distilled, Episode, Label, distill};
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{EnvConfig, Seed, SimConfig, Source, simulate};
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use pleach_scheduler::tree::{TreeError, TreePolicy};
use pleach_scheduler::{PolicyError, Provenance};

use self::narrow::narrowed;
use crate::door::PolicySpec;
use crate::error::Error;
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
struct Offered<'a> {
    teacher: Box<dyn Policy>,
    capabilities: Capabilities,
    watcher: &'a Watcher,
}

impl Policy for Offered<'_> {
    fn name(&self) -> &str {
        self.teacher.name()
    }

    fn needs(&self) -> Needs {
        let needs = self.teacher.needs();
        Needs {
            actions: needs.actions.intersection(self.capabilities.actions()),
            ..needs
        }
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        self.teacher.choice_rule()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        if self.watcher.asked_to_stop(0, 0).is_some() {
            return Err(PolicyError::Stopped);
        }
        self.teacher.score(point, scores)
    }
}

/// How far a distillation is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Step {
    /// Episodes played and trees judged.
    done: u64,
    /// As many as there will be, at most: pruning ends where no smaller tree is good enough.
    of: u64,
    /// How it goes.
    words: String,
}

impl Step {
    fn tell(&self, watcher: &Watcher) {
        watcher.tell(Progress::OutOf(self.of));
        watcher.tell(Progress::At(self.done, &self.words));
    }
}

/// What a distillation is made of: `num_episodes` episodes, then `num_students` judgements of grown trees, then for each leaf
/// less at most `tries`.
#[derive(Clone, Copy, Debug)]
struct Steps {
    rounds: usize,
    num_episodes: usize,
    num_students: usize,
    tries: usize,
    leaves_max: usize,
    leaves_min: usize,
}

impl Steps {
    fn new(config: &DistillConfig) -> Steps {
        let judged_rounds = config.judged_rounds.min(config.rounds + 1);
        Steps {
            rounds: config.rounds,
            num_episodes: (config.rounds + 1) * config.episodes,
            num_students: judged_rounds * config.leaves.len() * config.tie_keys.len(),
            tries: config.prune.tries,
            leaves_max: config.leaves.iter().copied().max().unwrap_or(0),
            leaves_min: config.prune.leaves_min,
        }
    }

    /// Judgements while a tree of so many leaves is pruned to the least.
    fn pruning(&self, leaves: usize) -> usize {
        self.tries * leaves.saturating_sub(self.leaves_min)
    }

    /// An episode begins.
    fn episode(&self, episode: Episode) -> Step {
        let (number, of) = (episode.number + 1, self.num_episodes);
        Step {
            done: episode.number as u64,
            of: (of + self.num_students + self.pruning(self.leaves_max)) as u64,
            words: format!(
                "round {} of {}, episode {number} of {of}",
                episode.round, self.rounds
            ),
        }
    }

    /// So many trees were judged, the last one of so many leaves.
    fn judged(&self, num_judged: usize, leaves: usize, words: String) -> Step {
        let done = self.num_episodes + num_judged;
        let of = if num_judged <= self.num_students {
            self.num_episodes + self.num_students + self.pruning(self.leaves_max)
        } else {
            // The tree that is pruned has one leaf more than those that are tried.
            done + self.pruning(leaves)
        };
        Step {
            done: done as u64,
            of: of as u64,
            words,
        }
    }
}

/// Distils `teacher`; the tree is chosen and pruned by the objective of `validation`; `seed` decides which episodes it is watched
/// on. `watcher` receives each step: each episode that is played, each tree that is judged.
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
    let steps = Steps::new(config);
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
    let mut num_types = 1;
    let mut run = |episode: Episode, policy: &mut dyn Policy| -> Result<(), Error> {
        steps.episode(episode).tell(watcher);
        let draw = Seed(seed).child("distilling", episode.number as u64);
        let workload = source.workload(env, draw)?;
        num_types = num_types.max(workload.cluster.gpu_types.len());
        let sim = SimConfig {
            seed: draw.0,
            ..env.sim.clone()
        };
        simulate(&workload, &sim, policy)?;
        Ok(())
    };
    let mut num_judged = 0;
    let mut judge = |tree: &TreePolicy| -> Result<f64, Error> {
        if watcher.asked_to_stop(num_judged as u64, 0).is_some() {
            return Err(PolicyError::Stopped.into());
        }
        let ratio = validation.ratio(env, PolicySpec::tree("tree", tree.tree().clone()))?;
        num_judged += 1;
        let leaves = tree.tree().num_leaves();
        let words = format!(
            "{leaves} leaves: {ratio:.3} of the {judged_by} of {}",
            validation.best()
        );
        steps.judged(num_judged, leaves, words).tell(watcher);
        Ok(ratio)
    };
    let mut teacher = Offered {
        teacher: teacher.policy()?,
        capabilities: env.sim.capabilities,
        watcher,
    };
    let config = DistillConfig {
        seed: Seed(seed).child("distill", 0),
        columns: env.columns.clone(),
        ..config.clone()
    };
    let distilled =
        distill(&mut teacher, &config, &label, &mut run, &mut judge).map_err(|error| match error {
            pleach_distill::Error::Caller(error) => error,
            other => Error::Failed(other.to_string()),
        })?;
    at_home(distilled, validation.best(), num_types).map_err(|error| Error::Failed(error.to_string()))
}

/// The trees, which step aside where they have not been.
fn at_home(distilled: Distilled, best: &str, num_types: usize) -> Result<Distilled, TreeError> {
    let Distilled {
        tree,
        mut report,
        students,
    } = distilled;
    let tree = narrowed(tree, best, num_types)?;
    report.text = tree.to_text();
    let students = students.into_iter().map(|tree| narrowed(tree, best, num_types));
    Ok(Distilled {
        students: students.collect::<Result<_, _>>()?,
        tree,
        report,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;
    use crate::train::objective::Objective;

    #[test]
    fn progress_counts_every_step_and_its_end_is_never_further_than_at_first() {
        let env = env_of("Pleach/GavelMulti-v1", Some(40), Some(2.0)).unwrap();
        let teacher = PolicySpec::heuristic("sjf-best-type").unwrap();
        let config = DistillConfig {
            leaves: vec![2, 4, 8],
            rounds: 1,
            episodes: 2,
            ..DistillConfig::default()
        };
        let validation = Validation::new(&env, 3, 2).unwrap();
        let (sender, told) = std::sync::mpsc::channel();
        let present = std::sync::Mutex::new(Step::default());
        let watcher = Watcher::new(move |progress| {
            let mut step = present.lock().unwrap();
            match progress {
                Progress::OutOf(of) => step.of = of,
                Progress::At(done, words) => {
                    (step.done, step.words) = (done, words.to_string());
                    sender.send(step.clone()).unwrap();
                }
                _ => {}
            }
        });
        prune(&env, &teacher, &config, &validation, 3, &watcher).unwrap();
        let steps: Vec<Step> = told.try_iter().collect();
        assert_eq!(steps[0].words, "round 0 of 1, episode 1 of 4");
        assert_eq!((steps[0].done, steps[3].done), (0, 3));
        assert!(
            steps.len() > 8 && steps[4].words.contains(" leaves: "),
            "{}",
            steps.len()
        );
        assert!(steps.iter().all(|step| step.done <= step.of && step.of > 4));
        for pair in steps.windows(2) {
            assert!(pair[0].done < pair[1].done, "{pair:?}");
        }
        assert!(steps.iter().all(|step| step.of <= steps[0].of));
    }

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
            let distilled = prune(&env, &teacher, &config, &validation, 3, &Watcher::silent()).unwrap();
            let tree = PolicySpec::tree("tree", distilled.tree.clone());
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
