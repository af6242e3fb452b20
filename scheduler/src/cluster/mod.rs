//! The cluster as a scheduler knows it: tables of nodes, GPUs, racks, tenants and jobs, and the only ways to change them.
//!
//! The same type is filled by the simulator and by a daemon on a real cluster. It holds beliefs (estimates with their
//! provenance), never hidden truth. Every change keeps the invariants that [`Cluster::check`] asserts: no GPU belongs to
//! two jobs, a gang holds all its GPUs or none, quotas bind where borrowing is off.

mod admit;
mod capabilities;
mod changes;
mod check;
mod consolidated;
mod copies;
pub mod decision;
mod fit;
mod forget;
mod free;
mod goodput_cache;
mod node_set;
mod nodes;
mod ordered_set;
mod packing;
mod place;
mod queries;
mod queue;
mod rates;
mod record;
mod reserve;
mod shape;
mod shared;
pub mod snapshot;
mod stints;
mod submit;
mod tables;
mod type_advantage;
mod worth;

pub use capabilities::{Capabilities, Sharing, moved};
pub use goodput_cache::WaitingPace;
pub use ordered_set::{Member, OrderedSet};
pub use place::{PlacementFacts, Template};
pub use queue::Demand;
pub use rates::last_checkpoint_s;
pub use shape::{Shape, ShapeId};
pub use shared::{PACKED_MAX, Resident, SharedGpu};
pub use tables::{Job, JobState, Node, NodeState, Placement, Rack, Slice, Submission, Tenant};

pub(crate) use queue::{
    Head, Kept, Order, Queue, Rekey, Row, Waiting, has_passed_first_class, rest_weight, service_class,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use capabilities::class_costs_s;
use decision::Decision;
use free::FreeIndex;
use goodput_cache::FirstGoodput;
use shape::{Shapes, capacity};
use shared::{SharedGpus, TypeFacts};
use stints::Stints;
use type_advantage::TypeWorth;

use crate::error::ConfigError;
use crate::ids::{ExternalId, GpuTypeId, JobId, NodeId, RackId, Time};
use crate::physics::interference::{Interference, PairTable};
use crate::physics::links::Fabric;
use crate::spec::{ClusterSpec, ModelClass};

/// The tables and their indexes.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// What it was made from.
    spec: Arc<ClusterSpec>,
    classes: Vec<ModelClass>,
    nodes: Vec<Node>,
    racks: Vec<Rack>,
    /// Who has a GPU to itself; none for free and for shared ones.
    gpus: Vec<Option<JobId>>,
    shared: SharedGpus,
    shapes: Shapes,
    /// Largest gang of each shape on each type of the empty cluster. `[shape][type]`
    shape_gpus_max: Vec<Vec<u32>>,
    type_facts: Vec<TypeFacts>,
    tenants: Vec<Tenant>,
    jobs: Vec<Job>,
    /// Jobs that wait or run and were submitted under a name.
    names: BTreeMap<ExternalId, JobId>,
    /// Jobs that were submitted without one: the next number.
    num_numbered: u64,
    /// Rows of jobs that have left.
    num_ended: usize,
    /// Starts so far.
    num_starts: u64,
    free: FreeIndex,
    queue: Queue,
    /// Running jobs of each GPU type by believed end. `[type]`
    running: Vec<OrderedSet<(Time, JobId)>>,
    num_running: usize,
    stints: Stints,
    /// Bit mask of the types on which each class can run.
    class_types: Vec<u64>,
    /// Best speed of each class on any type. `[class]`
    class_speed_max: Vec<f64>,
    /// Best speed of any class on each type. `[type]`
    type_speed_max: Vec<f64>,
    /// Mean speed of all classes on each type: what a GPU of the type is worth to the average job.
    type_value: Vec<f64>,
    worth: TypeWorth,
    first_goodput: FirstGoodput,
    /// What a first start and a restart of each class cost, s. `[class]`
    class_costs_s: Vec<(f64, f64)>,
    /// The cheapest restart of any class, s.
    restart_cost_s_min: f64,
    /// Whether all classes cost that.
    restarts_cost_the_same: bool,
    fabric: Option<Fabric>,
    pairs: PairTable,
    interference: Interference,
    borrowing: bool,
    capabilities: Capabilities,
    now: Time,
    /// Nodes that are draining or down.
    num_not_up: usize,
    decisions: Vec<Decision>,
    /// Running jobs whose rate has changed through others since this was last asked.
    rerated: Vec<JobId>,
    /// Empty placements with memory for many nodes.
    spare: Vec<Placement>,
}

