//! Cloning alone, by name: the network does as its teacher (`warm_start`), and nothing is learned after that.

use super::learning::{Learning, Play, Plays, Stats};
use crate::error::Error;
use crate::train_config::TrainConfig;
use crate::trainer::Trainer;

#[derive(Debug)]
pub(super) struct Imitation;

impl Learning for Imitation {
    fn name(&self) -> &'static str {
        "imitation"
    }

    fn title(&self) -> &'static str {
        "imitation"
    }

    fn doc(&self) -> &'static str {
        "does as the best heuristic, or as --warm-start names, and learns nothing more"
    }

    fn plays(&self) -> Plays {
        Plays::Steps
    }

    fn check(&self, config: &TrainConfig) -> Result<(), Error> {
        match config.num_updates {
            0 => Ok(()),
            more => Err(Error::config(
                "num_updates",
                more,
                "0 with imitation, which ends with the clone",
            )),
        }
    }

    fn update(&self, trainer: &mut Trainer, _: Play<'_>) -> Result<Stats, Error> {
        self.check(trainer.config())
            .map(|()| Stats::Own(trainer.num_frames(), Vec::new()))
    }
}
