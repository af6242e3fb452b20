//! How many replicas a service wants: rules by name, with settings after colons: `reactive:target=1.2:down=180`.
//!
//! Rules count in *replicas' worth*: the rate of requests that a replica serves within the targets, measured once by
//! [`capacity_per_s`]. A target above 1 asks more of a replica than that, one below keeps some in reserve. What is learned scores
//! changes of the number by the columns of [`AUTOSCALING`].

mod columns;
mod demand;
mod reactive;
mod scored;
#[cfg(test)]
mod tests;

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;
use pleach_workloads::Seed;

use crate::llm::fleet::Fleet;
use crate::llm::generate::RequestGenerator;
use crate::llm::router::by_name;
use crate::llm::simulate::simulate;
use crate::settings::{Settings, rule};
use reactive::Reactive;

pub use columns::{AUTOSCALING, AUTOSCALING_1};
pub use demand::{Autoscaler, Beside, Demand, Yield};
pub use scored::{Changes, ScorerAutoscaler};

/// Of all rules here.
const FAMILY: &str = "autoscaler";
/// The rules, and what each knows.
#[rustfmt::skip]
pub const AUTOSCALERS: &[Info] = &[
    rule(FAMILY, "static", "nothing", "always `replicas`: a split", "plain"),
    rule(FAMILY, "reactive", "rate, backlog",
        "moving average of the rate and the backlog over what replicas serve; down by one after `down` s",
        "as Kubernetes' HorizontalPodAutoscaler with a stabilisation window"),
    rule(FAMILY, "forecast", "rate, backlog",
        "the same for the larger of the average and a linear trend `ahead` s on", "Holt, 1957"),
    rule(FAMILY, "seasonal", "rate, backlog, usual rates of the hours",
        "the same for a rate that comes back to what is usual at that hour; of its ratio `keep` is left after `ahead` s",
        "ours, after Holt, 1957, and Winters, 1960"),
    rule(FAMILY, "lyra", "rate, backlog, GPUs of a node",
        "as reactive in whole nodes, so that what is lent to training are idle servers",
        "after Lyra, EuroSys'23; when servers are asked back is assumed"),
    rule(FAMILY, "oracle", "all requests of the next `ahead` s", "their rate over what replicas serve: a bound", "ours"),
];

/// The rate of requests that a replica serves within the targets, 1/s: the largest at which 99 % of 4,000 requests are, whose
/// lengths are those of a list to come and whose arrivals are a Poisson process; by bisection.
///
/// # Errors
/// A fleet out of range, lengths that do not fit.
pub fn capacity_per_s(fleet: &Fleet, lengths: &RequestGenerator) -> Result<f64, Problem> {
    let alone = Fleet {
        num_replicas: 1,
        num_gateways: 1,
        may_refuse: false,
        ..fleet.clone()
    };
    let unit = RequestGenerator {
        num_requests: 4_000,
        rate_per_s: 1.0,
        burst: 0.0,
        turns: 1.0,
        is_daily: false,
        span_s: None,
        ..lengths.clone()
    };
    let list = unit.draw(Seed(0).child("capacity", 0))?;
    let (mut low, mut high) = (0.01, 1_000.0);
    while high / low > 1.01 {
        let rate = f64::midpoint(low, high).min(2.0 * low.max(1.0));
        let mut router = by_name("least-requests", 0)?;
        let outcome = simulate(&list.faster(rate)?, &alone, router.as_mut())?;
        if outcome.hit_share(alone.targets) >= 0.99 {
            low = rate;
        } else {
            high = rate;
        }
    }
    Ok(low)
}

/// The rule of a name. `capacity_per_s` is what a replica serves.
///
/// # Errors
/// A name or a setting that is not there, or a value out of range.
pub fn autoscaler(text: &str, capacity_per_s: f64) -> Result<Box<dyn Autoscaler>, Problem> {
    let mut settings = Settings::of("autoscaler", text, AUTOSCALERS)?;
    if settings.name == "static" {
        let replicas = settings.number("replicas", 0.0..=4_096.0)?.unwrap_or(8.0);
        settings.end()?;
        return Ok(Box::new(Static(replicas as usize)));
    }
    let rule = Reactive::of(&mut settings, capacity_per_s)?;
    settings.end()?;
    Ok(Box::new(rule))
}

struct Static(usize);

impl Autoscaler for Static {
    fn period_s(&self) -> Option<f64> {
        None
    }

    fn want(&mut self, _demand: &Demand<'_>) -> Result<usize, Problem> {
        Ok(self.0)
    }
}
