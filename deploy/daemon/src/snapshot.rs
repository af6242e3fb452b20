//! A cluster as its batch system shows it at one moment: plain data, written and read as JSON.
//!
//! Everything that a round decides is a function of this and of what is remembered of jobs that ran before
//! ([`crate::memory::Memory`]), so a snapshot that was written down is decided again to the same bits.

use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::history::believed_s;
use pleach_scheduler::{Estimate, ExternalId, Provenance};
use serde::{Deserialize, Serialize};

pub use crate::site::{Allowance, HostSeen, Rule, Site, Terms};

/// What the key `version` says. A change of the format is a new number. Version 2 may name users and predictions, version 3
/// shares of GPUs; files of earlier versions are read as they were.
pub const VERSION: u32 = 3;

/// A cluster at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// When it was taken, Unix time, s.
    pub taken_s: i64,
    /// Nodes with GPUs, in the order of the batch system.
    pub nodes: Vec<NodeSeen>,
    /// Jobs that ask for GPUs and have not ended, by arrival.
    pub jobs: Vec<JobSeen>,
    /// Rules of the site, to which jobs refer.
    #[serde(default, skip_serializing_if = "Site::is_empty")]
    pub site: Site,
}

impl Snapshot {
    /// The id by which refusals of a job are remembered.
    pub(crate) fn refused_as(&self, job: ExternalId) -> ExternalId {
        let seen = self.jobs.iter().find(|seen| seen.id == job);
        seen.map_or(job, JobSeen::refused_as)
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSeen {
    /// Its name.
    pub name: String,
    /// Type of its GPUs.
    pub gpu_type: String,
    /// GPUs, 1 to 64.
    pub num_gpus: u32,
    /// GPUs in use, wholly or in part.
    pub num_gpus_used: u32,
    /// Free CPUs.
    pub num_cpus_free: u32,
    /// CPUs and host memory in all; none: not looked at, and a job that has GPUs has what comes with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSeen>,
    /// Whether it takes jobs.
    pub state: NodeState,
    /// Its GPUs are given in shares; none: as whole ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedNode>,
}

/// A node whose GPUs are given in shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedNode {
    /// GPUs of which jobs that are left to the batch system hold a part or the whole, as a bit mask.
    pub gpus_taken: u64,
}

/// A part of one GPU that a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// As the batch system counts it.
    pub shards: u32,
    /// In thousandths of a GPU, 1 to 1000.
    pub gpu_milli: u16,
    /// Index of the GPU on which it runs; none: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
}

/// Where a job stands between its user, the daemon and the batch system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Phase {
    /// Held for the daemon, which decides when it starts.
    Waiting,
    /// Pending and not held: the daemon is to hold it. In shadow mode it waits.
    Loose,
    /// Let go to [`JobSeen::nodes`], and not running yet.
    Released {
        /// When it was let go, Unix time, s.
        since_s: i64,
    },
    /// Runs on [`JobSeen::nodes`].
    Running,
    /// Pending, and may not start yet for a reason that is not the daemon's.
    Blocked {
        /// The reason.
        reason: String,
    },
    /// Left to the batch system.
    Foreign {
        /// Why.
        reason: String,
    },
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSeen {
    /// Its number.
    pub id: ExternalId,
    /// Where it stands.
    pub phase: Phase,
    /// The account that pays for it; empty where there is none.
    #[serde(default)]
    pub account: String,
    /// The user that submitted it; empty where that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// When it came, Unix time, s.
    pub submit_s: i64,
    /// When its present run began, Unix time, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_s: Option<i64>,
    /// Its time limit, s; none: without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<i64>,
    /// Nodes that it asks for, at least 1; where [`JobSeen::is_packed`], its pods.
    pub num_nodes: u32,
    /// GPUs on each of them, at least 1.
    pub gpus_per_node: u32,
    /// Whether the parts that [`JobSeen::num_nodes`] counts may share nodes, as pods do. Otherwise each has a node of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_packed: bool,
    /// The part of a GPU that it asks for, on one node; none: whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The GPU type that it asks for; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// GPU types of which any will do, beside [`JobSeen::gpu_type`]; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_types: Vec<String>,
    /// CPUs on all its nodes.
    pub num_cpus: u32,
    /// Where it runs or was let go to: a name for each part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// How often it was requeued.
    #[serde(default)]
    pub num_restarts: u32,
    /// How often it was let go and did not start.
    #[serde(default)]
    pub num_tries: u32,
    /// Not to be let go again before this, Unix time, s.
    #[serde(default)]
    pub not_before_s: i64,
    /// What ended jobs let expect of its run time, s on the reference GPU; none: nothing was predicted. The daemon's own word
    /// ([`crate::history::History`]), here so that a round is decided again to the same bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_s: Option<f64>,
    /// What else the site's rules are about.
    #[serde(default, skip_serializing_if = "Terms::is_none")]
    pub terms: Terms,
}

impl JobSeen {
    /// GPUs in all.
    #[must_use]
    pub fn num_gpus(&self) -> u32 {
        self.num_nodes.saturating_mul(self.gpus_per_node)
    }

    /// What it has of each of its GPUs, in thousandths.
    #[must_use]
    pub fn gpu_milli(&self) -> u16 {
        self.share.map_or(1000, |share| share.gpu_milli)
    }

    /// Its run time for policies, s: the prediction where it is below the time limit, and no less than a hundredth of that,
    /// else the limit, which is `default_limit_s` for a job without one. At least 1 s.
    #[must_use]
    pub fn estimate_s(&self, default_limit_s: i64) -> Estimate {
        let limit_s = self.limit_s.unwrap_or(default_limit_s).max(1) as f64;
        match self.predicted_s {
            Some(predicted_s) if predicted_s < limit_s => Estimate {
                value: believed_s(predicted_s, limit_s).max(1.0),
                provenance: Provenance::Predicted,
            },
            _ => Estimate {
                value: limit_s,
                provenance: Provenance::UserLimit,
            },
        }
    }

    /// The id by which refusals of nodes are remembered: its owner's, else its own.
    #[must_use]
    pub fn refused_as(&self) -> ExternalId {
        self.terms.owner.unwrap_or(self.id)
    }

    /// Whether it holds GPUs that the daemon gave to it.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Released { .. })
    }

    /// Order of arrival: the time, then the number, then the task.
    pub(crate) fn arrival(&self) -> (i64, u64, u64) {
        let (number, task) = self.id.arrival();
        (self.submit_s, number, task)
    }
}
