//! The loop: let the teacher schedule and fit a tree; let the tree schedule, ask the teacher what it would have done
//! there, and fit again.
//!
//! # Source
//! DAgger: Ross, Gordon and Bagnell, AISTATS'11; its parameter-free form lets the teacher act in the first round only
//! (`beta = 0`). For trees: VIPER (Bastani et al., NeurIPS'18). Keeping every student and choosing by simulated
//! performance is VIPER's too.

use std::collections::BTreeMap;

use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::{ColumnSet, FeatureSchema};
use pleach_scheduler::policy::{self, DecisionPoint, Needs, Policy, TieKey};
use pleach_scheduler::tree::{Tree, TreeMeta, TreePolicy};
use pleach_scheduler::{PolicyError, Provenance};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::cart::{Binned, Grown, grow};
use crate::config::DistillConfig;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::fidelity::Fidelity;
use crate::prune::{Judged, by_simulation, judged, smallest_good, without_idle_splits};
use crate::report::{Report, StudentReport};
use crate::target::{Centre, Targets};

/// Leaves of the first tree of all, from which the constants of the decision points are taken.
const FIRST_LEAVES: usize = 2;

/// A policy that lets another decide and records what the teacher thinks of every decision point on the way.
///
/// Its needs are the teacher's, so that both are asked about the same candidates. Its scores are 1 for one candidate and 0 for
/// the others; it does not matter which tie key the runner applies.
pub struct Recording<'a> {
    teacher: &'a mut dyn Policy,
    actor: Option<&'a mut dyn Policy>,
    /// Probability that the teacher decides nevertheless.
    beta: f64,
    dataset: &'a mut Dataset,
    rng: ChaCha8Rng,
    teacher_scores: [f32; MAX_CANDIDATES],
}

impl<'a> Recording<'a> {
    /// Records while the teacher decides.
    #[must_use]
    pub fn of_teacher(
        teacher: &'a mut dyn Policy,
        dataset: &'a mut Dataset,
        rng: ChaCha8Rng,
    ) -> Recording<'a> {
        Recording {
            teacher,
            actor: None,
            beta: 1.0,
            dataset,
            rng,
            teacher_scores: [0.0; MAX_CANDIDATES],
        }
    }

    /// Records while `actor` decides, but at each decision point with probability `beta` the teacher.
    #[must_use]
    pub fn of_actor(
        teacher: &'a mut dyn Policy,
        actor: &'a mut dyn Policy,
        beta: f64,
        dataset: &'a mut Dataset,
        rng: ChaCha8Rng,
    ) -> Recording<'a> {
        Recording {
            teacher,
            actor: Some(actor),
            beta,
            dataset,
            rng,
            teacher_scores: [0.0; MAX_CANDIDATES],
        }
    }
}

/// What a policy would choose; masked candidates are never chosen.
fn choice_of(
    policy: &mut dyn Policy,
    point: &DecisionPoint<'_>,
    scores: &mut [f32],
) -> Result<usize, PolicyError> {
    scores.fill(0.0);
    policy.score(*point, scores)?;
    PolicyError::check_finite(scores)?;
    Ok(policy::choice_of(policy, point, scores).unwrap_or(0))
}

impl Policy for Recording<'_> {
    fn name(&self) -> &str {
        self.teacher.name()
    }

    fn needs(&self) -> Needs {
        Needs {
            observation: true,
            columns: ColumnSet::ALL,
            ..self.teacher.needs()
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let num_candidates = scores.len();
        if num_candidates > MAX_CANDIDATES {
            return Err(PolicyError::Shape {
                expected: MAX_CANDIDATES,
                found: num_candidates,
            });
        }
        let teacher_scores = &mut self.teacher_scores[..num_candidates];
        let mut choice = choice_of(self.teacher, &point, teacher_scores)?;
        self.dataset.offer(&point, teacher_scores, choice);
        if let Some(actor) = &mut self.actor {
            // Drawn at every point, so that the stream does not depend on beta.
            let is_teacher = self.rng.random::<f64>() < self.beta;
            if !is_teacher {
                choice = choice_of(*actor, &point, scores)?;
            }
        }
        scores.fill(0.0);
        scores[choice] = 1.0;
        Ok(())
    }
}

/// One episode that the caller is asked to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// Round of DAgger; 0 = the teacher decides.
    pub round: usize,
    /// Number of the episode over all rounds, from 0: what the caller draws its workload from.
    pub number: usize,
}

