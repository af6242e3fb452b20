//! Rules that follow the rate: what comes, or is believed to come, over what a replica serves, and something in reserve.
//!
//! # Sources
//! A reserve of so many roots of the load is *square-root staffing* (Halfin and Whitt 1981; Borst, Mandelbaum and Reiman 2004): what
//! varies as a Poisson process varies by its root. Rates that vary by a factor want a reserve in proportion, which `target` keeps.

use pleach_scheduler::Problem;

use super::demand::{Autoscaler, Demand};
use crate::settings::Settings;

/// What of time a rule sees.
#[derive(Clone, Copy, Debug)]
enum Sight {
    Past,
    /// Rates are believed to go on in a line.
    Trend {
        ahead_s: f64,
        weight: f64,
    },
    /// Rates are believed to come back to what is usual at that hour: of the logarithm of their ratio `keep` is left.
    Usual {
        ahead_s: f64,
        keep: f64,
    },
    Future {
        ahead_s: f64,
    },
}

pub(super) struct Reactive {
    sight: Sight,
    /// What a replica is to serve, 1/s.
    served_per_s: f64,
    period_s: f64,
    down_s: f64,
    /// What the next rate weighs in the moving average.
    rate_weight: f64,
    /// Time in which a backlog is to be worked off beside what comes, s.
    backlog_s: f64,
    /// Replicas in reserve, roots of the load.
    spare: f64,
    /// Replicas that come and go at once; none: those of a node.
    unit: Option<usize>,
    /// Requests that had come when it was asked last.
    arrived: u64,
    /// Moving average of the rate, 1/s; none before the first question after the beginning.
    rate: Option<f64>,
    /// Its change in a period, 1/s.
    trend: f64,
    /// Since when fewer would do.
    below_since_s: Option<f64>,
}

impl Reactive {
    /// Takes its settings; what is not given is *assumed*.
    ///
    /// # Errors
    /// A value out of range.
    pub(super) fn of(settings: &mut Settings<'_>, capacity_per_s: f64) -> Result<Reactive, Problem> {
        let unit = match settings.name {
            "lyra" => None,
            _ => Some(settings.number("unit", 1.0..=4_096.0)?.unwrap_or(1.0) as usize),
        };
        let mut rule = Reactive {
            sight: Sight::Past,
            served_per_s: capacity_per_s * settings.number("target", 0.01..=100.0)?.unwrap_or(1.2),
            period_s: settings.number("period", 0.1..=86_400.0)?.unwrap_or(15.0),
            down_s: settings.number("down", 0.0..=86_400.0)?.unwrap_or(180.0),
            rate_weight: settings.number("weight", 0.001..=1.0)?.unwrap_or(0.5),
            backlog_s: settings.number("backlog", 0.1..=86_400.0)?.unwrap_or(30.0),
            spare: settings.number("spare", 0.0..=100.0)?.unwrap_or(0.0),
            unit,
            arrived: 0,
            rate: None,
            trend: 0.0,
            below_since_s: None,
        };
        match settings.name {
            "forecast" => {
                let ahead_s = settings.number("ahead", 0.0..=86_400.0)?.unwrap_or(75.0);
                let weight = settings.number("trend", 0.0..=1.0)?.unwrap_or(0.2);
                rule.sight = Sight::Trend { ahead_s, weight };
            }
            "seasonal" => {
                let ahead_s = settings.number("ahead", 0.0..=86_400.0)?.unwrap_or(75.0);
                let keep = settings.number("keep", 0.0..=1.0)?.unwrap_or(0.7);
                rule.sight = Sight::Usual { ahead_s, keep };
            }
            "oracle" => {
                let ahead_s = settings.number("ahead", 0.1..=86_400.0)?.unwrap_or(75.0);
                rule.sight = Sight::Future { ahead_s };
            }
            _ => {}
        }
        Ok(rule)
    }

    /// The rate to be served, 1/s; none at the very beginning, when nothing has been seen.
    fn rate(&mut self, demand: &Demand<'_>) -> Option<f64> {
        let seen = (demand.load.arrived - self.arrived) as f64 / self.period_s;
        self.arrived = demand.load.arrived;
        let backlog = demand.load.waiting as f64 / self.backlog_s;
        if let Sight::Future { ahead_s } = self.sight {
            return Some(demand.coming_per_s(ahead_s));
        }
        if demand.now_s == 0.0 {
            return None;
        }
        let before = self.rate.unwrap_or(seen);
        let goes_on = match self.sight {
            Sight::Trend { .. } => self.rate_weight * seen + (1.0 - self.rate_weight) * (before + self.trend),
            _ => before + self.rate_weight * (seen - before),
        };
        self.rate = Some(goes_on);
        let forecast = match self.sight {
            Sight::Trend { ahead_s, weight } => {
                self.trend += weight * (goes_on - before - self.trend);
                (goes_on + self.trend * ahead_s / self.period_s).max(goes_on)
            }
            Sight::Usual { ahead_s, keep } => demand.forecast_per_s(goes_on, ahead_s, keep),
            Sight::Past | Sight::Future { .. } => goes_on,
        };
        Some(forecast + backlog)
    }
}

impl Autoscaler for Reactive {
    fn period_s(&self) -> Option<f64> {
        Some(self.period_s)
    }

    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, Problem> {
        let up = demand.up();
        // Nothing has been seen yet: a third, which is loaded before the beginning.
        let Some(rate) = self.rate(demand) else {
            return Ok(demand.at_first());
        };
        let unit = self.unit.unwrap_or(demand.node_replicas);
        let load = rate / self.served_per_s;
        let wanted = (load + self.spare * load.sqrt())
            .ceil()
            .clamp(1.0, demand.most as f64) as usize;
        let wanted = wanted.next_multiple_of(unit).min(demand.most);
        if wanted >= up {
            self.below_since_s = None;
            return Ok(wanted);
        }
        let since_s = *self.below_since_s.get_or_insert(demand.now_s);
        let is_long = demand.now_s - since_s >= self.down_s;
        Ok(if is_long { up - unit.min(up - wanted) } else { up })
    }
}
