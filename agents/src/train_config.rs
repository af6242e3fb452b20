//! Settings of a training run, written next to everything that it produced.

use serde::{Deserialize, Serialize};

use pleach_network::NetworkConfig;

use crate::error::{Error, SETTING_MAX};
use crate::evolution::EvolutionConfig;
use crate::imitation::ImitationConfig;
use crate::learner_name::Learner;
use crate::ppo::PpoConfig;

/// All settings of a training run. Written next to everything it produced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// How it learns.
    pub learner: Learner,
    /// Updates of the whole run, 0 for imitation alone; learning rate and entropy weight are annealed over them.
    pub num_updates: u64,
    /// Steps of each environment per update, T.
    pub num_steps: usize,
    /// Updates between restarts of the environments. With more than 1, later parts of episodes that are longer than
    /// `num_steps` are seen, and a resumed run is bit-equal only where the checkpoint was taken at a multiple.
    pub restart_every: u64,
    /// Neighbouring environments that share their arrivals, and whose advantages are centred; 1 for none. Divides the
    /// number of environments.
    pub group_size: usize,
    /// Time constant of the discount, s: a reward this far away counts 1/e. *Assumed* default: a day.
    pub horizon_s: f64,
    /// Decay of the advantage's sum per decision, 0 to 1.
    pub gae_lambda: f64,
    /// In the first updates only the value head learns, so that an imitated policy is not spoiled by wild values.
    pub value_warmup_updates: u64,
    /// Sizes of the network.
    pub network: NetworkConfig,
    /// PPO.
    pub ppo: PpoConfig,
    /// Behaviour cloning, used by [`Trainer::warm_start`](crate::trainer::Trainer::warm_start).
    pub imitation: ImitationConfig,
    /// Evolution strategies.
    pub evolution: EvolutionConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            learner: Learner::PPO,
            num_updates: 200,
            num_steps: 256,
            restart_every: 1,
            group_size: 1,
            horizon_s: 86_400.0,
            gae_lambda: 0.95,
            value_warmup_updates: 0,
            network: NetworkConfig::default(),
            ppo: PpoConfig::default(),
            imitation: ImitationConfig::default(),
            evolution: EvolutionConfig::default(),
        }
    }
}

impl TrainConfig {
    /// Checks all ranges.
    ///
    /// # Errors
    /// [`Error::Problem`] for the first value that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |key, value: String, allowed| Err(Error::config(key, value, allowed));
        for (key, value) in [
            ("num_steps", self.num_steps as u64),
            ("restart_every", self.restart_every),
            ("group_size", self.group_size as u64),
        ] {
            if value == 0 {
                return refuse(key, "0".to_owned(), "at least 1");
            }
        }
        if !(self.horizon_s > 0.0 && self.horizon_s <= SETTING_MAX) {
            return refuse(
                "horizon_s",
                self.horizon_s.to_string(),
                "above 0 and at most 1e12 s",
            );
        }
        if !(0.0..=1.0).contains(&self.gae_lambda) {
            return refuse("gae_lambda", self.gae_lambda.to_string(), "0 to 1");
        }
        self.network.check()?;
        self.ppo.check()?;
        self.imitation.check()?;
        self.evolution.check()
    }
}
