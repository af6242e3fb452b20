//! The rows of the cluster's tables: nodes, racks, tenants, jobs, and the placements that join them.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::jobs::shape::ShapeId;
use super::rates::goodput_cache::WaitingPace;
use crate::cluster_spec::Resources;
use crate::estimate::Estimate;
use crate::ids::{ClassId, ExternalId, GpuTypeId, NodeId, RackId, TenantId, Time};

/// The lowest `num` set bits of a mask.
pub(super) fn lowest(mask: u64, num: u32) -> u64 {
    let mut rest = mask;
    for _ in 0..num {
        rest &= rest.wrapping_sub(1);
    }
    mask & !rest
}

/// Number of GPUs in a mask. Most nodes have at most eight, and where the processor is not known to count bits, a look into a
/// table takes a quarter of the instructions.
#[inline]
pub(super) fn num_in(gpus: u64) -> u32 {
    const NUM_IN: [u8; 256] = {
        let mut num = [0; 256];
        let mut mask = 1;
        while mask < 256 {
            num[mask] = num[mask >> 1] + (mask & 1) as u8;
            mask += 1;
        }
        num
    };
    if gpus < 256 {
        u32::from(NUM_IN[gpus as usize])
    } else {
        gpus.count_ones()
    }
}

/// GPUs of one node, as a bit mask over the node's GPU indexes (bit 0 = GPU 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The node.
    pub node: NodeId,
    /// Its GPUs that belong to the gang; never empty.
    pub gpus: u64,
}

impl Slice {
    /// Number of GPUs in the slice.
    #[must_use]
    #[inline]
    pub fn num_gpus(self) -> u32 {
        num_in(self.gpus)
    }
}

/// The exact GPUs of a gang: one slice for each node it touches.
pub type Placement = SmallVec<[Slice; 2]>;

/// Whether a node takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// Takes jobs.
    #[default]
    Up,
    /// Keeps its jobs and takes no new ones.
    Draining,
    /// Runs nothing.
    Down,
}

/// A node and its free GPUs.
#[derive(Clone, Debug)]
pub struct Node {
    /// The rack it stands in.
    pub rack: RackId,
    /// Type of all its GPUs.
    pub gpu_type: GpuTypeId,
    /// Number of GPUs, 1 to 64.
    pub num_gpus: u32,
    /// GPUs that no job holds and that may be given away, as a bit mask.
    pub free: u64,
    /// GPUs that no job holds but that may not be given away, because the node is not up or they are kept, as a bit mask.
    pub withheld: u64,
    /// Those that are kept, say for a gang which has lost its other GPUs, as a bit mask; the caller knows for what.
    pub kept: u64,
    /// Row of its GPU 0 in the GPU table.
    pub first_gpu: u32,
    /// Whether it takes part.
    pub state: NodeState,
    /// GPUs of each NVLink island, lowest first.
    pub nvlink_gpus: u32,
    /// Bandwidth of its storage, MB/s; 0 where it is not modelled.
    pub storage_mb_s: f64,
    /// CPU, thousandths of a core; 0 where it is not modelled.
    pub cpu_milli: u32,
    /// CPU that is not reserved, thousandths of a core.
    pub cpu_milli_free: u32,
    /// Host memory, MiB; 0 where it is not modelled.
    pub memory_mib: u32,
    /// Host memory that is not reserved, MiB.
    pub memory_mib_free: u32,
}

impl Node {
    /// Number of free GPUs.
    #[must_use]
    #[inline]
    pub fn num_free(&self) -> u32 {
        num_in(self.free)
    }

    /// The lowest `num` free GPUs as a mask. Slurm packs the lowest index first, and so do we.
    #[must_use]
    pub fn lowest_free(&self, num: u32) -> u64 {
        lowest(self.free, num)
    }
}

/// A rack: consecutive nodes of one type that share the fast network.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Its first node.
    pub first_node: NodeId,
    /// Number of nodes.
    pub num_nodes: u32,
    /// Type of all its GPUs.
    pub gpu_type: GpuTypeId,
    /// GPUs in all.
    pub num_gpus: u32,
    /// GPUs that are free now.
    pub num_free: u32,
}

/// A tenant and what it holds.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// GPUs that are its own by right.
    pub quota_gpus: u32,
    /// GPUs that it holds now, in thousandths; a GPU that two of its jobs share counts for both.
    pub used_milli: u64,
    /// GPUs that its pending jobs ask for.
    pub pending_gpus: u64,
}

impl Tenant {
    /// Held GPUs over the quota: below 1 the tenant is owed something. A tenant without quota counts as having one GPU.
    #[must_use]
    pub fn use_ratio(&self) -> f64 {
        self.used_gpus() / f64::from(self.quota_gpus.max(1))
    }

    /// GPUs that it holds now; a GPU that two of its jobs share counts for both.
    #[must_use]
    pub fn used_gpus(&self) -> f64 {
        self.used_milli as f64 / 1000.0
    }
}

/// Life of a job as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// Waits for GPUs.
    Pending,
    /// Waits for its user to look after it, and is in no queue until then.
    Held,
    /// Holds its gang.
    Running,
    /// Has left.
    Finished,
}

/// What is known of a job when it is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The tenant that pays for it.
    pub tenant: TenantId,
    /// Model class: its relative speed on each GPU type.
    pub class: ClassId,
    /// GPUs that it needs at once, at least 1.
    pub num_gpus: u32,
    /// Believed run time, s, alone on the tightest placement of the reference type. > 0
    pub estimate_s: Estimate,
    /// What it asks for besides GPUs.
    pub resources: Resources,
}

