//! Refuses settings of a training that cannot be used, before anything runs.

use pleach_agents::Device;
use pleach_agents::learner::{Plays, way};
use pleach_scheduler::settings::Settings as _;

use super::memory;
use super::objective;
use super::settings::TrainSettings;
use super::teachers::{check_heuristic, check_teacher};
use crate::error::Error;

impl TrainSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        self.check_at("", "Leave it out for the default.")?;
        self.env.validate()?;
        self.train.check()?;
        objective::check(&self.objective)?;
        self.check_device()?;
        self.curriculum.check()?;
        self.constraint.check()?;
        match self.prior.contains(',') {
            true => self
                .prior
                .split(',')
                .try_for_each(|name| check_heuristic("prior", name, &[]))?,
            false => check_heuristic("prior", &self.prior, &["best", "none"])?,
        }
        if !matches!(self.warm_start.as_str(), "best" | "none") {
            check_teacher(&self.warm_start, self.env.sim.capabilities)?;
        }
        Error::refuse_if(
            !self.num_envs.is_multiple_of(self.train.group_size),
            "num_envs",
            self.num_envs,
            format_args!("a multiple of train.group_size = {}", self.train.group_size),
            "Give another --num-envs, or set group_size in --config.",
        )?;
        Error::refuse_if(
            way(self.train.learner).plays() == Plays::Steps && self.env.reward.pays_nothing(),
            "env.reward",
            "0, 0, 0",
            "at least one weight above 0 with PPO, which learns from nothing else",
            "Set --reward=-delay, or learn with train.learner=evolution.",
        )?;
        way(self.train.learner).check(&self.train)?;
        memory::check(self)?;
        let restart_every = self.train.restart_every;
        Error::refuse_if(
            !self.checkpoint_every.is_multiple_of(restart_every),
            "checkpoint_every",
            self.checkpoint_every,
            format_args!("a multiple of train.restart_every = {restart_every}"),
            "Elsewhere environments are amid their episodes, which no checkpoint holds.",
        )?;
        Ok(())
    }

    /// Whether this build has the device, and the learner a use for it.
    fn check_device(&self) -> Result<(), Error> {
        let name = self.device.name();
        Error::refuse_if(
            self.device != Device::Cpu && way(self.train.learner).plays() == Plays::Episodes,
            "device",
            name,
            "cpu with evolution strategies",
            "They take no gradients. Leave out --device, or learn with --set train.learner=ppo.",
        )?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::overrides;

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
                    "warm_start_steps x (1 + dagger_rounds) = 65536 x 250 x 4",
                    "warm_start_steps=64 or less",
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
            let texts = ["num_envs=65536", "warm_start_steps=64", other].map(str::to_string);
            let settings = overrides::apply(&TrainSettings::default(), &texts).unwrap();
            settings.validate().unwrap();
        }
    }
}
