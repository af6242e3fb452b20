//! The cluster as a scheduler knows it: tables of nodes, GPUs, racks, tenants and jobs, and the only ways to change them.
//!
//! The same type is filled by the simulator and by a daemon on a real cluster. It holds beliefs (estimates with their
//! provenance), never hidden truth. Every change keeps the invariants that [`Cluster::check`] asserts: no GPU belongs to
//! two jobs, a gang holds all its GPUs or none, quotas bind where borrowing is off.

mod build;
mod capabilities;
mod check;
pub mod decision;
mod jobs;
mod places;
mod queries;
mod rates;
mod tables;

pub use capabilities::{Capabilities, Sharing, moved};
pub use jobs::allowed::AllowedSets;
pub use jobs::ordered_set::{Member, OrderedSet};
pub use jobs::queue::Demand;
pub use jobs::record;
pub use jobs::shape::{Shape, ShapeId};
pub use jobs::yielding::{Room, Yielding};
pub use places::beside::HeldNodes;
pub use places::place::{PlacementFacts, Template};
pub use places::shared::{PACKED_MAX, Resident, SharedGpu};
pub use rates::goodput_cache::WaitingPace;
pub use tables::{Job, JobState, Node, NodeState, Placement, Rack, Slice, Submission, Tenant};

pub(crate) use jobs::queue::{
    Head, Kept, Order, Queue, Rekey, Row, Waiting, has_passed_first_class, rest_weight, service_class,
};
pub(crate) use places::free_counts::FreeCounts;
pub(crate) use places::tasks::TaskRoom;

use std::collections::HashMap;
use std::sync::Arc;

use decision::Decision;
use jobs::attained_service::AttainedService;
use jobs::shape::Shapes;
use places::free::FreeIndex;
use places::links::Links;
use places::place_changes::PlaceChanges;
use places::shared::{SharedGpus, TypeFacts};
use places::task_limits::TaskLimits;
use rates::goodput_cache::FirstGoodput;
use rates::type_advantage::TypeWorth;

use crate::cluster_spec::{ClusterSpec, ModelClass};
use crate::id_hash::IdHash;
use crate::ids::{ExternalId, JobId, Time};
use crate::physics::interference::{Interference, PairTable};
use crate::physics::storage::Storage;

/// The tables and their indexes.
#[derive(Clone, Debug)]
pub struct Cluster {
    facts: Facts,
    places: Places,
    jobs: Jobs,
    now: Time,
}

/// What never changes while jobs come and go: what the cluster was made from, and what follows from it alone.
#[derive(Clone, Debug)]
struct Facts {
    /// What it was made from.
    spec: Arc<ClusterSpec>,
    classes: Vec<ModelClass>,
    of_types: Vec<TypeFacts>,
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
    /// What a first start and a restart of each class cost, s; where they are [by gang](Cluster::costs_by_gang) of a gang of one.
    /// `[class]`
    class_costs_s: Vec<(f64, f64)>,
    /// Whether they depend on the size of the gang too.
    costs_by_gang: bool,
    /// Where checkpoints lie.
    storage: Storage,
    /// The cheapest restart of any class, s.
    restart_cost_s_min: f64,
    /// Whether all classes cost that.
    restarts_cost_the_same: bool,
    pairs: PairTable,
    interference: Interference,
    borrowing: bool,
    capabilities: Capabilities,
}

/// Nodes, their GPUs and links, and what of them is free.
#[derive(Clone, Debug)]
struct Places {
    nodes: Vec<Node>,
    racks: Vec<Rack>,
    /// The job that has a GPU to itself; none for free and for shared ones.
    gpus: Vec<Option<JobId>>,
    shared: SharedGpus,
    free: FreeIndex,
    /// The links between GPUs, where the cluster has a fabric.
    links: Option<Links>,
    /// Nodes that are draining or down.
    num_not_up: usize,
    /// Empty placements with memory for many nodes.
    spare: Vec<Placement>,
    /// Changes so far of where a gang could go and how fast it would be there.
    changes: PlaceChanges,
}

/// Jobs that wait or run, in all orders in which they are asked for, and what their tenants hold.
#[derive(Clone, Debug)]
struct Jobs {
    rows: Vec<Job>,
    /// Jobs that wait or run and were submitted under a name.
    names: HashMap<ExternalId, JobId, IdHash>,
    /// Jobs that were submitted without one: the next number.
    num_numbered: u64,
    /// Starts so far.
    num_starts: u64,
    shapes: Shapes,
    allowed: AllowedSets,
    /// Largest gang of each shape on each type of the empty cluster. `[shape][type]`
    shape_gpus_max: Vec<Vec<u32>>,
    /// What the empty cluster has for gangs that are cut into tasks.
    task_limits: TaskLimits,
    tenants: Vec<Tenant>,
    pending: Queue,
    /// Running jobs of each GPU type by believed end. `[type]`
    running: Vec<OrderedSet<(Time, JobId)>>,
    num_running: usize,
    /// Pending jobs whose run times are predicted.
    num_predicted: usize,
    attained_service: AttainedService,
    /// The dearest restart of any job that has come, s; kept where costs are by gang.
    restart_cost_s_most: f64,
    decisions: Vec<Decision>,
    /// Running jobs whose rate has changed through others since this was last asked.
    rerated: Vec<JobId>,
}

impl Cluster {
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
#[path = "./tests/snapshot.rs"]
mod snapshot;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
pub(crate) mod tests;
