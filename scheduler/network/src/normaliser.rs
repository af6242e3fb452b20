//! Running mean and deviation of returns, so that the value head works on numbers of size one whatever the reward's
//! unit is. Stored in the checkpoint.

use serde::{Deserialize, Serialize};

/// Weight of a new batch once ten have been seen; before, all batches weigh the same.
const SLOWEST_RATE: f64 = 0.1;

/// Running statistics of returns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normaliser {
    /// Mean return, in the reward's unit.
    pub mean: f64,
    /// Mean square of the returns.
    pub mean_square: f64,
    /// Batches seen.
    pub num_batches: u64,
}

impl Default for Normaliser {
    fn default() -> Self {
        Normaliser {
            mean: 0.0,
            mean_square: 1.0,
            num_batches: 0,
        }
    }
}

impl Normaliser {
    /// Standard deviation of returns; at least a millionth of the mean's size, so that constant returns do no harm.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let variance = (self.mean_square - self.mean * self.mean).max(0.0);
        variance.sqrt().max(1e-6 * self.mean.abs()).max(1e-6)
    }

    /// Takes a batch of returns into account. Nothing changes without returns.
    pub fn observe(&mut self, returns: &[f32]) {
        if returns.is_empty() {
            return;
        }
        let count = returns.len() as f64;
        let mean = returns.iter().map(|r| f64::from(*r)).sum::<f64>() / count;
        let mean_square = returns.iter().map(|r| f64::from(*r).powi(2)).sum::<f64>() / count;
        self.num_batches += 1;
        let rate = (1.0 / self.num_batches as f64).max(SLOWEST_RATE);
        self.mean += rate * (mean - self.mean);
        self.mean_square += rate * (mean_square - self.mean_square);
    }

    /// A return in the value head's unit.
    #[must_use]
    pub fn normalise(&self, value: f32) -> f32 {
        ((f64::from(value) - self.mean) / self.deviation()) as f32
    }

    /// The value head's output in the reward's unit; 0 before the first batch, when the unit is not known. A guess of it would stand
    /// in the returns, and be believed for long.
    #[must_use]
    pub fn denormalise(&self, value: f32) -> f32 {
        if self.num_batches == 0 {
            return 0.0;
        }
        (f64::from(value) * self.deviation() + self.mean) as f32
    }

    /// Changes the last layer of the value head so that its values, in the reward's unit, are under `self` what they
    /// were under `old`; nothing where there were none.
    ///
    /// # Source
    /// Van Hasselt et al., NeurIPS'16 (Pop-Art).
    pub fn preserve(&self, old: &Normaliser, weight: &mut [f32], bias: &mut f32) {
        if old.num_batches == 0 {
            return;
        }
        let scale = old.deviation() / self.deviation();
        for weight in weight {
            *weight = (f64::from(*weight) * scale) as f32;
        }
        *bias = (f64::from(*bias) * scale + (old.mean - self.mean) / self.deviation()) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_batch_sets_the_statistics_and_values_go_there_and_back() {
        let mut normaliser = Normaliser::default();
        normaliser.observe(&[-100.0, -300.0]);
        assert_eq!((normaliser.mean, normaliser.deviation()), (-200.0, 100.0));
        assert_eq!(
            (normaliser.normalise(-300.0), normaliser.denormalise(-1.0)),
            (-1.0, -300.0)
        );
        normaliser.observe(&[0.0]);
        assert_eq!(normaliser.mean, -100.0);
    }

    #[test]
    fn a_new_scale_leaves_the_values_as_they_were() {
        let (mut old, mut weight, mut bias) = (Normaliser::default(), [0.5, -2.0], 0.25);
        old.observe(&[1.0, 5.0]);
        let x = [3.0, 1.0];
        let value = |n: &Normaliser, w: &[f32], b: f32| n.denormalise(w[0] * x[0] + w[1] * x[1] + b);
        let before = value(&old, &weight, bias);
        let mut new = old;
        new.observe(&[100.0, -50.0, 7.0]);
        new.preserve(&old, &mut weight, &mut bias);
        assert!((value(&new, &weight, bias) - before).abs() < 1e-4);
    }

    #[test]
    fn before_the_first_batch_values_are_zero_and_leave_no_trace() {
        let (old, mut weight, mut bias) = (Normaliser::default(), [0.5], 0.25);
        assert_eq!(old.denormalise(3.0), 0.0);
        let mut new = old;
        new.observe(&[-0.02, -0.04]);
        new.preserve(&old, &mut weight, &mut bias);
        assert_eq!((weight, bias), ([0.5], 0.25));
        assert!((new.denormalise(1.0) + 0.02).abs() < 1e-6);
    }

    #[test]
    fn constant_returns_give_finite_numbers() {
        let mut normaliser = Normaliser::default();
        normaliser.observe(&[0.0, 0.0]);
        assert!(normaliser.normalise(1.0).is_finite());
    }
}
