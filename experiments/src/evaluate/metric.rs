//! The numbers that every policy is compared by: key, unit, and which way is better. One table, so that JSON, CSV, the
//! terminal and the report cannot disagree.

use crate::error::Error;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds of simulated time.
    Seconds,
    /// Part of a whole, 0 to 1; shown as a percentage.
    Fraction,
    /// No unit.
    Plain,
    /// How many.
    Count,
    /// A number with so many decimals, whose label says its unit.
    Decimals(u8),
}

/// How two policies are held against each other on the same lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versus {
    /// By the geometric mean of paired ratios.
    Ratio,
    /// By the mean of paired differences, in the metric's own unit.
    Points,
    /// By the mean of paired ratios less 1, %.
    Percent,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// A fact about the run and not a merit.
    Neither,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Key in JSON and header in CSV; the unit is its last part.
    pub key: &'static str,
    /// Header of a table.
    pub label: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// How policies are held against each other by it.
    pub versus: Versus,
    /// Meaning, for docs and reports.
    pub doc: &'static str,
}

/// A metric of a world, shown with so many decimals; its label says its unit.
#[must_use]
pub const fn figure(
    (key, label, decimals): (&'static str, &'static str, u8),
    (better, versus): (Better, Versus),
    doc: &'static str,
) -> Metric {
    Metric {
        key,
        label,
        unit: Unit::Decimals(decimals),
        better,
        versus,
        doc,
    }
}

/// Figures of a play in a world, a row each: key, label, decimals, which way is better, how policies are held against each other, what
/// it is, and its value. Makes the table `METRICS` and `figures_of(world, outcome)`.
#[macro_export]
macro_rules! figures {
    (|$world:ident: &$World:ty, $outcome:ident: &$Outcome:ty| $(
        $key:literal, $label:literal, $decimals:literal, $better:ident, $versus:ident, $doc:literal => $value:expr;
    )*) => {
        /// Figures of a play.
        const METRICS: &[$crate::evaluate::metric::Metric] = &[$($crate::evaluate::metric::figure(
            ($key, $label, $decimals),
            ($crate::evaluate::metric::Better::$better, $crate::evaluate::metric::Versus::$versus),
            $doc,
        )),*];

        /// Their values.
        fn figures_of($world: &$World, $outcome: &$Outcome) -> ::std::vec::Vec<(&'static str, f64)> {
            ::std::vec![$(($key, $value)),*]
        }
    };
}

/// The metric that policies are ranked and paired by.
pub const MAIN_METRIC: &str = "avg_jct_s";
/// The same with its label and unit.
pub(crate) const MAIN: &Metric = &METRICS[0];

macro_rules! metrics {
    ($($key:literal, $label:literal, $unit:ident, $better:ident, $doc:literal;)*) => {
        /// All metrics of jobs, in the order of tables.
        pub const METRICS: &[Metric] = &[$(Metric {
            key: $key,
            label: $label,
            unit: Unit::$unit,
            better: Better::$better,
            versus: Versus::Ratio,
            doc: $doc,
        }),*];
    };
}

metrics! {
    "avg_jct_s", "avg JCT", Seconds, Lower, "mean of finish - submit";
    "avg_jct_gap", "JCT gap", Fraction, Lower, "average JCT over its lower bound, less 1";
    "p50_jct_s", "p50 JCT", Seconds, Lower, "median of finish - submit";
    "p95_jct_s", "p95 JCT", Seconds, Lower, "95th percentile of finish - submit";
    "p99_jct_s", "p99 JCT", Seconds, Lower, "99th percentile of finish - submit";
    "avg_slowdown", "slowdown", Plain, Lower, "mean of JCT / max(isolated time, 10 s)";
    "avg_wait_s", "avg wait", Seconds, Lower, "mean of JCT - time that the job held GPUs";
    "p99_wait_s", "p99 wait", Seconds, Lower, "99th percentile of the same";
    "makespan_s", "makespan", Seconds, Lower, "last finish - first submit";
    "makespan_gap", "makespan gap", Fraction, Lower, "makespan over its lower bound, less 1";
    "utilisation", "util", Fraction, Higher, "held GPU-time / all GPU-time, first submit to last finish";
    "fairness", "fairness", Plain, Higher, "Jain index over tenants' mean slowdown, 1 / tenants to 1";
    "preemptions", "preempt", Count, Neither, "times that a running job was stopped";
    "failures", "failures", Count, Neither, "times that a failure stopped a job";
    "lost_work", "lost work", Fraction, Lower, "part of the work done that failures made void";
    "num_jobs", "jobs", Count, Neither, "jobs that finished";
}

/// A metric of a world by its key; the first where none is named.
///
/// # Errors
/// A key that is not there.
pub fn metric_of(known: &'static [Metric], key: Option<&str>) -> Result<&'static Metric, Error> {
    let Some(key) = key else {
        return Ok(&known[0]);
    };
    known.iter().find(|metric| metric.key == key).ok_or_else(|| {
        let keys: Vec<&str> = known.iter().map(|metric| metric.key).collect();
        let hint = format!("{} is usual.", keys[0]);
        Error::config("metric", key, keys.join(", "), hint)
    })
}

impl Metric {
    /// The metric with this key.
    #[must_use]
    pub fn find(key: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.key == key)
    }

    /// `value` for people.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::Seconds => show_seconds(value),
            Unit::Fraction => format!("{:.1} %", 100.0 * value),
            Unit::Plain => show_plain(value),
            Unit::Count => show_count(value),
            Unit::Decimals(places) if value.is_finite() => format!("{value:.*}", usize::from(places)),
            Unit::Decimals(_) => "-".into(),
        }
    }
}

/// A duration for people, three significant digits at most: `35 s`, `4.2 min`, `1.2 h`, `12 d`.
#[must_use]
pub fn show_seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".to_string();
    }
    let size = seconds.abs();
    if size >= 99.5 * 86_400.0 {
        format!("{:.0} d", seconds / 86_400.0)
    } else if size >= 47.95 * 3600.0 {
        format!("{:.1} d", seconds / 86_400.0)
    } else if size >= 3597.0 {
        format!("{:.1} h", seconds / 3600.0)
    } else if size >= 99.5 {
        format!("{:.1} min", seconds / 60.0)
    } else if size >= 9.95 {
        format!("{seconds:.0} s")
    } else if size == 0.0 {
        "0 s".to_string()
    } else {
        format!("{seconds:.1} s")
    }
}

/// A plain number for people, three significant digits or so.
#[must_use]
pub fn show_plain(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "-".to_string()
    } else if size >= 1e6 || (size > 0.0 && size < 1e-3) {
        format!("{value:.2e}")
    } else if size >= 99.5 {
        format!("{value:.0}")
    } else if size >= 9.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn show_count(value: f64) -> String {
    // A mean over runs need not be whole.
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        show_plain(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_the_unit_that_people_would_choose() {
        let shown: Vec<_> = [0.0, 0.25, 9.96, 35.0, 252.0, 3599.0, 4320.0, 3.0 * 86_400.0, 2e7]
            .into_iter()
            .map(show_seconds)
            .collect();
        assert_eq!(
            shown,
            [
                "0 s", "0.2 s", "10 s", "35 s", "4.2 min", "1.0 h", "1.2 h", "3.0 d", "231 d"
            ]
        );
    }

    #[test]
    fn every_metric_in_seconds_says_so_in_its_key() {
        for metric in METRICS {
            assert_eq!(
                metric.unit == Unit::Seconds,
                metric.key.ends_with("_s"),
                "{}",
                metric.key
            );
        }
        assert!(Metric::find(MAIN_METRIC).is_some());
    }
}
