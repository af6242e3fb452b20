//! How many replicas a service wants: rules by name, with settings after colons: `reactive:target=1.2:down=180`.
//!
//! Rules count in *replicas' worth*: the rate of requests that a replica serves within the targets, measured once by
//! [`capacity_per_s`]. A target above 1 asks more of a replica than that, one below keeps some in reserve.

use pleach_scheduler::ConfigError;
use pleach_scheduler::heuristics::Info;
use pleach_workloads::Seed;

use crate::llm::fleet::Fleet;
use crate::llm::generate::RequestGenerator;
use crate::llm::request::Request;
use crate::llm::router::by_name;
use crate::llm::service::Load;
use crate::llm::simulate::simulate;
use crate::settings::{Settings, rule};

/// Time in which a backlog is to be worked off beside what comes, s. *Assumed.*
const BACKLOG_S: f64 = 30.0;
/// What the next rate weighs in the moving average. *Assumed.*
const RATE_WEIGHT: f64 = 0.5;

/// Of all rules here.
const FAMILY: &str = "autoscaler";
/// The rules, and what each knows.
pub const AUTOSCALERS: &[Info] = &[
    rule(FAMILY, "static", "nothing", "always `replicas`: a split", "plain"),
    rule(
        FAMILY,
        "reactive",
        "rate, backlog",
        "moving average of the rate and the backlog over what replicas serve; down by one after `down` s",
        "as Kubernetes' HorizontalPodAutoscaler with a stabilisation window",
    ),
    rule(
        FAMILY,
        "forecast",
        "rate, backlog",
        "the same for the larger of the average and a linear trend `ahead` s on",
        "Holt, 1957",
    ),
    rule(
        FAMILY,
        "lyra",
        "rate, backlog, GPUs of a node",
        "as reactive in whole nodes, so that what is lent to training are idle servers",
        "after Lyra, EuroSys'23; when servers are asked back is assumed",
    ),
    rule(
        FAMILY,
        "oracle",
        "all requests of the next `ahead` s",
        "their rate over what replicas serve: a bound",
        "ours",
    ),
];

/// What an autoscaler may know.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Now, s.
    pub now_s: f64,
    /// Requests and replicas.
    pub load: Load,
    /// Most replicas that may be.
    pub most: usize,
    /// GPUs of a node.
    pub node_gpus: usize,
    /// Requests that are still to come. For bounds alone.
    pub to_come: &'a [Request],
}

impl Demand<'_> {
    /// Replicas that take requests or will.
    #[must_use]
    pub fn up(&self) -> usize {
        self.load.open + self.load.loading
    }

    /// Requests that come within a span, over it. For bounds alone.
    fn coming_per_s(&self, span_s: f64) -> f64 {
        let end_s = self.now_s + span_s;
        self.to_come.partition_point(|request| request.arrival_s < end_s) as f64 / span_s
    }
}

/// Says how many replicas there should be.
pub trait Autoscaler: Send {
    /// Time between two questions, s; none: it is asked once, at the beginning.
    fn period_s(&self) -> Option<f64>;

    /// The number, which may be above the most that may be.
    ///
    /// # Errors
    /// A policy that cannot decide.
    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, ConfigError>;
}

