//! Everything that shapes a training run, as it is written to and read from `settings.toml`.

use std::path::PathBuf;

use pleach_agents::device::Device;
use pleach_agents::ppo::PpoConfig;
use pleach_agents::trainer::{Learner, TrainConfig};
use pleach_baselines::Requirements;
use pleach_env::config::EnvConfig;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::heuristics;
use serde::{Deserialize, Serialize};

use crate::constraint::Constraint;
use crate::curriculum::Curriculum;
use crate::error::Error;
use crate::fitness::{self, Objective};
use crate::requirement_flags::requirement_flags;
use crate::scenario::env_error;
use crate::training_memory;

/// Everything that shapes a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Environments that step together.
    pub num_envs: usize,
    /// Whom to imitate first: the name of a heuristic or of a planner whose plans can be shown as candidates ([`check_teacher`]),
    /// `best` for the best heuristic on the validation workloads, `none`.
    pub warm_start: String,
    /// Steps of each environment that are shown by the one imitated.
    pub warm_start_steps: usize,
    /// Rounds of DAgger after the first: the clone plays, the one imitated says what it would have done, and the clone learns
    /// from all that was said so far.
    pub dagger_rounds: u32,
    /// Whom the network corrects, instead of deciding alone: a heuristic's name, `best` for the best one on the validation
    /// workloads, `none`. Nobody is imitated then.
    pub prior: String,
    /// How far the network must lift a candidate over the heuristic's choice, see [`Prior`](pleach_network::Prior).
    pub prior_weight: f64,
    /// The network to go on from, a checkpoint or a run's folder; see [`fine_tuning`](crate::fine_tuning).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune: Option<PathBuf>,
    /// Workloads on which the best network is chosen.
    pub num_validation: usize,
    /// Updates between validations; 0 for one at the end only.
    pub validate_every: u64,
    /// Updates between checkpoints.
    pub checkpoint_every: u64,
    /// Numbered checkpoints that are kept.
    pub keep_last: usize,
    /// Weights of the metrics that evolution strategies optimise, and by which the network that is kept is chosen whoever learns.
    pub objective: Objective,
    /// What grows over training in what the learner plays.
    #[serde(skip_serializing_if = "Curriculum::is_default")]
    pub curriculum: Curriculum,
    /// What a network must keep to, to be kept.
    #[serde(skip_serializing_if = "Constraint::is_default")]
    pub constraint: Constraint,
    /// The learner.
    pub train: TrainConfig,
    /// The environment.
    pub env: EnvConfig,
    /// Where gradients are taken. A matter of the machine and not of the run, so it is in no file: a run may go on elsewhere.
    #[serde(skip)]
    pub device: Device,
}

/// *Assumed*, by trial on `Pleach/Philly-v0`. What mattered: whole episodes in a rollout (`num_steps`), a horizon that is
/// long against the longest job (with a short one, starving a gang is worth it), a value of `gae_lambda` near 1, and little
/// entropy: deployed policies take the likeliest candidate, which in a spread-out policy is too often to hold, because
/// the chance of starting is split among many starts.
impl Default for TrainSettings {
    fn default() -> TrainSettings {
        TrainSettings {
            num_envs: 32,
            warm_start: "best".into(),
            warm_start_steps: 1000,
            dagger_rounds: 0,
            prior: "none".into(),
            prior_weight: 1.0,
            fine_tune: None,
            num_validation: 256,
            validate_every: 5,
            checkpoint_every: 10,
            keep_last: 3,
            objective: fitness::avg_jct(),
            curriculum: Curriculum::default(),
            constraint: Constraint::default(),
            train: TrainConfig {
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
            },
            env: EnvConfig::default(),
            device: Device::Cpu,
        }
    }
}

