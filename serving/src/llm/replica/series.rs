//! Times of consecutive steps: an arithmetic series.

/// The sum of `steps` terms, the first of which is `first` and each later one larger by `more`, ps.
pub(super) fn series(first: u64, more: u64, steps: u64) -> u128 {
    let steps = u128::from(steps);
    steps * u128::from(first) + u128::from(more) * (steps * steps.saturating_sub(1) / 2)
}

/// The least number of terms, at least 1, whose sum is `span` or more.
pub(super) fn steps_until(first: u64, more: u64, span: u64) -> u64 {
    if more == 0 {
        return span.div_ceil(first).max(1);
    }
    let (middle, more_f) = (first as f64 - more as f64 / 2.0, more as f64);
    let root = (middle * middle + 2.0 * more_f * span as f64).sqrt();
    let mut steps = (((root - middle) / more_f) as u64).max(1);
    while series(first, more, steps) < u128::from(span) {
        steps += 1;
    }
    while steps > 1 && series(first, more, steps - 1) >= u128::from(span) {
        steps -= 1;
    }
    steps
}
