//! Is one policy better than another, and how sure are we? Ratios of average JCT over paired runs.
//!
//! Two policies that met the same workload with the same seed form a pair. The logarithm of the pair's ratio is one
//! number; a policy's result is the geometric mean of its ratios with a 95 % percentile-bootstrap interval over pairs
//! (Efron & Tibshirani 1993, chapter 13). Pairing takes the large differences between workloads out of the comparison;
//! logarithms make "twice as slow" and "twice as fast" weigh the same.
//!
//! The interval is deterministic: resampling draws from a fixed stream. With fewer than two pairs no interval is stated.
//! With few pairs a percentile interval is too narrow (the test below measures its coverage): treat fewer than ten pairs
//! as a hint. Refused: ratios of numbers that are not positive.

use pleach_env::Seed;
use pleach_scheduler::portable_math::{exp, ln};
use rand::Rng as _;
use serde::{Deserialize, Serialize};

/// Resamples of the bootstrap.
pub(crate) const NUM_RESAMPLES: usize = 10_000;
/// Pairs that are looked at, at most; bounds the work at `NUM_RESAMPLES * MAX_PAIRS` draws.
pub(crate) const MAX_PAIRS: usize = 10_000;
/// Draws spent on one interval, at most; with more pairs there are fewer resamples.
const MAX_DRAWS: usize = 20_000_000;
/// Resamples below which we never go.
const MIN_RESAMPLES: usize = 1_000;

/// A policy against the reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Geometric mean of policy / reference; below 1 the policy has the lower numbers.
    pub mean: f64,
    /// Lower end of the 95 % interval; none with fewer than two pairs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Pairs it rests on.
    pub num_pairs: usize,
    /// Pairs in which the policy is better: has the lower number, where not more is better.
    pub num_better: usize,
}

impl Ratio {
    /// The ratio over `pairs` of (policy, reference); none without pairs or where a number is not positive and finite.
    /// Pairs beyond [`MAX_PAIRS`] are left out.
    #[must_use]
    pub(crate) fn of_pairs(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let pairs = &pairs[..pairs.len().min(MAX_PAIRS)];
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if pairs.is_empty()
            || !pairs
                .iter()
                .all(|&(policy, reference)| positive(policy) && positive(reference))
        {
            return None;
        }
        let logs: Vec<f64> = pairs
            .iter()
            .map(|(policy, reference)| ln(*policy) - ln(*reference))
            .collect();
        Ratio::of_logs(&logs)
    }

    /// The same from the logarithms of the pairs' ratios; none without any or where one is not finite.
    #[must_use]
    pub(crate) fn of_logs(logs: &[f64]) -> Option<Ratio> {
        if logs.is_empty() || !logs.iter().all(|log| log.is_finite()) {
            return None;
        }
        let interval = bootstrap_mean(logs, 0.95);
        Some(Ratio {
            mean: exp(mean(logs)),
            low: interval.map(|(low, _)| exp(low)),
            high: interval.map(|(_, high)| exp(high)),
            num_pairs: logs.len(),
            num_better: logs.iter().filter(|&&log| log < 0.0).count(),
        })
    }

    /// The ratio of the sums over `parts` of one list, such as its days, each with (policy, reference): the ratio of two means over
    /// the whole list, with the interval of drawing parts. Parts may be empty; the reference must have something in all.
    #[must_use]
    pub(crate) fn of_sums(parts: &[(f64, f64)]) -> Option<Ratio> {
        let parts = &parts[..parts.len().min(MAX_PAIRS)];
        let is_sum = |value: f64| value.is_finite() && value >= 0.0;
        let of = |sum: (f64, f64)| sum.0 / sum.1;
        let add = |sum: (f64, f64), part: &(f64, f64)| (sum.0 + part.0, sum.1 + part.1);
        let whole = parts.iter().fold((0.0, 0.0), add);
        if !parts.iter().all(|part| is_sum(part.0) && is_sum(part.1)) || whole.1 <= 0.0 {
            return None;
        }
        let mut random = Seed(0).stream("stats/sums", parts.len() as u64);
        let num_resamples = (MAX_DRAWS / parts.len()).clamp(MIN_RESAMPLES, NUM_RESAMPLES);
        let mut draw = |_| {
            let drawn = (0..parts.len()).fold((0.0, 0.0), |sum, _| {
                add(sum, &parts[below(random.next_u64(), parts.len())])
            });
            // A draw without anything in the reference says nothing else than the whole.
            if drawn.1 > 0.0 { of(drawn) } else { of(whole) }
        };
        let interval = (parts.len() >= 2).then(|| {
            let mut ratios: Vec<f64> = (0..num_resamples).map(&mut draw).collect();
            ratios.sort_by(f64::total_cmp);
            (quantile(&ratios, 0.025), quantile(&ratios, 0.975))
        });
        Some(Ratio {
            mean: of(whole),
            low: interval.and_then(|(low, _)| low),
            high: interval.and_then(|(_, high)| high),
            num_pairs: parts.len(),
            num_better: parts
                .iter()
                .filter(|(policy, reference)| policy < reference)
                .count(),
        })
    }

