//! What an operator writes down about a cluster: GPU types, groups of equal nodes, tenants, model classes.
//!
//! A description is plain data, read from TOML or JSON and checked once by [`ClusterSpec::validate`]; the live tables
//! are built from it in [`crate::cluster`]. Refused: zero GPUs, more than 64 GPUs a node, unknown type names, quotas
//! above the capacity.

mod allowed;
mod class;
mod seen;
mod tasks;

pub use allowed::AllowedNodes;
pub use class::{ElasticJob, Load, LocalityFactors, ModelClass, Resources};
pub use seen::{Seen, SiteScheduler};
pub use tasks::Tasks;

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::physics::interference::{Interference, PairEntry};
use crate::physics::links::Fabric;
use crate::physics::mig::MigGpu;
use crate::physics::storage::Storage;
use crate::problem::Problem;
use crate::settings::Settings as _;

/// A cluster: its hardware and its tenants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSpec {
    /// GPU types, referred to by name.
    #[serde(default)]
    pub gpu_types: Vec<GpuTypeSpec>,
    /// Groups of equal nodes; a rack never spans two groups.
    pub node_groups: Vec<NodeGroup>,
    /// Tenants; a job names one by index. At least one.
    #[serde(default)]
    pub tenants: Vec<TenantSpec>,
    /// Whether a tenant may use more than its quota while others leave GPUs idle.
    #[serde(default = "yes")]
    pub borrowing: bool,
    /// Links between GPUs; without, a loose placement costs what the model class says. In files the name of a preset, a table
    /// with `preset` and some keys, or all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
    /// The preset of links that stands for the site's, for programs that complete a list; by itself it does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "preset")]
    pub site_fabric: Option<String>,
    /// The store that holds checkpoints; without, [`Storage::SHARED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// How jobs that share a GPU slow each other where no pair was measured.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interference: Interference,
    /// Measured speeds of pairs of model classes on one GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairEntry>,
    /// What the list that it came with says of the site.
    #[serde(default, skip_serializing_if = "Seen::is_empty")]
    pub seen: Seen,
}

impl Default for ClusterSpec {
    /// No GPU at all: a start for `..ClusterSpec::default()`.
    fn default() -> ClusterSpec {
        ClusterSpec {
            gpu_types: Vec::new(),
            node_groups: Vec::new(),
            tenants: Vec::new(),
            borrowing: true,
            fabric: None,
            site_fabric: None,
            storage: None,
            interference: Interference::default(),
            pairs: Vec::new(),
            seen: Seen::default(),
        }
    }
}

fn is_default(value: &Interference) -> bool {
    *value == Interference::default()
}

fn yes() -> bool {
    true
}

/// Most GPUs of a cluster. *Ours*: tables of that many fit into memory.
pub const NUM_GPUS_MAX: u64 = 4_000_000;

/// A GPU type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuTypeSpec {
    /// Name, for example `V100`.
    pub name: String,
    /// Device memory, GiB, 0.001 to 1e6.
    #[serde(default)]
    pub memory_gib: f64,
    /// Geometry of its MIG profiles, for example `A100-40`; none where the GPU cannot be partitioned or is not to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigGpu>,
}

/// A group of equal nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// Number of nodes.
    pub count: u32,
    /// GPUs in each node, 1 to 64.
    pub gpus_per_node: u32,
    /// Name of the GPU type.
    pub gpu_type: String,
    /// Nodes in each rack (one fast-network domain); the last rack of the group may be smaller.
    #[serde(default)]
    pub nodes_per_rack: u32,
    /// GPUs of a node that NVLink joins, lowest first; 0 = all of them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub nvlink_gpus: u32,
    /// CPU cores of each node; 0 = not modelled, then no job can ask for cores.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_cores: f64,
    /// Host memory of each node, GiB; 0 = not modelled, then no job can ask for memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_gib: f64,
    /// Bandwidth of each node's storage, MB/s; 0 = not modelled. Files leave it out then: a 0 there reads as no bandwidth at
    /// all and is refused.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "bandwidth")]
    pub storage_mb_s: f64,
}

/// Whether a name can stand in files and tables.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.trim() == text && !text.chars().any(char::is_control)
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
fn is_none(value: &u32) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// A bandwidth that a file names.
fn bandwidth<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    if value == 0.0 {
        let text = "storage_mb_s = 0 is not allowed: allowed is 0.001 to 1e6; leave it out where storage is not modelled";
        return Err(D::Error::custom(text));
    }
    Ok(value)
}

/// The name of a preset of links.
fn preset<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(from)?;
    check_site_fabric(&name).map_err(D::Error::custom)?;
    Ok(Some(name))
}

