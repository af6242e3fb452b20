//! What is drawn: evenly from 0 to below 1.

use pleach_scheduler::portable_math::exp;

/// Draws from a seed.
///
/// # Source
/// splitmix64.
pub struct Draws(pub u64);

impl Draws {
    /// The next one.
    pub fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of the softmax of the scores over a temperature, but for a place.
    pub fn of_softmax(&mut self, scores: &[f32], temperature: f32, without: Option<usize>) -> usize {
        let chances = softmax(scores, temperature, without);
        let mut rest = self.even() as f32;
        let drawn = chances.iter().position(|chance| {
            rest -= chance;
            rest < 0.0
        });
        drawn.unwrap_or_else(|| chances.iter().rposition(|chance| *chance > 0.0).unwrap_or(0))
    }
}

/// Chances by the scores over a temperature; none of a place.
pub fn softmax(scores: &[f32], temperature: f32, without: Option<usize>) -> Vec<f32> {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |(place, score): (usize, &f32)| match without == Some(place) {
        true => 0.0,
        false => exp(f64::from((score - largest) / temperature)) as f32,
    };
    let weights: Vec<f32> = scores.iter().enumerate().map(weight).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum.max(1e-30)).collect()
}
