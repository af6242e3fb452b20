//! Parts of a distribution at which forecasts are stated, and how good they were.

use pleach_scheduler::portable_math::ln;

/// Parts of a distribution at which forecasts are stated.
pub const LEVELS: [f64; 9] = [0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975];
/// Place of the median among them.
pub const MIDDLE: usize = 4;
/// Places of the ends of the 80 % interval.
pub const EIGHTY: (usize, usize) = (2, 6);

/// Waits at [`LEVELS`], s.
pub type Quantiles = [f64; LEVELS.len()];

/// Levels at which the pinball loss is taken: .05, .25, .5, .75, .95.
const SCORED: [usize; 5] = [1, 3, 4, 5, 7];

/// A wait or a count on a scale on which 0 has a place: ln(1 + value).
#[must_use]
pub fn log1(value: f64) -> f64 {
    ln(1.0 + value.max(0.0))
}

/// Mean pinball loss of quantiles against a wait, s, on a scale.
///
/// # Source
/// R. Koenker and G. Bassett, *Regression quantiles* (1978).
pub fn pinball(stated: &Quantiles, wait_s: f64, scale: impl Fn(f64) -> f64) -> f64 {
    let of = |level: usize| {
        let over = scale(wait_s) - scale(stated[level]);
        (LEVELS[level] * over).max((LEVELS[level] - 1.0) * over)
    };
    SCORED.iter().map(|level| of(*level)).sum::<f64>() / SCORED.len() as f64
}

/// Whether a wait lies in the interval between two levels, by their places.
#[must_use]
pub fn holds(stated: &Quantiles, wait_s: f64, (low, high): (usize, usize)) -> bool {
    (stated[low]..=stated[high]).contains(&wait_s)
}
