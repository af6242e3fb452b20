//! Plots of generated workloads beside the published figures that they are held to:
//! `cargo run --release -p pleach-env --example generator_plots -- docs/plots`.
//!
//! For each preset that follows a real list: run times by gang size, gang sizes by jobs and by GPU time, arrivals. The
//! same version writes the same bytes.

#![allow(
    clippy::disallowed_methods,
    reason = "an example; its last places are nobody's promise"
)]

mod published;
mod svg;

use std::path::Path;

use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{Error, Seed};
use published::{LISTS, List};
use svg::{Axis, Plot};

/// Points of a distribution's line.
const NUM_POINTS: usize = 160;
/// Hours shown of the arrivals: two weeks.
const NUM_HOURS: usize = 336;

fn main() -> Result<(), Error> {
    let folder = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "docs/plots".to_string());
    let io = |source| Error::Io {
        path: folder.clone().into(),
        source,
    };
    std::fs::create_dir_all(&folder).map_err(io)?;
    for list in &LISTS {
        let config: GeneratorConfig = toml::from_str(list.config).map_err(|error| Error::Data {
            file: list.preset.into(),
            line: 0,
            column: "-".into(),
            message: error.to_string(),
        })?;
        let workload = generate(&config, Seed(1))?;
        for (kind, text) in [
            ("run-times", run_times(&workload, list)),
            ("gangs", gangs(&workload, list)),
            ("arrivals", arrivals(&workload, list)),
        ] {
            let path = Path::new(&folder).join(format!("{}-{kind}.svg", list.preset));
            std::fs::write(&path, text).map_err(io)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

/// Which part of the jobs ended within a time: all jobs and those of each gang size, with the published points of all.
fn run_times(workload: &Workload, list: &List) -> String {
    let mut plot = Plot::new(
        &format!("{}: run times", list.preset),
        Axis::log(1.0, 1e7, "run time"),
        Axis::linear(0.0, 1.0, "jobs that ended within this time"),
    );
    plot.line("all", &distribution(workload, |_| true));
    for &gang in list.gangs_shown {
        let name = if gang == 1 {
            "1 GPU".to_string()
        } else {
            format!("{gang} GPUs")
        };
        plot.line(&name, &distribution(workload, |job| job.num_gpus == gang));
    }
    plot.dots("published, all", list.run_times);
    plot.render()
}

fn distribution(workload: &Workload, is: impl Fn(&JobSpec) -> bool) -> Vec<(f64, f64)> {
    let jobs = workload.jobs.iter().filter(|job| is(job));
    let mut times: Vec<f64> = jobs.map(|job| job.run_time_s).collect();
    times.sort_by(f64::total_cmp);
    let last = times.len().saturating_sub(1);
    let level = |point: usize| point as f64 / (NUM_POINTS - 1) as f64;
    let points = (0..NUM_POINTS).map(|point| (times[(level(point) * last as f64) as usize], level(point)));
    points.collect()
}

/// Shares of the jobs and of the GPU time by gang size, generated and published.
fn gangs(workload: &Workload, list: &List) -> String {
    let work = |job: &JobSpec| job.gpus() * job.run_time_s;
    let total: f64 = workload.jobs.iter().map(work).sum();
    let mut plot = Plot::new(
        &format!("{}: gang sizes", list.preset),
        Axis::linear(0.0, list.shares.len() as f64, "GPUs"),
        Axis::linear(0.0, 1.0, "share"),
    );
    let mut groups = Vec::new();
    for row in list.shares {
        let of = |job: &&JobSpec| (row.from..=row.to).contains(&job.gpus());
        let picked: Vec<&JobSpec> = workload.jobs.iter().filter(of).collect();
        let jobs = picked.len() as f64 / workload.jobs.len() as f64;
        let gpu_time = picked.iter().map(|job| work(job)).sum::<f64>() / total;
        groups.push((row.label, [jobs, row.jobs, gpu_time, row.gpu_time]));
    }
    plot.bars(
        ["jobs", "jobs, published", "GPU time", "GPU time, published"],
        &groups,
    );
    plot.render()
}

/// Jobs in each hour of the first two weeks.
fn arrivals(workload: &Workload, list: &List) -> String {
    let mut counts = vec![0.0; NUM_HOURS];
    for job in &workload.jobs {
        let hour = (job.submit.as_secs_f64() / 3600.0) as usize;
        if hour < NUM_HOURS {
            counts[hour] += 1.0;
        }
    }
    let most = counts.iter().copied().fold(1.0, f64::max);
    let mut plot = Plot::new(
        &format!("{}: arrivals", list.preset),
        Axis::linear(0.0, 14.0, "day"),
        Axis::linear(0.0, most, "jobs per hour"),
    );
    let points = counts.into_iter().enumerate();
    let points: Vec<(f64, f64)> = points.map(|(hour, count)| (hour as f64 / 24.0, count)).collect();
    plot.line("jobs per hour", &points);
    plot.render()
}
