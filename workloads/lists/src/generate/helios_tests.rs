use std::sync::LazyLock;

use super::ProfileConfig;
use super::measure::curve;
use super::measure::{assert_in, assert_near, gpu_time_share, hourly, mean, quantile, run_time_s, share};
use super::{GeneratorConfig, generate};
use crate::seed::Seed;
use crate::{JobSpec, Outcome, Workload};

/// Venus itself, four seeds: 133 x 8 = 1,064 GPUs, all virtual clusters, the published load.
static VENUS: LazyLock<Vec<Workload>> = LazyLock::new(|| {
    let config = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 30_000,
        num_nodes: 133,
        load: 0.78,
        num_tenants: 15,
        ..ProfileConfig::named("helios-like")
    });
    (0..4)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect()
});

#[test]
fn run_times_match_the_list() {
    // Published: quantiles of the 63,871 jobs with known run times; mean over all jobs of Venus 13,041 s.
    for (level, published, tolerance) in [
        (0.25, 73.0, 0.1),
        (0.5, 203.0, 0.1),
        (0.75, 1233.0, 0.15),
        (0.9, 13_983.0, 0.15),
        (0.95, 57_376.0, 0.15),
        (0.99, 257_781.0, 0.15),
    ] {
        let found = run_time_s(&VENUS, level, |_| true);
        assert_near(&format!("quantile {level}"), found, published, tolerance);
    }
    assert_near("mean", mean(&VENUS, |job| job.run_time_s), 13_041.0, 0.2);
}

#[test]
fn gangs_hold_the_published_shares_of_jobs_and_gpu_time() {
    for (gang, jobs, gpu_time) in [
        (1, 0.518, 0.044),
        (2, 0.056, 0.031),
        (4, 0.073, 0.047),
        (8, 0.247, 0.289),
        (16, 0.042, 0.167),
        (32, 0.027, 0.225),
    ] {
        let is = |job: &JobSpec| job.num_gpus == gang;
        assert_near(&format!("jobs of {gang}"), share(&VENUS, is), jobs, 0.1);
        assert_near(
            &format!("GPU time of {gang}"),
            gpu_time_share(&VENUS, is),
            gpu_time,
            0.4,
        );
    }
    assert_near(
        "mean gang",
        mean(&VENUS, |job| f64::from(job.num_gpus)),
        6.74,
        0.08,
    );
}

#[test]
fn arrivals_are_as_bursty_as_on_venus() {
    for workload in VENUS.iter() {
        // Published: 29 jobs/h, variance over mean 39, lag-1 correlation 0.48; the next job is of the same user with
        // probability 0.432. Runs of several users overlap here more than they did there.
        let hours = hourly(workload);
        assert_in("jobs per hour", hours.mean, 24.0..=40.0);
        assert_in("variance over mean", hours.variance_over_mean, 27.0..=60.0);
        assert_in("lag-1 correlation", hours.correlation, 0.35..=0.65);
        let pairs = workload.jobs.windows(2);
        let same = pairs.filter(|pair| pair[0].user == pair[1].user).count();
        assert_in("same user", same as f64 / 30_000.0, 0.25..=0.5);
    }
}

#[test]
fn tenants_and_users_are_as_unequal_as_on_venus() {
    // Published: the largest virtual cluster has 0.211 of the jobs, the largest share of GPU time is 0.261; the top 5 %
    // of users have 0.415 of the jobs and the largest 0.072.
    assert_near("largest tenant", share(&VENUS, |job| job.tenant == 0), 0.211, 0.1);
    let most = (0..15).map(|tenant| gpu_time_share(&VENUS, |job| job.tenant == tenant));
    assert_in("most GPU time", most.fold(0.0, f64::max), 0.2..=0.4);
    for workload in VENUS.iter() {
        let mut jobs = std::collections::BTreeMap::new();
        for job in &workload.jobs {
            *jobs.entry(&job.user).or_insert(0.0) += 1.0 / 30_000.0;
        }
        let mut jobs: Vec<f64> = jobs.into_values().collect();
        jobs.sort_by(|a, b| b.total_cmp(a));
        assert_in("largest user", jobs[0], 0.05..=0.12);
        assert_in("top 5 %", jobs[..jobs.len() / 20].iter().sum(), 0.36..=0.52);
    }
}

