//! What a site's rules say of its jobs and nodes, whatever the batch system: nodes that a job may not have, and sums that its jobs
//! may not exceed.
//!
//! A rule is written down once with its reason, and jobs refer to it: features, nodes that a user names or shuns, reservations to
//! come. So the tables have each rule as a set of nodes, and `why-not` its words.

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;
use pleach_site::slurm::fold;
use serde::{Deserialize, Serialize};

/// The rules of a site at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Site {
    /// Nodes that are closed to the jobs that refer to the rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Sums of which the jobs that refer to them may take what is left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowances: Vec<Allowance>,
    /// Racks of nodes, by the nodes' names: nodes of one share the fast network.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub racks: BTreeMap<String, String>,
    /// GPUs of nodes, by name, that jobs being stopped still hold and that are promised to no job: where there are leases, which
    /// wait for them rather than stop further jobs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub leaving: BTreeMap<String, u32>,
}

impl Site {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Site::default()
    }
}

/// Nodes that are closed to some jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The nodes, as a list of names: `g[1-3],h7`.
    pub closed: String,
    /// Why they are closed, as what is said of a node: "lacks the feature nvme".
    pub why: String,
}

impl Rule {
    /// Closes nodes of these names.
    #[must_use]
    pub fn closes<'a>(names: impl IntoIterator<Item = &'a str>, why: &str) -> Rule {
        Rule {
            closed: fold(names),
            why: why.to_owned(),
        }
    }
}

/// A sum that jobs share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// What it is, in the words of the batch system.
    pub what: String,
    /// How much of it is left.
    pub left: u64,
}

/// CPUs and host memory of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSeen {
    /// CPUs in all, without those that no job may have.
    pub num_cpus: u32,
    /// Host memory in all, MiB.
    pub memory_mib: u32,
    /// Host memory that no job has reserved, MiB.
    pub memory_mib_free: u32,
}

/// What a job asks of a site beside GPUs and CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// Host memory on each of its nodes, MiB.
    #[serde(skip_serializing_if = "is_zero")]
    pub memory_mib: u32,
    /// Rows of [`Site::rules`] that hold for it, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<u32>,
    /// Rows of [`Site::allowances`], ascending, and how much of each it takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<(u32, u64)>,
    /// Jobs of a higher one are decided about first, and are stopped for none of a lower one.
    #[serde(skip_serializing_if = "is_none")]
    pub priority: i32,
    /// Whether its operator has made it a lease: it runs without end, goes before all jobs and is stopped for none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lease: bool,
    /// Whether, running, it can be stopped for none: it is no batch job, its user or the site forbids a requeue, or it began too late.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// What makes it anew under another id when it is stopped: refusals of nodes are remembered by that id. None: it keeps its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<ExternalId>,
}

impl Terms {
    /// Whether it asks for nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Terms::default()
    }
}

impl Terms {
    /// The first row of sums of which less is left than it takes.
    #[must_use]
    pub fn lacking(&self, left: &[u64]) -> Option<usize> {
        let mut takes = self.takes.iter().map(|(row, amount)| (*row as usize, *amount));
        let lacks = |(row, amount): &(usize, u64)| left.get(*row).is_some_and(|left| left < amount);
        takes.find(lacks).map(|(row, _)| row)
    }
}

fn is_none(priority: &i32) -> bool {
    *priority == 0
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
