//! FGD (ATC'23): how many GPUs no task can use any more on a cluster that fills up.

use pleach_baselines::packing::{Fgd, FgdConfig, Score};
use pleach_env::Seed;
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::workload::{JobSpec, Workload};
use pleach_scheduler::Planner as _;
use pleach_scheduler::cluster::{Capabilities, Cluster, Submission};
use pleach_scheduler::{ClassId, Estimate, Provenance, TenantId};
use rand::RngExt as _;

use super::figure::show;
use super::{Benchmark, Effort, Figure, Reproduction, Series, Target, plot};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::run::in_parallel;
use pleach_experiments::evaluate::stats::mean;
use pleach_experiments::evaluate::table::Table;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "F1",
    title: "FGD against other packings on a cluster that fills up",
    source: "Weng et al., ATC'23, abstract and figures 7 and 9",
    setup: "1,213 nodes with 6,212 GPUs; pods drawn from the list of 2023 (--data, openb_pod_list_default) or from openb-like, \
            until they ask for 1.3 times the GPUs; no job leaves",
    run: fill_up,
}];

const SCORES: [(&str, Score); 6] = [
    ("FGD", Score::Fgd),
    ("best fit", Score::BestFit),
    ("dot product", Score::DotProduct),
    ("GPU packing", Score::GpuPacking),
    ("GPU clustering", Score::GpuClustering),
    ("first fit", Score::FirstFit),
];

/// Requests over capacity at which the parts that are allocated are written down.
const STEPS: [f64; 14] = [
    0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.05, 1.1, 1.2, 1.3,
];
/// Pods that come at once. They are placed one by one, in their order.
const BATCH: usize = 32;

/// Where the list of 2023 may lie in a folder of published lists.
const LISTS: [&str; 4] = [
    "openb_pod_list_default.csv",
    "openb_pod_list_default.csv.gz",
    "traces/alibaba_openb_2023/openb_pod_list_default.csv",
    "traces/alibaba_openb_2023/openb_pod_list_default.csv.gz",
];

fn source(effort: &Effort) -> Result<(Workload, bool), Error> {
    if let Some(folder) = &effort.data {
        let places = LISTS.iter().map(|place| folder.join(place));
        for path in places {
            if path.exists() {
                let (workload, _) = import(&path, &ImportOptions::default())?;
                return Ok((workload, true));
            }
        }
    }
    let drawn = ProfileConfig {
        num_jobs: effort.size(8000, 300),
        num_nodes: effort.size(1213, 16),
        typed_share: 0.0,
        ..ProfileConfig::named("openb-like")
    };
    let workload = generate(&GeneratorConfig::Profile(drawn), Seed(effort.seed))?;
    Ok((workload, false))
}

fn request(job: &JobSpec) -> Submission {
    Submission {
        tenant: TenantId(job.tenant),
        class: ClassId(job.class),
        num_gpus: job.num_gpus,
        estimate_s: Estimate {
            value: job.run_time_s,
            provenance: Provenance::Oracle,
        },
        resources: job.resources,
    }
}

/// Part of the GPUs that is allocated when so much was asked for. `[step]`
fn allocated(workload: &Workload, score: Score, seed: Seed) -> Result<Vec<f64>, Error> {
    let wrong = |error: pleach_scheduler::ConfigError| Error::from(error);
    let mut spec = workload.cluster.clone();
    spec.borrowing = true;
    let empty = || Cluster::new(&spec, &workload.classes, Capabilities::DEFAULT).map_err(wrong);
    let config = FgdConfig {
        score,
        // The mix is known beforehand, as in the paper.
        relearn: 10.0,
        ..FgdConfig::default()
    };
    let mut planner = Fgd::new(config).map_err(wrong)?;
    let mut known = empty()?;
    for job in &workload.jobs {
        known.submit(request(job)).map_err(wrong)?;
    }
    planner.learn(&known);
    let mut cluster = empty()?;
    let capacity = f64::from(cluster.num_gpus());
    // The same pods in the same order for every score: with replacement, as the paper inflates its list.
    let mut rng = seed.stream("pods", 0);
    let (mut asked, mut parts) = (0.0, Vec::new());
    let mut waiting = 0;
    for step in STEPS {
        while asked < step * capacity {
            let job = &workload.jobs[rng.random_range(0..workload.jobs.len())];
            asked += job.gpus();
            cluster.submit(request(job)).map_err(wrong)?;
            waiting += 1;
            if waiting == BATCH {
                waiting = 0;
                planner.plan(&mut cluster).map_err(Error::from)?;
            }
        }
        planner.plan(&mut cluster).map_err(Error::from)?;
        let held: f64 = cluster.tenants().iter().map(|tenant| tenant.used_gpus()).sum();
        parts.push(held / capacity);
    }
    Ok(parts)
}

