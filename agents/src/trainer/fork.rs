//! One update from forks.

use rayon::prelude::*;

use super::state::Trainer;
use crate::adam;
use crate::counterfactual::{CounterfactualConfig, Forking, Forks, Lists, Memory, Played, Player};
use crate::error::Error;
use crate::gradients::sum_of_gradients;
use crate::random::uniform;
use pleach_network::Inference;

/// What one step of Adam leaves of the running mean.
const MEAN_DECAY: f32 = 0.995;

impl Trainer {
    /// One update from forks: plays lists, and learns from the newest forks. Gives figures under their tags.
    ///
    /// # Errors
    /// What `lists` returns, [`Error::NotFinite`] for a cost or a gradient that is not finite. The trainer is then as before.
    pub fn learn_from_forks(&mut self, lists: &Lists<'_>) -> Result<Vec<(String, f64)>, Error> {
        let config = self.config.counterfactual;
        let mut memory = self.memory.take().unwrap_or_else(|| Memory {
            parameters: self.parameters.clone(),
            forks: Forks::new(self.contract.spaces),
        });
        let num_before = memory.forks.all.len();
        let result = self.try_learn(&mut memory, &config, lists);
        if result.is_err() {
            memory.forks = memory.forks.part(0..num_before);
        } else if memory.forks.all.len() > config.num_kept.saturating_mul(3) / 2 {
            let num = memory.forks.all.len();
            memory.forks = memory.forks.part(num - config.num_kept..num);
        }
        // A run that has learned nothing yet has nothing to remember.
        self.memory = Some(memory).filter(|_| result.is_ok() || self.update > 0);
        result.map_err(|error| self.name_update(error))
    }

    fn try_learn(
        &mut self,
        memory: &mut Memory,
        config: &CounterfactualConfig,
        lists: &Lists<'_>,
    ) -> Result<Vec<(String, f64)>, Error> {
        let inference = Inference::new(&self.layout, &memory.parameters)?;
        let player = Player::new(&self.contract, inference)?;
        // The sum of average JCTs of the lists so far, and their number.
        let (mut sum_s, mut num) = match self.own.as_slice() {
            [sum_s, num] => (*sum_s, *num),
            _ => (0.0, 0.0),
        };
        if num == 0.0 && config.horizon_s == 0.0 {
            let first = self.played(&player, config, None, lists)?;
            sum_s = first.iter().map(|played| played.avg_jct_s).sum();
            num = first.len() as f64;
        }
        let horizon = config.horizon(sum_s / num.max(1.0));
        let played = self.played(&player, config, Some(horizon), lists)?;
        let first = memory.forks.all.len();
        played
            .iter()
            .for_each(|played| memory.forks.extend(&played.forks));
        if !memory.forks.all[first..].iter().all(|fork| fork.cost.is_finite()) {
            return Err(Error::NotFinite { update: self.update });
        }
        let learning_rate = self.between(config.learning_rate, config.learning_rate_final);
        let (loss, grad_norm) = self.learn(memory, config, learning_rate)?;
        sum_s += played.iter().map(|played| played.avg_jct_s).sum::<f64>();
        self.own = vec![sum_s, num + played.len() as f64];
        self.num_frames += played.iter().map(|played| played.num_decisions).sum::<u64>();
        let new = &memory.forks.all[first..];
        let share =
            |of: fn(f32) -> f64| new.iter().map(|fork| of(fork.cost)).sum::<f64>() / new.len().max(1) as f64;
        let figures = [
            ("charts/update", self.update as f64),
            ("charts/learning_rate", learning_rate),
            ("charts/horizon_s", horizon.as_secs_f64()),
            ("charts/forks", new.len() as f64),
            ("losses/fork_loss", loss),
            ("losses/fork_cost", share(f64::from)),
            (
                "losses/forks_better",
                share(|cost| f64::from(u8::from(cost < 0.0))),
            ),
            ("losses/grad_norm", grad_norm),
        ];
        self.update += 1;
        Ok(figures.map(|(tag, value)| (tag.to_owned(), value)).into())
    }

    /// Plays the lists of this update, side by side.
    fn played(
        &self,
        player: &Player,
        config: &CounterfactualConfig,
        horizon: Option<pleach_scheduler::Time>,
        lists: &Lists<'_>,
    ) -> Result<Vec<Played>, Error> {
        let seed = self.update_seed();
        let play = |list: u64| {
            let load = if list % 2 == 1 { config.heavier_load } else { 1.0 };
            let episode = lists(seed.child("list", list), load)?;
            let forking = horizon.map(|horizon| Forking {
                every: config.fork_every,
                horizon,
                random: seed.stream("fork", list),
            });
            player.clone().play(episode, forking)
        };
        (0..config.num_lists as u64).into_par_iter().map(play).collect()
    }

    /// Steps of Adam on the newest forks; the mean loss and the last length of the gradient.
    fn learn(
        &mut self,
        memory: &mut Memory,
        config: &CounterfactualConfig,
        learning_rate: f64,
    ) -> Result<(f64, f64), Error> {
        let Memory { parameters, forks } = memory;
        let num = forks.all.len();
        let oldest = num.saturating_sub(config.num_kept);
        let scale = forks.scale(oldest);
        if num < config.num_first || scale == 0.0 {
            return Ok((f64::NAN, f64::NAN));
        }
        let (mut raw, mut mean, mut adam) = (parameters.clone(), self.parameters.clone(), self.adam.clone());
        let mut random = self.update_seed().stream("minibatch", 0);
        let (mut sum, mut length) = (0.0, 0.0);
        for _ in 0..config.num_steps {
            let mut draw = || oldest + (uniform(&mut random) * (num - oldest) as f64) as usize;
            let mut part: Vec<usize> = (0..config.minibatch_size).map(|_| draw().min(num - 1)).collect();
            part.sort_unstable();
            let share = 1.0 / part.len() as f32;
            let loss = |index: usize, logits: &[f32], _: f32, by: &mut [f32]| {
                let loss = forks.loss(index, scale, logits, by);
                by.iter_mut().for_each(|by| *by *= share);
                (0.0, [loss])
            };
            let on = (&self.layout, self.device, &mut self.workspace);
            let (gradient, [loss]) = sum_of_gradients(on, &raw, &forks.rows, &part, loss)?;
            length = adam::norm(gradient);
            adam::clip(gradient, length, config.max_grad_norm);
            adam.step(&mut raw, gradient, learning_rate);
            sum += loss / part.len() as f64;
            for (mean, raw) in mean.iter_mut().zip(&raw) {
                *mean = MEAN_DECAY * *mean + (1.0 - MEAN_DECAY) * raw;
            }
        }
        if !length.is_finite() || !mean.iter().chain(&raw).all(|number| number.is_finite()) {
            return Err(Error::NotFinite { update: self.update });
        }
        (*parameters, self.parameters, self.adam) = (raw, mean, adam);
        Ok((sum / f64::from(config.num_steps.max(1)), length))
    }
}
