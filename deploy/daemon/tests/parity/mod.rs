//! The simulator's way and the daemon's way to the same cluster: jobs that are submitted, started, stopped and ended one by one,
//! and snapshots of what Slurm would show, made into tables anew each time. Candidates, features, scores and decisions are
//! the same, bit for bit; with whole GPUs alone, and with nodes whose GPUs are given in shares.

mod compare;
mod gangs;
mod late;
mod leases;
mod players;
mod same;
mod world;

use std::collections::BTreeMap;
use std::time::Instant;

use pleach_daemon::RoundSettings;
use pleach_daemon::fleet::{self, Fleet};
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::{Decider, Loaded};
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::slurm::shares::gpu_milli;
use pleach_daemon::snapshot::{
    HostSeen, JobSeen, NodeSeen, Phase, Rule, Share, SharedNode, Site, Snapshot, Terms, VERSION,
};
use pleach_dealing::{RoundDealer, Trust, deal_schema};
use pleach_network::{
    Contract, Layout, LearnedPolicy, NetworkConfig, Normaliser, Provenance, TrainedNetwork,
};
use pleach_scheduler::cluster::{JobState, NodeState, Slice};
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::observation::Spaces;
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::policy::{CandidateConfig, Needs, Policy, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta, TreePolicy};
use pleach_scheduler::{
    AllowedNodes, ClassId, Cluster, Decision, Estimate, ExternalId, JobId, NodeId, Resources, Submission,
    Tasks, TenantId, Time, heuristics,
};

use compare::*;
use gangs::*;
use players::*;
use world::*;