/// What the policy file will say beside what is known here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Label {
    /// Name of the policy.
    pub name: String,
    /// Where the estimates of the episodes came from.
    pub estimates: Vec<Provenance>,
    /// What else to note: command, environment, versions, checkpoint of the teacher.
    pub trained_by: BTreeMap<String, Value>,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Distilled {
    /// The tree.
    pub tree: Tree,
    /// How it came about.
    pub report: Report,
    /// The trees of [`Report::students`], in the same order.
    pub students: Vec<Tree>,
}

/// Distils a teacher into a tree.
///
/// `run` schedules one episode with the given policy, typically by handing it to a simulator. `judge` simulates a tree and
/// returns the paired ratio of its average JCT, or of whatever else is to be little, to a baseline over workloads that `run` never uses; lower is better.
///
/// # Errors
/// A configuration that cannot be used, episodes without a decision, whatever the teacher or the two closures report.
pub fn distill<E>(
    teacher: &mut dyn Policy,
    config: &DistillConfig,
    label: &Label,
    run: &mut dyn FnMut(Episode, &mut dyn Policy) -> Result<(), E>,
    judge: &mut dyn FnMut(&TreePolicy) -> Result<f64, E>,
) -> Result<Distilled, Error<E>> {
    config.validate()?;
    let meta = |tie_key| meta_of(teacher.name(), &teacher.needs(), config, label, tie_key);
    let metas: Vec<TreeMeta> = config.tie_keys.iter().map(|key| meta(*key)).collect();
    let (schema, view) = (FeatureSchema::current(), config.view()?);
    let mut dataset = Dataset::of(schema, *view, config.seed, config.rows_max);
    let mut actor: Option<TreePolicy> = None;
    let mut students: Vec<(Tree, StudentReport)> = Vec::new();
    let mut number = 0;
    for round in 0..=config.rounds {
        for _ in 0..config.episodes {
            let rng = config.seed.stream("distill.beta", number as u64);
            let mut recording = match &mut actor {
                None => Recording::of_teacher(teacher, &mut dataset, rng),
                Some(actor) => {
                    let beta = config.beta.powi(round as i32);
                    Recording::of_actor(teacher, actor, beta, &mut dataset, rng)
                }
            };
            run(Episode { round, number }, &mut recording).map_err(Error::Caller)?;
            number += 1;
        }
        let (learn, _) = dataset.split(config.held_out);
        if learn.is_empty() {
            return Err(Error::NothingRecorded { episodes: number });
        }
        let points = points_for_fidelity(&dataset, config);
        for (leaves, grown) in fit(&dataset, &learn, config) {
            for meta in &metas {
                let tree = Tree::over(dataset.schema(), meta.clone(), &grown.nodes_with(leaves))?;
                let policy = TreePolicy::new(tree);
                let fidelity =
                    Fidelity::of(&dataset, &points, policy.flat(), meta.tie_key, config.target.span);
                let tree = policy.tree().clone();
                let report = StudentReport::of(round, &tree, fidelity, None);
                students.push((tree, report));
                actor = Some(policy);
            }
        }
    }
    let (taken, result, pruning) = select(config, &mut students, judge)?;
    let points = points_for_fidelity(&dataset, config);
    let describe = |step: &Judged| -> Result<StudentReport, Error<E>> {
        let policy = TreePolicy::new(step.tree.clone());
        let key = step.tree.meta().tie_key;
        let fidelity = Fidelity::of(&dataset, &points, policy.flat(), key, config.target.span);
        Ok(StudentReport::of(
            students[taken].1.round,
            &step.tree,
            fidelity,
            Some(step.ratio),
        ))
    };
    let report = Report {
        teacher: teacher.name().into(),
        config: config.clone(),
        schema_hash: schema.hash_of(view).into(),
        num_episodes: number,
        num_offered: dataset.num_offered(),
        num_points: dataset.num_points(),
        num_rows: dataset.num_rows(),
        taken,
        pruning: pruning.iter().map(describe).collect::<Result<_, _>>()?,
        result: describe(&result)?,
        text: result.tree.to_text(),
        students: students.iter().map(|(_, report)| report.clone()).collect(),
    };
    Ok(Distilled {
        tree: result.tree,
        report,
        students: students.into_iter().map(|(tree, _)| tree).collect(),
    })
}

/// The points that no tree is fitted to; all points where none are held out.
fn points_for_fidelity(dataset: &Dataset, config: &DistillConfig) -> Vec<usize> {
    let (learn, held_out) = dataset.split(config.held_out);
    if held_out.is_empty() { learn } else { held_out }
}

