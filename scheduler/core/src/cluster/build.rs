//! An empty cluster from its description.

use std::collections::HashMap;
use std::sync::Arc;

use super::capabilities::{Capabilities, Sharing, class_cost_s};
use super::jobs::allowed::AllowedSets;
use super::jobs::attained_service::AttainedService;
use super::jobs::ordered_set::OrderedSet;
use super::jobs::queue::Queue;
use super::jobs::shape::{Shapes, capacity};
use super::places::free::FreeIndex;
use super::places::links::Links;
use super::places::place_changes::PlaceChanges;
use super::places::shared::{SharedGpus, TypeFacts};
use super::places::task_limits::TaskLimits;
use super::rates::goodput_cache::FirstGoodput;
use super::rates::type_advantage::TypeWorth;
use super::tables::{Node, NodeState, Rack, Tenant};
use super::{Cluster, Facts, Jobs, Places};
use crate::cluster_spec::{ClusterSpec, GpuTypeSpec, ModelClass, NodeGroup, TenantSpec};
use crate::ids::{GpuTypeId, NodeId, RackId, Time};
use crate::physics::interference::PairTable;
use crate::physics::overheads::Overheads;
use crate::physics::storage::Storage;
use crate::problem::Problem;

impl Cluster {
    /// An empty cluster at time zero.
    ///
    /// # Errors
    /// Where the description or a model class is not valid.
    pub fn new(
        spec: &ClusterSpec,
        classes: &[ModelClass],
        capabilities: Capabilities,
    ) -> Result<Cluster, Problem> {
        spec.validate()?;
        capabilities.validate()?;
        Problem::refuse_if(
            classes.is_empty(),
            "classes",
            "none",
            "at least one model class",
            "a cluster of equal jobs needs one class with speed 1 on every type",
        )?;
        for class in classes {
            spec.validate_class(class)?;
        }
        let storage = spec.storage.unwrap_or_default();
        let costs_by_gang = capabilities.overheads == Some(Overheads::ByClass);
        let costs = classes
            .iter()
            .map(|class| class_cost_s(class, 1, storage, &capabilities));
        let class_costs_s: Vec<(f64, f64)> = costs.collect();
        let (nodes, racks, num_gpus) = nodes_and_racks(spec);
        let num_types = spec.gpu_types.len();
        let type_value: Vec<f64> = (0..num_types)
            .map(|kind| classes.iter().map(|class| class.speed[kind]).sum::<f64>() / classes.len() as f64)
            .collect();
        let fastest = |speeds: &mut dyn Iterator<Item = f64>| speeds.fold(0.0, f64::max);
        let free = FreeIndex::new(num_types, &nodes, &racks);
        let facts = Facts {
            spec: Arc::new(spec.clone()),
            classes: classes.to_vec(),
            of_types: spec
                .gpu_types
                .iter()
                .map(|gpu| facts_of_type(gpu, &spec.node_groups))
                .collect(),
            class_types: classes.iter().map(types_of).collect(),
            class_speed_max: classes
                .iter()
                .map(|class| fastest(&mut class.speed.iter().copied()))
                .collect(),
            type_speed_max: (0..num_types)
                .map(|kind| fastest(&mut classes.iter().map(|class| class.speed[kind])))
                .collect(),
            worth: TypeWorth::new(classes, &type_value, &free.num_gpus),
            type_value,
            first_goodput: FirstGoodput::new(classes, num_gpus),
            restart_cost_s_min: classes
                .iter()
                .map(|class| class_cost_s_min(class, storage, &capabilities))
                .fold(f64::INFINITY, f64::min),
            restarts_cost_the_same: !costs_by_gang
                && class_costs_s.windows(2).all(|pair| pair[0].1 == pair[1].1),
            class_costs_s,
            costs_by_gang,
            storage,
            pairs: pairs(spec, classes, capabilities.sharing)?,
            interference: spec.interference,
            borrowing: spec.borrowing,
            capabilities,
        };
        let places = Places {
            free,
            links: spec
                .fabric
                .map(|fabric| Links::new(fabric, &nodes, &racks, capabilities.sharing)),
            nodes,
            racks,
            gpus: vec![None; num_gpus as usize],
            shared: SharedGpus::default(),
            num_not_up: 0,
            spare: Vec::new(),
            changes: PlaceChanges::new(num_types),
        };
        Ok(Cluster {
            facts,
            places,
            jobs: Jobs::none(spec),
            now: Time::ZERO,
        })
    }
}

