//! Philly (ATC'19): why gangs wait under its production scheduler, what spreading costs, and how jobs end.

use std::sync::Arc;

use pleach_env::failures::OutcomeModel;
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::workload::{Outcome, Workload};
use pleach_env::{Seed, SimConfig, SimResult};
use serde_json::json;

use super::figure::show;
use super::runs::run_all;
use super::{Benchmark, Effort, Figure, Reproduction, Run, Target};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: "L1",
        title: "Why gangs wait, and what spreading costs, under Philly's scheduler",
        source: "Jeon et al., ATC'19, tables 2 and 5",
        setup: "philly-like, 352 nodes of 8 GPUs (the study's 11 quotas are made for them) in racks of 8, 11 virtual clusters with \
                borrowing. Load 0.64 as there, 20,000 jobs, planner philly with the emptiest node of the emptiest rack \
                first; a job counts for the cause that kept it longest",
        run: waits,
    },
    Benchmark {
        id: "L2",
        title: "How jobs end, and what that takes",
        source: "Jeon et al., ATC'19, table 6",
        setup: "as L1 on 128 nodes and packed, with Philly's failures, retries and kills, checkpoints that lose nothing, load 0.64",
        run: endings,
    },
];

fn workloads(effort: &Effort, num_nodes: u32, seeds: &[Seed]) -> Result<Vec<Arc<Workload>>, Error> {
    let config = ProfileConfig {
        num_jobs: effort.size(20_000, 300),
        num_nodes: effort.size(num_nodes, 16),
        num_tenants: 11,
        load: PHILLY_LOAD,
        ..ProfileConfig::default()
    };
    let drawn = seeds.iter().map(|seed| {
        let workload = generate(&GeneratorConfig::Profile(config.clone()), *seed);
        workload.map(Arc::new).map_err(Error::from)
    });
    drawn.collect()
}

/// The study's own list on its own cluster, where the folder is at hand.
fn published(effort: &Effort) -> Result<Option<Arc<Workload>>, Error> {
    let path = effort.data.as_ref();
    let path = path.map(|folder| folder.join("traces/philly/philly_jobs_joined.csv.gz"));
    let Some(path) = path.filter(|path| path.is_file()) else {
        return Ok(None);
    };
    let options = ImportOptions {
        max_jobs: effort.smoke.then_some(300),
        ..ImportOptions::default()
    };
    Ok(Some(Arc::new(import(&path, &options)?.0)))
}

/// What Philly offered, over its capacity.
const PHILLY_LOAD: f64 = 0.64;

/// Gangs of 2 to 4, 5 to 8, and more GPUs.
const SIZES: [(u32, u32); 3] = [(2, 4), (5, 8), (9, u32::MAX)];

/// Part of the delayed jobs of each size that fragmentation kept waiting, by Philly's two causes. None without any.
fn fragmentation(result: &SimResult) -> [Option<f64>; 3] {
    SIZES.map(|(least, most)| {
        let jobs = result.jobs.iter().zip(&result.waits);
        let delayed = jobs.filter(|(job, waits)| {
            (least..=most).contains(&job.num_gpus) && waits.total() > pleach_scheduler::Time::ZERO
        });
        let causes: Vec<f64> = delayed
            .map(|(_, waits)| {
                let (fair_share, rest) = waits.philly();
                f64::from(u8::from(rest > fair_share))
            })
            .collect();
        (!causes.is_empty()).then(|| mean(&causes))
    })
}

/// Relative rate of 16-GPU gangs on so many nodes: what they did over what they held. None without any.
fn rate_on(result: &SimResult, nodes: std::ops::RangeInclusive<u32>) -> Option<f64> {
    let spread = result.occupancy.as_ref()?.spread();
    let (mut useful, mut held) = (0.0, 0.0);
    for ((gang, num_nodes), row) in spread {
        if *gang == 16 && nodes.contains(num_nodes) {
            useful += row.useful_gpu_s;
            held += row.held_gpu_s;
        }
    }
    (held > 0.0).then(|| useful / held)
}

