//! The door of programs that simulate: what every door opens, what plans in the simulator alone, and what the program registered.

use std::path::Path;

use pleach_scheduler::Problem;

pub use pleach_policies::{
    BEST_CHECKPOINT, Door, FORMULA_FILE, OwnPolicy, PolicySpec, RIVALS, Rival, TREE_FILE, USE_THE_FILE,
    label_and_place, own_planners, own_policies, register, requirement_flags,
};

use crate::{kube_scheduler, kueue_objects, site_policy};

/// Opens every policy by name, file or folder, a site's `slurm.conf`, Kueue objects or `KubeSchedulerConfiguration` among them:
/// for evaluations, sweeps, explanations and Python alike.
pub const DOOR: Door = Door::SIMULATOR.with_files(of_site);

/// The policy of a file in which a site sets its own scheduler.
fn of_site(path: &Path) -> Option<Result<PolicySpec, Problem>> {
    let kueue = || kueue_objects::open(path);
    site_policy::open(path)
        .or_else(kueue)
        .or_else(|| kube_scheduler::open(path))
}
