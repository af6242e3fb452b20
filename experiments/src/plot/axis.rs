//! Axes: what stands along one, and which ticks a reader would choose. Ends come from the data unless they are pinned.

use pleach_scheduler::portable_math::{ln, log10};
use serde::{Deserialize, Serialize};

use crate::evaluate::metric::{show_plain, show_seconds};

/// Durations that people name, for the ticks of a logarithmic axis, seconds.
const NAMED_S: [(f64, &str); 12] = [
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (21_600.0, "6 h"),
    (86_400.0, "1 d"),
    (432_000.0, "5 d"),
    (2_592_000.0, "30 d"),
    (15_552_000.0, "180 d"),
    (86_400_000.0, "1000 d"),
    (864_000_000.0, "10,000 d"),
];
/// Ticks of a logarithmic axis, at most.
const LOG_TICKS_MAX: usize = 8;

/// What the values of an axis are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Numbers.
    #[default]
    Plain,
    /// Parts of 1, shown as percentages.
    Percent,
    /// Seconds, shown in the unit that suits their length.
    Seconds,
    /// Places 0, 1 and so on, each half a step behind its number, with these names.
    Names(Vec<String>),
}

/// One axis of a plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Title with the unit, but for seconds, whose unit follows from their length.
    pub title: String,
    /// What its values are.
    pub unit: Unit,
    /// Whether equal ratios are equal distances.
    pub log: bool,
    /// The low end; none: as the data have it, and 0 where that is not far.
    pub low: Option<f64>,
    /// The high end; none: as the data have it.
    pub high: Option<f64>,
}

impl Axis {
    /// Numbers, linear, as far as the data go.
    #[must_use]
    pub fn of(title: impl Into<String>) -> Axis {
        Axis {
            title: title.into(),
            ..Axis::default()
        }
    }

    /// The same in parts of 1, from 0.
    #[must_use]
    pub fn percent(mut self) -> Axis {
        (self.unit, self.low) = (Unit::Percent, Some(0.0));
        self
    }

    /// The same in seconds.
    #[must_use]
    pub fn seconds(mut self) -> Axis {
        self.unit = Unit::Seconds;
        self
    }

    /// The same with names in place of numbers.
    #[must_use]
    pub fn names(mut self, names: Vec<String>) -> Axis {
        (self.low, self.high) = (Some(0.0), Some(names.len() as f64));
        self.unit = Unit::Names(names);
        self
    }

    /// The same, logarithmic.
    #[must_use]
    pub fn log(mut self) -> Axis {
        self.log = true;
        self
    }

