//! What a learner is: what it learns from, and what one update makes of a run.

use std::fmt;

use pleach_env::{Seed, VectorEnv};
use pleach_network::Inference;

use crate::counterfactual::Lists;
use crate::error::Error;
use crate::evolution::GenerationStats;
use crate::train_config::TrainConfig;
use crate::trainer::{Trainer, UpdateStats};

/// What an update is learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plays {
    /// Steps of environments, with rewards and gradients.
    Steps,
    /// Figures of whole episodes, of several networks on the same workloads.
    Episodes,
    /// Episodes that are copied in their middle.
    Lists,
}

/// One fitness for each network, larger being better, on workloads of the seed, and what counts as frames.
pub type Judge<'a> = dyn FnMut(&[Inference], Seed) -> Result<(Vec<f64>, u64), Error> + 'a;

/// What an update may play in: the environments or the episodes that [`Learning::plays`] asks for.
pub enum Play<'a> {
    /// Environments.
    Steps(&'a mut dyn VectorEnv),
    /// Episodes.
    Episodes(&'a mut Judge<'a>),
    /// Episodes that are copied in their middle.
    Lists(&'a Lists<'a>),
}

/// Figures of one update. Nothing in them depends on the clock.
#[derive(Clone, Debug)]
pub enum Stats {
    /// Of a learner from steps.
    Update(UpdateStats),
    /// Of evolution strategies.
    Generation(GenerationStats),
    /// Of a learner of one's own: frames of the run so far, and figures under tags such as `losses/fitness_best`.
    Own(u64, Vec<(String, f64)>),
}

impl Stats {
    /// Frames of the run so far.
    #[must_use]
    pub fn num_frames(&self) -> u64 {
        match self {
            Stats::Update(stats) => stats.num_frames,
            Stats::Generation(stats) => stats.num_frames,
            Stats::Own(num_frames, _) => *num_frames,
        }
    }
}

/// A way to learn.
pub trait Learning: fmt::Debug + Sync {
    /// `train.learner`, up to 24 characters.
    fn name(&self) -> &'static str;

    /// Its name in a sentence.
    fn title(&self) -> &'static str;

    /// What it does, in a line.
    fn doc(&self) -> &'static str;

    /// What it learns from.
    fn plays(&self) -> Plays;

    /// Settings that go linearly from a first to a last value over all updates: key, first, last.
    fn annealed(&self, _config: &TrainConfig) -> Vec<(&'static str, f64, f64)> {
        Vec::new()
    }

    /// At which temperature it draws the actions that it learns from; none where it plays as what is deployed does. Such a run
    /// ends where both ways of play are so far apart: a part of the objective, 0 for never.
    fn draws(&self, _config: &TrainConfig) -> Option<(f64, f64)> {
        None
    }

    /// Whether its networks are [`Trainer::population`], so that several processes can play them.
    fn is_divided(&self) -> bool {
        false
    }

    /// Checks its own settings.
    ///
    /// # Errors
    /// [`Error::Problem`] for a value that it cannot use.
    fn check(&self, _config: &TrainConfig) -> Result<(), Error> {
        Ok(())
    }

    /// One update.
    ///
    /// # Errors
    /// What it plays in returns, or [`Error::NotFinite`]; the trainer is then as before.
    fn update(&self, trainer: &mut Trainer, play: Play<'_>) -> Result<Stats, Error>;
}

/// A learner was given the other kind of [`Play`].
pub(super) fn other_play(plays: Plays) -> Error {
    Error::contract("what an update plays in", format!("{plays:?}"), "the other kind")
}
