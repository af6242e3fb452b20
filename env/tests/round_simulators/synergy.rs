//! Synergy: proportional, greedy and tuned grants of CPU and memory, rounds on a grid.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_env::compat::in_rounds::run;
use pleach_env::compat::synergy::{CLOCK, Grant, Ideal, Order, Sensitivity, Synergy};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::ids::Time;
use pleach_scheduler::spec::{ClusterSpec, ModelClass, Resources};

use super::golden::{Comparison, Row, folder, number, rows};

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

fn workload(jobs: &[Row], num_servers: u32, models: &BTreeMap<String, Sensitivity>) -> Workload {
    let names: Vec<&String> = models.keys().collect();
    let class = |model: &Sensitivity, name: &str| ModelClass {
        name: name.into(),
        speed: vec![1.0 / model.iteration_s],
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
    };
    Workload {
        name: "synergy".into(),
        cluster: ClusterSpec::uniform(num_servers, 8, num_servers),
        classes: models.iter().map(|(name, model)| class(model, name)).collect(),
        jobs: jobs.iter().map(job).collect(),
    }
}

fn compare(synergy: &Path, config: &str, num_servers: u32, policy: &str) -> Comparison {
    let models = sensitivities(synergy);
    let folder = synergy.join(config).join(policy);
    let jobs = rows(&folder.join("jobs.csv.gz"));
    let workload = workload(&jobs, num_servers, &models);
    let ideal = |row: &Row| {
        let ideal = Ideal::of(models[&row["model"]], number(row, "gpus") as u32, SERVER);
        let recorded = ["cpu_demand", "mem_demand_gb", "speedup_if_demand_met"].map(|column| number(row, column));
        let (cores, memory_gib, speedup) = ideal.figures();
        let same = (cores - recorded[0]).abs() + (memory_gib - recorded[1]).abs() + (speedup - recorded[2]).abs();
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
    // What runs where in the first rounds, to find the first difference.
    let mut ours: Vec<(u64, u32, String)> = Vec::new();
    let mut round = 0;
    let result = run(&workload, CLOCK, &mut planner, &mut |cluster| {
        round += 1;
        for (id, job) in cluster.jobs().iter().enumerate().filter(|(_, job)| !job.placement.is_empty()) {
            let gpus = job.placement.iter().flat_map(|slice| {
                let gpus = (0..8).filter(|gpu| slice.gpus >> gpu & 1 == 1);
                gpus.map(|gpu| format!("{}/{}", slice.node.0, slice.node.0 * 8 + gpu))
            });
            ours.push((round, id as u32, gpus.collect::<Vec<String>>().join("|")));
        }
    })
    .unwrap();
    let theirs: Vec<f64> = jobs.iter().map(|row| number(row, "finish_s")).collect();
    let comparison = Comparison::of(&theirs, &result.jobs, 1e-3);
    comparison.print(&format!("synergy {config} {policy}"));
    if let Some(problem) = planner.problem() {
        println!("    {problem}");
    }
    let mut recorded: Vec<(u64, u32, String)> = rows(&folder.join("rounds.csv.gz"))
        .iter()
        .map(|row| {
            let mut gpus: Vec<(u32, u32)> = row["server/gpu"]
                .split('|')
                .map(|pair| pair.split_once('/').unwrap())
                .map(|(server, gpu)| (server.parse().unwrap(), gpu.parse().unwrap()))
                .collect();
            gpus.sort_unstable();
            let gpus: Vec<String> = gpus.iter().map(|(server, gpu)| format!("{server}/{gpu}")).collect();
            (number(row, "round") as u64, number(row, "job_id") as u32, gpus.join("|"))
        })
        .collect();
    recorded.sort();
    let same = recorded.iter().zip(&ours).take_while(|(a, b)| a == b).count();
    if recorded != ours {
        println!("    leases: {} there, {} here, the first {same} on the same GPUs; then {:?}, here {:?}", recorded.len(), ours.len(), recorded.get(same), ours.get(same));
    }
    comparison
}

fn check(config: &str, num_servers: u32) {
    let Some(synergy) = folder("synergy") else { return };
    let index = rows(&synergy.join("index.csv"));
    let policies = index.iter().filter(|row| row["config"] == config && !row["scheduler"].contains("opt"));
    for row in policies {
        let comparison = compare(&synergy, config, num_servers, &row["scheduler"]);
        assert!(comparison.mean_within(0.5), "{config} {}", row["scheduler"]);
    }
}

#[test]
fn synergy_on_two_servers() {
    check("syn_s60_2x8", 2);
}

#[test]
fn synergy_on_four_servers() {
    check("syn_m400_4x8", 4);
}
