//! A rollout that is to be played, apart from the trainer: while one is played, the trainer can learn from the one before.
//!
//! With `overlap` the rollout of update k + 1 is played during update k, by the network as it was before update k. What is
//! played depends on that network and the number of the update alone, so runs are the same at any number of threads, and a
//! checkpoint that holds that network goes on as if nothing had happened: it plays the rollout again.

use pleach_env::{Batch, Seed, Spaces, VectorEnv};
use pleach_network::{Inference, Layout, PriorPolicy};

use crate::behaviour::Behaviour;
use crate::error::Error;
use crate::rollout::Rollout;

/// A rollout to be played.
pub(super) struct Collection {
    pub(super) layout: Layout,
    pub(super) spaces: Spaces,
    pub(super) prior: Option<PriorPolicy>,
    pub(super) group_size: usize,
    pub(super) num_steps: usize,
    /// Begin new episodes, even where buffers hold running ones.
    pub(super) restart: bool,
    pub(super) seed: Seed,
}

impl Collection {
    /// Plays in the buffers of an earlier rollout, if they fit.
    pub(super) fn run(
        self,
        behaviour: &Behaviour,
        env: &mut dyn VectorEnv,
        buffers: Option<(Rollout, Batch)>,
    ) -> Result<(Rollout, Batch), Error> {
        let inference = Inference::new(&self.layout, &behaviour.parameters)?;
        let num_envs = env.num_envs();
        let buffers = buffers.filter(|(_, batch)| batch.reward.len() == num_envs);
        let restart = buffers.is_none() || self.restart;
        let (mut rollout, mut batch) = buffers.unwrap_or_else(|| {
            let plain = Rollout::new(self.spaces, num_envs, &inference);
            let rollout = self.prior.iter().fold(plain, Rollout::with_prior);
            (rollout, Batch::new(self.spaces, num_envs))
        });
        if restart {
            let group = |i: usize| (i / self.group_size) as u64;
            let seeds: Vec<u64> = (0..num_envs)
                .map(|i| self.seed.child("arrivals", group(i)).0)
                .collect();
            env.reset(&seeds, &mut batch)?;
            rollout.restart();
        }
        let values = &behaviour.normaliser;
        rollout.collect(env, &mut batch, &inference, values, self.num_steps, self.seed)?;
        Ok((rollout, batch))
    }
}
