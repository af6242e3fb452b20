//! The policies `kubernetes` and `kubernetes-gangs` held to schedules of a real kube-scheduler 1.36.3: each of its attempts.
//!
//! `given`: they get the real state before each attempt, so that no error can add up. `free`: they play the lists by themselves.
//! `made`: lists of our own, worked by hand. The recordings lie in `shared/data/kubernetes-schedules`; where they are missing the tests
//! are noted as skipped.

pub(crate) mod free;
pub(crate) mod given;
mod made;

use free::workload;

use std::collections::BTreeMap;
use std::path::Path;

use pleach_dealing::kubernetes::{KubernetesConfig, Scoring, Strategy};
use pleach_dealing::slurm::Room;
use serde_json::Value;

/// A node of the recordings; all eight are alike.
const NODE: Room = Room {
    gpus: 8,
    cpu_milli: 64_000,
    memory_mib: 512 << 10,
};
const NUM_NODES: usize = 8;

/// A job of a recorded list; times in seconds after the list's beginning.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    id: String,
    pub(crate) submit_s: f64,
    run_s: f64,
    num_pods: u32,
    ask: Room,
    priority: i32,
    /// When its last pod was bound; none where not all were.
    start_s: Option<f64>,
}

/// A pod, by `NAMESPACE/NAME`.
#[derive(Clone, Debug)]
struct Pod {
    job: usize,
    started_s: Option<f64>,
    /// When it was bound and when it was over, s, and its node; none where it never was.
    on: Option<(f64, f64, usize)>,
}

/// A line of the scheduler's log: when, what, of which pod, more.
type Line = (f64, String, String, String);

/// A recorded run.
pub(crate) struct Case {
    meta: Value,
    config: KubernetesConfig,
    pub(crate) jobs: Vec<Job>,
    pods: BTreeMap<String, Pod>,
    log: Vec<Line>,
    /// The beginning on the wall clock, s.
    t0_s: f64,
}

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

/// The number of `n3`, from 0.
fn node(name: &str) -> usize {
    name[1..].parse::<usize>().unwrap() - 1
}

/// Seconds of a time such as `2026-11-28T09:04:29.455868+00:00`, from the midnight before it.
fn clock_s(text: &str) -> f64 {
    let clock = text.split('T').nth(1).unwrap().split('+').next().unwrap();
    let parts: Vec<f64> = clock.split(':').map(|part| part.parse().unwrap()).collect();
    parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]
}

impl Case {
    pub(crate) fn read(folder: &Path) -> Case {
        let json = |name: &str| -> Value {
            serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
        };
        let (meta, settings) = (json("meta.json"), json("settings.json"));
        let number = |row: &BTreeMap<String, String>, key: &str| row[key].parse::<f64>().ok();
        let of_jobs = rows(&folder.join("jobs.csv"));
        let of_pods = rows(&folder.join("pods.csv"));
        let uses_classes = settings.get("priority_classes").is_some();
        let job = |row: &BTreeMap<String, String>| {
            let bound = of_pods
                .iter()
                .filter(|pod| pod["job"] == row["job"] && !["Failed", "Deleted"].contains(&&*pod["end"]));
            let bound: Vec<f64> = bound.filter_map(|pod| number(pod, "bound_s")).collect();
            let of_pod = |key: &str| number(row, key).unwrap();
            let num_pods = of_pod("pods") as u32;
            Job {
                id: row["job"].clone(),
                submit_s: of_pod("submit_s"),
                run_s: of_pod("run_s"),
                num_pods,
                ask: Room {
                    gpus: of_pod("gpus_per_pod") as u32,
                    cpu_milli: of_pod("cpu_per_pod") as u64 * 1000,
                    memory_mib: (of_pod("memory_gib_per_pod") as u64) << 10,
                },
                priority: if uses_classes {
                    of_pod("priority") as i32
                } else {
                    0
                },
                start_s: (bound.len() >= num_pods as usize).then(|| bound.into_iter().fold(0.0, f64::max)),
            }
        };
        let jobs: Vec<Job> = of_jobs.iter().map(job).collect();
        let numbers: BTreeMap<&str, usize> = jobs.iter().map(|job| &*job.id).zip(0..).collect();
        let pod = |row: &BTreeMap<String, String>| {
            let over_s = number(row, "ended_s").or_else(|| number(row, "gone_s"));
            let on = |bound_s: f64| (bound_s, over_s.unwrap_or(f64::INFINITY), node(&row["node"]));
            let of = Pod {
                job: numbers[&*row["job"]],
                started_s: number(row, "started_s"),
                on: number(row, "bound_s").map(on),
            };
            (format!("{}/{}", row["namespace"], row["pod"]), of)
        };
        let pods = of_pods.iter().map(pod).collect();
        let file = std::fs::File::open(folder.join("scheduler.csv.gz")).unwrap();
        let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
        let scoring = match settings["scheduler"].get("profiles") {
            Some(_) => Scoring {
                strategy: Strategy::MostAllocated,
                gpu: 5,
                ..Scoring::default()
            },
            None => Scoring::default(),
        };
        Case {
            config: KubernetesConfig {
                scoring,
                ..KubernetesConfig::default()
            },
            t0_s: clock_s(meta["t0"].as_str().unwrap()),
            log: reader.deserialize().map(Result::unwrap).collect(),
            meta,
            jobs,
            pods,
        }
    }

    pub(crate) fn is_native(&self) -> bool {
        self.meta["feature_gates"]
            .as_str()
            .unwrap()
            .contains("GangScheduling")
    }
}

/// The recorded runs without Kueue by name; none where they are not here.
pub(crate) fn cases() -> Vec<(String, Case)> {
    let Some(folder) = pleach_tests::data("kubernetes-schedules") else {
        return Vec::new();
    };
    let names = [
        "deadlock",
        "deadlock_native",
        "default",
        "default_again",
        "gangs_barrier",
        "gangs_barrier_again",
        "most_allocated",
        "most_allocated_again",
        "native_gangs",
        "priorities",
    ];
    let read = |name: &&str| ((*name).to_owned(), Case::read(&folder.join(name)));
    names.iter().map(read).collect()
}
