//! One update of PPO.

use pleach_env::metrics::Metrics;
use pleach_env::seed::Seed;
use pleach_env::vector::{Batch, Spaces, VectorEnv};
use serde::{Deserialize, Serialize};

use super::{TrainConfig, Trainer};
use crate::advantage::{self, Criterion};
use crate::error::Error;
use crate::inference::Inference;
use crate::parameters::at;
use crate::ppo::{self, Experience, PpoStats, Schedule};
use crate::prior::PriorPolicy;
use crate::rollout::{Episode, Rollout};

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
    /// Estimated reward per second, where average rewards are learnt.
    pub reward_rate_per_s: Option<f64>,
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
    /// What the environments return, [`Error::Contract`] where sizes do not agree, [`Error::NotFinite`] for a loss or
    /// gradient that is not finite. The parameters, Adam and the normaliser are then those before the update.
    pub fn update(&mut self, env: &mut dyn VectorEnv) -> Result<UpdateStats, Error> {
        let before = (
            self.flat.clone(),
            self.adam.clone(),
            self.normaliser,
            self.reward_rate,
        );
        let result = self.try_update(env);
        if result.is_err() {
            (self.flat, self.adam, self.normaliser, self.reward_rate) = before;
            self.running = None;
        }
        result.map_err(|error| self.name_update(error))
    }

    fn try_update(&mut self, env: &mut dyn VectorEnv) -> Result<UpdateStats, Error> {
        let seed = self.seed.child("update", self.update);
        let inference = self.inference()?;
        let (mut rollout, mut batch) = self.start(env, &inference, seed)?;
        let num_steps = self.config.num_steps;
        rollout.collect(env, &mut batch, &inference, &self.normaliser, num_steps, seed)?;
        let TrainConfig {
            horizon_s,
            average_reward,
            gae_lambda,
            group_size,
            ..
        } = self.config;
        let criterion = if average_reward {
            self.reward_rate.observe(rollout.steps());
            let rate_per_s = self.reward_rate.per_s;
            Criterion::Average { rate_per_s }
        } else {
            Criterion::Discounted { horizon_s }
        };
        let mut decisions = rollout.decisions(criterion, gae_lambda, group_size);
        if !decisions.returns.iter().all(|value| value.is_finite()) {
            return Err(Error::NotFinite { update: self.update });
        }
        let explained_variance = advantage::explained_variance(&decisions.values, &decisions.returns);
        self.observe_returns(&decisions.returns);
        advantage::normalise(&mut decisions.advantages);
        let normaliser = self.normaliser;
        let experience = Experience {
            rows: decisions.rows,
            choices: decisions.choices,
            logprobs: decisions.logprobs,
            advantages: decisions.advantages,
            returns: decisions
                .returns
                .iter()
                .map(|value| normaliser.normalise(*value))
                .collect(),
        };
        let schedule = self.schedule();
        let mut random = seed.stream("minibatch", 0);
        let (flat, adam, config) = (&mut self.flat, &mut self.adam, &self.config.ppo);
        let ppo = ppo::improve(
            (&self.layout, self.device, &mut self.workspace),
            flat,
            adam,
            &experience,
            config,
            schedule,
            &mut random,
        )?;
        if !self.flat.iter().all(|parameter| parameter.is_finite()) {
            return Err(Error::NotFinite { update: self.update });
        }
        self.num_frames += experience.rows.len() as u64;
        let stats = self.stats(ppo, explained_variance, schedule.learning_rate, &rollout.episodes);
        self.running = Some((rollout, batch));
        self.update += 1;
        Ok(stats)
    }

    /// Buffers and first observations of an update.
    fn start(
        &mut self,
        env: &mut dyn VectorEnv,
        inference: &Inference,
        seed: Seed,
    ) -> Result<(Rollout, Batch), Error> {
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
            let allowed = "must divide the number of environments";
            let value = format!("{} with {num_envs} environments", self.config.group_size);
            return Err(Error::Config {
                key: "group_size",
                value,
                allowed,
            });
        }
        let running = self
            .running
            .take()
            .filter(|(_, batch)| batch.reward.len() == num_envs);
        let restart = running.is_none() || self.update.is_multiple_of(self.config.restart_every);
        let prior = self.contract.prior.as_ref().map(PriorPolicy::new).transpose()?;
        let (mut rollout, mut batch) = running.unwrap_or_else(|| {
            let plain = Rollout::new(self.contract.spaces, num_envs, inference);
            let rollout = prior.iter().fold(plain, Rollout::with_prior);
            (rollout, Batch::new(self.contract.spaces, num_envs))
        });
        if restart {
            let group = |i: usize| (i / self.config.group_size) as u64;
            let seeds: Vec<u64> = (0..num_envs)
                .map(|i| seed.child("arrivals", group(i)).0)
                .collect();
            env.reset(&seeds, &mut batch)?;
            rollout.restart();
        }
        Ok((rollout, batch))
    }

    /// Updates the normaliser and keeps the values what they were.
    fn observe_returns(&mut self, returns: &[f32]) {
        let old = self.normaliser;
        self.normaliser.observe(returns);
        let (weight, bias) = (
            &self.layout.entries[at::VALUE_OUT],
            &self.layout.entries[at::VALUE_OUT_BIAS],
        );
        let mut new_bias = self.flat[bias.range.start];
        self.normaliser
            .preserve(&old, &mut self.flat[weight.range.clone()], &mut new_bias);
        self.flat[bias.range.start] = new_bias;
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
            reward_rate_per_s: self.reward_rate_per_s(),
            num_episodes: episodes.len(),
            episodic_return: episodes.iter().map(|e| e.episodic_return).sum::<f64>() / count,
            episodic_length: episodes.iter().map(|e| e.episodic_length as f64).sum::<f64>() / count,
            episodes: episodes.iter().filter_map(|e| e.metrics).collect(),
        }
    }
}
