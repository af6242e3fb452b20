use std::sync::LazyLock;

use super::ProfileConfig;
use super::measure::{assert_in, assert_near, gpu_time_share, hourly, mean, run_time_s, share};
use super::{GeneratorConfig, generate};
use crate::seed::Seed;
use crate::{JobSpec, Workload};

/// As many jobs an hour as the sample of the trace has, four seeds.
static PAI: LazyLock<Vec<Workload>> = LazyLock::new(|| {
    let config = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 30_000,
        load: 0.33,
        ..ProfileConfig::named("pai-share")
    });
    (0..4)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect()
});

#[test]
fn demands_are_the_published_ones() {
    // Published over all GPU jobs: mean 0.683, median 0.5, at most 8 GPUs.
    assert_near("mean", mean(&PAI, JobSpec::gpus), 0.683, 0.03);
    let mut gpus: Vec<f64> = PAI[0].jobs.iter().map(JobSpec::gpus).collect();
    assert_eq!(super::measure::quantile(&mut gpus, 0.5), 0.5);
    for (gpus, jobs, gpu_time) in [
        (1, 0.971, 0.681),
        (2, 0.986, 0.729),
        (4, 0.991, 0.787),
        (8, 1.0, 1.0),
    ] {
        let is = |job: &JobSpec| job.num_gpus <= gpus;
        assert_near(&format!("jobs up to {gpus}"), share(&PAI, is), jobs, 0.003);
        assert_near(
            &format!("GPU time up to {gpus}"),
            gpu_time_share(&PAI, is),
            gpu_time,
            0.15,
        );
    }
    let fractional = share(&PAI, |job| job.resources.is_fractional());
    assert_in("shares of a GPU", fractional, 0.6..=0.66);
}

#[test]
fn run_times_match_the_published_distribution() {
    // Published over all 1,037,085 GPU jobs: mean 4,787 s, median 481 s; share finished within 64, 1,024, 8,192, 65,536 s.
    assert_near("mean", mean(&PAI, |job| job.run_time_s), 4787.0, 0.1);
    assert_near("median", run_time_s(&PAI, 0.5, |_| true), 481.0, 0.1);
    for (seconds, published) in [(64.0, 0.211), (1024.0, 0.608), (8192.0, 0.871), (65_536.0, 0.99)] {
        let found = share(&PAI, |job| job.run_time_s <= seconds);
        assert!((found - published).abs() < 0.03, "{seconds}: {found}");
    }
}

#[test]
fn arrivals_and_users_match_the_trace() {
    for workload in PAI.iter() {
        // The sample: 39 jobs/h, variance over mean 8.9, lag-1 correlation 0.43. Published: 5 % of users submit 77 %.
        let hours = hourly(workload);
        assert_in("jobs per hour", hours.mean, 35.0..=44.0);
        assert_in("variance over mean", hours.variance_over_mean, 7.0..=12.0);
        assert_in("lag-1 correlation", hours.correlation, 0.35..=0.6);
        let mut jobs = std::collections::BTreeMap::new();
        for job in &workload.jobs {
            *jobs.entry(&job.user).or_insert(0.0) += 1.0 / 30_000.0;
        }
        let mut jobs: Vec<f64> = jobs.into_values().collect();
        jobs.sort_by(|a, b| b.total_cmp(a));
        assert_in("top 5 %", jobs[..65].iter().sum(), 0.74..=0.82);
    }
}

#[test]
fn machines_keep_their_mix_at_any_size() {
    let draw = |num_nodes| {
        let config = ProfileConfig {
            num_jobs: 50,
            num_nodes,
            ..ProfileConfig::named("pai-share")
        };
        generate(&GeneratorConfig::Profile(config), Seed(1)).unwrap()
    };
    assert_eq!(draw(1814).cluster.num_gpus(), 6742);
    let by_type = crate::num_gpus_by_type(&draw(1814).cluster);
    assert_eq!(by_type, [1596, 994, 2240, 1080, 832]);
    let tiny = draw(1);
    assert!(tiny.jobs.iter().all(|job| job.num_gpus <= 2));
}

#[test]
fn without_sharing_every_job_has_whole_gpus() {
    let config = ProfileConfig {
        num_jobs: 200,
        sharing: false,
        ..ProfileConfig::named("pai-share")
    };
    let workload = generate(&GeneratorConfig::Profile(config), Seed(1)).unwrap();
    assert!(workload.jobs.iter().all(|job| !job.resources.is_fractional()));
}