fn fill_up(effort: &Effort) -> Result<Reproduction, Error> {
    let (workload, is_real) = source(effort)?;
    let seeds = effort.seeds(4);
    let tasks: Vec<(usize, Seed)> = (0..SCORES.len())
        .flat_map(|score| seeds.iter().map(move |seed| (score, *seed)))
        .collect();
    let done = in_parallel("F1", &effort.watcher, &tasks, |(score, seed)| {
        allocated(&workload, SCORES[*score].1, *seed)
    })?;
    let by_score: Vec<&[Vec<f64>]> = done.chunks(seeds.len()).collect();
    let last = STEPS.len() - 1;
    let left = |score: usize| -> Vec<f64> { by_score[score].iter().map(|parts| 1.0 - parts[last]).collect() };
    let mut table = Table {
        header: ["packing", "unallocated GPUs %", "FGD has fewer by %"]
            .map(str::to_string)
            .to_vec(),
        ..Table::default()
    };
    let mut series = Vec::new();
    for (score, (name, _)) in SCORES.iter().enumerate() {
        let part = mean(&left(score));
        let fewer = 100.0 * (1.0 - mean(&left(0)) / part.max(1e-12));
        let row = [show(100.0 * part), show(fewer)];
        table
            .rows
            .push([(*name).to_string()].into_iter().chain(row).collect());
        let points = STEPS.iter().enumerate().map(|(step, asked)| {
            let parts: Vec<f64> = by_score[score].iter().map(|parts| 100.0 * parts[step]).collect();
            (100.0 * asked, mean(&parts))
        });
        series.push(Series::new(*name, points.collect()));
    }
    let fgd = left(0);
    let rivals: Vec<Vec<f64>> = (1..SCORES.len()).map(left).collect();
    let fewer = |over: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let seeds = fgd.iter().enumerate();
        seeds
            .map(|(seed, part)| 1.0 - part / over(seed).max(1e-12))
            .collect()
    };
    let of_seed = |seed: usize| rivals.iter().map(move |rival| rival[seed]);
    let worst = |seed: usize| of_seed(seed).fold(0.0, f64::max);
    let best = |seed: usize| of_seed(seed).fold(f64::INFINITY, f64::min);
    let is_least: Vec<bool> = fgd
        .iter()
        .enumerate()
        .map(|(seed, part)| *part <= best(seed))
        .collect();
    let gpus = f64::from(workload.cluster.num_gpus() as u32);
    let more: Vec<f64> = fgd
        .iter()
        .enumerate()
        .map(|(seed, part)| (worst(seed) - part) * gpus)
        .collect();
    let what = if is_real {
        "the list of 2023"
    } else {
        "openb-like: not the published list"
    };
    Ok(Reproduction {
        figures: vec![
            Figure::claim(
                "FGD leaves the fewest GPUs unallocated, part of the seeds",
                &is_least,
            ),
            Figure::of(
                "fewer unallocated GPUs than the worst rival, part; \"up to 49 %\"",
                &fewer(&worst),
                Target::Between { low: 0.3, high: 0.7 },
            ),
            Figure::of(
                "fewer unallocated GPUs than the best rival, part",
                &fewer(&best),
                Target::Record,
            ),
            Figure::of(
                "GPUs more in use than under the worst rival; \"290\"",
                &more,
                Target::Record,
            ),
        ],
        tables: vec![(format!("At 130 % of the capacity asked for ({what})"), table)],
        plots: vec![(
            "Allocated over asked for".into(),
            plot::lines("asked for (%)", "allocated (%)", &series, None),
        )],
        findings: vec![format!(
            "The pods are those of {what}. Nobody leaves, as in the paper's main experiment."
        )],
    })
}
