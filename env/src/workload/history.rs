//! A predictor of run times that learns as a real one must: from the jobs that have ended so far.
//!
//! The prediction for a job is the geometric mean of the run times of the last few ended jobs that are most like it: of
//! the same user and gang size, else of the same user, else of the same gang size, else of anyone. A job counts as ended
//! once it would have ended had it not waited; the simulation makes jobs wait, so the predictor knows a little more than
//! one on the real cluster would, by the waiting times.
//!
//! # Source
//! The idea is QSSF's rolling estimate (Hu et al., SC'21): users repeat their jobs. The mean of logarithms, the number of
//! jobs and the order of the groups are ours.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use pleach_scheduler::Time;
use pleach_scheduler::portable_math::{exp, ln};

use super::JobSpec;

/// Logarithms of the run times of the last jobs of a group.
#[derive(Debug, Default)]
struct Last {
    logs: VecDeque<f64>,
}

impl Last {
    fn push(&mut self, log: f64, num_last: usize) {
        if self.logs.len() == num_last {
            self.logs.pop_front();
        }
        self.logs.push_back(log);
    }

    fn geometric_mean(&self) -> Option<f64> {
        // Summed anew each time: a running sum would drift.
        let sum: f64 = self.logs.iter().sum();
        (!self.logs.is_empty()).then(|| exp(sum / self.logs.len() as f64))
    }
}

/// Who a job is like; a job without a known user is like those of its tenant.
type Group<'a> = (Option<(&'a str, u16)>, Option<u32>);

fn groups(job: &JobSpec) -> [Group<'_>; 4] {
    let user = Some((job.user.as_deref().unwrap_or_default(), job.tenant));
    let gang = Some(job.num_gpus);
    [(user, gang), (user, None), (None, gang), (None, None)]
}

/// One prediction per job, s; `default_s` until anything has ended. `[num_jobs]`
#[must_use]
pub(super) fn predictions(jobs: &[JobSpec], num_last: usize, default_s: f64) -> Vec<f64> {
    let mut known: BTreeMap<Group<'_>, Last> = BTreeMap::new();
    let mut running: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut predictions = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        while let Some(Reverse((end, ended))) = running.peek().copied() {
            if end > job.submit {
                break;
            }
            running.pop();
            let ended = &jobs[ended];
            for group in groups(ended) {
                known
                    .entry(group)
                    .or_default()
                    .push(ln(ended.run_time_s), num_last);
            }
        }
        let mut likes = groups(job)
            .into_iter()
            .filter_map(|group| known.get(&group)?.geometric_mean());
        predictions.push(likes.next().unwrap_or(default_s));
        running.push(Reverse((job.submit + Time::from_secs_f64(job.run_time_s), index)));
    }
    predictions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::job;

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
            by("ann", "d", 50.0, 1, 1.0),   // sqrt(10 x 40) = 20
            by("ann", "e", 60.0, 2, 1.0),   // same user, another gang: a, c and d: cube root of 400
            by("bob", "f", 70.0, 2, 1.0),   // same gang, another user: e
            by("bob", "g", 70.5, 4, 1.0),   // anyone: a, c, d, e
        ];
        let found = predictions(&jobs, 10, 99.0);
        let expected = [99.0, 99.0, 10.0, 20.0, 400_f64.cbrt(), 1.0, 400_f64.powf(0.25)];
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
        assert!((predictions(&jobs, 2, 9.0)[6] - 50_f64.sqrt()).abs() < 1e-9);
    }
}
