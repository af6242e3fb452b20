//! Proximal policy optimisation over the admissible candidates.
//!
//! Per decision, with the ratio `w = exp(ln p(a) - ln p_old(a))`, the advantage A and the normalised return R:
//!
//! ```text
//! policy_loss = -min(w A, clip(w, 1 - c, 1 + c) A)
//! value_loss  = (V - R)^2 / 2
//! loss        = policy_loss - entropy_coef * entropy + value_coef * value_loss     (mean over the minibatch)
//! ```
//!
//! # Source
//! Schulman et al., 2017; details as in Huang et al., ICLR blog track 2022; the estimates of the divergence are
//! Schulman's (`old_approx_kl` = mean(-ln w), `approx_kl` = mean(w - 1 - ln w)).

use pleach_scheduler::portable_math::exp_f32;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Above;
use rand::Rng;
use serde::{Deserialize, Serialize};

use pleach_network::{
    DecisionBatch, Layout,
    softmax::{entropy, log_softmax},
};

use crate::adam::{self, Adam};
use crate::device::Device;
use crate::error::{Error, SETTING_MAX};
use crate::gradients::{Workspace, sum_of_gradients};
use crate::random::shuffled;

settings! {
    /// Settings of PPO.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PpoConfig {
        /// Passes over a rollout.
        pub num_epochs: u32 = 3, in 1..=100;
        /// Decisions in a minibatch.
        pub minibatch_size: usize = 512, in 1..=1 << 20;
        /// Actions are drawn from the softmax of the logits over this. Below 1 draws are near the likeliest candidate, which is
        /// what is deployed.
        pub temperature: f64 = 0.4, in Above(0.0, SETTING_MAX);
        /// The network is a running mean of the parameters that learn: what an update leaves of it. 0: they themselves.
        pub mean_decay: f64 = 0.9, in 0.0..1.0;
        /// A training ends where draws and likeliest candidates are this far apart in the objective on the validation workloads;
        /// 0 for never.
        pub apart_max: f64 = 0.03, in 0.0..=SETTING_MAX;
        /// Clip range of the ratio.
        pub clip: f64 = 0.2, in Above(0.0, SETTING_MAX);
        /// Weight of the entropy in the first update.
        pub entropy_coef: f64 = 0.0, in 0.0..=SETTING_MAX;
        /// Weight of the entropy in the last update; linear between.
        pub entropy_coef_final: f64 = 0.0, in 0.0..=SETTING_MAX;
        /// Weight of the value loss.
        pub value_coef: f64 = 0.5, in 0.0..=SETTING_MAX;
        /// Epochs stop when a minibatch's `approx_kl` is above 1.5 times this; 0 for never.
        pub target_kl: f64 = 0.02, in 0.0..=SETTING_MAX;
        /// Longer gradients are shortened to this.
        pub max_grad_norm: f64 = 0.5, in Above(0.0, SETTING_MAX);
        /// Learning rate of the first update.
        pub learning_rate: f64 = 6e-4, in Above(0.0, SETTING_MAX);
        /// Learning rate of the last update; linear between.
        pub learning_rate_final: f64 = 6e-5, in 0.0..=SETTING_MAX;
    }
}

/// A rollout as PPO sees it; all lists have one entry per decision.
#[derive(Clone, Debug)]
pub struct Experience {
    /// Observations.
    pub rows: DecisionBatch,
    /// Position of the action among the admissible candidates.
    pub choices: Vec<u32>,
    /// ln p(action) when it was taken.
    pub logprobs: Vec<f32>,
    /// Advantages, normalised.
    pub advantages: Vec<f32>,
    /// Returns in the value head's unit.
    pub returns: Vec<f32>,
}

/// What varies from update to update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Learning rate.
    pub learning_rate: f64,
    /// Weight of the entropy.
    pub entropy_coef: f64,
    /// Only the value head learns.
    pub value_only: bool,
}

/// Figures of one update, means over its minibatches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PpoStats {
    /// Clipped policy loss.
    pub policy_loss: f64,
    /// Value loss in the value head's unit.
    pub value_loss: f64,
    /// Entropy over admissible candidates, nats.
    pub entropy: f64,
    /// mean(w - 1 - ln w)
    pub approx_kl: f64,
    /// mean(-ln w)
    pub old_approx_kl: f64,
    /// Share of decisions whose ratio is outside the clip range.
    pub clipfrac: f64,
    /// Length of the gradient before it is shortened.
    pub grad_norm: f64,
    /// Gradient steps taken.
    pub num_steps: u32,
    /// The divergence stopped the epochs early.
    pub early_stop: bool,
}

