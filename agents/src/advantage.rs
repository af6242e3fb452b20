//! How much better an action was than expected: generalised advantage estimation where decisions are not equally far
//! apart in time.
//!
//! Between decision t and the next lie `dt` seconds (none, where both belong to one scheduling pass), so the discount
//! of the transition is `exp(-dt / horizon)`. With the value V:
//!
//! ```text
//! delta_t = r_t + exp(-dt_t / horizon) V(s_{t+1}) - V(s_t)
//! A_t     = delta_t + exp(-dt_t / horizon) lambda A_{t+1}
//! ```
//!
//! A terminated episode has no future: V = 0 and the sum ends. A truncated one (and the last step of a rollout) ends
//! the sum but keeps the value of the observation it was cut at. `lambda` counts decisions, not seconds. A reward is
//! taken as paid at the start of its interval.
//!
//! # Source
//! Schulman et al., ICLR'16 (GAE); Bradtke and Duff, NIPS'94 (discounting by the time between decisions);
//! Mao et al., ICLR'19 (baselines that depend on the arrivals).

use pleach_scheduler::portable_math::exp;

/// What happened to one environment, step by step; all slices have one entry per step.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    /// V(s_t)
    pub value: &'a [f32],
    /// r_t
    pub reward: &'a [f32],
    /// Time to the next decision, s.
    pub dt_s: &'a [f64],
    /// The episode ended by itself in this step.
    pub terminated: &'a [bool],
    /// The episode was cut in this step.
    pub truncated: &'a [bool],
    /// V of the observation after the step; read where an episode was truncated, and in the last step.
    pub bootstrap: &'a [f32],
}

impl Steps<'_> {
    /// V of the observation after step `t`, which a terminated episode has none of.
    fn value_after(&self, t: usize) -> f64 {
        if self.terminated[t] {
            0.0
        } else if self.truncated[t] || t + 1 == self.value.len() {
            f64::from(self.bootstrap[t])
        } else {
            f64::from(self.value[t + 1])
        }
    }
}

/// Writes the advantages `A_t` with a time constant of `horizon_s`. The returns are `A_t + V(s_t)`.
pub fn estimate(steps: Steps<'_>, horizon_s: f64, lambda: f64, advantages: &mut [f32]) {
    let num_steps = steps.value.len();
    let mut next_advantage = 0.0;
    for t in (0..num_steps).rev() {
        let discount = exp(-steps.dt_s[t] / horizon_s);
        if steps.terminated[t] || steps.truncated[t] {
            next_advantage = 0.0;
        }
        let future = discount * steps.value_after(t);
        let delta = f64::from(steps.reward[t]) + future - f64::from(steps.value[t]);
        next_advantage = delta + discount * lambda * next_advantage;
        advantages[t] = next_advantage as f32;
    }
}

/// Two clocks that differ by less are the same instant, s: sums of the same intervals in another order.
const SAME_INSTANT_S: f64 = 1e-6;

/// Episode, counted from the restart of the environments, and simulated time in it, s.
pub type Clock = (u32, f64);

/// The clock after a step of `dt_s` seconds, or at the beginning of the next episode where this one has ended.
#[must_use]
pub fn ticked((episode, now_s): Clock, dt_s: f64, ended: bool) -> Clock {
    if ended {
        (episode + 1, 0.0)
    } else {
        (episode, now_s + dt_s)
    }
}

/// Subtracts from each advantage the mean advantage of the *other* environments of the group at the same instant: that
/// of their last decision in the same episode that is not later. What all share is the luck of the arrivals.
/// Environments that are not in that episode do not count; where none is, nothing is subtracted.
pub fn centre(clocks: &[&[Clock]], advantages: &mut [Vec<f32>]) {
    let original: Vec<Vec<f32>> = advantages.to_vec();
    for (own, advantages) in advantages.iter_mut().enumerate() {
        let mut cursor = vec![0_usize; clocks.len()];
        for (t, advantage) in advantages.iter_mut().enumerate() {
            let (episode, now_s) = clocks[own][t];
            let (mut sum, mut count) = (0.0, 0_u32);
            for (other, at) in clocks.iter().enumerate().filter(|(other, _)| *other != own) {
                let later = |(e, s): Clock| e > episode || (e == episode && s > now_s + SAME_INSTANT_S);
                while cursor[other] < at.len() && !later(at[cursor[other]]) {
                    cursor[other] += 1;
                }
                if let Some(last) = cursor[other].checked_sub(1).filter(|last| at[*last].0 == episode) {
                    sum += f64::from(original[other][last]);
                    count += 1;
                }
            }
            if count > 0 {
                *advantage -= (sum / f64::from(count)) as f32;
            }
        }
    }
}

