//! When jobs come: a rate that follows the hour, the weekday and a slowly wandering factor, and points drawn from it.

use pleach_scheduler::portable_math::exp;
use rand::Rng;

use super::unit;
use crate::normal::standard_normal;

/// How the rate varies.
pub(super) struct Shape<'a> {
    /// Rate by hour of the day and by weekday, each with mean 1; none for a flat rate.
    pub profile: Option<(&'a [f64; 24], &'a [f64; 7])>,
    /// Standard deviation of the logarithm of the wandering factor; 0 for none.
    pub sigma: f64,
    /// Correlation of that logarithm from one hour to the next.
    pub correlation: f64,
}

/// A rate over `[0, span_s]`, cumulated, hour by hour.
pub(super) struct Rate {
    bin_s: f64,
    span_s: f64,
    /// Expected arrivals up to the end of each bin, not normalised. `[num_bins]`
    cumulated: Vec<f64>,
}

const HOUR_S: f64 = 3600.0;
/// Most bins; longer spans get longer bins.
const NUM_BINS_MAX: f64 = 1e6;

impl Rate {
    /// Draws the rate; the clock starts at a random hour of the week, so that short workloads see every hour.
    pub(super) fn new(span_s: f64, shape: &Shape<'_>, rng: &mut impl Rng) -> Rate {
        let bin_s = HOUR_S.max(span_s / NUM_BINS_MAX);
        let num_bins = (span_s / bin_s).ceil().max(1.0) as usize;
        let start_hour = unit(rng) * 168.0;
        let mut wander = standard_normal(rng);
        let mut sum = 0.0;
        let cumulated = (0..num_bins).map(|bin| {
            let hour = (start_hour + bin as f64 * bin_s / HOUR_S) % 168.0;
            let regular = shape.profile.map_or(1.0, |(hours, weekdays)| {
                hours[hour as usize % 24] * weekdays[hour as usize / 24 % 7]
            });
            let step = standard_normal(rng);
            wander = shape.correlation * wander + (1.0 - shape.correlation.powi(2)).sqrt() * step;
            let length_s = bin_s.min(span_s - bin as f64 * bin_s).max(0.0);
            sum += regular * exp(shape.sigma * wander) * length_s;
            sum
        });
        let cumulated = cumulated.collect();
        Rate {
            bin_s,
            span_s,
            cumulated,
        }
    }

    /// `num` arrival times in order, s in `[0, span_s]`.
    pub(super) fn draw(&self, num: usize, rng: &mut impl Rng) -> Vec<f64> {
        let mut times: Vec<f64> = (0..num).map(|_| self.invert(unit(rng))).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    fn invert(&self, share: f64) -> f64 {
        let total = self.cumulated.last().copied().unwrap_or(0.0);
        let wanted = share * total;
        let bin = self
            .cumulated
            .partition_point(|sum| *sum <= wanted)
            .min(self.cumulated.len() - 1);
        let before = if bin == 0 { 0.0 } else { self.cumulated[bin - 1] };
        let inside = self.cumulated[bin] - before;
        let start_s = bin as f64 * self.bin_s;
        let length_s = self.bin_s.min(self.span_s - start_s);
        let part = if inside > 0.0 {
            (wanted - before) / inside
        } else {
            0.0
        };
        (start_s + part * length_s).clamp(0.0, self.span_s)
    }
}

/// Moves and stretches sorted times so that the first is 0 and the last is `span_s`.
pub(super) fn fit_span(times: &mut [f64], span_s: f64) {
    let (Some(first), Some(last)) = (times.first().copied(), times.last().copied()) else {
        return;
    };
    let factor = if last > first {
        span_s / (last - first)
    } else {
        0.0
    };
    for time in times {
        *time = (*time - first) * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn a_flat_rate_spreads_arrivals_evenly_over_any_span() {
        let shape = Shape {
            profile: None,
            sigma: 0.0,
            correlation: 0.0,
        };
        for span_s in [10.0, 5000.0, 1e6] {
            let mut rng = Seed(2).stream("test", 0);
            let times = Rate::new(span_s, &shape, &mut rng).draw(4000, &mut rng);
            let mean = times.iter().sum::<f64>() / 4000.0;
            assert!((mean / span_s - 0.5).abs() < 0.02, "{span_s} {mean}");
            assert!(times.iter().all(|time| (0.0..=span_s).contains(time)));
        }
    }

    #[test]
    fn the_hour_profile_shows_in_the_arrivals() {
        let mut hours = [0.5; 24];
        hours[..12].fill(1.5);
        let shape = Shape {
            profile: Some((&hours, &[1.0; 7])),
            sigma: 0.0,
            correlation: 0.0,
        };
        let mut rng = Seed(3).stream("test", 0);
        let rate = Rate::new(70.0 * 86_400.0, &shape, &mut rng);
        let mut counts = [0.0; 24];
        for time in rate.draw(48_000, &mut rng) {
            counts[(time / HOUR_S) as usize % 24] += 1.0;
        }
        let most = counts.iter().copied().fold(0.0, f64::max);
        let least = counts.iter().copied().fold(f64::MAX, f64::min);
        assert!((2.5..4.0).contains(&(most / least)), "{counts:?}");
    }

    #[test]
    fn a_span_of_zero_puts_all_arrivals_at_zero() {
        let mut times = vec![3.0, 3.0];
        fit_span(&mut times, 9.0);
        assert_eq!(times, [0.0, 0.0]);
        let mut times = vec![1.0, 2.0, 5.0];
        fit_span(&mut times, 8.0);
        assert_eq!(times, [0.0, 2.0, 8.0]);
    }
}
