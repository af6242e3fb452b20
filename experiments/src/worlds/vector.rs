//! Environments of a world that step together, for learners that want rewards.

use pleach_env::{Batch, Error, Seed, Spaces, StepError, VectorEnv};
use pleach_serving::Environment;

/// Environments with as many rows each; an episode that ends is followed by the next in the same step.
pub(super) struct Together {
    envs: Vec<Box<dyn Environment>>,
    /// Of each environment: what its episodes are drawn from, and how many have been.
    streams: Vec<(Seed, u64)>,
    spaces: Spaces,
}

impl Together {
    /// At least one.
    pub(super) fn new(envs: Vec<Box<dyn Environment>>) -> Together {
        let num_rows = envs.first().map_or(0, |env| env.rows().mask.len());
        Together {
            streams: vec![(Seed(0), 0); envs.len()],
            spaces: envs
                .first()
                .map_or(Spaces::new(0, 0, 0), |env| Spaces::of(&env.view(), num_rows)),
            envs,
        }
    }

    /// Begins the next episode of an environment.
    fn again(&mut self, env: usize) -> Result<(), Error> {
        let (seed, episode) = &mut self.streams[env];
        let next = seed.child("episode", *episode);
        *episode += 1;
        Ok(self.envs[env].reset(next.0)?)
    }

    fn write(&self, env: usize, global: &mut [f32], candidates: &mut [f32], mask: &mut [bool]) {
        let rows = self.envs[env].rows();
        let (c, g) = (self.spaces.num_candidates, self.spaces.num_global);
        let width = c * self.spaces.num_features;
        global[env * g..(env + 1) * g].copy_from_slice(rows.context);
        candidates[env * width..(env + 1) * width].copy_from_slice(rows.rows);
        mask[env * c..(env + 1) * c].copy_from_slice(rows.mask);
    }
}

impl VectorEnv for Together {
    fn spaces(&self) -> Spaces {
        self.spaces
    }

    fn num_envs(&self) -> usize {
        self.envs.len()
    }

    fn reset(&mut self, seeds: &[u64], batch: &mut Batch) -> Result<(), Error> {
        for (env, seed) in seeds.iter().enumerate() {
            self.streams[env] = (Seed(*seed), 0);
            self.again(env)?;
            self.write(env, &mut batch.global, &mut batch.candidates, &mut batch.mask);
        }
        Ok(())
    }

    fn step(&mut self, actions: &[usize], batch: &mut Batch) -> Result<(), Error> {
        for (env, action) in actions.iter().enumerate() {
            let num_candidates = self.spaces.num_candidates;
            if *action >= num_candidates {
                let action = *action;
                return Err(StepError::Inadmissible {
                    action,
                    num_candidates,
                }
                .into());
            }
            let step = self.envs[env].step(*action)?;
            (batch.reward[env], batch.dt_s[env]) = (step.reward as f32, step.dt_s);
            (batch.terminated[env], batch.truncated[env]) = (step.is_last, false);
            if step.is_last {
                self.write(
                    env,
                    &mut batch.final_global,
                    &mut batch.final_candidates,
                    &mut batch.final_mask,
                );
                self.again(env)?;
            }
            self.write(env, &mut batch.global, &mut batch.candidates, &mut batch.mask);
        }
        Ok(())
    }
}
