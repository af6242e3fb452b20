//! How the tables of an inspection write numbers, and what their headers share.

use crate::evaluate::metric::{show_plain, show_seconds};
use crate::evaluate::table::Table;
use crate::workload_report::spread::{PERCENTS, Summary};

/// Rows of a table of tenants, at most; the JSON has all.
pub(super) const TENANTS_MAX: usize = 20;
/// Weights of a sparkline, lightest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// `4.5 %` without the sign: the header has it.
pub(super) fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".into(), |part| format!("{:.1}", 100.0 * part))
}

pub(super) fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), show_seconds)
}

pub(super) fn plain(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), show_plain)
}

/// `1,234,567`.
pub(super) fn count(value: usize) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn gpu_hours(gpu_s: f64) -> String {
    if gpu_s < 3.6e4 {
        format!("{} GPU·h", show_plain(gpu_s / 3600.0))
    } else if gpu_s < 3.6e10 {
        format!("{} GPU·h", count((gpu_s / 3600.0).round() as usize))
    } else {
        format!("{:.3e} GPU·h", gpu_s / 3600.0)
    }
}

pub(super) fn header(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_string()).collect()
}

pub(super) fn key_values(rows: Vec<(&str, String)>) -> Table {
    Table {
        header: header(&["figure", "value"]),
        rows: rows
            .into_iter()
            .map(|(key, value)| vec![key.to_string(), value])
            .collect(),
        notes: Vec::new(),
    }
}

/// One character for each value; the tallest stands for the largest.
pub(super) fn sparkline(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: f64| {
        let part = if most > 0.0 { value / most } else { 0.0 };
        BARS[((part * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    values.iter().map(|value| bar(*value)).collect()
}

pub(super) fn quantile_header(first: &str, before: &[&str], after: &[&str]) -> Vec<String> {
    let mut words = header(&[first]);
    words.extend(header(before));
    words.extend(PERCENTS.iter().map(|percent| format!("p{percent}")));
    words.extend(header(after));
    words
}

pub(super) fn quantile_cells(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    summary.quantiles.iter().map(|value| seconds(*value))
}

/// `3-4`, or `1`: what a class up to a power of two holds.
pub(super) fn class_label(most: u32) -> String {
    match most / 2 + 1 {
        least if least == most => most.to_string(),
        least => format!("{least}-{most}"),
    }
}

/// A note on rows that were left out.
pub(super) fn and_more(num_all: usize, what: &str) -> Vec<String> {
    let more = num_all.saturating_sub(TENANTS_MAX);
    (more > 0)
        .then(|| format!("and {} more {what}, in the JSON", count(more)))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas_and_sparklines_one_bar_a_value() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(sparkline(&[0.0, 1.0, 8.0]), "▁▁█");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(
            (gpu_hours(72.0), gpu_hours(7.2e6)),
            ("0.02 GPU·h".into(), "2,000 GPU·h".into())
        );
    }
}
