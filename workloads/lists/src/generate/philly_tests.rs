use super::ProfileConfig;
use super::measure::curve;
use super::{GeneratorConfig, generate};
use crate::seed::Seed;
use crate::{JobSpec, Outcome, Workload};

fn run_time_s(gang: u32, level: f64) -> f64 {
    curve("philly-like", gang).run_time_s(level)
}

fn share_below(gang: u32, longest_s: f64) -> f64 {
    curve("philly-like", gang).share_below(longest_s)
}

fn draw(num_jobs: usize, change: impl FnOnce(&mut ProfileConfig)) -> Workload {
    let mut config = ProfileConfig {
        num_jobs,
        ..ProfileConfig::named("philly-like")
    };
    change(&mut config);
    generate(&GeneratorConfig::Profile(config), Seed(17)).unwrap()
}

/// Philly itself: 311 x 8 = 2,488 GPUs at the offered load 0.64.
fn philly_sized() -> Workload {
    draw(60_000, |config| {
        (config.num_nodes, config.load, config.num_tenants) = (311, 0.64, 11);
    })
}

fn quantile(values: &mut [f64], level: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(level * (values.len() - 1) as f64) as usize]
}

#[test]
fn run_times_by_gang_size_match_the_trace() {
    let workload = philly_sized();
    // (gang, median s, p90 s, tolerance): jobs come in correlated runs, so gangs with few jobs get more room.
    for (gang, median, p90, tolerance) in [
        (1, 1199.0, 15_589.0, 0.15),
        (4, 8387.0, 225_143.0, 0.5),
        (8, 12_534.0, 365_267.0, 0.4),
        (16, 12_792.0, 234_411.0, 0.9),
    ] {
        let jobs = workload.jobs.iter().filter(|job| job.num_gpus == gang);
        let mut times: Vec<f64> = jobs.map(|job| job.run_time_s).collect();
        for (level, published) in [(0.5, median), (0.9, p90)] {
            let found = quantile(&mut times, level);
            assert!(
                (found / published).ln().abs() < tolerance,
                "{gang} {level}: {found} for {published}"
            );
        }
    }
}

#[test]
fn the_mix_of_gangs_tenants_and_ends_matches_the_trace() {
    let workload = philly_sized();
    let share = |is: &dyn Fn(&JobSpec) -> bool| {
        workload.jobs.iter().filter(|job| is(job)).count() as f64 / workload.jobs.len() as f64
    };
    for (gang, published) in [(1, 0.8665), (2, 0.0226), (4, 0.0492), (8, 0.0512), (16, 0.0076)] {
        let found = share(&|job| job.num_gpus == gang);
        assert!(
            (found - published).abs() < 0.2 * published + 0.001,
            "{gang}: {found}"
        );
    }
    assert!((share(&|job| job.tenant == 0) - 0.471).abs() < 0.04);
    assert!((share(&|job| job.outcome == Outcome::Completed) - 0.713).abs() < 0.05);
    let large = |job: &JobSpec| job.num_gpus >= 8;
    let failed = share(&|job| large(job) && job.outcome == Outcome::Failed) / share(&large);
    assert!((0.36..0.48).contains(&failed), "{failed}");
}

#[test]
fn arrivals_are_as_bursty_as_the_trace() {
    let workload = philly_sized();
    let same = workload
        .jobs
        .windows(2)
        .filter(|pair| pair[0].user == pair[1].user);
    let same = same.count() as f64 / workload.jobs.len() as f64;
    // Published 0.582 for ten virtual clusters.
    assert!((0.45..0.68).contains(&same), "same user {same}");
    let num_hours = (workload.arrival_span_s() / 3600.0) as usize;
    let mut counts = vec![0.0; num_hours + 1];
    for job in &workload.jobs {
        counts[(job.submit.as_secs_f64() / 3600.0) as usize] += 1.0;
    }
    counts.truncate(num_hours);
    let mean = counts.iter().sum::<f64>() / num_hours as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / num_hours as f64;
    let lag: f64 = counts
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    let lag = lag / num_hours as f64 / variance;
    // Published for the dense window: mean 56 jobs/h, variance over mean 149, lag-1 correlation 0.42.
    assert!((30.0..90.0).contains(&mean), "mean {mean}");
    assert!(
        (90.0..250.0).contains(&(variance / mean)),
        "ratio {}",
        variance / mean
    );
    assert!((0.25..0.6).contains(&lag), "lag {lag}");
}

