//! `pleach workload`: what workloads there are, what is in one, and writing one down.

use std::io::Read;
use std::path::Path;

use pleach_env::workload::Workload;
use pleach_env::workload::file::sidecar_path;
use pleach_env::workload::generate::GeneratorConfig;
use pleach_env::workload::import::Format;
use pleach_env::{EnvConfig, Seed};

use crate::commands::{Context, describe, import, world};
use crate::flags::workload::{WorkloadArgs, WorkloadCommand, WorkloadWriteArgs};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::worlds::kinds;

/// Runs a step.
///
/// # Errors
/// A workload that cannot be made, or a file in the way.
pub fn run(args: &WorkloadArgs, context: &mut Context<'_>) -> Result<(), Error> {
    match &args.command {
        None => list(context),
        Some(WorkloadCommand::Describe(args)) => describe::run(args, context),
        Some(WorkloadCommand::Write(args)) => write(args, context),
        Some(WorkloadCommand::Settings(args)) => world::settings(&args.world, context),
        Some(WorkloadCommand::Import(args)) => import::run(args, context),
    }
}

fn list(context: &mut Context<'_>) -> Result<(), Error> {
    let presets = GeneratorConfig::names().map(|name| {
        vec![
            name.to_string(),
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
    let worlds = kinds().map(|kind| vec![kind.name.to_string(), "world".into(), kind.doc.into()]);
    let header = ["name", "kind", "what it is"].map(str::to_string).to_vec();
    let formats = Format::all().map(Format::word).collect::<Vec<_>>().join(", ");
    let notes = vec![format!(
        "files, plain or gzipped, and canonical in Parquet too: {formats}"
    )];
    context.say(
        &Table {
            header,
            rows: presets.chain(ids).chain(worlds).collect(),
            notes,
        }
        .to_terminal(),
    )
}

fn first_seed(seed: u64) -> Seed {
    seeds(seed, "test", 1)[0]
}

fn write(args: &WorkloadWriteArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(asked) = world::of(&args.workload, &args.of_world.set, &["to"], context)? {
        return world::write(&asked, args, context);
    }
    args.target.check("to", &args.to)?;
    let source = &args.workload;
    let name = source.only("written")?;
    let (workload, report) = source.workload(name, first_seed(args.draws.seed))?;
    if !args.target.force {
        refuse_other_cluster(&workload, &args.to)?;
    }
    match report {
        Some(report) => context.say(&report.to_string())?,
        None => source.assumed()?.map_or(Ok(()), |line| context.say(&line))?,
    }
    workload.write(&args.to)?;
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
    Error::refuse_if(
        !(read.is_err() || found == own.as_bytes()),
        "to",
        to.display(),
        format_args!(
            "a file beside which no {} of another workload lies",
            place.display()
        ),
        "Give another name, or --force to replace both.",
    )
}
