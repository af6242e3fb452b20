//! Sharing GPUs: SJF-BSBF against policies that never share, always share, or take turns.

use std::sync::Arc;

use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, Paper, PolluxConfig, generate};
use pleach_env::{Seed, SimConfig, SimResult};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors};
use pleach_scheduler::physics::interference::{PairEntry, gavel_v100_pairs};

use super::elastic::{published_lists, tuned};
use super::{Benchmark, Effort, Figure, Reproduction, Run, Series, Target, plot, run_all};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::progress::Watcher;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "W1",
    title: "SJF-BSBF: when sharing beats waiting",
    source: "SJF-BSBF (WiseShare, IWQoS'24; arXiv 2407.13088)",
    setup: "64 GPUs on 16 nodes, 240 to 720 jobs in 8 h of Pollux's six models with the gangs tuned for them, made rigid (the paper's \
            are these models; 240 in 8 h is the list of that load released with Pollux), true run times, a restart costs 30 s. Placement costs nothing, as in the paper's model of a step. \
            The slow-downs of pairs that the paper measured were not published: pairs are Gavel's on V100, each model as the one of its kind \
            there (assumed); in the sweep every pair has one factor from 1.0 to 2.0, as in the paper's. No sub-batches",
    run: w1,
}];

/// The models of the job lists, and the model of the same kind among Gavel's measured pairs. *Assumed.*
const LIKE: [(&str, &str); 6] = [
    ("cifar10", "ResNet-18"),
    ("ncf", "Recommendation"),
    ("bert", "Transformer"),
    ("deepspeech2", "LM"),
    ("yolov3", "CycleGAN"),
    ("imagenet", "ResNet-50"),
];
/// Time in which the jobs come, h: that of Pollux's experiments. *Assumed.*
const HOURS: f64 = 8.0;
/// Schedulers of the sweep, and the number of the one that does not share.
const SWEPT: [&str; 2] = ["sjf-bsbf", "sjf-ffs"];

/// Jobs on a cluster on which every pair slows each other by a factor.
fn workload(num_jobs: usize, factor: Option<f64>, seed: Seed) -> Result<Arc<Workload>, Error> {
    let config = GeneratorConfig::Paper(Paper::Pollux(PolluxConfig {
        num_jobs,
        jobs_per_hour: Some(num_jobs as f64 / HOURS),
        ..PolluxConfig::default()
    }));
    let mut workload = generate(&config, seed)?;
    for class in &mut workload.classes {
        (class.elastic, class.locality) = (None, LocalityFactors::NONE);
    }
    match factor {
        Some(factor) => force(&mut workload, factor),
        None => measured(&mut workload),
    }
    Ok(Arc::new(workload))
}

/// The published lists of 240 jobs in 8 h with gangs and batches as users had tuned them, where their folder is at hand.
fn published(effort: &Effort) -> Result<Option<Vec<Arc<Workload>>>, Error> {
    let Some(lists) = published_lists(effort, "pollux/workloads-1.5", false)? else {
        return Ok(None);
    };
    let rigid = lists.iter().map(|list| {
        let mut rigid = tuned(list, 4)?;
        measured(&mut rigid);
        Ok(Arc::new(rigid))
    });
    rigid.collect::<Result<_, Error>>().map(Some)
}

/// Every pair of classes runs as fast as Gavel measured the models of their kind.
fn measured(workload: &mut Workload) {
    let mut pairs = Vec::new();
    for entry in gavel_v100_pairs() {
        let own = |name: &str| LIKE.iter().find(|(_, like)| *like == name).map(|(own, _)| *own);
        if let (Some(victim), Some(neighbour)) = (own(&entry.victim), own(&entry.neighbour)) {
            pairs.extend(workload.cluster.gpu_types.iter().map(|gpu| PairEntry {
                gpu_type: gpu.name.clone(),
                victim: victim.into(),
                neighbour: neighbour.into(),
                speed: entry.speed,
            }));
        }
    }
    workload.cluster.pairs = pairs;
}

/// Every pair of classes slows each other by the same factor.
fn force(workload: &mut Workload, factor: f64) {
    let names: Vec<&String> = workload.classes.iter().map(|class| &class.name).collect();
    let mut pairs = Vec::new();
    for gpu in &workload.cluster.gpu_types {
        for victim in &names {
            pairs.extend(names.iter().map(|neighbour| PairEntry {
                gpu_type: gpu.name.clone(),
                victim: (*victim).clone(),
                neighbour: (*neighbour).clone(),
                speed: 1.0 / factor,
            }));
        }
    }
    workload.cluster.pairs = pairs;
}

