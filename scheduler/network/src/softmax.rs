//! The distribution over admissible candidates. Masked candidates are not in the list, so nothing is ever -inf.

use pleach_scheduler::portable_math::{exp_f32, ln_f32};

/// Writes `ln softmax(logits / temperature)`: the quotients less their log-sum-exp.
pub fn log_softmax(logits: &[f32], temperature: f32, out: &mut [f32]) {
    let quotients = logits.iter().map(|logit| logit / temperature);
    let largest = quotients.clone().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = quotients
        .clone()
        .map(|quotient| exp_f32(quotient - largest))
        .sum();
    let log_sum = largest + ln_f32(sum);
    out.iter_mut()
        .zip(quotients)
        .for_each(|(out, quotient)| *out = quotient - log_sum);
}

/// Index drawn from `exp(log_probabilities)` with one number in [0, 1).
pub fn sample(log_probabilities: &[f32], uniform: f64) -> usize {
    let mut sum = 0.0;
    for (index, log_probability) in log_probabilities.iter().enumerate() {
        sum += f64::from(exp_f32(*log_probability));
        if uniform < sum {
            return index;
        }
    }
    // Rounding left the sum a little below 1.
    log_probabilities.len() - 1
}

/// The first of the largest.
pub fn argmax(logits: &[f32]) -> usize {
    let mut best = 0;
    for (index, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = index;
        }
    }
    best
}

/// Entropy in nats.
pub fn entropy(log_probabilities: &[f32]) -> f32 {
    -log_probabilities.iter().map(|l| exp_f32(*l) * l).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_worked_by_hand_even_for_huge_logits() {
        let mut out = [0.0; 2];
        // The quotients differ by ln 3.
        log_softmax(&[200.0, 200.0 + 0.2 * 3.0_f32.ln()], 0.2, &mut out);
        assert!((out[0].exp() - 0.25).abs() < 1e-4 && (out[1].exp() - 0.75).abs() < 1e-4);
        let expected = 0.25 * 4.0_f32.ln() + 0.75 * (4.0_f32 / 3.0).ln();
        assert!((entropy(&out) - expected).abs() < 1e-4);
        assert_eq!(
            (sample(&out, 0.2), sample(&out, 0.3), sample(&out, 0.999_999_9)),
            (0, 1, 1)
        );
        assert_eq!(argmax(&[1.0, 2.0, 2.0]), 1);
    }
}
