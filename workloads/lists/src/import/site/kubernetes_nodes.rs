//! Nodes as `kubectl get nodes -o json` prints them.
//!
//! # Source
//! Kubernetes API v1 (`Node`): quantities; `nvidia.com/gpu.product` of NVIDIA's feature discovery.

use std::collections::BTreeMap;

use pleach_site::quantity;
use serde::Deserialize;

use super::document::in_list;
use super::kubernetes::{Metadata, PRODUCT, Quantity, WHOLE, unit};
use super::node_state::Out;

/// Bytes of a MiB.
const BYTES_PER_MIB: f64 = 1_048_576.0;

/// A node of `kubectl get nodes -o json`: its name, GPU type, GPUs, cores and memory in MiB. Slices of each kind (MIG) are a node beside
/// it, as the controller has them.
pub(super) struct KubernetesNode {
    pub name: String,
    pub gpu_type: String,
    pub num_gpus: u32,
    /// None where it is given in a form that is not understood.
    pub num_cpus: Option<f64>,
    pub memory_mib: Option<f64>,
    /// Why it takes no pods.
    pub out: Option<Out>,
    /// The nodes with which it shares the fast network; empty where its labels do not tell.
    pub rack: String,
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
        let labels = shown.metadata.labels.as_ref();
        let product = labels.and_then(|labels| labels.get(PRODUCT));
        let label = |name: &str| labels?.get(name).map(String::as_str);
        let rack = pleach_site::rack(&label).unwrap_or_default();
        let slices = shown.status.capacity.iter().filter_map(|(name, quantity)| {
            let num = quantity::count(&quantity.0).filter(|num| *num > 0)?;
            Some((name, pleach_site::slices(name)?, num))
        });
        let slices: Vec<(&String, &str, u32)> = slices.collect();
        let mut conditions = shown.status.conditions.iter();
        let is_silent = conditions.any(|own| own.r#type == "Ready" && own.status != "True");
        let node = KubernetesNode {
            out: match (is_silent, shown.spec.unschedulable) {
                (true, _) => Some(Out::NotReady),
                (false, true) => Some(Out::Cordoned),
                (false, false) => None,
            },
            name: shown.metadata.name.clone(),
            gpu_type: product.cloned().unwrap_or_default(),
            num_gpus: quantity::count(holds(&|name| name.ends_with(WHOLE))).unwrap_or(0),
            num_cpus: amount(holds(&|name| name == "cpu")),
            memory_mib: amount(holds(&|name| name == "memory")).map(|bytes| bytes / BYTES_PER_MIB),
            rack: rack.to_owned(),
        };
        let of_slices = slices.iter().map(|(name, of_type, num)| KubernetesNode {
            name: unit(&node.name, name),
            gpu_type: (*of_type).to_owned(),
            num_gpus: *num,
            rack: node.rack.clone(),
            ..node
        });
        let of_slices: Vec<KubernetesNode> = of_slices.collect();
        // What is all slices has no node of GPUs.
        found.extend(Some(node).filter(|node| node.num_gpus > 0 || of_slices.is_empty()));
        found.extend(of_slices);
        true
    })
    .map_err(|error| error.to_string())?;
    Ok(found)
}

/// A quantity as a number, 0 where it is not given; none where it is none that a node has.
fn amount(text: &str) -> Option<f64> {
    match text {
        "" => Some(0.0),
        text => quantity::value(text).filter(|value| *value <= 1e15),
    }
}
