//! Pollux and Sia: 64 GPUs, 160 elastic jobs in 8 h.
//!
//! Jobs are drawn by the generator `pollux`, or read from the published lists where a folder with them is given
//! (`pollux/workloads/workload-N.csv.gz`, `sia/workloads/philly/workload-N.csv.gz`).

mod tuned;

use std::path::Path;
use std::sync::Arc;

use pleach_env::workload::Workload;
use pleach_env::workload::generate::pollux::{APPLICATIONS, Row, of_list};
use pleach_env::workload::generate::{GeneratorConfig, Paper, PolluxConfig, generate};
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::{Seed, SimConfig, SimResult};
use pleach_scheduler::ActionKind;
use pleach_scheduler::physics::overheads::Overheads;
use serde_json::{Value, json};

pub(super) use self::tuned::tuned;
use super::{Benchmark, Effort, Figure, Reproduction, Run, Series, Target, plot, run_all};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: "P1",
        title: "Pollux against Tiresias with tuned gangs",
        source: "Pollux, OSDI'21, table 2",
        setup: "64 T4 on 16 nodes, 160 jobs in 8 h, 30 s for every start. Eight seeds of the generator pollux, or the eight published \
                lists. Tiresias leaves gangs and batches as users had tuned them, spread over the nodes, as the released baseline \
                does. Left out: Optimus (no such planner here), untuned gangs. Tolerance 15 %.",
        run: p1,
    },
    Benchmark {
        id: "S1",
        title: "Sia, Pollux and Gavel on three GPU types",
        source: "Sia, SOSP'23, table 3 (Philly)",
        setup: "24 T4, 24 RTX 2080 Ti and 16 A100, 160 jobs in 8 h without recommender jobs, restarts of 25 to 250 s by model. Five \
                seeds, or the published lists. Types differ by application as measured for Sia at its middle batch, not by batch. \
                Tolerance 15 %.",
        run: s1,
    },
    Benchmark {
        id: "S2",
        title: "Finish-time fairness of Sia, Pollux and Gavel",
        source: "Sia, SOSP'23, section 5.3",
        setup: "As S1. A job's ratio is its JCT over the time that it would take alone on its share of the GPUs, weighted over \
                the types; its share is all GPUs over the mean number of jobs while it was there. The order is the claim. \
                Planning times are in pleach tournament: a reproduction reads no clock.",
        run: s2,
    },
];

const HOUR_S: f64 = 3600.0;

/// One system of a comparison.
struct System {
    name: &'static str,
    policy: &'static str,
    settings: Value,
    /// Its jobs keep gang and batch, with so many GPUs on each node; none = they do not.
    rigid_on: Option<u32>,
}

fn system(name: &'static str, policy: &'static str, settings: Value) -> System {
    System {
        name,
        policy,
        settings,
        rigid_on: None,
    }
}

/// Tiresias of the authors' simulator: two queues with a limit of 16 GPU-hours.
fn tiresias() -> System {
    let settings = json!({ "thresholds_gpu_s": [57_600.0], "consolidate_below": 0.0 });
    System {
        rigid_on: Some(1),
        ..system("Tiresias, tuned", "tiresias", settings)
    }
}

/// The published lists 1 to 8 of a folder, where they are.
pub(super) fn published_lists(
    effort: &Effort,
    folder: &str,
    heterogeneous: bool,
) -> Result<Option<Vec<Arc<Workload>>>, Error> {
    let paths = (1..9).map(|number| {
        let data = effort.data.as_ref()?;
        let path = data.join(folder).join(format!("workload-{number}.csv.gz"));
        path.exists().then_some(path)
    });
    let Some(paths) = paths.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let most = effort.size(effort.num_seeds.unwrap_or(paths.len()), 1);
    let read = paths.iter().take(most).map(|path| read(path, heterogeneous));
    read.collect::<Result<_, Error>>().map(Some)
}

/// The jobs: the published lists, where they are, else the generator.
fn workloads(effort: &Effort, heterogeneous: bool, num_seeds: usize) -> Result<Vec<Arc<Workload>>, Error> {
    let folder = if heterogeneous {
        "sia/workloads/philly"
    } else {
        "pollux/workloads"
    };
    if let Some(lists) = published_lists(effort, folder, heterogeneous)? {
        return Ok(lists);
    }
    let config = PolluxConfig {
        num_jobs: effort.size(160, 12),
        heterogeneous,
        ncf: !heterogeneous,
        run_time_s_max: effort.size(1e6, 20_000.0),
        ..PolluxConfig::default()
    };
    let config = GeneratorConfig::Paper(Paper::Pollux(config));
    let draw = |seed: &Seed| {
        let drawn = generate(&config, *seed)?;
        Ok(Arc::new(if heterogeneous { measured(drawn) } else { drawn }))
    };
    effort.seeds(num_seeds).iter().map(draw).collect()
}