/// Loss terms of one decision, and the derivative by the logits of `policy_loss - entropy_coef * entropy`.
fn decide(
    logits: &[f32],
    choice: usize,
    old_logprob: f32,
    advantage: f32,
    (clip, entropy_coef, temperature): (f32, f32, f32),
    by_logits: &mut [f32],
) -> PolicyTerms {
    log_softmax(logits, temperature, by_logits);
    let log_ratio = by_logits[choice] - old_logprob;
    let ratio = exp_f32(log_ratio);
    let clipped = ratio.clamp(1.0 - clip, 1.0 + clip);
    let policy_loss = -(ratio * advantage).min(clipped * advantage);
    // Where the minimum is the clipped term, the loss does not depend on the policy.
    let by_logprob = if ratio * advantage <= clipped * advantage {
        -ratio * advantage
    } else {
        0.0
    };
    let entropy = entropy(by_logits);
    for (index, value) in by_logits.iter_mut().enumerate() {
        let (log_probability, probability) = (*value, exp_f32(*value));
        let chosen = if index == choice { 1.0 } else { 0.0 };
        // By the quotients: d ln p(a) = [chosen] - p; d entropy = -p (ln p + entropy).
        let by_quotient =
            by_logprob * (chosen - probability) + entropy_coef * probability * (log_probability + entropy);
        *value = by_quotient / temperature;
    }
    PolicyTerms {
        policy_loss,
        entropy,
        ratio,
        log_ratio,
        clipped: (ratio - 1.0).abs() > clip,
    }
}

#[derive(Clone, Copy, Debug)]
struct PolicyTerms {
    policy_loss: f32,
    entropy: f32,
    ratio: f32,
    log_ratio: f32,
    clipped: bool,
}

