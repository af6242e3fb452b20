//! Which request runs next on an accelerator: what a scheduler may know of the requests that wait, and published rules by name.

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;

use pleach_serving::settings::{Settings, rule};

/// A request that waits for its next layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Number in the list.
    pub id: usize,
    /// Number of its model.
    pub model: usize,
    /// The higher the more urgent.
    pub priority: u8,
    /// µs.
    pub arrival_us: u64,
    /// µs.
    pub deadline_us: u64,
    /// When a layer of it last ended, or its arrival, µs.
    pub last_ran_us: u64,
    /// Latency over the mean of each layer that ran. As latency is taken to be proportional to density, this is also the measured
    /// density over the mean one.
    pub ratios: Vec<f32>,
    /// Their mean; 1 before any ran.
    pub gamma: f64,
    /// Mean of what is to come for the model, µs.
    pub model_rest_us: f64,
    /// Mean of what is to come for the model with this pattern, µs.
    pub pattern_rest_us: f64,
    /// Mean of the whole model, µs.
    pub model_isolated_us: f64,
    /// Mean of the model with this pattern, µs.
    pub pattern_isolated_us: f64,
    /// Mean of the next layer for the model with this pattern, µs.
    pub next_us: f64,
    /// A number that a scheduler keeps with the request; NaN at first.
    pub memory: f64,
    /// What is to come in truth, µs. Only oracles read it.
    pub true_rest_us: u64,
    /// What the whole takes in truth, µs. Only oracles read it.
    pub true_isolated_us: u64,
}

impl Waiting {
    /// From its arrival, or the end of its last layer, until now, µs.
    #[must_use]
    pub fn idle_us(&self, now_us: u64) -> f64 {
        (now_us - self.last_ran_us) as f64
    }
}

/// All that a scheduler may know when an accelerator is free.
#[derive(Debug)]
pub struct Queue<'a> {
    /// µs.
    pub now_us: u64,
    /// One or more, by number.
    pub waiting: &'a mut [Waiting],
    /// Those that run on other accelerators counted too.
    pub num_requests: usize,
}

/// Chooses whose layer runs next.
pub trait Scheduler: Send {
    /// A place in [`Queue::waiting`].
    ///
    /// # Errors
    /// A policy that cannot decide.
    fn choose(&mut self, queue: &mut Queue<'_>) -> Result<usize, Problem>;
}

/// Of all rules here.
const FAMILY: &str = "layer scheduler";
/// The rules.
#[rustfmt::skip]
pub const POLICIES: &[Info] = &[
    rule(FAMILY, "fcfs", "arrivals", "the oldest request", "plain"),
    rule(FAMILY, "sjf", "means of models", "the least mean rest", "plain; baseline of DySta"),
    rule(FAMILY, "prema", "means of models, priorities",
        "the least mean rest of those with many tokens, which waiting gives", "Choi and Rhu, HPCA'20"),
    rule(FAMILY, "sdrm3", "means of models, deadlines",
        "rest over time left, and idle time over the next layer", "Kim et al., 2022"),
    rule(FAMILY, "planaria", "means of models, deadlines, priorities",
        "priority over slack", "Ghodrati et al., MICRO'20, as a rule for one accelerator"),
    rule(FAMILY, "dysta", "means of patterns, deadlines, densities of layers that ran",
        "least rest by densities, and little of its slack and idle time", "Fan et al., MICRO'23"),
    rule(FAMILY, "oracle", "true latencies, deadlines", "as dysta, with the true rest", "Fan et al., MICRO'23"),
];

/// Weight of slack and idle time in DySta's score. Source: its released code.
const BETA: f64 = 0.01;
/// Weight of idle time in SDRM3's score, and thresholds of PREMA's tokens. Source: DySta's released code.
const ALPHA: f64 = 1.0;
const THRESHOLDS: [f64; 2] = [9.0, 3.0];

/// What DySta multiplies means by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gamma {
    /// Nothing: beliefs stay.
    One,
    /// Mean ratio of so many layers that ran last.
    Last(usize),
    /// The sample's true latency over its mean: what a perfect estimate of one number would be.
    Sample,
    /// The true rest over its mean.
    Rest,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Fcfs,
    Sjf,
    Prema,
    Sdrm3,
    Planaria,
    Dysta { beta: f64, gamma: Gamma },
}