fn waits(effort: &Effort) -> Result<Reproduction, Error> {
    let seeds = effort.seeds(4);
    let sim = SimConfig {
        record_waits: true,
        record_occupancy: true,
        ..SimConfig::default()
    };
    let drawn = match published(effort)? {
        Some(list) => vec![list],
        None => workloads(effort, 352, &seeds)?,
    };
    let run = |workload| Run::new(workload, &sim, "philly").with(json!({ "emptiest_first": true }));
    let runs: Vec<Run> = drawn.iter().map(run).collect();
    let results = run_all("L1", &effort.watcher, &runs)?;
    let mut figures = Vec::new();
    let shares: Vec<[Option<f64>; 3]> = results.iter().map(fragmentation).collect();
    let published = [("2 to 4", 59.4), ("5 to 8", 74.2), ("more than 8", 97.9)];
    for (size, (name, value)) in published.into_iter().enumerate() {
        let values: Vec<f64> = shares
            .iter()
            .filter_map(|of_seed| Some(100.0 * of_seed[size]?))
            .collect();
        if !values.is_empty() {
            let what =
                format!("delayed jobs of {name} GPUs that fragmentation kept waiting, %; {value} published");
            let target = Target::Between {
                low: value - 10.0,
                high: value + 10.0,
            };
            figures.push(Figure::of(what, &values, target));
        }
    }
    let in_order: Vec<bool> = shares
        .iter()
        .filter_map(|[small, middle, large]| Some((*small)? <= (*middle)? && (*middle)? <= (*large)?))
        .collect();
    if !in_order.is_empty() {
        figures.push(Figure::claim(
            "the larger the gang, the more often it is fragmentation, part of the seeds",
            &in_order,
        ));
    }
    // Table 5: mean utilisation of 16-GPU jobs on 2, 4 and 8 servers is 43.66, 40.94 and 28.56 %.
    for (name, nodes, value) in [("4", 3..=5, 40.94 / 43.66), ("8", 6..=16, 28.56 / 43.66)] {
        let values: Vec<f64> = results
            .iter()
            .filter_map(|result| Some(rate_on(result, nodes.clone())? / rate_on(result, 2..=2)?))
            .collect();
        if !values.is_empty() {
            let what = format!(
                "speed of 16-GPU gangs on about {name} nodes over that on 2; {} published",
                show(value)
            );
            let target = Target::Between {
                low: value - 0.1,
                high: value + 0.1,
            };
            figures.push(Figure::of(what, &values, target));
        }
    }
    Ok(Reproduction {
        figures,
        findings: vec![
            "What a gang loses on more nodes is an input here (the locality factors are those of tables 4 and 5), so the second \
             part checks the book-keeping, not a prediction. The first part is the scheduler's."
                .into(),
        ],
        ..Reproduction::default()
    })
}

/// Part of the jobs, and of the GPU time, that did not pass; and of the GPU time that was killed, and that failed.
fn endings_of(result: &SimResult) -> [f64; 4] {
    let gpu_s = |keep: &dyn Fn(Outcome) -> bool| -> f64 {
        let jobs = result.jobs.iter().filter(|job| keep(job.outcome));
        jobs.map(|job| job.attained_gpu_s).sum()
    };
    let num = result
        .jobs
        .iter()
        .filter(|job| job.outcome != Outcome::Completed)
        .count();
    let all = gpu_s(&|_| true).max(1e-9);
    [
        num as f64 / result.jobs.len().max(1) as f64,
        gpu_s(&|outcome| outcome != Outcome::Completed) / all,
        gpu_s(&|outcome| outcome == Outcome::Killed) / all,
        gpu_s(&|outcome| outcome == Outcome::Failed) / all,
    ]
    .map(|part| 100.0 * part)
}

fn endings(effort: &Effort) -> Result<Reproduction, Error> {
    let seeds = effort.seeds(8);
    let sim = SimConfig {
        outcomes: Some(OutcomeModel::philly()),
        ..SimConfig::default()
    };
    let drawn = workloads(effort, 128, &seeds)?;
    let runs: Vec<Run> = drawn
        .iter()
        .zip(0..)
        .map(|(workload, number)| {
            let sim = SimConfig {
                seed: Seed(effort.seed).child("endings", number).0,
                ..sim.clone()
            };
            Run::new(workload, &sim, "philly")
        })
        .collect();
    let results = run_all("L2", &effort.watcher, &runs)?;
    let parts: Vec<[f64; 4]> = results.iter().map(endings_of).collect();
    let published = [
        ("jobs that did not pass, %", 30.7),
        ("GPU time of jobs that did not pass, %", 55.45),
        ("GPU time of killed jobs, %", 37.69),
        ("GPU time of unsuccessful jobs, %", 17.76),
    ];
    let figures = published.into_iter().enumerate().map(|(column, (what, value))| {
        let values: Vec<f64> = parts.iter().map(|parts| parts[column]).collect();
        let target = Target::Between {
            low: value - 5.0,
            high: value + 5.0,
        };
        Figure::of(format!("{what}; {value} published"), &values, target)
    });
    Ok(Reproduction {
        figures: figures.collect(),
        findings: vec![
            "The model of failures is calibrated on how many jobs end how (table 6), by gang size, and by how its endings lean on the \
             run time on their parts of the GPU time: in Philly the jobs that were killed are the long ones, 13.5 % of the jobs and \
             37.7 % of the GPU time. So this checks book-keeping."
                .into(),
        ],
        ..Reproduction::default()
    })
}