    /// The same between these ends.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Axis {
        (self.low, self.high) = (Some(low), Some(high));
        self
    }

    /// The same from 0 on.
    #[must_use]
    pub fn from_zero(mut self) -> Axis {
        self.low = Some(0.0);
        self
    }

    /// A linear axis between these ends.
    #[must_use]
    pub fn linear(title: &str, low: f64, high: f64) -> Axis {
        Axis::of(title).within(low, high)
    }

    /// An axis of simulated time from 0 on, s.
    #[must_use]
    pub fn time(title: &str, high_s: f64) -> Axis {
        Axis::of(title).seconds().within(0.0, high_s)
    }

    /// A value for people.
    #[must_use]
    pub(crate) fn show(&self, value: f64) -> String {
        match &self.unit {
            Unit::Percent => format!("{:.1} %", 100.0 * value),
            Unit::Seconds => show_seconds(value),
            Unit::Plain => show_plain(value),
            Unit::Names(names) => names.get(value as usize).cloned().unwrap_or_default(),
        }
    }

    /// Where values lie between the least and the largest of them, 0 to 1.
    #[must_use]
    pub(crate) fn places(&self, values: &[f64]) -> Vec<f64> {
        let (least, most) = ends(values.iter().copied());
        let scale = self.clone().within(least, most).scale(std::iter::empty());
        values.iter().map(|value| scale.place(*value)).collect()
    }

    /// The axis with ends and ticks for these values.
    #[must_use]
    pub(super) fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        let usable = values.filter(|value| value.is_finite() && (!self.log || *value > 0.0));
        let (least, most) = ends(usable);
        let near_zero = !self.log && least > 0.0 && least < 0.5 * most;
        let low = self.low.unwrap_or(if near_zero { 0.0 } else { least });
        let high = self.high.unwrap_or(most);
        match &self.unit {
            _ if self.log => self.logarithmic(low, high),
            Unit::Names(names) => {
                let ticks = names.iter().enumerate();
                let ticks = ticks.map(|(place, name)| (place as f64 + 0.5, name.clone()));
                Scale::new(&self.title, (low, high), ticks.collect())
            }
            Unit::Seconds => self.clock(low, high),
            Unit::Plain | Unit::Percent => self.stepped(low, high),
        }
    }

    /// Equal steps of 1, 2 or 5 times a power of ten; ends that are not pinned are widened to whole steps.
    fn stepped(&self, low: f64, high: f64) -> Scale {
        let (low, high) = sane(low, high);
        let step = nice_step((high - low) / 5.0);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let ends = (
            self.low.map_or(first * step, |_| low),
            self.high.map_or(last * step, |_| high),
        );
        let percent = self.unit == Unit::Percent;
        let factor = if percent { 100.0 } else { 1.0 };
        let decimals = (-log10(factor * step * 1.000_001).floor()).clamp(0.0, 9.0) as usize;
        let is_large = first.abs().max(last.abs()) * step >= 1e4;
        let label = |value: f64| match percent {
            true => format!("{:.decimals$} %", factor * value),
            false if is_large => show_large(value),
            false => format!("{value:.decimals$}"),
        };
        let ticks = (0..=((last - first) as usize).min(20)).map(|place| (first + place as f64) * step);
        let inside = ticks.filter(|tick| (ends.0 - 1e-9 * step..=ends.1 + 1e-9 * step).contains(tick));
        Scale::new(
            &self.title,
            ends,
            inside.map(|tick| (tick, label(tick))).collect(),
        )
    }

    /// Seconds in the unit that suits the longest; the ends are those of the data, for time has no reason to be round.
    fn clock(&self, low: f64, high: f64) -> Scale {
        let (low, high) = sane(low, high);
        let (unit_s, unit) = match high {
            s if s > 3.0 * 86_400.0 => (86_400.0, "days"),
            s if s > 3.0 * 3600.0 => (3600.0, "hours"),
            s if s > 300.0 => (60.0, "minutes"),
            _ => (1.0, "seconds"),
        };
        let (title, ends) = (format!("{} ({unit})", self.title), (low / unit_s, high / unit_s));
        let inner = Axis::linear(&title, ends.0, ends.1).stepped(ends.0, ends.1);
        let ticks = inner
            .ticks
            .into_iter()
            .map(|(tick, label)| (tick * unit_s, label));
        Scale::new(&title, (low, high), ticks.collect())
    }

    fn logarithmic(&self, low: f64, high: f64) -> Scale {
        let low = if low.is_finite() {
            low.clamp(1e-12, 1e15)
        } else {
            1.0
        };
        let high = if high.is_finite() {
            high.clamp(low, 1e18)
        } else {
            low
        };
        // Room about the data, and an extent where they have none.
        let room = match high / low {
            ratio if ratio < 1.02 => 1.05,
            ratio if self.low.is_some() || ratio > 20.0 => 1.0,
            _ => 1.02,
        };
        let (low, high) = (low / room, high * room);
        let (seconds, ratio) = (self.unit == Unit::Seconds, high / low);
        let mut ticks: Vec<(f64, String)> = if seconds && high > 10.0 {
            NAMED_S
                .iter()
                .map(|(at_s, name)| (*at_s, (*name).to_string()))
                .collect()
        } else if ratio < 5.0 && !seconds {
            Axis::linear("", low, high).stepped(low, high).ticks
        } else {
            let digits: &[f64] = if ratio < 1e3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let powers = (log10(low).floor() as i32 - 1)..=(log10(high).ceil() as i32);
            let marks = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
            marks
                .map(|mark| (mark, if seconds { short_seconds(mark) } else { short(mark) }))
                .collect()
        };
        ticks.retain(|tick| (low * 0.999..=high * 1.001).contains(&tick.0));
        let every = ticks.len().div_ceil(LOG_TICKS_MAX).max(1);
        ticks = ticks.into_iter().step_by(every).collect();
        if ticks.len() < 2 {
            ticks = [low, high].map(|end| (end, self.show(end))).to_vec();
        }
        Scale {
            log: true,
            ..Scale::new(&self.title, (low, high), ticks)
        }
    }
}

/// The least and the largest; infinite the wrong way round where there is none.
pub(crate) fn ends(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    values
        .into_iter()
        .fold(none, |(least, most), value| (least.min(value), most.max(value)))
}

/// An axis with its ends and ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) title: String,
    /// Values with their labels.
    pub(super) ticks: Vec<(f64, String)>,
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    pub(super) fn new(title: &str, (low, high): (f64, f64), ticks: Vec<(f64, String)>) -> Scale {
        Scale {
            title: title.to_string(),
            ticks,
            low,
            high,
            log: false,
        }
    }

    /// Where `value` lies, 0 at the low end and 1 at the high end; values outside are put at the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let part = if self.log {
            ln(value.max(self.low) / self.low) / ln(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) }
    }
}

