//! N environments that step together over the threads of the present pool.
//!
//! Parallelism maps over independent environments and nothing is reduced across them, so the bytes of a batch do not
//! depend on the number of threads. One environment alone is stepped where the caller is, and no pool is built for it.

mod slot;

use pleach_scheduler::PolicyError;
use pleach_scheduler::Problem;
use pleach_scheduler::policy::Policy;
use rayon::prelude::*;

use self::slot::{Slot, copy_row, only_row, rows};
use crate::config::EnvConfig;
use crate::env::Env;
use crate::error::{Error, StepError};
use crate::expert::ExpertPlanner;
use crate::vector::{AutoresetMode, Batch, BatchMut, Spaces, VectorEnv};
use crate::world::TenantIntegrals;
use pleach_workloads::Seed;

/// N environments of one configuration, or of configurations with the same spaces.
#[derive(Debug)]
pub struct VecEnv {
    slots: Vec<Slot>,
    mode: AutoresetMode,
    spaces: Spaces,
}

impl VecEnv {
    /// N environments that have not begun.
    ///
    /// # Errors
    /// As [`Env::new`].
    pub fn new(config: &EnvConfig, num_envs: usize, mode: AutoresetMode) -> Result<VecEnv, Error> {
        let env = Env::new(config.clone())?;
        Ok(VecEnv {
            spaces: env.spaces(),
            slots: (0..num_envs).map(|_| Slot::new(&env)).collect(),
            mode,
        })
    }

    /// Gives environment after environment the settings of its place, from its next episode on, which has to be begun by a reset;
    /// where there are none it stays as it is. Settings that are equal are opened once.
    ///
    /// # Errors
    /// As [`Env::new`], and [`Problem`] where the spaces would be others. Then all stay as they are.
    pub fn change(&mut self, configs: &[Option<EnvConfig>]) -> Result<(), Error> {
        check_len(configs.len(), self.slots.len())?;
        let mut made: Vec<(&EnvConfig, Env)> = Vec::new();
        for config in configs.iter().flatten() {
            if made.iter().any(|(known, _)| *known == config) {
                continue;
            }
            let env = Env::new(config.clone())?;
            if env.spaces() != self.spaces {
                return Err(Error::Problem(Problem::new(
                    "columns",
                    format!("{:?}", env.spaces()),
                    format!("the spaces of the other environments, {:?}", self.spaces),
                    "All show the same view",
                )));
            }
            made.push((config, env));
        }
        for (slot, config) in self.slots.iter_mut().zip(configs) {
            let known = made.iter().find(|(known, _)| Some(*known) == config.as_ref());
            let Some((_, env)) = known else { continue };
            let old = std::mem::replace(&mut slot.env, env.clone());
            slot.env.record_as(&old);
        }
        Ok(())
    }

    /// The same environments in the middle of the same episodes.
    #[must_use]
    pub fn fork(&self) -> VecEnv {
        VecEnv {
            slots: self.slots.iter().map(Slot::fork).collect(),
            ..*self
        }
    }

    /// Puts copies of environment `from`, in the middle of its episode, into the places of others, with its rows of the batch. What
    /// happens then follows from the actions: their episodes have the same jobs and the same fates.
    ///
    /// # Errors
    /// A place that there is not; buffers of other lengths.
    pub fn fork_to(&mut self, from: usize, to: &[usize], batch: BatchMut<'_>) -> Result<(), Error> {
        batch.check(self.spaces, self.slots.len())?;
        let num = self.slots.len();
        if let Some(place) = to.iter().chain([&from]).find(|place| **place >= num) {
            let hint = "Environments are counted from 0.";
            return Err(Error::Problem(Problem::new(
                "fork",
                place,
                format!("0 to {}", num - 1),
                hint,
            )));
        }
        for &to in to.iter().filter(|place| **place != from) {
            self.slots[to] = self.slots[from].fork();
            for all in [
                &mut *batch.global,
                &mut *batch.candidates,
                &mut *batch.reward,
                &mut *batch.final_global,
                &mut *batch.final_candidates,
            ] {
                copy_row(all, num, from, to);
            }
            for all in [
                &mut *batch.mask,
                &mut *batch.terminated,
                &mut *batch.truncated,
                &mut *batch.final_mask,
            ] {
                copy_row(all, num, from, to);
            }
            copy_row(batch.dt_s, num, from, to);
            copy_row(batch.gained, num, from, to);
            copy_row(batch.episode, num, from, to);
        }
        Ok(())
    }

