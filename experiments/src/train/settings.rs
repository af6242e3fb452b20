//! Everything that shapes a training run, as it is written to and read from `settings.toml`.

use std::path::PathBuf;

use pleach_agents::ppo::PpoConfig;
use pleach_agents::{Device, TrainConfig};
use pleach_env::EnvConfig;
use pleach_scheduler::settings;
use pleach_scheduler::settings::{Above, Own};

use crate::train::constraint::Constraint;
use crate::train::curriculum::Curriculum;
use crate::train::objective::{self, Objective};

settings! {
    /// Everything that shapes a training run.
    ///
    /// *Assumed*, by trial on `Pleach/Philly-v0`. What mattered: whole episodes in a rollout (`num_steps`), a horizon that is
    /// long against the longest job (with a short one, starving a gang is worth it), a value of `gae_lambda` near 1, and little
    /// entropy: deployed policies take the likeliest candidate, which in a spread-out policy is too often to hold, because
    /// the chance of starting is split among many starts.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TrainSettings {
        /// Environments that step together.
        pub num_envs: usize = 32, in 1..=65_536;
        /// Whom to imitate first: the name of a heuristic or of a planner whose plans can be shown as candidates,
        /// `best` for the best heuristic on the validation workloads, `none`.
        pub warm_start: String = "best".into();
        /// Steps of each environment that are shown by the one imitated.
        pub warm_start_steps: usize = 1000, in 1..=1_000_000;
        /// Rounds of DAgger after the first: the clone plays, the one imitated says what it would have done, and the clone learns
        /// from all that was said so far.
        pub dagger_rounds: u32 = 0, in 0..=1_000;
        /// Whom the network corrects, instead of deciding alone: a heuristic's name, `best` for the best one on the validation
        /// workloads, names with commas between them for the best one of these, `none`. Nobody is imitated then.
        pub prior: String = "none".into();
        /// How far the network must lift a candidate over the heuristic's choice, see [`Prior`](pleach_network::Prior).
        pub prior_weight: f64 = 1.0, in Above(0.0, 1e12);
        /// The network to go on from, a checkpoint or a run's folder; see [`fine_tuning`](crate::train::fine_tuning).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub fine_tune: Option<PathBuf>;
        /// Workloads on which the best network is chosen.
        pub num_validation: usize = 256, in 1..=10_000;
        /// Updates between validations; 0 for one at the end only.
        pub validate_every: u64 = 5, in 0..=1_000_000;
        /// Updates between checkpoints.
        pub checkpoint_every: u64 = 10, in 1..=1_000_000;
        /// Numbered checkpoints that are kept.
        pub keep_last: usize = 3, in 1..=1_000;
        /// Weights of the metrics that evolution strategies optimise, and by which the network that is kept is chosen whoever learns.
        pub objective: Objective = objective::avg_jct();
        /// What grows over training in what the learner plays.
        #[serde(skip_serializing_if = "Curriculum::is_default")]
        pub curriculum: Curriculum;
        /// What a network must keep to, to be kept.
        #[serde(skip_serializing_if = "Constraint::is_default")]
        pub constraint: Constraint;
        /// The learner.
        pub train: TrainConfig = TrainConfig {
                num_steps: 1024,
                group_size: 16,
                horizon_s: 1_000_000.0,
                gae_lambda: 0.98,
                value_warmup_updates: 3,
                ppo: PpoConfig {
                    entropy_coef: 0.002,
                    learning_rate: 5e-4,
                    ..PpoConfig::default()
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
