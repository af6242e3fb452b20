use super::super::measure::{assert_in, assert_near, share};
use super::super::{GeneratorConfig, generate};
use super::*;

#[test]
fn the_experiment_has_its_jobs_hours_gpus_and_shares() {
    let config = GeneratorConfig::preset("pollux").unwrap();
    let workloads: Vec<Workload> = (0..20)
        .map(|seed| generate(&config, Seed(seed)).unwrap())
        .collect();
    let hours = workloads
        .iter()
        .map(|workload| workload.arrival_span_s() / 3600.0);
    assert_near("hours", hours.sum::<f64>() / 20.0, 8.0, 0.05);
    assert!(
        workloads
            .iter()
            .all(|workload| workload.jobs.len() == 160 && workload.cluster.num_gpus() == 64)
    );
    let jobs: Vec<&JobSpec> = workloads.iter().flat_map(|workload| &workload.jobs).collect();
    for (class, application) in APPLICATIONS.iter().enumerate() {
        let of_class = jobs.iter().filter(|job| usize::from(job.class) == class).count() as f64;
        let expected = application.jobs[0] / 1280.0;
        let seen = of_class / jobs.len() as f64;
        assert_in(application.name, seen - expected, -0.02..=0.02);
    }
    let gang_of_one = share(&workloads, |job| job.num_gpus == 1);
    assert_in("gangs of one GPU", gang_of_one, 0.36..=0.43);
}

#[test]
fn run_times_are_those_of_the_size_categories_on_the_gang_that_is_asked_for() {
    // GPU-hours below 1, below 10, below 100, above (section 5.1), with the fitted throughput on tuned gangs.
    let config = GeneratorConfig::preset("pollux")
        .unwrap()
        .resized(Some(2000), None);
    let workload = generate(&config, Seed(1)).unwrap();
    for job in &workload.jobs {
        let hours = job.gpus() * job.run_time_s / 3600.0;
        let bounds = match APPLICATIONS[usize::from(job.class)].name {
            "ncf" => 0.01..=1.0,
            "cifar10" => 0.5..=5.0,
            "bert" | "deepspeech2" => 1.0..=20.0,
            "yolov3" => 10.0..=100.0,
            _ => 100.0..=1000.0,
        };
        assert!(
            bounds.contains(&hours),
            "{}: {hours} GPU-h on {}",
            job.id,
            job.num_gpus
        );
    }
}

#[test]
fn a_list_keeps_its_order_and_its_gangs_and_is_cut_to_the_cluster() {
    let rows = [(50.0, "imagenet", 48), (7.0, "cifar10", 6)];
    let workload = of_list("two", &rows, false, 64).unwrap();
    let gangs: Vec<(&str, u32)> = workload
        .jobs
        .iter()
        .map(|job| (job.id.as_str(), job.num_gpus))
        .collect();
    assert_eq!(gangs, [("cifar10-1", 6), ("imagenet-0", 48)]);
    // No type of the three has more than 24 GPUs.
    let mixed = of_list("two", &rows, true, 64).unwrap();
    assert_eq!((mixed.jobs[1].num_gpus, mixed.cluster.gpu_types.len()), (24, 3));
    assert!(of_list("bad", &[(0.0, "vgg", 1)], false, 64).is_err());
}
