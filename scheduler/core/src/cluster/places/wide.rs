//! Where gangs go that no rack holds, in a cluster whose links tell racks and pods apart: as few of both as can be.

use std::cmp::Reverse;

use crate::cluster::Cluster;
use crate::cluster::tables::Slice;
use crate::ids::{GpuTypeId, RackId};

impl Cluster {
    /// Writes the placement of a gang that fits on the type but into no rack: in the pod that holds it with the fewest GPUs to
    /// spare, else pod after pod from the one with most free; there in the racks with most free, and for the last part in the
    /// rack that holds it with the fewest to spare. Ties go to the lowest.
    pub(in crate::cluster) fn place_over_racks(&self, kind: GpuTypeId, num_gpus: u32, out: &mut Vec<Slice>) {
        let mut racks: Vec<(u32, u32, u32)> = Vec::new();
        for (id, rack) in self.places.racks.iter().enumerate() {
            if rack.gpu_type == kind && rack.num_free > 0 {
                racks.push((self.pod_of(id as u32), rack.num_free, id as u32));
            }
        }
        // Racks are in the order of their pods.
        let pods: Vec<(u32, u32)> = racks
            .chunk_by(|one, other| one.0 == other.0)
            .map(|pod| (pod[0].0, pod.iter().map(|rack| rack.1).sum()))
            .collect();
        let holds = pods.iter().filter(|(_, free)| *free >= num_gpus);
        let one = holds.min_by_key(|(pod, free)| (*free, *pod)).map(|(pod, _)| *pod);
        let free_of = |pod: u32| {
            let at = pods.partition_point(|(other, _)| *other < pod);
            pods[at].1
        };
        racks.retain(|rack| one.is_none_or(|pod| rack.0 == pod));
        racks.sort_unstable_by_key(|&(pod, free, id)| (Reverse(free_of(pod)), pod, Reverse(free), id));
        let mut rest = num_gpus;
        while let Some(&(first_pod, ..)) = racks.first() {
            // Of the next pod's racks the last one that holds what is left, else its first.
            let here = racks.iter().take_while(|(pod, ..)| *pod == first_pod);
            let enough = here.take_while(|(_, free, _)| *free >= rest).enumerate();
            let at = enough
                .min_by_key(|(_, (_, free, id))| (*free, *id))
                .map_or(0, |(at, _)| at);
            let (_, _, id) = racks.remove(at);
            rest -= self.fill_rack(kind, RackId(id), rest, out);
            if rest == 0 {
                return;
            }
        }
        debug_assert_eq!(rest, 0, "the type was checked to hold the gang");
    }

    /// Takes up to so many free GPUs of a rack, its emptiest nodes first; how many it took.
    pub(in crate::cluster) fn fill_rack(
        &self,
        kind: GpuTypeId,
        rack: RackId,
        wanted: u32,
        out: &mut Vec<Slice>,
    ) -> u32 {
        let rack = &self.places.racks[rack.index()];
        let nodes = rack.first_node.index()..(rack.first_node.0 + rack.num_nodes) as usize;
        let mut rest = wanted;
        for free in (1..=self.places.free.node_gpus_max[kind.index()]).rev() {
            for node in nodes.clone() {
                if rest > 0 && self.places.nodes[node].num_free() == free {
                    rest -= self.push_slice(crate::ids::NodeId(node as u32), rest, out);
                }
            }
        }
        wanted - rest
    }

