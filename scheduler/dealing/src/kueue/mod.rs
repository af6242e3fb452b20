//! The policy `kueue`: what a site's own Kueue admits, by its own objects, and what kube-scheduler then makes of the pods.
//!
//! A [`State`] is all of Kueue without a clock: ClusterQueues whose heads are tried in cycles, quotas of flavours in cohorts, and
//! preemption of workloads. After admission pods go to the policy `kubernetes`: quota is no place. A simulator gives the
//! namespace (the tenant), the LocalQueue (the partition) and the priority class (the quality of service) of each job by
//! `Planner::read_labels`.
//!
//! # Source
//! Kueue 0.17.0, recorded with all its cycles, and its sources. Each rule names its own.
//!
//! # What is deliberately not here
//! Cohorts below cohorts: they share one pool. Topology, admission checks, partial admission, elastic workloads, fair sharing of admissions within a queue, resources other
//! than GPUs, CPU and memory, `stopPolicy`, namespace selectors.

mod assign;
mod config;
mod planner;
mod quota;
mod state;
mod victims;
mod workload;

pub use config::{
    ClusterQueue, Cohort, Fair, Flavor, FlavorQuotas, Fungibility, KueueConfig, LocalQueue, Policy,
    Preemption, ResourceGroup, ResourceQuota, Strategy, WhileBorrowing,
};
pub use planner::Kueue;
pub use state::State;
pub use workload::{Outcome, Workload};
