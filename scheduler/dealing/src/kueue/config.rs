//! Settings of the policy `kueue`: objects of Kueue's API in their own words, as far as they decide.

use std::collections::BTreeMap;

use pleach_scheduler::Problem;
use serde::{Deserialize, Serialize};

use crate::kubernetes::KubernetesConfig;
use crate::settings::check;

/// Most objects of a kind, and cohorts above one another that are looked at, *ours*.
const ROWS_MAX: usize = 10_000;
const LEVELS_MAX: usize = 64;
/// Most flavours times ClusterQueues and cohorts, *ours*.
const QUOTAS_MAX: usize = 1_000_000;

/// What a site's Kueue is set to; the defaults are those of Kueue 0.17.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct KueueConfig {
    /// ClusterQueues.
    pub cluster_queues: Vec<ClusterQueue>,
    /// Cohorts that have an object of their own.
    pub cohorts: Vec<Cohort>,
    /// LocalQueues.
    pub local_queues: Vec<LocalQueue>,
    /// ResourceFlavors.
    pub flavors: Vec<Flavor>,
    /// Values of WorkloadPriorityClasses and PriorityClasses by name.
    pub priorities: BTreeMap<String, i64>,
    /// Whether the manager's configuration has `fairSharing`.
    pub fair_sharing: bool,
    /// Its kube-scheduler.
    pub scheduler: KubernetesConfig,
}

/// A ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterQueue {
    /// Its name.
    pub name: String,
    /// Its cohort; empty: none.
    #[serde(alias = "cohort")]
    pub cohort_name: String,
    /// In what order it admits.
    pub queueing_strategy: Strategy,
    /// Its quotas.
    pub resource_groups: Vec<ResourceGroup>,
    /// Which workloads its own may preempt.
    pub preemption: Preemption,
    /// When the next flavour is tried.
    pub flavor_fungibility: Fungibility,
    /// Its weight.
    pub fair_sharing: Fair,
}

/// A cohort with quotas, or one below another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cohort {
    /// Its name.
    pub name: String,
    /// The cohort above; empty: none.
    #[serde(alias = "parent")]
    pub parent_name: String,
    /// Quotas for all below.
    pub resource_groups: Vec<ResourceGroup>,
    /// Its weight.
    pub fair_sharing: Fair,
}

/// A LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalQueue {
    /// Its namespace: the tenant of its jobs.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where its jobs are queued.
    pub cluster_queue: String,
}

/// A ResourceFlavor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Flavor {
    /// Its name.
    pub name: String,
    /// The GPU type of its nodes; empty: any.
    pub gpu_type: String,
}

/// `queueingStrategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// The first waits and those behind it too.
    StrictFIFO,
    /// Those behind one that waits are tried.
    #[default]
    BestEffortFIFO,
}

/// Resources of which a workload takes the same flavour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceGroup {
    /// The flavours in the order in which they are tried.
    pub flavors: Vec<FlavorQuotas>,
}

/// Quotas of a flavour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlavorQuotas {
    /// Its name.
    pub name: String,
    /// Its resources.
    pub resources: Vec<ResourceQuota>,
}

/// A quota: GPUs, cores or GiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceQuota {
    /// `cpu`, `memory`, or a resource whose name ends in `/gpu`; others do not count.
    pub name: String,
    /// 0 to 1e10
    pub nominal_quota: f64,
    /// Most that is borrowed; none: no limit.
    pub borrowing_limit: Option<f64>,
    /// Most that is lent; none: all.
    pub lending_limit: Option<f64>,
}

/// Which workloads those of a ClusterQueue may preempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preemption {
    /// In the same ClusterQueue.
    pub within_cluster_queue: Policy,
    /// In ClusterQueues of the cohort that use more than is theirs.
    pub reclaim_within_cohort: Policy,
    /// The same while it borrows.
    pub borrow_within_cohort: WhileBorrowing,
}

