//! FGD against a hand-worked cluster, and against the slow way: start the task everywhere and count all fragments anew.

use pleach_scheduler::cluster::{Capabilities, Cluster, Placement, Slice, Submission};
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::{ClassId, Estimate, JobId, NodeId, Planner, Provenance, TenantId};
use proptest::prelude::*;

use super::*;

/// (GPUs, thousandths of each, cores per GPU)
type Task = (u32, u16, f64);

fn cluster(num_nodes: u32, gpus_per_node: u32, cpu_cores: f64) -> Cluster {
    let mut spec = ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes);
    (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (cpu_cores, 64.0);
    Cluster::new(&spec, &[ModelClass::default()], Capabilities::DEFAULT).unwrap()
}

fn submit(cluster: &mut Cluster, (num_gpus, gpu_milli, cpu_cores): Task) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: 1e3,
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            gpu_milli,
            cpu_cores,
            ..Resources::WHOLE_GPU
        },
    };
    cluster.submit(request).unwrap()
}

fn fgd() -> Fgd {
    Fgd::new(FgdConfig {
        covers: 1.0,
        relearn: 0.0,
        ..FgdConfig::default()
    })
    .unwrap()
}

fn place(cluster: &Cluster, id: JobId) -> (u32, u64) {
    let slice = cluster.job(id).placement[0];
    (slice.node.0, slice.gpus)
}

#[test]
fn a_part_goes_where_it_takes_least_from_whole_gpu_tasks() {
    // Two nodes of 2 GPUs. Most tasks want whole GPUs, so parts share one: 0.5 + 0.5 on one GPU. A third goes to a fresh one.
    let mut cluster = cluster(2, 2, 0.0);
    let mut planner = fgd();
    let tasks: Vec<JobId> = [(1, 500, 0.0), (1, 500, 0.0), (2, 1000, 0.0), (1, 500, 0.0)]
        .into_iter()
        .map(|task| submit(&mut cluster, task))
        .collect();
    planner.plan(&mut cluster).unwrap();
    cluster.check();
    assert_eq!(place(&cluster, tasks[0]), (0, 0b01));
    assert_eq!(place(&cluster, tasks[1]), (0, 0b01));
    assert_eq!(place(&cluster, tasks[2]), (1, 0b11));
    assert_eq!(place(&cluster, tasks[3]), (0, 0b10));
}

#[test]
fn gpus_without_cores_are_fragments_too() {
    // A task that takes all cores of node 0 strands its second GPU. Here the small task leaves the cores where they are needed:
    // node 0 has 1 core and 1 GPU free, node 1 4 cores and 2 GPUs. A task without cores goes to node 0, whose GPU is of no use
    // to the others.
    let mut cluster = cluster(2, 2, 4.0);
    let big = submit(&mut cluster, (1, 1000, 3.0));
    let first = Slice {
        node: NodeId(0),
        gpus: 1,
    };
    cluster.start(big, Placement::from_slice(&[first]));
    let free = submit(&mut cluster, (1, 1000, 0.0));
    let mut planner = fgd();
    for _ in 0..3 {
        submit(&mut cluster, (1, 1000, 2.0));
    }
    planner.plan(&mut cluster).unwrap();
    assert_eq!(place(&cluster, free).0, 0);
}

#[test]
fn a_gang_larger_than_a_node_is_spread_and_one_that_fits_a_node_waits_for_it() {
    let mut cluster = cluster(2, 2, 0.0);
    let mut planner = fgd();
    let one = submit(&mut cluster, (1, 1000, 0.0));
    let other = submit(&mut cluster, (1, 1000, 0.0));
    for (id, node) in [(one, 0), (other, 1)] {
        let slice = Slice {
            node: NodeId(node),
            gpus: 1,
        };
        cluster.start(id, Placement::from_slice(&[slice]));
    }
    let pair = submit(&mut cluster, (2, 1000, 0.0));
    planner.plan(&mut cluster).unwrap();
    assert!(cluster.job(pair).placement.is_empty());
    cluster.finish(one);
    cluster.finish(other);
    let all = submit(&mut cluster, (4, 1000, 0.0));
    planner.plan(&mut cluster).unwrap();
    assert_eq!(place(&cluster, pair), (0, 0b11));
    cluster.finish(pair);
    planner.plan(&mut cluster).unwrap();
    assert_eq!(cluster.job(all).placement.len(), 2);
    cluster.check();
}

