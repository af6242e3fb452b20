//! A list as a site hands it over: as [`super::import`], with its nodes and a mapping beside it.

use std::path::Path;

use super::build::build;
use super::site::{Mapping, SiteOptions};
use super::{Format, ImportReport, draft_of};
use crate::Error;
use crate::Workload;

/// A site's list as a workload.
#[derive(Clone, Debug)]
pub struct SiteImport {
    /// The workload.
    pub workload: Workload,
    /// What was left out, mended and assumed.
    pub report: ImportReport,
    /// How the table was read; none for JSON, which needs none.
    pub mapping: Option<Mapping>,
}

/// Reads a site's list.
///
/// # Errors
/// As [`super::import`].
pub fn import_site(path: &Path, options: &SiteOptions) -> Result<SiteImport, Error> {
    options.import.validate()?;
    let format = match options.import.format {
        Some(format) => format,
        None => match &options.mapping {
            Some(mapping) if mapping.slurm_ids => Format::Sacct,
            Some(_) => Format::Table,
            // A file that is no known list is refused with the columns that it lacks.
            None => Format::of_file(path)?,
        },
    };
    // With nodes or a mapping of the caller's a published list is a table like any other; so is our own file.
    let is_any = options.nodes.is_some() || options.mapping.is_some() || format == Format::Canonical;
    let format = match format {
        Format::Sacct | Format::SacctJson | Format::Kubernetes => format,
        _ if is_any => Format::Table,
        known => known,
    };
    let (draft, mapping) = draft_of(path, format, options)?;
    let (workload, report) = build(path, format, draft, &options.import)?;
    Ok(SiteImport {
        workload,
        report,
        mapping,
    })
}
