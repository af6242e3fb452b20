//! Published cluster schedulers that plan a whole instant or a whole round: rivals in comparisons, teachers, and fallbacks of a
//! daemon.
//!
//! ```
//! use pleach_scheduler::{Capabilities, ClassId, Cluster, ClusterSpec, Estimate, ModelClass, Provenance};
//! use pleach_scheduler::{Resources, Submission, TenantId};
//!
//! let tiresias = pleach_baselines::find("tiresias").expect("it is one of the names");
//! let capabilities = Capabilities::default().with_actions(tiresias.requirements);
//! let mut cluster = Cluster::new(&ClusterSpec::uniform(2, 4, 2), &[ModelClass::default()], capabilities)?;
//! let job = cluster.submit(Submission {
//!     tenant: TenantId(0),
//!     class: ClassId(0),
//!     num_gpus: 3,
//!     estimate_s: Estimate { value: 3600.0, provenance: Provenance::Predicted },
//!     resources: Resources::WHOLE_GPU,
//! })?;
//! let mut planner = pleach_baselines::make("tiresias", &serde_json::json!({"quantum_gpu_s": 3600.0}))?;
//! planner.plan(&mut cluster)?; // `Cluster::take_decisions` says what it decided
//! assert_eq!(cluster.running().collect::<Vec<_>>(), [job]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`entries`] lists the planners by name. There is one folder for each line of work and one file for each system; a file cites
//! the paper, lists where we deviate, and keeps its constants in a configuration with the published defaults. Systems that
//! only choose among candidates are policies and live in [`pleach_scheduler::heuristics`].
//!
//! # What is deliberately not here
//! Simulation: a planner knows what a scheduler knows. Known bugs of released code: where a comparison needs them, the presets
//! of other simulators reproduce them (tests of `pleach-reproduce`). Learning.
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

mod allox;
#[cfg(test)]
mod dealing_tests;
mod elastic;
pub mod gavel;
mod hadar;
pub mod packing;
mod prediction;
pub mod production;
mod registry;
pub mod rounds;
mod service;
mod shared;
pub mod sharing;
pub mod synergy;
// One file for the tests of both crates: a feature for it would compile `dealing` once more wherever no tests are built.
#[cfg(test)]
use pleach_dealing::starts;
#[cfg(test)]
#[path = "../../../scheduler/dealing/src/tests/test_clusters.rs"]
mod test_clusters;

pub use pleach_dealing as dealing;
pub use pleach_dealing::Entry;
pub use registry::{FAMILIES, entries, find, make, names};
pub use shared::linear_program;