/// Improves the parameters on one rollout.
///
/// # Errors
/// [`Error::NotFinite`] where a gradient is not finite (the caller restores what it had, and knows the number of the
/// update), [`Error::Problem`] where sizes do not agree, [`Error::Device`] where the device fails.
pub fn improve(
    (layout, device, workspace): (&Layout, Device, &mut Workspace),
    parameters: &mut [f32],
    adam: &mut Adam,
    experience: &Experience,
    config: &PpoConfig,
    schedule: Schedule,
    random: &mut impl Rng,
) -> Result<PpoStats, Error> {
    let temperature = config.temperature as f32;
    let coefficients = (config.clip as f32, schedule.entropy_coef as f32, temperature);
    let mut sums = [0.0; 7];
    let (mut num_minibatches, mut stats) = (0.0, PpoStats::default());
    'epochs: for _ in 0..config.num_epochs {
        let order = shuffled(experience.rows.len(), random);
        for decisions in order.chunks(config.minibatch_size) {
            let share = 1.0 / decisions.len() as f32;
            let loss = |decision: usize, logits: &[f32], value: f32, by_logits: &mut [f32]| {
                let choice = experience.choices[decision] as usize;
                let (old, advantage) = (experience.logprobs[decision], experience.advantages[decision]);
                let terms = decide(logits, choice, old, advantage, coefficients, by_logits);
                by_logits.iter_mut().for_each(|by| *by *= share);
                let error = value - experience.returns[decision];
                let figures = [
                    f64::from(terms.policy_loss),
                    f64::from(0.5 * error * error),
                    f64::from(terms.entropy),
                    f64::from(terms.ratio - 1.0 - terms.log_ratio),
                    f64::from(-terms.log_ratio),
                    f64::from(u8::from(terms.clipped)),
                ];
                (config.value_coef as f32 * error * share, figures)
            };
            let rows = &experience.rows;
            let on = (layout, device, &mut *workspace);
            let (gradient, figures) = sum_of_gradients(on, parameters, rows, decisions, loss)?;
            if schedule.value_only {
                let value_head = layout.value_head();
                gradient[..value_head.start].fill(0.0);
                gradient[value_head.end..].fill(0.0);
            }
            let norm = adam::norm(gradient);
            if !norm.is_finite() || figures.iter().any(|figure| !figure.is_finite()) {
                return Err(Error::NotFinite { update: 0 });
            }
            num_minibatches += 1.0;
            for (sum, figure) in sums.iter_mut().zip(figures) {
                *sum += figure * f64::from(share);
            }
            sums[6] += norm;
            let kl = figures[3] * f64::from(share);
            if config.target_kl > 0.0 && kl > 1.5 * config.target_kl {
                stats.early_stop = true;
                break 'epochs;
            }
            adam::clip(gradient, norm, config.max_grad_norm);
            adam.step(parameters, gradient, schedule.learning_rate);
            stats.num_steps += 1;
        }
    }
    let mean = sums.map(|sum: f64| sum / f64::max(num_minibatches, 1.0));
    [
        stats.policy_loss,
        stats.value_loss,
        stats.entropy,
        stats.approx_kl,
        stats.old_approx_kl,
    ] = [mean[0], mean[1], mean[2], mean[3], mean[4]];
    (stats.clipfrac, stats.grad_norm) = (mean[5], mean[6]);
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use pleach_scheduler::settings::Settings as _;

    use super::*;

    /// Loss of one decision as a function of the logits, for differences.
    fn loss(logits: &[f32], old: f32, advantage: f32) -> f32 {
        let terms = decide(
            logits,
            1,
            old,
            advantage,
            (0.2, 0.1, 0.5),
            &mut vec![0.0; logits.len()],
        );
        terms.policy_loss - 0.1 * terms.entropy
    }

    #[test]
    fn terms_of_one_decision_worked_by_hand() {
        // Two equal logits: p = 1/2. Taken at p_old = 0.4, so w = 1.25, beyond 1.2.
        let mut by = [0.0; 2];
        let old = 0.4_f32.ln();
        let gain = decide(&[0.0, 0.0], 1, old, 2.0, (0.2, 0.0, 1.0), &mut by);
        assert!((gain.policy_loss + 1.2 * 2.0).abs() < 1e-6);
        assert!((gain.ratio - 1.25).abs() < 1e-6 && gain.clipped);
        assert!((gain.entropy - 2.0_f32.ln()).abs() < 1e-6);
        // A clipped gain has no slope.
        assert_eq!(by, [0.0, 0.0]);
        // A loss at the same ratio is not clipped: slope -w A (1 - p) = 1.25 * 2 * 0.5 for the action.
        let pain = decide(&[0.0, 0.0], 1, old, -2.0, (0.2, 0.0, 1.0), &mut by);
        assert!((pain.policy_loss - 2.5).abs() < 1e-6);
        assert!((by[1] - 1.25).abs() < 1e-6 && (by[0] + 1.25).abs() < 1e-6);
    }

    #[test]
    fn slopes_equal_finite_differences_inside_and_outside_the_clip_range() {
        let logits = [0.3_f32, -0.7, 1.1];
        for (old, advantage) in [(-2.0, 1.5), (-2.0, -1.5), (-3.0, -1.0), (-1.0, 1.0), (-3.0, 1.0)] {
            let mut by = [0.0; 3];
            decide(&logits, 1, old, advantage, (0.2, 0.1, 0.5), &mut by);
            for index in 0..3 {
                let moved = |step: f32| {
                    let mut logits = logits;
                    logits[index] += step;
                    loss(&logits, old, advantage)
                };
                let slope = (moved(5e-3) - moved(-5e-3)) / 1e-2;
                assert!(
                    (slope - by[index]).abs() < 2e-3,
                    "{old} {advantage} {index}: {slope} {}",
                    by[index]
                );
            }
        }
    }

    #[test]
    fn settings_out_of_range_name_their_key() {
        let config = PpoConfig {
            clip: 0.0,
            ..PpoConfig::default()
        };
        assert_eq!(
            config.check_at("ppo", crate::error::SEE).unwrap_err().to_string(),
            "config: ppo.clip = 0: allowed is above 0 and at most 1e12. See docs/learning.md."
        );
        let config = PpoConfig {
            learning_rate: f64::NAN,
            ..PpoConfig::default()
        };
        assert!(
            config
                .check_at("ppo", "")
                .unwrap_err()
                .to_string()
                .starts_with("config: ppo.learning_rate = NaN")
        );
    }
}
