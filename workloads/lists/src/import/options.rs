//! What to take from a list and how.

use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_tables::clock::day_text;
use serde::{Deserialize, Serialize};

use super::Format;
use crate::Error;
use crate::{SUBMIT_S_MAX, config};

/// Before this time a number is no date but seconds of a list's own clock, s: March 1973.
pub(super) const DATES_FROM_S: f64 = 1e8;

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
    /// Whether these two are seconds since 1970 in UTC, and not on the list's own clock.
    pub dated: bool,
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
        Error::refuse_if(
            self.dated && self.from_s.is_none() && self.to_s.is_none(),
            "import.dated",
            true,
            "false",
            "give from_s or to_s with it",
        )?;
        Error::refuse_if(
            self.max_jobs == Some(0),
            "import.max_jobs",
            0,
            "1 or more",
            "leave it out for all jobs",
        )?;
        if let Some(cluster) = &self.cluster {
            cluster.validate()?;
        }
        Ok(())
    }

    /// The same window on the clock of a list whose time 0 is at `clock_0_unix_s`.
    ///
    /// # Errors
    /// Dates for a list that does not say when its time 0 is.
    pub(super) fn on_clock(&self, clock_0_unix_s: Option<f64>) -> Result<ImportOptions, Error> {
        if !self.dated {
            return Ok(self.clone());
        }
        let Some(clock_0) = clock_0_unix_s else {
            let date = self.from_s.or(self.to_s).map(day_text).unwrap_or_default();
            let allowed = "a number of days from 0 on: the list does not say which date its day 0 is";
            let hint = "Lists with dates that pleach workload import has read say it.";
            return Err(config("from_day", date, allowed, hint));
        };
        Ok(ImportOptions {
            from_s: self.from_s.map(|from_s| from_s - clock_0),
            to_s: self.to_s.map(|to_s| to_s - clock_0),
            dated: false,
            ..self.clone()
        })
    }
}
