//! How the cluster was filled: how spread out its gangs ran, and how many nodes stood empty at which occupancy.
//!
//! Both are questions of the Philly study (Jeon et al., USENIX ATC 2019): what a gang loses on more nodes (table 5), and
//! why a large gang waits although a third of the GPUs is free: under 4.5 % of the nodes are then completely empty.
//! Kept up to date node by node as jobs come and go, so an event costs O(nodes that a gang touches).
//! A node that is not up counts as empty, and those of its GPUs that no job may use as occupied.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Placement, Slice};
use pleach_scheduler::{JobId, Time};

/// Classes of occupancy, each so many percent wide: 20 classes of 5 % and one for a full cluster.
pub const NUM_OCCUPANCY_CLASSES: usize = 21;

/// What the runs of gangs of one size on one number of nodes amounted to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Runs; a preempted job has several.
    pub num_runs: u64,
    /// Held GPUs x s.
    pub held_gpu_s: f64,
    /// What the same GPU·s would have been at the class's full speed on the type: the progress that was kept, GPU·s. Over
    /// [`Spread::held_gpu_s`] it is the mean relative rate, with locality, neighbours, restarts and failures in it.
    pub useful_gpu_s: f64,
}

/// Time spent in one class of occupancy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OccupancyClass {
    /// Time, s.
    pub time_s: f64,
    /// Completely empty nodes x s.
    pub empty_node_s: f64,
}

/// A gang that holds GPUs.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    start: Time,
    placement: Placement,
    executed_s: f64,
}

/// Keeps the account while a world runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    runs: BTreeMap<JobId, Run>,
    /// Jobs on each node. `[num_nodes]`
    node_jobs: Vec<u32>,
    num_empty: u32,
    since: Time,
    spread: BTreeMap<(u32, u32), Spread>,
    classes: [OccupancyClass; NUM_OCCUPANCY_CLASSES],
}

impl Occupancy {
    pub(crate) fn new(cluster: &Cluster) -> Occupancy {
        Occupancy {
            runs: BTreeMap::new(),
            node_jobs: vec![0; cluster.nodes().len()],
            num_empty: cluster.nodes().len() as u32,
            since: cluster.now(),
            spread: BTreeMap::new(),
            classes: [OccupancyClass::default(); NUM_OCCUPANCY_CLASSES],
        }
    }

    /// A job has got its gang.
    pub(crate) fn started(&mut self, cluster: &Cluster, id: JobId, placement: &Placement) {
        for slice in placement {
            let num_jobs = &mut self.node_jobs[slice.node.index()];
            self.num_empty -= u32::from(*num_jobs == 0);
            *num_jobs += 1;
        }
        let run = Run {
            start: cluster.now(),
            placement: placement.clone(),
            executed_s: cluster.job(id).executed_s,
        };
        self.runs.insert(id, run);
    }

    /// A job has lost its gang: preempted or finished.
    pub(crate) fn ended(&mut self, cluster: &Cluster, id: JobId) {
        let Some(run) = self.runs.remove(&id) else { return };
        for slice in &run.placement {
            let num_jobs = &mut self.node_jobs[slice.node.index()];
            *num_jobs -= 1;
            self.num_empty += u32::from(*num_jobs == 0);
        }
        let job = cluster.job(id);
        let held_s = (cluster.now() - run.start).as_secs_f64();
        if held_s == 0.0 {
            return;
        }
        // The slowest type sets the pace of a gang.
        let speeds = &cluster.class(job.request.class).speed;
        let of = |slice: &Slice| speeds[cluster.nodes()[slice.node.index()].gpu_type.index()];
        let speed = run.placement.iter().map(of).fold(f64::INFINITY, f64::min);
        let gpus = job.request.gpus();
        let spread = self
            .spread
            .entry((job.request.num_gpus, run.placement.len() as u32))
            .or_default();
        spread.num_runs += 1;
        spread.held_gpu_s += held_s * gpus;
        spread.useful_gpu_s += (job.executed_s - run.executed_s) / speed * gpus;
    }

    /// The clock is about to move to `next`: what is so now holds until then.
    pub(crate) fn pass(&mut self, cluster: &Cluster, next: Time) {
        let span_s = (next - self.since).as_secs_f64();
        self.since = next;
        let (num_gpus, num_free) = (u64::from(cluster.num_gpus()), u64::from(cluster.num_free()));
        let class = (num_gpus - num_free) * (NUM_OCCUPANCY_CLASSES as u64 - 1) / num_gpus;
        let class = &mut self.classes[class as usize];
        class.time_s += span_s;
        class.empty_node_s += span_s * f64::from(self.num_empty);
    }

    /// By gang size and number of nodes.
    #[must_use]
    pub fn spread(&self) -> &BTreeMap<(u32, u32), Spread> {
        &self.spread
    }

    /// By occupancy: class i from i x 5 % up, the last for a full cluster.
    #[must_use]
    pub fn classes(&self) -> &[OccupancyClass; NUM_OCCUPANCY_CLASSES] {
        &self.classes
    }
}
