//! Trees changed a little, raced against a rival on lists of a world.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pleach_distill::Dataset;
use pleach_distill::search::{Branch, Draft, Outcome, Question, Rows as Shown, SearchConfig};
use pleach_env::Seed;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::tree::{FlatTree, Node, Tree, TreeMeta};
use pleach_scheduler::{PolicyError, Rows, Scorer};
use rayon::prelude::*;
use serde_json::Value;

use super::world::{Loss, Player, Turn, World};
use crate::error::Error;
use crate::judge::{kept_in, raced};
use crate::progress::Watcher;

/// Added to shares of misses, so that the last miss does not count for all. *Assumed.*
pub(super) const FLOOR: f64 = 0.002;
/// Rows of recorded decisions by which thresholds move.
const ROWS_MAX: usize = 20_000;

/// A world in which trees may not read some columns.
pub(super) struct Game<'a, W> {
    pub world: &'a W,
    /// Numbers of the columns.
    pub without: Vec<u16>,
}

impl<W: World> Game<'_, W> {
    pub(super) fn schema(&self) -> (&'static FeatureSchema, View) {
        self.world.schema()
    }

    /// Plays a list.
    ///
    /// # Errors
    /// A run that fails.
    pub(super) fn play(&self, list: &W::List, scorer: Box<dyn Scorer>) -> Result<Loss, Error> {
        let outcome = self.world.play(list, Turn::default(), Player::Scorer(scorer))?;
        Ok(self.world.loss(&outcome))
    }

    /// The same by a tree, ties by the weights of its key.
    ///
    /// # Errors
    /// A run that fails.
    pub(super) fn play_tree(&self, list: &W::List, tree: &Tree) -> Result<Loss, Error> {
        let outcome = self.world.play(list, Turn::default(), Player::tree(tree))?;
        Ok(self.world.loss(&outcome))
    }
}

/// A list, and what the rival came to on it.
pub(super) type Raced<List> = (List, Loss);

/// Races trees that begin with `starts`; `parts[part][list]` is played by the trees. Gives what the race kept, the best start
/// last; `file` keeps the state after each batch.
///
/// # Errors
/// Settings out of range, a state of another search, a run that fails.
pub(super) fn race<W: World>(
    game: &Game<'_, W>,
    starts: &[Tree],
    parts: &[Vec<Raced<W::List>>],
    (settings, file): (&SearchConfig, Option<&Path>),
    watcher: &Watcher,
) -> Result<Vec<Tree>, Error> {
    let meta = meta(game.schema().0, settings, &[]);
    let firsts: Vec<&W::List> = parts.iter().map(|part| &part[0].0).collect();
    let shown = recorded(game, starts, &firsts)?;
    let drafts = starts
        .iter()
        .map(|tree| (tree.meta().name.clone(), Draft::of(tree)))
        .collect();
    let mut judge = |question: Question<'_>| -> Result<Vec<Outcome>, Error> {
        let runs = question.runs.par_iter().map(|&(place, list)| {
            let (requests, rival) = &parts[list % parts.len()][list / parts.len()];
            let loss = game.play_tree(requests, question.trees[place].tree())?;
            Ok(Outcome {
                ln_jct: ln((loss.misses + FLOOR) / (rival.misses + FLOOR)),
                ln_p99: ln(loss.tail_s / rival.tail_s),
            })
        });
        runs.collect()
    };
    let fixed = (&meta, &shown, settings);
    let kept = file.map(kept_in).transpose()?.flatten();
    let state = raced(drafts, fixed, (kept, file), &mut judge, watcher)?;
    let kept = state.archive.entries().chain([&state.best_start]);
    kept.map(|entry| {
        let tree = entry.draft.tree(&meta, &shown);
        tree.map_err(|error| Error::Failed(error.to_string()))
    })
    .collect()
}

/// The tree with the fewest misses on lists of its own, by halving from `first` lists on.
///
/// # Errors
/// A run that fails.
pub(super) fn best_of<W: World>(
    game: &Game<'_, W>,
    trees: Vec<Tree>,
    lists: &[&W::List],
    first: usize,
) -> Result<Tree, Error> {
    halved(trees, lists.len(), first, |tree, list| {
        Ok((game.play_tree(lists[list], tree)?.misses, 0.0))
    })
}