/// What a preempted workload must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// Nothing is preempted.
    #[default]
    Never,
    /// Of lower priority.
    LowerPriority,
    /// Of lower priority, or as high and younger.
    LowerOrNewerEqualPriority,
    /// Any.
    Any,
}

/// `borrowWithinCohort`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WhileBorrowing {
    /// `LowerPriority` or `Never`.
    pub policy: Policy,
    /// The highest priority that is preempted; none: any below that of the preempting one.
    pub max_priority_threshold: Option<i64>,
}

/// `flavorFungibility`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Fungibility {
    /// `Borrow` or `MayStopSearch`, the default, or `TryNextFlavor`.
    pub when_can_borrow: String,
    /// `TryNextFlavor`, the default, or `Preempt` or `MayStopSearch`.
    pub when_can_preempt: String,
}

/// `fairSharing`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fair {
    /// 0 to 1e9
    pub weight: f64,
}

impl Default for Fair {
    fn default() -> Fair {
        Fair { weight: 1.0 }
    }
}

impl KueueConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn validate(&self) -> Result<(), Problem> {
        let of = |key: &str, value: String, ok: bool, allowed: &str| check("kueue", key, value, ok, allowed);
        for (key, num) in [
            ("clusterQueues", self.cluster_queues.len()),
            ("cohorts", self.cohorts.len()),
            ("localQueues", self.local_queues.len()),
            ("flavors", self.flavors.len()),
        ] {
            of(key, num.to_string(), num <= ROWS_MAX, "at most 10,000")?;
        }
        let num = (self.cluster_queues.len() + self.cohorts.len()) * self.flavors.len();
        of(
            "flavors",
            num.to_string(),
            num <= QUOTAS_MAX,
            "at most 1,000,000 of all queues and cohorts together",
        )?;
        let weights = self.cluster_queues.iter().map(|queue| queue.fair_sharing.weight);
        let mut weights = weights.chain(self.cohorts.iter().map(|cohort| cohort.fair_sharing.weight));
        weights.try_for_each(|weight| {
            let ok = (0.0..=1e9).contains(&weight);
            of("fairSharing.weight", weight.to_string(), ok, "0 to 1e9")
        })?;
        let groups = self.cluster_queues.iter().map(|queue| &queue.resource_groups);
        let groups = groups.chain(self.cohorts.iter().map(|cohort| &cohort.resource_groups));
        let flavors = groups.flatten().flat_map(|group| &group.flavors);
        for quota in flavors.flat_map(|flavor| &flavor.resources) {
            let all = [
                Some(quota.nominal_quota),
                quota.borrowing_limit,
                quota.lending_limit,
            ];
            for value in all.into_iter().flatten() {
                let ok = (0.0..=1e10).contains(&value);
                of(
                    &format!("{}.nominalQuota", quota.name),
                    value.to_string(),
                    ok,
                    "0 to 1e10",
                )?;
            }
        }
        Ok(())
    }
}

impl KueueConfig {
    /// The topmost of the cohorts above one: those below share its quota as if they were one.
    pub(super) fn root<'a>(&'a self, mut name: &'a str) -> &'a str {
        for _ in 0..LEVELS_MAX {
            let own = self.cohorts.iter().find(|cohort| cohort.name == name);
            match own.map(|cohort| cohort.parent_name.as_str()) {
                Some(parent) if !parent.is_empty() => name = parent,
                _ => break,
            }
        }
        name
    }
}

impl ResourceQuota {
    /// Which of the resources that count it is, and how many of its units are one of what is counted: thousandths of GPUs and
    /// cores, MiB.
    #[must_use]
    pub fn resource(&self) -> Option<(usize, f64)> {
        match self.name.as_str() {
            "cpu" => Some((1, 1000.0)),
            "memory" => Some((2, 1024.0)),
            name => name.ends_with("/gpu").then_some((0, 1000.0)),
        }
    }
}
