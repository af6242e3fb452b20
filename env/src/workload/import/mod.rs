//! Published lists of jobs turned into workloads, with every change to a row counted and reported.
//!
//! A real list is never clean. What can be mended without inventing facts is mended by a named rule and counted in the
//! [`ImportReport`]; what cannot is refused with its line and column. Nothing is dropped silently: rows read = jobs +
//! rows excluded by a named rule.

mod build;
mod chronus;
mod detect;
mod dlrm;
mod eva;
mod format;
mod gavel;
mod itp;
mod lingjun;
mod muri;
mod not_jobs;
mod openb;
mod pai;
mod philly;
mod pollux;
mod report;
mod room;
mod row;
mod rubick;
mod shockwave;
mod site;
mod swf;
mod tenants;
mod thetagpu;
mod tiresias;
mod venus;

use std::path::Path;

use pleach_scheduler::spec::ClusterSpec;
use serde::{Deserialize, Serialize};

pub use format::Format;
pub use report::{ImportReport, Repair};

pub(crate) use build::{Draft, RawRow, Site, SiteOf, name_of};
pub(crate) use gavel::gavel_cluster;
pub(crate) use tenants::{Tenancy, share_out};

use super::{SUBMIT_S_MAX, Workload, config};
use crate::error::Error;

/// What to take from a list and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImportOptions {
    /// The format; recognised by the first line where absent.
    pub format: Option<Format>,
    /// The cluster to run on instead of the list's own. With a single tenant it is shared out among the list's tenants;
    /// with several, tenants are matched by name.
    pub cluster: Option<ClusterSpec>,
    /// Whether the list's virtual clusters are walls (quotas bind, no borrowing). Without, the cluster is shared and
    /// tenants only matter for fairness.
    pub virtual_clusters: bool,
    /// Only jobs submitted at this time or later, s on the list's own clock, which becomes time 0.
    pub from_s: Option<f64>,
    /// Only jobs submitted before this time, s on the list's own clock.
    pub to_s: Option<f64>,
    /// Only the first so many jobs of those that are left.
    pub max_jobs: Option<usize>,
}

impl ImportOptions {
    /// Checks the options without a file.
    ///
    /// # Errors
    /// The option that cannot be used.
    pub fn validate(&self) -> Result<(), Error> {
        for (key, value) in [("from_s", self.from_s), ("to_s", self.to_s)] {
            if let Some(value) = value
                && !(-SUBMIT_S_MAX..=SUBMIT_S_MAX).contains(&value)
            {
                let hint = "seconds on the clock of the list";
                return Err(config(format!("import.{key}"), value, "-2e9 to 2e9 s", hint));
            }
        }
        if let (Some(from_s), Some(to_s)) = (self.from_s, self.to_s)
            && from_s >= to_s
        {
            let allowed = format!("a time after from_s = {from_s}");
            return Err(config("import.to_s", to_s, &allowed, "swap the two"));
        }
        if self.max_jobs == Some(0) {
            return Err(config(
                "import.max_jobs",
                0,
                "1 or more",
                "leave it out for all jobs",
            ));
        }
        if let Some(cluster) = &self.cluster {
            cluster.validate()?;
        }
        Ok(())
    }
}

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
    };
    build::build(path, format, draft, options)
}

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod list_tests;
#[cfg(test)]
mod tests;