/// The candidate that loses least on `num` lists, among equal ones the cheapest: all play the first ones, the best quarter goes on to three times as many, and so
/// on; among equal ones the first. After successive halving (Jamieson and Talwalkar, AISTATS'16).
///
/// # Errors
/// A run that fails.
///
/// # Panics
/// Without candidates.
pub(super) fn halved<C: Send + Sync>(
    candidates: Vec<C>,
    num: usize,
    first: usize,
    loss: impl Fn(&C, usize) -> Result<(f64, f64), Error> + Sync,
) -> Result<C, Error> {
    let mut runners: Vec<((f64, f64), C)> = candidates.into_iter().map(|one| ((0.0, 0.0), one)).collect();
    let (mut done, mut next) = (0, first.clamp(1, num));
    loop {
        let played = runners.par_iter().map(|(sum, one)| {
            (done..next).try_fold(*sum, |sum, list| {
                let new = loss(one, list)?;
                Ok((sum.0 + new.0, sum.1 + new.1))
            })
        });
        let sums: Vec<(f64, f64)> = played.collect::<Result<_, Error>>()?;
        for ((sum, _), new) in runners.iter_mut().zip(sums) {
            *sum = new;
        }
        // Stable: among equal ones the first.
        runners.sort_by(|(one, _), (other, _)| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        if runners.len() == 1 || next == num {
            return Ok(runners.swap_remove(0).1);
        }
        runners.truncate(runners.len().div_ceil(4));
        (done, next) = (next, num.min(3 * next));
    }
}

fn meta(schema: &FeatureSchema, search: &SearchConfig, key_weights: &[KeyWeight]) -> TreeMeta {
    meta_by(schema, ("search", serde_json::json!(search)), key_weights)
}

/// What a tree's file says beside the tree, of how it came about among others.
pub(super) fn meta_by(
    schema: &FeatureSchema,
    (key, how): (&str, Value),
    key_weights: &[KeyWeight],
) -> TreeMeta {
    let trained_by = BTreeMap::from([(key.to_string(), how)]);
    TreeMeta {
        name: schema.name.into(),
        tie_key: TieKey::Index,
        key_weights: key_weights.to_vec(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by,
    }
}

/// A rule by hand: `nodes` first, ties by the least of a weighted sum of scaled columns.
///
/// # Errors
/// A tree that cannot be.
pub fn by_hand(
    schema: &'static FeatureSchema,
    name: &str,
    weights: &[(&str, f32)],
    nodes: &[Node],
) -> Result<Tree, Error> {
    let mut weights: Vec<KeyWeight> = weights
        .iter()
        .map(|(name, weight)| KeyWeight {
            feature: column(schema, name, 0.0).0,
            weight: *weight,
        })
        .collect();
    weights.sort_by_key(|weight| weight.feature);
    let mut meta = meta(schema, &SearchConfig::default(), &weights);
    meta.name = format!("hand: {name}");
    Tree::over(schema, meta, nodes).map_err(|error| Error::Failed(error.to_string()))
}

/// Number of a column and the scaled value of a raw one.
pub fn column(schema: &FeatureSchema, name: &str, raw: f32) -> (u16, f32) {
    let mut features = schema.features.iter();
    let number = features
        .position(|feature| feature.name == name)
        .expect("the schema has it");
    (number as u16, schema.features[number].encode(raw))
}

/// A split at a raw value.
pub fn split(schema: &FeatureSchema, name: &str, raw: f32, up_to: Branch, beyond: Branch) -> Branch {
    let (feature, threshold) = column(schema, name, raw);
    Branch::split(feature, threshold, up_to, beyond)
}

/// As files have it: the root first, each level after the one above.
pub fn nodes(root: &Branch) -> Vec<Node> {
    let (mut found, mut level, mut num_leaves) = (Vec::new(), vec![root], 0);
    while !level.is_empty() {
        let mut next_child = (found.len() + level.len()) as u32;
        let mut below = Vec::new();
        for branch in level {
            found.push(match branch {
                Branch::Leaf(rank) => {
                    num_leaves += 1;
                    Node::Leaf {
                        id: num_leaves - 1,
                        score: *rank as f32,
                        samples: 0,
                        weight: 0.0,
                    }
                }
                Branch::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    next_child += 2;
                    below.extend([left.as_ref(), right.as_ref()]);
                    Node::Split {
                        feature: *feature,
                        threshold: *threshold,
                        left: next_child - 2,
                        right: next_child - 1,
                    }
                }
            });
        }
        level = below;
    }
    found
}

/// What is done with the rows of a decision and the scores that they were given.
type See = dyn FnMut(&Rows<'_>, &[f32]) -> Result<(), PolicyError> + Send;

/// A scorer, and a function that sees the rows that it is asked about and its scores.
pub(super) struct Watched {
    pub actor: Box<dyn Scorer>,
    pub see: Box<See>,
}

impl Scorer for Watched {
    fn schema(&self) -> &'static FeatureSchema {
        self.actor.schema()
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.actor.score_rows(rows, scores)?;
        (self.see)(&rows, scores)
    }
}

/// The first of the best.
pub(super) fn best_row(scores: &[f32]) -> usize {
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter().position(|score| *score == best).unwrap_or(0)
}

/// What several runs add to.
pub(super) type Shared<T> = Arc<Mutex<T>>;

/// To be added to.
pub(super) fn locked<T>(shared: &Shared<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a decision with the scores that it got.
pub(super) fn keep(kept: &Shared<Dataset>, rows: &Rows<'_>, scores: &[f32]) {
    let choice = best_row(scores);
    locked(kept).offer_rows(rows, (scores, choice), |_| [0.0; TieKey::ALL.len()]);
}

/// Rows as the rules meet them, one list each in turn.
fn recorded<W: World>(game: &Game<'_, W>, starts: &[Tree], lists: &[&W::List]) -> Result<Shown, Error> {
    let (schema, view) = game.schema();
    let kept = Arc::new(Mutex::new(Dataset::of(schema, view, Seed(0), 200_000)));
    for (place, tree) in starts.iter().enumerate() {
        let shared = Arc::clone(&kept);
        let recorder = Watched {
            actor: Box::new(FlatTree::of(tree)),
            see: Box::new(move |rows, scores| {
                keep(&shared, rows, scores);
                Ok(())
            }),
        };
        game.play(lists[place % lists.len()], Box::new(recorder))?;
    }
    Ok(Shown::of(&locked(&kept), ROWS_MAX).without(&game.without))
}
