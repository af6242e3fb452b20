//! The training loop as a state machine that can stop and go on between any two updates.
//!
//! Everything that an update reads is in the [`Checkpoint`]: configuration, seed, number
//! of the update, parameters, Adam, normaliser. Each update restarts the environments from seeds derived from (seed,
//! update, group), so nothing of an environment needs to be saved, and N updates equal k updates, a save, a load and
//! N - k updates, bit for bit, on one machine at any number of threads.

use pleach_env::metrics::Metrics;
use pleach_env::seed::Seed;
use pleach_env::vector::{Batch, Spaces, VectorEnv};
use serde::{Deserialize, Serialize};

use crate::adam::Adam;
use crate::advantage::{self, Criterion};
use crate::checkpoint::Checkpoint;
use crate::contract::Contract;
use crate::device::Device;
use crate::error::Error;
use crate::evolution::{self, GenerationStats};
use crate::histogram::Histogram;
use crate::imitation::{Demonstrations, ImitationStats, clone_teacher};
use crate::inference::Inference;
use crate::normaliser::Normaliser;
use crate::parameters::{Layout, NetworkConfig, at};
use crate::policy::LearnedPolicy;
use crate::ppo::{self, Experience, PpoStats, Schedule};
use crate::prior::PriorPolicy;
use crate::reward_rate::RewardRate;
use crate::rollout::{Episode, Rollout};

pub use crate::train_config::{Learner, TrainConfig};

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

/// A training run.
#[derive(Clone, Debug)]
pub struct Trainer {
    config: TrainConfig,
    contract: Contract,
    seed: Seed,
    layout: Layout,
    device: Device,
    flat: Vec<f32>,
    adam: Adam,
    normaliser: Normaliser,
    reward_rate: RewardRate,
    multipliers: Vec<f64>,
    update: u64,
    num_frames: u64,
    best_score: Option<f64>,
    running: Option<(Rollout, Batch)>,
}

impl Trainer {
    /// A run that has not begun.
    ///
    /// # Errors
    /// [`Error::Config`] for a setting that is out of its range.
    pub fn new(config: TrainConfig, contract: Contract, seed: Seed) -> Result<Self, Error> {
        config.check()?;
        let layout = Layout::new(config.network, contract.spaces)?;
        let mut flat = layout.initial(seed);
        if let Some(prior) = &contract.prior {
            PriorPolicy::new(prior)?;
            flat[layout.entries[at::POINTER_OUT].range.clone()].fill(0.0);
        }
        Ok(Trainer {
            config,
            contract,
            seed,
            adam: Adam::new(flat.len()),
            layout,
            device: Device::Cpu,
            flat,
            normaliser: Normaliser::default(),
            reward_rate: RewardRate::default(),
            multipliers: Vec::new(),
            update: 0,
            num_frames: 0,
            best_score: None,
            running: None,
        })
    }

    /// Takes over the network of another run: its parameters and the scale of its values. Adam starts afresh.
    ///
    /// # Errors
    /// [`Error::Contract`] where the other network has another size, sees other features or corrects another heuristic; the
    /// trainer is then as before.
    pub fn go_on_from(&mut self, other: &Checkpoint) -> Result<(), Error> {
        self.contract.check_schema(&other.contract.schema_hash)?;
        let sizes = |network: NetworkConfig, spaces: Spaces| format!("{network:?} on {spaces:?}");
        let own = sizes(self.config.network, self.contract.spaces);
        let found = sizes(other.config.network, other.contract.spaces);
        if own != found || self.flat.len() != other.parameters.len() {
            return Err(Error::contract("network", own, found));
        }
        if self.contract.prior != other.contract.prior {
            let text = |prior| format!("{prior:?}");
            let (own, found) = (text(&self.contract.prior), text(&other.contract.prior));
            return Err(Error::contract("corrected heuristic", own, found));
        }
        self.flat.clone_from(&other.parameters);
        (self.adam, self.normaliser) = (Adam::new(self.flat.len()), other.normaliser);
        Ok(())
    }

    /// The same run with its gradients taken on `device`, which is no part of its state: a checkpoint goes on on any.
    #[must_use]
    pub fn on(self, device: Device) -> Self {
        Trainer { device, ..self }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// Updates made so far.
    #[must_use]
    pub fn num_updates(&self) -> u64 {
        self.update
    }

    /// All updates of the configuration have been made.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.update >= self.config.num_updates
    }