/// The scheduler of a name with settings. `dysta` has `beta=0.01`, `gamma=false` (means alone), `last=N` (densities of the last
/// N layers alone) and `sample=true` (the sample's true density in their place); `oracle` has `beta`.
///
/// # Errors
/// A name or a setting that is not there, or a value out of range.
pub fn by_name(text: &str) -> Result<Box<dyn Scheduler>, Problem> {
    let mut settings = Settings::of("scheduler", text, POLICIES)?;
    let rule = match settings.name {
        "fcfs" => Rule::Fcfs,
        "sjf" => Rule::Sjf,
        "prema" => Rule::Prema,
        "sdrm3" => Rule::Sdrm3,
        "planaria" => Rule::Planaria,
        "oracle" => Rule::Dysta {
            beta: settings.number("beta", 0.0..=1e3)?.unwrap_or(BETA),
            gamma: Gamma::Rest,
        },
        _ => {
            let beta = settings.number("beta", 0.0..=1e3)?.unwrap_or(BETA);
            let last = settings
                .number("last", 1.0..=1e3)?
                .map_or(usize::MAX, |last| last as usize);
            let measured = settings.truth("gamma")?.unwrap_or(true);
            let sample = settings.truth("sample")?.unwrap_or(false);
            let gamma = match (sample, measured) {
                (true, _) => Gamma::Sample,
                (false, true) => Gamma::Last(last),
                (false, false) => Gamma::One,
            };
            Rule::Dysta { beta, gamma }
        }
    };
    settings.end()?;
    Ok(Box::new(Named { rule }))
}

struct Named {
    rule: Rule,
}

impl Scheduler for Named {
    fn choose(&mut self, queue: &mut Queue<'_>) -> Result<usize, Problem> {
        let (now_us, num) = (queue.now_us, queue.num_requests as f64);
        Ok(match self.rule {
            Rule::Fcfs => least(queue.waiting, |row| row.arrival_us as f64),
            Rule::Sjf => least(queue.waiting, |row| row.model_rest_us),
            Rule::Prema => prema(now_us, queue.waiting),
            Rule::Sdrm3 => least(queue.waiting, |row| -map_score(row, now_us)),
            Rule::Planaria => least(queue.waiting, |row| {
                let slack_us = row.deadline_us as f64 - now_us as f64 - row.model_rest_us;
                // Late requests are most urgent: *assumed*, with the priority between those that are late.
                -f64::from(row.priority) / slack_us.max(1.0)
            }),
            Rule::Dysta { beta, gamma } => {
                least(queue.waiting, |row| dysta_score_s(row, now_us, num, beta, gamma))
            }
        })
    }
}

/// The row with the least of a figure; among equal ones the oldest.
fn least(waiting: &[Waiting], figure: impl Fn(&Waiting) -> f64) -> usize {
    let mut best = (f64::INFINITY, 0);
    for (place, row) in waiting.iter().enumerate() {
        let value = figure(row);
        if value < best.0 {
            best = (value, place);
        }
    }
    best.1
}

/// Tokens grow at each decision by the idle time since the request last ran, as in DySta's released code; a new request
/// begins with its priority.
fn prema(now_us: u64, waiting: &mut [Waiting]) -> usize {
    let mut most: f64 = 0.0;
    for row in waiting.iter_mut() {
        let priority = f64::from(row.priority);
        if row.memory.is_nan() {
            row.memory = priority;
        } else {
            row.memory += priority * row.idle_us(now_us) / row.model_isolated_us;
            most = most.max(row.memory);
        }
    }
    let threshold = THRESHOLDS
        .into_iter()
        .find(|threshold| most >= *threshold)
        .unwrap_or(1.0);
    least(waiting, |row| {
        if row.memory >= threshold {
            row.model_rest_us
        } else {
            f64::MAX
        }
    })
}

/// Urgency, at most 1, and idle time over the next layer. A request past its deadline has urgency 1: *assumed*.
fn map_score(row: &Waiting, now_us: u64) -> f64 {
    let left_us = row.deadline_us as f64 - now_us as f64;
    let urgency = if left_us > 0.0 {
        (row.model_rest_us / left_us).min(1.0)
    } else {
        1.0
    };
    urgency + ALPHA * row.idle_us(now_us) / row.next_us
}

/// Rest and slack in s, idle time over the isolated mean and the number of requests: the units of the released code.
fn dysta_score_s(row: &Waiting, now_us: u64, num_requests: f64, beta: f64, gamma: Gamma) -> f64 {
    let rest_us = match gamma {
        Gamma::One => row.pattern_rest_us,
        Gamma::Last(usize::MAX) => row.gamma * row.pattern_rest_us,
        Gamma::Last(last) => mean_of_last(&row.ratios, last) * row.pattern_rest_us,
        Gamma::Sample => row.true_isolated_us as f64 / row.pattern_isolated_us * row.pattern_rest_us,
        Gamma::Rest => row.true_rest_us as f64,
    };
    let slack_us = (row.deadline_us as f64 - now_us as f64 - rest_us).max(0.0);
    let idle = row.idle_us(now_us) / row.pattern_isolated_us / num_requests;
    rest_us / 1e6 + beta * (slack_us / 1e6 + idle)
}

