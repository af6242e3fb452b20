//! Networks over the rows of any world: one imitates a tree, is evolved or learns by PPO, and becomes a tree again.

use std::sync::{Arc, Mutex};

use pleach_agents::learner::{Learning, Play, Plays, all, way};
use pleach_agents::{Demonstrations, Error as AgentError, TrainConfig, Trainer};
use pleach_distill::{Dataset, DistillConfig, fitted};
use pleach_env::{Seed, Spaces, VectorEnv};
use pleach_network::{Contract, Inference, NetworkScorer, TrainedNetwork};
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::CandidateConfig;
use pleach_scheduler::portable_math::{exp, ln};
use pleach_scheduler::tree::{FlatTree, Tree};
use pleach_scheduler::{PolicyError, Rows, Scorer};
use rayon::prelude::*;

use super::race::{FLOOR, Game, Watched, best_row, keep, locked, meta_by};
use super::world::World;
use crate::error::Error;
use crate::progress::{Progress, Watcher};

/// Updates between two looks at what is to be kept. *Assumed.*
const LOOK_EVERY: u64 = 5;
/// Turns of an order that a network is shown, one row after another: what comes later is dealt less often. *Assumed.*
const TURNS: usize = 6;
/// Rows that are kept of what a network decides. *Assumed.*
const ROWS_MAX: usize = 300_000;

/// Lists of a stream by name, and by a number within it: the same name and number are the same lists.
pub(super) type Drawing<'a, L> = &'a (dyn Fn(&str, u64) -> Result<Vec<L>, Error> + Sync);

/// A training that has not begun: a network over the rows of a game, of which a decision has so many.
///
/// # Errors
/// Settings out of range.
pub(super) fn trainer<W: World>(
    game: &Game<'_, W>,
    num_rows: usize,
    config: TrainConfig,
    seed: Seed,
) -> Result<Trainer, Error> {
    let (schema, view) = game.schema();
    let spaces = Spaces::of(&view, num_rows);
    let contract = Contract::over(schema, spaces, CandidateConfig::default(), schema.name);
    Ok(Trainer::new(config, contract, seed)?)
}

/// A network as what scores rows.
///
/// # Errors
/// One that is of other rows.
pub(super) fn scorer<W: World>(
    game: &Game<'_, W>,
    contract: &Contract,
    network: &Inference,
) -> Result<Box<dyn Scorer>, Error> {
    let scorer = NetworkScorer::new(game.schema().0, contract, network.clone())?;
    Ok(Box::new(scorer))
}

/// A tree as it decides: rows are scored by their turn, better tiers first and in a tier the least sum of its key.
struct Keyed {
    flat: FlatTree,
    /// Places in a row and their weights.
    weights: Vec<(usize, f64)>,
}

impl Keyed {
    fn of(tree: &Tree) -> Box<dyn Scorer> {
        let weights = tree.meta().key_weights.iter();
        let place = |feature: u16| tree.schema().place(usize::from(feature));
        Box::new(Keyed {
            flat: FlatTree::of(tree),
            weights: weights
                .map(|term| (place(term.feature), f64::from(term.weight)))
                .collect(),
        })
    }
}

impl Scorer for Keyed {
    fn schema(&self) -> &'static FeatureSchema {
        self.flat.schema()
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.flat.score_rows(rows, scores)?;
        let sum = |row: usize| -> f64 {
            let terms = self.weights.iter();
            terms.fold(0.0, |sum, (place, weight)| {
                sum + weight * f64::from(rows.row(row)[*place])
            })
        };
        let mut order: Vec<(f32, f64, usize)> = (0..scores.len())
            .map(|row| (scores[row], sum(row), row))
            .collect();
        order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.total_cmp(&other.1)));
        for (turn, (.., row)) in order.into_iter().enumerate() {
            scores[row] = -(turn as f32);
        }
        Ok(())
    }
}

