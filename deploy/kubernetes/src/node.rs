//! Nodes as units: what a policy may place jobs on.
//!
//! A unit is a node with the devices of one extended resource. `nvidia.com/gpu` of node `n1` is the unit `n1`; what is left of it
//! as MIG slices is the unit `n1/nvidia.com/mig-1g.10gb`, with slices in the place of GPUs and `mig-1g.10gb` as their type. So
//! slices and time-sliced replicas need nothing of their own in the tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};
use pleach_scheduler::cluster::NodeState;

use crate::config::Settings;
use crate::names;

/// Most devices of one unit: what the tables take.
const DEVICES_MAX: u32 = 64;

/// A node with the devices of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its name: the node's, and the resource where it is not the main one.
    pub name: String,
    /// Row of its node in the list.
    pub row: usize,
    /// The resource.
    pub resource: String,
    /// Type of its devices.
    pub gpu_type: String,
    /// Devices, 1 to 64.
    pub num_gpus: u32,
    /// Whether it takes jobs.
    pub state: NodeState,
}

/// Name of the unit that a resource has on a node.
#[must_use]
pub fn unit_name(node: &str, resource: &str, settings: &Settings) -> String {
    if settings.is_main(resource) {
        node.to_owned()
    } else {
        format!("{node}/{resource}")
    }
}

/// The node of a unit.
#[must_use]
pub fn node_of(unit: &str) -> &str {
    unit.split_once('/').map_or(unit, |(node, _)| node)
}

/// Whether a taint keeps pods away that do not tolerate it.
#[must_use]
pub fn is_hard(taint: &Taint) -> bool {
    taint.effect != "PreferNoSchedule"
}

/// Its labels.
#[must_use]
pub fn labels(node: &Node) -> &BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    node.metadata.labels.as_ref().unwrap_or(&NONE)
}

/// Whether it takes jobs: down where its kubelet is not ready, draining where it is cordoned. Its taints are for pods to tolerate.
#[must_use]
pub fn state(node: &Node) -> NodeState {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    let is_leaving = is_cordoned || node.metadata.deletion_timestamp.is_some();
    match (is_ready, is_leaving) {
        (false, _) => NodeState::Down,
        (true, true) => NodeState::Draining,
        (true, false) => NodeState::Up,
    }
}

/// The units of the nodes that are driven, in the order of the list, and what is wrong with others.
#[must_use]
pub fn units(nodes: &[Arc<Node>], settings: &Settings) -> (Vec<Unit>, Vec<String>) {
    let (mut units, mut notes) = (Vec::new(), Vec::new());
    for (row, node) in nodes.iter().enumerate() {
        let labels = labels(node);
        let is_driven = settings
            .node_selector
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value));
        let Some(name) = node.metadata.name.as_deref().filter(|_| is_driven) else {
            continue;
        };
        let allocatable = node
            .status
            .as_ref()
            .and_then(|status| status.allocatable.as_ref());
        for (resource, quantity) in allocatable.into_iter().flatten() {
            let num_gpus = pleach_site::quantity::count(&quantity.0).unwrap_or(0);
            if num_gpus == 0 || !settings.is_gpu(resource) {
                continue;
            }
            if num_gpus > DEVICES_MAX {
                notes.push(format!(
                    "node {name}: {num_gpus} of {resource}, more than {DEVICES_MAX}: it is left alone"
                ));
                continue;
            }
            if !labels.contains_key(names::HOSTNAME) {
                notes.push(format!(
                    "node {name} has no label {}: it is left alone",
                    names::HOSTNAME
                ));
                break;
            }
            units.push(Unit {
                name: unit_name(name, resource, settings),
                row,
                resource: resource.clone(),
                gpu_type: gpu_type(labels, resource, settings),
                num_gpus,
                state: state(node),
            });
        }
    }
    (units, notes)
}

/// Racks of units, by their names; none where all nodes are in one, or none says where it is.
#[must_use]
pub fn racks(units: &[Unit], nodes: &[Arc<Node>]) -> BTreeMap<String, String> {
    let rack = |unit: &Unit| {
        let labels = labels(&nodes[unit.row]);
        let rack = pleach_site::rack(&|name| labels.get(name).map(String::as_str))?;
        Some((unit.name.clone(), rack.to_owned()))
    };
    let racks: BTreeMap<String, String> = units.iter().filter_map(rack).collect();
    let mut all = racks.values();
    let first = all.next();
    match all.any(|rack| Some(rack) != first) || racks.len() < units.len() {
        true => racks,
        false => BTreeMap::new(),
    }
}

/// The type of a node's devices of a resource.
fn gpu_type(labels: &BTreeMap<String, String>, resource: &str, settings: &Settings) -> String {
    let short = resource.rsplit_once('/').map_or(resource, |(_, short)| short);
    if !settings.is_main(resource) {
        return short.to_owned();
    }
    let label = |key: &String| labels.get(key).filter(|text| !text.is_empty());
    let told = settings.gpu_type_labels.iter().find_map(label);
    let name = told.map_or(short, String::as_str);
    let replicas = labels
        .get(names::REPLICAS_PER_GPU)
        .and_then(|text| text.parse().ok());
    // The plugin adds the suffix itself where it is set up to; a shared GPU is another type in any case.
    if replicas.unwrap_or(1) > 1 && !name.ends_with(names::SHARED) {
        return format!("{name}{}", names::SHARED);
    }
    name.to_owned()
}
