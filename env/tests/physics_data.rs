//! The physics of `pleach_scheduler::physics` against the measurements that it was calibrated on. The data is not part
//! of the project; where it is missing the test is noted as skipped.

#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use pleach_scheduler::physics::goodput::POLLUX_MODELS;
use pleach_scheduler::physics::interference::{Interference, Mechanism, Resident, gavel_v100_pairs};
use pleach_scheduler::physics::links::{Fabric, Spread};
use pleach_scheduler::physics::sensitivity::{SYNERGY_MODELS, Share};

/// Measured speed, speed by the rule, by `1 / max(1, sum u)`, and the utilisation of the pair in percent.
type Point = (f64, f64, f64, f64);

/// The content of a data file, unzipped where its name ends in `.gz`; `None` where it is missing.
fn content(path: &str) -> Option<String> {
    let mut file = File::open(pleach_tests::data(path)?).unwrap();
    let mut text = String::new();
    if path.ends_with(".gz") {
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .unwrap();
    } else {
        file.read_to_string(&mut text).unwrap();
    }
    Some(text)
}

/// Rows of a CSV file as column -> value.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

fn root_mean_square(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

#[test]
fn the_sharing_rule_beats_the_mean_and_the_usual_rule_on_lucids_pairs() {
    let (Some(singles), Some(pairs)) = (
        content("lucid/single_data.csv"),
        content("lucid/colocate_info.csv.gz"),
    ) else {
        return;
    };
    let mut alone = BTreeMap::new();
    for row in rows(&singles) {
        let key = ["model", "dataset", "batchsize", "amp"].map(|column| row[column].clone());
        let resident = Resident {
            class: 0,
            utilisation: (number(&row, "gpu_util") / 100.0).clamp(0.001, 1.0),
            bandwidth: (number(&row, "gmem_util") / 100.0).min(1.0),
            memory_gib: number(&row, "gmem") / 1024.0,
            share: 1.0,
        };
        alone.insert(key, resident);
    }
    let mut points: Vec<Point> = Vec::new();
    for row in rows(&pairs) {
        let of = |side: &str| {
            alone[&["model", "dataset", "batchsize", "amp"]
                .map(|column| row[&format!("{column}{side}")].clone())]
        };
        for (mine, other) in [("1", "2"), ("2", "1")] {
            let (resident, neighbour) = (of(mine), of(other));
            let measured = number(&row, &format!("speed{mine}")).min(1.0);
            let rule = Interference::PACKABLE.speed_of(&resident, &[neighbour], 0, Mechanism::Mps, None);
            let usual = 1.0 / (resident.utilisation + neighbour.utilisation).max(1.0);
            points.push((measured, rule, usual, number(&row, "gpu_util")));
        }
    }
    assert_eq!(points.len(), 2 * 1388);
    let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
    let error = |guess: &dyn Fn(&Point) -> f64| {
        root_mean_square(
            &points
                .iter()
                .map(|point| guess(point) - point.0)
                .collect::<Vec<_>>(),
        )
    };
    let (rule, constant, usual) = (error(&|point| point.1), error(&|_| mean), error(&|point| point.2));
    eprintln!("root mean square error: rule {rule:.4}, mean {constant:.4}, 1 / max(1, sum u) {usual:.4}");
    assert!(rule < 0.075 && constant > 0.10 && usual > 0.095);
    // Mean speed by the measured utilisation of the pair, in the bins of the published table.
    for (low, high) in [
        (0.0, 50.0),
        (50.0, 60.0),
        (60.0, 70.0),
        (70.0, 80.0),
        (80.0, 90.0),
        (90.0, 101.0),
    ] {
        let bin: Vec<_> = points
            .iter()
            .filter(|point| (low..high).contains(&point.3))
            .collect();
        let count = bin.len() as f64;
        let measured = bin.iter().map(|point| point.0).sum::<f64>() / count;
        let model = bin.iter().map(|point| point.1).sum::<f64>() / count;
        eprintln!("{low} to {high} %: measured {measured:.3}, rule {model:.3}");
        assert!((model / measured - 1.0).abs() < 0.05);
    }
}

#[test]
fn the_embedded_pairs_are_the_means_of_gavels_table() {
    let Some(text) = content("gavel/pairs.csv.gz") else {
        return;
    };
    let family = |name: &str| name.split(" (").next().unwrap_or(name).to_owned();
    let mut cells: BTreeMap<(String, String), (f64, f64)> = BTreeMap::new();
    for row in rows(&text) {
        let single = number(&row, "scale_factor") == 1.0 && number(&row, "consolidated") == 1.0;
        if row["worker_type"] != "v100" || !single || number(&row, "steps_per_s_a") == 0.0 {
            continue;
        }
        let cell = cells
            .entry((family(&row["model_a"]), family(&row["model_b"])))
            .or_default();
        cell.0 += number(&row, "steps_per_s_a") / number(&row, "iso_a");
        cell.1 += 1.0;
    }
    for entry in gavel_v100_pairs() {
        let (sum, count) = cells[&(entry.victim.clone(), entry.neighbour.clone())];
        assert!((entry.speed - sum / count).abs() < 0.006, "{entry:?}");
    }
}

#[test]
fn the_embedded_surfaces_are_synergys_profiles() {
    let Some(text) = content("synergy/profiles_models.json") else {
        return;
    };
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let list = |value: &serde_json::Value| -> Vec<f64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item.as_f64().unwrap())
            .collect()
    };
    let (cores, memory) = (
        list(&file["cpu_levels_per_gpu"]),
        list(&file["mem_levels_gb_per_gpu"]),
    );
    let mut compared = 0;
    for model in &SYNERGY_MODELS {
        let surface = model.surface();
        let wanted = format!("{}_1", model.name.replace("resnet", "res"));
        let profiles = file["profiles"].as_array().unwrap();
        let profile = profiles
            .iter()
            .find(|profile| profile["profile"] == wanted.as_str())
            .unwrap();
        for (row, cores) in profile["tput"].as_array().unwrap().iter().zip(&cores) {
            for (published, memory_gib) in list(row).iter().zip(&memory) {
                let share = Share {
                    cores: *cores,
                    memory_gib: *memory_gib,
                    storage_mbps: 62.5,
                };
                let speed = surface.speed(share);
                assert!(
                    (speed - published).abs() < 1e-9,
                    "{} at {share:?}: {speed} against {published}",
                    model.name
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 9 * 5 * 10);
}

#[test]
fn the_fitted_profiles_meet_pollux_measured_step_times() {
    for (name, model) in POLLUX_MODELS {
        let Some(text) = content(&format!("pollux/traces/{name}/placements.csv.gz")) else {
            return;
        };
        let mut errors = Vec::new();
        for row in rows(&text) {
            let placement = &row["placement"];
            let num_gpus = placement.bytes().map(|digit| u32::from(digit - b'0')).sum();
            let seconds =
                model
                    .time
                    .iteration_s(num_gpus, placement.len() as u32, number(&row, "local_bsz"), 0);
            errors.push((seconds / number(&row, "step_time")).ln());
        }
        let error = root_mean_square(&errors);
        eprintln!(
            "{name}: {} placements, root mean square log error {error:.3}",
            errors.len()
        );
        assert!(error < 0.13, "{name}: {error}");
    }
}

/// A gang that has `gpus` on each of `domains`, alone in one rack.
fn whole(gpus: u32, domains: u32, nics: u32) -> Spread {
    Spread {
        num_gpus: gpus * domains,
        num_domains: domains,
        domain_gpus_min: gpus,
        domain_nics_min: nics,
        is_one_island: true,
        is_one_rack: true,
        share: 1.0,
    }
}

#[test]
fn gangs_that_share_a_link_share_its_bandwidth() {
    let Some(text) = content("bsbf_hkbu/network_contention/results_avg.csv") else {
        return;
    };
    // 1 Gb/s Ethernet, one GPU on each of eight nodes.
    let mut fabric = Fabric::from_name("t4-pcie").unwrap();
    fabric.between.nic_gb_per_s = 0.125;
    let rows = rows(&text);
    // Below 20 MB the jobs of the benchmark do not overlap all the time.
    for row in rows.iter().filter(|row| number(row, "msg_size") > 2e7) {
        let bytes = number(row, "msg_size");
        let alone = rows
            .iter()
            .find(|other| number(other, "msg_size") == bytes && number(other, "job_num") == 1.0)
            .unwrap();
        let measured = number(row, "avg_latency") / number(alone, "avg_latency");
        let spread = |share| Spread {
            share,
            ..whole(1, 8, 1)
        };
        let shared = spread(1.0 / number(row, "job_num"));
        let model = fabric.all_reduce_s(shared, bytes) / fabric.all_reduce_s(spread(1.0), bytes);
        assert!(
            (model / measured - 1.0).abs() < 0.16,
            "{row:?}: {model} against {measured}"
        );
    }
}

/// The fabric on which a series of the published all-reduces was measured.
fn fabric_of(row: &BTreeMap<String, String>) -> Fabric {
    let series = row["series"].as_str();
    let name = match series {
        _ if series.starts_with("A100x8-p4d") => "aws-p4d",
        _ if series.starts_with("A100") => "dgx-a100-hdr",
        _ if series.starts_with("H100") => "hgx-h100-ndr",
        "H200x8x4-EFA" => "aws-p5en",
        _ if series.starts_with("H200") => "h200-ndr",
        "B200x8x4-EFA" => "aws-p6-b200",
        _ if series.starts_with("B200") => "b200-ndr",
        _ if series.starts_with("GB200") => "gb200-nvl72",
        _ => panic!("{series} has no fabric"),
    };
    let mut fabric = Fabric::from_name(name).unwrap();
    // Four of a node's eight NICs; three points of a p4d that was not tuned, at what its source calls 61 %.
    if series == "A100x8x3-4HDR" {
        fabric.between.nics_per_node = 4;
    }
    if row["mode"] == "untuned" {
        fabric.between.tuned = 0.61;
    }
    fabric
}

#[test]
fn measured_all_reduces_are_met_within_five_percent_from_16_mib_up() {
    let Some(text) = content("world/nccl_points.csv") else {
        return;
    };
    let rows = rows(&text);
    assert_eq!(rows.len(), 182);
    let errors: Vec<(f64, f64)> = rows
        .iter()
        .map(|row| {
            let (gpus, domains) = (number(row, "gpus_node") as u32, number(row, "nodes") as u32);
            let fabric = fabric_of(row);
            let nics = fabric.between.nics_per_node * fabric.inside.nodes_per_domain;
            let (bytes, ranks) = (number(row, "size"), f64::from(gpus * domains));
            let measured = 2.0 * (ranks - 1.0) / ranks * bytes / (number(row, "busbw") * 1e9);
            let model = fabric.all_reduce_s(whole(gpus, domains, nics), bytes);
            (bytes, (model / measured).ln())
        })
        .collect();
    let of = |from: f64| -> Vec<f64> {
        let large = errors.iter().filter(|(bytes, _)| *bytes >= from);
        large.map(|(_, error)| *error).collect()
    };
    for (name, from) in [
        ("16 MiB", 16.0),
        ("1 MiB", 1.0),
        ("32 KiB", 1.0 / 32.0),
        ("1 KiB", 0.0),
    ] {
        let errors = of(from * 1048576.0);
        let most = errors.iter().fold(0.0_f64, |most, error| most.max(error.abs()));
        let rms = root_mean_square(&errors);
        eprintln!(
            "from {name} up: {} points, RMS {rms:.3}, most {most:.2}",
            errors.len()
        );
    }
    let large = of(16.0 * 1048576.0);
    assert_eq!(large.len(), 104);
    assert!(root_mean_square(&large) <= 0.05, "{}", root_mean_square(&large));
    // Smaller ones are latency, of which one cluster's series says little.
    assert!(root_mean_square(&of(1048576.0)) <= 0.09);
}
