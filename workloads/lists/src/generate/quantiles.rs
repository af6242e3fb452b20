//! Run-time distributions given by their quantiles: drawn from, cut, inverted.
//!
//! Between two known quantiles the distribution is uniform in the logarithm of the run time, which reproduces published
//! means where a single log-normal does not.

use pleach_scheduler::portable_math::{exp, ln};
use serde::Deserialize;

use crate::{RUN_TIME_S_MAX, RUN_TIME_S_MIN};

/// Levels of the quantiles that the tables of whole lists hold.
pub(super) const LEVELS: [f64; 58] = [
    0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.225, 0.25,
    0.275, 0.3, 0.325, 0.35, 0.375, 0.4, 0.425, 0.45, 0.475, 0.5, 0.525, 0.55, 0.575, 0.6, 0.625, 0.65,
    0.675, 0.7, 0.725, 0.75, 0.775, 0.8, 0.82, 0.84, 0.86, 0.88, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96,
    0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0,
];

/// A distribution of run times.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Curve {
    /// Rising from 0 to 1.
    #[serde(default = "levels")]
    levels: Vec<f64>,
    /// Run times at the levels, s: above 0, never falling.
    seconds: Vec<f64>,
}

fn levels() -> Vec<f64> {
    LEVELS.to_vec()
}

impl Curve {
    /// From levels and the quantiles at them.
    pub(super) fn new(levels: Vec<f64>, seconds: Vec<f64>) -> Curve {
        Curve { levels, seconds }
    }

    /// Whether it is what its fields promise.
    pub(super) fn is_right(&self) -> bool {
        let ends = (self.levels.first(), self.levels.last());
        ends == (Some(&0.0), Some(&1.0))
            && self.levels.len() == self.seconds.len()
            && is_rising(&self.levels)
            && is_quantiles(&self.seconds)
    }

    /// Run time at a level of the distribution, s.
    pub(super) fn run_time_s(&self, level: f64) -> f64 {
        let levels = &self.levels;
        let above = levels
            .partition_point(|known| *known < level)
            .clamp(1, levels.len() - 1);
        let part = (level - levels[above - 1]) / (levels[above] - levels[above - 1]);
        let (low, high) = (ln(self.seconds[above - 1]), ln(self.seconds[above]));
        exp(low + part.clamp(0.0, 1.0) * (high - low))
    }

    /// Share of run times up to `longest_s`: the inverse of [`Curve::run_time_s`].
    pub(super) fn share_below(&self, longest_s: f64) -> f64 {
        let quantiles = &self.seconds;
        if longest_s >= quantiles[quantiles.len() - 1] {
            return 1.0;
        }
        let above = quantiles
            .partition_point(|quantile| *quantile <= longest_s)
            .clamp(1, quantiles.len() - 1);
        let (low, high) = (ln(quantiles[above - 1]), ln(quantiles[above]));
        let part = ((ln(longest_s) - low) / (high - low)).clamp(0.0, 1.0);
        self.levels[above - 1] + part * (self.levels[above] - self.levels[above - 1])
    }

    /// Mean between two levels, s, in closed form: between quantiles a and b it is (b - a) / ln(b / a).
    pub(super) fn mean_s(&self, from: f64, to: f64) -> f64 {
        let inner = self
            .levels
            .iter()
            .copied()
            .filter(|level| from < *level && *level < to);
        let (mut sum, mut low) = (0.0, from);
        for high in inner.chain([to]) {
            let (shortest, longest) = (self.run_time_s(low), self.run_time_s(high));
            let mean = if longest > shortest {
                (longest - shortest) / ln(longest / shortest)
            } else {
                shortest
            };
            sum += (high - low) * mean;
            low = high;
        }
        sum / (to - from)
    }
}

/// Whether levels rise.
pub(super) fn is_rising(levels: &[f64]) -> bool {
    let is_level = |level: &f64| (0.0..=1.0).contains(level);
    !levels.is_empty() && levels.iter().all(is_level) && levels.windows(2).all(|pair| pair[0] < pair[1])
}

/// Whether quantiles are run times that never fall.
pub(super) fn is_quantiles(seconds: &[f64]) -> bool {
    let is_time = |time: &f64| (RUN_TIME_S_MIN..=RUN_TIME_S_MAX).contains(time);
    seconds.iter().all(is_time) && seconds.windows(2).all(|pair| pair[0] <= pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the jobs between 10 s and 100 s, half between 100 s and 10,000 s.
    fn two_parts() -> Curve {
        Curve::new(vec![0.0, 0.5, 1.0], vec![10.0, 100.0, 10_000.0])
    }

    #[test]
    fn between_quantiles_the_logarithm_is_uniform() {
        assert!((two_parts().run_time_s(0.25) - 1000.0_f64.sqrt()).abs() < 1e-9);
        assert!((two_parts().run_time_s(0.75) - 1000.0).abs() < 1e-9);
        assert!((two_parts().run_time_s(-1.0) - 10.0).abs() < 1e-9);
        assert_eq!(two_parts().share_below(1e9), 1.0);
        assert!((two_parts().share_below(1000.0) - 0.75).abs() < 1e-12);
        assert_eq!(two_parts().share_below(1.0), 0.0);
    }

    #[test]
    fn the_mean_in_closed_form_is_the_mean_of_many_draws() {
        let num = 100_000;
        let sum: f64 = (0..num)
            .map(|step| two_parts().run_time_s((f64::from(step) + 0.5) / f64::from(num)))
            .sum();
        assert!((sum / f64::from(num) / two_parts().mean_s(0.0, 1.0) - 1.0).abs() < 1e-4);
    }

    #[test]
    fn the_mean_of_a_part_is_that_of_the_draws_in_it() {
        // The last tenth, from 100 x 100^0.8 s on: (10,000 - 3,981) / ln(10,000 / 3,981).
        let from = 100.0 * 100.0_f64.powf(0.8);
        let by_hand = (10_000.0 - from) / (10_000.0 / from).ln();
        assert!((two_parts().mean_s(0.9, 1.0) / by_hand - 1.0).abs() < 1e-9);
        let halves = (two_parts().mean_s(0.0, 0.7) * 0.7 + two_parts().mean_s(0.7, 1.0) * 0.3)
            / two_parts().mean_s(0.0, 1.0);
        assert!((halves - 1.0).abs() < 1e-9);
    }
}
