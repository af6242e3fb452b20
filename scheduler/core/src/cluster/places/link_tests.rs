//! What links cost gangs in the cluster: by hand, and against a count from scratch over random histories.

use proptest::prelude::*;

use crate::cluster::*;
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, GpuTypeId, NodeId, TenantId};
use crate::physics::links::{Between, Fabric, Inside, Spread, StepCost};

/// No latency and no root: PCIe of 10 GB/s with islands at 5, one NIC of 2 GB/s a node.
fn fabric() -> Fabric {
    Fabric {
        inside: Inside {
            ring_gb_per_s: 10.0,
            switch: None,
            islands_gb_per_s: Some(5.0),
            nodes_per_domain: 1,
            latency_us: 0.0,
            latency_per_gpu_us: 0.0,
            root_us: 0.0,
            root_per_gpu_us: 0.0,
        },
        between: Between {
            nics_per_node: 1,
            nic_gb_per_s: 2.0,
            ceiling_gb_per_s: None,
            latency_us: 0.0,
            latency_per_domain_us: 0.0,
            root_us: 0.0,
            rack_oversubscription: 1.0,
            racks_per_pod: 0,
            pod_oversubscription: 1.0,
            tuned: 1.0,
            hash_loss: 0.0,
        },
    }
}

/// 1 s of compute and 1 GB of gradients, no overlap: a step takes 1 s plus the all-reduce.
fn class() -> ModelClass {
    ModelClass {
        step: Some(StepCost {
            compute_s: 1.0,
            gradient_bytes: 1e9,
            gamma: 1.0,
        }),
        ..ModelClass::default()
    }
}

fn cluster(spec: &ClusterSpec) -> Cluster {
    Cluster::new(spec, &[class()], Capabilities::DEFAULT).unwrap()
}

fn submit(cluster: &mut Cluster, num_gpus: u32) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: 100.0,
            provenance: Provenance::Oracle,
        },
        resources: crate::cluster_spec::Resources::WHOLE_GPU,
    };
    cluster.submit(request).unwrap()
}

