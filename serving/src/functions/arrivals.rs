//! Requests as they come: drawn one at a time, so that a long list takes no memory.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::ln;
use pleach_workloads::Seed;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use crate::settings::within;

/// Times between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Evenly from one to another, us.
    Uniform(f64, f64),
    /// A Poisson process, mean us.
    Exponential(f64),
}

/// Requests of applications, each as likely as the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Requests, 1 to 100,000,000.
    pub num_requests: u32,
    /// Times between them.
    pub gaps: Gaps,
    /// So many times as many a second, 0.001 to 1,000.
    pub load: f64,
    /// Target of a request over the reference time of its application, 0.01 to 1,000.
    pub slo: f64,
}

/// Settings by name: gaps (ms) and targets.
///
/// # Source
/// ESG (HPDC'24) as remembered: strict, moderate and relaxed targets under light, normal and heavy load, gaps counted
/// over all applications together. Those of the measured surface, whose functions are faster, are *assumed*.
pub const SETTINGS: [&str; 3] = ["strict-light", "moderate-normal", "relaxed-heavy"];
const PUBLISHED: [(f64, f64, f64); 3] = [(40.0, 67.2, 0.8), (20.0, 33.6, 1.0), (10.0, 16.8, 1.2)];
const MEASURED: [(f64, f64, f64); 3] = [(20.0, 33.6, 1.2), (8.0, 13.4, 2.0), (4.0, 6.72, 3.0)];

impl Arrivals {
    /// A setting by name on a surface.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn of_setting(setting: &str, surface: &str, num_requests: u32) -> Result<Arrivals, Problem> {
        let Some(place) = SETTINGS.iter().position(|name| *name == setting) else {
            return Err(Problem::new(
                "setting",
                setting,
                SETTINGS.join(", "),
                "Take one of them.",
            ));
        };
        let (low_ms, high_ms, slo) = if surface == "infless" {
            MEASURED[place]
        } else {
            PUBLISHED[place]
        };
        Ok(Arrivals {
            num_requests,
            gaps: Gaps::Uniform(1e3 * low_ms, 1e3 * high_ms),
            load: 1.0,
            slo,
        })
    }

    /// The same at so many times the load.
    pub(super) fn times(self, load: f64) -> Arrivals {
        Arrivals {
            load: self.load * load,
            ..self
        }
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        let (low, high) = match self.gaps {
            Gaps::Uniform(low, high) => (low, high),
            Gaps::Exponential(mean) => (mean, mean),
        };
        let ranges = [
            ("num_requests", f64::from(self.num_requests), 1.0, 1e8),
            ("gaps", low, 0.0, high.min(1e12)),
            ("gaps", high, 1e-3, 1e12),
            ("load", self.load, 1e-3, 1e3),
            ("slo", self.slo, 0.01, 1e3),
            // Far below what 64 bits hold, us.
            (
                "num_requests * gaps / load",
                f64::from(self.num_requests) * high / self.load,
                0.0,
                1e17,
            ),
        ];
        for (key, value, min, max) in ranges {
            within(key, value, min, max)?;
        }
        Ok(())
    }

    /// Times (us, whole) and applications.
    pub(crate) fn draw(&self, num_apps: usize, seed: Seed) -> impl Iterator<Item = (u64, usize)> + use<> {
        let mut rng = seed.stream("arrivals", 0);
        let (gaps, load) = (self.gaps, self.load);
        let mut at_us = 0.0;
        (0..self.num_requests).map(move |_| {
            let part: f64 = rng.random();
            at_us += match gaps {
                Gaps::Uniform(low, high) => low + (high - low) * part,
                Gaps::Exponential(mean) => -mean * ln(1.0 - part),
            } / load;
            (at_us as u64, rng.random_range(0..num_apps))
        })
    }
}
