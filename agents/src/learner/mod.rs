//! Ways to learn, by name.
//!
//! # A learner of one's own
//! One file that implements [`Learning`], as `evolution.rs` does, and one line in [`LEARNERS`], or in a program of one's own
//! [`register_learners`]. A run has its network, Adam and seeds in the [`Trainer`]; a learner says what one update makes of them.

mod evolution;
mod imitation;
mod ppo;

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use pleach_env::{Seed, VectorEnv};
use pleach_network::Inference;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

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
}

/// One fitness for each network, larger being better, on workloads of the seed, and what counts as frames.
pub type Judge<'a> = dyn FnMut(&[Inference], Seed) -> Result<(Vec<f64>, u64), Error> + 'a;

/// What an update may play in: the environments or the episodes that [`Learning::plays`] asks for.
pub enum Play<'a> {
    /// Environments.
    Steps(&'a mut dyn VectorEnv),
    /// Episodes.
    Episodes(&'a mut Judge<'a>),
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

    /// Whether its networks are [`Trainer::population`], so that several processes can play them.
    fn is_divided(&self) -> bool {
        false
    }

    /// Checks its own settings.
    ///
    /// # Errors
    /// [`Error::Config`] for a value that it cannot use.
    fn check(&self, _config: &TrainConfig) -> Result<(), Error> {
        Ok(())
    }

    /// One update.
    ///
    /// # Errors
    /// What it plays in returns, or [`Error::NotFinite`]; the trainer is then as before.
    fn update(&self, trainer: &mut Trainer, play: Play<'_>) -> Result<Stats, Error>;
}

/// A registered way to learn. It reads and writes as its name.
#[derive(Clone, Copy, Debug)]
pub struct Learner(&'static dyn Learning);

/// All learners. *One line each.*
pub const LEARNERS: [Learner; 3] = [Learner::PPO, Learner::EVOLUTION, Learner::IMITATION];

static OWN: OnceLock<Vec<Learner>> = OnceLock::new();

/// Says which learners a program has beside ours; once, before anything is read.
///
/// # Errors
/// A name that is taken, or longer than 24 characters; a second call.
pub fn register_learners(learners: Vec<&'static dyn Learning>) -> Result<(), Error> {
    let learners: Vec<Learner> = learners.into_iter().map(Learner).collect();
    for (place, one) in learners.iter().enumerate() {
        let mut others = LEARNERS.iter().chain(&learners[..place]);
        if others.any(|other| other == one) || !(1..=24).contains(&one.name().len()) {
            let allowed = "a name of up to 24 characters that nothing else has";
            return Err(Error::config("train.learner", one.name(), allowed));
        }
    }
    OWN.set(learners)
        .map_err(|_| Error::config("train.learner", "registered again", "once in a program"))
}

impl Learner {
    /// Proximal policy optimisation.
    pub const PPO: Learner = Learner(&ppo::Ppo);
    /// Evolution strategies.
    pub const EVOLUTION: Learner = Learner(&evolution::Evolution);
    /// Cloning alone.
    pub const IMITATION: Learner = Learner(&imitation::Imitation);

    /// Ours, then the program's own.
    pub fn all() -> impl Iterator<Item = Learner> {
        LEARNERS
            .into_iter()
            .chain(OWN.get().into_iter().flatten().copied())
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Learner> {
        Learner::all().find(|learner| learner.name() == name)
    }
}

impl Default for Learner {
    fn default() -> Learner {
        Learner::PPO
    }
}

impl Deref for Learner {
    type Target = dyn Learning;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for Learner {
    fn eq(&self, other: &Learner) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Learner {}

impl Serialize for Learner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Learner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Learner, D::Error> {
        let name = String::deserialize(deserializer)?;
        Learner::find(&name).ok_or_else(|| {
            let known: Vec<&str> = Learner::all().map(|learner| learner.name()).collect();
            de::Error::custom(format!(
                "unknown learner `{name}`, expected one of {}",
                known.join(", ")
            ))
        })
    }
}

/// A learner was given the other kind of [`Play`].
fn other_play(plays: Plays) -> Error {
    Error::contract("what an update plays in", format!("{plays:?}"), "the other kind")
}
