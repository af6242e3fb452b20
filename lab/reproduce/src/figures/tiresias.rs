//! Tiresias.

use std::path::Path;
use std::sync::Arc;

use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{Seed, SimConfig, SimResult};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::portable_math::{ln, pow};
use rand::RngExt as _;

use super::plot::lines;
use super::{Benchmark, Effort, Figure, Reproduction, Run, Series, Target, run_all};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "T1",
    title: "Tiresias against YARN-CS on 60 GPUs",
    source: "Tiresias NSDI'19, testbed: mean JCT by class of jobs",
    setup: "15 nodes of 4 GPUs; 480 jobs, one every 30 s in the mean, of 2 minutes to 2 hours. The list of the paper was \
            never published: shares of its four classes, lengths within them and gang sizes are assumed (lab/reproduce/src/\
            figures/tiresias.rs). YARN-CS is fifo; a restart costs 30 s",
    run: t1,
}];

/// A class of jobs: small or large, short or long.
struct Bin {
    name: &'static str,
    /// Part of the jobs. *Assumed.*
    share: f64,
    /// Equally likely gangs. *Assumed*, the large ones so that the list holds the work of the published makespans.
    gangs: &'static [u32],
    /// Shortest and longest run, s; uniform in the logarithm. Short of 800 s is short. *Assumed.*
    run_s: (f64, f64),
    /// Published mean JCT under YARN-CS over that under Tiresias-L.
    ratio: f64,
}

const BINS: [Bin; 4] = [
    Bin {
        name: "small, short",
        share: 0.635,
        gangs: &[1, 1, 1, 2],
        run_s: (120.0, 800.0),
        ratio: 27.7,
    },
    Bin {
        name: "small, long",
        share: 0.125,
        gangs: &[1, 1, 1, 2],
        run_s: (800.0, 7200.0),
        ratio: 5.5,
    },
    Bin {
        name: "large, short",
        share: 0.165,
        gangs: &[8, 16],
        run_s: (120.0, 800.0),
        ratio: 3.2,
    },
    Bin {
        name: "large, long",
        share: 0.075,
        gangs: &[8, 16],
        run_s: (800.0, 7200.0),
        ratio: 1.0,
    },
];
/// Published ratio over all jobs.
const ALL: f64 = 5.5;
/// Mean time between arrivals, s: that of the published 60-job list.
const GAP_S: f64 = 30.0;
const GAPS_S: [f64; 7] = [5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0];
const POLICIES: [&str; 3] = ["fifo", "tiresias", "tiresias-gittins"];

/// Jobs and the class of each.
fn draw(seed: Seed, num_jobs: usize, gap_s: f64) -> (Workload, Vec<usize>) {
    let (mut jobs, mut bins) = (Vec::new(), Vec::new());
    let mut rng = seed.stream("jobs", 0);
    let mut submit_s = 0.0;
    for number in 0..num_jobs {
        let mut left = rng.random::<f64>();
        let mut bin = 0;
        while bin + 1 < BINS.len() && left >= BINS[bin].share {
            left -= BINS[bin].share;
            bin += 1;
        }
        let Bin { gangs, run_s, .. } = &BINS[bin];
        let num_gpus = gangs[(rng.random::<f64>() * gangs.len() as f64) as usize];
        let run_time_s = run_s.0 * pow(run_s.1 / run_s.0, rng.random::<f64>());
        jobs.push(JobSpec {
            id: number.to_string(),
            submit: Time::from_secs_f64(submit_s),
            num_gpus,
            run_time_s,
            estimate_s: None,
            tenant: 0,
            class: 0,
            user: None,
            outcome: Outcome::Unknown,
            resources: Resources::WHOLE_GPU,
            observed: None,
        });
        bins.push(bin);
        submit_s -= gap_s * ln(1.0 - rng.random::<f64>());
    }
    let workload = Workload {
        name: format!("tiresias-{gap_s}"),
        cluster: ClusterSpec::uniform(15, 4, 15),
        classes: vec![ModelClass::default()],
        jobs,
    };
    (workload, bins)
}

/// Mean JCT of the jobs of a class (of all without one) under one policy over that under another.
fn ratio(over: &SimResult, under: &SimResult, bins: &[usize], bin: Option<usize>) -> f64 {
    let mean_s = |result: &SimResult| {
        let jobs = result.jobs.iter().zip(bins);
        let of_bin = jobs.filter(|(_, other)| bin.is_none_or(|bin| bin == **other));
        let jcts: Vec<f64> = of_bin.map(|(job, _)| job.jct_s()).collect();
        mean(&jcts)
    };
    mean_s(over) / mean_s(under)
}

