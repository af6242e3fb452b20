//! How far estimates of run times can be trusted: what those of the jobs that have ended were worth.

use pleach_scheduler::JobId;
use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::portable_math::{exp, ln};
use serde::{Deserialize, Serialize};

/// Jobs that are taken to have ended before the first, with an error of a factor of e. *Assumed.*
const PRIOR_JOBS: f64 = 3.0;
/// The largest error that counts, a factor of 148. *Assumed*: a job that ends at once says little about others.
const ERROR_MAX: f64 = 5.0;

/// What estimates have been worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// Jobs that have ended.
    pub num_ended: u32,
    /// Sum of the logarithms of the factors by which their estimates were off, at least 0.
    pub error: f64,
}

impl Trust {
    /// Learns from a job that ended after so much work, s on the reference type.
    pub fn learn(&mut self, executed_s: f64, estimate_s: f64) {
        let error = ln(executed_s / estimate_s).abs();
        if executed_s > 0.0 && error.is_finite() {
            self.error += error.min(ERROR_MAX);
            self.num_ended = self.num_ended.saturating_add(1);
        }
    }

    /// Mean absolute logarithm of run time over estimate, where a few jobs are taken to have ended before the first.
    #[must_use]
    pub fn mean_error(&self) -> f64 {
        (self.error + PRIOR_JOBS) / (f64::from(self.num_ended) + PRIOR_JOBS)
    }

    /// `exp(-mean error)`, where an error is the absolute logarithm of run time over estimate: 1 if all estimates were right, 1/e
    /// if they were off by a factor of e, or before a job has ended.
    #[must_use]
    pub fn value(&self) -> f64 {
        exp(-self.mean_error())
    }
}

/// Learns trust from a cluster in which jobs keep their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// Jobs that waited or ran at the last look.
    seen: Vec<JobId>,
    pub(super) trust: Trust,
}

impl Watch {
    /// Learns from the jobs that have ended since the last look.
    pub(super) fn look(&mut self, cluster: &Cluster) {
        for id in &self.seen {
            let job = cluster.job(*id);
            if job.state == JobState::Finished {
                self.trust.learn(job.executed_s, job.request.estimate_s.value);
            }
        }
        self.seen = cluster.active();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{place, preemptive_cluster, submit};
    use pleach_scheduler::Time;

    #[test]
    fn trust_is_what_the_ended_jobs_were_worth() {
        let mut cluster = preemptive_cluster(1, 4);
        let mut watch = Watch::default();
        assert!(
            (watch.trust.value() - (-1_f64).exp()).abs() < 1e-12,
            "nobody has ended"
        );
        // Believed 1,000 s each; one is right, one takes e^2 times as long.
        let jobs = [0, 1].map(|_| {
            let id = submit(&mut cluster, 1, 1000.0);
            place(&mut cluster, id);
            id
        });
        watch.look(&cluster);
        cluster.advance(Time::from_secs_f64(1000.0));
        cluster.finish(jobs[0]);
        cluster.advance(Time::from_secs_f64(1000.0 * 2_f64.exp()));
        cluster.finish(jobs[1]);
        watch.look(&cluster);
        let expected = (-(3.0 + 0.0 + 2.0) / 5.0_f64).exp();
        assert!(
            (watch.trust.value() - expected).abs() < 1e-6,
            "{}",
            watch.trust.value()
        );
        watch.look(&cluster);
        assert_eq!(watch.trust.num_ended, 2, "each is learned once");
    }
}
