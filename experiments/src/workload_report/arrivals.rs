//! How jobs arrive: counts by hour and day, the shape of a day and a week, bursts.
//!
//! Hours count from the workload's time zero. Whether that is midnight, and the first day a Monday, only the source knows.

use pleach_env::workload::Workload;
use serde::Serialize;

use super::spread::{Summary, share, sorted};

/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;
/// Hours that the series may have: 11 years.
const HOURS_MAX: usize = 100_000;

/// Arrivals.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrivals {
    /// From the first to the last submission, s.
    pub span_s: f64,
    /// Jobs in each hour from that of the first submission to that of the last.
    pub per_hour: Vec<u32>,
    /// Number of the first of these hours from time zero.
    pub first_hour: usize,
    /// Whether the series was cut because the workload is longer than 100,000 hours.
    pub is_cut: bool,
    /// Jobs per hour.
    pub hourly: Summary,
    /// Variance over mean of the hourly counts: 1 for a Poisson process, above for bursts. At least two hours.
    pub variance_to_mean: Option<f64>,
    /// Correlation of the hourly counts with those of the next hour. At least three hours.
    pub lag_1: Option<f64>,
    /// Mean count of each hour of the day over the mean of all hours; none for less than a day. `[24]` or empty
    pub hour_of_day: Vec<f64>,
    /// The same for each day of the week, from the day of time zero; none for less than a week. `[7]` or empty
    pub day_of_week: Vec<f64>,
    /// Time between arrivals, s.
    pub gap_s: Summary,
    /// Part of the gaps that are zero.
    pub gap_zero: Option<f64>,
    /// Part of the jobs that come from the user of the job before, over neighbours whose users are both known.
    pub same_user: Option<f64>,
    /// Jobs in a row from one user, over runs of known users.
    pub user_run: Summary,
}

impl Arrivals {
    /// Arrivals of a workload.
    #[must_use]
    pub fn of(workload: &Workload) -> Arrivals {
        let jobs = &workload.jobs;
        let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
            return Arrivals::default();
        };
        let hour = |submit_s: f64| (submit_s / HOUR_S).floor() as usize;
        let first_hour = hour(first.submit.as_secs_f64());
        let num_hours = hour(last.submit.as_secs_f64()) - first_hour + 1;
        let mut per_hour = vec![0_u32; num_hours.min(HOURS_MAX)];
        for job in jobs {
            if let Some(count) = per_hour.get_mut(hour(job.submit.as_secs_f64()) - first_hour) {
                *count += 1;
            }
        }
        let counts: Vec<f64> = per_hour.iter().map(|count| f64::from(*count)).collect();
        let gaps = jobs
            .windows(2)
            .map(|pair| (pair[1].submit - pair[0].submit).as_secs_f64());
        let gaps = sorted(gaps);
        let zero = gaps.iter().filter(|gap| **gap == 0.0).count();
        let (same_user, user_run) = users(workload);
        let hourly = Summary::of(&sorted(counts.iter().copied()));
        Arrivals {
            span_s: workload.arrival_span_s(),
            is_cut: num_hours > HOURS_MAX,
            variance_to_mean: hourly
                .variation
                .zip(hourly.mean)
                .filter(|_| counts.len() >= 2)
                .map(|(variation, mean)| variation * variation * mean),
            hourly,
            lag_1: lag_1(&counts),
            hour_of_day: profile(&counts, first_hour, 24, 1),
            day_of_week: profile(&counts, first_hour, 7, 24),
            gap_zero: share(zero as f64, gaps.len() as f64),
            gap_s: Summary::of(&gaps),
            same_user,
            user_run,
            per_hour,
            first_hour,
        }
    }

    /// Jobs in each day from time zero that the hours cover: (number of the day, jobs).
    #[must_use]
    pub(crate) fn per_day(&self) -> Vec<(usize, u32)> {
        let mut days: Vec<(usize, u32)> = Vec::new();
        for (offset, count) in self.per_hour.iter().enumerate() {
            let day = (self.first_hour + offset) / 24;
            match days.last_mut() {
                Some(last) if last.0 == day => last.1 += count,
                _ => days.push((day, *count)),
            }
        }
        days
    }
}

/// Autocorrelation at lag 1: sum of (x_t - m)(x_t+1 - m) over sum of (x_t - m)^2.
fn lag_1(counts: &[f64]) -> Option<f64> {
    if counts.len() < 3 {
        return None;
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let products = counts.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let squares = counts.iter().map(|count| (count - mean).powi(2));
    share(products.sum(), squares.sum())
}

/// Mean count in each phase of a period of `num_phases` phases of `hours` hours, over the mean of all phases.
fn profile(counts: &[f64], first_hour: usize, num_phases: usize, hours: usize) -> Vec<f64> {
    if counts.len() < num_phases * hours {
        return Vec::new();
    }
    let (mut sums, mut nums) = (vec![0.0; num_phases], vec![0.0; num_phases]);
    for (offset, count) in counts.iter().enumerate() {
        let phase = (first_hour + offset) / hours % num_phases;
        sums[phase] += count;
        nums[phase] += 1.0;
    }
    let means: Vec<f64> = sums.iter().zip(&nums).map(|(sum, num)| sum / num).collect();
    let mean = means.iter().sum::<f64>() / num_phases as f64;
    means.iter().map(|value| value / mean).collect()
}

/// Part of neighbours of one user, and lengths of runs of one user.
fn users(workload: &Workload) -> (Option<f64>, Summary) {
    let (mut known, mut same) = (0, 0);
    let mut runs: Vec<f64> = Vec::new();
    let mut last: Option<&str> = None;
    for (position, job) in workload.jobs.iter().enumerate() {
        let user = job.user.as_deref();
        if position > 0 && user.is_some() && last.is_some() {
            known += 1;
            same += usize::from(user == last);
        }
        match (user, runs.last_mut()) {
            (Some(_), Some(run)) if user == last => *run += 1.0,
            (Some(_), _) => runs.push(1.0),
            (None, _) => {}
        }
        last = user;
    }
    (
        share(same as f64, f64::from(known)),
        Summary::of(&sorted(runs.into_iter())),
    )
}
