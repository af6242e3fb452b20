//! Failures as large sites publish them: nodes that break, some of them again and again, and everything else that ends an attempt.
//!
//! Two rates, which differ by a factor of 3 to 10 and are often mixed up. *Hardware* takes a node away until it is repaired. An
//! *incident* is any end of an attempt on whole nodes that is not the job's own: hardware, and besides it the framework, the network,
//! a file system, a hang. A job that comes back after an incident may have the same nodes at once. Jobs on parts of nodes meet
//! hardware only.
//!
//! Not here: racks that fail together, nodes that are slow and do not fail.

use pleach_scheduler::portable_math::{exp, ln, pow};
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{Problem, Time};
use pleach_workloads::Seed;
use pleach_workloads::normal::standard_normal;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Seconds of a thousand node-days.
pub(crate) const THOUSAND_DAYS_S: f64 = 1000.0 * 86_400.0;
/// Standard deviation of the logarithm of the time until a human has looked after a job. *Assumed*.
const HUMAN_SIGMA: f64 = 1.2;
/// Longest mean time between failures, s: a node that never fails in any run.
const MTBF_S_MAX: f64 = 1e10;

settings! {
    /// Failures of a site.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SiteFailures: default RESEARCH {
        /// Hardware failures of 1,000 nodes in a day, [0, 1000].
        pub hardware: f64, in 0.0..=1000.0;
        /// Incidents of 1,000 nodes in a day, hardware among them, at least `hardware` and at most 1000.
        pub incidents: f64, in 0.0..=1000.0;
        /// Coefficient of variation of a node's own rate, [0, 10]: gamma-distributed with the mean above.
        pub node_cv: f64, in 0.0..=10.0;
        /// Part of the repairs that need new hardware, [0, 1].
        pub hard_part: f64, in 0.0..=1.0;
        /// Part of the incidents beside hardware that are hangs, [0, 1].
        pub hang_part: f64, in 0.0..=1.0;
        /// Seconds until a hang is seen, 0 to 86,400; the job holds its GPUs meanwhile and does nothing.
        pub hang_s: f64, in 0.0..=86_400.0;
        /// Part of the restarts after failures for which the job waits for a human before it is in the queue again, [0, 1].
        pub human_part: f64, in 0.0..=1.0;
        /// Median of the time until one has looked after it, s, 0 to 1e7; log-normal, its logarithm has a standard deviation of 1.2.
        pub human_s: f64, in 0.0..=1e7;
    }
}

impl SiteFailures {
    /// A site where many try many things.
    ///
    /// # Source
    /// Hardware, of 1,000 node-days of 8 GPUs: 2.3 (FT-HSDP, arXiv 2602.00277), 3.8 (Llama 3, arXiv 2407.21783, table 5), 6.5 (Meta's
    /// RSC-1, arXiv 2410.21680) and 8.4; incidents: 21.0 and 23.7 of jobs of 8 and 1,024 GPUs at RSC-1, 21.3 (OPT-175B's logbook), 21.6
    /// (ByteRobust, arXiv 2509.16293). `node_cv`: with 2.5 three of 63 nodes have half of 40 failures, as at a cluster of 504 B200
    /// (arXiv 2605.09370). `hang_s`: several minutes until NCCL's watchdog speaks. *Assumed*: that one repair in ten needs new
    /// hardware, and that one incident in ten is a hang. `human_part` is 0: published times until a run goes on have those of humans
    /// in them, and of Llama 3's 419 interruptions 3 needed one. Where times without them are given, 0.1 with an hour is *assumed*.
    pub const RESEARCH: SiteFailures = SiteFailures {
        hardware: 4.0,
        incidents: 22.0,
        node_cv: 2.5,
        hard_part: 0.1,
        hang_part: 0.1,
        hang_s: 600.0,
        human_part: 0.0,
        human_s: 3600.0,
    };
    /// One production run whose program does not change any more: Llama 3's 419 unplanned interruptions in 54 days on up to 2,048
    /// nodes, of which 78 % were put down to hardware (arXiv 2407.21783, section 3.3.4).
    pub const PRODUCTION: SiteFailures = SiteFailures {
        hardware: 3.0,
        incidents: 3.8,
        ..SiteFailures::RESEARCH
    };

