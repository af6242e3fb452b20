//! Behaviour cloning: the network starts as a copy of a heuristic, because exploring a full cluster from nothing
//! wastes most samples.
//!
//! Loss per decision: `-ln p(teacher's action)` over the admissible candidates, plus `value_coef (V - R)^2 / 2` where
//! the discounted return R that followed is known.

use pleach_env::{Batch, Seed, Spaces, VectorEnv};
use pleach_network::{
    DecisionBatch, Layout, Normaliser, choice_of,
    softmax::{argmax, log_softmax},
};
use pleach_scheduler::portable_math::{exp, exp_f32};
use pleach_scheduler::settings;
use pleach_scheduler::settings::Above;
use serde::{Deserialize, Serialize};

use crate::adam::{self, Adam};
use crate::device::Device;
use crate::error::{Error, SETTING_MAX};
use crate::gradients::{Workspace, sum_of_gradients};
use crate::random::shuffled;

settings! {
    /// Settings of behaviour cloning.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ImitationConfig {
        /// Passes over the demonstrations.
        pub num_epochs: u32 = 10, in 0..=10_000;
        /// Decisions in a minibatch.
        pub minibatch_size: usize = 256, in 1..;
        /// Learning rate of the first epoch; falls linearly to a tenth.
        pub learning_rate: f64 = 2e-3, in Above(0.0, SETTING_MAX);
        /// Weight of the value loss.
        pub value_coef: f64 = 0.5, in 0.0..=SETTING_MAX;
        /// Longer gradients are shortened to this.
        pub max_grad_norm: f64 = 1.0, in Above(0.0, SETTING_MAX);
        /// Share of the target probability that is spread over all admissible candidates: a clone that is
        /// certain never tries anything else, and PPO has nothing to learn from.
        pub smoothing: f64 = 0.1, in 0.0..1.0;
    }
}

/// What a teacher did.
#[derive(Clone, Debug)]
pub struct Demonstrations {
    rows: DecisionBatch,
    choices: Vec<u32>,
    returns: Vec<f32>,
}

impl Demonstrations {
    /// None yet.
    #[must_use]
    pub fn new(spaces: Spaces) -> Demonstrations {
        Demonstrations {
            rows: DecisionBatch::new(spaces),
            choices: Vec::new(),
            returns: Vec::new(),
        }
    }

    /// Number of decisions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// No decisions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The observations.
    #[must_use]
    pub fn rows(&self) -> &DecisionBatch {
        &self.rows
    }

    /// Position of the teacher's action among the admissible candidates, per decision.
    #[must_use]
    pub fn choices(&self) -> &[u32] {
        &self.choices
    }

    /// Adds a decision: padded or not, `mask` says which candidates count. `return_` is the discounted return that
    /// followed, where it is known.
    ///
    /// # Errors
    /// [`Error::Problem`] for a masked action.
    pub fn push(
        &mut self,
        global: &[f32],
        candidates: &[f32],
        mask: &[bool],
        action: usize,
        return_: Option<f32>,
    ) -> Result<(), Error> {
        let choice = choice_of(action, mask)
            .ok_or_else(|| Error::contract("teacher's action", "an admissible candidate", action))?;
        self.rows.push(global, candidates, mask);
        self.choices.push(choice as u32);
        self.returns.push(return_.unwrap_or(f32::NAN));
        Ok(())
    }

    /// Adds all decisions of another list.
    pub fn extend(&mut self, other: &Demonstrations) {
        self.rows.extend(&other.rows);
        self.choices.extend_from_slice(&other.choices);
        self.returns.extend_from_slice(&other.returns);
    }

    /// Lets `teacher` play `num_steps` steps in every environment. It gets the environments and an index and returns
    /// an action. Returns are discounted with `horizon_s`, and known for episodes that ended by themselves.
    ///
    /// # Errors
    /// As [`Demonstrations::correct`].
    pub fn collect<E: VectorEnv + ?Sized>(
        env: &mut E,
        seed: Seed,
        num_steps: usize,
        horizon_s: f64,
        mut teacher: impl FnMut(&mut E, usize, &Batch) -> Result<usize, pleach_env::Error>,
    ) -> Result<Demonstrations, Error> {
        Demonstrations::correct(env, seed, num_steps, horizon_s, |env, i, batch| {
            let action = teacher(env, i, batch)?;
            Ok((Some(action), action))
        })
    }

