//! A predictor of run times that learns as a real one must: from the jobs that have ended so far.
//!
//! What it learns and predicts is [`RunTimes`], which the daemon uses too; here is the order of events. A job counts as ended when
//! the record says so; one of which nothing is recorded once it would have ended had it not waited: the simulation makes jobs wait,
//! so the predictor then knows a little more than one on the real cluster would, by the waiting times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pleach_scheduler::Time;
use pleach_scheduler::history::{Keep, RunTimes};

use super::JobSpec;

/// Jobs with the same key are alike: those of one user in one tenant, or those of a tenant whose user is not known.
fn who(job: &JobSpec) -> (&str, u16) {
    (job.user.as_deref().unwrap_or_default(), job.tenant)
}

/// One prediction per job, s; `default_s` until anything has ended. `[num_jobs]`
#[must_use]
pub(super) fn predictions(jobs: &[JobSpec], num_last: usize, default_s: f64) -> Vec<f64> {
    let mut known = RunTimes::new(Keep::all(num_last));
    let mut running: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut predictions = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        while let Some(Reverse((end, ended))) = running.peek().copied() {
            if end > job.submit {
                break;
            }
            running.pop();
            let ended = &jobs[ended];
            known.learn(&who(ended), ended.num_gpus, ended.run_time_s);
        }
        predictions.push(known.predict(&who(job), job.num_gpus).unwrap_or(default_s));
        let (start, end) = match job.observed.as_deref() {
            Some(observed) => (observed.start, observed.end),
            None => (job.submit, None),
        };
        let end = end.unwrap_or(start + Time::from_secs_f64(job.run_time_s));
        running.push(Reverse((end, index)));
    }
    predictions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    fn by(user: &str, id: &str, submit_s: f64, num_gpus: u32, run_time_s: f64) -> JobSpec {
        JobSpec {
            user: Some(user.into()),
            ..job(id, submit_s, num_gpus, run_time_s)
        }
    }

    #[test]
    fn a_prediction_comes_from_the_most_similar_jobs_that_have_ended() {
        let jobs = [
            by("ann", "a", 0.0, 1, 10.0),
            by("ann", "b", 5.0, 1, 1000.0), // a has not ended: the default
            by("ann", "c", 10.0, 1, 40.0),  // a has, at this very instant
            by("ann", "d", 50.0, 1, 1.0),   // a and c, a quarter of whose 50 GPU s is beyond a
            by("ann", "e", 60.0, 2, 1.0),   // same user, another gang: a, c and d: a quarter of 51 GPU s
            by("bob", "f", 70.0, 2, 1.0),   // same gang, another user: e
            by("bob", "g", 70.5, 4, 1.0),   // anyone: a, c, d, e: a quarter of 53 GPU s is beyond a, d and e
        ];
        let found = predictions(&jobs, 10, 99.0);
        let expected = [99.0, 99.0, 10.0, 40.0, 40.0, 1.0, 40.0];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn only_the_last_few_jobs_count() {
        let mut jobs: Vec<JobSpec> = (0..5)
            .map(|n| by("ann", &n.to_string(), f64::from(n), 1, 0.5))
            .collect();
        jobs.push(by("ann", "x", 10.0, 1, 100.0));
        jobs.push(by("ann", "y", 200.0, 1, 1.0));
        assert!((predictions(&jobs, 1, 9.0)[6] - 100.0).abs() < 1e-9);
        assert!((predictions(&jobs, 2, 9.0)[6] - 100.0).abs() < 1e-9);
        jobs.truncate(5);
        jobs.push(by("ann", "z", 10.0, 1, 1.0));
        assert!(
            (predictions(&jobs, 2, 9.0)[5] - 0.5).abs() < 1e-9,
            "the rest is short"
        );
    }
}