    /// The environments, for callers that need more than batches.
    #[must_use]
    pub fn envs(&self) -> impl ExactSizeIterator<Item = &Env> {
        self.slots.iter().map(|slot| &slot.env)
    }

    /// One of them, for callers that ask more than a batch says.
    pub fn env_mut(&mut self, index: usize) -> Option<&mut Env> {
        self.slots.get_mut(index).map(|slot| &mut slot.env)
    }

    /// Keeps time integrals of each tenant from the next reset on; [`VecEnv::by_tenant`] has them.
    pub fn record_tenants(&mut self) {
        for slot in &mut self.slots {
            slot.env.record_tenants();
            slot.by_tenant = Some(TenantIntegrals::default());
        }
    }

    /// Keeps what decisions commit from the next reset on; see [`Env::record_excess`].
    pub fn record_excess(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.env.record_excess());
    }

    /// What each tenant has gained in the last step of each environment; none where that is not kept.
    pub fn by_tenant(&self) -> impl ExactSizeIterator<Item = Option<&TenantIntegrals>> {
        self.slots.iter().map(|slot| slot.by_tenant.as_ref())
    }

    /// What a policy would do in environment `index`; see [`Env::choice_of`].
    ///
    /// # Errors
    /// What the policy reports.
    ///
    /// # Panics
    /// If there is no such environment.
    pub fn choice_of(&mut self, index: usize, policy: &mut dyn Policy) -> Result<usize, PolicyError> {
        self.slots[index].env.choice_of(policy)
    }

    /// What a planner would start next in environment `index`; see [`Env::expert_action`].
    ///
    /// # Errors
    /// What the planner reports.
    ///
    /// # Panics
    /// If there is no such environment.
    pub fn expert_action(
        &self,
        index: usize,
        expert: &mut ExpertPlanner,
    ) -> Result<Option<usize>, PolicyError> {
        self.slots[index].env.expert_action(expert)
    }

    /// As [`VectorEnv::step`], into buffers of the caller.
    ///
    /// # Errors
    /// As [`VectorEnv::step`]; buffers of other lengths.
    pub fn step_into(&mut self, actions: &[usize], batch: BatchMut<'_>) -> Result<(), Error> {
        check_len(actions.len(), self.slots.len())?;
        batch.check(self.spaces, self.slots.len())?;
        let mode = self.mode;
        if let ([slot], [action]) = (&mut self.slots[..], actions) {
            return slot.step(*action, mode, only_row(batch));
        }
        let slots = self
            .slots
            .par_iter_mut()
            .zip(actions.par_iter())
            .zip(rows(self.spaces, batch));
        slots.for_each(|((slot, action), row)| slot.error = slot.step(*action, mode, row).err());
        self.first_error()
    }

    /// Begins a new episode where there is a seed, and leaves the other environments and their rows as they are.
    ///
    /// # Errors
    /// As [`VectorEnv::reset`]; buffers of other lengths.
    pub fn reset_some(&mut self, seeds: &[Option<u64>], batch: BatchMut<'_>) -> Result<(), Error> {
        check_len(seeds.len(), self.slots.len())?;
        batch.check(self.spaces, self.slots.len())?;
        if let ([slot], [seed]) = (&mut self.slots[..], seeds) {
            return seed.map_or(Ok(()), |seed| slot.reset(Seed(seed), only_row(batch)));
        }
        let slots = self
            .slots
            .par_iter_mut()
            .zip(seeds.par_iter())
            .zip(rows(self.spaces, batch));
        slots.for_each(|((slot, seed), row)| {
            if let Some(seed) = seed {
                slot.error = slot.reset(Seed(*seed), row).err();
            }
        });
        self.first_error()
    }

    fn first_error(&mut self) -> Result<(), Error> {
        match self.slots.iter_mut().find_map(|slot| slot.error.take()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn check_len(found: usize, expected: usize) -> Result<(), StepError> {
    if found == expected {
        Ok(())
    } else {
        Err(StepError::Shape { expected, found })
    }
}

impl VectorEnv for VecEnv {
    fn spaces(&self) -> Spaces {
        self.spaces
    }

    fn num_envs(&self) -> usize {
        self.slots.len()
    }

    fn reset(&mut self, seeds: &[u64], batch: &mut Batch) -> Result<(), Error> {
        let seeds: Vec<Option<u64>> = seeds.iter().copied().map(Some).collect();
        self.reset_some(&seeds, batch.lend())
    }

    fn step(&mut self, actions: &[usize], batch: &mut Batch) -> Result<(), Error> {
        self.step_into(actions, batch.lend())
    }

    fn scores_of(&mut self, policies: &mut [&mut dyn Policy], scores: &mut [f32]) -> Result<(), Error> {
        check_len(policies.len(), self.slots.len())?;
        check_len(scores.len(), self.slots.len() * self.spaces.num_candidates)?;
        if let ([slot], [policy]) = (&mut self.slots[..], &mut *policies) {
            return slot.env.scores_of(&mut **policy, scores).map_err(Error::from);
        }
        let rows = scores.par_chunks_mut(self.spaces.num_candidates);
        let slots = self.slots.par_iter_mut().zip(policies.par_iter_mut()).zip(rows);
        slots.for_each(|((slot, policy), scores)| {
            slot.error = slot.env.scores_of(&mut **policy, scores).err().map(Error::from);
        });
        self.first_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::random_action;

    fn rollout(num_threads: usize) -> Vec<u32> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut config = EnvConfig::registered("Pleach/Philly-v0").unwrap();
            config.max_steps = Some(40);
            let mut envs = VecEnv::new(&config, 3, AutoresetMode::SameStep).unwrap();
            let mut batch = Batch::new(envs.spaces(), 3);
            envs.reset(&[1, 2, 3], &mut batch).unwrap();
            let mut rng = Seed(5).stream("actions", 0);
            let mut trace = Vec::new();
            for _ in 0..100 {
                let masks = batch.mask.chunks(envs.spaces().num_candidates);
                let actions: Vec<usize> = masks.map(|mask| random_action(mask, &mut rng)).collect();
                envs.step(&actions, &mut batch).unwrap();
                trace.extend(
                    batch
                        .candidates
                        .iter()
                        .chain(&batch.reward)
                        .map(|value| value.to_bits()),
                );
            }
            trace
        })
    }

    #[test]
    fn a_batch_does_not_depend_on_the_number_of_threads() {
        assert_eq!(rollout(1), rollout(2));
    }

    #[test]
    fn a_wrong_number_of_actions_and_a_masked_action_are_errors() {
        let config = EnvConfig::registered("Pleach/Philly-v0").unwrap();
        let mut envs = VecEnv::new(&config, 2, AutoresetMode::Disabled).unwrap();
        let mut batch = Batch::new(envs.spaces(), 2);
        assert!(
            envs.step(&[0, 0], &mut batch)
                .unwrap_err()
                .to_string()
                .contains("call reset")
        );
        envs.reset(&[1, 2], &mut batch).unwrap();
        assert!(
            envs.step(&[0], &mut batch)
                .unwrap_err()
                .to_string()
                .contains("must hold 2")
        );
        assert!(
            envs.step(&[63, 63], &mut batch)
                .unwrap_err()
                .to_string()
                .contains("not admissible")
        );
    }

    #[test]
    fn after_an_end_the_buffers_hold_the_next_episode_and_the_last_observation_is_kept() {
        let mut config = EnvConfig::registered("Pleach/Philly-v0").unwrap();
        config.max_steps = Some(1);
        let mut envs = VecEnv::new(&config, 1, AutoresetMode::SameStep).unwrap();
        let mut batch = Batch::new(envs.spaces(), 1);
        envs.reset(&[1], &mut batch).unwrap();
        let first = batch.candidates.clone();
        let action = batch.mask.iter().position(|admissible| *admissible).unwrap();
        envs.step(&[action], &mut batch).unwrap();
        assert!(batch.truncated[0] && !batch.terminated[0] && batch.episode[0].is_some());
        assert_ne!(batch.candidates, batch.final_candidates);
        assert_ne!(batch.candidates, first, "the next episode has another workload");
    }

    #[test]
    fn in_next_step_mode_the_step_after_an_end_begins_the_next_episode_of_the_same_seed() {
        let mut config = EnvConfig::registered("Pleach/Philly-v0").unwrap();
        config.max_steps = Some(1);
        let open = |mode| {
            let mut envs = VecEnv::new(&config, 1, mode).unwrap();
            let mut batch = Batch::new(envs.spaces(), 1);
            envs.reset(&[1], &mut batch).unwrap();
            (envs, batch)
        };
        let (mut next, mut later) = open(AutoresetMode::NextStep);
        let (mut same, mut now) = open(AutoresetMode::SameStep);
        let action = [now.mask.iter().position(|admissible| *admissible).unwrap()];
        next.step(&action, &mut later).unwrap();
        same.step(&action, &mut now).unwrap();
        assert!(later.truncated[0] && later.candidates == now.final_candidates);
        next.step(&[usize::MAX], &mut later).unwrap();
        assert!(
            !later.truncated[0] && later.reward == [0.0] && later.dt_s == [0.0] && later.episode[0].is_none()
        );
        assert_eq!(later.candidates, now.candidates);
    }

    #[test]
    fn environments_without_a_seed_stay_as_they_are() {
        let config = EnvConfig::registered("Pleach/Philly-v0").unwrap();
        let mut envs = VecEnv::new(&config, 2, AutoresetMode::Disabled).unwrap();
        let mut batch = Batch::new(envs.spaces(), 2);
        envs.reset(&[1, 2], &mut batch).unwrap();
        let (before, half) = (batch.candidates.clone(), batch.candidates.len() / 2);
        envs.reset_some(&[None, Some(3)], batch.lend()).unwrap();
        assert_eq!(batch.candidates[..half], before[..half]);
        assert_ne!(batch.candidates[half..], before[half..]);
        batch.mask.pop();
        let text = envs
            .reset_some(&[None, None], batch.lend())
            .unwrap_err()
            .to_string();
        assert!(text.contains("must hold 128"), "{text}");
    }

    #[test]
    fn a_fork_goes_on_as_its_source_does_under_the_same_actions() {
        let config = EnvConfig::registered("Pleach/GavelMultiRealistic-v2").unwrap();
        let mut envs = VecEnv::new(&config, 3, AutoresetMode::SameStep).unwrap();
        let mut batch = Batch::new(envs.spaces(), 3);
        envs.reset(&[1, 2, 3], &mut batch).unwrap();
        let width = envs.spaces().num_candidates;
        let first = |batch: &Batch, env: usize| {
            let mask = &batch.mask[env * width..(env + 1) * width];
            mask.iter().rposition(|admissible| *admissible).unwrap()
        };
        let step = |envs: &mut VecEnv, batch: &mut Batch, num: usize| {
            for _ in 0..num {
                let actions: Vec<usize> = (0..3).map(|env| first(batch, env)).collect();
                envs.step(&actions, batch).unwrap();
            }
        };
        step(&mut envs, &mut batch, 20);
        envs.fork_to(2, &[0, 2], batch.lend()).unwrap();
        step(&mut envs, &mut batch, 200);
        let cells = batch.candidates.len() / 3;
        assert_eq!(batch.candidates[..cells], batch.candidates[2 * cells..]);
        assert_ne!(batch.candidates[..cells], batch.candidates[cells..2 * cells]);
        assert_eq!(
            (batch.reward[0], batch.gained[0]),
            (batch.reward[2], batch.gained[2])
        );
        let text = envs.fork_to(0, &[3], batch.lend()).unwrap_err().to_string();
        assert!(text.contains("0 to 2"), "{text}");
    }
}
