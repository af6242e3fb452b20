use std::sync::LazyLock;

use super::ProfileConfig;
use super::measure::{assert_in, assert_near, gpu_time_share, hourly, run_time_s, share};
use super::{GeneratorConfig, generate};
use crate::seed::Seed;
use crate::{JobSpec, Workload};

/// The published cluster, four seeds.
static WHOLE: LazyLock<Vec<Workload>> = LazyLock::new(|| {
    let config = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 60_000,
        num_nodes: 4272,
        ..ProfileConfig::named("alibaba-2026")
    });
    (0..4)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect()
});

fn is_of(job: &JobSpec, gpu_type: &str) -> bool {
    WHOLE[0].classes[usize::from(job.class)]
        .name
        .starts_with(&format!("{gpu_type} x"))
}

#[test]
fn the_fleet_is_the_published_one() {
    let cluster = &WHOLE[0].cluster;
    let of = |name: &str| -> u32 {
        let groups = cluster.node_groups.iter().filter(|group| group.gpu_type == name);
        groups.map(|group| group.count * group.gpus_per_node).sum()
    };
    let types = ["A10", "A100-80GB", "H800", "GPU-series-1", "GPU-series-2", "A800"];
    assert_eq!(types.map(of), [2494, 3456, 1752, 1557, 976, 176]);
    assert_eq!(
        (cluster.tenants[0].name.as_str(), cluster.tenants[11].quota_gpus),
        ("org-13", 0)
    );
}

#[test]
fn jobs_and_gpu_time_divide_as_published() {
    // Of jobs and of GPU time; heavy tails leave a few points between seeds.
    for (name, jobs, time) in [
        ("A10", 0.490, 0.371),
        ("A100-80GB", 0.362, 0.287),
        ("GPU-series-2", 0.065, 0.073),
        ("GPU-series-1", 0.041, 0.132),
        ("H800", 0.024, 0.124),
        ("A800", 0.019, 0.013),
    ] {
        let found = (
            share(&WHOLE, |job| is_of(job, name)),
            gpu_time_share(&WHOLE, |job| is_of(job, name)),
        );
        eprintln!(
            "{name}: {:.3} of jobs ({jobs}), {:.3} of GPU time ({time})",
            found.0, found.1
        );
        assert!(
            (found.0 - jobs).abs() < 0.012 && (found.1 - time).abs() < 0.07,
            "{name}: {found:?}"
        );
    }
    for (low, high, jobs, time) in [
        (0.0, 0.9, 0.104, 0.008),
        (1.0, 1.0, 0.637, 0.547),
        (2.0, 4.0, 0.105, 0.078),
        (5.0, 8.0, 0.098, 0.096),
        (9.0, 16.0, 0.026, 0.036),
        (17.0, 32.0, 0.014, 0.035),
        (33.0, 64.0, 0.007, 0.026),
        (65.0, 128.0, 0.0034, 0.023),
        (129.0, 1e9, 0.0049, 0.151),
    ] {
        let is = |job: &JobSpec| (low..=high).contains(&job.gpus());
        let found = (share(&WHOLE, is), gpu_time_share(&WHOLE, is));
        eprintln!(
            "{low} to {high} GPUs: {:.4} of jobs ({jobs}), {:.3} of GPU time ({time})",
            found.0, found.1
        );
        assert!(
            (found.0 - jobs).abs() < 0.006 && (found.1 - time).abs() < 0.08,
            "{low}: {found:?}"
        );
    }
    let spot = |job: &JobSpec| job.tenant == 11;
    assert_near("spot jobs", share(&WHOLE, spot), 0.110, 0.05);
    assert_in("GPU time of spot jobs", gpu_time_share(&WHOLE, spot), 0.01..=0.05);
}

#[test]
fn run_times_match_and_held_out_shares_are_printed() {
    for (level, published) in [
        (0.5, 1216.0),
        (0.9, 45_773.0),
        (0.95, 461_465.0),
        (0.99, 5_663_026.0),
    ] {
        let found = run_time_s(&WHOLE, level, |_| true);
        eprintln!("quantile {level}: {found:.0} s ({published})");
        assert_near("quantile", found, published, 0.35);
    }
    let long = |job: &JobSpec| job.run_time_s > 259_200.0;
    let (jobs, time) = (share(&WHOLE, long), gpu_time_share(&WHOLE, long));
    eprintln!("more than three days: {jobs:.3} of jobs (0.060), {time:.3} of GPU time (0.784, +-0.05)");
    assert!(
        (jobs - 0.060).abs() < 0.005 && (time - 0.784).abs() < 0.05,
        "{jobs} {time}"
    );
    let most = (0..11)
        .map(|tenant| gpu_time_share(&WHOLE, |job| job.tenant == tenant))
        .fold(0.0, f64::max);
    eprintln!("largest organisation: {most:.3} of the GPU time (0.32)");
    assert_in("largest organisation", most, 0.25..=0.39);
    for workload in WHOLE.iter() {
        let hours = hourly(workload);
        eprintln!(
            "{:.0} jobs an hour (106): variance over mean {:.0} (90), lag-1 {:.2} (0.61)",
            hours.mean, hours.variance_over_mean, hours.correlation
        );
    }
}

#[test]
fn small_clusters_get_only_what_fits_and_every_job_has_a_type() {
    let config = ProfileConfig {
        num_nodes: 60,
        ..ProfileConfig::named("alibaba-2026")
    };
    let workload = generate(&GeneratorConfig::Profile(config), Seed(1)).unwrap();
    for job in &workload.jobs {
        let class = &workload.classes[usize::from(job.class)];
        assert_eq!(
            class.speed.iter().filter(|speed| **speed > 0.0).count(),
            1,
            "{}",
            class.name
        );
        assert!(class.state_gib > 0.0, "{}", class.name);
    }
}