    /// Whether the interval excludes 1; none where there is no interval.
    #[cfg(test)]
    fn differs(&self) -> Option<bool> {
        Some(self.high? < 1.0 || self.low? > 1.0)
    }
}

/// A figure of a list and its 95 % interval of drawing `num_parts` parts of it, such as its days: `of` takes how often each part
/// counts. None where the list has no figure; a draw without one says nothing else than the whole. Without two parts the interval
/// is the figure.
#[must_use]
pub(crate) fn over_parts(num_parts: usize, of: impl Fn(&[u32]) -> Option<f64>) -> Option<(f64, f64, f64)> {
    let whole = of(&vec![1; num_parts])?;
    if num_parts < 2 {
        return Some((whole, whole, whole));
    }
    let mut random = Seed(0).stream("stats/parts", num_parts as u64);
    let mut draw = |_| {
        let mut counts = vec![0_u32; num_parts];
        for _ in 0..num_parts {
            counts[below(random.next_u64(), num_parts)] += 1;
        }
        of(&counts).unwrap_or(whole)
    };
    let mut figures: Vec<f64> = (0..MIN_RESAMPLES).map(&mut draw).collect();
    figures.sort_by(f64::total_cmp);
    let end = |q| quantile(&figures, q).unwrap_or(whole);
    Some((whole, end(0.025), end(0.975)))
}

/// Arithmetic mean; 0 for nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        0.0
    } else {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// The `q`-quantile (0 to 1) of `sorted` with linear interpolation between order statistics.
///
/// # Source
/// Type 7 of Hyndman & Fan 1996, the default of NumPy and R.
#[must_use]
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    let part = place - below as f64;
    Some(sorted[below] * (1.0 - part) + sorted[above] * part)
}

/// Percentile-bootstrap interval of the mean of `values` that covers `level` (0 to 1); none with fewer than two values.
/// The same values in the same order always give the same interval.
#[must_use]
pub fn bootstrap_mean(values: &[f64], level: f64) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let num_resamples = (MAX_DRAWS / values.len()).clamp(MIN_RESAMPLES, NUM_RESAMPLES);
    let mut random = Seed(0).stream("stats/bootstrap", values.len() as u64);
    let mut means = Vec::with_capacity(num_resamples);
    for _ in 0..num_resamples {
        let mut sum = 0.0;
        for _ in 0..values.len() {
            sum += values[below(random.next_u64(), values.len())];
        }
        means.push(sum / values.len() as f64);
    }
    means.sort_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Some((quantile(&means, tail)?, quantile(&means, 1.0 - tail)?))
}