/// What a tree does on some lists.
///
/// # Errors
/// A run that fails.
pub(super) fn shown<W: World>(
    game: &Game<'_, W>,
    spaces: Spaces,
    teacher: &Tree,
    lists: &[W::List],
) -> Result<Demonstrations, Error> {
    let all = Arc::new(Mutex::new(Demonstrations::new(spaces)));
    let num_turns = if game.world.chooses_one() { 1 } else { TURNS };
    for list in lists {
        let shared = Arc::clone(&all);
        let watched = Watched {
            actor: Keyed::of(teacher),
            see: Box::new(move |rows, scores| {
                let width = spaces.num_features;
                let cells: Vec<f32> = (rows.rows.chunks_exact(rows.width))
                    .flat_map(|row| &row[..width])
                    .copied()
                    .collect();
                let context = &rows.context[..spaces.num_global];
                let (mut mask, mut left) = (rows.mask.to_vec(), scores.to_vec());
                for _ in 0..num_turns.min(left.len()) {
                    let choice = best_row(&left);
                    let pushed = locked(&shared).push(context, &cells, &mask, choice, None);
                    // The best row may be chosen, so nothing is refused.
                    pushed.map_err(|_| PolicyError::NotFinite { candidate: choice })?;
                    (mask[choice], left[choice]) = (false, f32::NEG_INFINITY);
                }
                Ok(())
            }),
        };
        game.play(list, Box::new(watched))?;
    }
    let all = locked(&all).clone();
    Ok(all)
}

/// Plays a network on lists: the mean logarithm of its misses.
fn loss<W: World>(
    game: &Game<'_, W>,
    contract: &Contract,
    network: &Inference,
    lists: &[W::List],
) -> Result<f64, Error> {
    let played = lists.par_iter().map(|list| {
        let loss = game.play(list, scorer(game, contract, network)?)?;
        Ok(ln(loss.misses + FLOOR))
    });
    let sum: f64 = played.collect::<Result<Vec<_>, Error>>()?.iter().sum();
    Ok(sum / lists.len() as f64)
}

/// One generation: all members play the same lists, which are drawn by its number.
fn generation<W: World>(
    game: &Game<'_, W>,
    trainer: &mut Trainer,
    draw: Drawing<'_, W::List>,
) -> Result<(), Error> {
    let lists = draw("generation", trainer.num_updates())?;
    let contract = trainer.contract().clone();
    let played = |members: &[Inference], _: Seed| {
        let fitness = members
            .par_iter()
            .map(|member| Ok(-loss(game, &contract, member, &lists)?));
        let fitness = fitness.collect::<Result<Vec<f64>, Error>>()?;
        let num_lists = (fitness.len() * lists.len()) as u64;
        Ok::<_, Error>((fitness, num_lists))
    };
    let mut judge = |members: &[Inference], seed: Seed| played(members, seed).map_err(AgentError::from);
    let learner = way(trainer.config().learner);
    learner.update(trainer, Play::Episodes(&mut judge))?;
    Ok(())
}

/// What a training calls on its way: one function after each update, and one with each network that is better than all before.
pub(super) struct Keeper<'a> {
    /// After each update.
    pub training: &'a mut dyn FnMut(&Trainer) -> Result<(), Error>,
    /// Where the network is the best so far.
    pub best: &'a mut dyn FnMut(TrainedNetwork) -> Result<(), Error>,
}

/// Learns to the end of the training's updates; `envs` are for PPO. What is kept is the network that misses least on lists that
/// nothing is learnt from, looked at every few updates.
///
/// # Errors
/// A run that fails; [`Error::Stopped`] where `watcher` asked for it, after an update that has been kept.
pub(super) fn learn<W: World>(
    game: &Game<'_, W>,
    trainer: &mut Trainer,
    envs: &mut dyn VectorEnv,
    draw: Drawing<'_, W::List>,
    keeper: &mut Keeper<'_>,
    watcher: &Watcher,
) -> Result<(), Error> {
    let choice = draw("validation", 0)?;
    let num = trainer.config().num_updates;
    watcher.part("learn", num as usize, || {
        if trainer.num_updates() == 0 {
            look(game, trainer, &choice, keeper)?;
        }
        while !trainer.is_finished() {
            let learner = way(trainer.config().learner);
            match learner.plays() {
                Plays::Episodes => generation(game, trainer, draw)?,
                Plays::Steps => {
                    learner.update(trainer, Play::Steps(envs))?;
                }
                Plays::Lists => check_learner(learner)?,
            }
            let at = trainer.num_updates();
            if at.is_multiple_of(LOOK_EVERY) || trainer.is_finished() {
                let loss = look(game, trainer, &choice, keeper)?;
                let words = format!("loss {:.4}", exp(loss) - FLOOR);
                watcher.tell(Progress::At(at, &words));
            } else {
                watcher.tell(Progress::Step);
            }
            (keeper.training)(trainer)?;
            if let Some(stopped) = watcher.asked_to_stop(at, num) {
                return Err(Error::Stopped {
                    signal: stopped.signal,
                    message: format!(
                        "stopped after update {at} of {num}; the same command goes on from there"
                    ),
                });
            }
        }
        Ok(())
    })
}

