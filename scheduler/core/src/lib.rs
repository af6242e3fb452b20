//! The deployable scheduler: what it can know, what it may do, and the loop that ties the two.
//!
//! A [`Cluster`] follows what happens, a [`Planner`] decides, and a journal records the decisions:
//!
//! ```
//! use pleach_scheduler::decision::Action;
//! use pleach_scheduler::{Capabilities, ClassId, Cluster, ClusterSpec, Estimate, ModelClass};
//! use pleach_scheduler::{Planner, PolicyPlanner, Provenance, Resources, Submission, TenantId, heuristics};
//!
//! // Two nodes of 8 GPUs in one rack.
//! let spec = ClusterSpec::uniform(2, 8, 2);
//! let mut cluster = Cluster::new(&spec, &[ModelClass::default()], Capabilities::default())?;
//! // Gang size and the user's time limit, s. The third job does not fit beside the first two; the fourth may slip in.
//! for (num_gpus, limit_s) in [(8, 3600.0), (4, 7200.0), (12, 600.0), (2, 1800.0)] {
//!     cluster.submit(Submission {
//!         tenant: TenantId(0),
//!         class: ClassId(0),
//!         num_gpus,
//!         estimate_s: Estimate { value: limit_s, provenance: Provenance::UserLimit },
//!         resources: Resources::WHOLE_GPU,
//!     })?;
//! }
//! PolicyPlanner::new(heuristics::by_name("easy")?).plan(&mut cluster)?;
//!
//! let mut decisions = Vec::new();
//! cluster.take_decisions(&mut decisions);
//! let starts = decisions.iter().filter(|decision| decision.action == Action::Start);
//! assert_eq!(starts.count(), 3);
//! assert_eq!((cluster.num_free(), cluster.num_pending()), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A rule of one's own is a [`Policy`], which scores candidates, or a [`Planner`], which plans a whole instant.
//! `examples/decide.rs` prints the decisions.
//!
//! # What is deliberately not here
//! No simulation, no gradients, no async: hidden truth is a type of the crate above, so it cannot leak into a policy.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod actions;
pub mod candidate;
pub mod cluster;
pub mod cluster_spec;
mod error;
mod estimate;
mod external_id;
pub mod features;
pub mod formula;
mod guards;
#[cfg(test)]
mod guards_tests;
pub mod heuristics;
pub mod history;
mod id_hash;
mod ids;
pub mod key_weight;
mod lens;
pub mod observation;
pub mod pass;
pub mod physics;
mod planner;
pub mod policy;
pub mod portable_math;
mod rows;
pub mod settings;
pub mod tree;
mod unopposed;
mod watched;
mod wide_gangs;

pub use actions::{ActionKind, ActionSet};
pub use cluster::decision::Decision;
pub use cluster::{Capabilities, Cluster, Submission, decision, record};
pub use cluster_spec::{AllowedNodes, ClusterSpec, ModelClass, Resources, Tasks};
pub use error::PolicyError;
pub use estimate::{Estimate, Provenance};
pub use external_id::ExternalId;
pub use features::FeatureSchema;
pub use formula::FormulaPolicy;
pub use guards::Guards;
pub use id_hash::{IdHash, IdHasher};
pub use ids::{ClassId, GpuTypeId, JobId, NodeId, RackId, TenantId, Time};
pub use lens::{Lens, LensSet};
pub use planner::{JobLabels, Planner, PolicyPlanner};
/// The name that some rooms still have for it.
pub use pleach_problem::Problem as ConfigError;
pub use pleach_problem::{self as problem, Family, Place, Problem};
pub use policy::{DecisionPoint, Policy};
pub use rows::{Rows, Scorer};
pub use tree::TreePolicy;
pub use watched::Watched;
pub use wide_gangs::WideGangs;
