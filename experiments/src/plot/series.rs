//! Series of points made short enough to draw.

use crate::evaluate::stats::quantile;

/// At most `limit` (at least 2) of `points`, evenly spread, with the first and the last.
#[must_use]
pub fn thin<T: Copy>(points: &[T], limit: usize) -> Vec<T> {
    let limit = limit.max(2);
    if points.len() <= limit {
        return points.to_vec();
    }
    (0..limit)
        .map(|i| points[i * (points.len() - 1) / (limit - 1)])
        .collect()
}

/// A step function as at most `limit` steps of equal length, each with the time average of what it covers.
#[must_use]
pub fn averaged(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let limit = limit.max(2);
    let length_s = last.0 - first.0;
    if points.len() <= limit || length_s <= 0.0 {
        return points.iter().take(limit).copied().collect();
    }
    let num_steps = limit - 1;
    let step_s = length_s / num_steps as f64;
    let mut area = vec![0.0; num_steps];
    for pair in points.windows(2) {
        let (mut from_s, to_s, part) = (pair[0].0, pair[1].0, pair[0].1);
        // Cut at the edges of steps; each piece falls into one step, so the whole is linear in points + steps.
        while from_s < to_s {
            let step = (((from_s - first.0) / step_s) as usize).min(num_steps - 1);
            let edge_s = if step + 1 == num_steps {
                to_s
            } else {
                first.0 + (step + 1) as f64 * step_s
            };
            // Rounding may put the edge at the start; go on by at least the next representable time.
            let until_s = edge_s.min(to_s).max(from_s.next_up());
            area[step] += part * (until_s - from_s);
            from_s = until_s;
        }
    }
    let mut steps: Vec<(f64, f64)> = area
        .iter()
        .enumerate()
        .map(|(step, sum)| (first.0 + step as f64 * step_s, sum / step_s))
        .collect();
    steps.push(*last);
    steps
}

/// The distribution of ascending values as at most `limit` quantiles: (value, part of all, 0 to 1).
#[must_use]
pub fn quantiles(sorted: &[f64], limit: usize) -> Vec<(f64, f64)> {
    let count = sorted.len().min(limit);
    let part = |place: usize| match count {
        1 => 1.0,
        _ => place as f64 / (count - 1) as f64,
    };
    (0..count)
        .filter_map(|place| Some((quantile(sorted, part(place))?, part(place))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_distribution_is_thinned_and_keeps_its_ends() {
        let values: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let points = quantiles(&values, 400);
        assert_eq!(
            (points.len(), points[0], points[399]),
            (400, (1.0, 0.0), (100_000.0, 1.0))
        );
        assert_eq!(
            (quantiles(&[7.0], 400), quantiles(&[], 400)),
            (vec![(7.0, 1.0)], vec![])
        );
    }

    #[test]
    fn averaging_keeps_the_area() {
        // Busy for the first half of every second: the mean is 0.5 everywhere.
        let points: Vec<(f64, f64)> = (0..2001)
            .map(|i| (f64::from(i) / 2.0, if i % 2 == 0 { 1.0 } else { 0.0 }))
            .collect();
        let steps = averaged(&points, 11);
        assert_eq!(steps.len(), 11);
        assert!(
            steps[..10].iter().all(|step| (step.1 - 0.5).abs() < 1e-9),
            "{steps:?}"
        );
        assert_eq!((steps[0].0, steps[10].0), (0.0, 1000.0));
    }

    #[test]
    fn short_empty_and_standing_series_pass_through() {
        assert_eq!(averaged(&[], 10), []);
        assert_eq!(averaged(&[(0.0, 0.5), (1.0, 0.0)], 10), [(0.0, 0.5), (1.0, 0.0)]);
        assert_eq!(averaged(&[(1.0, 0.5); 30], 10).len(), 10);
    }

    #[test]
    fn thinning_keeps_the_ends() {
        let points: Vec<usize> = (0..1000).collect();
        let thinned = thin(&points, 5);
        assert_eq!(thinned, [0, 249, 499, 749, 999]);
        assert_eq!(thin(&points[..3], 5), [0, 1, 2]);
    }
}