/// A published list; its applications become elastic jobs.
fn read(path: &Path, heterogeneous: bool) -> Result<Arc<Workload>, Error> {
    let (list, _) = import(path, &ImportOptions::default())?;
    let rows: Vec<Row<'_>> = list
        .jobs
        .iter()
        .map(|job| {
            let application = list.classes[usize::from(job.class)].name.as_str();
            (job.submit.as_secs_f64(), application, job.num_gpus)
        })
        .collect();
    let workload = of_list(&list.name, &rows, heterogeneous, 64)?;
    Ok(Arc::new(if heterogeneous {
        measured(workload)
    } else {
        workload
    }))
}

/// Speed of an application on the RTX 2080 Ti and the A100 over that on the T4.
///
/// # Source
/// Seconds of a step on one GPU that were released with Sia, at the middle one of three measured batches.
const SPEEDS: [(&str, [f64; 2]); 5] = [
    ("cifar10", [1.62, 3.34]),
    ("bert", [1.91, 4.5]),
    ("deepspeech2", [1.61, 1.37]),
    ("yolov3", [0.66, 1.34]),
    ("imagenet", [1.51, 1.95]),
];

/// The same with types that differ by application.
fn measured(mut workload: Workload) -> Workload {
    for class in &mut workload.classes {
        let Some((_, [rtx, a100])) = SPEEDS.iter().find(|row| row.0 == class.name) else {
            continue;
        };
        let types = workload.cluster.gpu_types.iter();
        let speed = types.map(|gpu| match gpu.name.as_str() {
            "rtx" => *rtx,
            "a100" => *a100,
            _ => 1.0,
        });
        class.speed = speed.collect();
    }
    workload
}

/// Every system on every workload. `[system][workload]`
fn simulate(
    label: &str,
    effort: &Effort,
    workloads: &[Arc<Workload>],
    systems: &[System],
    overheads: Overheads,
) -> Result<Vec<Vec<SimResult>>, Error> {
    let mut sim = SimConfig::default();
    sim.capabilities.grant(ActionKind::Preempt, true);
    sim.capabilities.overheads = Some(overheads);
    let mut runs: Vec<Run> = Vec::new();
    for system in systems {
        for workload in workloads {
            let rigid = system.rigid_on.map(|on| tuned(workload, on)).transpose()?;
            let rigid = rigid.map(Arc::new);
            let workload = rigid.as_ref().unwrap_or(workload);
            runs.push(Run::new(workload, &sim, system.policy).with(system.settings.clone()));
        }
    }
    let results = run_all(label, &effort.watcher, &runs)?;
    let by_system = results.chunks(workloads.len().max(1));
    Ok(by_system.map(<[SimResult]>::to_vec).collect())
}

fn hours(results: &[SimResult], of: impl Fn(&SimResult) -> f64) -> Vec<f64> {
    results.iter().map(|result| of(result) / HOUR_S).collect()
}

fn avg_h(results: &[SimResult]) -> Vec<f64> {
    hours(results, |result| result.metrics.avg_jct_s)
}

fn ratios(ours: &[SimResult], others: &[SimResult]) -> Vec<f64> {
    let pairs = avg_h(ours).into_iter().zip(avg_h(others));
    pairs.map(|(ours, other)| ours / other).collect()
}

/// Average, 99th percentile and makespan beside the published ones, h.
fn published(figures: &mut Vec<Figure>, name: &str, results: &[SimResult], published: [f64; 3]) {
    let ours = [
        avg_h(results),
        hours(results, |result| result.metrics.p99_jct_s),
        hours(results, |result| result.metrics.makespan_s),
    ];
    let what = ["average JCT (h)", "99th percentile of JCT (h)", "makespan (h)"];
    for ((what, values), value) in what.into_iter().zip(ours).zip(published) {
        let target = Target::Within { value, part: 0.15 };
        figures.push(Figure::of(format!("{name}: {what}"), &values, target));
    }
}

