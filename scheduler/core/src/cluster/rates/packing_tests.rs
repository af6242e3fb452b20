//! Gangs on the GPUs of several others, and jobs that are fused into one program, by hand.

use crate::cluster::*;
use crate::cluster_spec::{Load, Resources};
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, TenantId};
use crate::ids::{GpuTypeId, NodeId};
use crate::physics::mixed::Fusion;

/// One node of 4 GPUs of 32 GiB, a class that is busy half the time; two of them run at 1 / (1 + 0.4 x 0.5 x 0.5) = 1 / 1.1.
fn node_of_four() -> Cluster {
    let class = ModelClass {
        load: Load {
            utilisation: 0.5,
            bandwidth: 0.0,
        },
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    Cluster::new(&ClusterSpec::uniform(1, 4, 1), &[class], capabilities).unwrap()
}

fn submit(cluster: &mut Cluster, num_gpus: u32, gpu_memory_gib: f64) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: 110.0,
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            gpu_memory_gib,
            ..Resources::WHOLE_GPU
        },
    };
    cluster.submit(request).unwrap()
}

fn start(cluster: &mut Cluster, id: JobId, gpus: u64) {
    let slice = Slice {
        node: NodeId(0),
        gpus,
    };
    cluster.start(id, [slice].into_iter().collect());
    cluster.check();
}

fn rates(cluster: &Cluster, jobs: &[JobId]) -> Vec<f64> {
    jobs.iter().map(|id| cluster.job(*id).rate).collect()
}

#[test]
fn a_gang_on_gpus_of_two_others_and_a_free_one_runs_at_its_slowest_gpu() {
    let mut cluster = node_of_four();
    let (one, two) = (submit(&mut cluster, 1, 10.0), submit(&mut cluster, 2, 10.0));
    start(&mut cluster, one, 0b1);
    start(&mut cluster, two, 0b110);
    let wide = submit(&mut cluster, 3, 10.0);
    assert_eq!(cluster.joinable(wide, NodeId(0)), 0b111, "GPU 3 is free");
    // On GPU 0 beside the first, on GPU 1 beside the second, on GPU 3 alone.
    start(&mut cluster, wide, 0b1011);
    assert_eq!(rates(&cluster, &[one, two, wide]), [1.0 / 1.1; 3]);
    assert_eq!((cluster.num_free(), cluster.shared_gpus().count()), (0, 2));
    // GPU 2 is the second's alone and GPU 3 the gang's: only those take another.
    let late = submit(&mut cluster, 1, 10.0);
    assert_eq!(cluster.joinable(late, NodeId(0)), 0b1100);
    // 22 s at 1 / 1.1 are 20 s of work. Then the first leaves: the gang is still beside the second.
    cluster.advance(Time::from_secs_f64(22.0));
    cluster.finish(one);
    cluster.check();
    assert_eq!(rates(&cluster, &[two, wide]), [1.0 / 1.1; 2]);
    assert_eq!(cluster.residents(NodeId(0), 0).as_slice(), [wide]);
    cluster.finish(two);
    cluster.check();
    assert_eq!(rates(&cluster, &[wide]), [1.0]);
    assert!((cluster.job(wide).expected_finish.as_secs_f64() - 112.0).abs() < 1e-6);
    assert_eq!((cluster.num_free(), cluster.shared_gpus().count()), (1, 0));
}

#[test]
fn memory_decides_gpu_by_gpu_and_draining_nodes_take_nobody() {
    let mut cluster = node_of_four();
    let (small, large) = (submit(&mut cluster, 1, 10.0), submit(&mut cluster, 2, 20.0));
    start(&mut cluster, small, 0b1);
    start(&mut cluster, large, 0b110);
    let newcomer = submit(&mut cluster, 1, 13.0);
    assert_eq!(
        cluster.joinable(newcomer, NodeId(0)),
        0b1,
        "20 + 13 GiB are more than 32"
    );
    cluster.set_node_state(NodeId(0), NodeState::Draining, &mut Vec::new());
    assert_eq!(cluster.joinable(newcomer, NodeId(0)), 0);
}

