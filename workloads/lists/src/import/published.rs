//! What a mapping says of a published list beside its columns: the cluster that its jobs ran on, and what the list leaves open.

use std::collections::BTreeMap;

use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_scheduler::settings;
use serde::{Deserialize, Serialize};

use super::cluster_of_list::{NODES_PER_RACK, Nodes, Plan, cluster_of, sized_for};
use crate::Outcome;

settings! {
    /// What a mapping says of a published list beside its columns.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Published {
        /// Whether its rows have a reader of their own.
        pub by_code: bool;
        /// How ids start, where another list has the same header.
        pub ids_start: String;
        /// Preset of links of its site.
        pub site_fabric: Option<String>;
        /// How all jobs ended, where no column says it.
        pub outcome: Outcome = Outcome::Unknown;
        /// GPUs for each of those that the column counts.
        pub gpus_each: u32 = 1;
        /// Whether jobs without GPUs are left out; else they are refused.
        pub leave_out_without_gpus: bool;
        /// What stands for a tenant or user that is not named.
        pub hidden: Vec<String>;
        /// Columns of run times that the source cut at 48 h, and the column that says where with a 1; empty: all that are as long.
        pub cut: BTreeMap<String, String>;
        /// What the list does not say.
        pub notes: Vec<String>;
        /// Tenants of a known size, GPUs.
        pub tenants: Vec<(String, u32)>;
        /// GPU hours of jobs by class, from and to, where no column says how long they ran: the middle is taken.
        pub gpu_hours: BTreeMap<String, (f64, f64)>;
        /// Where its jobs ran.
        pub cluster: Fleet;
        /// The same where virtual clusters are walls.
        pub walled: Option<Fleet>;
    }
}

/// The cluster of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// Whether its size was not published: so many of its nodes as the jobs need.
    pub sized: bool,
    /// Where it comes from.
    pub note: String,
    /// Names of GPU types, and their memory, GiB.
    pub gpu_types: Vec<(String, f64)>,
    /// Its nodes.
    pub nodes: Vec<FleetNodes>,
}

/// Equal nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetNodes {
    /// How many.
    pub count: u32,
    /// GPUs in each.
    pub gpus_per_node: u32,
    /// Their type.
    pub gpu_type: String,
    /// Cores of each; 0 = not published.
    #[serde(default)]
    pub cpu_cores: f64,
    /// Memory of each, GiB; 0 = not published.
    #[serde(default)]
    pub memory_gib: f64,
    /// Nodes of a rack.
    #[serde(default = "rack")]
    pub nodes_per_rack: u32,
}

fn rack() -> u32 {
    NODES_PER_RACK
}

impl Fleet {
    fn nodes(&self) -> Vec<Nodes<'_>> {
        let nodes = self.nodes.iter().map(|nodes| Nodes {
            count: nodes.count,
            gpus_per_node: nodes.gpus_per_node,
            gpu_type: &nodes.gpu_type,
            cpu_cores: nodes.cpu_cores,
            memory_gib: nodes.memory_gib,
            nodes_per_rack: nodes.nodes_per_rack,
        });
        nodes.collect()
    }

    fn gpu_types(&self) -> Vec<(&str, f64)> {
        self.gpu_types
            .iter()
            .map(|(name, memory_gib)| (name.as_str(), *memory_gib))
            .collect()
    }

    /// The cluster.
    pub(super) fn cluster(&self) -> ClusterSpec {
        cluster_of(&self.gpu_types(), &self.nodes())
    }
}

impl Published {
    /// What is wrong, a sentence each.
    pub(super) fn faults(&self) -> Vec<String> {
        let fleets = [Some(&self.cluster), self.walled.as_ref()].into_iter().flatten();
        let mut faults = Vec::new();
        for fleet in fleets.filter(|_| !self.by_code) {
            let is_right = match fleet.sized {
                true => fleet.nodes.len() == 1 && fleet.gpu_types.len() == 1,
                false => fleet.cluster().validate().is_ok(),
            };
            let has_gpus = fleet.nodes.iter().all(|nodes| nodes.gpus_per_node > 0);
            if !is_right || !has_gpus {
                faults.push("published.cluster: allowed are GPU types and nodes that have them; one of each where it is sized".into());
            }
        }
        if self.gpus_each == 0
            || self
                .gpu_hours
                .values()
                .any(|(from, to)| !(*from > 0.0 && *to >= *from && *to <= 1e6))
        {
            faults.push("published.gpus_each, gpu_hours: allowed are numbers above 0".into());
        }
        faults
    }

    /// Where its jobs run, where virtual clusters may be walls.
    pub(super) fn plan(&self, is_walled: bool, has_tenants: bool) -> Plan {
        let fleet = match &self.walled {
            Some(walled) if is_walled => walled.clone(),
            _ => self.cluster.clone(),
        };
        let mut plan = match fleet.sized {
            true => Plan::sized(Box::new(move |rows| {
                sized_for(rows, fleet.gpu_types()[0], fleet.nodes()[0])
            })),
            false => Plan::of(fleet.cluster(), &fleet.note),
        };
        plan.tenants = has_tenants.then(|| self.tenants.clone());
        plan.notes.clone_from(&self.notes);
        plan
    }
}