    /// Plays an actor while a teacher says what it would have done: `both` returns the teacher's action and the one that is
    /// taken. Returns are those of the actor. Where the teacher gives no action, the decision is played and not learnt from.
    ///
    /// # Source
    /// DAgger: Ross et al., AISTATS'11.
    ///
    /// # Errors
    /// What the environments or the teacher return, and [`Error::Problem`] for a masked action.
    pub fn correct<E: VectorEnv + ?Sized>(
        env: &mut E,
        seed: Seed,
        num_steps: usize,
        horizon_s: f64,
        mut both: impl FnMut(&mut E, usize, &Batch) -> Result<(Option<usize>, usize), pleach_env::Error>,
    ) -> Result<Demonstrations, Error> {
        let (spaces, num_envs) = (env.spaces(), env.num_envs());
        let Spaces {
            num_global: g,
            num_candidates: c,
            num_features: f,
            ..
        } = spaces;
        let seeds: Vec<u64> = (0..num_envs)
            .map(|i| seed.child("demonstration", i as u64).0)
            .collect();
        let mut batch = Batch::new(spaces, num_envs);
        let mut tracks = vec![(Demonstrations::new(spaces), Vec::new(), Vec::new()); num_envs];
        let mut actions = vec![0; num_envs];
        env.reset(&seeds, &mut batch)?;
        for _ in 0..num_steps {
            for (i, (track, _, is_taught)) in tracks.iter_mut().enumerate() {
                let (taught, taken) = both(env, i, &batch)?;
                actions[i] = taken;
                is_taught.push(taught.is_some());
                let Some(taught) = taught else {
                    continue;
                };
                let (global, mask) = (&batch.global[i * g..(i + 1) * g], &batch.mask[i * c..(i + 1) * c]);
                track.push(
                    global,
                    &batch.candidates[i * c * f..(i + 1) * c * f],
                    mask,
                    taught,
                    None,
                )?;
            }
            env.step(&actions, &mut batch)?;
            for (i, (_, outcomes, _)) in tracks.iter_mut().enumerate() {
                let ended = (batch.terminated[i], batch.truncated[i]);
                outcomes.push((batch.reward[i], batch.dt_s[i], ended));
            }
        }
        let mut all = Demonstrations::new(spaces);
        for (track, outcomes, is_taught) in &mut tracks {
            let all_returns = returns(outcomes, horizon_s).into_iter().zip(is_taught);
            let taught = all_returns.filter(|(_, is_taught)| **is_taught);
            track.returns = taught.map(|(value, _)| value).collect();
            all.extend(track);
        }
        Ok(all)
    }
}

/// Discounted returns; NaN where the end of the episode is not known. An outcome is (reward, dt, (terminated,
/// truncated)).
fn returns(outcomes: &[(f32, f64, (bool, bool))], horizon_s: f64) -> Vec<f32> {
    let mut next = f64::NAN;
    let mut returns = vec![0.0; outcomes.len()];
    for (value, (reward, dt_s, (terminated, truncated))) in returns.iter_mut().zip(outcomes).rev() {
        if *terminated {
            next = 0.0;
        } else if *truncated {
            next = f64::NAN;
        }
        next = f64::from(*reward) + exp(-dt_s / horizon_s) * next;
        *value = next as f32;
    }
    returns
}

/// Figures of the last epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImitationStats {
    /// Mean `-ln p(teacher's action)`, nats.
    pub cross_entropy: f64,
    /// Share of decisions where the network's best candidate is the teacher's.
    pub accuracy: f64,
    /// Mean value loss in the value head's unit.
    pub value_loss: f64,
    /// Decisions in the demonstrations.
    pub num_decisions: usize,
}