/// Fragments of the whole cluster, counted from nothing.
fn fragmentation(cluster: &Cluster, mix: &[TaskClass]) -> f64 {
    let nodes = 0..cluster.nodes().len() as u32;
    let mut sum = 0.0;
    for node in nodes {
        let node = &cluster.nodes()[node as usize];
        let left = |gpu: u32| -> f64 {
            let held = cluster
                .running()
                .filter(|id| {
                    let placement = &cluster.job(*id).placement;
                    let own = |slice: &Slice| {
                        cluster.nodes()[slice.node.index()].first_gpu == node.first_gpu
                            && slice.gpus >> gpu & 1 == 1
                    };
                    placement.iter().any(own)
                })
                .map(|id| f64::from(cluster.job(id).request.resources.gpu_milli));
            1000.0 - held.sum::<f64>()
        };
        let gpus: Vec<f64> = (0..node.num_gpus).map(left).collect();
        for class in mix {
            let wants = f64::from(class.gpu_milli);
            let fitting = gpus.iter().filter(|left| **left >= wants).count();
            let runs =
                fitting >= class.num_gpus as usize && u64::from(node.cpu_milli_free) >= class.cpu_milli;
            let fragment: f64 = gpus.iter().filter(|left| !runs || **left < wants).sum();
            sum += class.popularity * fragment;
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_task_goes_where_all_fragments_counted_anew_are_least(
        num_nodes in 1_u32..5,
        gpus_per_node in 1_u32..5,
        tasks in proptest::collection::vec((0_u32..6, 0_usize..5), 1..24),
    ) {
        let mut cluster = cluster(num_nodes, gpus_per_node, 12.0);
        let mut planner = fgd();
        let mut mix = Mix::new(1.0, 0.0);
        for (cores, size) in tasks {
            let (num_gpus, gpu_milli) = [(1, 250), (1, 500), (1, 700), (1, 1000), (2, 1000)][size];
            if num_gpus > gpus_per_node {
                continue;
            }
            let id = submit(&mut cluster, (num_gpus, gpu_milli, f64::from(cores)));
            mix.look(&cluster);
            // The slow way: every subset of GPUs of the right size on every node.
            let mut least: Option<f64> = None;
            for node in 0..num_nodes {
                for gpus in 1_u64..1 << gpus_per_node {
                    let room = Room::of(&cluster, NodeId(node));
                    let fits = (0..gpus_per_node)
                        .filter(|gpu| gpus >> gpu & 1 == 1)
                        .all(|gpu| room.gpus[gpu as usize] >= u32::from(gpu_milli));
                    let cores_fit = room.cpu_milli >= u64::from(cores * 1000 * num_gpus);
                    if gpus.count_ones() == num_gpus && fits && cores_fit {
                        let mut other = cluster.clone();
                        let slice = Slice { node: NodeId(node), gpus };
                        other.start(id, Placement::from_slice(&[slice]));
                        let sum = fragmentation(&other, mix.classes());
                        least = Some(least.map_or(sum, |least| least.min(sum)));
                    }
                }
            }
            // Those that wait do not stand in the way: they did not fit before and nothing was given back.
            planner.plan(&mut cluster).unwrap();
            cluster.check();
            match least {
                None => prop_assert!(cluster.job(id).placement.is_empty()),
                Some(least) => {
                    let chosen = fragmentation(&cluster, mix.classes());
                    prop_assert!(chosen <= least + 1e-6, "{chosen} instead of {least}");
                }
            }
        }
    }
}

#[test]
fn clustering_keeps_tasks_of_one_kind_together_and_leaves_idle_nodes_to_others() {
    let mut cluster = cluster(3, 2, 0.0);
    let mut planner = Fgd::new(FgdConfig {
        score: Score::GpuClustering,
        ..FgdConfig::default()
    })
    .unwrap();
    // Half a GPU opens node 0. A whole one finds no task of its kind: an idle node before one of others. The next half goes to its
    // kind, the next whole one too.
    let tasks: Vec<JobId> = [(1, 500, 0.0), (1, 1000, 0.0), (1, 500, 0.0), (1, 1000, 0.0)]
        .into_iter()
        .map(|task| submit(&mut cluster, task))
        .collect();
    planner.plan(&mut cluster).unwrap();
    let nodes: Vec<u32> = tasks.iter().map(|id| place(&cluster, *id).0).collect();
    assert_eq!(nodes, [0, 1, 0, 1]);
    // Two GPUs at once: the idle node, not the free GPU of node 0.
    let gang = submit(&mut cluster, (2, 1000, 0.0));
    planner.plan(&mut cluster).unwrap();
    assert_eq!(place(&cluster, gang).0, 2);
}
