//! What is in a workload and what its cluster makes of it: the analyses of the Philly study (Jeon et al., USENIX ATC 2019)
//! for any list or generator.
//!
//! An [`Inspection`] is figures only; [`tables`] shows them in a terminal, [`page`] in one HTML page, and its serialised form is
//! the JSON. A figure that would be no number (an average over nothing, a load over no time) is none, shown as `-`.

pub(crate) mod arrivals;
pub(crate) mod cluster;
pub(crate) mod load;
pub(crate) mod outcomes;
pub mod page;
mod plots;
pub mod simulated;
pub(crate) mod sizes;
pub(crate) mod spread;
pub mod tables;
#[cfg(test)]
mod tests;

use pleach_env::workload::Workload;
use serde::Serialize;

use arrivals::Arrivals;
use cluster::ClusterFigures;
use load::Load;
use outcomes::{OutcomeRow, outcomes};
use simulated::Simulated;
use sizes::Sizes;

/// All figures of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Version of the JSON.
    pub schema: u32,
    /// The workload.
    pub name: String,
    /// Nodes, GPUs, tenants.
    pub cluster: ClusterFigures,
    /// Gangs and run times.
    pub sizes: Sizes,
    /// How jobs arrive.
    pub arrivals: Arrivals,
    /// How much work comes, and from which tenants and users.
    pub load: Load,
    /// How jobs ended in the source.
    pub outcomes: Vec<OutcomeRow>,
    /// What a policy made of it.
    pub simulated: Option<Simulated>,
}

impl Inspection {
    /// Everything that needs no simulation.
    #[must_use]
    pub fn of(workload: &Workload) -> Inspection {
        Inspection {
            schema: 1,
            name: workload.name.clone(),
            cluster: ClusterFigures::of(workload),
            sizes: Sizes::of(workload),
            arrivals: Arrivals::of(workload),
            load: Load::of(workload),
            outcomes: outcomes(workload),
            simulated: None,
        }
    }
}