fn mean_of_last(ratios: &[f32], last: usize) -> f64 {
    let ratios = &ratios[ratios.len().saturating_sub(last)..];
    if ratios.is_empty() {
        return 1.0;
    }
    ratios.iter().map(|ratio| f64::from(*ratio)).sum::<f64>() / ratios.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: usize, rest_us: f64) -> Waiting {
        Waiting {
            id,
            model: 0,
            priority: 1,
            arrival_us: 0,
            deadline_us: 100_000,
            last_ran_us: 0,
            ratios: Vec::new(),
            gamma: 1.0,
            model_rest_us: rest_us,
            pattern_rest_us: rest_us,
            model_isolated_us: 10_000.0,
            pattern_isolated_us: 10_000.0,
            next_us: 1_000.0,
            memory: f64::NAN,
            true_rest_us: rest_us as u64,
            true_isolated_us: 10_000,
        }
    }

    fn choose(text: &str, now_us: u64, waiting: &mut [Waiting]) -> usize {
        let num_requests = waiting.len();
        by_name(text)
            .unwrap()
            .choose(&mut Queue {
                now_us,
                waiting,
                num_requests,
            })
            .unwrap()
    }

    /// 4 ms left at half the density are 2 ms, less than the 3 ms of one that did not run.
    #[test]
    fn dysta_believes_what_it_measured() {
        let mut waiting = [row(0, 3_000.0), row(1, 4_000.0)];
        waiting[1].ratios = vec![0.9, 0.1];
        waiting[1].gamma = 0.5;
        assert_eq!(choose("sjf", 10, &mut waiting), 0);
        assert_eq!(choose("dysta:gamma=false", 10, &mut waiting), 0);
        assert_eq!(choose("dysta", 10, &mut waiting), 1);
        assert_eq!(choose("dysta:last=1", 10, &mut waiting), 1);
        waiting[1].ratios = vec![0.1, 0.9];
        assert_eq!(choose("dysta:last=1", 10, &mut waiting), 0);
    }

    /// Equal rests of 3 ms, slacks of 47 and 87 ms: the first. With beta 0 the tie goes to the lower number.
    #[test]
    fn slack_decides_between_equal_rests_and_idle_time_costs() {
        let mut waiting = [row(0, 3_000.0), row(1, 3_000.0)];
        waiting[1].deadline_us = 60_000;
        assert_eq!(choose("dysta", 10_000, &mut waiting), 1);
        assert_eq!(choose("dysta:beta=0", 10_000, &mut waiting), 0);
        waiting[1].deadline_us = 100_000;
        waiting[1].last_ran_us = 10_000;
        assert_eq!(choose("dysta", 10_000, &mut waiting), 1, "who just ran goes on");
    }

    /// At 50 ms the one of priority 9 has 9 + 9 x 5 tokens, the other 1 + 5: above the threshold of 9 is one alone.
    #[test]
    fn prema_takes_the_shortest_of_those_with_tokens() {
        let mut waiting = [row(0, 1_000.0), row(1, 5_000.0)];
        waiting[1].priority = 9;
        let mut prema = by_name("prema").unwrap();
        let mut ask = |now_us, waiting: &mut [Waiting]| {
            prema
                .choose(&mut Queue {
                    now_us,
                    waiting,
                    num_requests: 2,
                })
                .unwrap()
        };
        assert_eq!(ask(0, &mut waiting), 0, "tokens of new requests set no threshold");
        assert_eq!(ask(50_000, &mut waiting), 1);
        assert!((waiting[0].memory - 6.0).abs() < 1e-9 && (waiting[1].memory - 54.0).abs() < 1e-9);
    }

    /// SDRM3: 9/10 + 90/1 against 1/10 + 90/10. Planaria: 1/1 ms against 9/(99 ms).
    #[test]
    fn sdrm3_and_planaria_weigh_urgency() {
        let mut waiting = [row(0, 1_000.0), row(1, 9_000.0)];
        waiting[0].next_us = 10_000.0;
        assert_eq!(choose("sdrm3", 90_000, &mut waiting), 1);
        waiting[0].priority = 9;
        assert_eq!(choose("planaria", 0, &mut waiting), 0);
        waiting[1].deadline_us = 10_000;
        assert_eq!(choose("planaria", 0, &mut waiting), 1);
    }

    #[test]
    fn names_and_settings_that_are_not_there_are_refused() {
        for (text, expected) in [
            ("edf", "fcfs, sjf"),
            ("sjf:beta=1", "beta"),
            ("dysta:beta=-1", "0 to 1000"),
        ] {
            let error = by_name(text).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
