//! `pleach workload import`: a site's own accounting as a list of jobs.

use std::path::{Path, PathBuf};

use pleach_env::workload::file::sidecar_path;
use pleach_env::workload::import::ImportOptions;
use pleach_env::workload::import::site::{Mapping, NodeTable, SiteImport, SiteOptions, guess, import_site};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::cluster_flag::cluster_of;
use pleach_experiments::evaluate::day::DAY_S;
use pleach_experiments::evaluate::day::Day;
use pleach_experiments::file_kind::FileKind;
use pleach_experiments::run_folder::atomic_file;

use crate::commands::Context;
use crate::flags::workload::WorkloadImportArgs;

/// Largest mapping, bytes.
const MAPPING_BYTES_MAX: u64 = 1 << 20;

/// Reads a site's accounting and writes the list, its cluster and the mapping.
///
/// # Errors
/// Files that cannot be used or are in the way.
pub fn run(args: &WorkloadImportArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let mapping_path = mapping_path(&args.to);
    for path in [args.to.clone(), sidecar_path(&args.to), mapping_path.clone()] {
        let is_given = args.mapping.as_ref() == Some(&path);
        if !is_given {
            args.target.check("to", &path)?;
        }
    }
    let (cluster, assumed) = match &args.cluster {
        Some(given) => {
            let (cluster, assumed) = cluster_of(given)?;
            (Some(cluster), assumed)
        }
        None => (None, None),
    };
    let (from_s, dated) = args.from_day.map(Day::begins_s).unzip();
    let options = SiteOptions {
        mapping: mapping(args)?,
        nodes: args.nodes.as_deref().map(nodes).transpose()?,
        import: ImportOptions {
            cluster,
            from_s,
            to_s: args.days.map(|days| from_s.unwrap_or(0.0) + days * DAY_S),
            dated: dated.unwrap_or(false),
            ..ImportOptions::default()
        },
        ..SiteOptions::default()
    };
    let SiteImport {
        workload,
        mut report,
        mapping,
    } = import_site(&args.from, &options).map_err(|error| FileKind::Jobs.or_other(&args.from, error))?;
    report.notes.extend(assumed);
    context.say(report.to_string().trim_end())?;
    workload.write(&args.to)?;
    let mut written = vec![
        args.to.display().to_string(),
        sidecar_path(&args.to).display().to_string(),
    ];
    if let Some(mapping) = mapping {
        atomic_file::write(&mapping_path, mapping.text().as_bytes())?;
        written.push(mapping_path.display().to_string());
    }
    let to = args.to.display();
    context.say(&format!(
        "{} jobs written: {}",
        workload.jobs.len(),
        written.join(", ")
    ))?;
    context.say(&format!(
        "next: pleach workload describe --workload {to}; pleach evaluate --workload {to} --policy fifo,easy,sjf"
    ))
}

/// The site's nodes.
fn nodes(path: &Path) -> Result<NodeTable, Error> {
    NodeTable::read(path).map_err(|error| FileKind::Nodes.or_other(path, error))
}

/// The mapping that is given, else a guessed one where a flag changes it.
fn mapping(args: &WorkloadImportArgs) -> Result<Option<Mapping>, Error> {
    let mut mapping = match &args.mapping {
        Some(path) => {
            let text = atomic_file::read_text(path, MAPPING_BYTES_MAX)?;
            Some(Mapping::of_text(&path.display().to_string(), &text)?)
        }
        None => None,
    };
    if let Some(zone) = &args.time_zone {
        let mut changed = match mapping {
            Some(mapping) => mapping,
            None => guess(&args.from)?.mapping,
        };
        changed.time_zone.clone_from(zone);
        mapping = Some(Mapping::of_text("--time-zone", &changed.text())?);
    }
    Ok(mapping)
}

/// `NAME.mapping.toml` beside the list.
fn mapping_path(list: &Path) -> PathBuf {
    let sidecar = sidecar_path(list).display().to_string();
    PathBuf::from(sidecar.replace(".cluster.toml", ".mapping.toml"))
}