impl TrainSettings {
    /// The same without candidates that the cluster never offers, so that the network's contract asks for none of a kind
    /// that it has not met in training.
    #[must_use]
    pub fn narrowed(&self) -> TrainSettings {
        let mut settings = self.clone();
        let capabilities = self.env.sim.capabilities;
        settings.env.candidates.preempt &= capabilities.preemption;
        settings.env.candidates.reserve &= capabilities.reservation;
        settings
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        self.env.validate().map_err(env_error)?;
        self.train.check().map_err(agent_error)?;
        fitness::check(&self.objective)?;
        self.check_device()?;
        self.curriculum.check(&self.env)?;
        self.constraint.check()?;
        check_heuristic("prior", &self.prior, &["best", "none"])?;
        if !matches!(self.warm_start.as_str(), "best" | "none") {
            check_teacher(&self.warm_start, self.env.sim.capabilities)?;
            if pleach_baselines::find(&self.warm_start).is_some() && self.dagger_rounds > 0 {
                let allowed = "0 with a planner as the teacher";
                let hint = "A planner can say what it would do in its own schedule, not in a clone's.";
                return Err(Error::config("dagger_rounds", self.dagger_rounds, allowed, hint));
            }
        }
        if self.train.average_reward && self.env.max_steps.is_none() {
            let hint = "An episode that runs to its last job has a better average the longer it takes; cut it before.";
            let allowed = "a number of steps with train.average_reward";
            return Err(Error::config("env.max_steps", "none", allowed, hint));
        }
        if self.train.overlap && !self.curriculum.is_default() {
            let hint = "The next rollout is played before its stage begins; leave out curriculum or overlap.";
            return Err(Error::config(
                "train.overlap",
                true,
                "false with a curriculum",
                hint,
            ));
        }
        if !(self.prior_weight.is_finite() && self.prior_weight > 0.0) {
            let hint = "1 is a good start; more keeps the network closer to the heuristic.";
            return Err(Error::config("prior_weight", self.prior_weight, "above 0", hint));
        }
        if !self.num_envs.is_multiple_of(self.train.group_size) {
            let allowed = format!("a multiple of train.group_size = {}", self.train.group_size);
            let hint = "Give another --num-envs, or set group_size in --config.";
            return Err(Error::config("num_envs", self.num_envs, allowed, hint));
        }
        let reward = &self.env.reward;
        let pays_nothing = reward.jct == 0.0 && reward.slowdown == 0.0 && reward.utilisation == 0.0;
        if self.train.learner == Learner::Ppo && pays_nothing {
            let allowed = "at least one weight above 0 with PPO, which learns from nothing else";
            let hint = "Set env.reward.jct=1, or learn with train.learner=evolution.";
            return Err(Error::config("env.reward", "0, 0, 0", allowed, hint));
        }
        let train = &self.train;
        let numbers = [
            ("num_envs", self.num_envs as u64, 1..=65_536),
            ("warm_start_steps", self.warm_start_steps as u64, 1..=1_000_000),
            ("dagger_rounds", u64::from(self.dagger_rounds), 0..=1_000),
            ("num_validation", self.num_validation as u64, 1..=10_000),
            ("validate_every", self.validate_every, 0..=1_000_000),
            ("checkpoint_every", self.checkpoint_every, 1..=1_000_000),
            ("keep_last", self.keep_last as u64, 1..=1_000),
            ("train.num_updates", train.num_updates, 0..=1_000_000_000_000),
            ("train.num_steps", train.num_steps as u64, 1..=1_000_000),
            ("train.restart_every", train.restart_every, 1..=1_000_000),
        ];
        for (key, value, range) in numbers {
            if !range.contains(&value) {
                let allowed = format!("{} to {}", range.start(), range.end());
                return Err(Error::config(
                    key,
                    value,
                    allowed,
                    "Leave it out for the default.",
                ));
            }
        }
        training_memory::check(self)?;
        let restart_every = self.train.restart_every;
        if !self.checkpoint_every.is_multiple_of(restart_every) {
            let allowed = format!("a multiple of train.restart_every = {restart_every}");
            let hint = "Elsewhere environments are amid their episodes, which no checkpoint holds.";
            return Err(Error::config(
                "checkpoint_every",
                self.checkpoint_every,
                allowed,
                hint,
            ));
        }
        Ok(())
    }
}

/// Refuses a teacher that cannot be imitated candidate by candidate: an unknown name, or a planner that stops running jobs,
/// mixes GPU types, or shares GPUs where the cluster does not.
///
/// # Errors
/// The name with what is allowed.
pub fn check_teacher(name: &str, capabilities: Capabilities) -> Result<(), Error> {
    let can_teach = |required: &Requirements| !required.preemption && !required.mixed_types;
    let teachers: Vec<&str> = pleach_baselines::entries()
        .filter(|entry| can_teach(&entry.requirements))
        .map(|entry| entry.info.name)
        .collect();
    let Some(planner) = pleach_baselines::find(name) else {
        let others: Vec<&str> = ["best", "none"].into_iter().chain(teachers).collect();
        return check_heuristic("warm_start", name, &others);
    };
    let missing = planner.requirements.missing_from(capabilities);
    if can_teach(&planner.requirements) && missing == Requirements::NOTHING {
        return Ok(());
    }
    let hint = if can_teach(&planner.requirements) {
        format!("{name} needs {}.", requirement_flags(missing).join(" and "))
    } else {
        format!("{name} stops running jobs or mixes GPU types, which no candidate does.")
    };
    let allowed = format!("a heuristic, or one of the planners {}", teachers.join(", "));
    Err(Error::config("warm_start", name, allowed, hint))
}