#[test]
fn jobs_end_as_on_venus_and_failed_ones_are_short() {
    // Published over all jobs of Venus: 52.6 / 27.2 / 20.2 % of jobs, 51.6 / 39.9 / 8.5 % of GPU time; medians of
    // completed and failed jobs 266 s and 63 s.
    let jobs = |outcome| share(&VENUS, |job| job.outcome == outcome);
    assert_in("completed", jobs(Outcome::Completed), 0.50..=0.57);
    assert_in("cancelled", jobs(Outcome::Killed), 0.25..=0.30);
    assert_in("failed", jobs(Outcome::Failed), 0.165..=0.21);
    let gpu_time = |outcome| gpu_time_share(&VENUS, |job| job.outcome == outcome);
    assert_in("GPU time of completed", gpu_time(Outcome::Completed), 0.40..=0.56);
    assert_in("GPU time of cancelled", gpu_time(Outcome::Killed), 0.35..=0.53);
    assert_in("GPU time of failed", gpu_time(Outcome::Failed), 0.05..=0.12);
    let median = |outcome| run_time_s(&VENUS, 0.5, |job| job.outcome == outcome);
    assert_near("median of completed", median(Outcome::Completed), 266.0, 0.15);
    assert_near("median of failed", median(Outcome::Failed), 63.0, 0.25);
}

#[test]
fn cpu_requests_have_the_published_quantiles_and_can_be_left_out() {
    // Published threads per GPU: 0.5, 1, 1, 1, 5, 8 at 10, 25, 50, 75, 90, 99 %.
    let jobs = VENUS.iter().flat_map(|workload| &workload.jobs);
    let mut threads: Vec<f64> = jobs.map(|job| job.resources.cpu_cores).collect();
    for (level, published) in [(0.25, 1.0), (0.5, 1.0), (0.75, 1.0), (0.9, 5.0)] {
        assert_eq!(quantile(&mut threads, level), published, "{level}");
    }
    assert_in("at 10 %", quantile(&mut threads, 0.1), 0.25..=0.5);
    assert_in("at 99 %", quantile(&mut threads, 0.99), 5.0..=16.0);
    let config = ProfileConfig {
        num_jobs: 100,
        cpu_requests: false,
        ..ProfileConfig::named("helios-like")
    };
    let without = generate(&GeneratorConfig::Profile(config), Seed(1)).unwrap();
    assert!(
        without
            .jobs
            .iter()
            .all(|job| job.resources == pleach_scheduler::cluster_spec::Resources::WHOLE_GPU)
    );
}

#[test]
fn the_distribution_itself_has_the_published_medians() {
    for (gang, median) in [(1, 199.0), (8, 210.0), (16, 431.0)] {
        // Medians of the jobs with known run times; over all 125,303 they are 190, 216 and 416 s.
        let found = curve("helios-like", gang).run_time_s(0.5);
        assert_near(&format!("median of {gang}"), found, median, 0.06);
    }
}

#[test]
fn walled_virtual_clusters_get_only_gangs_that_fit() {
    let config = ProfileConfig {
        num_jobs: 400,
        num_nodes: 10,
        num_tenants: 15,
        borrowing: false,
        ..ProfileConfig::named("helios-like")
    };
    let workload = generate(&GeneratorConfig::Profile(config), Seed(3)).unwrap();
    let quota = |job: &JobSpec| workload.cluster.tenants[usize::from(job.tenant)].quota_gpus;
    assert!(workload.jobs.iter().all(|job| job.num_gpus <= quota(job)));
}
