//! Two jobs whose steps use one resource after another, interleaved so that they meet at none of them.
//!
//! A step goes through stages in a fixed order, for example reading, preparing, computing, sending; each keeps one resource
//! busy. Two interleaved jobs are at different stages at any time, a fixed number of stages apart, and change stage
//! together: a period of both takes, stage by stage, as long as the slower of the two, and the distance is the best one.
//! Both then make a step in a period:
//!
//! ```text
//! period = min over d in 1..k of  sum over j of  max(a[j], b[(j + d) mod k])
//! speed of a = sum(a) / period        alone it makes a step in sum(a)
//! ```
//!
//! What a cluster knows of it is a table of pairs ([`interleaved_pairs`]). The part of the time in which the k resources are
//! busy, which Muri maximises, is `(speed of a + speed of b) / k`.
//!
//! # Source
//! Zhao et al., SIGCOMM'22 (Muri). Longer chains of three and four jobs are left out: a GPU here has two whole-GPU jobs at
//! most, and a table of pairs does not say what a third one does.

use pleach_scheduler::physics::interference::PairEntry;

/// Time of one step of both jobs, from their stage times (any unit, 0 or more, equally many, at least two).
#[must_use]
pub fn period(a: &[f64], b: &[f64]) -> f64 {
    let num_stages = a.len().min(b.len());
    let at = |distance: usize| -> f64 {
        let slower = |stage: usize| a[stage].max(b[(stage + distance) % num_stages]);
        (0..num_stages).map(slower).sum()
    };
    (1..num_stages).map(at).fold(f64::INFINITY, f64::min)
}

/// Speeds of two interleaved jobs as parts of their speeds alone, (0, 1].
#[must_use]
fn interleaved(a: &[f64], b: &[f64]) -> (f64, f64) {
    let period = period(a, b);
    // A sum in another order may differ in the last bit.
    let speed = |stages: &[f64]| (stages.iter().sum::<f64>() / period).min(1.0);
    (speed(a), speed(b))
}

/// The table of pairs of classes with these names and stage times, on one GPU type.
#[must_use]
pub fn interleaved_pairs(gpu_type: &str, classes: &[(&str, Vec<f64>)]) -> Vec<PairEntry> {
    let mut pairs = Vec::new();
    for (victim, a) in classes {
        pairs.extend(classes.iter().map(|(neighbour, b)| PairEntry {
            gpu_type: gpu_type.into(),
            victim: (*victim).into(),
            neighbour: (*neighbour).into(),
            speed: interleaved(a, b).0,
        }));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn complementary_jobs_lose_nothing_and_equal_bottlenecks_take_turns() {
        // One reads for 3 and computes for 1, the other the other way round: one stage apart both take 4.
        assert_eq!(interleaved(&[3.0, 1.0], &[1.0, 3.0]), (1.0, 1.0));
        // Both compute only: they meet never, so a period is both steps.
        assert_eq!(interleaved(&[0.0, 2.0], &[0.0, 2.0]), (0.5, 0.5));
        // Three stages: 2,1,1 beside 1,1,4. One apart: max(2,1) + max(1,4) + max(1,1) = 7; two apart: 4 + 1 + 1 = 6.
        assert_eq!(period(&[2.0, 1.0, 1.0], &[1.0, 1.0, 4.0]), 6.0);
        assert_eq!(interleaved(&[2.0, 1.0, 1.0], &[1.0, 1.0, 4.0]), (4.0 / 6.0, 1.0));
    }

    /// Stage by stage, waiting for each other, for many periods.
    fn simulated(a: &[f64], b: &[f64], distance: usize) -> f64 {
        let (mut now, num_periods) = (0.0, 50);
        for tick in 0..num_periods * a.len() {
            let ends = [a[tick % a.len()], b[(tick + distance) % b.len()]].map(|stage| now + stage);
            now = ends[0].max(ends[1]);
        }
        now / num_periods as f64
    }

    proptest! {
        #[test]
        fn the_period_is_that_of_the_best_distance_and_lies_between_the_longer_and_both(
            a in prop::collection::vec(0.01_f64..10.0, 4), b in prop::collection::vec(0.01_f64..10.0, 4),
        ) {
            let best = (1..4).map(|distance| simulated(&a, &b, distance)).fold(f64::INFINITY, f64::min);
            let found = period(&a, &b);
            prop_assert!((found - best).abs() < 1e-9 * best);
            let sums = [a.iter().sum::<f64>(), b.iter().sum::<f64>()];
            prop_assert!(found >= sums[0].max(sums[1]) * (1.0 - 1e-12) && found <= (sums[0] + sums[1]) * (1.0 + 1e-12));
            prop_assert!((period(&b, &a) - found).abs() < 1e-9 * found, "nobody is first");
        }
    }
}
