//! Nodes as `kubectl get nodes -o json` prints them.
//!
//! # Source
//! Kubernetes API v1 (`Node`): quantities; `nvidia.com/gpu.product` of NVIDIA's feature discovery.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::document::in_list;
use super::kubernetes::{Metadata, PRODUCT, Quantity, WHOLE};
use super::node_state::Out;

/// A node of `kubectl get nodes -o json`: its name, GPU type, GPUs, cores and memory in MiB.
pub(super) struct KubernetesNode {
    pub name: String,
    pub gpu_type: String,
    pub num_gpus: u32,
    /// None where it is told in a way that is not understood.
    pub num_cpus: Option<u32>,
    pub memory_mib: Option<f64>,
    /// Why it takes no pods.
    pub out: Option<Out>,
}

/// The nodes of a document, or why it is none; other objects are passed over.
pub(super) fn nodes(text: &str) -> Result<Vec<KubernetesNode>, String> {
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Shown {
        kind: String,
        metadata: Metadata,
        spec: Spec,
        status: Holds,
    }
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Spec {
        unschedulable: bool,
    }
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Condition {
        r#type: String,
        status: String,
    }
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Holds {
        capacity: BTreeMap<String, Quantity>,
        conditions: Vec<Condition>,
    }
    let mut found = Vec::new();
    in_list(text.as_bytes(), "items", &mut |shown: &Shown| {
        if shown.kind != "Node" {
            return true;
        }
        let holds = |wanted: &dyn Fn(&str) -> bool| {
            let of = shown.status.capacity.iter().find(|(name, _)| wanted(name));
            of.map_or("", |(_, quantity)| quantity.0.as_str())
        };
        let product = shown
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(PRODUCT));
        let mut conditions = shown.status.conditions.iter();
        let is_silent = conditions.any(|own| own.r#type == "Ready" && own.status != "True");
        found.push(KubernetesNode {
            out: match (is_silent, shown.spec.unschedulable) {
                (true, _) => Some(Out::NotReady),
                (false, true) => Some(Out::Cordoned),
                (false, false) => None,
            },
            name: shown.metadata.name.clone(),
            gpu_type: product.cloned().unwrap_or_default(),
            num_gpus: holds(&|name| name.ends_with(WHOLE)).parse().unwrap_or(0),
            num_cpus: cores(holds(&|name| name == "cpu")),
            memory_mib: mib(holds(&|name| name == "memory")),
        });
        true
    })
    .map_err(|error| error.to_string())?;
    Ok(found)
}

/// `128` or `127500m` as whole cores; 0 where nothing is told.
fn cores(text: &str) -> Option<u32> {
    match text.strip_suffix('m') {
        Some(milli) => milli.parse::<u32>().ok().map(|milli| milli / 1000),
        None if text.is_empty() => Some(0),
        None => text.parse().ok(),
    }
}

/// `1056289712Ki` as MiB, 0 where nothing is told; none where it is none that a node has.
fn mib(text: &str) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let units = [
        ("Ki", 1.0 / 1024.0),
        ("Mi", 1.0),
        ("Gi", 1024.0),
        ("Ti", 1_048_576.0),
    ];
    let of_unit = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = of_unit.unwrap_or((text, 1.0 / 1_048_576.0));
    let mib = number.parse::<f64>().ok()? * factor;
    (0.0..=1e9).contains(&mib).then_some(mib)
}
