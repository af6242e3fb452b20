//! The long-run reward per second, as the learner of average rewards estimates it from what it sees.
//!
//! Of a batch of steps with values V, in which time goes on behind every step but a cut:
//!
//! ```text
//! rho_batch = sum (r_t + V(s_{t+1}) - V(s_t)) / sum dt_t
//! rho      += (rho_batch - rho) max(1 / batches, 0.3)
//! ```
//!
//! which is a step along the mean differential error per second. Values telescope within an episode, so what is left of them is
//! that of its end less that of its beginning: what a batch that began with short queues still owes is counted.
//!
//! # Source
//! Wan, Naik and Sutton, ICML'21 (the rate follows the differential error and not the reward) and NeurIPS'21 (the same where
//! decisions take time). How fast it follows is *assumed*, by trial on a machine whose best rate is known: at 0.1 it lags behind
//! the policy as that gets better, and the policy stays behind the best one; at 1 the estimate is off by up to 7 %.

use serde::{Deserialize, Serialize};

use crate::advantage::Steps;

/// Weight of a new batch once three have been seen; before, all batches weigh the same.
const SLOWEST_RATE: f64 = 0.3;

/// Estimate of the reward per second. Stored in the checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardRate {
    /// Reward per second of simulated time, rho.
    pub per_s: f64,
    /// Batches seen.
    pub num_batches: u64,
}

impl RewardRate {
    /// Takes the steps of some environments into account. Nothing changes where no time passed.
    pub fn observe<'a>(&mut self, tracks: impl Iterator<Item = Steps<'a>>) {
        let (mut sum, mut time_s) = (0.0, 0.0);
        for steps in tracks {
            for t in 0..steps.value.len() {
                sum += f64::from(steps.reward[t]) + steps.value_after(t) - f64::from(steps.value[t]);
                time_s += steps.dt_s[t];
            }
        }
        if time_s > 0.0 {
            self.num_batches += 1;
            let weight = (1.0 / self.num_batches as f64).max(SLOWEST_RATE);
            self.per_s += weight * (sum / time_s - self.per_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_what_its_end_is_worth_over_its_beginning() {
        // -6 in 12 s, ends 2 above where it began: -4 / 12. The values in between cancel, the cut's too.
        let first = Steps {
            value: &[1.0, 7.0, 3.0],
            reward: &[-1.0, -2.0, -3.0],
            dt_s: &[4.0, 0.0, 8.0],
            terminated: &[false; 3],
            truncated: &[false, true, false],
            bootstrap: &[0.0, 5.0, 2.0],
        };
        let mut rate = RewardRate::default();
        // 7 - 1, then 5 - 7, then 2 - 3: 3 in all.
        rate.observe([first].into_iter());
        assert!((rate.per_s - (-6.0 + 3.0) / 12.0).abs() < 1e-12, "{rate:?}");
        // A terminated step goes on with the next episode, whose first value is 3: 7 - 1, 3 - 7, 2 - 3 give 1.
        let second = Steps {
            terminated: &[false, true, false],
            truncated: &[false; 3],
            ..first
        };
        rate.observe([second].into_iter());
        let expected = f64::midpoint(-3.0 / 12.0, -5.0 / 12.0);
        assert!((rate.per_s - expected).abs() < 1e-12 && rate.num_batches == 2);
        rate.observe(std::iter::empty());
        assert_eq!(rate.num_batches, 2);
    }
}
