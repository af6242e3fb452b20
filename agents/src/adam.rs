//! Adam over the flat parameters, with every number of its state in the checkpoint, so that a resumed run is exact.

use serde::{Deserialize, Serialize};

/// Decay of the mean gradient.
const BETA_1: f64 = 0.9;
/// Decay of the mean squared gradient.
const BETA_2: f64 = 0.999;
/// Added to the root; 1e-5 where plain Adam has 1e-8.
///
/// # Source
/// The PPO reference implementation (Huang et al., ICLR blog track 2022, detail 3).
const EPSILON: f64 = 1e-5;

/// State of Adam.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    /// Mean gradient, one per parameter.
    pub mean: Vec<f32>,
    /// Mean squared gradient, one per parameter.
    pub square: Vec<f32>,
    /// Steps taken.
    pub num_steps: u64,
}

impl Adam {
    /// Fresh state.
    #[must_use]
    pub fn new(num_parameters: usize) -> Adam {
        Adam {
            mean: vec![0.0; num_parameters],
            square: vec![0.0; num_parameters],
            num_steps: 0,
        }
    }

    /// One step against `gradient`.
    ///
    /// # Source
    /// Kingma and Ba, ICLR'15, algorithm 1.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f64) {
        self.num_steps += 1;
        let exponent = i32::try_from(self.num_steps).unwrap_or(i32::MAX);
        let mean_scale = 1.0 / (1.0 - BETA_1.powi(exponent));
        let square_scale = 1.0 / (1.0 - BETA_2.powi(exponent));
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((parameter, gradient), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
            let g = f64::from(*gradient);
            let m = BETA_1 * f64::from(*mean) + (1.0 - BETA_1) * g;
            let v = BETA_2 * f64::from(*square) + (1.0 - BETA_2) * g * g;
            (*mean, *square) = (m as f32, v as f32);
            let step = learning_rate * m * mean_scale / ((v * square_scale).sqrt() + EPSILON);
            *parameter = (f64::from(*parameter) - step) as f32;
        }
    }
}

/// Length of a gradient; not finite where one of its numbers is not.
#[must_use]
pub fn norm(gradient: &[f32]) -> f64 {
    gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt()
}

/// Shortens a gradient of length `norm` to `max_norm` where it is longer.
pub fn clip(gradient: &mut [f32], norm: f64, max_norm: f64) {
    if norm > max_norm {
        let scale = (max_norm / norm) as f32;
        gradient.iter_mut().for_each(|g| *g *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_worked_by_hand() {
        let (mut adam, mut x) = (Adam::new(1), [1.0_f32]);
        // First step: both corrected moments equal g and g^2, so x moves by rate * g / (|g| + eps).
        adam.step(&mut x, &[4.0], 0.1);
        assert!((f64::from(x[0]) - (1.0 - 0.1 * 4.0 / (4.0 + 1e-5))).abs() < 1e-6);
        // Second, gradient -2: m = (0.9*0.4 - 0.2)/0.19, v = (0.999*0.016 + 0.004)/0.001999.
        let before = f64::from(x[0]);
        adam.step(&mut x, &[-2.0], 0.1);
        let (m, v): (f64, f64) = (0.16 / 0.19, 0.019_984 / 0.001_999);
        assert!((f64::from(x[0]) - (before - 0.1 * m / (v.sqrt() + 1e-5))).abs() < 1e-6);
    }

    #[test]
    fn long_gradients_are_shortened_and_short_ones_left() {
        let mut gradient = [3.0, 4.0];
        assert_eq!(norm(&gradient), 5.0);
        clip(&mut gradient, 5.0, 0.5);
        assert!((norm(&gradient) - 0.5).abs() < 1e-6);
        let mut short = [0.1, 0.1];
        let length = norm(&short);
        clip(&mut short, length, 0.5);
        assert_eq!(short, [0.1, 0.1]);
        assert!(!norm(&[f32::NAN]).is_finite());
    }
}
