//! Exact credit by forks, by name.

use super::learning::{Learning, Play, Plays, Stats, other_play};
use crate::error::Error;
use crate::train_config::TrainConfig;
use crate::trainer::Trainer;

#[derive(Debug)]
pub(super) struct Counterfactual;

impl Learning for Counterfactual {
    fn name(&self) -> &'static str {
        "counterfactual"
    }

    fn title(&self) -> &'static str {
        "exact credit by forks"
    }

    fn doc(&self) -> &'static str {
        "begins as a clone of the best heuristic; learns from copies of its episodes in which one decision is another"
    }

    fn plays(&self) -> Plays {
        Plays::Lists
    }

    fn annealed(&self, config: &TrainConfig) -> Vec<(&'static str, f64, f64)> {
        let own = &config.counterfactual;
        let ends = (own.learning_rate, own.learning_rate_final);
        vec![("train.counterfactual.learning_rate", ends.0, ends.1)]
    }

    fn update(&self, trainer: &mut Trainer, play: Play<'_>) -> Result<Stats, Error> {
        match play {
            Play::Lists(lists) => trainer
                .learn_from_forks(lists)
                .map(|figures| Stats::Own(trainer.num_frames(), figures)),
            Play::Steps(_) | Play::Episodes(_) => Err(other_play(self.plays())),
        }
    }
}
