//! A site's list as a draft: guessed or mapped columns, rows that are left out with their reason, a cluster from what was seen.

use std::path::Path;

use pleach_tables::Account;
use pleach_tables::clock::day_text;

use super::guess::guess;
use super::mapping::Mapping;
use super::options::SiteOptions;
use super::row::{NO_GPU, Reader};
use super::taken::Taken;
use super::{Fate, kubernetes, merge, place, sacct_json, table_rows};
use crate::Error;
use crate::file::cluster_beside;
use crate::import::Format;
use crate::import::draft::Draft;
use crate::import::mapped;
use crate::import::mappings::mapping_of;
use crate::import::options::DATES_FROM_S;

const DAY_S: f64 = 86_400.0;

/// The draft of a list, and by which mapping it was read.
pub(in crate::import) fn draft(
    path: &Path,
    format: Format,
    options: &SiteOptions,
) -> Result<(Draft, Option<Mapping>), Error> {
    let is_json = matches!(format, Format::SacctJson | Format::Kubernetes);
    let known = match format {
        Format::Mapped(name) => mapping_of(name),
        _ => None,
    };
    // A published list has its own cluster.
    let is_any = known.map_or(format == Format::Table, |mapping| mapping.published.is_none());
    let options = &match is_any {
        true => with_cluster_beside(path, options)?,
        false => options.clone(),
    };
    let mut notes = Vec::new();
    let mapping = match options.mapping.as_ref().or(known) {
        Some(mapping) => mapping.clone(),
        None if is_json => Mapping {
            slurm_ids: format == Format::SacctJson,
            ..Mapping::default()
        },
        None => {
            let guessed = guess(path)?;
            notes.push(guessed.mapping.line());
            notes.extend(guessed.notes);
            guessed.mapping
        }
    };
    if let Some(published) = &mapping.published {
        let draft = mapped::read(path, &mapping, published, &options.import)?;
        return Ok((draft, Some(mapping)));
    }
    let mut taken = Taken {
        mapping_is_slurm: mapping.slurm_ids,
        ..Taken::default()
    };
    let mut reader = Reader::new(&mapping);
    reader.keeps_waiting = options.later_s.is_some();
    match format {
        Format::SacctJson => sacct_json::read(path, &mut reader, &mut taken)?,
        Format::Kubernetes => kubernetes::read(path, &mut reader, &mut taken)?,
        _ => table_rows::read(path, &mapping, &mut reader, &mut taken)?,
    }
    let jobs = merge::merge(&mut taken, reader.latest_s, options.later_s);
    let first_s = jobs
        .iter()
        .map(|job| job.row.submit_s)
        .fold(f64::INFINITY, f64::min);
    let base_s = match first_s {
        dated if dated.is_finite() && dated >= DATES_FROM_S => (dated / DAY_S).floor() * DAY_S,
        _ => 0.0,
    };
    if base_s > 0.0 {
        notes.push(format!("day 0 is {} (UTC)", day_text(base_s)));
    }
    if jobs.is_empty()
        && mapping.slurm_ids
        && let Some(message) = no_gpus(&taken.account, &reader, options)
    {
        return Err(Error::data(path, message));
    }
    // They say nothing of the cluster.
    let (jobs, waiting): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.row.fate != Fate::Waiting);
    let mut placed = place::Placing::new(&jobs, (&reader.types, &reader.others), &mapping, options)?;
    placed.cluster.seen.scheduler = taken.scheduler;
    notes.extend(placed.notes());
    let mut draft = Draft::new(
        path,
        placed.site(&mapping, options.import.cluster.is_some(), notes),
    );
    draft.account = taken.account;
    draft.clock_0_unix_s = Some(base_s).filter(|base_s| *base_s > 0.0);
    for job in jobs.into_iter().chain(waiting) {
        let mended = job.mended.clone();
        match placed.row(job, base_s, &mapping, &mut draft) {
            Ok(row) => {
                mended.iter().for_each(|rule| draft.mend(rule));
                draft.rows.push(row);
            }
            Err(reason) => draft.exclude(reason),
        }
    }
    // What runs first is asked first: rows come in the order of the source, and a list is sorted without a word about it.
    let mut order: Vec<usize> = (0..draft.rows.len()).collect();
    order.sort_by_key(|place| draft.rows[*place].submit);
    draft.reorder(&order);
    Ok((draft, (!is_json).then_some(mapping)))
}

/// The same options, with the cluster that lies beside the list where they name neither cluster nor nodes.
fn with_cluster_beside(path: &Path, options: &SiteOptions) -> Result<SiteOptions, Error> {
    let mut options = options.clone();
    let is_given = options.import.cluster.is_some() || options.nodes.is_some();
    if !is_given && let Some((beside, cluster)) = cluster_beside(path)? {
        options.import.cluster = Some(cluster);
        options.beside = Some(beside);
    }
    Ok(options)
}

/// What to say of a list of Slurm's of which no row that ran names a GPU; none for other lists.
fn no_gpus(account: &Account, reader: &Reader<'_>, options: &SiteOptions) -> Option<String> {
    let num = account.rows_of(NO_GPU);
    if num == 0 {
        return None;
    }
    let place = options.nodes.as_ref().map(|nodes| {
        let partitions = reader.partitions.iter().map(|name| (name, nodes.gpus_of(name)));
        match partitions
            .max_by_key(|(_, gpus)| *gpus)
            .filter(|(_, gpus)| *gpus > 0)
        {
            Some((name, gpus)) => format!(", although the nodes of partition `{name}` have {gpus} GPUs"),
            None => format!(", although {} nodes have GPUs", nodes.num_nodes()),
        }
    });
    Some(format!(
        "none of {num} rows names a GPU (gres/gpu){}: Slurm records GPUs only where gres/gpu is in AccountingStorageTRES (slurm.conf), \
         and only of jobs from then on. Until then: a column AllocGRES or ReqGRES if sacct has it (before Slurm 20.11), or a column of \
         your own with the GPUs of each job, named as gpus in a mapping (docs/import.md); a job that held whole nodes had their GPUs. {}",
        place.unwrap_or_default(),
        account.sums("rows")
    ))
}