    /// Names, shapes and places of the parameters.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// All parameters, in the layout's order.
    #[must_use]
    pub fn parameters(&self) -> &[f32] {
        &self.flat
    }

    /// The estimated long-run reward per second, where average rewards are learnt.
    #[must_use]
    pub fn reward_rate_per_s(&self) -> Option<f64> {
        self.config.average_reward.then_some(self.reward_rate.per_s)
    }

    /// Multipliers of the caller's constraints, none at first. What they price is the caller's affair; here they are kept with
    /// the run, so that one that is resumed goes on with them.
    #[must_use]
    pub fn multipliers(&self) -> &[f64] {
        &self.multipliers
    }

    /// Sets them; finite.
    pub fn set_multipliers(&mut self, multipliers: Vec<f64>) {
        self.multipliers = multipliers;
    }

    /// The present policy, for evaluation.
    ///
    /// # Errors
    /// None in practice: the lengths agree.
    pub fn inference(&self) -> Result<Inference, Error> {
        Inference::new(&self.layout, &self.flat)
    }

    /// The present policy as a scheduling policy.
    ///
    /// # Errors
    /// [`Error::Contract`] where the run's feature schema is not this program's.
    pub fn policy(&self) -> Result<LearnedPolicy, Error> {
        LearnedPolicy::new(&self.contract, self.inference()?)
    }

    /// Notes the score of an evaluation of the present policy, larger being better, and says whether it is the best so
    /// far. The best score is in the checkpoint, so that a resumed run goes on comparing.
    pub fn note_evaluation(&mut self, score: f64) -> bool {
        let best = score.is_finite() && self.best_score.is_none_or(|best| score > best);
        if best {
            self.best_score = Some(score);
        }
        best
    }

    /// Clones a teacher. Adam starts afresh. Where average rewards are learnt, the discounted returns that it had teach
    /// nothing.
    ///
    /// # Errors
    /// As [`clone_teacher`]; the trainer is then as before.
    pub fn warm_start(&mut self, demonstrations: &Demonstrations) -> Result<ImitationStats, Error> {
        let (mut flat, mut normaliser) = (self.flat.clone(), self.normaliser);
        let config = &self.config.imitation;
        let without_returns = self
            .config
            .average_reward
            .then(|| demonstrations.without_returns());
        let demonstrations = without_returns.as_ref().unwrap_or(demonstrations);
        let stats = clone_teacher(
            (&self.layout, self.device),
            &mut flat,
            &mut normaliser,
            demonstrations,
            config,
            self.seed,
        )
        .map_err(|error| self.name_update(error))?;
        (self.flat, self.normaliser) = (flat, normaliser);
        self.adam = Adam::new(self.flat.len());
        Ok(stats)
    }

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

    /// One generation of evolution strategies: `fitness` gets the policies of the population and the seed of the workloads that
    /// all of them play, and returns one fitness each, larger being better, with what counts as frames.
    ///
    /// # Errors
    /// What `fitness` returns, [`Error::Contract`] for another number of figures than policies, [`Error::NotFinite`] for a
    /// fitness that is not finite. The parameters and Adam are then those before.
    pub fn evolve<E: From<Error>>(
        &mut self,
        fitness: impl FnOnce(&[LearnedPolicy], Seed) -> Result<(Vec<f64>, u64), E>,
    ) -> Result<GenerationStats, E> {
        let seed = self.seed.child("update", self.update);
        let config = self.config.evolution;
        let scales = evolution::scales(&self.layout);
        let members = evolution::population(&self.flat, &scales, &config, seed)
            .iter()
            .map(|flat| LearnedPolicy::new(&self.contract, Inference::new(&self.layout, flat)?))
            .collect::<Result<Vec<_>, Error>>()?;
        let (fitness, num_frames) = fitness(&members, seed.child("arrivals", 0))?;
        if fitness.len() != members.len() {
            return Err(Error::contract("figures of fitness", members.len(), fitness.len()).into());
        }
        if !fitness.iter().all(|value| value.is_finite()) {
            return Err(Error::NotFinite { update: self.update }.into());
        }
        let descent = evolution::descent(&fitness, self.flat.len(), &config, seed);
        let learning_rate = self.between(config.learning_rate, config.learning_rate_final);
        // Adam works in units of the scales, where all parameters are of a size.
        let (mut moved, mut adam) = (vec![0.0; self.flat.len()], self.adam.clone());
        adam.step(&mut moved, &descent, learning_rate);
        for (step, (x, scale)) in moved.iter_mut().zip(self.flat.iter().zip(&scales)) {
            *step = x + scale * *step;
        }
        if !moved.iter().all(|parameter| parameter.is_finite()) {
            return Err(Error::NotFinite { update: self.update }.into());
        }
        (self.flat, self.adam) = (moved, adam);
        self.num_frames += num_frames;
        let mean = fitness.iter().sum::<f64>() / fitness.len() as f64;
        let square = fitness.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let stats = GenerationStats {
            update: self.update,
            num_frames: self.num_frames,
            learning_rate,
            fitness_mean: mean,
            fitness_deviation: (square / fitness.len() as f64).sqrt(),
            fitness_best: fitness.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            grad_norm: crate::adam::norm(&descent),
        };
        self.update += 1;
        Ok(stats)
    }