/// Refuses a learner that copies episodes, which no world of this kind can do yet.
///
/// # Errors
/// The learner with those that can be.
pub(super) fn check_learner(learner: &dyn Learning) -> Result<(), Error> {
    if learner.plays() != Plays::Lists {
        return Ok(());
    }
    let others = all().filter(|other| other.plays() != Plays::Lists);
    let names: Vec<&str> = others.map(Learning::name).collect();
    let hint = "It copies episodes in their middle, which is so far possible with jobs on a cluster alone.";
    Err(Error::config(
        "train.learner",
        learner.name(),
        names.join(", "),
        hint,
    ))
}

/// Judges the present network and keeps it where it is the best so far.
fn look<W: World>(
    game: &Game<'_, W>,
    trainer: &mut Trainer,
    choice: &[W::List],
    keeper: &mut Keeper<'_>,
) -> Result<f64, Error> {
    let loss = loss(game, trainer.contract(), &trainer.inference()?, choice)?;
    if trainer.note_evaluation(-loss) {
        (keeper.best)(trainer.network())?;
    }
    Ok(loss)
}

/// Trees that were fitted to a network: in the first round on what it decides, then on what it would have decided where the last
/// tree did. DAgger, as for jobs. `key` orders the rows of a tier.
///
/// # Errors
/// A run that fails, lists without a choice.
pub(super) fn distilled<W: World>(
    game: &Game<'_, W>,
    network: &TrainedNetwork,
    (leaves, key): (usize, &[KeyWeight]),
    draw: Drawing<'_, W::List>,
) -> Result<Vec<Tree>, Error> {
    let (schema, view) = game.schema();
    let inference = Inference::new(&network.layout()?, &network.parameters)?;
    let config = DistillConfig {
        leaves: [4, 8, 16, 32, 64, 128, 256]
            .into_iter()
            .filter(|size| *size < leaves)
            .chain([leaves])
            .collect(),
        held_out: 0.0,
        ..DistillConfig::default()
    };
    let meta = meta_by(schema, ("distill", serde_json::json!(config)), key);
    let kept = Arc::new(Mutex::new(Dataset::of(schema, view, Seed(0), ROWS_MAX)));
    let mut trees: Vec<Tree> = Vec::new();
    for round in 0..=config.rounds {
        for list in draw("distill", round as u64)? {
            let shared = Arc::clone(&kept);
            let mut teacher = scorer(game, &network.contract, &inference)?;
            let actor: Box<dyn Scorer> = match trees.last() {
                Some(tree) => Keyed::of(tree),
                None => scorer(game, &network.contract, &inference)?,
            };
            let mut taught = Vec::new();
            let see = move |rows: &Rows<'_>, scores: &[f32]| {
                taught.resize(scores.len(), 0.0);
                teacher.score_rows(*rows, &mut taught)?;
                keep(&shared, rows, &taught);
                Ok(())
            };
            game.play(
                &list,
                Box::new(Watched {
                    actor,
                    see: Box::new(see),
                }),
            )?;
        }
        let fitted = fitted(&locked(&kept), &config, &meta);
        trees.extend(fitted.map_err(|error: pleach_distill::Error<Error>| Error::Failed(error.to_string()))?);
    }
    Ok(trees)
}