/// The factor at which two equal jobs on one GPU stop sharing, by bisection of simulations.
fn crossover() -> Result<f64, Error> {
    let config = GeneratorConfig::preset("gavel-single")?.with(2, 1.0);
    let mut pair = generate(&config, Seed(0))?;
    pair.cluster = ClusterSpec::uniform(1, 1, 1);
    pair.classes.truncate(1);
    pair.classes[0].speed = vec![1.0];
    for job in &mut pair.jobs {
        (job.submit, job.run_time_s, job.class) = (Time::ZERO, 1000.0, 0);
    }
    let (mut shares, mut waits) = (1.0, 2.0);
    while waits - shares > 1e-6 {
        let factor = f64::midpoint(shares, waits);
        force(&mut pair, factor);
        let run = Run::new(&Arc::new(pair.clone()), &SimConfig::default(), "sjf-bsbf");
        let results = run_all("W1", &Watcher::silent(), &[run])?;
        let second = &results[0].jobs[1];
        if second.first_start_s == 0.0 {
            shares = factor;
        } else {
            waits = factor;
        }
    }
    Ok(shares)
}

/// Average JCT of each seed, h.
fn jcts_h(results: &[&SimResult]) -> Vec<f64> {
    let hours = results.iter().map(|result| result.metrics.avg_jct_s / 3600.0);
    hours.collect()
}

fn ratios(ours: &[f64], others: &[f64]) -> Vec<f64> {
    ours.iter()
        .zip(others)
        .map(|(ours, other)| ours / other)
        .collect()
}