#[test]
fn limits_overstate_as_users_do() {
    let workload = draw(20_000, |_| {});
    let mut factors: Vec<f64> = workload
        .jobs
        .iter()
        .map(|job| job.estimate_s.unwrap() / job.run_time_s)
        .collect();
    let median = quantile(&mut factors, 0.5);
    // Medians of three HPC logs: 2.4, 3.7, 6.4.
    assert!((2.4..6.4).contains(&median), "{median}");
    assert!(factors[0] >= 1.0);
}

#[test]
fn small_clusters_get_only_gangs_that_fit() {
    let walled = draw(500, |config| {
        (config.num_nodes, config.gpus_per_node, config.borrowing) = (2, 4, false);
    });
    let largest = walled.jobs.iter().map(|job| job.num_gpus).max().unwrap();
    assert!(largest <= 4, "{largest}");
    let tiny = draw(50, |config| {
        (config.num_nodes, config.gpus_per_node, config.num_tenants) = (1, 1, 11);
    });
    assert!(tiny.jobs.iter().all(|job| job.num_gpus == 1));
    assert_eq!(draw(1, |_| {}).jobs.len(), 1);
}

#[test]
fn run_times_can_be_cut_without_a_pile_up() {
    let workload = draw(20_000, |config| config.run_time_s_max = 7200.0);
    let longest = workload.jobs.iter().map(|job| job.run_time_s).fold(0.0, f64::max);
    assert!(longest <= 7200.0, "{longest}");
    let at_end = workload.jobs.iter().filter(|job| job.run_time_s > 7190.0).count();
    assert!(at_end < 60, "{at_end}");
}

#[test]
fn quantiles_and_their_inverse_agree() {
    for gang in [1, 2, 4, 8, 12, 16, 24, 32, 128] {
        for level in [0.001, 0.05, 0.33, 0.5, 0.777, 0.9, 0.9995] {
            let seconds = run_time_s(gang, level);
            let back = share_below(gang, seconds);
            assert!(
                (run_time_s(gang, back) / seconds - 1.0).abs() < 1e-9,
                "{gang} {level}"
            );
        }
        assert_eq!(share_below(gang, 1e8), 1.0);
    }
    let profile = ProfileConfig::default().profile;
    assert!((profile.works[0].runs[0].of.mean(usize::MAX) - 2.85).abs() < 0.15);
}

#[test]
fn the_distribution_itself_has_the_published_median_and_mean() {
    // Published medians by gang size, s; over all jobs the mean is 35,599 s.
    for (gang, median) in [
        (1, 1199.0),
        (2, 30.0),
        (4, 8387.0),
        (8, 12_534.0),
        (16, 12_792.0),
        (32, 4020.0),
    ] {
        assert!((run_time_s(gang, 0.5) / median - 1.0).abs() < 1e-3, "{gang}");
    }
    let mean_of = |gang| curve("philly-like", gang).mean_s(0.0, 1.0);
    let profile = ProfileConfig::default().profile;
    let mix = &profile.works[0].mix;
    let jobs: f64 = mix.iter().map(|row| row.jobs).sum();
    let mean = mix.iter().map(|row| mean_of(row.gpus) * row.jobs).sum::<f64>() / jobs;
    assert!((mean / 35_599.0 - 1.0).abs() < 0.05, "{mean}");
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let refusal = |change: &dyn Fn(&mut ProfileConfig)| {
        let mut config = ProfileConfig::named("philly-like");
        change(&mut config);
        generate(&GeneratorConfig::Profile(config), Seed(1))
            .unwrap_err()
            .to_string()
    };
    assert!(refusal(&|c| c.num_jobs = 0).contains("generator.num_jobs = 0"));
    assert!(refusal(&|c| c.load = f64::NAN).contains("generator.load = NaN"));
    assert!(refusal(&|c| c.num_nodes = 0).contains("generator.num_nodes"));
    assert!(refusal(&|c| c.gpus_per_node = 65).contains("generator.gpus_per_node"));
    assert!(refusal(&|c| c.num_tenants = 12).contains("generator.num_tenants"));
    assert!(refusal(&|c| c.run_time_s_max = 1.0).contains("generator.run_time_s_max"));
    assert!(refusal(&|c| c.gang_max = Some(0)).contains("generator.gang_max"));
    assert!(refusal(&|c| c.locality.cross_rack = 0.0).contains("cross_rack"));
}