fn check_site_fabric(name: &str) -> Result<(), Problem> {
    let known: Vec<&str> = Fabric::names().collect();
    Problem::refuse_if(
        !known.contains(&name),
        "site_fabric",
        name,
        known.join(", "),
        "leave it out where the links that its GPUs usually come with will do; links of one's own are fabric",
    )
}

/// A tenant and its share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantSpec {
    /// Name, unique in the cluster.
    pub name: String,
    /// GPUs that are this tenant's by right.
    pub quota_gpus: u32,
}

impl ClusterSpec {
    /// A cluster of equal nodes, `nodes_per_rack` to a rack, with one tenant that owns it all.
    #[must_use]
    pub fn uniform(num_nodes: u32, gpus_per_node: u32, nodes_per_rack: u32) -> ClusterSpec {
        ClusterSpec {
            gpu_types: vec![GpuTypeSpec {
                name: "GPU".into(),
                memory_gib: 32.0,
                mig: None,
            }],
            node_groups: vec![NodeGroup {
                count: num_nodes,
                gpus_per_node,
                gpu_type: "GPU".into(),
                nodes_per_rack,
                ..NodeGroup::default()
            }],
            tenants: vec![TenantSpec {
                name: "all".into(),
                quota_gpus: num_nodes.saturating_mul(gpus_per_node),
            }],
            ..ClusterSpec::default()
        }
    }

    /// The same cluster, at the site of another's list where it does not say its own.
    #[must_use]
    pub fn with_site_of(mut self, other: &ClusterSpec) -> ClusterSpec {
        if self.site_fabric.is_none() {
            self.site_fabric.clone_from(&other.site_fabric);
        }
        if self.seen.is_empty() {
            self.seen.clone_from(&other.seen);
        }
        self
    }

    /// GPUs in the whole cluster.
    #[must_use]
    pub fn num_gpus(&self) -> u64 {
        self.node_groups
            .iter()
            .map(|group| u64::from(group.count) * u64::from(group.gpus_per_node))
            .sum()
    }

    /// Checks everything that a cluster must fulfil before it can be built.
    ///
    /// # Errors
    /// The first key that is wrong, its value, what is allowed and how to mend it.
    pub fn validate(&self) -> Result<(), Problem> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Every key that is wrong, in the order of the description; empty for a cluster that can be built.
    #[must_use]
    pub fn faults(&self) -> Vec<Problem> {
        let mut faults = Vec::new();
        self.check_gpu_types(&mut faults);
        for (index, group) in self.node_groups.iter().enumerate() {
            self.check_node_group(index, group, &mut faults);
        }
        faults.extend(self.interference.check_at("interference", "").err());
        if let Some(fabric) = &self.fabric {
            faults.extend(fabric.validate().and_then(|()| self.validate_nics(fabric)).err());
        }
        if let Some(preset) = &self.site_fabric {
            faults.extend(check_site_fabric(preset).err());
        }
        if let Some(storage) = &self.storage {
            faults.extend(storage.check_at("storage", "").err());
        }
        faults.extend(self.seen.faults());
        let capacity = self.num_gpus();
        if capacity == 0 || capacity > NUM_GPUS_MAX {
            faults.push(Problem::new(
                "node_groups",
                format!("{capacity} GPUs"),
                "1 to 4,000,000 GPUs",
                "add nodes",
            ));
        }
        self.check_tenants(capacity, &mut faults);
        faults
    }

    fn validate_nics(&self, fabric: &Fabric) -> Result<(), Problem> {
        let nics = fabric.between.nics_per_node;
        let fewer = |group: &NodeGroup| group.gpus_per_node < nics;
        let Some(index) = self.node_groups.iter().position(fewer) else {
            return Ok(());
        };
        let gpus = self.node_groups[index].gpus_per_node;
        let allowed = format!("1 to {gpus}, the GPUs of a node of node_groups[{index}]");
        let hint = format!("[cluster.fabric] preset = \"...\" with between.nics_per_node = {gpus}");
        Err(Problem::new("fabric.between.nics_per_node", nics, allowed, hint))
    }

    fn check_gpu_types(&self, faults: &mut Vec<Problem>) {
        if self.gpu_types.is_empty() || self.gpu_types.len() > 64 {
            let value = self.gpu_types.len().to_string();
            faults.push(Problem::new(
                "gpu_types",
                value,
                "1 to 64 types",
                "name at least one GPU type",
            ));
        }
        for (index, gpu) in self.gpu_types.iter().take(64).enumerate() {
            if !(1e-3..=1e6).contains(&gpu.memory_gib) {
                let key = format!("gpu_types[{index}].memory_gib");
                faults.push(Problem::new(
                    key,
                    gpu.memory_gib.to_string(),
                    "0.001 to 1e6 GiB",
                    "give the memory in GiB",
                ));
            }
        }
        let names = self.gpu_types.iter().take(64).map(|gpu| gpu.name.as_str());
        check_names("gpu_types", names, "for example V100", faults);
    }