    /// The one of this name.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<SiteFailures, Problem> {
        match name {
            "research" => Ok(SiteFailures::RESEARCH),
            "production" => Ok(SiteFailures::PRODUCTION),
            _ => Err(Problem::new(
                "capacity.site",
                name,
                "research, production",
                "or write hardware, incidents, node_cv, hard_part, hang_part, hang_s, human_part and human_s in a file for --capacity",
            )),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first one that is out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        Problem::refuse_if(
            self.incidents < self.hardware,
            "capacity.site.incidents",
            self.incidents,
            format_args!("{} to 1000", self.hardware),
            "incidents have hardware among them",
        )?;
        self.check_at(
            "capacity.site",
            "rates are per 1,000 node-days; incidents have hardware among them",
        )
    }

    /// Mean time between the hardware failures of a node, s.
    pub(crate) fn mtbf_s(&self, seed: Seed, node: u64) -> f64 {
        let mut rng = seed.stream("node-factor", node);
        let factor = gamma_of_mean_1(self.node_cv, &mut rng);
        (THOUSAND_DAYS_S / (self.hardware * factor)).min(MTBF_S_MAX)
    }

    /// Mean time between the incidents of a whole node, s.
    pub(crate) fn incident_s(&self) -> f64 {
        (THOUSAND_DAYS_S / self.incidents).min(MTBF_S_MAX)
    }

    /// Seconds until the next incident beside hardware of an attempt on so many whole nodes; infinite where none comes.
    pub(crate) fn next_incident_s(&self, num_nodes: u32, rng: &mut ChaCha8Rng) -> f64 {
        let rate = (self.incidents - self.hardware) * f64::from(num_nodes) / THOUSAND_DAYS_S;
        // 1 - u lies in (0, 1], so the logarithm is finite.
        -ln(1.0 - rng.random::<f64>()) / rate
    }

    /// How long a job that a failure has stopped waits for a human, s; none where it needs none.
    pub(crate) fn waits_for_human_s(&self, rng: &mut ChaCha8Rng) -> Option<f64> {
        let needs_one = rng.random::<f64>() < self.human_part;
        needs_one.then(|| self.human_s * exp(HUMAN_SIGMA * standard_normal(rng)))
    }

    /// How long a repair takes: a reset or a reboot, uniform from 10 minutes to 3 hours; or a part that is replaced, log-normal
    /// around a day and a half, from one day to three.
    ///
    /// # Source
    /// *Assumed*; the two parts and their ends are those of operators' reports.
    pub(crate) fn repair(&self, rng: &mut ChaCha8Rng) -> Time {
        let is_hard = rng.random::<f64>() < self.hard_part;
        let at: f64 = rng.random();
        let seconds = if is_hard {
            let days = 1.5 * exp(0.4 * standard_normal(rng));
            days.clamp(1.0, 3.0) * 86_400.0
        } else {
            600.0 + at * (10_800.0 - 600.0)
        };
        Time::from_secs_f64(seconds)
    }
}

/// A gamma-distributed number with mean 1 and this coefficient of variation.
///
/// # Source
/// Marsaglia and Tsang, ACM TOMS 2000; below shape 1 by their power of a uniform number.
fn gamma_of_mean_1(cv: f64, rng: &mut ChaCha8Rng) -> f64 {
    if cv == 0.0 {
        return 1.0;
    }
    let shape = 1.0 / (cv * cv);
    let boosted = if shape < 1.0 { shape + 1.0 } else { shape };
    let d = boosted - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let drawn = loop {
        let x = standard_normal(rng);
        let v = 1.0 + c * x;
        let uniform = 1.0 - rng.random::<f64>();
        if v > 0.0 {
            let v = v * v * v;
            if ln(uniform) < 0.5 * x * x + d * (1.0 - v + ln(v)) {
                break d * v;
            }
        }
    };
    let drawn = if shape < 1.0 {
        drawn * pow(1.0 - rng.random::<f64>(), 1.0 / shape)
    } else {
        drawn
    };
    drawn / shape
}

#[cfg(test)]
#[path = "site_failures_tests.rs"]
mod tests;
