//! Small environments whose optimum can be computed, to see that learning learns.

use pleach_env::{Batch, Error, Seed, Spaces, StepError, VectorEnv};
use rand_chacha::ChaCha8Rng;

use crate::random::uniform;

/// One environment with candidates `[C, F]`.
pub(crate) trait Toy: Send {
    const SPACES: Spaces;
    fn begin(random: ChaCha8Rng) -> Self;
    /// Writes the observation; buffers are zeroed.
    fn observe(&self, global: &mut [f32], candidates: &mut [f32], mask: &mut [bool]);
    /// (reward, terminated, truncated, dt in s)
    fn step(&mut self, action: usize) -> (f32, bool, bool, f64);
    /// After the end of an episode.
    fn again(&mut self);
}

/// N toys in SameStep mode.
pub(crate) struct Many<T> {
    toys: Vec<T>,
    /// A step at which rewards become NaN, counted over the life of the environments.
    pub nan_at: Option<u64>,
    num_steps: u64,
}

impl<T: Toy> Many<T> {
    pub fn new(num_envs: usize) -> Many<T> {
        let toys = (0..num_envs)
            .map(|i| T::begin(Seed(i as u64).stream("toy", 0)))
            .collect();
        Many {
            toys,
            nan_at: None,
            num_steps: 0,
        }
    }

    pub(crate) fn toy(&self, i: usize) -> &T {
        &self.toys[i]
    }

    fn write(&self, i: usize, global: &mut [f32], candidates: &mut [f32], mask: &mut [bool]) {
        let Spaces {
            num_global: g,
            num_candidates: c,
            num_features: f,
            ..
        } = T::SPACES;
        let cells = &mut candidates[i * c * f..(i + 1) * c * f];
        let (global, mask) = (&mut global[i * g..(i + 1) * g], &mut mask[i * c..(i + 1) * c]);
        cells.fill(0.0);
        mask.fill(false);
        self.toys[i].observe(global, cells, mask);
    }
}

impl<T: Toy> VectorEnv for Many<T> {
    fn spaces(&self) -> Spaces {
        T::SPACES
    }

    fn num_envs(&self) -> usize {
        self.toys.len()
    }

    fn reset(&mut self, seeds: &[u64], batch: &mut Batch) -> Result<(), Error> {
        for (i, seed) in seeds.iter().enumerate() {
            self.toys[i] = T::begin(Seed(*seed).stream("toy", 0));
            self.write(i, &mut batch.global, &mut batch.candidates, &mut batch.mask);
        }
        Ok(())
    }

    fn step(&mut self, actions: &[usize], batch: &mut Batch) -> Result<(), Error> {
        self.num_steps += 1;
        for (i, action) in actions.iter().enumerate() {
            if !batch.mask_view()[[i, *action]] {
                let num_candidates = T::SPACES.num_candidates;
                return Err(StepError::Inadmissible {
                    action: *action,
                    num_candidates,
                }
                .into());
            }
            let (reward, terminated, truncated, dt_s) = self.toys[i].step(*action);
            batch.reward[i] = if self.nan_at.is_some_and(|at| self.num_steps >= at) {
                f32::NAN
            } else {
                reward
            };
            (batch.terminated[i], batch.truncated[i], batch.dt_s[i]) = (terminated, truncated, dt_s);
            if terminated || truncated {
                self.write(
                    i,
                    &mut batch.final_global,
                    &mut batch.final_candidates,
                    &mut batch.final_mask,
                );
                self.toys[i].again();
            }
            self.write(i, &mut batch.global, &mut batch.candidates, &mut batch.mask);
        }
        Ok(())
    }
}

/// A contextual bandit: up to five candidates with two numbers each; what the first is worth depends on the context.
pub(crate) struct Bandit {
    random: ChaCha8Rng,
    context: f32,
    arms: [Option<[f32; 2]>; 5],
}

impl Bandit {
    pub fn worth(&self, arm: [f32; 2]) -> f32 {
        self.context * arm[0] - 0.5 * arm[1]
    }

    pub fn best(&self) -> f32 {
        self.arms
            .iter()
            .flatten()
            .map(|arm| self.worth(*arm))
            .fold(f32::NEG_INFINITY, f32::max)
    }

    pub fn mean(&self) -> f32 {
        let worth: Vec<f32> = self.arms.iter().flatten().map(|arm| self.worth(*arm)).collect();
        worth.iter().sum::<f32>() / worth.len() as f32
    }
}

impl Toy for Bandit {
    const SPACES: Spaces = Spaces::new(1, 6, 2);

    fn begin(random: ChaCha8Rng) -> Bandit {
        let mut bandit = Bandit {
            random,
            context: 0.0,
            arms: [None; 5],
        };
        bandit.again();
        bandit
    }

    fn observe(&self, global: &mut [f32], candidates: &mut [f32], mask: &mut [bool]) {
        global[0] = self.context;
        for (i, arm) in self.arms.iter().enumerate() {
            mask[i] = arm.is_some();
            candidates[2 * i..2 * i + 2].copy_from_slice(&arm.unwrap_or([9.0, 9.0]));
        }
    }

    fn step(&mut self, action: usize) -> (f32, bool, bool, f64) {
        (
            self.arms[action].map_or(f32::NAN, |arm| self.worth(arm)),
            true,
            false,
            0.0,
        )
    }