    fn check_node_group(&self, index: usize, group: &NodeGroup, faults: &mut Vec<Problem>) {
        let key = |field: &str| format!("node_groups[{index}].{field}");
        if group.count == 0 {
            faults.push(Problem::new(
                key("count"),
                "0",
                "1 or more",
                "remove the group or give it nodes",
            ));
        }
        if !(1..=64).contains(&group.gpus_per_node) {
            let value = group.gpus_per_node.to_string();
            faults.push(Problem::new(
                key("gpus_per_node"),
                value,
                "1 to 64",
                "nodes without GPUs take no part",
            ));
        }
        if group.nodes_per_rack == 0 {
            faults.push(Problem::new(
                key("nodes_per_rack"),
                "0",
                "1 or more",
                "use the count for a single rack",
            ));
        }
        if group.nvlink_gpus > group.gpus_per_node {
            let allowed = format!("at most the {} GPUs of the node", group.gpus_per_node);
            let value = group.nvlink_gpus.to_string();
            faults.push(Problem::new(
                key("nvlink_gpus"),
                value,
                &allowed,
                "0 joins all GPUs of the node",
            ));
        }
        for (field, value) in [
            ("cpu_cores", group.cpu_cores),
            ("memory_gib", group.memory_gib),
            ("storage_mb_s", group.storage_mb_s),
        ] {
            if value != 0.0 && !(1e-3..=1e6).contains(&value) {
                let hint = "per node; leave it out where it is not to be modelled";
                faults.push(Problem::new(key(field), value.to_string(), "0.001 to 1e6", hint));
            }
        }
        if !self.gpu_types.iter().any(|gpu| gpu.name == group.gpu_type) {
            let names: Vec<_> = self.gpu_types.iter().map(|gpu| gpu.name.as_str()).collect();
            let allowed = format!("one of {}", names.join(", "));
            faults.push(Problem::new(
                key("gpu_type"),
                group.gpu_type.clone(),
                &allowed,
                "declare it under gpu_types",
            ));
        }
    }

    fn check_tenants(&self, capacity: u64, faults: &mut Vec<Problem>) {
        if self.tenants.is_empty() || self.tenants.len() > 10_000 {
            let value = format!("{} tenants", self.tenants.len());
            faults.push(Problem::new(
                "tenants",
                value,
                "1 to 10,000",
                "name one tenant that owns the cluster",
            ));
        }
        let names = self
            .tenants
            .iter()
            .take(10_000)
            .map(|tenant| tenant.name.as_str());
        check_names("tenants", names, "name whom the quota is for", faults);
        let quotas: u64 = self
            .tenants
            .iter()
            .map(|tenant| u64::from(tenant.quota_gpus))
            .sum();
        if quotas > capacity {
            let allowed = format!("at most the {capacity} GPUs of the cluster");
            faults.push(Problem::new(
                "tenants.quota_gpus",
                format!("{quotas} in all"),
                &allowed,
                "lower the quotas",
            ));
        }
    }
}

