//! One published figure beside ours.
//!
//! A target has two sides, so that a figure that is far off on the better side is a miss too. One side is enough only where what
//! was published is a bound itself, and then its words stand with it.

use serde::Serialize;

use pleach_experiments::evaluate::stats::{bootstrap_mean, mean};

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// What was published, and how close is close enough; stated before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A value, and the part of it by which ours may differ.
    Within {
        /// Published.
        value: f64,
        /// Relative tolerance, 0.15 = 15 %.
        part: f64,
    },
    /// From one value to another.
    Between {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// What was published is itself a lower bound, in the words of the claim.
    ClaimedAtLeast {
        /// Published.
        value: f64,
        /// What was claimed.
        claim: &'static str,
    },
    /// A claim that is true or false, from seed to seed: it is to be true in most.
    MostSeeds,
    /// Published nowhere, or not comparable: ours is shown for the record.
    Record,
}

impl Target {
    /// Whether a value meets it; none where there is nothing to meet.
    #[must_use]
    pub(crate) fn is_met_by(self, ours: f64) -> Option<bool> {
        match self {
            Target::Within { value, part } => Some((ours - value).abs() <= part * value.abs()),
            Target::Between { low, high } => Some((low..=high).contains(&ours)),
            Target::ClaimedAtLeast { value, .. } => Some(ours >= value),
            Target::MostSeeds => Some(ours > 0.5),
            Target::Record => None,
        }
    }

    /// In words: the published value and the tolerance.
    #[must_use]
    pub fn words(self) -> (String, String) {
        match self {
            Target::Within { value, part } => (show(value), format!("±{} %", show(100.0 * part))),
            Target::Between { low, high } => {
                (format!("{} to {}", show(low), show(high)), "in the range".into())
            }
            Target::ClaimedAtLeast { value, claim } => {
                (format!("\"{claim}\""), format!("at least {}", show(value)))
            }
            Target::MostSeeds => ("claimed".into(), "in most seeds".into()),
            Target::Record => ("-".into(), "for the record".into()),
        }
    }
}

/// A figure over seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What is measured, with its unit.
    pub what: String,
    /// What was published.
    pub target: Target,
    /// Mean of ours.
    pub ours: f64,
    /// 95 % bootstrap interval of the mean; none with one seed or without any.
    pub interval: Option<(f64, f64)>,
    /// Number of seeds; 0 where nothing is drawn.
    pub num_seeds: usize,
    /// Whether the mean meets the target; none where there is nothing to meet.
    pub holds: Option<bool>,
}

impl Figure {
    /// A figure from one value for each seed.
    #[must_use]
    pub fn of(what: impl Into<String>, values: &[f64], target: Target) -> Figure {
        let ours = mean(values);
        Figure {
            what: what.into(),
            target,
            ours,
            interval: bootstrap_mean(values, LEVEL),
            num_seeds: values.len(),
            holds: target.is_met_by(ours),
        }
    }

    /// A figure of which nothing is drawn, so that every seed gives it.
    #[must_use]
    pub fn exact(what: impl Into<String>, value: f64, target: Target) -> Figure {
        Figure {
            num_seeds: 0,
            ..Figure::of(what, &[value], target)
        }
    }

    /// A claim that is true or false, such as an order; ours is the part of the seeds in which it is true.
    #[must_use]
    pub fn claim(what: impl Into<String>, is_true: &[bool]) -> Figure {
        let values: Vec<f64> = is_true
            .iter()
            .map(|is_true| f64::from(u8::from(*is_true)))
            .collect();
        Figure::of(what, &values, Target::MostSeeds)
    }

    /// A row of the table: what, published, ours, interval, tolerance, verdict.
    #[must_use]
    pub fn row(&self) -> Vec<String> {
        let (published, tolerance) = self.target.words();
        let interval = match self.interval {
            None if self.num_seeds == 0 => "nothing is drawn".into(),
            None => "one seed".into(),
            Some((low, high)) if show(low) == show(high) => "alike in all seeds".into(),
            Some((low, high)) => format!("[{}, {}]", show(low), show(high)),
        };
        let verdict = match self.holds {
            Some(true) => "holds",
            Some(false) => "missed",
            None => "",
        };
        [
            self.what.clone(),
            published,
            show(self.ours),
            interval,
            tolerance,
            verdict.into(),
        ]
        .to_vec()
    }
}

/// Three digits or so.
#[must_use]
pub fn show(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size >= 100.0 || value == 0.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_holds_where_its_mean_meets_the_target() {
        let within = Target::Within {
            value: 2.0,
            part: 0.1,
        };
        assert_eq!(Figure::of("x", &[1.9, 2.3], within).holds, Some(true));
        assert_eq!(Figure::of("x", &[2.3, 2.3], within).holds, Some(false));
        assert_eq!(Target::Between { low: 1.0, high: 2.0 }.is_met_by(2.0), Some(true));
        let claim = "is worse";
        assert_eq!(
            Target::ClaimedAtLeast { value: 1.0, claim }.is_met_by(0.9),
            Some(false)
        );
        assert_eq!(Target::Record.is_met_by(0.9), None);
        let figure = Figure::claim("order", &[true, true, false]);
        assert_eq!((show(figure.ours), figure.holds), ("0.67".into(), Some(true)));
        assert!(figure.interval.is_some());
        assert_eq!(Figure::claim("order", &[true, false]).holds, Some(false));
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 1.0, 0.012_34, 1.234, 12.34, 123.4, -2.5].map(show);
        assert_eq!(shown, ["0", "1", "0.0123", "1.23", "12.3", "123", "-2.5"]);
    }
}
