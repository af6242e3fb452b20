//! One update of PPO.

use pleach_env::{Batch, Metrics, Seed, Spaces, VectorEnv};
use pleach_network::PriorPolicy;
use serde::{Deserialize, Serialize};

use super::state::Trainer;
use crate::adam::Adam;
use crate::advantage;
use crate::counterfactual::{Forks, Memory};
use crate::error::Error;
use crate::ppo::{self, Experience, PpoStats, Schedule};
use crate::rollout::{Episode, Rollout};
use crate::train_config::TrainConfig;

/// Figures of one update. Nothing in it depends on the clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateStats {
    /// Number of the update, from 0.
    pub update: u64,
    /// Environment steps of the run so far, this update's included.
    pub num_frames: u64,
    /// Learning rate.
    pub learning_rate: f64,
    /// Losses.
    pub ppo: PpoStats,
    /// Share of the returns' variance that the values explained; NaN where returns did not vary.
    pub explained_variance: f64,
    /// Episodes that ended in this update.
    pub num_episodes: usize,
    /// Their mean sum of rewards; NaN without episodes.
    pub episodic_return: f64,
    /// Their mean number of decisions; NaN without episodes.
    pub episodic_length: f64,
    /// The environments' figures of those episodes.
    pub episodes: Vec<Metrics>,
}

impl Trainer {
    /// One update: a rollout of `num_steps` steps per environment, and PPO on it.
    ///
    /// # Errors
    /// What the environments return, [`Error::Problem`] where sizes do not agree, [`Error::NotFinite`] for a loss or
    /// gradient that is not finite. The parameters, Adam and the normaliser are then those before the update.
    pub fn update(&mut self, env: &mut dyn VectorEnv) -> Result<UpdateStats, Error> {
        let before = (self.parameters.clone(), self.adam.clone(), self.normaliser);
        if let Some(memory) = &self.memory {
            self.parameters.clone_from(&memory.parameters);
        }
        let result = self.try_update(env);
        match &result {
            Ok(_) => self.average(before.0),
            Err(_) => {
                (self.parameters, self.adam, self.normaliser) = before;
                self.running = None;
            }
        }
        result.map_err(|error| self.name_update(error))
    }

    /// Keeps the parameters that learn, and makes the network a running mean of them, where it is one.
    fn average(&mut self, mut mean: Vec<f32>) {
        let decay = self.config.ppo.mean_decay as f32;
        if decay == 0.0 {
            return;
        }
        for (mean, learned) in mean.iter_mut().zip(&self.parameters) {
            // What does not move stays as it is, to the bit.
            *mean += (1.0 - decay) * (learned - *mean);
        }
        let parameters = std::mem::replace(&mut self.parameters, mean);
        let forks = Forks::new(self.contract.spaces);
        self.memory = Some(Memory { parameters, forks });
    }

    fn try_update(&mut self, env: &mut dyn VectorEnv) -> Result<UpdateStats, Error> {
        self.check_env(env)?;
        let seed = self.seed.child("update", self.update);
        let (mut rollout, batch) = self.collect(env, seed)?;
        let (experience, explained_variance) = self.experience(&mut rollout)?;
        if self.update > 0 && self.update == self.config.value_warmup_updates {
            // The policy's moments are zero and Adam has counted the value head's steps: with those its first steps would be
            // scaled for moments that have long settled, several times too large.
            self.adam = Adam::new(self.parameters.len());
        }
        let schedule = self.schedule();
        let (parameters, adam, workspace) = (&mut self.parameters, &mut self.adam, &mut self.workspace);
        let on = (&self.layout, self.device, workspace);
        let random = &mut seed.stream("minibatch", 0);
        let ppo = ppo::improve(
            on,
            parameters,
            adam,
            &experience,
            &self.config.ppo,
            schedule,
            random,
        )?;
        if !self.parameters.iter().all(|parameter| parameter.is_finite()) {
            return Err(Error::NotFinite { update: self.update });
        }
        self.num_frames += experience.rows.len() as u64;
        let stats = self.stats(ppo, explained_variance, schedule.learning_rate, &rollout.episodes);
        self.running = Some((rollout, batch));
        self.update += 1;
        Ok(stats)
    }

