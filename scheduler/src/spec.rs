//! What an operator writes down about a cluster: GPU types, groups of equal nodes, tenants, model classes.
//!
//! A description is plain data, read from TOML or JSON and checked once by [`ClusterSpec::validate`]; the live tables
//! are built from it in [`crate::cluster`]. Refused: zero GPUs, more than 64 GPUs a node, unknown type names, quotas
//! above the capacity.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// A cluster: its hardware and who may use it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSpec {
    /// GPU types, referred to by name.
    pub gpu_types: Vec<GpuTypeSpec>,
    /// Groups of equal nodes; a rack never spans two groups.
    pub node_groups: Vec<NodeGroup>,
    /// Tenants; a job names one by index. At least one.
    pub tenants: Vec<TenantSpec>,
    /// Whether a tenant may use more than its quota while others leave GPUs idle.
    #[serde(default = "yes")]
    pub borrowing: bool,
}

fn yes() -> bool {
    true
}

/// A GPU type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuTypeSpec {
    /// Name, for example `V100`.
    pub name: String,
    /// Device memory, GiB.
    pub memory_gib: f64,
}

/// A group of equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// Number of nodes.
    pub count: u32,
    /// GPUs in each node, 1 to 64.
    pub gpus_per_node: u32,
    /// Name of the GPU type.
    pub gpu_type: String,
    /// Nodes in each rack (one fast-network domain); the last rack of the group may be smaller.
    pub nodes_per_rack: u32,
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

/// Jobs that run at the same relative speeds on the hardware (a model family).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelClass {
    /// Name, for example `ResNet-50`.
    pub name: String,
    /// Speed on each GPU type, 1 = the reference type; 0 = cannot run there. `[num_gpu_types]`
    pub speed: Vec<f64>,
    /// What a loose placement costs.
    pub locality: LocalityFactors,
}

/// Rate multipliers of a gang that is placed less tightly than it could be; 1 = no loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalityFactors {
    /// On more nodes than the gang needs, within one rack. (0, 1]
    pub more_nodes: f64,
    /// Across racks although one rack could hold the gang. (0, 1]
    pub cross_rack: f64,
}

impl LocalityFactors {
    /// No loss at all.
    pub const NONE: LocalityFactors = LocalityFactors {
        more_nodes: 1.0,
        cross_rack: 1.0,
    };
    /// # Source
    /// Philly (ATC'19) table 4: a 2-GPU ResNet-50 on two servers runs at 98.0 / 114.8 = 0.854 of one server; table 5:
    /// the mean utilisation of 16-GPU jobs falls from 43.66 % on 2 servers to 28.56 % on 8, that is to 0.65.
    pub const PHILLY: LocalityFactors = LocalityFactors {
        more_nodes: 0.854,
        cross_rack: 0.65,
    };
}

