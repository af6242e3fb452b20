//! Evolution with a diagonal covariance matrix: a search without gradients for a few dozen numbers.
//!
//! # Source
//! sep-CMA-ES (Ros and Hansen, PPSN'08): the covariance matrix adaptation evolution strategy (Hansen, *The CMA Evolution Strategy:
//! A Tutorial*, 2016) with a diagonal matrix, whose learning rate is larger by (n + 2) / 3.

use pleach_scheduler::portable_math::{cos, exp, ln};
use rand::Rng;

/// The distribution from which candidates are drawn, and how it moves.
#[derive(Clone, Debug)]
pub struct SepCma {
    /// Centre.
    mean: Vec<f64>,
    /// Step size.
    sigma: f64,
    /// Variance along each axis.
    variance: Vec<f64>,
    path_sigma: Vec<f64>,
    path_c: Vec<f64>,
    /// Weights of the better half, best first; they add up to 1.
    weights: Vec<f64>,
    generation: u32,
}

impl SepCma {
    /// Around a point, with a step size along each axis; the population is at least 4.
    #[must_use]
    pub fn new(mean: Vec<f64>, steps: &[f64], population: usize) -> SepCma {
        let parents = (population.max(4) / 2) as f64;
        let raw: Vec<f64> = (1..=parents as usize)
            .map(|place| ln(parents + 0.5) - ln(place as f64))
            .collect();
        let sum: f64 = raw.iter().sum();
        SepCma {
            path_sigma: vec![0.0; mean.len()],
            path_c: vec![0.0; mean.len()],
            variance: steps.iter().map(|step| step * step).collect(),
            sigma: 1.0,
            weights: raw.into_iter().map(|weight| weight / sum).collect(),
            generation: 0,
            mean,
        }
    }

    /// The centre.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// One generation: candidates are drawn and judged together, and the centre moves towards those with the least losses, among
    /// equal ones the first.
    ///
    /// # Errors
    /// What `losses` says.
    pub fn step<E>(
        &mut self,
        rng: &mut (impl Rng + ?Sized),
        population: usize,
        losses: impl FnOnce(&[Vec<f64>]) -> Result<Vec<f64>, E>,
    ) -> Result<(), E> {
        let drawn: Vec<Vec<f64>> = (0..population).map(|_| self.draw(rng)).collect();
        let mut order: Vec<(f64, Vec<f64>)> = losses(&drawn)?.into_iter().zip(drawn).collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        let sorted: Vec<Vec<f64>> = order.into_iter().map(|(_, candidate)| candidate).collect();
        self.tell(&sorted);
        Ok(())
    }

    /// A candidate.
    fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> Vec<f64> {
        let spread = self.mean.iter().zip(&self.variance);
        spread
            .map(|(mean, variance)| mean + self.sigma * variance.sqrt() * normal(rng))
            .collect()
    }

    /// Moves towards the better candidates: as many as were drawn, smallest loss first.
    fn tell(&mut self, sorted: &[Vec<f64>]) {
        let num = self.mean.len() as f64;
        let effective = 1.0 / self.weights.iter().map(|weight| weight * weight).sum::<f64>();
        let c_sigma = (effective + 2.0) / (num + effective + 5.0);
        let damping = 1.0 + c_sigma + 2.0 * (((effective - 1.0) / (num + 1.0)).sqrt() - 1.0).max(0.0);
        let c_c = (4.0 + effective / num) / (num + 4.0 + 2.0 * effective / num);
        let c_1 = 2.0 / ((num + 1.3) * (num + 1.3) + effective);
        let c_mu = (2.0 * (effective - 2.0 + 1.0 / effective) / ((num + 2.0) * (num + 2.0) + effective))
            .min(1.0 - c_1);
        // A diagonal has so many fewer numbers to learn.
        let faster = (num + 2.0) / 3.0;
        let (c_1, c_mu) = ((c_1 * faster).min(0.5), (c_mu * faster).min(0.5));
        let expected = num.sqrt() * (1.0 - 1.0 / (4.0 * num) + 1.0 / (21.0 * num * num));
        self.generation += 1;
        let old = self.mean.clone();
        for axis in 0..self.mean.len() {
            let best = self.weights.iter().zip(sorted);
            self.mean[axis] = best.map(|(weight, candidate)| weight * candidate[axis]).sum();
        }
        let mut length = 0.0;
        for (axis, old) in old.iter().enumerate() {
            let step = (self.mean[axis] - old) / self.sigma;
            let whitened = step / self.variance[axis].sqrt();
            let path = &mut self.path_sigma[axis];
            *path = (1.0 - c_sigma) * *path + (c_sigma * (2.0 - c_sigma) * effective).sqrt() * whitened;
            length += *path * *path;
        }
        let length = length.sqrt();
        let decayed = 1.0 - exp(2.0 * f64::from(self.generation) * ln(1.0 - c_sigma));
        let is_steady = length / decayed.sqrt() < (1.4 + 2.0 / (num + 1.0)) * expected;
        for (axis, old) in old.iter().enumerate() {
            let step = (self.mean[axis] - old) / self.sigma;
            let path = &mut self.path_c[axis];
            *path *= 1.0 - c_c;
            if is_steady {
                *path += (c_c * (2.0 - c_c) * effective).sqrt() * step;
            }
            let spread = self.weights.iter().zip(sorted).map(|(weight, candidate)| {
                let step = (candidate[axis] - old) / self.sigma;
                weight * step * step
            });
            let spread: f64 = spread.sum();
            let variance = (1.0 - c_1 - c_mu) * self.variance[axis] + c_1 * *path * *path + c_mu * spread;
            self.variance[axis] = variance.max(1e-12);
        }
        self.sigma *= exp((c_sigma / damping) * (length / expected - 1.0));
    }
}

/// A standard normal number, by Box and Muller.
fn normal(rng: &mut (impl Rng + ?Sized)) -> f64 {
    let uniform = |bits: u64| ((bits >> 11) + 1) as f64 / 9_007_199_254_740_992.0;
    let (radius, angle) = (uniform(rng.next_u64()), uniform(rng.next_u64()));
    (-2.0 * ln(radius)).sqrt() * cos(2.0 * std::f64::consts::PI * angle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::Seed;

    #[test]
    fn it_finds_the_bottom_of_an_uneven_bowl() {
        // Axes differ in curvature by a factor of 10,000.
        let loss = |x: &[f64]| -> f64 {
            let axes = x.iter().enumerate();
            axes.map(|(axis, x)| 10_f64.powi(axis as i32) * (x - axis as f64).powi(2))
                .sum()
        };
        let mut rng = Seed(3).stream("bowl", 0);
        let mut search = SepCma::new(vec![5.0; 5], &[1.0; 5], 12);
        for _ in 0..200 {
            let losses = |drawn: &[Vec<f64>]| Ok::<_, ()>(drawn.iter().map(|one| loss(one)).collect());
            search.step(&mut rng, 12, losses).unwrap();
        }
        assert!(loss(search.mean()) < 1e-6, "{:?}", search.mean());
    }

    #[test]
    fn its_normal_numbers_have_mean_zero_and_variance_one() {
        let mut rng = Seed(1).stream("normal", 0);
        let drawn: Vec<f64> = (0..20_000).map(|_| normal(&mut rng)).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        // Three standard errors: 0.021 and 0.03.
        assert!(
            mean.abs() < 0.0213 && (variance - 1.0).abs() < 0.03,
            "{mean} {variance}"
        );
    }
}