/// Clones the teacher: changes `parameters`, and sets the normaliser from the returns where any is known.
///
/// # Errors
/// [`Error::NotFinite`] where a gradient is not finite, [`Error::Problem`] where sizes do not agree, [`Error::Device`] where
/// the device fails.
pub fn clone_teacher(
    (layout, device): (&Layout, Device),
    parameters: &mut [f32],
    normaliser: &mut Normaliser,
    demonstrations: &Demonstrations,
    config: &ImitationConfig,
    seed: Seed,
) -> Result<ImitationStats, Error> {
    demonstrations
        .rows
        .check(layout.num_global, layout.num_features)?;
    let known: Vec<f32> = demonstrations
        .returns
        .iter()
        .copied()
        .filter(|r| r.is_finite())
        .collect();
    normaliser.observe(&known);
    let targets: Vec<f32> = demonstrations
        .returns
        .iter()
        .map(|r| normaliser.normalise(*r))
        .collect();
    let mut adam = Adam::new(parameters.len());
    let mut workspace = Workspace::default();
    let mut stats = ImitationStats {
        num_decisions: demonstrations.len(),
        ..ImitationStats::default()
    };
    for epoch in 0..config.num_epochs {
        let mut random = seed.stream("imitation", u64::from(epoch));
        let order = shuffled(demonstrations.len(), &mut random);
        let progress = f64::from(epoch) / f64::from(config.num_epochs);
        let mut sums = [0.0; 3];
        for decisions in order.chunks(config.minibatch_size) {
            let share = 1.0 / decisions.len() as f32;
            let loss = |decision: usize, logits: &[f32], value: f32, by_logits: &mut [f32]| {
                let choice = demonstrations.choices[decision] as usize;
                log_softmax(logits, 1.0, by_logits);
                let cross_entropy = -by_logits[choice];
                let right = argmax(logits) == choice;
                let spread = config.smoothing as f32 / logits.len() as f32;
                for (index, by) in by_logits.iter_mut().enumerate() {
                    let taught = if index == choice {
                        1.0 - config.smoothing as f32
                    } else {
                        0.0
                    };
                    *by = (exp_f32(*by) - taught - spread) * share;
                }
                let target = targets[decision];
                let error = if target.is_finite() { value - target } else { 0.0 };
                let figures = [
                    cross_entropy.into(),
                    u8::from(right).into(),
                    f64::from(0.5 * error * error),
                ];
                (config.value_coef as f32 * error * share, figures)
            };
            let on = (layout, device, &mut workspace);
            let (gradient, figures) =
                sum_of_gradients(on, parameters, &demonstrations.rows, decisions, loss)?;
            let norm = adam::norm(gradient);
            if !norm.is_finite() {
                return Err(Error::NotFinite { update: 0 });
            }
            sums.iter_mut()
                .zip(figures)
                .for_each(|(sum, figure)| *sum += figure);
            adam::clip(gradient, norm, config.max_grad_norm);
            adam.step(
                parameters,
                gradient,
                config.learning_rate * (1.0 - 0.9 * progress),
            );
        }
        let count = demonstrations.len().max(1) as f64;
        (stats.cross_entropy, stats.accuracy) = (sums[0] / count, sums[1] / count);
        stats.value_loss = sums[2] / known.len().max(1) as f64;
    }
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{initial_parameters, uniform};
    use pleach_network::{Inference, NetworkConfig};

    const SPACES: Spaces = Spaces::new(1, 6, 3);

    #[test]
    fn returns_are_known_only_where_the_episode_ended_by_itself() {
        let (no, end, cut) = ((false, false), (true, false), (false, true));
        let outcomes = [(1.0, 10.0, no), (2.0, 0.0, end), (3.0, 1.0, cut), (4.0, 1.0, no)];
        let returns = returns(&outcomes, 10.0);
        assert!((f64::from(returns[0]) - (1.0 + 2.0 * (-1.0_f64).exp())).abs() < 1e-6);
        assert_eq!(returns[1], 2.0);
        assert!(returns[2].is_nan() && returns[3].is_nan());
    }

    #[test]
    fn a_teacher_that_takes_the_smallest_first_feature_is_cloned() {
        let mut random = Seed(1).stream("test", 0);
        let mut demonstrations = |num: usize| {
            let mut all = Demonstrations::new(SPACES);
            for decision in 0..num {
                let candidates: Vec<f32> = (0..18).map(|_| uniform(&mut random) as f32).collect();
                let mask: Vec<bool> = (0..6).map(|c| c == 0 || (decision + c) % 3 != 0).collect();
                let admissible = (0..6).filter(|c| mask[*c]);
                let best = admissible
                    .min_by(|a, b| candidates[a * 3].total_cmp(&candidates[b * 3]))
                    .unwrap();
                all.push(&[0.5], &candidates, &mask, best, Some(candidates[best * 3]))
                    .unwrap();
            }
            all
        };
        let (train, test) = (demonstrations(1500), demonstrations(300));
        let layout = Layout::new(
            NetworkConfig {
                hidden: 16,
                context: 16,
                ..NetworkConfig::default()
            },
            SPACES,
        )
        .unwrap();
        let clone = || {
            let (mut parameters, mut normaliser) =
                (initial_parameters(&layout, Seed(2)), Normaliser::default());
            let config = ImitationConfig {
                num_epochs: 12,
                learning_rate: 5e-3,
                ..ImitationConfig::default()
            };
            let stats = clone_teacher(
                (&layout, Device::Cpu),
                &mut parameters,
                &mut normaliser,
                &train,
                &config,
                Seed(3),
            )
            .unwrap();
            (parameters, stats)
        };
        let (parameters, stats) = clone();
        assert!(stats.accuracy > 0.9, "{stats:?}");
        let inference = Inference::new(&layout, &parameters).unwrap();
        let (mut scratch, mut logits) = (inference.scratch(6), [0.0; 6]);
        let right = (0..test.len()).filter(|decision| {
            let row = test.rows().get(*decision);
            inference.forward(row, &mut scratch, &mut logits);
            argmax(&logits[..row.num_candidates]) == test.choices()[*decision] as usize
        });
        assert!(right.count() > 270);
        assert_eq!(clone(), (parameters, stats));
    }

    #[test]
    fn a_masked_action_is_refused() {
        let mut all = Demonstrations::new(SPACES);
        let error = all.push(&[0.0], &[0.0; 6], &[true, false], 1, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "contract: teacher's action: expected an admissible candidate, found 1. See docs/learning.md."
        );
    }
}
