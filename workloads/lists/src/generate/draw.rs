//! The two draws that every generator makes.

use rand::Rng;

/// Uniform in [0, 1) with 53 bits; written out so that no library version changes what a seed means.
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Index drawn with these weights (0 or more, not all 0).
pub(super) fn pick(weights: &[f64], rng: &mut impl Rng) -> usize {
    let mut left = unit(rng) * weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        if left < *weight {
            return index;
        }
        left -= weight;
    }
    // Rounding can leave a crumb: it belongs to the last weight above 0.
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn weights_are_drawn_in_proportion_and_zero_never() {
        let mut rng = Seed(1).stream("test", 0);
        let mut counts = [0; 3];
        for _ in 0..3000 {
            counts[pick(&[1.0, 0.0, 2.0], &mut rng)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((900..1100).contains(&counts[0]), "{counts:?}");
    }
}