#[test]
fn jobs_of_one_class_are_fused_until_the_memory_is_full_and_share_what_that_gains() {
    // 32 GiB; 2 GiB for the framework and 10 for each job: three jobs. Their rates add up to k x 3 / (k + 2).
    let class = |fusion| ModelClass {
        fusion,
        ..ModelClass::default()
    };
    let fusion = Fusion {
        best_sum: 3.0,
        framework_gib: 2.0,
        job_gib: 10.0,
    };
    let capabilities = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    let spec = ClusterSpec::uniform(1, 2, 1);
    let mut cluster = Cluster::new(&spec, &[class(Some(fusion))], capabilities).unwrap();
    // What each would ask for by itself does not matter: the framework is there once.
    let jobs = [1, 1, 1, 1].map(|num_gpus| submit(&mut cluster, num_gpus, 12.0));
    start(&mut cluster, jobs[0], 0b1);
    assert_eq!(cluster.packed_speed(jobs[1], &[jobs[0]], GpuTypeId(0)), 0.75);
    start(&mut cluster, jobs[1], 0b1);
    assert_eq!(rates(&cluster, &jobs[..2]), [0.75; 2]);
    start(&mut cluster, jobs[2], 0b1);
    assert_eq!(rates(&cluster, &jobs[..3]), [0.6; 3]);
    let (_, gpu) = cluster.shared_gpus().next().unwrap();
    assert!(gpu.is_fused && gpu.memory_mib_used() == 32 * 1024);
    assert_eq!(cluster.joinable(jobs[3], NodeId(0)), 0, "a fourth does not fit");
    // A gang of two GPUs cannot be fused, and there are three residents already.
    let gang = submit(&mut cluster, 2, 1.0);
    assert_eq!(cluster.joinable(gang, NodeId(0)), 0);
    // 10 s at 0.6 are 6 s of work; then the first leaves, and the memory of the framework stays.
    cluster.advance(Time::from_secs_f64(10.0));
    cluster.finish(jobs[0]);
    cluster.check();
    assert_eq!(rates(&cluster, &jobs[1..3]), [0.75; 2]);
    let (_, gpu) = cluster.shared_gpus().next().unwrap();
    assert_eq!(gpu.memory_mib_used(), 22 * 1024);
    cluster.finish(jobs[1]);
    cluster.check();
    let last = cluster.job(jobs[2]);
    assert_eq!(
        (last.rate, last.is_sharing, cluster.shared_gpus().count()),
        (1.0, false, 0)
    );
    assert!((last.expected_finish.as_secs_f64() - 114.0).abs() < 1e-6);
}

#[test]
fn guarded_jobs_share_a_gpu_exactly_where_its_part_of_the_smallest_nodes_memory_holds_both() {
    use crate::cluster_spec::NodeGroup;
    use crate::physics::interference::Interference;

    let needs_gib = [0.0, 8.0, 16.0, 24.0, 30.0, 60.0];
    let classes = needs_gib.map(|host_memory_gib| ModelClass {
        name: format!("{host_memory_gib}"),
        load: Load {
            utilisation: 0.5,
            bandwidth: 0.0,
        },
        gpu_memory_gib: 4.0,
        host_memory_gib,
        ..ModelClass::default()
    });
    let (mut num_shared, mut num_refused) = (0, 0);
    // (memory, GPUs) of the nodes; 0 is not known.
    for nodes in [
        vec![(0.0, 4)],
        vec![(128.0, 4)],
        vec![(192.0, 4)],
        vec![(384.0, 8), (128.0, 4)],
        vec![(384.0, 8), (0.0, 4)],
    ] {
        let mut spec = ClusterSpec::uniform(1, 4, 1);
        spec.node_groups = nodes
            .iter()
            .map(|(memory_gib, gpus_per_node)| NodeGroup {
                count: 1,
                gpus_per_node: *gpus_per_node,
                gpu_type: "GPU".into(),
                nodes_per_rack: 1,
                memory_gib: *memory_gib,
                ..NodeGroup::default()
            })
            .collect();
        for guard in [false, true] {
            if guard {
                spec.interference = Interference::MEASURED;
            }
            let capabilities = Capabilities {
                sharing: Sharing::Mps,
                ..Capabilities::DEFAULT
            };
            for (one, first_gib) in needs_gib.iter().enumerate() {
                for (two, second_gib) in needs_gib.iter().enumerate() {
                    let mut cluster = Cluster::new(&spec, &classes, capabilities).unwrap();
                    let ids = [one, two].map(|class| {
                        let request = Submission {
                            tenant: TenantId(0),
                            class: ClassId(class as u16),
                            num_gpus: 1,
                            estimate_s: Estimate {
                                value: 110.0,
                                provenance: Provenance::Oracle,
                            },
                            resources: Resources::WHOLE_GPU,
                        };
                        cluster.submit(request).unwrap()
                    });
                    start(&mut cluster, ids[0], 0b1);
                    let is_known = *first_gib > 0.0 && *second_gib > 0.0;
                    let too_small = |(memory_gib, gpus): &(f64, u32)| {
                        *memory_gib > 0.0 && first_gib + second_gib > memory_gib / f64::from(*gpus)
                    };
                    let expected = !(guard && is_known && nodes.iter().any(too_small));
                    let found = cluster.can_pack(ids[1], ids[0]);
                    assert_eq!(found, expected, "{nodes:?} {guard} {first_gib} {second_gib}");
                    assert_eq!(cluster.joinable(ids[1], NodeId(0)) == 1, expected);
                    *(if found { &mut num_shared } else { &mut num_refused }) += 1;
                }
            }
        }
    }
    assert!(num_shared > 100 && num_refused > 20, "{num_shared} {num_refused}");
}
