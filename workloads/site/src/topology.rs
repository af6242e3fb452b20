//! Where a node stands in the network: the nodes with which it shares the fast one.

/// Labels that name it, the smallest network first.
///
/// # Source
/// NVIDIA's GPU feature discovery (`gpu.clique`: an NVLink domain); the reference of Topograph's labels, of its version 1 and of those
/// before; EKS (layer 3 is the nearest), GKE (a sub-block is a rack), the well-known labels of Kubernetes.
const RACKS: [&str; 9] = [
    "nvidia.com/gpu.clique",
    "accelerator.topograph.run/domain",
    "network.topology.nvidia.com/accelerator",
    "fabric.topograph.run/tier-0",
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/block",
    "topology.k8s.aws/network-node-layer-3",
    "cloud.google.com/gce-topology-subblock",
    "topology.kubernetes.io/zone",
];

/// The rack of a node with these labels; none where they do not tell.
#[must_use]
pub fn rack<'a>(label: &dyn Fn(&str) -> Option<&'a str>) -> Option<&'a str> {
    let named = |name: &&str| label(name).filter(|text| !text.is_empty());
    RACKS.iter().find_map(named)
}

#[cfg(test)]
mod tests {
    use super::rack;

    #[test]
    fn the_smallest_network_that_is_named_counts() {
        let of = |labels: &[(&str, &'static str)]| {
            let label = |name: &str| labels.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
            rack(&label)
        };
        let zone = ("topology.kubernetes.io/zone", "a");
        assert_eq!(of(&[zone]), Some("a"));
        assert_eq!(
            of(&[zone, ("network.topology.nvidia.com/leaf", "s1")]),
            Some("s1")
        );
        assert_eq!(of(&[zone, ("nvidia.com/gpu.clique", "")]), Some("a"));
        assert_eq!(of(&[("kubernetes.io/hostname", "n1")]), None);
    }
}