/// Part of the jobs that took at most so long.
fn distribution(name: &str, results: &[SimResult]) -> Series {
    let mut jcts: Vec<f64> = results
        .iter()
        .flat_map(|result| result.jobs.iter().map(|job| job.jct_s() / HOUR_S))
        .collect();
    jcts.sort_by(f64::total_cmp);
    let num = jcts.len() as f64;
    let points = jcts
        .iter()
        .enumerate()
        .map(|(at, jct)| (*jct, 100.0 * (at + 1) as f64 / num));
    Series::new(name, points.collect())
}

fn p1(effort: &Effort) -> Result<Reproduction, Error> {
    let workloads = workloads(effort, false, 8)?;
    // All 100 generations in every round, as published.
    let power = |power: f64| json!({ "fairness_power": power, "patience": null });
    let systems = [
        system("Pollux", "pollux", power(-1.0)),
        system("Pollux, p = 1", "pollux", power(1.0)),
        system("Pollux, p = -10", "pollux", power(-10.0)),
        tiresias(),
        system("elastic-dp", "elastic-dp", Value::Null),
        system("Sia", "sia", Value::Null),
    ];
    let results = simulate("P1", effort, &workloads, &systems, Overheads::POLLUX_30)?;
    let mut figures = Vec::new();
    let targets = [
        [0.76, 11.0, 16.0],
        [0.83, 10.0, 16.0],
        [0.84, 12.0, 18.0],
        [1.2, 15.0, 24.0],
    ];
    for ((system, results), targets) in systems.iter().zip(&results).zip(targets) {
        published(&mut figures, system.name, results, targets);
    }
    let ratio = ratios(&results[0], &results[3]);
    let target = Target::Within {
        value: 0.76 / 1.2,
        part: 0.15,
    };
    figures.push(Figure::of(
        "average JCT of Pollux over that of Tiresias",
        &ratio,
        target,
    ));
    for (system, results) in systems.iter().zip(&results).skip(4) {
        let what = format!("{}: average JCT (h)", system.name);
        figures.push(Figure::of(what, &avg_h(results), Target::Record));
    }
    let curves: Vec<Series> = systems
        .iter()
        .zip(&results)
        .map(|(system, results)| distribution(system.name, results))
        .collect();
    Ok(Reproduction {
        figures,
        plots: vec![(
            "Jobs by JCT".into(),
            plot::lines("JCT (h)", "jobs (%)", &curves, None),
        )],
        findings: vec![
            "Throughput and noise scale are nine fitted numbers for each application, not the measured tables.".into(),
            "Tiresias decides at every event, where the released baseline decides every 60 s.".into(),
        ],
        ..Reproduction::default()
    })
}

/// Sia, Pollux and Gavel's least attained service.
fn three() -> Vec<System> {
    vec![
        system("Sia", "sia", Value::Null),
        system("Pollux", "pollux", json!({ "patience": null })),
        System {
            rigid_on: Some(4),
            ..system("Gavel, tuned", "gavel-las", Value::Null)
        },
    ]
}

fn s1(effort: &Effort) -> Result<Reproduction, Error> {
    let workloads = workloads(effort, true, 5)?;
    let systems = three();
    let results = simulate("S1", effort, &workloads, &systems, Overheads::SiaModel)?;
    let mut figures = Vec::new();
    let targets = [[0.6, 9.5, 14.2], [1.0, 14.9, 24.5], [1.9, 30.0, 33.8]];
    for ((system, results), targets) in systems.iter().zip(&results).zip(targets) {
        published(&mut figures, system.name, results, targets);
    }
    let gpu_h = |results: &[SimResult]| -> Vec<f64> {
        let of = |result: &SimResult| {
            let held: Vec<f64> = result.jobs.iter().map(|job| job.attained_gpu_s).collect();
            mean(&held)
        };
        hours(results, of)
    };
    let per_job = [4.0, 5.6, 9.0];
    for ((system, results), value) in systems.iter().zip(&results).zip(per_job) {
        let target = Target::Within { value, part: 0.15 };
        let what = format!("{}: GPU-hours per job", system.name);
        figures.push(Figure::of(what, &gpu_h(results), target));
    }
    let over_pollux = [(0, 0.6), (2, 1.9)];
    for (at, value) in over_pollux {
        let what = format!("average JCT of {} over that of Pollux", systems[at].name);
        let target = Target::Within { value, part: 0.15 };
        figures.push(Figure::of(what, &ratios(&results[at], &results[1]), target));
    }
    let curves: Vec<Series> = systems
        .iter()
        .zip(&results)
        .map(|(system, results)| distribution(system.name, results))
        .collect();
    Ok(Reproduction {
        figures,
        plots: vec![(
            "Jobs by JCT".into(),
            plot::lines("JCT (h)", "jobs (%)", &curves, None),
        )],
        ..Reproduction::default()
    })
}