/// Refuses what is neither a heuristic's name nor one of the other words that the key takes.
///
/// # Errors
/// Key and value with all that is allowed, and the nearest of it.
pub fn check_heuristic(key: &str, name: &str, others: &[&'static str]) -> Result<(), Error> {
    let known: Vec<&'static str> = others.iter().chain(heuristics::names()).copied().collect();
    if known.contains(&name) {
        return Ok(());
    }
    let nearest = heuristics::nearest_of(&known, name).unwrap_or("best");
    let hint = format!("Did you mean {nearest}? pleach policies says what each one does.");
    Err(Error::config(key, name, known.join(", "), hint))
}

impl TrainSettings {
    /// Whether this build has the device, and the learner a use for it.
    fn check_device(&self) -> Result<(), Error> {
        let name = self.device.name();
        if self.device != Device::Cpu && self.train.learner == Learner::Evolution {
            let hint = "They take no gradients. Leave out --device, or learn with --set train.learner=ppo.";
            return Err(Error::config(
                "device",
                name,
                "cpu with evolution strategies",
                hint,
            ));
        }
        if !self.device.is_built_in() {
            let built_in = Device::ALL.into_iter().filter(|device| device.is_built_in());
            let names: Vec<&str> = built_in.map(Device::name).collect();
            let allowed = format!("{} in this build", names.join(", "));
            let hint = format!("Build with: cargo build --release --features {name}");
            return Err(Error::config("device", name, allowed, hint));
        }
        Ok(())
    }
}

/// Turns a learner's error into ours.
#[must_use]
pub fn agent_error(error: pleach_agents::error::Error) -> Error {
    match error {
        pleach_agents::error::Error::Config { key, value, allowed } => {
            let allowed = allowed.trim_start_matches("must be ");
            Error::config(key, value, allowed, "See docs/learning.md.")
        }
        pleach_agents::error::Error::Contract {
            what,
            expected,
            found,
        } => Error::Contract {
            what: what.to_string(),
            expected,
            found,
            hint: "See docs/learning.md.".to_string(),
        },
        pleach_agents::error::Error::Env(error) => env_error(error),
        pleach_agents::error::Error::Io { path, source } => Error::io("access", &path, source),
        other => Error::Failed(other.to_string()),
    }
}

/// Turns a network's error into ours.
#[must_use]
pub fn network_error(error: pleach_network::Error) -> Error {
    agent_error(error.into())
}

impl From<pleach_agents::error::Error> for Error {
    fn from(error: pleach_agents::error::Error) -> Error {
        agent_error(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overrides;

    fn refused(text: &str) -> String {
        let settings = overrides::apply(&TrainSettings::default(), &[text.to_string()]).unwrap();
        settings.validate().unwrap_err().to_string()
    }

    #[test]
    fn names_of_heuristics_are_refused_under_their_own_key_with_all_that_it_takes() {
        for (text, words) in [
            ("prior=foo", ["prior = foo", "best, none, ", "fifo"]),
            (
                "prior=sjff",
                ["prior = sjff", "best, none, ", "Did you mean sjf?"],
            ),
            (
                "warm_start=foo",
                ["warm_start = foo", "best, none, ", "conservative"],
            ),
            (
                "constraint.baseline=zzz",
                ["constraint.baseline = zzz", "prior, best, ", "fifo"],
            ),
        ] {
            let said = refused(text);
            assert!(words.iter().all(|word| said.contains(word)), "{text}: {said}");
        }
    }

    #[test]
    fn numbers_that_no_machine_can_hold_and_rewards_of_nothing_are_refused() {
        for (text, words) in [
            (
                "train.num_steps=1000000000",
                ["train.num_steps = 1000000000", "1 to 1000000"],
            ),
            (
                "train.num_steps=1000000",
                [
                    "num_envs x train.num_steps = 32 x 1000000",
                    "num_steps=524288 or less",
                ],
            ),
            (
                "num_envs=65536",
                [
                    "warm_start_steps x (1 + dagger_rounds) = 65536 x 1000 x 1",
                    "warm_start_steps=256 or less",
                ],
            ),
            ("dagger_rounds=5000", ["dagger_rounds = 5000", "0 to 1000"]),
            ("env.reward.jct=0", ["env.reward = 0, 0, 0", "above 0 with PPO"]),
        ] {
            let said = refused(text);
            assert!(words.iter().all(|word| said.contains(word)), "{text}: {said}");
        }
        // As the hint says; and evolution strategies keep no rollout.
        for other in ["train.num_steps=256", "train.learner=evolution"] {
            let texts = ["num_envs=65536", "warm_start_steps=256", other].map(str::to_string);
            let settings = overrides::apply(&TrainSettings::default(), &texts).unwrap();
            settings.validate().unwrap();
        }
    }
}
