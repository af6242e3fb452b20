//! Quantiles of what was served.

/// A quantile by the nearest rank; NaN without values.
pub fn nearest_rank(mut values: Vec<f64>, part: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let rank = ((part * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1;
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}
