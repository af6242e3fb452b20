//! Proximal policy optimisation, by name.

use super::learning::{Learning, Play, Plays, Stats, other_play};
use crate::error::Error;
use crate::train_config::TrainConfig;
use crate::trainer::Trainer;

#[derive(Debug)]
pub(super) struct Ppo;

impl Learning for Ppo {
    fn name(&self) -> &'static str {
        "ppo"
    }

    fn title(&self) -> &'static str {
        "PPO"
    }

    fn doc(&self) -> &'static str {
        "begins as a clone of the best heuristic; learns from rewards"
    }

    fn plays(&self) -> Plays {
        Plays::Steps
    }

    fn annealed(&self, config: &TrainConfig) -> Vec<(&'static str, f64, f64)> {
        let ppo = &config.ppo;
        vec![
            (
                "train.ppo.learning_rate",
                ppo.learning_rate,
                ppo.learning_rate_final,
            ),
            ("train.ppo.entropy_coef", ppo.entropy_coef, ppo.entropy_coef_final),
        ]
    }

    fn draws(&self, config: &TrainConfig) -> Option<(f64, f64)> {
        Some((config.ppo.temperature, config.ppo.apart_max))
    }

    fn update(&self, trainer: &mut Trainer, play: Play<'_>) -> Result<Stats, Error> {
        match play {
            Play::Steps(envs) => trainer.update(envs).map(Stats::Update),
            Play::Episodes(_) | Play::Lists(_) => Err(other_play(self.plays())),
        }
    }
}
