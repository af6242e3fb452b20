use std::sync::LazyLock;

use super::ProfileConfig;
use super::measure::{assert_in, assert_near, hourly, mean, quantile, run_time_s, share};
use super::site::holds;
use super::{GeneratorConfig, generate};
use crate::seed::Seed;
use crate::{JobSpec, Workload};

/// The published machines and as many jobs an hour as the list, four seeds.
static OPENB: LazyLock<Vec<Workload>> = LazyLock::new(|| {
    let config = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 20_000,
        num_nodes: 1213,
        load: 0.0042,
        ..ProfileConfig::named("openb-like")
    });
    (0..4)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect()
});

fn is_fractional(job: &JobSpec) -> bool {
    job.resources.is_fractional()
}

#[test]
fn requests_are_those_of_the_list() {
    // Published of GPU pods: 43.6 % a share (mean 563 thousandths), 55.4 % one GPU, 1.1 % more.
    assert_near("shares", share(&OPENB, is_fractional), 0.4357, 0.03);
    assert_near("one", share(&OPENB, |job| job.gpus() == 1.0), 0.5537, 0.03);
    assert_in("more", share(&OPENB, |job| job.num_gpus > 1), 0.008..=0.013);
    let milli = |job: &JobSpec| f64::from(u8::from(is_fractional(job))) * f64::from(job.resources.gpu_milli);
    let mean_milli = mean(&OPENB, milli) / share(&OPENB, is_fractional);
    assert_near("mean share", mean_milli, 563.0, 0.02);
    for (milli, pods) in [
        (810, 1078.0),
        (470, 750.0),
        (320, 328.0),
        (650, 253.0),
        (230, 140.0),
        (460, 128.0),
    ] {
        let found = share(&OPENB, |job| job.resources.gpu_milli == milli);
        assert_near(&format!("{milli} thousandths"), found, pods / 7064.0, 0.15);
    }
    // Published per whole GPU: 3.2, 9.8, 11.3, 12.0, 16.0 cores and 5.5, 24, 47, 48, 63 GiB at 10, 25, 50, 75, 90 %.
    let whole = || OPENB[0].jobs.iter().filter(|job| !is_fractional(job));
    let mut cores: Vec<f64> = whole().map(|job| job.resources.cpu_cores).collect();
    let mut memory: Vec<f64> = whole().map(|job| job.resources.memory_gib).collect();
    for (level, published_cores, published_gib) in [
        (0.1, 3.2, 5.5),
        (0.25, 9.8, 24.0),
        (0.5, 11.3, 47.0),
        (0.75, 12.0, 48.0),
        (0.9, 16.0, 63.0),
    ] {
        let what = format!("at {level}");
        assert_near(&what, quantile(&mut cores, level), published_cores, 0.05);
        assert_near(&what, quantile(&mut memory, level), published_gib, 0.1);
    }
}

#[test]
fn run_times_match_the_list() {
    for (level, published, tolerance) in [
        (0.1, 74.0, 0.1),
        (0.25, 175.0, 0.1),
        (0.5, 545.0, 0.1),
        (0.75, 1990.0, 0.1),
        (0.9, 6257.0, 0.1),
        (0.95, 14_700.0, 0.15),
        (0.99, 113_373.0, 0.35),
    ] {
        let found = run_time_s(&OPENB, level, |_| true);
        assert_near(&format!("quantile {level}"), found, published, tolerance);
    }
    assert_near("share", run_time_s(&OPENB, 0.5, is_fractional), 440.0, 0.08);
    assert_near(
        "one",
        run_time_s(&OPENB, 0.5, |job| job.gpus() == 1.0),
        633.0,
        0.08,
    );
}

#[test]
fn arrivals_are_as_bursty_as_in_the_list() {
    for workload in OPENB.iter() {
        // Published: 10 jobs/h, variance over mean 5.7, lag-1 correlation 0.66.
        let hours = hourly(workload);
        assert_in("jobs per hour", hours.mean, 7.5..=15.0);
        assert_in("variance over mean", hours.variance_over_mean, 3.8..=8.5);
        assert_in("lag-1 correlation", hours.correlation, 0.5..=0.8);
    }
}

#[test]
fn constraints_follow_the_wanted_share_and_the_published_types() {
    // Published in gpuspec33: 2,388 of 7,064 GPU pods; of these 1,291 want a T4, 331 G2, 279 P100.
    assert_near("typed", share(&OPENB, |job| job.class > 0), 0.34, 0.05);
    for (name, pods) in [("T4", 1291.0), ("G2", 331.0), ("P100", 279.0)] {
        let class = OPENB[0]
            .classes
            .iter()
            .position(|class| class.name == name)
            .unwrap();
        let found = share(&OPENB, |job| usize::from(job.class) == class);
        assert_near(name, found, pods / 7064.0, 0.1);
        let usable = OPENB[0].classes[class].speed.iter().filter(|speed| **speed > 0.0);
        assert_eq!(usable.count(), 1);
    }
    let config = ProfileConfig {
        num_jobs: 300,
        typed_share: 0.0,
        ..ProfileConfig::named("openb-like")
    };
    let free = generate(&GeneratorConfig::Profile(config), Seed(1)).unwrap();
    assert_eq!(
        (
            free.classes.len(),
            free.jobs.iter().filter(|job| job.class > 0).count()
        ),
        (1, 0)
    );
}

#[test]
fn every_job_fits_the_empty_cluster_at_any_size() {
    for num_nodes in [1, 2, 7, 24] {
        let config = ProfileConfig {
            num_jobs: 2000,
            num_nodes,
            ..ProfileConfig::named("openb-like")
        };
        let workload = generate(&GeneratorConfig::Profile(config), Seed(2)).unwrap();
        assert!(
            workload.jobs.iter().all(|job| holds(
                &workload.cluster,
                &workload.classes[usize::from(job.class)],
                job.num_gpus,
                &job.resources
            )),
            "{num_nodes}"
        );
    }
    let groups = &OPENB[0].cluster.node_groups;
    let gpus: u32 = groups.iter().map(|group| group.count * group.gpus_per_node).sum();
    assert_eq!((gpus, OPENB[0].cluster.gpu_types.len()), (6212, 7));
}
