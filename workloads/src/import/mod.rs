//! Published lists of jobs turned into workloads, with every change to a row counted and reported.
//!
//! A real list is never clean. What can be mended without inventing facts is mended by a named rule and counted in the
//! [`ImportReport`]; what cannot is refused with its line and column. Nothing is dropped silently: rows read = jobs +
//! rows excluded by a named rule.

mod build;
mod chronus;
mod cluster_of_list;
mod detect;
mod dlrm;
pub(super) mod draft;
mod eva;
mod fits;
mod format;
mod gavel;
mod itp;
mod lingjun;
mod muri;
mod openb;
mod options;
mod pai;
mod philly;
mod pollux;
mod rejected;
mod report;
mod row;
mod rubick;
mod shockwave;
pub mod site;
mod swf;
mod tenants;
mod thetagpu;
mod tiresias;
mod venus;

use std::path::Path;

pub use format::Format;
pub use options::ImportOptions;
pub use pleach_tables::{Account, Repair};
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
    let draft = match format {
        Format::Canonical => super::file::read_draft(path, options)?,
        Format::Philly => philly::read(path, options)?,
        Format::Venus => venus::read(path, options)?,
        Format::Itp => itp::read(path, options)?,
        Format::Gavel => gavel::read(path, options)?,
        Format::Openb => openb::read(path, options)?,
        Format::Pai => pai::read(path, options)?,
        Format::Lingjun => lingjun::read(path, options)?,
        Format::ThetaGpu => thetagpu::read(path, options)?,
        Format::Dlrm => dlrm::read(path, options)?,
        Format::Tiresias => tiresias::read(path, options)?,
        Format::Muri => muri::read(path, options)?,
        Format::Chronus => chronus::read(path, options)?,
        Format::Pollux => pollux::read(path, options)?,
        Format::Rubick => rubick::read(path, options)?,
        Format::Eva => eva::read(path, options)?,
        Format::Shockwave => shockwave::read(path, options)?,
        Format::Swf => swf::read(path, options)?,
        Format::Sacct | Format::SacctJson | Format::Kubernetes | Format::Table => {
            let options = site::SiteOptions {
                import: options.clone(),
                ..site::SiteOptions::default()
            };
            site::draft(path, format, &options)?.0
        }
    };
    build::build(path, format, draft, options)
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
