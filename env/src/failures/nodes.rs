//! Nodes that fail, and the work that goes with them.
//!
//! Each node fails independently after exponential times. A gang loses what it did since its last checkpoint on every
//! failure of any of its nodes, so its rate of failures grows with its nodes and its loss with the checkpoint interval.
//!
//! # Source
//! Exponential failures and the best checkpoint interval: Young (1974). The mean times are assumed: public traces
//! rarely say which failures were the node's (Philly, table 7: 10 ECC errors in 75 days).

use pleach_scheduler::error::ConfigError;
use pleach_scheduler::ids::Time;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use crate::seed::Seed;

/// How nodes fail and come back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFailures {
    /// Mean time of a node between coming up and failing, s.
    pub mean_up_s: f64,
    /// Time until it is back, s.
    pub repair_s: f64,
    /// Time between checkpoints of a running job, s of run time; 0 = everything is lost.
    pub checkpoint_interval_s: f64,
}

impl NodeFailures {
    /// A node fails every 90 days and is back after an hour; jobs save every half hour. Assumed.
    pub const ASSUMED: NodeFailures = NodeFailures {
        mean_up_s: 90.0 * 86_400.0,
        repair_s: 3600.0,
        checkpoint_interval_s: 1800.0,
    };

    /// How long node number `node` is up after having come up for the `count`-th time (0 = the first). At least 1 us.
    #[must_use]
    pub fn up_time(&self, seed: Seed, node: u32, count: u32) -> Time {
        let mut rng = seed
            .child("node", u64::from(node))
            .stream("up-time", u64::from(count));
        let part: f64 = rng.random();
        // 1 - part lies in (0, 1].
        let seconds = -(1.0 - part).ln() * self.mean_up_s;
        Time::from_secs_f64(seconds).max(Time(1))
    }

    /// Run time lost by a job that fails after having run for this long since it was last started or restored, s.
    #[must_use]
    pub fn lost_s(&self, run_s: f64) -> f64 {
        if self.checkpoint_interval_s > 0.0 {
            run_s % self.checkpoint_interval_s
        } else {
            run_s
        }
    }

    /// Expected loss of a failure of a gang on `num_nodes` nodes, s: with rate `l` and interval `t`,
    /// `E[T mod t] = 1/l - t / (e^(l t) - 1)`, which is `t/2` where failures are rare.
    #[must_use]
    pub fn expected_loss_s(&self, num_nodes: u32) -> f64 {
        let rate = f64::from(num_nodes) / self.mean_up_s;
        let interval = self.checkpoint_interval_s;
        let exponent = rate * interval;
        if interval == 0.0 {
            1.0 / rate
        } else if exponent < 1e-4 {
            // The first two terms of the series; the difference of large numbers would lose digits.
            interval * (0.5 - exponent / 12.0)
        } else {
            1.0 / rate - interval / exponent.exp_m1()
        }
    }

