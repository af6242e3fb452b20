//! Axes: where a value goes, and which ticks a reader would choose.

use crate::evaluate::metric::{show_plain, show_seconds};
use pleach_scheduler::portable_math::{ln, log10};

/// Durations that people name, for the ticks of a time axis, seconds.
const NAMED_S: [(f64, &str); 17] = [
    (0.01, "0.01 s"),
    (0.1, "0.1 s"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (6.0 * 3600.0, "6 h"),
    (86_400.0, "1 d"),
    (5.0 * 86_400.0, "5 d"),
    (30.0 * 86_400.0, "30 d"),
    (180.0 * 86_400.0, "180 d"),
    (1e3 * 86_400.0, "1000 d"),
    (1e4 * 86_400.0, "10^4 d"),
    (1e5 * 86_400.0, "10^5 d"),
    (1e6 * 86_400.0, "10^6 d"),
    (1e7 * 86_400.0, "10^7 d"),
];

/// One axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Title with the unit.
    pub title: String,
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// From `low` to `high` in equal steps of 1, 2 or 5 times a power of ten; widened to whole steps.
    #[must_use]
    pub fn linear(title: &str, low: f64, high: f64) -> Axis {
        let (low, high) = sane(low, high);
        let step = nice_step((high - low) / 6.0);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let count = ((last - first) as usize).min(20);
        let decimals = (-log10(step).floor()).clamp(0.0, 9.0) as usize;
        let largest = (first * step).abs().max((last * step).abs());
        let label = |value: f64| {
            if largest >= 1e4 {
                show_large(value)
            } else {
                format!("{value:.decimals$}")
            }
        };
        let ticks = (0..=count)
            .map(|i| (first + i as f64) * step)
            .map(|value| (value, label(value)))
            .collect();
        Axis {
            title: title.to_string(),
            ticks,
            low: first * step,
            high: last * step,
            log: false,
        }
    }

    /// A fixed linear axis with these ticks.
    #[must_use]
    pub fn fixed(title: &str, low: f64, high: f64, ticks: Vec<(f64, String)>) -> Axis {
        let (low, high) = sane(low, high);
        Axis {
            title: title.to_string(),
            ticks,
            low,
            high,
            log: false,
        }
    }

    /// A linear axis of simulated time in seconds, labelled in the unit that suits its length.
    #[must_use]
    pub fn time(title: &str, high_s: f64) -> Axis {
        let (_, high_s) = sane(0.0, high_s);
        let (unit_s, unit) = match high_s {
            s if s > 3.0 * 86_400.0 => (86_400.0, "days"),
            s if s > 3.0 * 3600.0 => (3600.0, "hours"),
            s if s > 300.0 => (60.0, "minutes"),
            _ => (1.0, "seconds"),
        };
        let mut axis = Axis::linear(&format!("{title} ({unit})"), 0.0, high_s / unit_s);
        for tick in &mut axis.ticks {
            tick.0 *= unit_s;
        }
        // Ends at the data and not at the next round number: time has no reason to be round.
        axis.ticks.retain(|tick| tick.0 <= high_s);
        Axis {
            low: 0.0,
            high: high_s,
            ..axis
        }
    }

    /// A logarithmic axis of durations in seconds with ticks that have names.
    #[must_use]
    pub(crate) fn log_time(title: &str, low_s: f64, high_s: f64) -> Axis {
        let low = low_s.clamp(1e-3, 1e11);
        let high = high_s.clamp(low * 2.0, 1e12);
        let inside = |tick: &&(f64, &str)| (low * 0.999..=high * 1.001).contains(&tick.0);
        let mut ticks: Vec<_> = NAMED_S
            .iter()
            .filter(inside)
            .map(|&(s, name)| (s, name.to_string()))
            .collect();
        if high <= 10.0 {
            let marks = (-3..=1).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
            let marks = marks.filter(|s| (low * 0.999..=high * 1.001).contains(s));
            ticks = marks.map(|s| (s, short_seconds(s))).collect();
        }
        if ticks.len() < 2 {
            ticks = vec![(low, show_seconds(low)), (high, show_seconds(high))];
        }
        Axis {
            title: title.to_string(),
            ticks,
            low,
            high,
            log: true,
        }
    }

    /// A logarithmic axis of ratios around 1.
    #[must_use]
    pub fn log_ratio(title: &str, low: f64, high: f64) -> Axis {
        let low = low.clamp(1e-6, 0.95);
        let high = high.clamp(1.05, 1e6);
        let marks = (-6..=6).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        let close = [0.8, 0.9, 1.1, 1.25, 1.5]
            .into_iter()
            .filter(|_| high / low < 4.0);
        let inside = |tick: &f64| (low..=high).contains(tick);
        let mut ticks: Vec<f64> = marks.chain(close).filter(inside).collect();
        ticks.sort_by(f64::total_cmp);
        let short = |value: f64| {
            format!("{value:.6}")
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_string()
        };
        let ticks = ticks.into_iter().map(|value| (value, short(value))).collect();
        Axis {
            title: title.to_string(),
            ticks,
            low,
            high,
            log: true,
        }
    }

    /// Where `value` lies, 0 at the low end and 1 at the high end; values outside are put at the end.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let part = if self.log {
            ln(value.max(self.low) / self.low) / ln(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if part.is_finite() {
            part.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

/// Ends that are finite and apart.
fn sane(low: f64, high: f64) -> (f64, f64) {
    let low = if low.is_finite() { low } else { 0.0 };
    let high = if high.is_finite() { high } else { 1.0 };
    let width = (low.abs() * 1e-6).max(1e-9);
    if high - low > width {
        (low, high)
    } else {
        (low, low + if low == 0.0 { 1.0 } else { low.abs() })
    }
}

/// `20 ms`, `5 s`.
fn short_seconds(s: f64) -> String {
    if s < 0.999 {
        format!("{:.0} ms", 1e3 * s)
    } else {
        format!("{s:.0} s")
    }
}

fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powi(log10(rough).floor() as i32);
    let digit = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|digit| digit * power >= rough * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

/// `250 k`, `1.5 M`, `2 G`; beyond that with an exponent.
fn show_large(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        size if size < 1e3 => show_plain(value),
        size if size < 1e6 => format!("{} k", value / 1e3),
        size if size < 1e9 => format!("{} M", value / 1e6),
        size if size < 1e12 => format!("{} G", value / 1e9),
        _ => show_plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_hold_the_data() {
        let axis = Axis::linear("x", 0.0, 0.97);
        assert_eq!(labels(&axis), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            (axis.place(0.0), axis.place(1.0), axis.place(7.0)),
            (0.0, 1.0, 1.0)
        );
        assert_eq!(
            labels(&Axis::linear("x", 0.0, 4e6)),
            ["0", "1 M", "2 M", "3 M", "4 M"]
        );
    }

    #[test]
    fn time_axes_choose_their_unit() {
        let axis = Axis::time("time", 5.0 * 86_400.0);
        assert_eq!(axis.title, "time (days)");
        assert_eq!(labels(&axis), ["0", "1", "2", "3", "4", "5"]);
        assert!((axis.place(86_400.0) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn log_axes_put_equal_ratios_at_equal_distances() {
        let axis = Axis::log_time("JCT", 1.0, 86_400.0);
        assert_eq!(
            labels(&axis),
            ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d"]
        );
        let short = Axis::log_time("TPOT", 0.01, 0.12);
        assert_eq!(labels(&short), ["10 ms", "20 ms", "50 ms", "100 ms"]);
        let gap = axis.place(600.0) - axis.place(60.0);
        assert!((axis.place(100.0) - axis.place(10.0) - gap).abs() < 1e-12);
        assert_eq!(
            labels(&Axis::log_ratio("r", 0.7, 1.2)),
            ["0.8", "0.9", "1", "1.1"]
        );
    }

    #[test]
    fn data_without_extent_or_meaning_still_gives_an_axis() {
        for axis in [
            Axis::linear("x", 3.0, 3.0),
            Axis::linear("x", f64::NAN, f64::INFINITY),
            Axis::time("t", 0.0),
            Axis::log_time("t", 0.0, 0.0),
            Axis::log_ratio("r", 1.0, 1.0),
        ] {
            assert!(!axis.ticks.is_empty() && axis.ticks.len() < 30);
            assert!(axis.place(3.0).is_finite() && axis.place(f64::NAN).is_finite());
        }
    }
}