    fn again(&mut self) {
        self.context = if uniform(&mut self.random) < 0.5 {
            -1.0
        } else {
            1.0
        };
        for (i, arm) in self.arms.iter_mut().enumerate() {
            let present = i == 0 || uniform(&mut self.random) < 0.7;
            let mut draw = || 2.0 * uniform(&mut self.random) as f32 - 1.0;
            *arm = present.then(|| [draw(), draw()]);
        }
    }
}

/// Longest queue of [`TwoQueues`]; jobs that arrive at a full queue are lost.
pub(crate) const CAPACITY: usize = 4;
/// Per queue: probability of an arrival, of a service that succeeds, and cost of a waiting job per step.
pub(crate) const QUEUES: [(f64, f64, f64); 2] = [(0.4, 0.9, 1.0), (0.15, 0.3, 2.0)];
/// Seconds per step.
pub(crate) const STEP_S: f64 = 10.0;

/// One server and two queues in discrete time: hold, serve the first or serve the second.
pub(crate) struct TwoQueues {
    random: ChaCha8Rng,
    pub queues: [usize; 2],
    age: u32,
}

impl Toy for TwoQueues {
    const SPACES: Spaces = Spaces::new(2, 3, 4);

    fn begin(random: ChaCha8Rng) -> TwoQueues {
        let mut toy = TwoQueues {
            random,
            queues: [0; 2],
            age: 0,
        };
        toy.again();
        toy
    }

    fn observe(&self, global: &mut [f32], candidates: &mut [f32], mask: &mut [bool]) {
        observe_queues(self.queues, global, candidates, mask);
    }

    fn step(&mut self, action: usize) -> (f32, bool, bool, f64) {
        let cost: f64 = (0..2).map(|q| QUEUES[q].2 * self.queues[q] as f64).sum();
        if let Some(served) = action.checked_sub(1).filter(|q| self.queues[*q] > 0)
            && uniform(&mut self.random) < QUEUES[served].1
        {
            self.queues[served] -= 1;
        }
        for (q, (arrival, _, _)) in QUEUES.iter().enumerate() {
            if uniform(&mut self.random) < *arrival {
                self.queues[q] = (self.queues[q] + 1).min(CAPACITY);
            }
        }
        self.age += 1;
        (-cost as f32, false, self.age.is_multiple_of(40), STEP_S)
    }

    fn again(&mut self) {
        for q in 0..2 {
            self.queues[q] = (uniform(&mut self.random) * (CAPACITY + 1) as f64) as usize;
        }
    }
}

/// The observation of [`TwoQueues`] in a state.
pub(crate) fn observe_queues(
    queues: [usize; 2],
    global: &mut [f32],
    candidates: &mut [f32],
    mask: &mut [bool],
) {
    let filling = queues.map(|q| q as f32 / CAPACITY as f32);
    global.copy_from_slice(&filling);
    mask.copy_from_slice(&[true, queues[0] > 0, queues[1] > 0]);
    candidates.fill(0.0);
    candidates[0] = 1.0;
    for q in 0..2 {
        let row = &mut candidates[4 * (q + 1)..4 * (q + 2)];
        row[1 + q] = 1.0;
        row[3] = filling[q];
    }
}

/// Discounted value of all 25 states under a policy, or of the best policy, by iteration to convergence.
pub(crate) fn queue_values(horizon_s: f64, policy: Option<&dyn Fn([usize; 2]) -> Vec<f64>>) -> Vec<f64> {
    let discount = (-STEP_S / horizon_s).exp();
    let side = CAPACITY + 1;
    let mut values = vec![0.0; side * side];
    for _ in 0..2000 {
        let mut next = vec![0.0; side * side];
        for (state, next) in next.iter_mut().enumerate() {
            let queues = [state / side, state % side];
            let cost: f64 = (0..2).map(|q| QUEUES[q].2 * queues[q] as f64).sum();
            let of_action = |action: usize| -cost + discount * expected(&values, queues, action);
            let actions = (0..3).filter(|a| *a == 0 || queues[a - 1] > 0);
            *next = match policy {
                None => actions.map(of_action).fold(f64::NEG_INFINITY, f64::max),
                Some(policy) => {
                    let shares = policy(queues);
                    actions.map(|action| shares[action] * of_action(action)).sum()
                }
            };
        }
        values = next;
    }
    values
}

/// Mean value of the states that follow an action.
fn expected(values: &[f64], queues: [usize; 2], action: usize) -> f64 {
    let mut sum = 0.0;
    for outcome in 0..8 {
        let bit = |b: usize| outcome >> b & 1 == 1;
        let (mut after, mut probability) = (queues, 1.0);
        let success = if action == 0 { 0.0 } else { QUEUES[action - 1].1 };
        probability *= if bit(0) { success } else { 1.0 - success };
        if bit(0) && action > 0 {
            after[action - 1] -= 1;
        }
        for (q, (arrival, _, _)) in QUEUES.iter().enumerate() {
            probability *= if bit(q + 1) { *arrival } else { 1.0 - arrival };
            after[q] = (after[q] + usize::from(bit(q + 1))).min(CAPACITY);
        }
        sum += probability * values[after[0] * (CAPACITY + 1) + after[1]];
    }
    sum
}
