//! What tests measure on generated workloads.

use super::ProfileConfig;
use super::profile::row;
use super::quantiles::Curve;
use crate::{JobSpec, Workload};

/// Run times of a gang in a profile of this crate.
pub(super) fn curve(profile: &str, gang: u32) -> Curve {
    let profile = ProfileConfig::named(profile).profile;
    row(&profile.works[0].run_times, gang).unwrap().clone()
}

/// Quantile of some values; sorts them.
pub(super) fn quantile(values: &mut [f64], level: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(level * (values.len() - 1) as f64) as usize]
}

/// Quantile of the run times of the jobs that `is` picks, s.
pub(super) fn run_time_s(workloads: &[Workload], level: f64, is: impl Fn(&JobSpec) -> bool) -> f64 {
    let jobs = workloads.iter().flat_map(|workload| &workload.jobs);
    let mut times: Vec<f64> = jobs.filter(|job| is(job)).map(|job| job.run_time_s).collect();
    quantile(&mut times, level)
}

/// Share of the jobs that `is` picks.
pub(super) fn share(workloads: &[Workload], is: impl Fn(&JobSpec) -> bool) -> f64 {
    let jobs = || workloads.iter().flat_map(|workload| &workload.jobs);
    jobs().filter(|job| is(job)).count() as f64 / jobs().count() as f64
}

/// Share of the GPU time that belongs to the jobs that `is` picks.
pub(super) fn gpu_time_share(workloads: &[Workload], is: impl Fn(&JobSpec) -> bool) -> f64 {
    let jobs = || workloads.iter().flat_map(|workload| &workload.jobs);
    let work = |job: &JobSpec| job.gpus() * job.run_time_s;
    let picked: f64 = jobs().filter(|job| is(job)).map(work).sum();
    picked / jobs().map(work).sum::<f64>()
}

/// Mean over the jobs.
pub(super) fn mean(workloads: &[Workload], value: impl Fn(&JobSpec) -> f64) -> f64 {
    let jobs = || workloads.iter().flat_map(|workload| &workload.jobs);
    jobs().map(value).sum::<f64>() / jobs().count() as f64
}

/// Arrivals by hour: their mean, variance over mean, and correlation of neighbouring hours.
pub(super) struct Hourly {
    pub mean: f64,
    pub variance_over_mean: f64,
    pub correlation: f64,
}

/// Counts arrivals in whole hours.
pub(super) fn hourly(workload: &Workload) -> Hourly {
    let num_hours = (workload.arrival_span_s() / 3600.0) as usize;
    let mut counts = vec![0.0; num_hours + 1];
    for job in &workload.jobs {
        counts[(job.submit.as_secs_f64() / 3600.0) as usize] += 1.0;
    }
    counts.truncate(num_hours);
    let mean = counts.iter().sum::<f64>() / num_hours as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / num_hours as f64;
    let neighbours = counts.windows(2);
    let covariance: f64 = neighbours.map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    Hourly {
        mean,
        variance_over_mean: variance / mean,
        correlation: covariance / num_hours as f64 / variance,
    }
}

/// Panics unless `found` lies within `tolerance` (a ratio, 0.1 = 10 %) of `published`.
#[track_caller]
pub(super) fn assert_near(what: &str, found: f64, published: f64, tolerance: f64) {
    assert!(
        (found / published - 1.0).abs() <= tolerance,
        "{what}: {found} for {published}"
    );
}

/// Panics unless `found` lies in `range`.
#[track_caller]
pub(super) fn assert_in(what: &str, found: f64, range: std::ops::RangeInclusive<f64>) {
    assert!(range.contains(&found), "{what}: {found} not in {range:?}");
}