/// Ends that are finite and apart.
fn sane(low: f64, high: f64) -> (f64, f64) {
    let low = if low.is_finite() { low } else { 0.0 };
    let high = if high.is_finite() { high } else { 1.0 };
    let width = (low.abs() * 1e-6).max(1e-9);
    match high - low {
        apart if apart > width => (low, high),
        _ if low == 0.0 => (0.0, 1.0),
        // About the one value.
        _ => (low - 0.1 * low.abs(), low + 0.1 * low.abs()),
    }
}

fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powi(log10(rough).floor() as i32);
    let digit = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|digit| digit * power >= rough * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

/// `20 ms`, `5 s`.
fn short_seconds(s: f64) -> String {
    if s < 0.999 {
        format!("{:.0} ms", 1e3 * s)
    } else {
        format!("{s:.0} s")
    }
}

/// `0.05`, `20`, `1e-6`, `50 k`.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e4 => show_large(value),
        value if value < 1e-4 => format!("{value:.0e}"),
        value => {
            let text = format!("{value:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    }
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

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let scale = axis.scale(values.iter().copied());
        scale.ticks.into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_hold_the_data() {
        let axis = Axis::of("x");
        assert_eq!(
            labels(&axis, &[0.1, 0.97]),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        let scale = axis.scale([0.1, 0.97].into_iter());
        assert_eq!(
            (scale.place(0.0), scale.place(1.0), scale.place(7.0)),
            (0.0, 1.0, 1.0)
        );
        assert_eq!(labels(&axis, &[0.0, 4e6]), ["0", "1 M", "2 M", "3 M", "4 M"]);
        assert_eq!(
            labels(&axis.clone().percent(), &[0.4]),
            ["0 %", "10 %", "20 %", "30 %", "40 %"]
        );
        // Values that are close are not pressed to the upper edge.
        assert_eq!(labels(&axis, &[0.95, 0.97])[0], "0.950");
    }

    #[test]
    fn times_choose_their_unit() {
        let axis = Axis::of("time").seconds();
        let scale = axis.scale([0.0, 5.0 * 86_400.0].into_iter());
        assert_eq!(scale.title, "time (days)");
        assert_eq!(
            labels(&axis, &[0.0, 5.0 * 86_400.0]),
            ["0", "1", "2", "3", "4", "5"]
        );
        assert!((scale.place(86_400.0) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn logarithmic_axes_put_equal_ratios_at_equal_distances() {
        let axis = Axis::of("JCT").seconds().log();
        let named = ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d"];
        assert_eq!(labels(&axis, &[1.0, 86_400.0]), named);
        assert_eq!(
            labels(&axis, &[0.01, 0.12]),
            ["10 ms", "20 ms", "50 ms", "100 ms"]
        );
        let scale = axis.scale([1.0, 86_400.0].into_iter());
        let gap = scale.place(600.0) - scale.place(60.0);
        assert!((scale.place(100.0) - scale.place(10.0) - gap).abs() < 1e-12);
        let ratio = Axis::of("r").log();
        assert_eq!(
            labels(&ratio, &[0.7, 1.2]),
            ["0.7", "0.8", "0.9", "1.0", "1.1", "1.2"]
        );
        assert!(
            labels(&ratio, &[1.0, 1.0]).len() > 2,
            "equal policies have ticks beside 1"
        );
        assert_eq!(labels(&ratio, &[1e-4, 1e-1]), ["0.0001", "0.001", "0.01", "0.1"]);
        assert!(labels(&ratio, &[1e-9, 1e12]).len() <= LOG_TICKS_MAX);
    }

    #[test]
    fn data_without_extent_or_meaning_still_give_an_axis() {
        for axis in [
            Axis::of("x"),
            Axis::of("x").log(),
            Axis::time("t", 0.0),
            Axis::of("t").seconds().log(),
        ] {
            for values in [&[3.0, 3.0][..], &[f64::NAN, f64::INFINITY], &[0.0], &[-1.0], &[]] {
                let scale = axis.scale(values.iter().copied());
                assert!(
                    !scale.ticks.is_empty() && scale.ticks.len() < 30,
                    "{axis:?} {values:?}"
                );
                assert!(scale.place(3.0).is_finite() && scale.place(f64::NAN).is_finite());
                assert_eq!(scale.place(f64::INFINITY), 1.0);
            }
        }
    }
}
