//! Evolution strategies, by name.

use super::learning::{Learning, Play, Plays, Stats, other_play};
use crate::error::Error;
use crate::train_config::TrainConfig;
use crate::trainer::Trainer;

#[derive(Debug)]
pub(super) struct Evolution;

impl Learning for Evolution {
    fn name(&self) -> &'static str {
        "evolution"
    }

    fn title(&self) -> &'static str {
        "evolution strategies"
    }

    fn doc(&self) -> &'static str {
        "corrects the best heuristic and keeps to a bound on the tail; learns from figures of whole lists"
    }

    fn plays(&self) -> Plays {
        Plays::Episodes
    }

    fn annealed(&self, config: &TrainConfig) -> Vec<(&'static str, f64, f64)> {
        let evolution = &config.evolution;
        let ends = (evolution.learning_rate, evolution.learning_rate_final);
        vec![("train.evolution.learning_rate", ends.0, ends.1)]
    }

    fn is_divided(&self) -> bool {
        true
    }

    fn update(&self, trainer: &mut Trainer, play: Play<'_>) -> Result<Stats, Error> {
        match play {
            Play::Episodes(judge) => trainer
                .evolve(|networks, seed| judge(networks, seed))
                .map(Stats::Generation),
            Play::Steps(_) | Play::Lists(_) => Err(other_play(self.plays())),
        }
    }
}