/// Judges the students of the last rounds, takes the smallest good one and prunes it.
fn select<E>(
    config: &DistillConfig,
    students: &mut [(Tree, StudentReport)],
    judge: &mut dyn FnMut(&TreePolicy) -> Result<f64, E>,
) -> Result<(usize, Judged, Vec<Judged>), Error<E>> {
    let first_round = (config.rounds + 1).saturating_sub(config.judged_rounds);
    let mut known: Vec<(usize, f64)> = Vec::new();
    let mut candidates = Vec::new();
    for (index, (tree, report)) in students.iter_mut().enumerate() {
        if report.round >= first_round {
            let ratio = judged(tree.clone(), judge)?.ratio;
            report.ratio = Some(ratio);
            known.push((tree.num_leaves(), ratio));
            candidates.push(index);
        }
    }
    // The last round always has students, and they are judged.
    let chosen = smallest_good(&known, config.tolerance).unwrap_or(0);
    let taken = candidates[chosen];
    let start = Judged {
        tree: students[taken].0.clone(),
        ratio: known[chosen].1,
    };
    if config.prune.tries == 0 {
        return Ok((taken, start, Vec::new()));
    }
    // Merging leaves of equal score changes no decision and needs no judge.
    let start = Judged {
        tree: without_idle_splits(start.tree)?,
        ratio: start.ratio,
    };
    let prune = config.prune;
    let path = by_simulation(start, prune.leaves_min, prune.tries, prune.bound, judge)?;
    let sizes: Vec<(usize, f64)> = path
        .iter()
        .map(|step| (step.tree.num_leaves(), step.ratio))
        .collect();
    let result = path[smallest_good(&sizes, config.tolerance).unwrap_or(0)].clone();
    Ok((taken, result, path))
}

/// A tree of each size, fitted on what was recorded and is not held out.
///
/// # Errors
/// [`Error::NothingRecorded`] without a decision to learn from; a tree that cannot be.
pub fn fitted<E>(dataset: &Dataset, config: &DistillConfig, meta: &TreeMeta) -> Result<Vec<Tree>, Error<E>> {
    let (learn, _) = dataset.split(config.held_out);
    if learn.is_empty() {
        return Err(Error::NothingRecorded {
            episodes: config.episodes,
        });
    }
    let trees = fit(dataset, &learn, config).into_iter().map(|(leaves, grown)| {
        let nodes = grown.nodes_with(leaves);
        Ok(Tree::over(dataset.schema(), meta.clone(), &nodes)?)
    });
    trees.collect()
}

/// Fits a tree of each size on some points; a size that cannot be reached is left out. Each comes with the number of its
/// leaves.
pub(crate) fn fit(dataset: &Dataset, points: &[usize], config: &DistillConfig) -> Vec<(usize, Grown)> {
    let mut targets = Targets::of(dataset, points, &config.target);
    let places: Vec<(usize, usize)> = targets
        .point
        .iter()
        .zip(&targets.row)
        .map(|(point, row)| (*point as usize, *row as usize))
        .collect();
    let value = |index: usize, feature: usize| {
        let (point, row) = places[index];
        dataset.value(point, row, feature)
    };
    let data = Binned::new(places.len(), dataset.view().len, config.cart.bins, value);
    let mut sizes = config.leaves.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let trends = config.trends(dataset.schema(), dataset.view());
    let grow_to = |targets: &Targets, leaves| {
        grow(
            &data,
            value,
            &targets.target,
            &targets.weight,
            leaves,
            &config.cart,
            &trends,
        )
    };
    let mut fitted: Vec<(usize, Grown)> = Vec::new();
    if config.target.recentre && config.target.centre != Centre::None {
        // From the smallest tree up: each takes its constants from the one before.
        for leaves in [FIRST_LEAVES].into_iter().chain(sizes.iter().copied()) {
            let grown = grow_to(&targets, leaves);
            targets.recentre(|row| grown.answer(leaves, |feature| value(row, feature)));
            fitted.push((grown.num_leaves(), grown));
        }
        fitted.remove(0);
    } else {
        let grown = grow_to(&targets, sizes.last().copied().unwrap_or(FIRST_LEAVES));
        fitted.extend(
            sizes
                .iter()
                .map(|leaves| ((*leaves).min(grown.num_leaves()), grown.clone())),
        );
    }
    fitted.dedup_by_key(|(leaves, _)| *leaves);
    fitted
}

fn meta_of(teacher: &str, needs: &Needs, config: &DistillConfig, label: &Label, tie_key: TieKey) -> TreeMeta {
    let mut trained_by = label.trained_by.clone();
    trained_by.insert("teacher".into(), Value::from(teacher));
    trained_by.insert(
        "distill".into(),
        serde_json::to_value(config).unwrap_or(Value::Null),
    );
    TreeMeta {
        name: label.name.clone(),
        tie_key,
        key_weights: Vec::new(),
        needs: *needs,
        estimates: label.estimates.clone(),
        trained_by,
    }
}