/// Shifts and scales to mean 0 and standard deviation 1; only shifts where all are equal.
pub fn normalise(advantages: &mut [f32]) {
    let count = advantages.len().max(1) as f64;
    let mean = advantages.iter().map(|a| f64::from(*a)).sum::<f64>() / count;
    let variance = advantages
        .iter()
        .map(|a| (f64::from(*a) - mean).powi(2))
        .sum::<f64>()
        / count;
    let deviation = variance.sqrt() + 1e-8;
    for advantage in advantages {
        *advantage = ((f64::from(*advantage) - mean) / deviation) as f32;
    }
}

/// Share of the variance of `returns` that `values` explain: 1 is perfect, 0 is no better than the mean. NaN where the
/// returns do not vary.
#[must_use]
pub fn explained_variance(values: &[f32], returns: &[f32]) -> f64 {
    let variance = |numbers: &mut dyn Iterator<Item = f64>| {
        let numbers: Vec<f64> = numbers.collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    let all = variance(&mut returns.iter().map(|r| f64::from(*r)));
    let left = variance(
        &mut returns
            .iter()
            .zip(values)
            .map(|(r, v)| f64::from(*r) - f64::from(*v)),
    );
    if all > 0.0 { 1.0 - left / all } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_S: f64 = 10.0;

    fn close(found: &[f32], expected: &[f64]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} {expected}");
        }
    }

    #[test]
    fn advantages_worked_by_hand_with_unequal_times() {
        // horizon 10 s: discounts exp(-1) = d, 1 (same pass), d. lambda 0.5. No episode ends; V after the last is 4.
        let steps = Steps {
            value: &[1.0, 2.0, 3.0],
            reward: &[-1.0, 0.0, -2.0],
            dt_s: &[10.0, 0.0, 10.0],
            terminated: &[false; 3],
            truncated: &[false; 3],
            bootstrap: &[99.0, 99.0, 4.0],
        };
        let mut advantages = [0.0; 3];
        estimate(steps, TEN_S, 0.5, &mut advantages);
        let d = (-1.0_f64).exp();
        let a2 = -2.0 + d * 4.0 - 3.0;
        let a1 = (0.0 + 3.0 - 2.0) + 0.5 * a2;
        let a0 = (-1.0 + d * 2.0 - 1.0) + d * 0.5 * a1;
        close(&advantages, &[a0, a1, a2]);
    }

    #[test]
    fn a_truncated_step_keeps_its_future_and_a_terminated_one_has_none() {
        let value = [1.0, 1.0, 1.0, 1.0];
        let reward = [0.0, 0.0, 5.0, 0.0];
        let steps = |terminated, truncated| Steps {
            value: &value,
            reward: &reward,
            dt_s: &[0.0; 4],
            terminated,
            truncated,
            bootstrap: &[0.0, 7.0, 0.0, 1.0],
        };
        let (no, at_1) = ([false; 4], [false, true, false, false]);
        let mut advantages = [0.0; 4];
        estimate(steps(&no, &at_1), TEN_S, 1.0, &mut advantages);
        // Steps 2 and 3 belong to the next episode: 5 + 1 - 1 + 0 and 0 + 1 - 1.
        close(&advantages, &[6.0, 6.0, 5.0, 0.0]);
        estimate(steps(&at_1, &no), TEN_S, 1.0, &mut advantages);
        close(&advantages, &[-1.0, -1.0, 5.0, 0.0]);
    }

    #[test]
    fn centring_subtracts_what_the_others_had_at_the_same_instant() {
        // Environment 0 decides at 0, 0 and 10 s; environment 1 at 0, 5 and, in a second episode, at 0 s.
        let clocks: [&[Clock]; 2] = [&[(0, 0.0), (0, 0.0), (0, 10.0)], &[(0, 0.0), (0, 5.0), (1, 0.0)]];
        let mut advantages = vec![vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0]];
        centre(&clocks, &mut advantages);
        assert_eq!(advantages[0], [1.0 - 10.0, 2.0 - 10.0, 3.0 - 20.0]);
        // At 0 and 5 s environment 0's last decision is its second; in episode 1 it has none.
        assert_eq!(advantages[1], [10.0 - 2.0, 20.0 - 2.0, 30.0]);
    }

    #[test]
    fn clocks_restart_with_each_episode() {
        assert_eq!(ticked((3, 7.5), 2.0, false), (3, 9.5));
        assert_eq!(ticked((3, 7.5), 2.0, true), (4, 0.0));
    }

    #[test]
    fn normalised_advantages_have_mean_zero_and_deviation_one() {
        let mut advantages = [1.0, 3.0];
        normalise(&mut advantages);
        close(&advantages, &[-1.0, 1.0]);
        let mut equal = [5.0, 5.0];
        normalise(&mut equal);
        assert_eq!(equal, [0.0, 0.0]);
    }

    #[test]
    fn explained_variance_is_one_for_perfect_and_zero_for_constant_values() {
        assert_eq!(explained_variance(&[1.0, 2.0], &[1.0, 2.0]), 1.0);
        assert_eq!(explained_variance(&[5.0, 5.0], &[1.0, 2.0]), 0.0);
        assert!(explained_variance(&[1.0], &[1.0]).is_nan());
    }
}