/// Finish-time fairness of every job: JCT over the time alone on its share of the GPUs.
fn fairness(workload: &Workload, result: &SimResult) -> Vec<f64> {
    let num_gpus = workload.cluster.num_gpus() as f64;
    let jobs = result.jobs.iter().zip(&workload.jobs);
    let ratio = |(outcome, job): (&pleach_env::JobOutcome, &pleach_env::workload::JobSpec)| {
        let shared_s: f64 = result
            .jobs
            .iter()
            .map(|other| {
                let (begin, end) = (
                    outcome.submit_s.max(other.submit_s),
                    outcome.finish_s.min(other.finish_s),
                );
                (end - begin).max(0.0)
            })
            .sum();
        let share = (num_gpus * outcome.jct_s() / shared_s).floor().max(1.0) as u32;
        let class = &workload.classes[usize::from(job.class)];
        let application = &APPLICATIONS[usize::from(job.class)];
        let elastic = class.elastic.as_ref()?;
        let profile = application.profile().ok()?;
        let groups = &workload.cluster.node_groups;
        let parts = groups.iter().map(|group| {
            let kind = workload
                .cluster
                .gpu_types
                .iter()
                .position(|gpu| gpu.name == group.gpu_type);
            let of_group = f64::from(group.count * group.gpus_per_node) / num_gpus;
            // More GPUs than the batch can be shared out over do not help.
            let mut gpus = share.min(elastic.gpus_max);
            let alone_s = loop {
                match application.run_time_s(&profile, gpus, group.gpus_per_node) {
                    Some(alone_s) => break alone_s,
                    None if gpus > 1 => gpus -= 1,
                    None => break job.run_time_s,
                }
            };
            of_group * outcome.jct_s() * class.speed[kind.unwrap_or(0)] / alone_s
        });
        Some(parts.sum::<f64>())
    };
    jobs.filter_map(ratio).collect()
}

fn s2(effort: &Effort) -> Result<Reproduction, Error> {
    let workloads = workloads(effort, true, 5)?;
    let systems = three();
    let results = simulate("S2", effort, &workloads, &systems, Overheads::SiaModel)?;
    let worst: Vec<Vec<f64>> = results
        .iter()
        .map(|results| {
            let runs = workloads.iter().zip(results);
            runs.map(|(workload, result)| fairness(workload, result).into_iter().fold(0.0, f64::max))
                .collect()
        })
        .collect();
    let unfair: Vec<Vec<f64>> = results
        .iter()
        .map(|results| {
            let runs = workloads.iter().zip(results);
            runs.map(|(workload, result)| {
                let ratios = fairness(workload, result);
                let above = ratios.iter().filter(|ratio| **ratio > 1.0).count();
                100.0 * above as f64 / ratios.len().max(1) as f64
            })
            .collect()
        })
        .collect();
    let mut figures = Vec::new();
    for (at, other) in systems.iter().enumerate().skip(1) {
        let holds: Vec<bool> = worst[0]
            .iter()
            .zip(&worst[at])
            .map(|(sia, other)| sia < other)
            .collect();
        figures.push(Figure::claim(
            format!("the worst ratio under Sia is below that under {}", other.name),
            &holds,
        ));
    }
    let targets = [1.2, 4.6, 27.8];
    for ((system, worst), value) in systems.iter().zip(&worst).zip(targets) {
        let what = format!("{}: worst ratio (published {value})", system.name);
        figures.push(Figure::of(what, worst, Target::Record));
    }
    for (system, unfair) in systems.iter().zip(&unfair) {
        let what = format!("{}: jobs with a ratio above 1 (%)", system.name);
        figures.push(Figure::of(what, unfair, Target::Record));
    }
    for (system, results) in systems.iter().zip(&results) {
        let per_job = results.iter().map(|result| {
            let restarts = result.jobs.iter().map(|job| f64::from(job.num_preemptions));
            mean(&restarts.collect::<Vec<f64>>())
        });
        let what = format!("{}: restarts per job", system.name);
        figures.push(Figure::of(what, &per_job.collect::<Vec<f64>>(), Target::Record));
    }
    Ok(Reproduction {
        figures,
        ..Reproduction::default()
    })
}
