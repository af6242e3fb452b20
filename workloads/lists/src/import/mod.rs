//! Published lists of jobs turned into workloads, with every change to a row counted and reported.
//!
//! A real list is never clean. What can be mended without inventing facts is mended by a named rule and counted in the
//! [`ImportReport`]; what cannot is refused with its line and column. Nothing is dropped silently: rows read = jobs +
//! rows excluded by a named rule.

mod build;
mod cluster_of_list;
mod detect;
mod dlrm;
pub(super) mod draft;
mod eva;
mod fits;
mod format;
mod gavel;
mod import_site;
mod mapped;
mod mappings;
mod openb;
mod options;
mod published;
mod rejected;
mod report;
mod row;
mod rubick;
mod shockwave;
pub mod site;
mod swf;
mod tenants;

use std::path::Path;

pub use format::Format;
pub use options::ImportOptions;
pub use pleach_tables::{Account, Repair};
pub use published::{Fleet, FleetNodes, Published};
pub use report::ImportReport;

pub(crate) use draft::{Draft, RawRow, Site, SiteOf, Tenancy};
pub(crate) use gavel::gavel_cluster;
pub(crate) use tenants::share_out;

use super::Workload;
use crate::Error;

/// Reads a list of jobs.
///
/// # Errors
/// A file that cannot be read; the first value that cannot be used, with line, column, what is allowed and how to mend
/// it; options that do not fit the list; a list of which no job is left.
pub fn import(path: &Path, options: &ImportOptions) -> Result<(Workload, ImportReport), Error> {
    options.validate()?;
    let format = match options.format {
        Some(format) => format,
        None => Format::detect(path)?,
    };
    let options = site::SiteOptions {
        import: options.clone(),
        ..site::SiteOptions::default()
    };
    let (draft, _) = draft_of(path, format, &options)?;
    build::build(path, format, draft, &options.import)
}

/// The rows of a list by its format, and the mapping by which they were read, where there is one.
fn draft_of(
    path: &Path,
    format: Format,
    options: &site::SiteOptions,
) -> Result<(Draft, Option<site::Mapping>), Error> {
    let import = &options.import;
    let draft = match format {
        Format::Canonical => super::file::read_draft(path, import)?,
        Format::Gavel => gavel::read(path, import)?,
        Format::Mapped("openb") => openb::read(path, import)?,
        Format::Mapped("dlrm") => dlrm::read(path, import)?,
        Format::Mapped("rubick") => rubick::read(path, import)?,
        Format::Eva => eva::read(path, import)?,
        Format::Shockwave => shockwave::read(path, import)?,
        Format::Swf => swf::read(path, import)?,
        Format::Mapped(_) | Format::Sacct | Format::SacctJson | Format::Kubernetes | Format::Table => {
            return site::draft(path, format, options);
        }
    };
    Ok((draft, None))
}

impl Workload {
    /// Reads `NAME.csv`, `NAME.csv.gz` or `NAME.parquet` with its sidecar `NAME.cluster.toml`.
    ///
    /// # Errors
    /// As [`import`].
    pub fn read(path: &Path) -> Result<Workload, Error> {
        let options = ImportOptions {
            format: Some(Format::Canonical),
            ..ImportOptions::default()
        };
        import(path, &options).map(|(workload, _)| workload)
    }
}

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod list_tests;
#[cfg(test)]
mod tests;
