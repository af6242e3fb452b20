//! How often nodes will fail in a run, before it begins: a mean time between failures that lets no job get on is refused, and not
//! simulated for ever.
//!
//! A job on k nodes is stopped every m = mtbf / k on average. After each stop it pays its restart, Y, and keeps what it did in
//! whole checkpoints of c. With exponential times that is, for each stop,
//!
//! ```text
//! m exp(-Y/m)                              without checkpoints, where nothing is lost
//! c exp(-Y/m) exp(-c/m) / (1 - exp(-c/m))  with them
//! m - Y                                    where a restart is paid in work, which is not lost either
//! ```
//!
//! so that work of W costs W over that many stops. The job is taken to run at its own pace on as few nodes as hold it.

use pleach_scheduler::portable_math::exp;
use pleach_scheduler::{ClassId, Problem};

use super::World;
use crate::availability::AvailabilityConfig;
use crate::site_failures::THOUSAND_DAYS_S;

/// Stops of jobs that a run may expect. *Assumed*: ten million, each with a plan after it, are an hour or so.
const STOPS_MAX: f64 = 1e7;
/// Failures of nodes that a run may expect, whether or not jobs run there. *Assumed*: a hundred million events are minutes.
const FAILURES_MAX: f64 = 1e8;

impl World {
    /// Refuses nodes that fail so often that the run would not come to its end.
    ///
    /// # Errors
    /// The mean time between failures, with the least one with which these jobs get on.
    pub(super) fn check_failures(&self, config: &AvailabilityConfig) -> Result<(), Problem> {
        let Some(mtbf_s) = config.site.map(|site| site.incident_s()).or(config.node_mtbf_s) else {
            return Ok(());
        };
        let repair_s = config.site.map_or(config.node_repair_s, |_| 0.0);
        let is_enough = |mtbf_s: f64| {
            let failures = self.expected_failures(mtbf_s, repair_s);
            self.expected_stops(mtbf_s) <= STOPS_MAX && failures <= FAILURES_MAX
        };
        if is_enough(mtbf_s) {
            return Ok(());
        }
        let mut least_s = mtbf_s;
        while !is_enough(least_s) {
            least_s *= 1.25;
        }
        let hint = "jobs would be stopped for ever before they get on; shorten jobs or restarts, or leave node_mtbf_s out";
        if let Some(site) = config.site {
            let most = THOUSAND_DAYS_S / least_s;
            let allowed = format!("{most:.3} or less for these jobs on this cluster");
            return Err(Problem::new(
                "capacity.site.incidents",
                site.incidents,
                allowed,
                hint,
            ));
        }
        let allowed = format!("{:.0} s or more for these jobs on this cluster", least_s.ceil());
        Err(Problem::new("capacity.node_mtbf_s", mtbf_s, allowed, hint))
    }

    /// Stops of all jobs by failures, about.
    fn expected_stops(&self, mtbf_s: f64) -> f64 {
        let capabilities = self.cluster.capabilities();
        let restart_s_max = self.cluster.restart_cost_s_max();
        let widest = self.cluster.nodes().iter().map(|node| node.num_gpus).max();
        let of_job = |gang: u32, class: ClassId, work_s: f64| {
            let restart_s = restart_s_max.max(self.cluster.costs_s(class, gang).1);
            let mean_s = mtbf_s / f64::from(gang.div_ceil(widest.unwrap_or(1).max(1)));
            let survives = exp(-restart_s / mean_s);
            let kept_s = match self.cluster.checkpoint_interval_s(class) {
                _ if capabilities.restart_cost_is_work => (mean_s - restart_s).max(0.0),
                None => mean_s * survives,
                Some(interval_s) => {
                    let interval_s = interval_s.min(work_s);
                    let again = exp(-interval_s / mean_s);
                    interval_s * survives * again / (1.0 - again).max(f64::MIN_POSITIVE)
                }
            };
            work_s / kept_s.max(f64::MIN_POSITIVE)
        };
        let jobs = self.truth.iter();
        jobs.map(|truth| of_job(truth.submission.num_gpus, truth.submission.class, truth.work_s))
            .sum()
    }

    /// Failures of nodes until the last job could have ended, at least.
    fn expected_failures(&self, mtbf_s: f64, repair_s: f64) -> f64 {
        let ends = self
            .truth
            .iter()
            .map(|truth| truth.submit.as_secs_f64() + truth.work_s);
        let end_s = ends.fold(0.0, f64::max);
        self.cluster.nodes().len() as f64 * end_s / (mtbf_s + repair_s)
    }
}
