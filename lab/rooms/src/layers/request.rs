//! Requests with the true latencies of their samples, and lists of them that are drawn.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::{exp, ln};
use pleach_workloads::Seed;
use pleach_workloads::normal::standard_normal;
use rand::RngExt as _;

use crate::layers::profile::Profiles;
use pleach_serving::settings::within;

/// Most requests of a list.
pub const REQUESTS_MAX: usize = 1_000_000;
/// Priorities that are drawn: those of PREMA (HPCA'20).
pub const PRIORITIES: [u8; 3] = [1, 3, 9];

/// One sample for one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// From the beginning of the list, µs.
    pub arrival_us: u64,
    /// When it is to have ended, µs.
    pub deadline_us: u64,
    /// Number of its model.
    pub model: usize,
    /// Number of the model's pattern.
    pub pattern: usize,
    /// The higher the more urgent, at least 1. Not all schedulers look at it.
    pub priority: u8,
    /// What each layer takes, µs, at least 1. None is known before it ran.
    pub latencies_us: Vec<u32>,
}

impl Request {
    /// What it takes alone, µs.
    #[must_use]
    pub fn isolated_us(&self) -> u64 {
        self.latencies_us
            .iter()
            .map(|latency_us| u64::from(*latency_us))
            .sum()
    }
}

/// Requests by arrival, and what is believed of their models.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    profiles: Profiles,
    rows: Vec<Request>,
}

impl Requests {
    /// Checks and sorts.
    ///
    /// # Errors
    /// A request of a model, pattern or number of layers that is not there, or out of range; named by its place.
    pub fn new(profiles: Profiles, mut rows: Vec<Request>) -> Result<Requests, Problem> {
        within("requests", rows.len(), 1, REQUESTS_MAX)?;
        for (place, row) in rows.iter().enumerate() {
            let refused = |what: &str, value: String, allowed: String| {
                let hint = "Give what the profiles have.";
                Err(Problem::new(
                    format!("requests[{place}].{what}"),
                    value,
                    allowed,
                    hint,
                ))
            };
            let Some(model) = profiles.models.get(row.model) else {
                return refused(
                    "model",
                    row.model.to_string(),
                    format!("below {}", profiles.models.len()),
                );
            };
            if row.pattern >= model.num_patterns() {
                return refused(
                    "pattern",
                    row.pattern.to_string(),
                    format!("below {}", model.num_patterns()),
                );
            }
            if row.latencies_us.len() != model.num_layers() || row.latencies_us.contains(&0) {
                let allowed = format!("{} layers, each at least 1", model.num_layers());
                return refused("latencies_us", format!("{:?}", row.latencies_us), allowed);
            }
            if row.priority == 0 || row.deadline_us <= row.arrival_us || row.deadline_us > u64::MAX / 4 {
                let value = format!("priority {}, deadline {}", row.priority, row.deadline_us);
                return refused(
                    "deadline_us",
                    value,
                    "after the arrival, with a priority of at least 1".into(),
                );
            }
        }
        rows.sort_by_key(|row| row.arrival_us);
        Ok(Requests { profiles, rows })
    }

    /// By arrival.
    #[must_use]
    pub fn rows(&self) -> &[Request] {
        &self.rows
    }

    /// What is believed.
    #[must_use]
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }
}

/// Poisson arrivals of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestGenerator {
    /// Requests.
    pub num_requests: usize,
    /// Requests a second.
    pub rate_per_s: f64,
    /// A deadline is so many isolated means of the model after the arrival.
    pub multiplier: f64,
    /// Share of the requests that go to one model, and its number; the others are dealt evenly. None: all evenly.
    pub hot: Option<(usize, f64)>,
}