impl Cluster {
    /// An empty cluster at time zero.
    ///
    /// # Errors
    /// Where the description or a model class is not valid.
    pub fn new(
        spec: &ClusterSpec,
        classes: &[ModelClass],
        capabilities: Capabilities,
    ) -> Result<Cluster, ConfigError> {
        spec.validate()?;
        capabilities.validate()?;
        if classes.is_empty() {
            return Err(ConfigError {
                key: "classes".into(),
                value: "none".into(),
                allowed: "at least one model class".into(),
                hint: "a cluster of equal jobs needs one class with speed 1 on every type".into(),
            });
        }
        for class in classes {
            spec.validate_class(class)?;
        }
        let class_costs_s = class_costs_s(classes, &capabilities);
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
        let num_types = spec.gpu_types.len();
        let class_types = classes
            .iter()
            .map(|class| {
                class
                    .speed
                    .iter()
                    .enumerate()
                    .fold(0, |mask, (kind, &speed)| mask | u64::from(speed > 0.0) << kind)
            })
            .collect();
        let type_value: Vec<f64> = (0..num_types)
            .map(|kind| classes.iter().map(|class| class.speed[kind]).sum::<f64>() / classes.len() as f64)
            .collect();
        let fastest = |speeds: &mut dyn Iterator<Item = f64>| speeds.fold(0.0, f64::max);
        let free = FreeIndex::new(num_types, &nodes, &racks);
        let tenants = spec
            .tenants
            .iter()
            .map(|tenant| Tenant {
                quota_gpus: tenant.quota_gpus,
                used_milli: 0,
                pending_gpus: 0,
            })
            .collect();
        Ok(Cluster {
            spec: Arc::new(spec.clone()),
            classes: classes.to_vec(),
            worth: TypeWorth::new(classes, &type_value, &free.num_gpus),
            first_goodput: FirstGoodput::new(classes, num_gpus),
            free,
            nodes,
            racks,
            gpus: vec![None; num_gpus as usize],
            shared: SharedGpus::default(),
            shapes: Shapes::new(),
            shape_gpus_max: Vec::new(),
            type_facts: spec
                .gpu_types
                .iter()
                .map(|gpu| TypeFacts {
                    memory_mib: capacity(gpu.memory_gib, 1024.0),
                    mig: gpu.mig,
                })
                .collect(),
            tenants,
            jobs: Vec::new(),
            names: BTreeMap::new(),
            num_numbered: 0,
            num_ended: 0,
            num_starts: 0,
            queue: Queue::default(),
            running: vec![OrderedSet::default(); num_types],
            num_running: 0,
            stints: Stints::new(num_types),
            class_types,
            class_speed_max: classes
                .iter()
                .map(|class| fastest(&mut class.speed.iter().copied()))
                .collect(),
            type_speed_max: (0..num_types)
                .map(|kind| fastest(&mut classes.iter().map(|class| class.speed[kind])))
                .collect(),
            type_value,
            pairs: PairTable::new(
                &spec.pairs,
                &spec
                    .gpu_types
                    .iter()
                    .map(|gpu| gpu.name.as_str())
                    .collect::<Vec<_>>(),
                &classes
                    .iter()
                    .map(|class| class.name.as_str())
                    .collect::<Vec<_>>(),
            )?,
            restart_cost_s_min: class_costs_s
                .iter()
                .map(|cost| cost.1)
                .fold(f64::INFINITY, f64::min),
            restarts_cost_the_same: class_costs_s.windows(2).all(|pair| pair[0].1 == pair[1].1),
            class_costs_s,
            fabric: spec.fabric,
            interference: spec.interference,
            borrowing: spec.borrowing,
            capabilities,
            now: Time::ZERO,
            num_not_up: 0,
            decisions: Vec::new(),
            rerated: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// Moves the clock. Time never runs backwards.
    pub fn advance(&mut self, now: Time) {
        assert!(
            now >= self.now,
            "the clock runs backwards: {:?} after {:?}",
            now,
            self.now
        );
        self.now = now;
    }
}

/// Positions of the set bits, lowest first.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let bit = mask.trailing_zeros();
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod consolidated_tests;
#[cfg(test)]
mod forget_tests;
#[cfg(test)]
mod mixed_tests;
#[cfg(test)]
mod packing_tests;
#[cfg(test)]
mod rate_tests;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
pub(crate) mod tests;
