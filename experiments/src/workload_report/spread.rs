//! Figures of a set of numbers: quantiles, coefficient of variation, concentration. Nothing is a number where there is
//! nothing to count, so that no report ever says NaN.

use serde::Serialize;

use crate::evaluate::stats::{mean, quantile};

/// Quantiles that tables and files show, percent.
pub(crate) const PERCENTS: [u32; 7] = [10, 25, 50, 75, 90, 95, 99];

/// Numbers in a nutshell. All figures are none without numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub count: usize,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation over mean (population), where the mean is not zero.
    pub variation: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Quantiles at [`PERCENTS`], type 7.
    pub quantiles: [Option<f64>; 7],
    /// Largest.
    pub max: Option<f64>,
}

impl Summary {
    /// The figures of `sorted`, ascending and finite.
    #[must_use]
    pub fn of(sorted: &[f64]) -> Summary {
        let average = (!sorted.is_empty()).then(|| mean(sorted));
        let variation = average.filter(|average| *average != 0.0).map(|average| {
            let squares = sorted.iter().map(|value| (value - average).powi(2));
            (squares.sum::<f64>() / sorted.len() as f64).sqrt() / average
        });
        Summary {
            count: sorted.len(),
            mean: average,
            variation,
            min: sorted.first().copied(),
            quantiles: PERCENTS.map(|percent| quantile(sorted, f64::from(percent) / 100.0)),
            max: sorted.last().copied(),
        }
    }

    /// A quantile that is one of [`PERCENTS`].
    #[must_use]
    pub fn at(&self, percent: u32) -> Option<f64> {
        let place = PERCENTS.iter().position(|known| *known == percent)?;
        self.quantiles[place]
    }
}

/// Ascending copies of the finite values.
#[must_use]
pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// `part / whole`, where there is a whole.
#[must_use]
pub fn share(part: f64, whole: f64) -> Option<f64> {
    Some(part / whole).filter(|share| share.is_finite())
}

/// How unequally a sum is shared out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Concentration {
    /// Users or tenants, those with a part of 0 among them.
    pub count: usize,
    /// Gini coefficient: 0 where all hold the same, towards 1 where one holds all.
    pub gini: Option<f64>,
    /// Part of the largest.
    pub top_1: Option<f64>,
    /// Part of the five largest.
    pub top_5: Option<f64>,
    /// Part of the largest tenth, rounded up.
    pub top_tenth: Option<f64>,
    /// Lorenz curve: (part of holders, part of the sum) from the smallest holder up, with both ends.
    #[serde(skip)]
    pub lorenz: Vec<(f64, f64)>,
}

impl Concentration {
    /// Of amounts that are not negative, in any order.
    ///
    /// # Source
    /// Gini (1912) in the form 2 sum(i x_i) / (n sum x) - (n + 1) / n over ascending x, i from 1.
    #[must_use]
    pub fn of(amounts: impl Iterator<Item = f64>) -> Concentration {
        let amounts = sorted(amounts);
        let (count, sum) = (amounts.len(), amounts.iter().sum::<f64>());
        if count == 0 || sum <= 0.0 {
            return Concentration {
                count,
                ..Concentration::default()
            };
        }
        let n = count as f64;
        let ranked: f64 = amounts
            .iter()
            .enumerate()
            .map(|(i, amount)| (i + 1) as f64 * amount)
            .sum();
        let top = |num: usize| Some(amounts.iter().rev().take(num).sum::<f64>() / sum);
        let mut lorenz = vec![(0.0, 0.0)];
        let mut below = 0.0;
        for (i, amount) in amounts.iter().enumerate() {
            below += amount;
            lorenz.push(((i + 1) as f64 / n, (below / sum).min(1.0)));
        }
        Concentration {
            count,
            gini: Some((2.0 * ranked / (n * sum) - (n + 1.0) / n).max(0.0)),
            top_1: top(1),
            top_5: top(5),
            top_tenth: top(count.div_ceil(10)),
            lorenz,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_three_numbers_worked_by_hand() {
        let summary = Summary::of(&[1.0, 2.0, 6.0]);
        // Mean 3; deviations 4, 1, 9: variance 14 / 3.
        assert_eq!(
            (summary.count, summary.mean, summary.at(50)),
            (3, Some(3.0), Some(2.0))
        );
        assert!((summary.variation.unwrap() - (14.0_f64 / 3.0).sqrt() / 3.0).abs() < 1e-12);
        assert_eq!(
            (summary.min, summary.max, summary.at(75)),
            (Some(1.0), Some(6.0), Some(4.0))
        );
        assert_eq!(summary.at(33), None);
    }

    #[test]
    fn nothing_and_zeros_give_no_figures_instead_of_nan() {
        assert_eq!(Summary::of(&[]), Summary::default());
        assert_eq!(Summary::of(&[0.0, 0.0]).variation, None);
        assert_eq!(share(0.0, 0.0), None);
        assert_eq!(Concentration::of([0.0, 0.0].into_iter()).gini, None);
        assert_eq!(Concentration::of(std::iter::empty()).count, 0);
    }

    #[test]
    fn equal_holders_have_gini_zero_and_one_of_four_that_holds_all_three_quarters() {
        assert_eq!(Concentration::of([5.0; 4].into_iter()).gini, Some(0.0));
        let one = Concentration::of([0.0, 8.0, 0.0, 0.0].into_iter());
        assert_eq!(
            (one.gini, one.top_1, one.top_tenth),
            (Some(0.75), Some(1.0), Some(1.0))
        );
        // 1 and 3: 2 (1 + 6) / (2 * 4) - 3 / 2 = 0.25.
        let two = Concentration::of([3.0, 1.0].into_iter());
        assert_eq!(two.gini, Some(0.25));
        assert_eq!(two.lorenz, [(0.0, 0.0), (0.5, 0.25), (1.0, 1.0)]);
    }
}
