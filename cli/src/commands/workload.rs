//! `pleach workload`: what workloads there are, what is in one, and writing one down.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use pleach_env::Error as EnvError;
use pleach_env::workload::file::sidecar_path;
use pleach_env::workload::generate::GeneratorConfig;
use pleach_env::workload::import::Format;
use pleach_env::workload::{Outcome, Workload};
use pleach_env::{EnvConfig, Seed};

use crate::commands::{Context, describe};
use crate::flags::workload::{WorkloadArgs, WorkloadCommand, WorkloadStatsArgs, WorkloadWriteArgs};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::evaluate::metric::{show_plain, show_seconds};
use pleach_experiments::evaluate::stats::{mean, quantile};
use pleach_experiments::evaluate::table::Table;

/// Runs a step.
///
/// # Errors
/// A workload that cannot be made, or a file in the way.
pub fn run(args: &WorkloadArgs, context: &mut Context<'_>) -> Result<(), Error> {
    match &args.command {
        WorkloadCommand::List => list(context),
        WorkloadCommand::Describe(args) => describe::run(args, context),
        WorkloadCommand::Stats(args) => stats(args, context),
        WorkloadCommand::Write(args) => write(args, context),
    }
}

fn list(context: &mut Context<'_>) -> Result<(), Error> {
    let presets = GeneratorConfig::PRESETS.iter().map(|name| {
        vec![
            (*name).to_string(),
            "generator".into(),
            GeneratorConfig::preset(name)
                .map(|preset| preset.describe().to_string())
                .unwrap_or_default(),
        ]
    });
    let ids = EnvConfig::ids().map(|id| {
        vec![
            id.to_string(),
            "environment".into(),
            EnvConfig::describe(id).unwrap_or_default().to_string(),
        ]
    });
    let header = ["name", "kind", "what it is"].map(str::to_string).to_vec();
    let formats = Format::ALL.map(Format::word).join(", ");
    let notes = vec![format!(
        "files, plain or gzipped, and canonical in Parquet too: {formats}"
    )];
    context.say(
        &Table {
            header,
            rows: presets.chain(ids).collect(),
            notes,
        }
        .to_terminal(),
    )
}

fn stats(args: &WorkloadStatsArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let source = args.workload.source();
    source.check()?;
    let mut values = Vec::new();
    for name in &source.workload {
        let (workload, report) = source.workload(name, first_seed(args.seed))?;
        if let Some(report) = report {
            context.say(&report.to_string())?;
        }
        context.say(&table_of(&workload).to_terminal())?;
        values.push(value_of(&workload));
    }
    if let Some(path) = &args.json {
        context.write_json(path, &serde_json::json!({"schema": 1, "workloads": values}))?;
    }
    Ok(())
}

fn first_seed(seed: u64) -> Seed {
    seeds(seed, "test", 1)[0]
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Gang sizes in classes of powers of two, with the share of jobs and of GPU time.
fn gangs(workload: &Workload) -> BTreeMap<u32, (f64, f64)> {
    let (jobs, gpu_s) = (workload.jobs.len().max(1) as f64, workload.demand_gpu_s());
    let mut classes = BTreeMap::new();
    for job in &workload.jobs {
        let entry: &mut (f64, f64) = classes.entry(1 << job.num_gpus.ilog2()).or_default();
        entry.0 += 1.0 / jobs;
        entry.1 += f64::from(job.num_gpus) * job.run_time_s / gpu_s;
    }
    classes
}

fn value_of(workload: &Workload) -> serde_json::Value {
    let run_s = sorted(workload.jobs.iter().map(|job| job.run_time_s));
    let outcome = |outcome: Outcome| workload.jobs.iter().filter(|job| job.outcome == outcome).count();
    let outcomes: BTreeMap<&str, usize> = Outcome::ALL
        .iter()
        .map(|kind| (kind.word(), outcome(*kind)))
        .collect();
    let gangs: BTreeMap<String, serde_json::Value> = gangs(workload)
        .into_iter()
        .map(|(size, (jobs, work))| {
            (
                size.to_string(),
                serde_json::json!({"jobs": jobs, "gpu_time": work}),
            )
        })
        .collect();
    serde_json::json!({
        "name": workload.name,
        "num_jobs": workload.jobs.len(),
        "num_gpus": workload.cluster.num_gpus(),
        "num_tenants": workload.cluster.tenants.len(),
        "span_s": workload.arrival_span_s(),
        "offered_load": Some(workload.offered_load()).filter(|load| load.is_finite()),
        "mean_run_time_s": mean(&run_s),
        "run_time_s": {"p50": quantile(&run_s, 0.5), "p90": quantile(&run_s, 0.9), "p99": quantile(&run_s, 0.99)},
        "gang_classes": gangs,
        "outcomes": outcomes,
    })
}

fn table_of(workload: &Workload) -> Table {
    let run_s = sorted(workload.jobs.iter().map(|job| job.run_time_s));
    let at = |q: f64| show_seconds(quantile(&run_s, q).unwrap_or(0.0));
    let mut rows = vec![
        ("jobs", workload.jobs.len().to_string()),
        ("GPUs", workload.cluster.num_gpus().to_string()),
        ("tenants", workload.cluster.tenants.len().to_string()),
        ("arrivals over", show_seconds(workload.arrival_span_s())),
        ("offered load", show_plain(workload.offered_load())),
        (
            "run time p50, p90, p99",
            format!("{}, {}, {}", at(0.5), at(0.9), at(0.99)),
        ),
    ];
    let classes = gangs(workload);
    let words: Vec<String> = classes
        .iter()
        .map(|(size, (jobs, work))| {
            format!(
                "{size}+: {:.1} % of jobs, {:.1} % of GPU time",
                100.0 * jobs,
                100.0 * work
            )
        })
        .collect();
    rows.extend(words.into_iter().map(|word| ("gang", word)));
    Table {
        header: vec![workload.name.clone(), String::new()],
        rows: rows
            .into_iter()
            .map(|(key, value)| vec![key.to_string(), value])
            .collect(),
        notes: Vec::new(),
    }
}

fn write(args: &WorkloadWriteArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if args.to.exists() && !args.force {
        return Err(Error::config(
            "to",
            args.to.display(),
            "a new file",
            "Give --force to replace it.",
        ));
    }
    let source = args.workload.source();
    let name = source.only("written")?;
    let (workload, report) = source.workload(name, first_seed(args.seed))?;
    if !args.force {
        refuse_other_cluster(&workload, &args.to)?;
    }
    if let Some(report) = report {
        context.say(&report.to_string())?;
    }
    workload.write(&args.to).map_err(|error| match error {
        EnvError::Io { path, source } => Error::io("write", &path, source),
        other => other.into(),
    })?;
    context.say(&format!(
        "{} jobs written to {}",
        workload.jobs.len(),
        args.to.display()
    ))
}

/// Refuses a cluster beside `to` that is not this workload's: it belongs to another list of the same name.
fn refuse_other_cluster(workload: &Workload, to: &Path) -> Result<(), Error> {
    let place = sidecar_path(to);
    let Ok(file) = std::fs::File::open(&place) else {
        return Ok(());
    };
    let own = workload.sidecar()?;
    // No more than tells the two apart.
    let mut found = Vec::new();
    let read = file.take(own.len() as u64 + 1).read_to_end(&mut found);
    if read.is_err() || found == own.as_bytes() {
        return Ok(());
    }
    Err(Error::config(
        "to",
        to.display(),
        format!(
            "a file beside which no {} of another workload lies",
            place.display()
        ),
        "Give another name, or --force to replace both.",
    ))
}
