//! What a schedule was worth: the figures that papers on GPU-cluster scheduling report.

use pleach_workloads::Outcome;
use serde::{Deserialize, Serialize};

/// Lower bound on the isolated run time in a slowdown, s, so that a job of a second that waits a minute does not weigh
/// as much as a day that waits two months.
///
/// # Source
/// Bounded slowdown with a bound of 10 s: Feitelson and Rudolph, JSSPP'98.
pub const SLOWDOWN_BOUND_S: f64 = 10.0;

/// One finished job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobOutcome {
    /// Submission, s.
    pub submit_s: f64,
    /// First start, s.
    pub first_start_s: f64,
    /// Finish, s.
    pub finish_s: f64,
    /// Run time alone on the tightest placement of the fastest type that it can use, s.
    pub isolated_s: f64,
    /// Gang size.
    pub num_gpus: u32,
    /// Tenant, as in the workload.
    pub tenant: u16,
    /// How often it was preempted.
    pub num_preemptions: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// How often a failure stopped it.
    pub num_failures: u32,
    /// Work that failures made it do again, in seconds of the reference run.
    pub lost_s: f64,
    /// Work that it left with, in seconds of the reference run: all of it, or what was done when it was killed or given up.
    pub work_s: f64,
    /// Seconds it held GPUs, as many as they were.
    pub held_s: f64,
    /// GPU·s that it held; fractions count as such.
    pub attained_gpu_s: f64,
}

impl JobOutcome {
    /// Job completion time, s.
    #[must_use]
    pub fn jct_s(&self) -> f64 {
        self.finish_s - self.submit_s
    }

    /// Waiting and overhead: JCT less the time that it held GPUs, s.
    #[must_use]
    pub fn wait_s(&self) -> f64 {
        (self.jct_s() - self.held_s).max(0.0)
    }

    /// JCT over isolated run time, both bounded below by `SLOWDOWN_BOUND_S`; at least 1.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        (self.jct_s() / self.isolated_s.max(SLOWDOWN_BOUND_S)).max(1.0)
    }
}

/// Figures of one run. Averages and percentiles are over finished jobs; percentiles are nearest-rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Finished jobs.
    pub num_jobs: f64,
    /// Mean job completion time, s.
    pub avg_jct_s: f64,
    /// Median job completion time, s.
    pub p50_jct_s: f64,
    /// 95th percentile of job completion time, s.
    pub p95_jct_s: f64,
    /// 99th percentile of job completion time, s.
    pub p99_jct_s: f64,
    /// Mean bounded slowdown, at least 1.
    pub avg_slowdown: f64,
    /// Mean time without GPUs, s.
    pub avg_wait_s: f64,
    /// 99th percentile of the time without GPUs, s.
    pub p99_wait_s: f64,
    /// Last finish less first submission, s.
    pub makespan_s: f64,
    /// Held GPU·s over capacity from the first submission to the last finish, 0 to 1; a GPU that two jobs share counts
    /// for both, so it can be more where they do.
    pub utilisation: f64,
    /// Jain's index over the tenants' mean slowdowns, 1/num_tenants to 1.
    pub fairness: f64,
    /// Preemptions in all.
    pub preemptions: f64,
    /// Failures that stopped a job, in all.
    pub failures: f64,
    /// Part of the work done that failures made void, 0 to 1.
    pub lost_work: f64,
}

impl Metrics {
    /// Names and values in a fixed order, for tables and files.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, f64); 14] {
        [
            ("num_jobs", self.num_jobs),
            ("avg_jct_s", self.avg_jct_s),
            ("p50_jct_s", self.p50_jct_s),
            ("p95_jct_s", self.p95_jct_s),
            ("p99_jct_s", self.p99_jct_s),
            ("avg_slowdown", self.avg_slowdown),
            ("avg_wait_s", self.avg_wait_s),
            ("p99_wait_s", self.p99_wait_s),
            ("makespan_s", self.makespan_s),
            ("utilisation", self.utilisation),
            ("fairness", self.fairness),
            ("preemptions", self.preemptions),
            ("failures", self.failures),
            ("lost_work", self.lost_work),
        ]
    }

    /// The figures of finished jobs on a cluster of `num_gpus` GPUs. All zero without jobs.
    #[must_use]
    pub fn of(jobs: &[JobOutcome], num_gpus: u32) -> Metrics {
        if jobs.is_empty() {
            return Metrics::default();
        }
        let sorted = |value: fn(&JobOutcome) -> f64| {
            let mut values: Vec<f64> = jobs.iter().map(value).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let (jct_s, wait_s) = (sorted(JobOutcome::jct_s), sorted(JobOutcome::wait_s));
        let mean = |value: fn(&JobOutcome) -> f64| jobs.iter().map(value).sum::<f64>() / jobs.len() as f64;
        let first_s = jobs.iter().map(|job| job.submit_s).fold(f64::INFINITY, f64::min);
        let last_s = jobs
            .iter()
            .map(|job| job.finish_s)
            .fold(f64::NEG_INFINITY, f64::max);
        let makespan_s = last_s - first_s;
        let held_gpu_s: f64 = jobs.iter().map(|job| job.attained_gpu_s).sum();
        // Work is weighed by gangs: an hour of eight GPUs that is lost is eight times an hour of one.
        let gpu_s = |job: &JobOutcome, work_s: f64| work_s * f64::from(job.num_gpus);
        let lost_gpu_s: f64 = jobs.iter().map(|job| gpu_s(job, job.lost_s)).sum();
        let done_gpu_s: f64 = jobs.iter().map(|job| gpu_s(job, job.work_s + job.lost_s)).sum();
        let capacity_gpu_s = makespan_s * f64::from(num_gpus);
        Metrics {
            num_jobs: jobs.len() as f64,
            avg_jct_s: mean(JobOutcome::jct_s),
            p50_jct_s: nearest_rank(&jct_s, 0.50),
            p95_jct_s: nearest_rank(&jct_s, 0.95),
            p99_jct_s: nearest_rank(&jct_s, 0.99),
            avg_slowdown: mean(JobOutcome::slowdown),
            avg_wait_s: mean(JobOutcome::wait_s),
            p99_wait_s: nearest_rank(&wait_s, 0.99),
            makespan_s,
            utilisation: if capacity_gpu_s > 0.0 {
                held_gpu_s / capacity_gpu_s
            } else {
                0.0
            },
            fairness: jain_over_tenants(jobs),
            preemptions: jobs.iter().map(|job| f64::from(job.num_preemptions)).sum(),
            failures: jobs.iter().map(|job| f64::from(job.num_failures)).sum(),
            lost_work: if done_gpu_s > 0.0 {
                lost_gpu_s / done_gpu_s
            } else {
                0.0
            },
        }
    }
}