impl Submission {
    /// GPUs that it takes, fractions counted as such.
    #[must_use]
    pub fn gpus(&self) -> f64 {
        f64::from(self.num_gpus) * f64::from(self.resources.gpu_milli) / 1000.0
    }
}

/// A job: its request, what it has received, where it runs.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name outside.
    pub external: ExternalId,
    /// When it came.
    pub submit: Time,
    /// The request.
    pub request: Submission,
    /// Pending, running or finished.
    pub state: JobState,
    /// GPU types on which it can run, as a bit mask.
    pub types: u64,
    /// What each of its GPUs comes with, as asked for.
    pub shape: ShapeId,
    /// What its first start and a restart cost, s ([`Cluster::costs_s`]): the same for the whole of its life.
    ///
    /// [`Cluster::costs_s`]: super::Cluster::costs_s
    pub costs_s: (f64, f64),
    /// What each of its GPUs comes with in the present run; a planner may give more CPU and memory than was asked for.
    pub granted: ShapeId,
    /// GPUs that it holds in the present run; an elastic job may hold others than it asked for. 0 while it does not run.
    pub num_held: u32,
    /// The type that sets its pace in the present run: that of its GPUs, the slowest where they differ.
    pub gpu_type: GpuTypeId,
    /// Whether it runs as copies of itself in the present run.
    pub is_forked: bool,
    /// Whether it is a lease: a job without end that no pass stops and that only its holder ends ([`Cluster::submit_lease`]).
    ///
    /// [`Cluster::submit_lease`]: super::Cluster::submit_lease
    pub is_lease: bool,
    /// Whether it shares a GPU in the present run, or holds only a part of one.
    pub is_sharing: bool,
    /// GPU·s received up to the last time it stopped.
    pub attained_gpu_s: f64,
    /// Time for which it held GPUs, as many as they were, up to the last time it stopped, s.
    pub held_s: f64,
    /// Believed progress up to [`Job::rate_since`], in seconds of the reference run.
    pub executed_s: f64,
    /// Work that its restarts have added, in seconds of the reference run; 0 where a restart costs time instead.
    pub added_s: f64,
    /// When it last began to run.
    pub run_start: Time,
    /// Since when its rate has been what it is: its last start, or the last change among the jobs that share its GPUs or links.
    pub rate_since: Time,
    /// When it first began to run.
    pub first_start: Option<Time>,
    /// Believed progress per second at its present placement, with its GPUs to itself.
    pub rate_alone: f64,
    /// Believed progress per second at its present placement, beside the jobs that share its GPUs and links.
    pub rate: f64,
    /// Start-up cost of the present run that was believed to be unpaid at [`Job::rate_since`], s.
    pub cost_left_s: f64,
    /// Believed end of the present run.
    pub expected_finish: Time,
    /// How it scales if it is elastic, as it was when it last began to wait.
    pub pace: WaitingPace,
    /// Progress that its last preemption wrote down, in seconds of the reference run: no failure takes it back.
    pub saved_s: f64,
    /// How often it was preempted.
    pub num_preemptions: u32,
    /// How often it was stopped by a failure, its own or a node's.
    pub num_failures: u32,
    /// Which start of the cluster its last one was: jobs that share GPUs came to them in this order.
    pub start_number: u64,
    /// Its GPUs while it runs; empty otherwise.
    pub placement: Placement,
}

impl Job {
    /// GPU·s received until `now`.
    #[must_use]
    pub fn attained_gpu_s_at(&self, now: Time) -> f64 {
        match self.state {
            JobState::Running => {
                self.attained_gpu_s + self.gpus_held() * (now - self.run_start).as_secs_f64().max(0.0)
            }
            _ => self.attained_gpu_s,
        }
    }

    /// Service until `now`: GPU time received for each GPU that it asks for, s.
    #[must_use]
    pub fn service_s_at(&self, now: Time) -> f64 {
        self.attained_gpu_s_at(now) / self.request.gpus()
    }

    /// Time since it came, s.
    #[must_use]
    #[inline]
    pub fn age_s_at(&self, now: Time) -> f64 {
        now.since(self.submit).as_secs_f64()
    }

    /// Time since it came for which it has held no GPUs, s, 0 or more.
    #[must_use]
    pub fn without_gpus_s_at(&self, now: Time) -> f64 {
        let present_s = match self.state {
            JobState::Running => (now - self.run_start).as_secs_f64(),
            _ => 0.0,
        };
        (self.age_s_at(now) - (self.held_s + present_s)).max(0.0)
    }

    /// GPUs that it holds now, fractions counted as such.
    #[must_use]
    pub fn gpus_held(&self) -> f64 {
        f64::from(self.num_held) * f64::from(self.request.resources.gpu_milli) / 1000.0
    }

    /// GPUs that it holds now, in thousandths.
    #[must_use]
    pub fn milli_held(&self) -> u64 {
        u64::from(self.num_held) * u64::from(self.request.resources.gpu_milli)
    }

    /// Believed progress until `now`, in seconds of the reference run.
    #[must_use]
    pub fn executed_s_at(&self, now: Time) -> f64 {
        match self.state {
            JobState::Running => {
                let ran_s = (now - self.rate_since).as_secs_f64() - self.cost_left_s;
                self.executed_s + ran_s.max(0.0) * self.rate
            }
            _ => self.executed_s,
        }
    }

    /// Believed work in all, in seconds of the reference run: the estimate and what restarts have added to it.
    #[must_use]
    pub fn work_s(&self) -> f64 {
        self.request.estimate_s.value + self.added_s
    }

    /// Believed rest of the reference run, s. A job that outlives its estimate is believed to end within a second.
    #[must_use]
    pub fn remaining_s_at(&self, now: Time) -> f64 {
        (self.work_s() - self.executed_s_at(now)).max(1.0)
    }
}
