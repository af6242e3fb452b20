//! The published lists themselves, where they are at hand: rows as published, jobs and work as counted by hand.

use std::path::Path;

use super::tests::{list, read};
use super::*;
use crate::Outcome;

/// Reads a list and compares format, rows, jobs and work, the last to half a GPU hour.
fn check(
    relative: &str,
    format: Format,
    rows: u64,
    jobs: u64,
    gpu_hours: f64,
) -> Option<(Workload, ImportReport)> {
    let (workload, report) = read(relative, &ImportOptions::default())?;
    assert_eq!(
        (report.format, report.account.rows_read, report.jobs),
        (format, rows, jobs),
        "{report}"
    );
    assert!((report.gpu_hours - gpu_hours).abs() < 0.5, "{report}");
    Some((workload, report))
}

#[test]
fn openb_has_its_pods_fractions_and_machines() {
    let name = "alibaba_openb_2023/openb_pod_list_default.csv.gz";
    let Some((workload, report)) = check(name, Format::Mapped("openb"), 8152, 6203, 51_471.0) else {
        return;
    };
    assert_eq!(report.account.rows_of("asks for no GPU"), 1088);
    assert_eq!(report.account.rows_of("never scheduled"), 861);
    assert_eq!(workload.cluster.num_gpus(), 6212);
    assert_eq!(workload.cluster.site_fabric.as_deref(), Some("ethernet-25"));
    let fractional = workload.jobs.iter().filter(|job| job.resources.is_fractional());
    assert_eq!(fractional.count(), 2573);
    let cores: f64 = workload
        .jobs
        .iter()
        .map(|job| job.resources.cpu_cores * f64::from(job.num_gpus))
        .sum();
    assert!((cores - 57_761.316).abs() < 1e-3, "{cores}");
    let ended = |outcome| workload.jobs.iter().filter(|job| job.outcome == outcome).count();
    assert_eq!((ended(Outcome::Completed), ended(Outcome::Failed)), (185, 1869));
}

#[test]
fn openbs_pods_that_are_tied_to_gpu_types_can_run_on_no_other() {
    let name = "alibaba_openb_2023/openb_pod_list_gpuspec33.csv.gz";
    // One pod more is left out than of the list without ties: it asks for 120 cores, and nodes of its type have 96.
    let Some((workload, _)) = check(name, Format::Mapped("openb"), 8152, 6202, 51_470.0) else {
        return;
    };
    let of_class = |name: &str| {
        let class = workload
            .classes
            .iter()
            .position(|class| class.name == name)
            .unwrap();
        workload
            .jobs
            .iter()
            .filter(|job| usize::from(job.class) == class)
            .count()
    };
    assert_eq!(
        (of_class("any"), of_class("T4"), of_class("V100M16|V100M32")),
        (4111, 1132, 126)
    );
    let class = workload
        .classes
        .iter()
        .find(|class| class.name == "V100M16|V100M32")
        .unwrap();
    for (gpu, speed) in workload.cluster.gpu_types.iter().zip(&class.speed) {
        assert_eq!(*speed > 0.0, gpu.name.starts_with("V100"), "{}", gpu.name);
    }
}