    fn name_update(&self, error: Error) -> Error {
        match error {
            Error::NotFinite { .. } => Error::NotFinite { update: self.update },
            other => other,
        }
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
            (&self.layout, self.device),
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

    /// What goes linearly from `first` to `last` over the run.
    fn between(&self, first: f64, last: f64) -> f64 {
        let last_update = self.config.num_updates.saturating_sub(1).max(1) as f64;
        first + (last - first) * (self.update as f64 / last_update).min(1.0)
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

    /// How numbers are spread: the parameters of each part of the network (`parameters/PART`), and what the last update
    /// saw (`rollout/...`; nothing before the first update after a start).
    ///
    /// # Errors
    /// As [`Trainer::inference`].
    pub fn histograms(&self) -> Result<Vec<(String, Histogram)>, Error> {
        let part = |name: &'static str| name.split('.').next().unwrap_or(name);
        let mut histograms = Vec::new();
        for entries in self.layout.entries.chunk_by(|a, b| part(a.name) == part(b.name)) {
            let range = entries[0].range.start..entries[entries.len() - 1].range.end;
            if let Some(histogram) = Histogram::of(self.flat[range].iter().copied()) {
                histograms.push((format!("parameters/{}", part(entries[0].name)), histogram));
            }
        }
        if let Some((rollout, _)) = &self.running {
            let seen = rollout.histograms(&self.inference()?);
            histograms.extend(
                seen.into_iter()
                    .map(|(tag, histogram)| (tag.to_owned(), histogram)),
            );
        }
        Ok(histograms)
    }

    /// Everything that the run needs to go on.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            config: self.config,
            contract: self.contract.clone(),
            seed: self.seed,
            update: self.update,
            num_frames: self.num_frames,
            best_score: self.best_score,
            normaliser: self.normaliser,
            reward_rate: self.reward_rate,
            multipliers: self.multipliers.clone(),
            parameters: self.flat.clone(),
            adam: self.adam.clone(),
        }
    }

    /// Goes on from a checkpoint.
    ///
    /// # Errors
    /// [`Error::Config`] for a setting that is out of its range, [`Error::Contract`] where the number of parameters is
    /// not that of the network.
    pub fn resume(checkpoint: Checkpoint) -> Result<Trainer, Error> {
        let mut trainer = Trainer::new(checkpoint.config, checkpoint.contract, checkpoint.seed)?;
        let expected = trainer.flat.len();
        for found in [
            &checkpoint.parameters,
            &checkpoint.adam.mean,
            &checkpoint.adam.square,
        ]
        .map(Vec::len)
        {
            if found != expected {
                return Err(Error::contract("number of parameters", expected, found));
            }
        }
        (trainer.flat, trainer.adam) = (checkpoint.parameters, checkpoint.adam);
        (trainer.update, trainer.num_frames) = (checkpoint.update, checkpoint.num_frames);
        (trainer.normaliser, trainer.best_score) = (checkpoint.normaliser, checkpoint.best_score);
        (trainer.reward_rate, trainer.multipliers) = (checkpoint.reward_rate, checkpoint.multipliers);
        Ok(trainer)
    }
}
