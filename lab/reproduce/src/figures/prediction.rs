//! Schedulers built on predictions.

use std::sync::Arc;

use pleach_env::workload::Workload;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};
use pleach_env::{Seed, SimConfig, SimResult};

use super::plot::lines;
use super::{Benchmark, Effort, Figure, Reproduction, Run, Series, Target, run_all};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "A1",
    title: "A-SRPT under perfect and noisy predictions",
    source: "A-SRPT INFOCOM'25 (arXiv 2501.05563): up to 92 % lower total JCT than its baselines",
    setup: "16 nodes of 8 GPUs, 1,200 Philly-like jobs of at most a day at a load of 0.9 that lose by spreading as in the \
            Philly study; predictions are the true run time times a log-normal error. The paper replays a list of Alibaba's \
            PAI; its exact set-up is not known to us",
    run: a1,
}];

/// Standard deviations of the error's logarithm; 0 is perfect.
const SIGMAS: [f64; 5] = [0.0, 0.5, 1.0, 1.5, 2.0];
/// Those that look at predictions, and those that do not.
const PREDICTING: [&str; 3] = ["a-srpt", "sjf", "srtf"];
const BLIND: [&str; 2] = ["fifo", "tiresias"];

fn draw(seed: Seed, num_jobs: usize) -> Result<Workload, Error> {
    let config = ProfileConfig {
        num_jobs,
        num_nodes: 16,
        gpus_per_node: 8,
        load: 0.9,
        run_time_s_max: 86_400.0,
        ..ProfileConfig::default()
    };
    generate(&GeneratorConfig::Profile(config), seed).map_err(Error::from)
}

fn with_error(sigma: f64, seed: Seed) -> SimConfig {
    let estimates = if sigma == 0.0 {
        EstimateModel::Oracle
    } else {
        EstimateModel::LogNormal { sigma, bias: 1.0 }
    };
    SimConfig {
        estimates,
        seed: seed.0,
        ..SimConfig::default()
    }
}

fn a1(effort: &Effort) -> Result<Reproduction, Error> {
    let seeds = effort.seeds(5);
    let sigmas = effort.size(&SIGMAS[..], &SIGMAS[..2]);
    let mut runs = Vec::new();
    for seed in &seeds {
        let workload = Arc::new(draw(*seed, effort.size(1200, 80))?);
        for policy in BLIND {
            runs.push(Run::new(&workload, &with_error(0.0, *seed), policy));
        }
        for sigma in sigmas {
            for policy in PREDICTING {
                runs.push(Run::new(&workload, &with_error(*sigma, *seed), policy));
            }
        }
    }
    let results = run_all("A1", &effort.watcher, &runs)?;
    let per_seed = BLIND.len() + sigmas.len() * PREDICTING.len();
    // Mean JCT of each seed, s.
    let jcts = |at: usize| -> Vec<f64> {
        let of_seed = results
            .chunks(per_seed)
            .map(|results: &[SimResult]| results[at].metrics.avg_jct_s);
        of_seed.collect()
    };
    let position = |sigma: usize, policy: usize| BLIND.len() + sigma * PREDICTING.len() + policy;
    let over = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a / b).collect() };
    let perfect = jcts(position(0, 0));
    let mut reproduction = Reproduction::default();
    let figures = &mut reproduction.figures;
    let less = over(&perfect, &jcts(0))
        .into_iter()
        .map(|ratio| 100.0 * (1.0 - ratio));
    figures.push(Figure::of(
        "total JCT below fifo with perfect predictions, %",
        &less.collect::<Vec<f64>>(),
        Target::Record,
    ));
    for (what, at) in [("tiresias", 1), ("sjf", position(0, 1)), ("srtf", position(0, 2))] {
        let what = format!("mean JCT, a-srpt / {what}, perfect predictions");
        figures.push(Figure::of(what, &over(&perfect, &jcts(at)), Target::Record));
    }
    for (number, sigma) in sigmas.iter().enumerate().skip(1) {
        let loss = over(&jcts(position(number, 0)), &perfect);
        figures.push(Figure::of(
            format!("a-srpt, error of sigma {sigma} / perfect"),
            &loss,
            Target::Record,
        ));
    }
    let curve = |name: &str, points: Vec<(f64, f64)>| Series::new(name, points);
    let mut series: Vec<Series> = (0..PREDICTING.len())
        .map(|policy| {
            let at = |number: usize| mean(&jcts(position(number, policy))) / 3600.0;
            curve(
                PREDICTING[policy],
                sigmas
                    .iter()
                    .enumerate()
                    .map(|(number, sigma)| (*sigma, at(number)))
                    .collect(),
            )
        })
        .collect();
    for (number, policy) in BLIND.iter().enumerate() {
        let hours = mean(&jcts(number)) / 3600.0;
        series.push(curve(
            policy,
            sigmas.iter().map(|sigma| (*sigma, hours)).collect(),
        ));
    }
    let plot = lines(
        "standard deviation of the error's logarithm",
        "mean JCT (h)",
        &series,
        None,
    );
    reproduction
        .plots
        .push(("What wrong predictions cost".into(), plot));
    reproduction.findings.push(
        "The paper says that the loss is graceful and states no figure that we know, so what wrong predictions cost is for the record."
            .into(),
    );
    Ok(reproduction)
}
