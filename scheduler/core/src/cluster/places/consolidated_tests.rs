//! Consolidated placement, worked by hand, against brute force, and under every heuristic.

use proptest::prelude::*;

use crate::cluster::tests::submit;
use crate::cluster::{Capabilities, Cluster, JobState, Slice, Template};
use crate::cluster_spec::{ClusterSpec, ModelClass};
use crate::heuristics::tests::world::{cluster_with, events, happen, pending, watched_pass};
use crate::heuristics::{by_name, names};
use crate::ids::{GpuTypeId, NodeId};

const CONSOLIDATED: Capabilities = Capabilities {
    consolidated: true,
    ..Capabilities::DEFAULT
};

/// Nodes of 8 GPUs in racks of two, of which the first are busy in each as given.
fn busy(num_busy: &[u32]) -> Cluster {
    let spec = ClusterSpec::uniform(num_busy.len() as u32, 8, 2);
    let mut cluster = Cluster::new(&spec, &[ModelClass::default()], CONSOLIDATED).unwrap();
    for (node, num) in num_busy.iter().enumerate().filter(|(_, num)| **num > 0) {
        let slice = Slice {
            node: NodeId(node as u32),
            gpus: (1 << num) - 1,
        };
        let job = submit(&mut cluster, *num, 100.0);
        cluster.start(job, [slice].into_iter().collect());
    }
    cluster
}

fn placed(cluster: &Cluster, num_gpus: u32) -> Option<Vec<(u32, u32)>> {
    let mut out = Vec::new();
    let placed = cluster.place(Template::Fragments, GpuTypeId(0), num_gpus, &mut out);
    placed.then(|| out.iter().map(|slice| (slice.node.0, slice.num_gpus())).collect())
}

#[test]
fn a_gang_takes_one_node_or_whole_ones_and_a_rest_and_otherwise_waits() {
    // Free: 2, 3, 8, 8.
    let cluster = busy(&[6, 5, 0, 0]);
    assert_eq!(
        placed(&cluster, 3),
        Some(vec![(1, 3)]),
        "the fullest node that holds it"
    );
    assert_eq!(placed(&cluster, 5), Some(vec![(2, 5)]));
    assert_eq!(placed(&cluster, 16), Some(vec![(2, 8), (3, 8)]));
    assert_eq!(placed(&cluster, 19), Some(vec![(2, 8), (3, 8), (1, 3)]));
    assert_eq!(
        placed(&cluster, 20),
        None,
        "21 GPUs are free, but no node has 4 beside the whole ones"
    );
    // Free: 7, 5, 1: 12 GPUs fit on two nodes, but none of them is whole.
    let cluster = busy(&[1, 3, 7]);
    assert_eq!(placed(&cluster, 12), None);
    assert_eq!(placed(&cluster, 8), None);
    assert_eq!(placed(&cluster, 6), Some(vec![(0, 6)]));
}

#[test]
fn whole_nodes_are_found_across_racks_where_no_rack_has_them() {
    // Free: 8, 0 | 8, 4: the second rack holds 12 GPUs, and 16 need both racks.
    let cluster = busy(&[0, 8, 0, 4]);
    assert_eq!(placed(&cluster, 12), Some(vec![(2, 8), (3, 4)]));
    assert_eq!(placed(&cluster, 16), Some(vec![(0, 8), (2, 8)]));
}

#[test]
fn a_gang_that_no_whole_nodes_can_ever_hold_is_refused() {
    // Nodes of 8, 4 and 4: at most 8 + 4.
    let mut spec = ClusterSpec::uniform(1, 8, 1);
    let mut small = spec.node_groups[0].clone();
    (small.count, small.gpus_per_node) = (2, 4);
    spec.node_groups.push(small);
    let mut cluster = Cluster::new(&spec, &[ModelClass::default()], CONSOLIDATED).unwrap();
    let fitting = submit(&mut cluster, 12, 10.0);
    let mut request = cluster.job(fitting).request;
    request.num_gpus = 13;
    assert!(!cluster.could_run(&request));
    let text = cluster.submit(request).unwrap_err().to_string();
    assert!(text.contains("1 to 12"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_gang_fits_exactly_where_brute_force_finds_whole_nodes_and_a_rest(
        num_busy in proptest::collection::vec(0_u32..=8, 1..7),
        num_gpus in 1_u32..40,
    ) {
        let cluster = busy(&num_busy);
        let mut free: Vec<u32> = num_busy.iter().map(|num| 8 - num).collect();
        let (num_whole, rest) = (num_gpus as usize / 8, num_gpus % 8);
        free.sort_unstable();
        free.reverse();
        let whole = free.len() >= num_whole && free[..num_whole].iter().all(|num| *num == 8);
        let fits = whole && (rest == 0 || free.get(num_whole).is_some_and(|num| *num >= rest));
        let found = placed(&cluster, num_gpus);
        prop_assert_eq!(found.is_some(), fits);
        if let Some(found) = found {
            prop_assert_eq!(found.iter().map(|(_, num)| num).sum::<u32>(), num_gpus);
            prop_assert!(found.iter().filter(|(_, num)| *num < 8).count() <= 1);
        }
    }

    #[test]
    fn every_heuristic_places_gangs_consolidated_or_not_at_all(
        mut cluster in cluster_with(2, any::<bool>().boxed(), CONSOLIDATED),
        events in events(40),
        name in proptest::sample::select(names()),
    ) {
        let mut policy = by_name(name).unwrap();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, policy.as_mut(), |_, _| ());
            cluster.check();
            let running = cluster.jobs().iter().filter(|job| job.state == JobState::Running);
            for job in running.filter(|job| job.request.resources.tasks.is_any()) {
                prop_assert!(cluster.is_consolidated(&job.placement), "{}: {:?}", name, job.placement);
            }
            if ["fifo-skip", "sjf", "gpu-time", "packing", "fair-share"].contains(&name) {
                for job in pending(&cluster) {
                    prop_assert_eq!(cluster.fitting_types(cluster.demand(job)), 0, "{:?} fits", job);
                }
            }
        }
    }
}