#[test]
fn the_machines_embedded_for_openb_and_pai_are_those_of_the_published_lists() {
    let count = |relative: &str, key: &dyn Fn(&[&str]) -> String| {
        let mut lines = super::super::table::Lines::open(&list(relative)?).unwrap();
        let mut found = std::collections::BTreeMap::new();
        lines.next_line().unwrap();
        while let Some(line) = lines.next_line().unwrap() {
            let fields: Vec<_> = line.split(',').collect();
            *found.entry(key(&fields)).or_insert(0) += 1;
        }
        Some(found)
    };
    let number = |text: &str| text.parse::<f64>().unwrap();
    let key = |fields: &[&str]| {
        let (cores, memory) = (number(fields[1]) / 1000.0, number(fields[2]) / 1024.0);
        format!("{} {} {cores} {memory}", fields[4], fields[3])
    };
    let nodes_of = |name: &str| {
        let mapping = mappings::mapping_of(name).unwrap();
        mapping.published.as_ref().unwrap().cluster.nodes.clone()
    };
    let embedded = |name: &str| {
        let of = |nodes: &FleetNodes| {
            let (cores, memory) = (nodes.cpu_cores, nodes.memory_gib);
            let kind = format!("{} {} {cores} {memory}", nodes.gpu_type, nodes.gpus_per_node);
            (kind, nodes.count)
        };
        nodes_of(name)
            .iter()
            .map(of)
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    if let Some(found) = count("alibaba_openb_2023/openb_node_list_gpu_node.csv.gz", &key) {
        assert_eq!(found, embedded("openb"));
    }
    let key = |fields: &[&str]| {
        let (cores, memory) = (number(fields[2]), number(fields[3]));
        format!("{} {} {cores} {memory}", fields[1], fields[4])
    };
    if let Some(mut found) = count("alibaba_pai_2020_sample/pai_machine_spec.csv.gz", &key) {
        assert_eq!(found.remove("CPU 0 96 512"), Some(83));
        assert_eq!(found, embedded("pai"));
    }
    let key = |fields: &[&str]| fields[3].to_owned();
    if let Some(found) = count("alibaba_lingjun_2023/topo.csv.gz", &key) {
        let mut racks = std::collections::BTreeMap::new();
        for hosts in found.values() {
            *racks.entry(*hosts).or_insert(0) += 1;
        }
        let embedded = nodes_of("lingjun");
        let embedded = embedded
            .iter()
            .map(|nodes| (nodes.nodes_per_rack, nodes.count / nodes.nodes_per_rack));
        assert_eq!(racks, embedded.collect());
    }
}

#[test]
fn pai_is_told_from_venus_and_keeps_its_sample() {
    let name = "alibaba_pai_2020_sample/pai_task_sample_60k.csv.gz";
    let Some((workload, report)) = check(name, Format::Mapped("pai"), 60_105, 60_105, 687_854.2) else {
        return;
    };
    assert_eq!(report.account.rows_of("run time cut at 48 h"), 90);
    assert_eq!(
        (workload.cluster.num_gpus(), workload.jobs[0].outcome),
        (6742, Outcome::Completed)
    );
}

#[test]
fn lingjun_has_its_jobs_and_48_racks() {
    let name = "alibaba_lingjun_2023/crux_jobs.csv.gz";
    let Some((workload, report)) = check(name, Format::Mapped("lingjun"), 2498, 2498, 313_063.05) else {
        return;
    };
    assert_eq!(report.account.rows_of("run time below 1 s"), 241);
    let groups = &workload.cluster.node_groups;
    assert_eq!(groups.iter().map(|group| group.count).sum::<u32>(), 847);
    let racks: u32 = groups
        .iter()
        .map(|group| group.count / group.nodes_per_rack)
        .sum();
    assert_eq!(racks, 48);
    assert_eq!(workload.jobs.iter().map(|job| job.num_gpus).max(), Some(744));
}

#[test]
fn thetagpu_has_its_jobs_and_every_requested_wall_time() {
    // 60,851.4 node hours of 8 GPUs; one run time of 0.99 s is raised.
    let name = "alcf_thetagpu_2023/data_thetagpu.csv.gz";
    let Some((workload, report)) = check(name, Format::Mapped("thetagpu"), 22_606, 22_606, 486_811.39) else {
        return;
    };
    assert_eq!(report.account.rows_of("run time below 1 s"), 1);
    assert_eq!(report.account.rows_of("submitted before the row above it"), 6607);
    let jobs = &workload.jobs;
    assert!(jobs.iter().all(|job| {
        job.estimate_s
            .is_some_and(|limit| (300.0..=144_000.0).contains(&limit))
    }));
    let ended = |outcome| jobs.iter().filter(|job| job.outcome == outcome).count();
    assert_eq!(
        (
            ended(Outcome::Completed),
            ended(Outcome::Failed),
            ended(Outcome::Killed)
        ),
        (5524, 12_531, 4551)
    );
    // 30 names and the hidden projects.
    assert_eq!(jobs.iter().filter(|job| job.user.is_none()).count(), 19_206);
    assert_eq!(workload.cluster.tenants.len(), 30);
}

#[test]
fn dlrm_has_its_gpu_instances_cut_to_the_window() {
    let name = "alibaba_dlrm_2025/disaggregated_DLRM_trace.csv.gz";
    let Some((workload, report)) = check(name, Format::Mapped("dlrm"), 23_871, 7386, 2_376_668.15) else {
        return;
    };
    assert_eq!(report.account.rows_of("asks for no GPU"), 16_485);
    assert_eq!(report.account.rows_of("created before the list"), 3123);
    assert_eq!(report.account.rows_of("outlives the list"), 3322);
    assert_eq!(report.account.rows_of("run time below 1 s"), 16);
    assert!(
        workload
            .jobs
            .iter()
            .all(|job| job.num_gpus == 1 && job.resources.cpu_cores >= 1.0)
    );
}

#[test]
fn muri_has_nine_lists_and_four_with_all_jobs_at_once() {
    for (name, jobs, gpu_hours) in [
        ("cluster_trace", 400, 61_343.59),
        ("job_type_1", 992, 116_690.1),
        ("job_type_2", 992, 116_690.1),
        ("job_type_3", 992, 116_690.1),
        ("job_type_4", 992, 116_690.1),
        ("trace1", 1494, 383_326.77),
        ("trace1_pr", 1494, 383_326.77),
        ("trace2", 5755, 824_082.01),
        ("trace2_pr", 5755, 824_082.01),
        ("trace3", 992, 116_690.1),
        ("trace3_pr", 992, 116_690.1),
        ("trace4", 2638, 204_902.1),
        ("trace4_pr", 2638, 204_902.1),
    ] {
        let name = format!("peer_joblists/muri/{name}.csv.gz");
        let Some((workload, report)) = check(&name, Format::Mapped("muri"), jobs, jobs, gpu_hours) else {
            return;
        };
        assert_eq!(workload.cluster.num_gpus(), 64);
        assert_eq!(report.offered_load.is_none(), name.contains("_pr"));
    }
}

#[test]
fn chronus_has_three_mixes_over_a_fortnight() {
    for (name, jobs, gpu_hours) in [
        ("MIX1", 30_756, 371_328.13),
        ("MIX2", 30_746, 378_975.37),
        ("SLO", 30_735, 368_510.92),
    ] {
        let name = format!("peer_joblists/chronus/trace_job_Philly_{name}.csv.gz");
        let Some((workload, report)) = check(&name, Format::Mapped("chronus"), 30_940, jobs, gpu_hours)
        else {
            return;
        };
        assert_eq!(report.account.rows_of("asks for no GPU"), 30_940 - jobs);
        assert_eq!((workload.cluster.tenants.len(), workload.classes.len()), (11, 5));
        // 20,150 minutes between the first and the last submission.
        assert_eq!(workload.arrival_span_s(), 20_150.0 * 60.0);
    }
}

#[test]
fn rubick_eva_and_tiresias_have_their_jobs() {
    let mut tenants = Vec::new();
    for name in ["base", "bp", "mt"] {
        let name = format!("peer_joblists/rubick/workload-{name}.csv");
        let Some((workload, report)) = check(&name, Format::Mapped("rubick"), 406, 406, 618.12) else {
            return;
        };
        assert_eq!(report.account.rows_of("run time below 1 s"), 96);
        let cpus: f64 = workload
            .jobs
            .iter()
            .map(|job| job.resources.cpu_cores * f64::from(job.num_gpus))
            .sum();
        assert!((cpus - 34_968.0).abs() < 1e-6, "{cpus}");
        tenants.push(workload.cluster.tenants.len());
    }
    assert_eq!(tenants, [1, 1, 2]);
    if let Some((workload, report)) = check(
        "peer_joblists/eva/pai_200.json.gz",
        Format::Eva,
        200,
        181,
        3192.91,
    ) {
        assert_eq!(report.account.rows_of("asks for no GPU"), 19);
        assert_eq!(workload.classes.len(), 9);
    }
    if let Some((workload, _)) = check(
        "peer_joblists/tiresias/60_job.csv",
        Format::Mapped("tiresias"),
        60,
        60,
        7.3956,
    ) {
        assert_eq!((workload.classes.len(), workload.cluster.num_gpus()), (10, 64));
    }
}

#[test]
fn shockwave_has_its_lists_with_the_run_times_that_it_states() {
    for (name, jobs, gpu_hours) in [
        ("120_0.2_5_100_40_25", 120, 197.603),
        ("220_0.2_5_100_25_4", 220, 403.869),
        ("460_0.2_5_100_10_1", 460, 896.451),
        ("900_0.2_5_1000_5_15", 900, 1705.397),
        ("900_0.2_5_100_5_15", 900, 1611.718),
    ] {
        let name =
            format!("peer_joblists/shockwave/{name}_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace.gz");
        let Some((workload, _)) = check(&name, Format::Shockwave, jobs, jobs, gpu_hours) else {
            return;
        };
        assert!(workload.offered_load() <= 0.71, "{}", workload.offered_load());
    }
}

#[test]
fn the_batch_logs_have_their_jobs_and_machines() {
    for (name, rows, jobs, gpu_hours, num_gpus, num_limits) in [
        ("KTH-SP2-1996-2", 28_489, 28_489, 560_916.26, 100, 28_489),
        ("SDSC-SP2-filtered", 54_006, 54_006, 1_848_986.33, 128, 54_006),
        ("CTC-SP2-filtered", 77_199, 77_199, 2_299_824.92, 338, 77_199),
        (
            "LLNL-Atlas-2006-2.1-cln",
            43_778,
            39_207,
            30_022_810.29,
            9216,
            32_913,
        ),
        ("HPC2N-excerpt-alea", 3170, 3145, 139_620.63, 240, 3145),
        ("lublin_256", 10_000, 10_000, 581_328.1, 256, 0),
        ("lublin-aaroh", 10_000, 10_000, 563_852.84, 256, 0),
    ] {
        let file = format!("swf/{name}.swf.gz");
        let Some((workload, report)) = check(&file, Format::Swf, rows, jobs, gpu_hours) else {
            return;
        };
        assert_eq!(
            (workload.name.as_str(), workload.cluster.num_gpus()),
            (name, num_gpus),
            "{report}"
        );
        let limits = workload.jobs.iter().filter(|job| job.estimate_s.is_some());
        assert_eq!(limits.count(), num_limits, "{name}");
    }
    if let Some((workload, _)) = read("swf/LLNL-Atlas-2006-2.1-cln.swf.gz", &ImportOptions::default()) {
        assert_eq!(workload.cluster.node_groups[0].gpus_per_node, 8);
    }
}

/// Every file under a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn every_published_file_is_read_whole_or_refused_for_what_it_is() {
    let Some(folder) = list(".") else {
        return;
    };
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    paths.sort();
    let (mut num_read, mut num_refused) = (0, 0);
    for path in paths {
        let name = path.display().to_string();
        let is_prose = name.ends_with(".md") || name.contains("cluster_specs");
        let is_large = [
            "philly_jobs_joined",
            "venus_gpu_jobs",
            "pai_task",
            "CTC-SP2",
            "SDSC-SP2",
        ]
        .iter()
        .any(|large| name.contains(large));
        // The six columns of the Philly part are those of Lingjun's list, as its importer says.
        if is_prose || is_large || name.contains("orig_rfold") {
            continue;
        }
        match import(&path, &ImportOptions::default()) {
            Ok((_, report)) => {
                assert_eq!(
                    report.account.rows_read,
                    report.jobs + report.account.left_out(),
                    "{name}: {report}"
                );
                num_read += 1;
            }
            Err(error) => {
                let text = error.to_string();
                let is_told = [" not ", "these are ", "this is ", "longer than"]
                    .iter()
                    .any(|word| text.contains(word));
                assert!(is_told && !text.contains("no known header"), "{text}");
                num_refused += 1;
            }
        }
    }
    assert!(
        num_read >= 200 && num_refused >= 80,
        "{num_read} read, {num_refused} refused"
    );
}
