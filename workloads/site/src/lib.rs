//! One truth about a site's Kubernetes: quantities, what a pod holds, which pods start together.
//!
//! The importer of recorded pods and the controller that holds live ones read the same objects through different types. Both ask
//! here, so that a policy is trained on the jobs that it will meet.
//!
//! # What is deliberately not here
//! Network, clocks, files, the simulator, and the API's own types: callers show what they have read as plain views.

mod gang;
pub mod names;
pub mod quantity;

pub use gang::{Gang, Groups, Job, Key, ParallelJobs, Pod, SetPart};

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