/// Refuses names that cannot stand in files, and each that stood before.
fn check_names<'a>(list: &str, names: impl Iterator<Item = &'a str>, hint: &str, faults: &mut Vec<Problem>) {
    let mut known = BTreeSet::new();
    for (index, name) in names.enumerate() {
        let key = format!("{list}[{index}].name");
        if !is_name(name) {
            let shown = format!("{name:?}");
            faults.push(Problem::new(&key, shown, "1 to 256 printable characters", hint));
        }
        if !known.insert(name) {
            faults.push(Problem::new(
                key,
                name,
                "a name not used before",
                "rename one of the two",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::goodput::Elastic;

    #[test]
    fn a_uniform_cluster_is_valid_and_counts_its_gpus() {
        let spec = ClusterSpec::uniform(3, 8, 2);
        assert_eq!(spec.num_gpus(), 24);
        spec.validate().unwrap();
    }

    #[test]
    fn names_and_speeds_that_lead_nowhere_are_refused() {
        let refused = |change: fn(&mut ClusterSpec)| {
            let mut spec = ClusterSpec::uniform(1, 8, 1);
            change(&mut spec);
            spec.validate().unwrap_err().to_string()
        };
        assert!(refused(|spec| spec.tenants[0].name.clear()).contains("tenants[0].name"));
        assert!(refused(|spec| spec.gpu_types[0].name = "a\nb".into()).contains("gpu_types[0].name"));
        assert!(
            refused(|spec| spec.node_groups[0].cpu_cores = f64::NAN).contains("node_groups[0].cpu_cores")
        );
        assert!(refused(|spec| spec.node_groups[0].nvlink_gpus = 9).contains("at most the 8 GPUs"));
        assert!(refused(|spec| spec.gpu_types[0].memory_gib = 1e300).contains("0.001 to 1e6"));
        assert!(refused(|spec| spec.node_groups[0].storage_mb_s = 1e-300).contains("storage_mb_s"));
        assert!(refused(|spec| spec.interference.kappa = -1.0).contains("interference.kappa"));
        let text = refused(|spec| {
            spec.node_groups[0].gpus_per_node = 4;
            spec.tenants[0].quota_gpus = 4;
            spec.fabric = Fabric::from_name("hgx-h100-ndr").ok();
        });
        assert!(
            text.contains("fabric.between.nics_per_node = 8")
                && text.contains("1 to 4")
                && text.contains("node_groups[0]"),
            "{text}"
        );
        assert!(ClusterSpec::uniform(u32::MAX, 64, 1).validate().is_err());
        let spec = ClusterSpec::uniform(1, 8, 1);
        let refused = |change: fn(&mut ModelClass)| {
            let mut class = ModelClass::default();
            change(&mut class);
            spec.validate_class(&class).unwrap_err().to_string()
        };
        let elastic = |gpus_max: u32, change: fn(&mut Elastic)| {
            let mut profile = Elastic::proportional(8);
            change(&mut profile);
            let class = ModelClass {
                elastic: Some(ElasticJob {
                    gpus_max,
                    profile: profile.into(),
                }),
                ..ModelClass::default()
            };
            spec.validate_class(&class).map_err(|error| error.to_string())
        };
        elastic(4_000_000, |_| ()).unwrap();
        assert!(elastic(u32::MAX, |_| ()).unwrap_err().contains("1 to 4,000,000"));
        for (change, key) in [
            (
                (|profile| profile.time.alpha_n = 1e300) as fn(&mut Elastic),
                "time.alpha_n",
            ),
            (|profile| profile.time.alpha_c = 1e300, "time.alpha_c"),
            (|profile| profile.time.beta_c = 1e-300, "time.beta_c"),
            (|profile| profile.noise_at_end = 1e300, "noise_at_end"),
        ] {
            assert!(elastic(8, change).unwrap_err().contains(key), "{key}");
        }
        assert!(refused(|class| class.speed = vec![-1.0]).contains("speed"));
        assert!(refused(|class| class.speed = vec![1e-9]).contains("1e-6"));
        assert!(refused(|class| class.locality.cross_rack = 1e-9).contains("cross_rack"));
        assert!(refused(|class| class.restart_cost_s = Some(f64::NAN)).contains("restart_cost_s"));
        assert!(refused(|class| class.load.utilisation = 0.0).contains("load.utilisation"));
        assert!(refused(|class| class.name.clear()).contains("name"));
    }

    #[test]
    fn a_file_that_gives_storage_no_bandwidth_is_refused_and_one_without_the_key_is_not() {
        let mut group = serde_json::json!(
            {"count": 1, "gpus_per_node": 8, "gpu_type": "GPU", "nodes_per_rack": 1}
        );
        let read = |group: &serde_json::Value| serde_json::from_value::<NodeGroup>(group.clone());
        assert_eq!(read(&group).unwrap().storage_mb_s, 0.0);
        group["storage_mb_s"] = 500.0.into();
        assert_eq!(read(&group).unwrap().storage_mb_s, 500.0);
        group["storage_mb_s"] = 0.into();
        let text = read(&group).unwrap_err().to_string();
        assert!(
            text.contains("storage_mb_s = 0") && text.contains("leave it out"),
            "{text}"
        );
    }

    #[test]
    fn impossible_clusters_are_refused_with_key_value_and_hint() {
        let mut spec = ClusterSpec::uniform(1, 8, 1);
        spec.tenants[0].quota_gpus = 9;
        let text = spec.validate().unwrap_err().to_string();
        assert!(
            text.contains("tenants.quota_gpus") && text.contains("at most the 8 GPUs"),
            "{text}"
        );
        let mut spec = ClusterSpec::uniform(1, 65, 1);
        assert!(spec.validate().unwrap_err().to_string().contains("1 to 64"));
        spec.node_groups.clear();
        assert!(spec.validate().is_err());
        let mut spec = ClusterSpec::uniform(1, 8, 1);
        spec.node_groups[0].gpu_type = "H100".into();
        assert!(spec.validate().unwrap_err().to_string().contains("one of GPU"));
    }
}