/// The rate of requests that a replica serves within the targets, 1/s: the largest at which 99 % of 4,000 requests are, whose
/// lengths are those of a list to come and whose arrivals are a Poisson process; by bisection.
///
/// # Errors
/// A fleet out of range, lengths that do not fit.
pub fn capacity_per_s(fleet: &Fleet, lengths: &RequestGenerator) -> Result<f64, ConfigError> {
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
pub fn autoscaler(text: &str, capacity_per_s: f64) -> Result<Box<dyn Autoscaler>, ConfigError> {
    let mut settings = Settings::of("autoscaler", text, AUTOSCALERS)?;
    if settings.name == "static" {
        let replicas = settings.number("replicas", 0.0..=4_096.0)?.unwrap_or(8.0);
        settings.end()?;
        return Ok(Box::new(Static(replicas as usize)));
    }
    let mut rule = Reactive {
        sight: Sight::Past,
        served_per_s: capacity_per_s * settings.number("target", 0.01..=100.0)?.unwrap_or(1.2),
        period_s: settings.number("period", 0.1..=86_400.0)?.unwrap_or(15.0),
        down_s: settings.number("down", 0.0..=86_400.0)?.unwrap_or(180.0),
        by_node: settings.name == "lyra",
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
        "oracle" => {
            let ahead_s = settings.number("ahead", 0.1..=86_400.0)?.unwrap_or(75.0);
            rule.sight = Sight::Future { ahead_s };
        }
        _ => {}
    }
    settings.end()?;
    Ok(Box::new(rule))
}

struct Static(usize);

impl Autoscaler for Static {
    fn period_s(&self) -> Option<f64> {
        None
    }

    fn want(&mut self, _demand: &Demand<'_>) -> Result<usize, ConfigError> {
        Ok(self.0)
    }
}

/// What of time a rule sees.
#[derive(Clone, Copy, Debug)]
enum Sight {
    Past,
    /// Rates are believed to go on in a line.
    Trend {
        ahead_s: f64,
        weight: f64,
    },
    Future {
        ahead_s: f64,
    },
}

struct Reactive {
    sight: Sight,
    /// What a replica is to serve, 1/s.
    served_per_s: f64,
    period_s: f64,
    down_s: f64,
    by_node: bool,
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
    /// The rate to be served, 1/s; none at the very beginning, when nothing has been seen.
    fn rate(&mut self, demand: &Demand<'_>) -> Option<f64> {
        let seen = (demand.load.arrived - self.arrived) as f64 / self.period_s;
        self.arrived = demand.load.arrived;
        let backlog = demand.load.waiting as f64 / BACKLOG_S;
        if let Sight::Future { ahead_s } = self.sight {
            return Some(demand.coming_per_s(ahead_s));
        }
        if demand.now_s == 0.0 {
            return None;
        }
        let before = self.rate.unwrap_or(seen);
        let Sight::Trend { ahead_s, weight } = self.sight else {
            let rate = before + RATE_WEIGHT * (seen - before);
            self.rate = Some(rate);
            return Some(rate + backlog);
        };
        let rate = RATE_WEIGHT * seen + (1.0 - RATE_WEIGHT) * (before + self.trend);
        self.trend += weight * (rate - before - self.trend);
        self.rate = Some(rate);
        let forecast = rate + self.trend * ahead_s / self.period_s;
        Some(forecast.max(rate) + backlog)
    }
}

impl Autoscaler for Reactive {
    fn period_s(&self) -> Option<f64> {
        Some(self.period_s)
    }

    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, ConfigError> {
        let up = demand.up();
        // Nothing has been seen yet: a third, which is loaded before the beginning.
        let Some(rate) = self.rate(demand) else {
            return Ok(demand.most.div_ceil(3));
        };
        let unit = if self.by_node { demand.node_gpus } else { 1 };
        let wanted = (rate / self.served_per_s).ceil().clamp(1.0, demand.most as f64) as usize;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::outcome::Targets;
    use crate::llm::step_time::Pace;

    /// At a time so many have come, so many replicas are up, out of 16.
    fn demand(now_s: f64, arrived: u64, up: usize) -> Demand<'static> {
        Demand {
            now_s,
            load: Load {
                arrived,
                open: up,
                ..Load::default()
            },
            most: 16,
            node_gpus: 8,
            to_come: &[],
        }
    }

    /// 10 requests a second, of which a replica serves 2 at a target of 1: five; the average is 20 after one period of 30 a second:
    /// ten. Then nobody comes: 10, 5 a second are five and three, but only after 30 s one goes at a time.
    #[test]
    fn reactive_goes_up_at_once_and_down_by_one_after_a_while() {
        let mut rule = autoscaler("reactive:target=1:period=10:down=20", 2.0).unwrap();
        assert_eq!(rule.period_s(), Some(10.0));
        assert_eq!(rule.want(&demand(0.0, 0, 0)).unwrap(), 6);
        let asked = [
            (10.0, 100, 6),
            (20.0, 400, 5),
            (30.0, 400, 10),
            (40.0, 400, 10),
            (50.0, 400, 10),
            (60.0, 400, 9),
        ];
        let wanted = asked.map(|(now_s, arrived, up)| rule.want(&demand(now_s, arrived, up)).unwrap());
        // 10 a second: five would do, from 10 s on. 20 a second: ten. Then 10, 5, 2.5 and 1.25.
        assert_eq!(wanted, [6, 10, 10, 10, 9, 8]);
        let mut whole = autoscaler("lyra:target=1:period=10:down=0", 2.0).unwrap();
        assert_eq!(whole.want(&demand(10.0, 200, 8)).unwrap(), 16);
    }

    #[test]
    fn a_replica_serves_what_its_own_capacity_says_and_not_a_quarter_more() {
        let fleet = Fleet {
            pace: Pace::of("llama-3-8b", "H100").unwrap(),
            num_replicas: 16,
            num_gateways: 1,
            scrape_s: 1.0,
            targets: Targets {
                ttft_s: 1.0,
                tpot_s: 0.05,
            },
            may_refuse: false,
        };
        let capacity = capacity_per_s(&fleet, &RequestGenerator::default()).unwrap();
        let hits = |rate_per_s: f64| {
            let list = RequestGenerator {
                num_requests: 4_000,
                rate_per_s,
                burst: 0.0,
                ..RequestGenerator::default()
            };
            let alone = Fleet {
                num_replicas: 1,
                ..fleet.clone()
            };
            let list = list.draw(Seed(7)).unwrap();
            let outcome = simulate(&list, &alone, by_name("random", 0).unwrap().as_mut()).unwrap();
            outcome.hit_share(fleet.targets)
        };
        assert!((2.0..40.0).contains(&capacity), "{capacity}");
        assert!(
            hits(0.9 * capacity) > 0.97 && hits(1.25 * capacity) < 0.97,
            "{capacity}"
        );
    }

    #[test]
    fn names_and_settings_that_are_not_there_are_refused() {
        for (text, part) in [
            ("keda", "reactive"),
            ("static:target=1", "replicas"),
            ("oracle:ahead=-1", "ahead"),
        ] {
            let Err(error) = autoscaler(text, 1.0) else {
                panic!("{text} is taken");
            };
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