impl RequestGenerator {
    /// Draws a list: models, patterns and priorities evenly, a sample's latencies with the profiles' spread and correlation.
    ///
    /// # Errors
    /// Settings out of range.
    pub fn draw(&self, profiles: &Profiles, seed: Seed) -> Result<Requests, Problem> {
        self.check(profiles)?;
        let (mut arrivals, mut kinds, mut samples) = (
            seed.stream("layer-arrivals", 0),
            seed.stream("layer-kinds", 0),
            seed.stream("layer-samples", 0),
        );
        let (common, own) = (profiles.correlation.sqrt(), (1.0 - profiles.correlation).sqrt());
        let mut now_us = 0.0;
        let mut rows = Vec::with_capacity(self.num_requests);
        for _ in 0..self.num_requests {
            now_us -= ln(1.0 - arrivals.random::<f64>()) * 1e6 / self.rate_per_s;
            let mut number = kinds.random_range(0..profiles.models.len());
            let is_hot = kinds.random::<f64>();
            if let Some((hot, share)) = self.hot {
                let others = (0..profiles.models.len()).filter(|model| *model != hot);
                let others: Vec<usize> = others.collect();
                number = if is_hot < share || others.is_empty() {
                    hot
                } else {
                    others[number % others.len()]
                };
            }
            let model = &profiles.models[number];
            let pattern = kinds.random_range(0..model.num_patterns());
            let priority = PRIORITIES[kinds.random_range(0..PRIORITIES.len())];
            let sample = standard_normal(&mut samples);
            let latency = |layer: usize| {
                let deviation = profiles.spread * (common * sample + own * standard_normal(&mut samples));
                // The mean of the ratio is 1: that of a log-normal number is exp(spread^2 / 2).
                let ratio = exp(deviation - profiles.spread * profiles.spread / 2.0);
                (model.layer_us(pattern, layer) * ratio)
                    .round()
                    .clamp(1.0, f64::from(u32::MAX)) as u32
            };
            let latencies_us = (0..model.num_layers()).map(latency).collect();
            let arrival_us = now_us.round() as u64;
            let deadline_us = arrival_us + (model.mean_rest_us(0) * self.multiplier).round().max(1.0) as u64;
            rows.push(Request {
                arrival_us,
                deadline_us,
                model: number,
                pattern,
                priority,
                latencies_us,
            });
        }
        Requests::new(profiles.clone(), rows)
    }

    fn check(&self, profiles: &Profiles) -> Result<(), Problem> {
        within("num_requests", self.num_requests as f64, 1.0, REQUESTS_MAX as f64)?;
        within("rate_per_s", self.rate_per_s, 1e-3, 1e6)?;
        within("multiplier", self.multiplier, 0.01, 1e6)?;
        if let Some((hot, share)) = self.hot {
            within("hot.model", hot as f64, 0.0, (profiles.models.len() - 1) as f64)?;
            within("hot.share", share, 0.0, 1.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator() -> RequestGenerator {
        RequestGenerator {
            num_requests: 20_000,
            rate_per_s: 30.0,
            multiplier: 10.0,
            hot: None,
        }
    }

    #[test]
    fn rate_means_spread_and_correlation_are_those_asked_for() {
        let profiles = Profiles::by_name("attention-1").unwrap();
        let list = generator().draw(&profiles, Seed(1)).unwrap();
        assert_eq!(list, generator().draw(&profiles, Seed(1)).unwrap());
        let rows = list.rows();
        let rate = rows.len() as f64 / (rows[rows.len() - 1].arrival_us as f64 / 1e6);
        assert!((rate - 30.0).abs() < 0.6, "{rate}");
        let logs = |layer: usize| -> Vec<f64> {
            let of_bert = rows.iter().filter(|row| row.model == 0);
            let ratio =
                |row: &Request| f64::from(row.latencies_us[layer]) / profiles.models[0].layer_us(0, layer);
            of_bert.map(|row| ratio(row).ln()).collect()
        };
        let (one, other) = (logs(2), logs(9));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let cov = |a: &[f64], b: &[f64]| {
            let (mean_a, mean_b) = (mean(a), mean(b));
            a.iter()
                .zip(b)
                .map(|(x, y)| (x - mean_a) * (y - mean_b))
                .sum::<f64>()
                / a.len() as f64
        };
        let deviation = cov(&one, &one).sqrt();
        let correlation = cov(&one, &other) / (deviation * cov(&other, &other).sqrt());
        assert!((deviation - 0.25).abs() < 0.01, "{deviation}");
        assert!((correlation - 0.9).abs() < 0.01, "{correlation}");
    }

    #[test]
    fn a_hot_model_has_its_share_and_what_is_out_of_range_is_named() {
        let profiles = Profiles::by_name("cnn-1").unwrap();
        let hot = RequestGenerator {
            hot: Some((3, 0.8)),
            ..generator()
        };
        let list = hot.draw(&profiles, Seed(2)).unwrap();
        let share =
            |model: usize| list.rows().iter().filter(|row| row.model == model).count() as f64 / 20_000.0;
        assert!(
            (share(3) - 0.8).abs() < 0.02 && share(0) > 0.05,
            "{} {}",
            share(3),
            share(0)
        );
        for (wrong, expected) in [
            (
                RequestGenerator {
                    rate_per_s: 0.0,
                    ..generator()
                },
                "rate_per_s",
            ),
            (
                RequestGenerator {
                    hot: Some((4, 0.5)),
                    ..generator()
                },
                "hot.model",
            ),
            (
                RequestGenerator {
                    multiplier: f64::NAN,
                    ..generator()
                },
                "multiplier",
            ),
        ] {
            let error = wrong.draw(&profiles, Seed(0)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let mut row = list.rows()[0].clone();
        row.latencies_us.pop();
        let error = Requests::new(profiles, vec![row]).unwrap_err().to_string();
        assert!(error.contains("requests[0].latencies_us"), "{error}");
    }
}