fn t1(effort: &Effort) -> Result<Reproduction, Error> {
    let seeds = effort.seeds(10);
    let num_jobs = effort.size(480, 80);
    let gaps_s = effort.size(&GAPS_S[..], &[GAP_S]);
    let mut points = Vec::new();
    for gap_s in gaps_s {
        for seed in &seeds {
            let (workload, bins) = draw(*seed, num_jobs, *gap_s);
            points.push((*gap_s, Arc::new(workload), bins));
        }
    }
    let runs: Vec<Run> = points
        .iter()
        .flat_map(|(_, workload, _)| POLICIES.map(|policy| Run::new(workload, &SimConfig::default(), policy)))
        .collect();
    let results = run_all("T1", &effort.watcher, &runs)?;
    let by_point: Vec<&[SimResult]> = results.chunks(POLICIES.len()).collect();
    let ratios = |gap_s: f64, policy: usize, bin: Option<usize>| -> Vec<f64> {
        let points = points
            .iter()
            .zip(&by_point)
            .filter(|((gap, ..), _)| *gap == gap_s);
        points
            .map(|((.., bins), results)| ratio(&results[0], &results[policy], bins, bin))
            .collect()
    };
    let twice = |value: f64| Target::Between {
        low: value / 2.0,
        high: value * 2.0,
    };
    let mut reproduction = Reproduction::default();
    let figures = &mut reproduction.figures;
    figures.push(Figure::of(
        "mean JCT, YARN-CS / Tiresias-L, all jobs",
        &ratios(GAP_S, 1, None),
        twice(ALL),
    ));
    for (number, bin) in BINS.iter().enumerate() {
        // A small draw may have none.
        let values: Vec<f64> = ratios(GAP_S, 1, Some(number))
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        if !values.is_empty() {
            figures.push(Figure::of(
                format!("the same, {} jobs", bin.name),
                &values,
                twice(bin.ratio),
            ));
        }
    }
    let falls: Vec<bool> = (0..seeds.len())
        .map(|seed| {
            let ratios: Vec<f64> = (0..BINS.len())
                .map(|bin| ratios(GAP_S, 1, Some(bin))[seed])
                .collect();
            ratios[0] > ratios[1] && ratios[0] > ratios[2] && ratios[1] > ratios[3] && ratios[2] > ratios[3]
        })
        .collect();
    figures.push(Figure::claim(
        "small short jobs gain most, large long ones least",
        &falls,
    ));
    figures.push(Figure::of(
        "mean JCT, YARN-CS / Tiresias-G, all jobs",
        &ratios(GAP_S, 2, None),
        Target::Record,
    ));
    let curve = |name: &str, policy: usize| {
        let points = gaps_s
            .iter()
            .map(|gap_s| (*gap_s, mean(&ratios(*gap_s, policy, None))));
        Series::new(name, points.collect())
    };
    let series = [curve("Tiresias-L", 1), curve("Tiresias-G", 2)];
    let plot = lines(
        "mean time between arrivals (s)",
        "mean JCT, YARN-CS / Tiresias",
        &series,
        None,
    );
    reproduction
        .plots
        .push(("How the gain falls with the load".into(), plot));
    if let Some(data) = &effort.data {
        published_list(&data.join("tiresias/60_job.csv.gz"), effort, &mut reproduction)?;
    }
    reproduction.findings.push(
        "The paper states neither its load nor its lengths, so the tolerance is a factor of two. Large jobs are gangs of 8 and 16: with 4 \
         and 8 the list holds about half of the work that the published makespans ask for, and the gain over all jobs was missed. The \
         gain falls on both sides of this load (with GPUs to spare FIFO is as good; when all come at once the long jobs decide)."
            .into(),
    );
    Ok(reproduction)
}

/// The 60-job list that was published with the simulator, on the same cluster.
fn published_list(path: &Path, effort: &Effort, into: &mut Reproduction) -> Result<(), Error> {
    if !path.exists() {
        into.findings.push(format!(
            "{} is not there: without the published 60-job list.",
            path.display()
        ));
        return Ok(());
    }
    let (mut workload, _) = import(path, &ImportOptions::default())?;
    workload.cluster = ClusterSpec::uniform(15, 4, 15);
    workload.classes = vec![ModelClass::default()];
    for job in &mut workload.jobs {
        (job.class, job.resources) = (0, Resources::WHOLE_GPU);
    }
    let workload = Arc::new(workload);
    let runs = POLICIES.map(|policy| Run::new(&workload, &SimConfig::default(), policy));
    let results = run_all("T1, published list", &effort.watcher, &runs)?;
    let all = vec![0; workload.jobs.len()];
    let ratio = ratio(&results[0], &results[1], &all, None);
    let what = "mean JCT, YARN-CS / Tiresias-L, published 60-job list";
    into.figures.push(Figure::exact(what, ratio, Target::Record));
    into.findings.push(
        "The published 60-job list asks for 15 of 60 GPUs in the mean and its longest job receives 2,440 GPU·s, less than the \
         first threshold: no job is demoted. It cannot show what the paper shows."
            .into(),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawn_jobs_follow_the_shares_and_come_every_thirty_seconds() {
        let (workload, bins) = draw(Seed(3), 20_000, GAP_S);
        for (number, bin) in BINS.iter().enumerate() {
            let share = bins.iter().filter(|other| **other == number).count() as f64 / 20_000.0;
            assert!((share - bin.share).abs() < 0.012, "{}: {share}", bin.name);
        }
        let last_s = workload.jobs[19_999].submit.as_secs_f64();
        assert!((last_s / 19_999.0 / GAP_S - 1.0).abs() < 0.03, "{last_s}");
        workload.validate().unwrap();
    }
}
