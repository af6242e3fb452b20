//! The policy `kueue` held to recorded runs of a real Kueue 0.17 with all its cycles.
//!
//! `given`: it gets the real state before each cycle, so that no error can add up. `free`: it plays the lists by itself. The
//! recordings lie in `shared/data/kubernetes-schedules`; where they are missing the tests are noted as skipped.

pub(crate) mod free;
pub(crate) mod given;
mod made;

use std::collections::BTreeMap;
use std::path::Path;

use pleach_dealing::kueue::{KueueConfig, LocalQueue};
use serde_json::{Value, json};

use crate::kubernetes;

type Row = BTreeMap<String, String>;

fn rows(path: &Path) -> Vec<Row> {
    let file = std::fs::File::open(path).unwrap();
    let file: Box<dyn std::io::Read> = match path.extension().is_some_and(|end| end == "gz") {
        true => Box::new(flate2::read::GzDecoder::new(file)),
        false => Box::new(file),
    };
    csv::Reader::from_reader(file)
        .deserialize()
        .map(Result::unwrap)
        .collect()
}

fn number(row: &Row, key: &str) -> f64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key}: {row:?}"))
}

/// A second of the wall clock as the API server writes it.
fn unix_s(text: &str) -> f64 {
    let at: Vec<f64> = text
        .split(['-', 'T', ':', 'Z', '+'])
        .filter_map(|part| part.parse().ok())
        .collect();
    // All recordings are of one month.
    at[2] * 86_400.0 + at[3] * 3600.0 + at[4] * 60.0 + at[5]
}

/// A recorded job.
struct Job {
    name: String,
    pods: u32,
    /// GPUs, cores and GiB of a pod.
    of_pod: [i64; 3],
    priority: i64,
    namespace: String,
    created_s: i64,
    uid: u64,
}

/// A recorded run.
pub(crate) struct Case {
    /// Its jobs and pods as kube-scheduler met them.
    pub(crate) pods: kubernetes::Case,
    config: KueueConfig,
    /// Time 0 on the clock of [`unix_s`].
    zero_s: f64,
    jobs: Vec<Job>,
    log: Vec<Row>,
    /// When pods ended, and whose they were.
    ends: Vec<(f64, u32)>,
}

impl Case {
    fn read(folder: &Path) -> Case {
        let json = |name: &str| -> Value {
            serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
        };
        let works: BTreeMap<String, Row> = rows(&folder.join("workload_list.csv"))
            .into_iter()
            .map(|row| (row["job"].clone(), row))
            .collect();
        let pods = rows(&folder.join("pods.csv"));
        let read = |row: Row| {
            let (name, work) = (row["job"].clone(), &works[&row["job"]]);
            Job {
                pods: number(&row, "pods") as u32,
                of_pod: ["gpus_per_pod", "cpu_per_pod", "memory_gib_per_pod"]
                    .map(|key| number(&row, key) as i64),
                priority: number(work, "priority") as i64,
                namespace: row["namespace"].clone(),
                created_s: unix_s(&work["created_api"]) as i64,
                uid: u64::from_str_radix(&work["uid"].replace('-', "")[..16], 16).unwrap(),
                name,
            }
        };
        let jobs: Vec<Job> = rows(&folder.join("jobs.csv")).into_iter().map(read).collect();
        let numbers: BTreeMap<&str, u32> = jobs.iter().map(|job| job.name.as_str()).zip(0..).collect();
        let ended = pods.iter().filter(|pod| pod["end"] == "Succeeded");
        let mut ends: Vec<(f64, u32)> = ended
            .map(|pod| (number(pod, "ended_s"), numbers[pod["job"].as_str()]))
            .collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        Case {
            pods: kubernetes::Case::read(folder),
            config: config(&json("settings.json")),
            zero_s: unix_s(json("meta.json")["t0"].as_str().unwrap()),
            log: rows(&folder.join("kueue.csv.gz")),
            jobs,
            ends,
        }
    }
}

/// The settings that a run had.
fn config(settings: &Value) -> KueueConfig {
    let object = |object: &Value| {
        let mut spec = object["spec"].clone();
        in_numbers(&mut spec);
        spec["name"] = object["metadata"]["name"].clone();
        spec
    };
    let queues = settings["cluster_queues"].as_array().unwrap().iter().map(object);
    let read = json!({
        "clusterQueues": queues.collect::<Vec<_>>(),
        "cohorts": settings.get("cohort").map(object).into_iter().collect::<Vec<_>>(),
        "flavors": [{"name": "gpus"}],
        "fairSharing": settings["kueue"].get("fairSharing").is_some(),
    });
    let local = settings["local_queues"].as_object().into_iter().flatten();
    KueueConfig {
        local_queues: local
            .map(|(namespace, queue)| LocalQueue {
                namespace: namespace.clone(),
                name: "q".into(),
                cluster_queue: queue.as_str().unwrap().into(),
            })
            .collect(),
        ..serde_json::from_value(read).unwrap()
    }
}

/// Quantities as numbers.
fn in_numbers(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(in_numbers),
        Value::Object(all) => all.values_mut().for_each(in_numbers),
        Value::String(text) => {
            if let Ok(number) = text.trim_end_matches("Gi").parse::<f64>() {
                *value = json!(number);
            }
        }
        _ => {}
    }
}

/// All recorded runs by name; none where they are not here.
pub(crate) fn cases() -> Vec<(String, Case)> {
    let Some(folder) = pleach_tests::data("kubernetes-schedules") else {
        return Vec::new();
    };
    let mut folders: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.retain(|path| path.join("kueue.csv.gz").exists());
    folders.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    folders
        .iter()
        .map(|path| (name(path), Case::read(path)))
        .collect()
}
