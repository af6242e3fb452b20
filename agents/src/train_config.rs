//! Settings of a training run, written next to everything that it produced.

use pleach_network::NetworkConfig;
use pleach_scheduler::settings;
use pleach_scheduler::settings::{Own, Settings as _};

use crate::counterfactual::CounterfactualConfig;
use crate::error::{Error, SEE, SETTING_MAX};
use crate::evolution::EvolutionConfig;
use crate::imitation::ImitationConfig;
use crate::learner_name::Learner;
use crate::ppo::PpoConfig;

settings! {
    /// All settings of a training run. Written next to everything it produced.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TrainConfig {
        /// How it learns.
        pub learner: Learner = Learner::PPO;
        /// Updates of the whole run, 0 for imitation alone; learning rate and entropy weight are annealed over them.
        pub num_updates: u64 = 200, in 0..=1_000_000_000_000;
        /// Steps of each environment per update, T.
        pub num_steps: usize = 256, in 1..=1_000_000;
        /// Updates between restarts of the environments. With more than 1, later parts of episodes that are longer than
        /// `num_steps` are seen, and a resumed run is bit-equal only where the checkpoint was taken at a multiple.
        pub restart_every: u64 = 1, in 1..=1_000_000;
        /// Neighbouring environments that share their arrivals, and whose advantages are centred; 1 for none. Divides the
        /// number of environments.
        pub group_size: usize = 1, in 1..;
        /// Time constant of the discount, s: a reward this far away counts 1/e. *Assumed* default: a day. A
        /// [`Trainer`](crate::Trainer) takes no 0, which leaves the choice to what knows the jobs.
        pub horizon_s: f64 = 86_400.0, in 0.0..=SETTING_MAX;
        /// Decay of the advantage's sum per decision.
        pub gae_lambda: f64 = 0.95, in 0.0..=1.0;
        /// In the first updates only the value head learns, so that an imitated policy is not spoiled by wild values.
        pub value_warmup_updates: u64 = 0;
        /// Sizes of the network.
        pub network: NetworkConfig;
        /// PPO.
        pub ppo: PpoConfig, in Own;
        /// Behaviour cloning, used by [`Trainer::warm_start`](crate::trainer::Trainer::warm_start).
        pub imitation: ImitationConfig, in Own;
        /// Evolution strategies.
        pub evolution: EvolutionConfig, in Own;
        /// Exact credit by forks.
        #[serde(skip_serializing_if = "CounterfactualConfig::is_default")]
        pub counterfactual: CounterfactualConfig, in Own;
    }
}

impl TrainConfig {
    /// Checks all ranges.
    ///
    /// # Errors
    /// [`Error::Problem`] for the first value that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        self.network.check()?;
        Ok(self.check_at("", SEE)?)
    }
}