/// Starts a gang on GPUs of nodes.
fn start(cluster: &mut Cluster, slices: &[(u32, u64)]) -> JobId {
    let num_gpus = slices.iter().map(|(_, gpus)| gpus.count_ones()).sum();
    let id = submit(cluster, num_gpus);
    let slices = slices.iter().map(|(node, gpus)| Slice {
        node: NodeId(*node),
        gpus: *gpus,
    });
    cluster.start(id, slices.collect());
    cluster.check();
    id
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn with_a_fabric_the_links_say_what_a_loose_placement_costs() {
    let mut spec = ClusterSpec::uniform(4, 4, 2);
    spec.node_groups[0].nvlink_gpus = 2;
    spec.fabric = Some(Fabric {
        between: Between {
            hash_loss: 0.5,
            ..fabric().between
        },
        ..fabric()
    });
    let rate = |slices: &[(u32, u64)]| {
        let mut cluster = cluster(&spec);
        let id = start(&mut cluster, slices);
        cluster.job(id).rate
    };
    // Two GPUs send 2 (K - 1) / K = 1 GB each: 0.1 s in an island, 0.2 s over two, 1 / (0.92 x 2) s in a rack (a tree moves
    // 2 (K - 1) / K = 1 times the NIC), twice that beyond.
    close(rate(&[(0, 0b11)]), 1.0);
    close(rate(&[(0, 0b110)]), 1.1 / 1.2);
    close(rate(&[(0, 0b1), (1, 0b1)]), 1.1 / (1.0 + 1.0 / 1.84));
    close(rate(&[(0, 0b1), (2, 0b1)]), 1.1 / (1.0 + 1.0 / 0.92));
}

#[test]
fn two_gangs_that_share_a_spine_halve_it_and_get_it_back() {
    // Two racks of four nodes with one GPU and one NIC of 2 GB/s each; 4:1, so one NIC's worth leaves a rack.
    let mut spec = ClusterSpec::uniform(8, 1, 4);
    spec.fabric = Some(fabric());
    if let Some(fabric) = &mut spec.fabric {
        fabric.between.rack_oversubscription = 4.0;
    }
    let mut cluster = cluster(&spec);
    // Two nodes in two racks: all of a node's traffic leaves its rack, 1 NIC of 1. A tree: 1 GB / (0.92 x 2 GB/s).
    let first = start(&mut cluster, &[(0, 1), (4, 1)]);
    let alone_s = 1.0 / 1.84;
    close(cluster.job(first).rate, 1.0);
    cluster.advance(Time::from_secs_f64(10.0));
    // A second one wants as much: 2 NICs of 1, half for each.
    let waiting = submit(&mut cluster, 2);
    let slices = [1, 5].map(|node| Slice {
        node: NodeId(node),
        gpus: 1,
    });
    let offered = cluster.job_facts(waiting, &slices);
    cluster.withdraw(waiting);
    let second = start(&mut cluster, &[(1, 1), (5, 1)]);
    let among = (1.0 + alone_s) / (1.0 + 2.0 * alone_s);
    close(offered.rate, among);
    for id in [first, second] {
        close(cluster.job(id).rate, among);
        close(cluster.job(id).rate_alone, 1.0);
        // What it has is worth what it gets of it.
        let own = cluster.job(id).placement.clone();
        close(cluster.job_facts(id, &own).rate, among);
    }
    // 10 of 100 s are done; the rest takes longer by the same factor.
    let finish_s = cluster.job(first).expected_finish.as_secs_f64();
    assert!((finish_s - (10.0 + 90.0 / among)).abs() < 1e-5, "{finish_s}");
    // A gang that stays in a rack takes no part of its uplinks.
    let inside = start(&mut cluster, &[(2, 1), (3, 1)]);
    close(cluster.job(inside).rate, 1.0);
    close(cluster.job(first).rate, among);
    let mut rerated = Vec::new();
    cluster.take_rerated(&mut rerated);
    assert_eq!(rerated, [first]);
    cluster.advance(Time::from_secs_f64(20.0));
    cluster.finish(second);
    cluster.check();
    close(cluster.job(first).rate, 1.0);
    let finish_s = cluster.job(first).expected_finish.as_secs_f64();
    assert!(
        (finish_s - (20.0 + 90.0 - 10.0 * among)).abs() < 1e-5,
        "{finish_s}"
    );
}

#[test]
fn gangs_on_one_node_share_its_nics_unless_there_is_one_for_each_gpu() {
    let mut spec = ClusterSpec::uniform(2, 4, 2);
    for (nics, part) in [(1, 0.5), (2, 0.5), (4, 1.0)] {
        spec.fabric = Some(fabric());
        if let Some(fabric) = &mut spec.fabric {
            fabric.between.nics_per_node = nics;
        }
        let mut cluster = cluster(&spec);
        let first = start(&mut cluster, &[(0, 0b11), (1, 0b11)]);
        let alone = cluster.job(first).rate;
        // Four GPUs on two nodes: W = 1.5 GB, a tree 0.92 x 1.5 x NICs of 2 GB/s: 1.5 / (2.76 x NICs), but 0.93 x 10 GB/s at most.
        let reached = f64::from(nics.min(2));
        let sync_s = |share: f64| 1.5 / (2.76 * reached * share).min(9.3);
        // Tight: on one node, two islands: 1.5 GB at 10 GB/s.
        close(alone, 1.15 / (1.0 + sync_s(1.0)));
        let second = start(&mut cluster, &[(0, 0b1100), (1, 0b1100)]);
        for id in [first, second] {
            close(cluster.job(id).rate, 1.15 / (1.0 + sync_s(part)));
        }
    }
}

#[test]
fn pods_have_links_of_their_own_and_gangs_wider_than_a_rack_pay_for_leaving_one() {
    // Four racks of two nodes, two racks a pod; nothing is short below the core, which has a quarter: 1 NIC of 4.
    let mut spec = ClusterSpec::uniform(8, 1, 2);
    spec.fabric = Some(fabric());
    if let Some(fabric) = &mut spec.fabric {
        (fabric.between.racks_per_pod, fabric.between.pod_oversubscription) = (2, 4.0);
    }
    let mut cluster = cluster(&spec);
    // Four nodes in one pod are as tight as can be, though in two racks.
    let tight = start(&mut cluster, &[(0, 1), (1, 1), (2, 1), (3, 1)]);
    close(cluster.job(tight).rate, 1.0);
    cluster.finish(tight);
    // W = 1.5 GB at 0.97 x 2 GB/s. Two in each pod: 2 NICs x 2/3 of the neighbours are in the other, 1.333 of 1.
    let wide = start(&mut cluster, &[(0, 1), (1, 1), (4, 1), (5, 1)]);
    let sync_s = 1.5 / 1.94;
    let share = 1000.0 / 1333.0;
    close(cluster.job(wide).rate, (1.0 + sync_s) / (1.0 + sync_s / share));
}

#[test]
fn a_gang_wider_than_its_rack_is_held_to_full_racks_and_not_to_equal_parts() {
    // Racks of four nodes with one GPU and one NIC of 2 GB/s, 4:1: one NIC's worth leaves a rack. Five nodes are tightest as 4 + 1:
    // all four send 1/4 of what they send to the fifth, 1 NIC; it sends all to them, 1 NIC. W = 1.6 GB at 0.97 x 2 GB/s.
    let mut spec = ClusterSpec::uniform(8, 1, 4);
    spec.fabric = Some(fabric());
    if let Some(fabric) = &mut spec.fabric {
        fabric.between.rack_oversubscription = 4.0;
    }
    let rate = |spec: &ClusterSpec, nodes: &[u32]| {
        let mut cluster = cluster(spec);
        let slices: Vec<(u32, u64)> = nodes.iter().map(|node| (*node, 1)).collect();
        let id = start(&mut cluster, &slices);
        cluster.job(id).rate
    };
    let sync_s = 1.6 / 1.94;
    close(rate(&spec, &[0, 1, 2, 3, 4]), 1.0);
    // As 3 + 2: three want 3 x 2/4 and two 2 x 3/4, 1.5 NICs of 1.
    close(
        rate(&spec, &[0, 1, 2, 4, 5]),
        (1.0 + sync_s) / (1.0 + sync_s * 1.5),
    );
    // Racks of two, two a pod, 4:1 at the core: the same of pods.
    spec = ClusterSpec::uniform(8, 1, 2);
    spec.fabric = Some(fabric());
    if let Some(fabric) = &mut spec.fabric {
        (fabric.between.racks_per_pod, fabric.between.pod_oversubscription) = (2, 4.0);
    }
    close(rate(&spec, &[0, 1, 2, 3, 4]), 1.0);
    close(
        rate(&spec, &[0, 1, 2, 4, 5]),
        (1.0 + sync_s) / (1.0 + sync_s * 1.5),
    );
}

proptest! {
    #[test]
    fn on_an_empty_cluster_a_gang_of_whole_nodes_runs_at_its_best_where_it_is_placed_and_nowhere_faster_in_equal_parts(
        num_nodes in 1_u32..17, per_rack in 1_u32..6, racks_per_pod in 0_u32..3,
        rack_over in 1.0_f64..5.0, pod_over in 1.0_f64..9.0,
    ) {
        // The reference share is that of the place itself, worked out link by link: no placement is held to a slower one.
        let per_all = per_rack * racks_per_pod.max(1);
        let mut spec = ClusterSpec::uniform(20_u32.next_multiple_of(per_all), 4, per_rack);
        let mut links = fabric();
        links.inside.islands_gb_per_s = None;
        (links.between.nics_per_node, links.between.rack_oversubscription) = (4, rack_over);
        (links.between.racks_per_pod, links.between.pod_oversubscription) = (racks_per_pod, pod_over);
        spec.fabric = Some(links);
        let cluster = cluster(&spec);
        let mut placement = Vec::new();
        assert!(cluster.place(Template::Fastest, GpuTypeId(0), num_nodes * 4, &mut placement));
        let links = cluster.places.links.as_ref().unwrap();
        let gang = (num_nodes * 4, crate::cluster_spec::Tasks::ANY);
        let share = cluster.tightest_spread(links, 1, &placement, gang).share;
        let placed = cluster.lay_of(links, &placement).alone.share;
        // Wants are whole thousandths of a NIC, a hundredth of the smallest share.
        prop_assert!((placed / share - 1.0).abs() < 1e-2, "{share} {placed}");
    }
}

#[test]
fn a_domain_of_trays_counts_as_one_and_its_nics_add_up() {
    // Racks of four trays with two GPUs and two NICs, two trays a domain.
    let mut spec = ClusterSpec::uniform(8, 2, 4);
    let mut trays = fabric();
    (trays.inside.nodes_per_domain, trays.inside.islands_gb_per_s) = (2, None);
    trays.between.nics_per_node = 2;
    spec.fabric = Some(trays);
    let mut cluster = cluster(&spec);
    let one = start(&mut cluster, &[(1, 0b11), (0, 0b11)]);
    close(cluster.job(one).rate, 1.0);
    // Half a domain in two domains: W = 1.5 GB at 0.97 x 4 GB/s, against 10 GB/s in one.
    let two = start(&mut cluster, &[(4, 0b11), (2, 0b11)]);
    close(cluster.job(two).rate, 1.15 / (1.0 + 1.5 / 3.88));
}

/// What a gang gets of its links, from the definition: every link is looked at, every gang that crosses it counted.
fn rate_from_scratch(cluster: &Cluster, spec: &ClusterSpec, id: JobId) -> f64 {
    let fabric = spec.fabric.unwrap();
    let group = &spec.node_groups[0];
    let (nics, per_rack) = (fabric.between.nics_per_node, group.nodes_per_rack);
    let per_pod = per_rack * fabric.between.racks_per_pod.max(1);
    let num_nodes = group.count;
    let mut spans = vec![(1, 1.0), (per_rack, fabric.between.rack_oversubscription)];
    if fabric.between.racks_per_pod > 0 {
        spans.push((per_pod, fabric.between.pod_oversubscription));
    }
    // What of its NICs a gang wants to send out of a run of nodes, in thousandths.
    let wants = |job: JobId, from: u32, to: u32| {
        let placement = &cluster.job(job).placement;
        let all = placement.len() as u64;
        let inside = placement
            .iter()
            .filter(|slice| (from..to).contains(&slice.node.0));
        let (mut here, mut sum) = (0, 0);
        for slice in inside {
            here += 1;
            sum += u64::from(slice.num_gpus().min(nics)) * 1000;
        }
        match all {
            0 | 1 => 0,
            _ if to - from == 1 => sum,
            _ => sum * (all - here) / (all - 1),
        }
    };
    let share_among = |jobs: &[JobId]| {
        let mut share = 1.0_f64;
        for &(length, over) in &spans {
            for from in (0..num_nodes).step_by(length as usize) {
                let to = (from + length).min(num_nodes);
                if wants(id, from, to) == 0 {
                    continue;
                }
                let has = (f64::from((to - from) * nics * 1000) / over).max(1.0).floor();
                let wanted: u64 = jobs.iter().map(|job| wants(*job, from, to)).sum();
                if wanted as f64 > has {
                    share = share.min(has / wanted as f64);
                }
            }
        }
        share
    };
    let running: Vec<JobId> = (0..cluster.jobs.rows.len() as u32)
        .map(JobId)
        .filter(|job| cluster.job(*job).state == JobState::Running)
        .collect();
    let job = cluster.job(id);
    let racks: std::collections::BTreeSet<u32> = job
        .placement
        .iter()
        .map(|slice| slice.node.0 / per_rack)
        .collect();
    let least = |most: u32| {
        let each = job.placement.iter().map(|slice| slice.num_gpus().min(most));
        each.min().unwrap_or(1)
    };
    let spread = |share| Spread {
        num_gpus: job.num_held,
        num_domains: job.placement.len() as u32,
        domain_gpus_min: least(u32::MAX),
        domain_nics_min: least(nics),
        is_one_island: true,
        is_one_rack: racks.len() == 1,
        share,
    };
    let step = class().step.unwrap();
    let alone = fabric.step_s(step, spread(share_among(&[id])));
    job.rate_alone * (alone / fabric.step_s(step, spread(share_among(&running)))).max(1e-3)
}

proptest! {
    #[test]
    fn rates_are_those_of_a_count_from_scratch_after_every_event(
        nics in 1_u32..4, per_rack in 1_u32..4, racks_per_pod in 0_u32..3,
        rack_over in 1.0_f64..5.0, pod_over in 1.0_f64..9.0, hash_loss in 0.0_f64..0.3,
        events in proptest::collection::vec((0_u32..4, any::<u64>()), 1..40),
    ) {
        let mut spec = ClusterSpec::uniform(8, 4, per_rack);
        let mut links = fabric();
        links.inside.islands_gb_per_s = None;
        links.between.nics_per_node = nics;
        links.between.rack_oversubscription = rack_over;
        (links.between.racks_per_pod, links.between.pod_oversubscription) = (racks_per_pod, pod_over);
        links.between.hash_loss = hash_loss;
        spec.fabric = Some(links);
        let mut cluster = cluster(&spec);
        let mut running: Vec<JobId> = Vec::new();
        for (kind, mut draw) in events {
            cluster.advance(cluster.now + Time::from_secs_f64(1.0));
            let mut next = |below: u64| {
                draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (draw >> 33) % below
            };
            if kind < 3 {
                // Some free GPUs of some nodes.
                let mut slices = Vec::new();
                for node in 0..8 {
                    let free = cluster.nodes()[node as usize].free;
                    let gpus = free & next(16);
                    if gpus != 0 && next(3) == 0 {
                        slices.push((node, gpus));
                    }
                }
                if !slices.is_empty() {
                    running.push(start(&mut cluster, &slices));
                }
            } else if !running.is_empty() {
                let id = running.swap_remove(next(running.len() as u64) as usize);
                match next(2) {
                    0 => cluster.finish(id),
                    _ => cluster.preempt(id),
                }
                cluster.check();
            }
            for id in &running {
                let (found, expected) = (cluster.job(*id).rate, rate_from_scratch(&cluster, &spec, *id));
                prop_assert!((found / expected - 1.0).abs() < 1e-9, "{:?}: {} {}", id, found, expected);
            }
        }
        // The records of its jobs keep the links as they are.
        let restored = Cluster::restore(&cluster.snapshot()).unwrap();
        restored.check();
    }
}
