//! What to take from a list and how.

use pleach_scheduler::cluster_spec::ClusterSpec;
use serde::{Deserialize, Serialize};

use super::Format;
use crate::error::Error;
use crate::{SUBMIT_S_MAX, config};

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
