use std::sync::LazyLock;

use super::ProfileConfig;
use super::measure::curve;
use super::measure::{assert_in, assert_near, gpu_time_share, hourly, mean, run_time_s, share};
use super::{GeneratorConfig, generate};
use crate::seed::Seed;
use crate::{JobSpec, Workload};

/// The nine clusters as one, four seeds: 862 GPUs busy on average (865 if nothing ever queued).
static ITP: LazyLock<Vec<Workload>> = LazyLock::new(|| {
    let config = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 30_000,
        num_nodes: 154,
        load: 0.7,
        ..ProfileConfig::named("itp-like")
    });
    (0..4)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect()
});

#[test]
fn run_times_match_the_lists() {
    for (level, published) in [
        (0.1, 1212.0),
        (0.25, 4372.0),
        (0.5, 11_183.0),
        (0.75, 16_421.0),
        (0.9, 28_650.0),
        (0.95, 48_740.0),
        (0.99, 142_743.0),
    ] {
        let found = run_time_s(&ITP, level, |_| true);
        assert_near(&format!("quantile {level}"), found, published, 0.1);
    }
    assert_near("mean", mean(&ITP, |job| job.run_time_s), 17_118.0, 0.08);
    for (gang, median) in [
        (1, 10_840.0),
        (2, 2560.0),
        (4, 7790.0),
        (8, 15_381.0),
        (16, 32_267.0),
    ] {
        let found = curve("itp-like", gang).run_time_s(0.5);
        assert_near(&format!("median of {gang}"), found, median, 0.01);
    }
}

#[test]
fn gangs_hold_the_published_shares_of_jobs_and_gpu_time() {
    for (gang, jobs, gpu_time) in [
        (1, 0.8442, 0.132),
        (4, 0.0229, 0.042),
        (8, 0.1072, 0.434),
        (16, 0.0067, 0.088),
        (32, 0.0062, 0.223),
    ] {
        let is = |job: &JobSpec| job.num_gpus == gang;
        let found = share(&ITP, is);
        assert!((found - jobs).abs() < 0.15 * jobs + 0.0005, "{gang}: {found}");
        assert_near(
            &format!("GPU time of {gang}"),
            gpu_time_share(&ITP, is),
            gpu_time,
            0.4,
        );
    }
}

#[test]
fn arrivals_are_as_bursty_as_in_the_lists() {
    for workload in ITP.iter() {
        // Published: 39 jobs/h, variance over mean 57, lag-1 correlation 0.44.
        let hours = hourly(workload);
        assert_in("jobs per hour", hours.mean, 30.0..=48.0);
        assert_in("variance over mean", hours.variance_over_mean, 38.0..=85.0);
        assert_in("lag-1 correlation", hours.correlation, 0.33..=0.6);
        assert!(workload.jobs.iter().all(|job| job.user.is_none()));
    }
}