    /// What PPO learns from, and the share of the returns' variance that the values explained. Takes notice of the returns.
    fn experience(&mut self, rollout: &mut Rollout) -> Result<(Experience, f64), Error> {
        let TrainConfig {
            horizon_s,
            gae_lambda,
            group_size,
            ..
        } = self.config;
        let mut decisions = rollout.decisions(horizon_s, gae_lambda, group_size);
        if !decisions.returns.iter().all(|value| value.is_finite()) {
            return Err(Error::NotFinite { update: self.update });
        }
        let explained_variance = advantage::explained_variance(&decisions.values, &decisions.returns);
        self.observe_returns(&decisions.returns);
        advantage::normalise(&mut decisions.advantages);
        let returns = decisions.returns.iter();
        let experience = Experience {
            rows: decisions.rows,
            choices: decisions.choices,
            logprobs: decisions.logprobs,
            advantages: decisions.advantages,
            returns: returns.map(|value| self.normaliser.normalise(*value)).collect(),
        };
        Ok((experience, explained_variance))
    }

    fn check_env(&self, env: &dyn VectorEnv) -> Result<(), Error> {
        let num_envs = env.num_envs();
        if env.spaces() != self.contract.spaces {
            let text = |spaces: Spaces| format!("{spaces:?}");
            return Err(Error::contract(
                "observations",
                text(self.contract.spaces),
                text(env.spaces()),
            ));
        }
        if num_envs == 0 || !num_envs.is_multiple_of(self.config.group_size) {
            let allowed = "a divisor of the number of environments";
            let value = format!("{} with {num_envs} environments", self.config.group_size);
            return Err(Error::config("group_size", value, allowed));
        }
        Ok(())
    }

    /// Plays the rollout of this update in the buffers of an earlier one, if they fit.
    fn collect(&mut self, env: &mut dyn VectorEnv, seed: Seed) -> Result<(Rollout, Batch), Error> {
        let (spaces, num_envs) = (self.contract.spaces, env.num_envs());
        let inference = self.inference()?;
        let buffers = self.running.take();
        let buffers = buffers.filter(|(_, batch)| batch.reward.len() == num_envs);
        let restart = buffers.is_none() || self.update.is_multiple_of(self.config.restart_every);
        let (mut rollout, mut batch) = match buffers {
            Some(buffers) => buffers,
            None => {
                let prior = self.contract.prior.as_ref().map(PriorPolicy::new).transpose()?;
                let plain = Rollout::new(spaces, num_envs, &inference).drawn_at(self.config.ppo.temperature);
                let rollout = prior.iter().fold(plain, Rollout::with_prior);
                (rollout, Batch::new(spaces, num_envs))
            }
        };
        if restart {
            let group = |i: usize| (i / self.config.group_size) as u64;
            let seeds: Vec<u64> = (0..num_envs)
                .map(|i| seed.child("arrivals", group(i)).0)
                .collect();
            env.reset(&seeds, &mut batch)?;
            rollout.restart();
        }
        let values = &self.normaliser;
        rollout.collect(env, &mut batch, &inference, values, self.config.num_steps, seed)?;
        Ok((rollout, batch))
    }

    /// Updates the normaliser and keeps the values what they were.
    fn observe_returns(&mut self, returns: &[f32]) {
        let old = self.normaliser;
        self.normaliser.observe(returns);
        let last = [
            self.layout.entry("value.out.weight"),
            self.layout.entry("value.out.bias"),
        ];
        let [Some(weight), Some(bias)] = last else { return };
        let mut new_bias = self.parameters[bias.range.start];
        self.normaliser
            .preserve(&old, &mut self.parameters[weight.range.clone()], &mut new_bias);
        self.parameters[bias.range.start] = new_bias;
    }

    fn schedule(&self) -> Schedule {
        let ppo = &self.config.ppo;
        Schedule {
            learning_rate: self.between(ppo.learning_rate, ppo.learning_rate_final),
            entropy_coef: self.between(ppo.entropy_coef, ppo.entropy_coef_final),
            value_only: self.update < self.config.value_warmup_updates,
        }
    }

    fn stats(
        &self,
        ppo: PpoStats,
        explained_variance: f64,
        learning_rate: f64,
        episodes: &[Episode],
    ) -> UpdateStats {
        let count = episodes.len() as f64;
        UpdateStats {
            update: self.update,
            num_frames: self.num_frames,
            learning_rate,
            ppo,
            explained_variance,
            num_episodes: episodes.len(),
            episodic_return: episodes.iter().map(|e| e.episodic_return).sum::<f64>() / count,
            episodic_length: episodes.iter().map(|e| e.episodic_length as f64).sum::<f64>() / count,
            episodes: episodes.iter().filter_map(|e| e.metrics).collect(),
        }
    }
}
