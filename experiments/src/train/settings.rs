//! Everything that shapes a training run, as it is written to and read from `settings.toml`.

use std::path::PathBuf;

use pleach_agents::{Device, ImitationConfig, TrainConfig};
use pleach_env::EnvConfig;
use pleach_network::NetworkConfig;
use pleach_scheduler::settings;
use pleach_scheduler::settings::{Above, Own};

use crate::train::constraint::Constraint;
use crate::train::curriculum::Curriculum;
use crate::train::objective::{self, Objective};
use crate::train::validation::Validation;

/// The time constant of the discount over the average JCT, where none is set: as long as forks are followed
/// (`agents/src/counterfactual.rs`), with the same reason.
const HORIZON_JCTS: f64 = 0.6;

settings! {
    /// Everything that shapes a training run.
    ///
    /// *Assumed*, by trial on `Pleach/GavelMulti-v1`. What mattered: the reward `delay`, which pays a run when it starts; a sharp
    /// policy (a clone without smoothing, a low temperature, no entropy bonus), so that draws are near the likeliest candidate, which
    /// is deployed; a horizon near the average JCT; whole episodes in a rollout (`num_steps`); a running mean of the parameters.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TrainSettings {
        /// Environments that step together.
        pub num_envs: usize = 32, in 1..=65_536;
        /// What to imitate first: the name of a heuristic, of a planner whose plans can be shown as candidates, `best` for the best
        /// heuristic on the validation workloads, `none`.
        pub warm_start: String = "best".into();
        /// Steps of each environment that are shown by the one imitated.
        pub warm_start_steps: usize = 250, in 1..=1_000_000;
        /// Rounds of DAgger after the first: the clone plays, the one imitated says what it would have done, and the clone learns
        /// from all that was said so far. A planner plays on by itself instead.
        pub dagger_rounds: u32 = 3, in 0..=1_000;
        /// The heuristic that the network corrects, instead of deciding alone: its name, `best` for the best one on the validation
        /// workloads, names with commas between them for the best one of these, `none`. With one, nothing is imitated.
        pub prior: String = "none".into();
        /// How far the network must lift a candidate over the heuristic's choice, see [`Prior`](pleach_network::Prior).
        pub prior_weight: f64 = 1.0, in Above(0.0, 1e12);
        /// The network to go on from, a checkpoint or a run's folder; see [`fine_tuning`](crate::train::fine_tuning).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub fine_tune: Option<PathBuf>;
        /// Workloads on which the best network is chosen.
        pub num_validation: usize = 48, in 1..=10_000;
        /// Updates between validations; 0 for one at the end only.
        pub validate_every: u64 = 10, in 0..=1_000_000;
        /// Updates between checkpoints.
        pub checkpoint_every: u64 = 10, in 1..=1_000_000;
        /// Numbered checkpoints that are kept.
        pub keep_last: usize = 3, in 1..=1_000;
        /// Weights of the metrics that evolution strategies optimise. Each learner chooses the network that is kept by them.
        pub objective: Objective = objective::avg_jct();
        /// What grows over training in what the learner plays.
        #[serde(skip_serializing_if = "Curriculum::is_default")]
        pub curriculum: Curriculum;
        /// What a network must keep to, to be kept.
        #[serde(skip_serializing_if = "Constraint::is_default")]
        pub constraint: Constraint;
        /// The learner.
        pub train: TrainConfig = TrainConfig {
                num_updates: 60,
                num_steps: 1024,
                group_size: 16,
                horizon_s: 0.0,
                value_warmup_updates: 4,
                network: NetworkConfig {
                    hidden: 16,
                    context: 16,
                    ..NetworkConfig::default()
                },
                imitation: ImitationConfig {
                    num_epochs: 4,
                    smoothing: 0.0,
                    ..ImitationConfig::default()
                },
                ..TrainConfig::default()
            }, in Own;
        /// The environment.
        pub env: EnvConfig;
        /// Where gradients are taken. A matter of the machine and not of the run, so it is in no file: a run may go on elsewhere.
        #[serde(skip)]
        pub device: Device = Device::Cpu;
        /// Processes that play a generation of evolution together, this one among them; 0 and 1 mean it alone. A matter of the
        /// machines too: the bytes are the same for any number.
        #[serde(skip)]
        pub num_units: usize = 1;
    }
}

impl TrainSettings {
    /// The stage of the curriculum that the update after `num_updates` is of; always the same without one.
    pub(super) fn stage(&self, num_updates: u64) -> u64 {
        if self.curriculum.is_default() {
            return 0;
        }
        let (total, restart_every) = (self.train.num_updates, self.train.restart_every);
        self.curriculum.stage(num_updates, total, restart_every)
    }

    /// The same with a time constant of the discount, where none is set: a part of the average JCT of the best heuristic.
    #[must_use]
    pub(crate) fn discounted_by(mut self, validation: &Validation) -> TrainSettings {
        if self.train.horizon_s == 0.0 {
            let jcts = validation.base.iter().map(|run| run.metrics["avg_jct_s"]);
            self.train.horizon_s = HORIZON_JCTS * jcts.sum::<f64>() / validation.base.len().max(1) as f64;
        }
        self
    }

    /// The same without candidates that the cluster never offers, so that the network's contract asks for none of a kind
    /// that it has not met in training.
    #[must_use]
    pub(crate) fn narrowed(&self) -> TrainSettings {
        let mut settings = self.clone();
        let capabilities = self.env.sim.capabilities;
        let offered = &mut settings.env.candidates.actions;
        *offered = offered.intersection(capabilities.actions());
        settings
    }
}
