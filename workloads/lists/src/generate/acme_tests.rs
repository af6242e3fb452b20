use std::sync::LazyLock;

use super::ProfileConfig;
use super::measure::{assert_in, assert_near, gpu_time_share, mean, run_time_s, share};
use super::{GeneratorConfig, generate};
use crate::seed::Seed;
use crate::{Outcome, Workload};

/// Seren itself, six seeds: 286 x 8 = 2,288 GPUs.
static SEREN: LazyLock<Vec<Workload>> = LazyLock::new(|| {
    let config = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 30_000,
        num_nodes: 286,
        ..ProfileConfig::named("acme-like")
    });
    (0..6)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect()
});

#[test]
fn evaluation_is_most_jobs_and_pre_training_most_gpu_time() {
    // Published shares of jobs by kind of work; of the GPU time pre-training has 69.5 %, evaluation at most 8.6 %.
    for (class, published) in [0.649, 0.149, 0.146, 0.029, 0.019, 0.009].into_iter().enumerate() {
        let found = share(&SEREN, |job| usize::from(job.class) == class);
        assert_near(&SEREN[0].classes[class].name, found, published, 0.1);
    }
    assert_in(
        "pre-training",
        gpu_time_share(&SEREN, |job| job.class == 5),
        0.65..=0.9,
    );
    assert_in(
        "evaluation",
        gpu_time_share(&SEREN, |job| job.class == 0),
        0.03..=0.09,
    );
}

#[test]
fn gangs_hold_the_published_shares_of_jobs_and_gpu_time() {
    for (gpus, jobs, gpu_time) in [
        (1, 0.540, 0.013),
        (2, 0.654, 0.018),
        (4, 0.679, 0.024),
        (8, 0.967, 0.119),
        (16, 0.979, 0.132),
        (32, 0.988, 0.191),
        (64, 0.993, 0.276),
        (128, 0.996, 0.417),
        (256, 0.997, 0.563),
    ] {
        let found = share(&SEREN, |job| job.num_gpus <= gpus);
        assert!((found - jobs).abs() < 0.01, "jobs up to {gpus}: {found}");
        let found = gpu_time_share(&SEREN, |job| job.num_gpus <= gpus);
        assert!((found - gpu_time).abs() < 0.1, "GPU time up to {gpus}: {found}");
    }
    assert_near(
        "mean gang",
        mean(&SEREN, |job| f64::from(job.num_gpus)),
        5.68,
        0.12,
    );
}

#[test]
fn run_times_match_the_published_distribution() {
    // Published over all GPU jobs: mean 1,414 s, median 122 s, and the share that ended within these times.
    assert_near("mean", mean(&SEREN, |job| job.run_time_s), 1414.0, 0.25);
    assert_near("median", run_time_s(&SEREN, 0.5, |_| true), 122.0, 0.12);
    for (seconds, published) in [
        (4.0, 0.056),
        (16.0, 0.234),
        (32.0, 0.317),
        (128.0, 0.489),
        (512.0, 0.792),
        (2048.0, 0.929),
        (16_384.0, 0.984),
        (65_536.0, 0.996),
    ] {
        let found = share(&SEREN, |job| job.run_time_s <= seconds);
        assert!((found - published).abs() < 0.03, "{seconds}: {found}");
    }
    // By kind of work: medians and 90 % quantiles.
    for (class, median, p90) in [
        (0, 129.0, 1208.0),
        (1, 197.0, 1128.0),
        (2, 77.0, 2288.0),
        (3, 253.0, 5373.0),
        (5, 297.0, 24_600.0),
    ] {
        let is = |job: &crate::JobSpec| job.class == class;
        assert_near("median", run_time_s(&SEREN, 0.5, is), median, 0.25);
        assert_near("90 %", run_time_s(&SEREN, 0.9, is), p90, 0.25);
    }
}

#[test]
fn many_jobs_fail_and_most_gpu_time_is_cancelled() {
    // Published: 49.7 / 7.5 / 42.9 % of jobs completed, cancelled, failed; 21.2 / 66.4 / 12.4 % of GPU time.
    for (outcome, jobs, gpu_time) in [
        (Outcome::Completed, 0.497, 0.212),
        (Outcome::Killed, 0.075, 0.664),
        (Outcome::Failed, 0.429, 0.124),
    ] {
        let found = share(&SEREN, |job| job.outcome == outcome);
        assert!((found - jobs).abs() < 0.01, "{outcome:?}: {found}");
        let found = gpu_time_share(&SEREN, |job| job.outcome == outcome);
        assert!(
            (found - gpu_time).abs() < 0.1,
            "{outcome:?}: {found} of the GPU time"
        );
    }
}

#[test]
fn small_clusters_get_only_gangs_that_fit() {
    let config = ProfileConfig {
        num_jobs: 500,
        num_nodes: 2,
        ..ProfileConfig::named("acme-like")
    };
    let workload = generate(&GeneratorConfig::Profile(config), Seed(1)).unwrap();
    assert!(workload.jobs.iter().all(|job| job.num_gpus <= 16));
}
