use super::super::measure::{assert_in, assert_near, hourly, mean, share};
use super::super::{GeneratorConfig, Paper, generate};
use super::*;
use crate::table::Table;

fn several(name: &str, num_seeds: u64) -> Vec<Workload> {
    let config = GeneratorConfig::preset(name).unwrap();
    (0..num_seeds)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect()
}

#[test]
fn experiments_have_their_numbers_of_jobs_and_hours() {
    for (name, num_jobs, hours) in [
        ("sia-philly", 160, 8.0),
        ("sia-helios", 160, 8.0),
        ("sia-newtrace", 960, 48.0),
    ] {
        let workloads = several(name, 20);
        let spans = workloads
            .iter()
            .map(|workload| workload.arrival_span_s() / 3600.0);
        assert_near(name, spans.sum::<f64>() / 20.0, hours, 0.05);
        assert!(workloads.iter().all(|workload| workload.jobs.len() == num_jobs));
        assert_eq!(workloads[0].cluster.num_gpus(), 64);
    }
}

#[test]
fn models_go_by_the_gpu_hours_of_the_job() {
    for name in ["sia-philly", "sia-helios", "sia-newtrace"] {
        for workload in several(name, 10) {
            for job in &workload.jobs {
                let hours = job.gpus() * job.run_time_s / 3600.0;
                let category = MODELS[usize::from(job.class)].1;
                let bounds = BOUNDS_H[category] * 0.999_999..=BOUNDS_H[category + 1] * 1.000_001;
                assert!(
                    bounds.contains(&hours),
                    "{hours} h is no {}",
                    MODELS[usize::from(job.class)].0
                );
                assert!(job.num_gpus <= 16 && job.run_time_s <= 86_400.0 * 1.000_001);
            }
        }
    }
}

#[test]
fn the_published_job_lists_have_the_same_split() {
    for (name, prefix, num_lists) in [
        ("sia-philly", "philly_workload-", 8),
        ("sia-newtrace", "newtrace_workload-", 10),
    ] {
        let generated = several(name, 40);
        let mut counts = [0.0; 4];
        for list in 1..=num_lists {
            let path = pleach_tests::data(&format!("traces/peer_joblists/sia/{prefix}{list}.csv.gz"));
            let Some(path) = path else { return };
            let mut table = Table::open(&path, &["name", "application"]).unwrap();
            let application = table.column("application");
            while table.next_row().unwrap() {
                let category = match table.text(application) {
                    "cifar10" => 0,
                    "bert" | "deepspeech2" => 1,
                    "yolov3" => 2,
                    "imagenet" => 3,
                    other => panic!("{other}"),
                };
                counts[category] += 1.0;
            }
        }
        let total: f64 = counts.iter().sum();
        for (category, count) in counts.into_iter().enumerate() {
            let found = share(&generated, |job| MODELS[usize::from(job.class)].1 == category);
            assert!(
                (found - count / total).abs() < 0.015,
                "{name} {category}: {found} for {}",
                count / total
            );
        }
    }
}

#[test]
fn jobs_need_about_the_published_gpu_time() {
    // Published GPU-hours per job under policies that may change the gang: Philly 4.0 to 9.0, Helios 4.8 to 12.1,
    // newTrace 3.0 to 6.4, on GPUs of which some are faster than the T4.
    for (name, range) in [
        ("sia-philly", 4.0..=9.0),
        ("sia-helios", 4.8..=12.1),
        ("sia-newtrace", 3.0..=6.4),
    ] {
        let hours = mean(&several(name, 40), |job| job.gpus() * job.run_time_s / 3600.0);
        assert_in(name, hours, range);
    }
}

#[test]
fn newtrace_swings_between_quiet_and_busy_hours() {
    // Published: 20 jobs/h on average, 5 to 100.
    let workloads = several("sia-newtrace", 10);
    let mut busiest: f64 = 0.0;
    for workload in &workloads {
        assert_in(
            "variance over mean",
            hourly(workload).variance_over_mean,
            2.0..=30.0,
        );
        let mut counts = [0.0; 100];
        for job in &workload.jobs {
            counts[(job.submit.as_secs_f64() / 3600.0) as usize] += 1.0;
        }
        busiest = busiest.max(counts.into_iter().fold(0.0, f64::max));
    }
    assert_in("busiest hour", busiest, 45.0..=130.0);
}

#[test]
fn the_cluster_is_homogeneous_or_has_three_types_in_any_number() {
    let draw = |heterogeneous, num_clusters| {
        let config = SiaConfig {
            heterogeneous,
            num_clusters,
            ..SiaConfig::default()
        };
        generate(&GeneratorConfig::Paper(Paper::SiaPhilly(config)), Seed(1))
            .unwrap()
            .cluster
    };
    assert_eq!(crate::num_gpus_by_type(&draw(true, 1)), [24, 24, 16]);
    assert_eq!(crate::num_gpus_by_type(&draw(true, 3)), [72, 72, 48]);
    assert_eq!(crate::num_gpus_by_type(&draw(false, 2)), [128]);
}

#[test]
fn a_short_longest_run_time_leaves_out_the_large_categories() {
    let config = SiaConfig {
        run_time_s_max: 600.0,
        gang_max: 4,
        ..SiaConfig::default()
    };
    // 4 GPUs for 10 min are 0.67 GPU-hours: only the smallest category is left.
    let workload = generate(&GeneratorConfig::Paper(Paper::SiaPhilly(config)), Seed(1)).unwrap();
    assert!(workload.jobs.iter().all(|job| job.class == 0));
}