/// A draw from `0..bound` out of 64 random bits by multiplication (Lemire 2019, without the rejection: its bias is below
/// `bound / 2^64`). Written out so that no library's change of method can move an interval.
fn below(bits: u64, bound: usize) -> usize {
    ((u128::from(bits) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_twice_as_fast_once_and_twice_as_slow_once_is_as_good_as_the_reference() {
        // Logs are -ln 2 and +ln 2, whose mean is 0. A resample of two has mean -ln 2, 0, 0 or +ln 2 with probability 1/4
        // each, so the 2.5 % and 97.5 % quantiles are the extremes: 1/2 and 2.
        let ratio = Ratio::of_pairs(&[(50.0, 100.0), (200.0, 100.0)]).unwrap();
        assert!((ratio.mean - 1.0).abs() < 1e-12);
        assert!((ratio.low.unwrap() - 0.5).abs() < 1e-12);
        assert!((ratio.high.unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(
            (ratio.num_pairs, ratio.num_better, ratio.differs()),
            (2, 1, Some(false))
        );
    }

    #[test]
    fn the_mean_of_ratios_is_geometric() {
        // 1/2 * 1/8 = 1/16, whose square root is 1/4; the arithmetic mean would say 0.3125.
        let ratio = Ratio::of_pairs(&[(1.0, 2.0), (1.0, 8.0)]).unwrap();
        assert!((ratio.mean - 0.25).abs() < 1e-12);
        assert_eq!(ratio.differs(), Some(true));
    }

    #[test]
    fn one_pair_states_no_interval_and_no_pair_no_ratio() {
        let ratio = Ratio::of_pairs(&[(80.0, 100.0)]).unwrap();
        assert!((ratio.mean - 0.8).abs() < 1e-12);
        assert_eq!((ratio.low, ratio.high, ratio.differs()), (None, None, None));
        assert_eq!(Ratio::of_pairs(&[]), None);
        assert_eq!(Ratio::of_pairs(&[(0.0, 1.0)]), None);
        assert_eq!(Ratio::of_pairs(&[(1.0, f64::NAN)]), None);
    }

    #[test]
    fn a_constant_ratio_has_an_interval_of_no_width() {
        let ratio = Ratio::of_pairs(&[(3.0, 4.0); 6]).unwrap();
        assert!((ratio.low.unwrap() - 0.75).abs() < 1e-12 && (ratio.high.unwrap() - 0.75).abs() < 1e-12);
    }

    #[test]
    fn the_ratio_of_sums_is_that_of_two_means_and_varies_with_the_parts() {
        // (10 + 30) / (20 + 20) = 1; drawn twice of two, the ratios are 1/2, 1 (twice) and 3/2.
        let ratio = Ratio::of_sums(&[(10.0, 20.0), (30.0, 20.0)]).unwrap();
        assert!((ratio.mean - 1.0).abs() < 1e-12 && ratio.num_better == 1);
        assert_eq!((ratio.low, ratio.high), (Some(0.5), Some(1.5)));
        // An empty part does no harm, and without anything to compare with there is none.
        assert!(Ratio::of_sums(&[(1.0, 2.0), (0.0, 0.0)]).unwrap().mean == 0.5);
        assert_eq!(Ratio::of_sums(&[(1.0, 0.0)]), None);
        assert_eq!(Ratio::of_sums(&[(1.0, f64::NAN)]), None);
    }

    #[test]
    fn a_figure_varies_with_the_parts_that_are_drawn() {
        // Of two parts with 1 and 3 jobs of value 1 and 3: the mean is 10/4, drawn twice it is 1, 2.5 (twice) or 3.
        let mean = |counts: &[u32]| {
            let [one, other] = [f64::from(counts[0]), f64::from(counts[1])];
            Some((one + 9.0 * other) / (one + 3.0 * other))
        };
        assert_eq!(over_parts(2, mean), Some((2.5, 1.0, 3.0)));
        assert_eq!(over_parts(1, |_| Some(7.0)), Some((7.0, 7.0, 7.0)));
        assert_eq!(over_parts(2, |_| None), None);
        // A draw without the second part has no figure here, and counts as the whole.
        let second = |counts: &[u32]| (counts[1] > 0).then_some(5.0);
        assert_eq!(over_parts(2, second), Some((5.0, 5.0, 5.0)));
    }

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_same_pairs_give_the_same_interval() {
        let values: Vec<f64> = (0..20).map(|i| f64::from(i * i % 7)).collect();
        assert_eq!(bootstrap_mean(&values, 0.95), bootstrap_mean(&values, 0.95));
    }

    /// Part of `num_trials` normal samples of `size` whose interval holds the true mean.
    fn coverage(size: usize, num_trials: u64) -> f64 {
        let normal = |random: &mut rand_chacha::ChaCha8Rng| {
            // Irwin-Hall: the sum of 12 uniforms has mean 6 and variance 1.
            (0..12)
                .map(|_| (random.next_u64() >> 11) as f64 / 2f64.powi(53))
                .sum::<f64>()
                - 6.0
        };
        let mut hits = 0;
        for trial in 0..num_trials {
            let mut random = Seed(1).stream("coverage", trial);
            let values: Vec<f64> = (0..size).map(|_| normal(&mut random)).collect();
            let (low, high) = bootstrap_mean(&values, 0.95).unwrap();
            hits += u64::from(low <= 0.0 && 0.0 <= high);
        }
        hits as f64 / num_trials as f64
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        // With 30 pairs close to 95 %; with 5 clearly below, which is why the docs ask for ten.
        let (with_30, with_5) = (coverage(30, 400), coverage(5, 400));
        assert!((0.90..=0.98).contains(&with_30), "30 pairs: {with_30}");
        assert!((0.75..=0.92).contains(&with_5), "5 pairs: {with_5}");
    }
}