/// Runs grouped by what they are compared on: for each group the average JCT of each seed, h.
fn run_groups(
    effort: &Effort,
    groups: &[(Vec<Arc<Workload>>, &'static str)],
) -> Result<Vec<Vec<f64>>, Error> {
    let sim = SimConfig::default();
    let runs: Vec<Run> = groups
        .iter()
        .flat_map(|(workloads, policy)| workloads.iter().map(|workload| Run::new(workload, &sim, policy)))
        .collect();
    let results = run_all("W1", &effort.watcher, &runs)?;
    let mut rest = results.iter();
    let of_group = |(workloads, _): &(Vec<Arc<Workload>>, &str)| {
        let results: Vec<&SimResult> = rest.by_ref().take(workloads.len()).collect();
        jcts_h(&results)
    };
    Ok(groups.iter().map(of_group).collect())
}

fn w1(effort: &Effort) -> Result<Reproduction, Error> {
    let seeds = effort.seeds(8);
    let num_jobs = effort.size(480, 40);
    let drawn = |num_jobs, factor| -> Result<Vec<Arc<Workload>>, Error> {
        let drawn = seeds.iter().map(|seed| workload(num_jobs, factor, *seed));
        drawn.collect()
    };
    let mut reproduction = Reproduction::default();

    // The published comparison, and longer lists.
    let published = published(effort)?;
    let others = ["tiresias", "sjf-ffs", "sjf", "gandiva", "indolent", "muri"];
    let sizes = effort.size(vec![240, 480, 720], vec![40]);
    let mut groups = Vec::new();
    for size in &sizes {
        let workloads = match (size, &published) {
            (240, Some(lists)) => lists.clone(),
            _ => drawn(*size, None)?,
        };
        groups.extend(
            ["sjf-bsbf"]
                .iter()
                .chain(&others)
                .map(|policy| (workloads.clone(), *policy)),
        );
    }
    let jcts = run_groups(effort, &groups)?;
    let by_size: Vec<&[Vec<f64>]> = jcts.chunks(others.len() + 1).collect();
    for (size, jcts) in sizes.iter().zip(&by_size) {
        reproduction.figures.push(Figure::of(
            format!("avg JCT of SJF-BSBF over Tiresias, {size} jobs"),
            &ratios(&jcts[0], &jcts[1]),
            Target::Between {
                low: 0.62,
                high: 0.78,
            },
        ));
    }
    let gains: Vec<f64> = (0..seeds.len())
        .map(|seed| {
            let gain = |jcts: &&[Vec<f64>]| 1.0 - jcts[0][seed] / jcts[2][seed];
            by_size.iter().map(gain).fold(f64::NEG_INFINITY, f64::max)
        })
        .collect();
    reproduction.figures.push(Figure::of(
        format!(
            "largest gain of SJF-BSBF over SJF-FFS, {} to {} jobs",
            sizes[0],
            sizes[sizes.len() - 1]
        ),
        &gains,
        Target::Between {
            low: 0.12,
            high: 0.22,
        },
    ));
    let mut table = Table {
        header: ["jobs", "sjf-bsbf"]
            .iter()
            .chain(&others)
            .map(|name| (*name).to_string())
            .collect(),
        rows: Vec::new(),
        notes: vec![format!(
            "mean of {} seeds, h; pairs as measured by Gavel",
            seeds.len()
        )],
    };
    for (size, jcts) in sizes.iter().zip(&by_size) {
        let cells = jcts.iter().map(|jcts| super::figure::show(mean(jcts)));
        table
            .rows
            .push(std::iter::once(size.to_string()).chain(cells).collect());
    }
    reproduction.tables.push(("Average JCT".into(), table));

    sweep(effort, &mut reproduction, num_jobs, &drawn)?;
    reproduction.figures.push(Figure::exact(
        "factor at which two equal jobs stop sharing",
        crossover()?,
        Target::Within {
            value: 1.5,
            part: 1e-4,
        },
    ));
    reproduction.findings = FINDINGS.iter().map(|finding| (*finding).to_string()).collect();
    Ok(reproduction)
}

/// All factors from 1 to 2.
fn sweep(
    effort: &Effort,
    reproduction: &mut Reproduction,
    num_jobs: usize,
    drawn: &dyn Fn(usize, Option<f64>) -> Result<Vec<Arc<Workload>>, Error>,
) -> Result<(), Error> {
    let factors: Vec<f64> = effort.size(
        (0..=10).map(|tenth| 1.0 + f64::from(tenth) / 10.0).collect(),
        vec![1.0, 2.0],
    );
    let mut groups = Vec::new();
    for factor in &factors {
        let workloads = drawn(num_jobs, Some(*factor))?;
        groups.extend(SWEPT.map(|policy| (workloads.clone(), policy)));
    }
    // Policies that do not share do not depend on the factor.
    let alone = drawn(num_jobs, Some(1.0))?;
    groups.extend(["sjf", "tiresias"].map(|policy| (alone.clone(), policy)));
    let jcts = run_groups(effort, &groups)?;
    let at = |position: usize, policy: usize| &jcts[position * SWEPT.len() + policy];
    let unshared = &jcts[factors.len() * SWEPT.len()..];
    let curve = |name: &str, value: &dyn Fn(usize) -> f64| {
        let points = factors
            .iter()
            .enumerate()
            .map(|(position, factor)| (*factor, value(position)));
        Series::new(name, points.collect())
    };
    let series = [
        curve("sjf-bsbf", &|position| mean(at(position, 0))),
        curve("sjf-ffs", &|position| mean(at(position, 1))),
        curve("sjf", &|_| mean(&unshared[0])),
        curve("tiresias", &|_| mean(&unshared[1])),
    ];
    let svg = plot::lines(
        "factor by which a pair takes longer",
        "average JCT (h)",
        &series,
        None,
    );
    reproduction
        .plots
        .push(("Average JCT over the slow-down of pairs".into(), svg));

    let last = factors.len() - 1;
    let dear: Vec<usize> = (0..factors.len()).filter(|at| factors[*at] >= 1.5).collect();
    let seeds = 0..unshared[0].len();
    let every = |holds: &dyn Fn(usize, usize) -> bool, positions: &[usize]| -> Vec<bool> {
        let of_seed = |seed| positions.iter().all(|position| holds(*position, seed));
        seeds.clone().map(of_seed).collect()
    };
    reproduction.figures.push(Figure::claim(
        "at 1.5 and above SJF-BSBF is at least as good as SJF-FFS",
        &every(
            &|position, seed| at(position, 0)[seed] <= at(position, 1)[seed],
            &dear,
        ),
    ));
    reproduction.figures.push(Figure::claim(
        "at 2.0 sharing with everybody is worse than never sharing",
        &every(
            &|position, seed| at(position, 1)[seed] > unshared[0][seed],
            &[last],
        ),
    ));
    Ok(())
}

/// What the reader should know; in full in lab/notes/reproductions/sharing.md.
const FINDINGS: [&str; 3] = [
    "With the gangs tuned for Pollux's models 240 jobs give ratios on both sides of the published range, by the list. 480 and 720 are far \
     above what the GPUs can do, and all that matters there is that SJF-BSBF is shortest-first and Tiresias is not.",
    "The gain over first fit depends on how much pairs differ: Gavel's run at down to a fifth of their speed.",
    "Above a factor of 1.5 SJF-BSBF does not become shortest-job-first: a newcomer still shares with a job that has a much longer rest, and is \
     compared with waiting for that one although another GPU may be free sooner.",
];
