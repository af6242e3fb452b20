//! One environment among several, and its row of a batch: its episodes in turn, each with a seed of its own.

use pleach_workloads::Seed;
use rayon::prelude::*;

use crate::env::Env;
use crate::error::Error;
use crate::metrics::Metrics;
use crate::vector::{AutoresetMode, BatchMut, ObservationMut, Spaces};
use crate::world::{Integrals, TenantIntegrals};

/// An environment with the seed that its episodes come from.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) env: Env,
    seed: Seed,
    episode: u64,
    /// The episode has ended, and with [`AutoresetMode::NextStep`] the next step begins another.
    ended: bool,
    /// What each tenant has gained in the last step, where that is kept.
    pub(super) by_tenant: Option<TenantIntegrals>,
    pub(super) error: Option<Error>,
}

impl Slot {
    /// One that has not begun.
    pub(super) fn new(env: &Env) -> Slot {
        Slot {
            env: env.clone(),
            seed: Seed(0),
            episode: 0,
            ended: false,
            by_tenant: None,
            error: None,
        }
    }

    /// The same in the middle of the same episode.
    pub(super) fn fork(&self) -> Slot {
        Slot {
            env: self.env.clone(),
            by_tenant: self.by_tenant.clone(),
            error: None,
            ..*self
        }
    }

    pub(super) fn reset(&mut self, seed: Seed, mut row: Row<'_>) -> Result<(), Error> {
        (self.seed, self.episode, self.ended) = (seed, 0, false);
        row.clear();
        self.env.reset(seed.child("episode", 0).0, row.observation)?;
        self.clear_by_tenant();
        Ok(())
    }

    /// The episode after the present one.
    fn reset_next(&mut self, observation: ObservationMut<'_>) -> Result<(), Error> {
        self.episode += 1;
        self.ended = false;
        let seed = self.seed.child("episode", self.episode).0;
        self.env.reset(seed, observation)
    }

    /// No step has been taken yet in the present episode.
    fn clear_by_tenant(&mut self) {
        if let Some(by_tenant) = &mut self.by_tenant {
            let cluster = self.env.cluster();
            by_tenant.clear(cluster.map_or(0, |cluster| cluster.tenants().len()));
        }
    }

    pub(super) fn step(&mut self, action: usize, mode: AutoresetMode, mut row: Row<'_>) -> Result<(), Error> {
        if self.ended && mode == AutoresetMode::NextStep {
            row.clear();
            self.reset_next(row.observation)?;
            self.clear_by_tenant();
            return Ok(());
        }
        let Row {
            observation:
                ObservationMut {
                    global,
                    candidates,
                    mask,
                },
            last,
            ..
        } = row;
        let now = ObservationMut {
            global: &mut *global,
            candidates: &mut *candidates,
            mask: &mut *mask,
        };
        let step = self.env.step(action, now)?;
        (*row.reward, *row.terminated, *row.truncated) = (step.reward, step.terminated, step.truncated);
        (*row.dt_s, *row.gained, *row.episode) = (step.dt_s, step.gained, None);
        if let Some(by_tenant) = &mut self.by_tenant {
            self.env.take_by_tenant(by_tenant);
        }
        if step.terminated || step.truncated {
            *row.episode = Some(self.env.metrics());
            self.ended = true;
            if mode == AutoresetMode::SameStep {
                last.global.copy_from_slice(global);
                last.candidates.copy_from_slice(candidates);
                last.mask.copy_from_slice(mask);
                self.reset_next(ObservationMut {
                    global,
                    candidates,
                    mask,
                })?;
            }
        }
        Ok(())
    }
}

/// The buffers of one environment within a batch.
pub(super) struct Row<'a> {
    observation: ObservationMut<'a>,
    last: ObservationMut<'a>,
    reward: &'a mut f32,
    terminated: &'a mut bool,
    truncated: &'a mut bool,
    dt_s: &'a mut f64,
    gained: &'a mut Integrals,
    episode: &'a mut Option<Metrics>,
}

impl Row<'_> {
    /// What a step returns where nothing was done.
    fn clear(&mut self) {
        (*self.reward, *self.terminated, *self.truncated, *self.dt_s) = (0.0, false, false, 0.0);
        (*self.gained, *self.episode) = (Integrals::default(), None);
    }
}

/// What a row reads: the context, the candidates and the mask.
type Slices<'a> = ((&'a mut [f32], &'a mut [f32]), &'a mut [bool]);

fn observation(((global, candidates), mask): Slices<'_>) -> ObservationMut<'_> {
    ObservationMut {
        global,
        candidates,
        mask,
    }
}

/// The row of a batch that has one.
pub(super) fn only_row(batch: BatchMut<'_>) -> Row<'_> {
    Row {
        observation: observation(((batch.global, batch.candidates), batch.mask)),
        last: observation(((batch.final_global, batch.final_candidates), batch.final_mask)),
        reward: &mut batch.reward[0],
        terminated: &mut batch.terminated[0],
        truncated: &mut batch.truncated[0],
        dt_s: &mut batch.dt_s[0],
        gained: &mut batch.gained[0],
        episode: &mut batch.episode[0],
    }
}

/// The rows of a batch, side by side.
pub(super) fn rows(spaces: Spaces, batch: BatchMut<'_>) -> impl IndexedParallelIterator<Item = Row<'_>> {
    let Spaces {
        num_global,
        num_candidates,
        num_features,
        ..
    } = spaces;
    let cells = num_candidates * num_features;
    let now = batch
        .global
        .par_chunks_mut(num_global)
        .zip(batch.candidates.par_chunks_mut(cells))
        .zip(batch.mask.par_chunks_mut(num_candidates))
        .map(observation);
    let last = batch
        .final_global
        .par_chunks_mut(num_global)
        .zip(batch.final_candidates.par_chunks_mut(cells))
        .zip(batch.final_mask.par_chunks_mut(num_candidates))
        .map(observation);
    let ends = batch
        .terminated
        .par_iter_mut()
        .zip(batch.truncated.par_iter_mut());
    let values = batch
        .reward
        .par_iter_mut()
        .zip(batch.dt_s.par_iter_mut())
        .zip(batch.gained.par_iter_mut());
    now.zip(last)
        .zip(ends)
        .zip(values)
        .zip(batch.episode.par_iter_mut())
        .map(
            |((((observation, last), (terminated, truncated)), ((reward, dt_s), gained)), episode)| Row {
                observation,
                last,
                reward,
                terminated,
                truncated,
                dt_s,
                gained,
                episode,
            },
        )
}

/// Row `from` at `to`, of so many rows.
pub(super) fn copy_row<T: Copy>(all: &mut [T], num: usize, from: usize, to: usize) {
    let width = all.len() / num;
    all.copy_within(from * width..(from + 1) * width, to * width);
}
