//! What several trainings are worth against the best of all others, on the same workloads.
//!
//! A training seed and a workload give one number: the logarithm of the ratio of the learned policy's figure to the
//! baseline's. The interquartile mean over all of them is the result; its 95 % interval is a percentile bootstrap that draws
//! training seeds and workloads anew, each as a whole, because a lucky training is lucky on every workload.
//!
//! # Source
//! Agarwal et al., NeurIPS'21 (interquartile mean, stratified bootstrap over runs and tasks).

use pleach_env::Seed;
use pleach_scheduler::portable_math::{exp, ln};
use rand::Rng as _;
use serde::Serialize;

use super::stats::quantile;

/// Resamples of the bootstrap.
const NUM_RESAMPLES: usize = 2_000;

/// A ratio to the baseline: below 1 the learned policy is better where less is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Interquartile mean over trainings and workloads, of logarithms.
    pub iqm: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Of `ratios[training][workload]`, all above 0; none without any.
    #[must_use]
    pub fn of(ratios: &[Vec<f64>]) -> Option<Interval> {
        let num_workloads = ratios.iter().map(Vec::len).min()?;
        if num_workloads == 0 {
            return None;
        }
        let logs: Vec<Vec<f64>> = ratios
            .iter()
            .map(|row| row.iter().map(|ratio| ln(*ratio)).collect())
            .collect();
        let mut all: Vec<f64> = logs.concat();
        let iqm = exp(interquartile_mean(&mut all));
        let mut random = Seed(0).stream("suite/bootstrap", num_workloads as u64);
        let mut draw = |bound: usize| ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize;
        let mut means: Vec<f64> = (0..NUM_RESAMPLES)
            .map(|_| {
                let workloads: Vec<usize> = (0..num_workloads).map(|_| draw(num_workloads)).collect();
                let mut sample: Vec<f64> = Vec::with_capacity(logs.len() * num_workloads);
                for _ in 0..logs.len() {
                    let row = &logs[draw(logs.len())];
                    sample.extend(workloads.iter().map(|workload| row[*workload]));
                }
                interquartile_mean(&mut sample)
            })
            .collect();
        means.sort_by(f64::total_cmp);
        Some(Interval {
            iqm,
            low: exp(quantile(&means, 0.025)?),
            high: exp(quantile(&means, 0.975)?),
        })
    }
}

/// Mean of the middle half; values at its ends count by the part of them that lies inside.
fn interquartile_mean(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let (from, to) = (n / 4.0, 3.0 * n / 4.0);
    let part = |index: usize| {
        let (start, end) = (index as f64, index as f64 + 1.0);
        (end.min(to) - start.max(from)).max(0.0)
    };
    let sum: f64 = values
        .iter()
        .enumerate()
        .map(|(index, value)| part(index) * value)
        .sum();
    sum / (to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interquartile_mean_worked_by_hand() {
        // Of eight values the middle four count.
        assert_eq!(
            interquartile_mean(&mut [100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -90.0]),
            3.5
        );
        // Of two values the inner half of each: their mean. Of three: a quarter of the outer ones.
        assert_eq!(interquartile_mean(&mut [1.0, 3.0]), 2.0);
        let three = (0.25 * 1.0 + 2.0 + 0.25 * 9.0) / 1.5;
        assert!((interquartile_mean(&mut [9.0, 1.0, 2.0]) - three).abs() < 1e-12);
    }

    #[test]
    fn equal_ratios_give_a_point_and_one_lucky_training_of_three_a_wide_interval() {
        let sure = Interval::of(&[vec![0.9; 5], vec![0.9; 5]]).unwrap();
        assert!((sure.iqm - 0.9).abs() < 1e-12 && (sure.high - sure.low).abs() < 1e-12);
        let lucky = Interval::of(&[vec![0.5; 9], vec![1.0; 9], vec![1.0; 9]]).unwrap();
        // Without the lucky one nothing is gained; with it twice or thrice (chance 7/27) the middle is halved.
        assert!(lucky.low < 0.6 && lucky.high == 1.0 && lucky.iqm > 0.8);
        assert!(Interval::of(&[]).is_none() && Interval::of(&[vec![]]).is_none());
    }
}