impl Jobs {
    fn none(spec: &ClusterSpec) -> Jobs {
        let num_types = spec.gpu_types.len();
        Jobs {
            rows: Vec::new(),
            names: HashMap::default(),
            num_numbered: 0,
            num_starts: 0,
            shapes: Shapes::new(),
            allowed: AllowedSets::default(),
            shape_gpus_max: Vec::new(),
            task_limits: TaskLimits::new(),
            tenants: spec.tenants.iter().map(idle_tenant).collect(),
            pending: Queue::default(),
            running: vec![OrderedSet::default(); num_types],
            num_running: 0,
            num_predicted: 0,
            attained_service: AttainedService::new(num_types),
            restart_cost_s_most: 0.0,
            decisions: Vec::new(),
            rerated: Vec::new(),
        }
    }
}

/// What the cheapest restart of a class costs at least, s, whatever the size of its gang.
fn class_cost_s_min(class: &ModelClass, storage: Storage, capabilities: &Capabilities) -> f64 {
    // More GPUs read faster and take longer to connect: a gang of one that has nothing to read is cheaper than any.
    let light = ModelClass {
        state_gib: 0.0,
        ..class.clone()
    };
    let is_by_gang = capabilities.overheads == Some(Overheads::ByClass);
    class_cost_s(if is_by_gang { &light } else { class }, 1, storage, capabilities).1
}

/// Nodes and racks in the order of the groups, and the number of GPUs.
fn nodes_and_racks(spec: &ClusterSpec) -> (Vec<Node>, Vec<Rack>, u32) {
    let (mut nodes, mut racks) = (Vec::new(), Vec::new());
    let mut num_gpus = 0;
    for group in &spec.node_groups {
        let kind = spec
            .gpu_types
            .iter()
            .position(|gpu| gpu.name == group.gpu_type)
            .unwrap_or(0);
        for number in 0..group.count {
            if number % group.nodes_per_rack == 0 {
                let first_node = NodeId(nodes.len() as u32);
                let gpu_type = GpuTypeId(kind as u8);
                racks.push(Rack {
                    first_node,
                    num_nodes: 0,
                    gpu_type,
                    num_gpus: 0,
                    num_free: 0,
                });
            }
            let rack_id = RackId(racks.len() as u32 - 1);
            if let Some(rack) = racks.last_mut() {
                rack.num_nodes += 1;
                rack.num_gpus += group.gpus_per_node;
                rack.num_free += group.gpus_per_node;
            }
            nodes.push(Node {
                rack: rack_id,
                gpu_type: GpuTypeId(kind as u8),
                num_gpus: group.gpus_per_node,
                free: u64::MAX >> (64 - group.gpus_per_node),
                withheld: 0,
                kept: 0,
                first_gpu: num_gpus,
                state: NodeState::Up,
                nvlink_gpus: match group.nvlink_gpus {
                    0 => group.gpus_per_node,
                    some => some,
                },
                storage_mb_s: group.storage_mb_s,
                cpu_milli: capacity(group.cpu_cores, 1000.0),
                cpu_milli_free: capacity(group.cpu_cores, 1000.0),
                memory_mib: capacity(group.memory_gib, 1024.0),
                memory_mib_free: capacity(group.memory_gib, 1024.0),
            });
            num_gpus += group.gpus_per_node;
        }
    }
    (nodes, racks, num_gpus)
}

/// The types on which a class can run, one bit each.
fn types_of(class: &ModelClass) -> u64 {
    let speeds = class.speed.iter().enumerate();
    speeds.fold(0, |mask, (kind, &speed)| mask | u64::from(speed > 0.0) << kind)
}

fn facts_of_type(gpu: &GpuTypeSpec, groups: &[NodeGroup]) -> TypeFacts {
    let groups = groups.iter().filter(|group| group.gpu_type == gpu.name);
    let known = groups.filter(|group| group.memory_gib > 0.0);
    let host_memory_gib = known.map(|group| group.memory_gib / f64::from(group.gpus_per_node));
    TypeFacts {
        memory_mib: capacity(gpu.memory_gib, 1024.0),
        host_memory_gib: host_memory_gib.fold(f64::INFINITY, f64::min),
        mig: gpu.mig,
    }
}

fn idle_tenant(tenant: &TenantSpec) -> Tenant {
    Tenant {
        quota_gpus: tenant.quota_gpus,
        used_milli: 0,
        pending_gpus: 0,
    }
}

/// What pairs of classes cost each other. Where jobs do not share GPUs the table is empty, but the pairs are checked.
fn pairs(spec: &ClusterSpec, classes: &[ModelClass], sharing: Sharing) -> Result<PairTable, Problem> {
    if sharing == Sharing::Off {
        return PairTable::new(&spec.pairs, &[], &[]);
    }
    let types: Vec<&str> = spec.gpu_types.iter().map(|gpu| gpu.name.as_str()).collect();
    let classes: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    let table = PairTable::new(&spec.pairs, &types, &classes)?;
    Ok(match spec.interference.guard {
        Some(_) => table.scattered(&classes),
        None => table,
    })
}
