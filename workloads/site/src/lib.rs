//! One truth about what a site's records mean. Of Kubernetes: quantities, what a pod holds, which pods start together,
//! what holds them until then. Of Slurm: what a job had, its nodes, limits, ids and states. And what was promised of a policy, and forecast of starts.
//!
//! Importers of records and the programs that drive a live cluster read the same things through different types and commands. All
//! ask here, so that a policy is trained on the jobs that it will meet.
//!
//! # What is deliberately not here
//! Network, clocks, files, the simulator, and the API's own types: callers show what they have read as texts and plain views.

mod gang;
pub mod names;
pub mod promise;
pub mod quantity;
pub mod slurm;
pub mod starts;
mod suspend;
mod topology;

pub use gang::{Gang, Groups, Job, Key, ParallelJobs, Pod, SetPart};
pub use suspend::{Held, Maker};
pub use topology::rack;

/// What a pod holds of something: its containers at once, or an init container beside the sidecars that began before it. Of each
/// init container: whether it is a sidecar (`restartPolicy: Always`), and what it asks for.
///
/// # Source
/// "Resource sharing within containers" of the Kubernetes page on sidecar containers.
#[must_use]
pub fn held(inits: impl IntoIterator<Item = (bool, u64)>, containers: impl IntoIterator<Item = u64>) -> u64 {
    let (mut sidecars, mut most) = (0_u64, 0_u64);
    for (is_sidecar, asked) in inits {
        let beside = sidecars.saturating_add(asked);
        most = most.max(beside);
        if is_sidecar {
            sidecars = beside;
        }
    }
    most.max(containers.into_iter().fold(sidecars, u64::saturating_add))
}

/// The type of what a resource counts, where that is slices of GPUs of one kind (MIG), each a GPU of that type: `mig-1g.10gb` of
/// `nvidia.com/mig-1g.10gb`.
#[must_use]
pub fn slices(resource: &str) -> Option<&str> {
    let (_, name) = resource.split_once('/')?;
    name.starts_with("mig-").then_some(name)
}

/// The priority of a job whose pods have this one; none: 0. What Kubernetes keeps for its own pods counts as the highest of users.
///
/// # Source
/// `HighestUserDefinablePriority` of Kubernetes' `pkg/apis/scheduling`: a thousand million.
#[must_use]
pub fn priority(of_pods: Option<i32>) -> i32 {
    of_pods.unwrap_or(0).min(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::held;

    #[test]
    fn a_pod_holds_its_containers_with_sidecars_or_the_largest_init_container() {
        assert_eq!(held([], [1, 2]), 3);
        assert_eq!(
            held([(false, 2)], [1]),
            2,
            "init containers end before the others"
        );
        assert_eq!(held([(true, 1)], [1]), 2, "sidecars run beside them");
        assert_eq!(
            held([(true, 1), (false, 4), (true, 1)], [2]),
            5,
            "beside the first sidecar alone"
        );
        assert_eq!(held([(true, u64::MAX)], [1]), u64::MAX);
        assert_eq!(held([], []), 0);
    }
}
