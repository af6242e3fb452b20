//! Published lists of jobs turned into workloads, with every change to a row counted and reported.
//!
//! A real list is never clean. What can be mended without inventing facts is mended by a named rule and counted in the
//! [`ImportReport`]; what cannot is refused with its line and column. Nothing is dropped silently: rows read = jobs +
//! rows excluded by a named rule.

mod build;
mod gavel;
mod itp;
mod philly;
mod report;
mod tenants;
mod venus;

use std::path::Path;

use pleach_scheduler::spec::ClusterSpec;
use serde::{Deserialize, Serialize};

pub use report::{ImportReport, Repair};

pub(crate) use build::{Draft, RawRow, Site, SiteOf, name_of};
pub(crate) use gavel::gavel_cluster;
pub(crate) use tenants::{Tenancy, share_out};

use super::table::{Lines, split};
use super::{SUBMIT_S_MAX, Workload, config};
use crate::error::Error;

/// A format of job list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// This project's own file (docs/workload-file.md).
    Canonical,
    /// Microsoft Philly 2017, one row per job, joined from its published parts.
    Philly,
    /// Helios Venus 2020 (SenseTime), the joined or the four-column list.
    Venus,
    /// Microsoft ITP 2021 (the ElasticFlow traces), raw or with generated models.
    Itp,
    /// Gavel's tab-separated lists.
    Gavel,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [
        Format::Canonical,
        Format::Philly,
        Format::Venus,
        Format::Itp,
        Format::Gavel,
    ];

    /// The word used in configurations and reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Format::Canonical => "canonical",
            Format::Philly => "philly",
            Format::Venus => "venus",
            Format::Itp => "itp",
            Format::Gavel => "gavel",
        }
    }

    /// Recognises a list by its first line.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, or starts with no known header.
    pub fn detect(path: &Path) -> Result<Format, Error> {
        let mut lines = Lines::open(path)?;
        let Some(first) = lines.next_line()?.map(str::to_owned) else {
            return Err(lines.error("-", format!("the file is empty; {KNOWN_HEADERS}")));
        };
        let mut names = Vec::new();
        if gavel::is_row(&first) {
            return Ok(Format::Gavel);
        }
        let has = |wanted: &[&str], names: &[String]| {
            wanted
                .iter()
                .all(|name| names.iter().any(|found| found.trim() == *name))
        };
        if split(&first, ',', &mut names).is_ok() {
            for (format, wanted) in [
                (Format::Canonical, &super::file::REQUIRED[..]),
                (Format::Philly, &philly::REQUIRED[..]),
                (Format::Venus, &venus::REQUIRED_JOINED[..]),
                (Format::Venus, &venus::REQUIRED_FOUR[..]),
                (Format::Itp, &itp::REQUIRED[..]),
            ] {
                if has(wanted, &names) {
                    return Ok(format);
                }
            }
        }
        let text = format!(
            "`{}` is no known header; {KNOWN_HEADERS}",
            super::table::shorten(&first)
        );
        Err(lines.error("-", text))
    }
}

const KNOWN_HEADERS: &str = "known are: submit_s,num_gpus,run_time_s (canonical); \
    job,submit_s,num_gpus,duration_s,state (Philly); job_id,submit_s,gpu_num,service_s or \
    job_id,arrival_s,service_sec,gpu_count (Venus); job_id,submission_time,duration,num_gpu (ITP); \
    Gavel's tab-separated rows";

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
    };
    build::build(path, format, draft, options)
}

#[cfg(test)]
mod tests;
