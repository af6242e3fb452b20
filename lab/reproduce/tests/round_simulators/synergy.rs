//! Synergy: proportional, greedy and tuned grants of CPU and memory, rounds on a grid.

use std::collections::BTreeMap;
use std::path::Path;

use crate::presets::in_rounds::run;
use crate::presets::synergy::{CLOCK, Grant, Ideal, Order, Sensitivity, Synergy};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::Time;
use pleach_scheduler::cluster::Slice;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::physics::sensitivity::Sensitivity as Surface;

use super::recorded::{Comparison, Row, folder, number, rows};

/// GPUs, CPU cores, memory (GiB).
const SERVER: [f64; 3] = [8.0, 24.0, 500.0];

/// The profile of one GPU, which the simulator uses for gangs of any size.
fn sensitivities(synergy: &Path) -> BTreeMap<String, Sensitivity> {
    let text = std::fs::read_to_string(synergy.join("inputs/profiles.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let profiles = file["profiles"].as_array().unwrap().iter();
    profiles
        .filter_map(|profile| {
            let model = profile["profile"].as_str().unwrap().strip_suffix("_1")?;
            let of = |key: &str| profile[key].as_f64().unwrap();
            let sensitivity = Sensitivity {
                iteration_s: of("iter_time_s_fair"),
                cpu_cores: of("cpus_per_gpu_ideal"),
                memory_gib: of("mem_gb_per_gpu_ideal"),
                speedup: of("speedup_at_ideal"),
            };
            Some((model.to_string(), sensitivity))
        })
        .collect()
}

/// Our surface of a model, by the name that it has in the profiles. Language models ask for 20 GiB per GPU there, although
/// the grid of speeds begins at 20.83 GiB: the grid is taken to begin where they ask.
fn surface(model: &str, memory_gib: f64) -> Surface {
    let name = match model {
        "res18" => "resnet18",
        "res50" => "resnet50",
        "bert" | "vae" => "lstm",
        other => other,
    };
    let mut surface = Surface::from_name(name).unwrap();
    surface.memory_gib[0] = surface.memory_gib[0].min(memory_gib);
    surface
}

fn workload(jobs: &[Row], num_servers: u32, models: &BTreeMap<String, Sensitivity>) -> Workload {
    let names: Vec<&String> = models.keys().collect();
    let class = |model: &Sensitivity, name: &str| ModelClass {
        name: name.into(),
        speed: vec![1.0 / model.iteration_s],
        sensitivity: Some(surface(name, model.memory_gib)),
        ..ModelClass::default()
    };
    let job = |row: &Row| JobSpec {
        id: row["job_id"].clone(),
        submit: Time::from_secs_f64(number(row, "arrival_s")),
        num_gpus: number(row, "gpus") as u32,
        run_time_s: number(row, "total_iters"),
        estimate_s: None,
        tenant: 0,
        class: names.iter().position(|name| **name == row["model"]).unwrap() as u16,
        user: None,
        outcome: Outcome::Unknown,
        resources: Resources::WHOLE_GPU,
        observed: None,
    };
    let mut cluster = ClusterSpec::uniform(num_servers, 8, num_servers);
    (
        cluster.node_groups[0].cpu_cores,
        cluster.node_groups[0].memory_gib,
    ) = (SERVER[1], SERVER[2]);
    Workload {
        name: "synergy".into(),
        cluster,
        classes: models.iter().map(|(name, model)| class(model, name)).collect(),
        jobs: jobs.iter().map(job).collect(),
    }
}

/// (round, job, GPUs).
type Lease = (u64, u32, Vec<u32>);

/// Runs a policy; also says whether every job was on the recorded GPUs in every round.
fn compare(synergy: &Path, config: &str, num_servers: u32, policy: &str) -> (Comparison, bool) {
    let models = sensitivities(synergy);
    let folder = synergy.join(config).join(policy);
    let jobs = rows(&folder.join("jobs.csv.gz"));
    let workload = workload(&jobs, num_servers, &models);
    let ideal = |row: &Row| {
        let ideal = Ideal::of(models[&row["model"]], number(row, "gpus") as u32, SERVER);
        let recorded =
            ["cpu_demand", "mem_demand_gb", "speedup_if_demand_met"].map(|column| number(row, column));
        let (cores, memory_gib, speedup) = ideal.figures();
        let same =
            (cores - recorded[0]).abs() + (memory_gib - recorded[1]).abs() + (speedup - recorded[2]).abs();
        assert!(same < 1e-9, "job {}: {ideal:?}", row["job_id"]);
        ideal
    };
    let (order, grant) = policy.split_once('+').unwrap_or((policy, ""));
    let order = match order {
        "FIFO" => Order::Fifo,
        "SRTF" => Order::Srtf,
        "LAS" => Order::Las,
        _ => Order::Ftf,
    };
    let grant = match grant {
        "tune" => Grant::Tune,
        "" => Grant::Greedy,
        _ => Grant::Proportional,
    };
    let mut planner = Synergy::new(order, grant, SERVER, jobs.iter().map(ideal).collect());
    let mut ours: Vec<Lease> = Vec::new();
    let mut round = 0;
    let result = run(&workload, CLOCK, &mut planner, &mut |cluster| {
        round += 1;
        let running = cluster
            .jobs()
            .iter()
            .enumerate()
            .filter(|(_, job)| !job.placement.is_empty());
        ours.extend(running.map(|(id, job)| {
            let gpus = |slice: &Slice| {
                let (server, gpus) = (slice.node.0, slice.gpus);
                (0..8)
                    .filter(move |gpu| gpus >> gpu & 1 == 1)
                    .map(move |gpu| server * 8 + gpu)
            };
            (round, id as u32, job.placement.iter().flat_map(gpus).collect())
        }));
    })
    .unwrap();
    let theirs: Vec<f64> = jobs.iter().map(|row| number(row, "finish_s")).collect();
    let comparison = Comparison::of(&theirs, &result.jobs, 1e-3);
    comparison.print(&format!("synergy {config} {policy}"));
    let [own, other] = planner.num_leases();
    println!("    leases at the speed of our surface: {own}; at another: {other}");
    assert_eq!(planner.problem(), None);
    let mut recorded: Vec<Lease> = rows(&folder.join("rounds.csv.gz"))
        .iter()
        .map(|row| {
            let pairs = row["server/gpu"]
                .split('|')
                .map(|pair| pair.split_once('/').unwrap());
            let mut gpus: Vec<u32> = pairs.map(|(_, gpu)| gpu.parse().unwrap()).collect();
            gpus.sort_unstable();
            (number(row, "round") as u64, number(row, "job_id") as u32, gpus)
        })
        .collect();
    recorded.sort();
    (comparison, recorded == ours)
}

fn check(config: &str, num_servers: u32, num_runs: usize) {
    let Some(synergy) = folder("synergy") else { return };
    let index = rows(&synergy.join("index.csv"));
    let policies = index
        .iter()
        .filter(|row| row["config"] == config && !row["scheduler"].contains("opt"));
    assert_eq!(policies.clone().count(), num_runs, "recorded runs of {config}");
    for row in policies {
        let (comparison, same_gpus) = compare(&synergy, config, num_servers, &row["scheduler"]);
        assert!(
            comparison.all_equal(),
            "{config} {}: {:?}",
            row["scheduler"],
            comparison.first
        );
        assert!(
            same_gpus,
            "{config} {}: some lease is on other GPUs",
            row["scheduler"]
        );
    }
}

#[test]
fn synergy_on_two_servers_is_reproduced_job_by_job_and_gpu_by_gpu() {
    check("syn_s60_2x8", 2, 10);
}

#[test]
fn synergy_on_four_servers_is_reproduced_job_by_job_and_gpu_by_gpu() {
    check("syn_m400_4x8", 4, 7);
}