    /// The checkpoint interval with the least time lost to saving and failures, for a gang on `num_nodes` nodes whose
    /// checkpoint takes `checkpoint_s`: Young's `sqrt(2 checkpoint x mean time)`, s.
    #[must_use]
    pub fn best_interval_s(&self, num_nodes: u32, checkpoint_s: f64) -> f64 {
        (2.0 * checkpoint_s * self.mean_up_s / f64::from(num_nodes.max(1))).sqrt()
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let checks = [
            (
                "mean_up_s",
                self.mean_up_s,
                self.mean_up_s >= 1.0 && self.mean_up_s <= 1e11,
                "1 to 1e11",
            ),
            (
                "repair_s",
                self.repair_s,
                (0.0..=1e9).contains(&self.repair_s),
                "0 to 1e9",
            ),
            (
                "checkpoint_interval_s",
                self.checkpoint_interval_s,
                (0.0..=1e9).contains(&self.checkpoint_interval_s),
                "0 to 1e9",
            ),
        ];
        for (key, value, good, allowed) in checks {
            if !good {
                return Err(ConfigError {
                    key: format!("node_failures.{key}"),
                    value: value.to_string(),
                    allowed: allowed.into(),
                    hint: "leave node_failures out for nodes that never fail".into(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEED: Seed = Seed(3);

    #[test]
    fn up_times_are_exponential_with_the_given_mean() {
        let failures = NodeFailures {
            mean_up_s: 1000.0,
            ..NodeFailures::ASSUMED
        };
        let seconds: Vec<f64> = (0..20_000)
            .map(|node| failures.up_time(SEED, node, 0).as_secs_f64())
            .collect();
        let mean = seconds.iter().sum::<f64>() / 20_000.0;
        // Standard error 1,000 / sqrt(20,000) = 7.
        assert!((mean - 1000.0).abs() < 28.0, "{mean}");
        // Median 1,000 ln 2 = 693; the part above the mean is 1/e.
        let above = seconds.iter().filter(|seconds| **seconds > 1000.0).count() as f64 / 20_000.0;
        assert!((above - (-1.0_f64).exp()).abs() < 0.014, "{above}");
        assert_eq!(failures.up_time(SEED, 5, 1), failures.up_time(SEED, 5, 1));
        assert_ne!(failures.up_time(SEED, 5, 1), failures.up_time(SEED, 6, 1));
    }

    #[test]
    fn what_is_lost_is_what_was_done_since_the_last_checkpoint() {
        let failures = NodeFailures::ASSUMED;
        assert_eq!(failures.lost_s(1700.0), 1700.0);
        assert_eq!(failures.lost_s(1900.0), 100.0);
        let never = NodeFailures {
            checkpoint_interval_s: 0.0,
            ..failures
        };
        assert_eq!(never.lost_s(1900.0), 1900.0);
    }

    #[test]
    fn the_expected_loss_is_the_mean_of_drawn_losses() {
        // Rate 1/1000 a node, 4 nodes, interval 500: 250 - 500 / (e^2 - 1) = 171.7 s.
        let failures = NodeFailures {
            mean_up_s: 1000.0,
            checkpoint_interval_s: 500.0,
            ..NodeFailures::ASSUMED
        };
        assert!((failures.expected_loss_s(4) - 171.74).abs() < 0.01);
        let mut sum = 0.0;
        for gang in 0..20_000 {
            let first = (0..4)
                .map(|node| failures.up_time(SEED, 4 * gang + node, 0))
                .min()
                .unwrap();
            sum += failures.lost_s(first.as_secs_f64());
        }
        // The loss is at most 500, so its standard error is below 500 / 2 / sqrt(20,000) = 1.8.
        assert!((sum / 20_000.0 - 171.74).abs() < 7.0, "{}", sum / 20_000.0);
    }

    #[test]
    fn rare_failures_lose_half_an_interval_and_youngs_interval_is_the_best() {
        let failures = NodeFailures::ASSUMED;
        assert!((failures.expected_loss_s(1) / 900.0 - 1.0).abs() < 1e-3);
        // 60 s to save, 90 days on 8 nodes: sqrt(2 x 60 x 972,000) = 10,800 s.
        assert!((failures.best_interval_s(8, 60.0) - 10_800.0).abs() < 1e-6);
        let waste = |interval: f64| 60.0 / interval + interval / 2.0 / 972_000.0;
        assert!(waste(10_800.0) < waste(9_000.0) && waste(10_800.0) < waste(13_000.0));
    }

    #[test]
    fn broken_values_are_refused_by_name() {
        let broken = NodeFailures {
            mean_up_s: 0.0,
            ..NodeFailures::ASSUMED
        };
        assert!(
            broken
                .validate()
                .unwrap_err()
                .to_string()
                .contains("node_failures.mean_up_s")
        );
        NodeFailures::ASSUMED.validate().unwrap();
    }

    proptest! {
        #[test]
        fn the_expected_loss_lies_below_half_an_interval_and_below_the_mean(
            mean_up_s in 10.0_f64..1e9, checkpoint_interval_s in 0.1_f64..1e6, num_nodes in 1_u32..1000,
        ) {
            let failures = NodeFailures { mean_up_s, checkpoint_interval_s, ..NodeFailures::ASSUMED };
            let loss = failures.expected_loss_s(num_nodes);
            prop_assert!(loss > 0.0 && loss <= checkpoint_interval_s / 2.0 * (1.0 + 1e-9));
            prop_assert!(loss <= mean_up_s / f64::from(num_nodes) * (1.0 + 1e-9));
        }
    }
}