/// The smallest value such that at least `share` of all values are not above it. `sorted` is not empty.
fn nearest_rank(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Jain's index of the tenants' mean bounded slowdowns: 1 where all tenants are slowed alike.
///
/// # Source
/// Jain, Chiu and Hawe, DEC-TR-301, 1984: (sum x)^2 / (n sum x^2).
fn jain_over_tenants(jobs: &[JobOutcome]) -> f64 {
    let num_tenants = jobs
        .iter()
        .map(|job| usize::from(job.tenant) + 1)
        .max()
        .unwrap_or(0);
    let mut sums = vec![(0.0, 0.0); num_tenants];
    for job in jobs {
        let (sum, count) = &mut sums[usize::from(job.tenant)];
        *sum += job.slowdown();
        *count += 1.0;
    }
    let means: Vec<f64> = sums
        .iter()
        .filter(|(_, count)| *count > 0.0)
        .map(|(sum, count)| sum / count)
        .collect();
    let (sum, squares): (f64, f64) = means.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    sum * sum / (means.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submit_s: f64, start_s: f64, run_s: f64, num_gpus: u32, tenant: u16) -> JobOutcome {
        JobOutcome {
            submit_s,
            first_start_s: start_s,
            finish_s: start_s + run_s,
            isolated_s: run_s,
            num_gpus,
            tenant,
            outcome: Outcome::Completed,
            num_failures: 0,
            lost_s: 0.0,
            work_s: run_s,
            num_preemptions: 0,
            held_s: run_s,
            attained_gpu_s: run_s * f64::from(num_gpus),
        }
    }

    #[test]
    fn lost_work_is_weighed_by_gangs() {
        // 100 s of 2 GPUs, 20 s of them done twice; 60 s of 1 GPU: 40 of 300 GPU·s were void.
        let failed = JobOutcome {
            num_failures: 1,
            lost_s: 20.0,
            ..job(0.0, 0.0, 100.0, 2, 0)
        };
        let metrics = Metrics::of(&[failed, job(0.0, 0.0, 60.0, 1, 0)], 4);
        assert_eq!((metrics.failures, metrics.lost_work), (1.0, 40.0 / 300.0));
    }

    #[test]
    fn figures_of_three_jobs_worked_by_hand() {
        // On 4 GPUs: JCT 100, 300, 20; waits 0, 100, 15; slowdowns 1, 1.5, 20/10 = 2 (5 s is bounded to 10 s).
        let jobs = [
            job(0.0, 0.0, 100.0, 2, 0),
            job(0.0, 100.0, 200.0, 4, 0),
            job(10.0, 25.0, 5.0, 1, 1),
        ];
        let metrics = Metrics::of(&jobs, 4);
        assert_eq!(metrics.avg_jct_s, 140.0);
        assert_eq!((metrics.p50_jct_s, metrics.p95_jct_s), (100.0, 300.0));
        assert_eq!(metrics.avg_slowdown, 1.5);
        assert_eq!(metrics.avg_wait_s, 115.0 / 3.0);
        assert_eq!(metrics.makespan_s, 300.0);
        assert_eq!(metrics.utilisation, (200.0 + 800.0 + 5.0) / 1200.0);
        // Tenant means 1.25 and 2: (3.25)^2 / (2 * (1.5625 + 4)).
        assert!((metrics.fairness - 3.25 * 3.25 / (2.0 * 5.5625)).abs() < 1e-12);
    }

    #[test]
    fn no_jobs_give_zeros_and_not_nan() {
        assert_eq!(Metrics::of(&[], 8), Metrics::default());
    }
}