impl ClusterSpec {
    /// A cluster of equal nodes, `nodes_per_rack` to a rack, with one tenant that owns it all.
    #[must_use]
    pub fn uniform(num_nodes: u32, gpus_per_node: u32, nodes_per_rack: u32) -> ClusterSpec {
        ClusterSpec {
            gpu_types: vec![GpuTypeSpec {
                name: "GPU".into(),
                memory_gib: 32.0,
            }],
            node_groups: vec![NodeGroup {
                count: num_nodes,
                gpus_per_node,
                gpu_type: "GPU".into(),
                nodes_per_rack,
            }],
            tenants: vec![TenantSpec {
                name: "all".into(),
                quota_gpus: num_nodes * gpus_per_node,
            }],
            borrowing: true,
        }
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
    pub fn validate(&self) -> Result<(), ConfigError> {
        let fail = |key: String, value: String, allowed: &str, hint: &str| {
            Err(ConfigError {
                key,
                value,
                allowed: allowed.into(),
                hint: hint.into(),
            })
        };
        if self.gpu_types.is_empty() || self.gpu_types.len() > 64 {
            let value = self.gpu_types.len().to_string();
            return fail(
                "gpu_types".into(),
                value,
                "1 to 64 types",
                "name at least one GPU type",
            );
        }
        for (index, gpu) in self.gpu_types.iter().enumerate() {
            if !(gpu.memory_gib.is_finite() && gpu.memory_gib > 0.0) {
                let key = format!("gpu_types[{index}].memory_gib");
                return fail(
                    key,
                    gpu.memory_gib.to_string(),
                    "a number above 0",
                    "give the memory in GiB",
                );
            }
            if self.gpu_types[..index].iter().any(|other| other.name == gpu.name) {
                let key = format!("gpu_types[{index}].name");
                return fail(
                    key,
                    gpu.name.clone(),
                    "a name not used before",
                    "rename one of the two",
                );
            }
        }
        for (index, group) in self.node_groups.iter().enumerate() {
            let key = |field: &str| format!("node_groups[{index}].{field}");
            if group.count == 0 {
                return fail(
                    key("count"),
                    "0".into(),
                    "1 or more",
                    "remove the group or give it nodes",
                );
            }
            if !(1..=64).contains(&group.gpus_per_node) {
                let value = group.gpus_per_node.to_string();
                return fail(
                    key("gpus_per_node"),
                    value,
                    "1 to 64",
                    "nodes without GPUs take no part",
                );
            }
            if group.nodes_per_rack == 0 {
                return fail(
                    key("nodes_per_rack"),
                    "0".into(),
                    "1 or more",
                    "use the count for a single rack",
                );
            }
            if !self.gpu_types.iter().any(|gpu| gpu.name == group.gpu_type) {
                let names: Vec<_> = self.gpu_types.iter().map(|gpu| gpu.name.as_str()).collect();
                let allowed = format!("one of {}", names.join(", "));
                return fail(
                    key("gpu_type"),
                    group.gpu_type.clone(),
                    &allowed,
                    "declare it under gpu_types",
                );
            }
        }
        let capacity = self.num_gpus();
        if capacity == 0 || capacity > 4_000_000 {
            return fail(
                "node_groups".into(),
                format!("{capacity} GPUs"),
                "1 to 4,000,000 GPUs",
                "add nodes",
            );
        }
        if self.tenants.is_empty() || self.tenants.len() > 10_000 {
            let value = format!("{} tenants", self.tenants.len());
            return fail(
                "tenants".into(),
                value,
                "1 to 10,000",
                "name one tenant that owns the cluster",
            );
        }
        for (index, tenant) in self.tenants.iter().enumerate() {
            if self.tenants[..index]
                .iter()
                .any(|other| other.name == tenant.name)
            {
                let key = format!("tenants[{index}].name");
                return fail(
                    key,
                    tenant.name.clone(),
                    "a name not used before",
                    "rename one of the two",
                );
            }
        }
        let quotas: u64 = self
            .tenants
            .iter()
            .map(|tenant| u64::from(tenant.quota_gpus))
            .sum();
        if quotas > capacity {
            let allowed = format!("at most the {capacity} GPUs of the cluster");
            return fail(
                "tenants.quota_gpus".into(),
                format!("{quotas} in all"),
                &allowed,
                "lower the quotas",
            );
        }
        Ok(())
    }

    /// Checks a model class against this cluster.
    ///
    /// # Errors
    /// As [`ClusterSpec::validate`].
    pub fn validate_class(&self, class: &ModelClass) -> Result<(), ConfigError> {
        let bad = |key: &str, value: String, allowed: &str| {
            Err(ConfigError {
                key: format!("classes.{}.{key}", class.name),
                value,
                allowed: allowed.into(),
                hint: "one speed per GPU type, 1 = the reference type, 0 = cannot run there".into(),
            })
        };
        if class.speed.len() != self.gpu_types.len() {
            let allowed = format!("{} entries, one per GPU type", self.gpu_types.len());
            return bad("speed", format!("{} entries", class.speed.len()), &allowed);
        }
        if class
            .speed
            .iter()
            .any(|speed| !speed.is_finite() || *speed < 0.0 || *speed > 1e6)
        {
            return bad("speed", format!("{:?}", class.speed), "numbers from 0 to 1e6");
        }
        if class.speed.iter().all(|speed| *speed == 0.0) {
            return bad(
                "speed",
                format!("{:?}", class.speed),
                "at least one speed above 0",
            );
        }
        for (key, value) in [
            ("more_nodes", class.locality.more_nodes),
            ("cross_rack", class.locality.cross_rack),
        ] {
            if !(value > 0.0 && value <= 1.0) {
                return bad(key, value.to_string(), "above 0 and at most 1");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_cluster_is_valid_and_counts_its_gpus() {
        let spec = ClusterSpec::uniform(3, 8, 2);
        assert_eq!(spec.num_gpus(), 24);
        spec.validate().unwrap();
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