    fn pod_of(&self, rack: u32) -> u32 {
        let per_pod = self
            .places
            .links
            .as_ref()
            .map_or(0, |links| links.fabric.between.racks_per_pod);
        rack.checked_div(per_pod).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::Template;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::ids::NodeId;
    use crate::physics::links::Fabric;

    /// Racks of two nodes of four GPUs, two racks a pod, with so many GPUs taken of each node.
    fn cluster(taken: &[u32]) -> Cluster {
        let mut spec = ClusterSpec::uniform(taken.len() as u32, 4, 2);
        let mut fabric = Fabric::from_name("gavel").unwrap();
        fabric.between.racks_per_pod = 2;
        spec.fabric = Some(fabric);
        let mut cluster = cluster_of(&spec);
        for (node, num) in (0..).zip(taken) {
            if *num > 0 {
                let id = submit(&mut cluster, *num, 100.0);
                let gpus = (1 << num) - 1;
                let slice = Slice {
                    node: NodeId(node),
                    gpus,
                };
                cluster.start(id, [slice].into_iter().collect());
            }
        }
        cluster
    }

    fn place(cluster: &Cluster, num_gpus: u32) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        assert!(cluster.place(Template::Fastest, GpuTypeId(0), num_gpus, &mut out));
        out.iter().map(|slice| (slice.node.0, slice.num_gpus())).collect()
    }

    #[test]
    fn a_wide_gang_stays_in_a_pod_and_ends_in_the_rack_that_it_fills() {
        // Free: rack 0 has 8, rack 1 has 4, racks 2 and 3 have 8 each, rack 4 has 8, rack 5 has 3.
        let cluster = cluster(&[0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 1]);
        // Pod 2 has 11 free, the fewest that hold 10; then 2 of rack 5.
        assert_eq!(place(&cluster, 10), [(8, 4), (9, 4), (11, 2)]);
        // Pod 0 has 12.
        assert_eq!(place(&cluster, 12), [(0, 4), (1, 4), (3, 4)]);
        assert_eq!(place(&cluster, 16), [(4, 4), (5, 4), (6, 4), (7, 4)]);
        // No pod holds 20: all of pod 1, then of pod 0 the rack that 4 fill.
        let all = place(&cluster, 20);
        assert_eq!(all[4..], [(3, 4)]);
        assert_eq!(place(&cluster, 39).iter().map(|slice| slice.1).sum::<u32>(), 39);
    }

    proptest! {
        #[test]
        fn a_wide_gang_uses_as_few_racks_as_its_pod_or_the_cluster_allows(
            taken in proptest::collection::vec(0_u32..5, 12), num_gpus in 9_u32..48,
        ) {
            let cluster = cluster(&taken);
            prop_assume!(num_gpus <= cluster.num_free());
            let mut out = Vec::new();
            prop_assert!(cluster.place(Template::Fastest, GpuTypeId(0), num_gpus, &mut out));
            prop_assert_eq!(out.iter().map(|slice| slice.num_gpus()).sum::<u32>(), num_gpus);
            let free: Vec<u32> = taken.chunks(2).map(|rack| 8 - rack.iter().sum::<u32>()).collect();
            let fewest = |racks: &[u32]| {
                let mut racks = racks.to_vec();
                racks.sort_unstable_by_key(|free| Reverse(*free));
                let mut sum = 0;
                let enough = racks.iter().position(|free| {
                    sum += free;
                    sum >= num_gpus
                });
                enough.map(|at| at as u32 + 1)
            };
            let in_a_pod: Vec<u32> = free.chunks(2).filter_map(fewest).collect();
            let num_racks = cluster.num_racks(&out);
            if in_a_pod.is_empty() {
                // As few pods as can be, which may take a rack more than the fewest.
                prop_assert!(num_racks >= fewest(&free).unwrap());
                let mut pods: Vec<u32> = free.chunks(2).map(|pod| pod.iter().sum()).collect();
                pods.sort_unstable_by_key(|free| Reverse(*free));
                let mut used: Vec<u32> = out.iter().map(|slice| slice.node.0 / 4).collect();
                used.sort_unstable();
                used.dedup();
                let fewest_pods = fewest(&pods).unwrap();
                prop_assert_eq!(used.len() as u32, fewest_pods);
            } else {
                prop_assert!(in_a_pod.contains(&num_racks), "{} of {:?}", num_racks, in_a_pod);
            }
        }
    }
}
