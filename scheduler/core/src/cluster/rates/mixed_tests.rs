//! Everything at once on one small cluster: fractions, MIG instances, packing, CPU and memory, links, nodes that come and go,
//! quotas. After every change all invariants are recomputed from scratch.

use proptest::prelude::*;

use crate::ActionKind;
use crate::cluster::*;
use crate::cluster_spec::{GpuTypeSpec, Load, NodeGroup, Resources, Tasks, TenantSpec};
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, TenantId};
use crate::ids::{GpuTypeId, NodeId};
use crate::physics::links::{Between, Fabric, StepCost};
use crate::physics::mig::MigGpu;
use crate::physics::mixed::Fusion;

/// Two nodes of 4 plain GPUs and 16 cores, two of 2 A100 with MIG and 8 cores; 3 tenants with 4 GPUs each.
pub(in crate::cluster) fn cluster(borrowing: bool, mixed_types: bool) -> Cluster {
    let group = |gpu_type: &str, gpus_per_node, cpu_cores| NodeGroup {
        count: 2,
        gpus_per_node,
        gpu_type: gpu_type.into(),
        nodes_per_rack: 2,
        cpu_cores,
        memory_gib: 64.0,
        ..NodeGroup::default()
    };
    let gavel = Fabric::from_name("gavel").unwrap();
    let spec = ClusterSpec {
        gpu_types: vec![
            GpuTypeSpec {
                name: "plain".into(),
                memory_gib: 16.0,
                mig: None,
            },
            GpuTypeSpec {
                name: "a100".into(),
                memory_gib: 40.0,
                mig: Some(MigGpu::A100_40),
            },
        ],
        node_groups: vec![group("plain", 4, 16.0), group("a100", 2, 8.0)],
        tenants: (0..3)
            .map(|tenant| TenantSpec {
                name: format!("t{tenant}"),
                quota_gpus: 4,
            })
            .collect(),
        borrowing,
        // One NIC a node, and of a rack's two the bandwidth of less than one outside: gangs share links.
        fabric: Some(Fabric {
            between: Between {
                rack_oversubscription: 3.0,
                hash_loss: 0.1,
                ..gavel.between
            },
            ..gavel
        }),
        ..ClusterSpec::default()
    };
    let class = |name: &str, speed: [f64; 2], utilisation| ModelClass {
        name: name.into(),
        speed: speed.into(),
        load: Load {
            utilisation,
            bandwidth: 0.2,
        },
        ..ModelClass::default()
    };
    let mut classes = [
        class("both", [1.0, 2.0], 0.5),
        class("plain only", [1.0, 0.0], 0.9),
    ];
    classes[0].step = Some(StepCost {
        compute_s: 0.2,
        gradient_bytes: 1e8,
        gamma: 2.0,
    });
    classes[1].fusion = Some(Fusion {
        best_sum: 3.0,
        framework_gib: 1.3,
        job_gib: 4.1,
    });
    let mut capabilities = Capabilities {
        sharing: Sharing::Mps,
        checkpoint_interval_s: Some(10.0),
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    capabilities.grant(ActionKind::MixTypes, mixed_types);
    Cluster::new(&spec, &classes, capabilities).unwrap()
}

#[derive(Clone, Debug)]
pub(in crate::cluster) enum Move {
    Submit {
        class: u16,
        tenant: u16,
        num_gpus: u32,
        resources: Resources,
    },
    Start(usize, usize),
    Beside(usize, usize),
    Gather(usize),
    Preempt(usize),
    Finish(usize),
    Fail(usize),
    Node(u32, NodeState),
    Wait(i64),
}

pub(in crate::cluster) fn moves() -> impl Strategy<Value = Move> {
    let milli = prop_oneof![
        Just(1000_u16),
        Just(1000),
        Just(500),
        Just(140),
        Just(300),
        1_u16..1000
    ];
    let resources = (milli, 0.0_f64..12.0, 0.0_f64..3.0, 0.0_f64..12.0).prop_map(
        |(gpu_milli, gpu_memory_gib, cpu_cores, memory_gib)| Resources {
            gpu_milli,
            gpu_memory_gib,
            // Half of the jobs ask for no CPU or memory.
            cpu_cores: (cpu_cores - 1.5).max(0.0),
            memory_gib: (memory_gib - 6.0).max(0.0),
            ..Resources::WHOLE_GPU
        },
    );
    let whole = (0.0_f64..12.0).prop_map(|gpu_memory_gib| Resources {
        gpu_memory_gib,
        ..Resources::WHOLE_GPU
    });
    let resources = prop_oneof![whole, resources];
    let state = prop_oneof![
        3 => Just(NodeState::Up),
        1 => Just(NodeState::Draining),
        1 => Just(NodeState::Down)
    ];
    prop_oneof![
        4 => (0_u16..2, 0_u16..3, 1_u32..5, resources).prop_map(|(class, tenant, num_gpus, resources)| {
            Move::Submit { class, tenant, num_gpus, resources }
        }),
        6 => (0_usize..40, 0_usize..3).prop_map(|(job, template)| Move::Start(job, template)),
        3 => (0_usize..40, 0_usize..40).prop_map(|(job, partner)| Move::Beside(job, partner)),
        3 => (0_usize..40).prop_map(Move::Gather),
        1 => (0_usize..40).prop_map(Move::Preempt),
        2 => (0_usize..40).prop_map(Move::Finish),
        1 => (0_usize..40).prop_map(Move::Fail),
        1 => (0_u32..4, state).prop_map(|(node, state)| Move::Node(node, state)),
        2 => (0_i64..60).prop_map(Move::Wait),
    ]
}

fn pick(cluster: &Cluster, number: usize, state: JobState) -> Option<JobId> {
    let with_state = |id: &usize| cluster.jobs()[*id].state == state;
    let found: Vec<usize> = (0..cluster.jobs().len()).filter(with_state).collect();
    Some(JobId(*found.get(number % found.len().max(1))? as u32))
}

pub(in crate::cluster) fn carry_out(cluster: &mut Cluster, next: &Move) {
    const TEMPLATES: [Template; 3] = [Template::Fastest, Template::BestValue, Template::Fragments];
    match next {
        Move::Submit {
            class,
            tenant,
            num_gpus,
            resources,
        } => {
            let request = Submission {
                tenant: TenantId(*tenant),
                class: ClassId(*class),
                num_gpus: *num_gpus,
                estimate_s: Estimate {
                    value: 100.0,
                    provenance: Provenance::Oracle,
                },
                resources: *resources,
            };
            // A request that the cluster can never meet is refused; that is part of the test.
            drop(cluster.submit(request));
        }
        Move::Start(job, template) => {
            let Some(id) = pick(cluster, *job, JobState::Pending) else {
                return;
            };
            let types = cluster.fitting_types(cluster.demand(id));
            let template = TEMPLATES[*template];
            if let Some(kind) = cluster.preferred_type(template, cluster.job(id).request.class, types) {
                let mut out = Vec::new();
                assert!(
                    cluster.place_job(template, kind, id, &mut out),
                    "what fits can be placed"
                );
                cluster.start(id, out.into_iter().collect());
            }
        }
        Move::Beside(job, partner) => {
            let pair = (
                pick(cluster, *job, JobState::Pending),
                pick(cluster, *partner, JobState::Running),
            );
            if let (Some(id), Some(partner)) = pair
                && cluster.can_pack(id, partner)
            {
                let placement = cluster.job(partner).placement.clone();
                cluster.start(id, placement);
            }
        }
        Move::Gather(job) => {
            if let Some(id) = pick(cluster, *job, JobState::Pending) {
                gather(cluster, id);
            }
        }
        Move::Preempt(job) => {
            if let Some(id) = pick(cluster, *job, JobState::Running) {
                cluster.preempt(id);
            }
        }
        Move::Finish(job) => {
            if let Some(id) = pick(cluster, *job, JobState::Running) {
                cluster.finish(id);
            }
        }
        Move::Fail(job) => {
            if let Some(id) = pick(cluster, *job, JobState::Running) {
                let done_s = cluster.job(id).executed_s_at(cluster.now());
                cluster.fail(id);
                let job = cluster.job(id);
                let periodic_s = (done_s / 10.0).floor() * 10.0;
                let kept_s = periodic_s.max(job.saved_s.min(done_s));
                assert_eq!(
                    job.executed_s, kept_s,
                    "the last checkpoint, periodic or of a preemption"
                );
            }
        }
        Move::Node(node, state) => {
            let mut stopped = Vec::new();
            cluster.set_node_state(NodeId(*node), *state, &mut stopped);
            assert!(stopped.is_empty() || *state == NodeState::Down);
            assert!(
                stopped
                    .iter()
                    .all(|id| cluster.job(*id).state == JobState::Pending)
            );
        }
        Move::Wait(seconds) => {
            let now = cluster.now() + Time(seconds * 1_000_000);
            cluster.advance(now);
        }
    }
}

/// Starts a gang of whole GPUs on the first GPUs of one type that are free or can be shared, whichever jobs hold them.
fn gather(cluster: &mut Cluster, id: JobId) {
    let demand = cluster.demand(id);
    if cluster.shape(demand.shape) != Shape::PLAIN || !cluster.has_room(demand) {
        return;
    }
    for kind in cluster.types_in(demand.types) {
        let (mut rest, mut placement) = (demand.num_gpus, Placement::new());
        for (index, node) in cluster.nodes().iter().enumerate() {
            let at = NodeId(index as u32);
            let mut gpus = 0;
            for gpu in bits(node.free | cluster.joinable(id, at)).take(rest as usize) {
                gpus |= 1_u64 << gpu;
            }
            if node.gpu_type == kind && gpus != 0 {
                rest -= gpus.count_ones();
                placement.push(Slice { node: at, gpus });
            }
        }
        if rest == 0 {
            cluster.start(id, placement);
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn whatever_happens_nothing_is_promised_twice_and_giving_all_back_restores_the_empty_cluster(
        borrowing in any::<bool>(),
        mixed in any::<bool>(),
        moves in proptest::collection::vec(moves(), 1..160),
    ) {
        let mut cluster = cluster(borrowing, mixed);
        for next in &moves {
            carry_out(&mut cluster, next);
            cluster.check();
        }
        for id in (0..cluster.jobs().len()).map(|id| JobId(id as u32)) {
            if cluster.job(id).state == JobState::Running {
                cluster.finish(id);
            }
        }
        for node in 0..4 {
            cluster.set_node_state(NodeId(node), NodeState::Up, &mut Vec::new());
        }
        cluster.check();
        prop_assert_eq!(cluster.num_free(), 12);
        prop_assert_eq!(cluster.shared_gpus().count(), 0);
        for node in cluster.nodes() {
            prop_assert_eq!((node.cpu_milli_free, node.memory_mib_free), (node.cpu_milli, node.memory_mib));
        }
        prop_assert!(cluster.tenants().iter().all(|tenant| tenant.used_milli == 0));
    }
}

fn submit(cluster: &mut Cluster, class: u16, num_gpus: u32, resources: Resources) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(class),
        num_gpus,
        estimate_s: Estimate {
            value: 100.0,
            provenance: Provenance::Oracle,
        },
        resources,
    };
    cluster.submit(request).unwrap()
}

fn start(cluster: &mut Cluster, id: JobId, kind: u8) -> Option<Vec<(u32, u64)>> {
    let mut out = Vec::new();
    if !cluster.place_job(Template::Fastest, GpuTypeId(kind), id, &mut out) {
        return None;
    }
    cluster.start(id, out.iter().copied().collect());
    cluster.check();
    Some(out.iter().map(|slice| (slice.node.0, slice.gpus)).collect())
}

#[test]
fn fractions_fill_the_gpu_with_least_left_before_they_open_another() {
    let mut cluster = cluster(true, false);
    let part = |gpu_milli| Resources {
        gpu_milli,
        ..Resources::WHOLE_GPU
    };
    let expected = [
        (600, 0b1),
        (600, 0b10),
        (300, 0b1),
        (400, 0b10),
        (200, 0b100),
        (100, 0b1),
    ];
    for (gpu_milli, gpus) in expected {
        let id = submit(&mut cluster, 1, 1, part(gpu_milli));
        assert_eq!(start(&mut cluster, id, 0), Some(vec![(0, gpus)]), "{gpu_milli}");
    }
    assert_eq!(cluster.tenant(TenantId(0)).used_gpus(), 2.2);
    assert_eq!(cluster.num_free(), 9);
}

#[test]
fn a_mig_gpu_takes_only_what_its_geometry_allows() {
    // 400 / 1000 of an A100 is three of seven slices: two fit, and then only a small one.
    let mut cluster = cluster(true, false);
    for node in [0, 1, 3] {
        cluster.set_node_state(NodeId(node), NodeState::Draining, &mut Vec::new());
    }
    let part = |gpu_milli| Resources {
        gpu_milli,
        ..Resources::WHOLE_GPU
    };
    let mut placed = Vec::new();
    for gpu_milli in [400, 400, 400, 400, 400, 140] {
        let id = submit(&mut cluster, 0, 1, part(gpu_milli));
        placed.push(start(&mut cluster, id, 1).map(|slices| slices[0].1));
    }
    // Both GPUs hold two 3g.20gb; all memory is gone, so not even 1g.5gb fits.
    assert_eq!(placed, [Some(0b1), Some(0b1), Some(0b10), Some(0b10), None, None]);
}

#[test]
fn a_gang_needs_the_cores_beside_its_gpus() {
    // 4 GPUs with 5 cores each want 20 of a node's 16: three fit there, so the gang spreads.
    let mut cluster = cluster(true, false);
    let wide = Resources {
        cpu_cores: 5.0,
        ..Resources::WHOLE_GPU
    };
    let id = submit(&mut cluster, 1, 4, wide);
    assert_eq!(start(&mut cluster, id, 0), Some(vec![(0, 0b111), (1, 0b1)]));
    let id = submit(&mut cluster, 1, 2, wide);
    assert_eq!(start(&mut cluster, id, 0), Some(vec![(1, 0b110)]));
    assert_eq!(
        cluster.num_free_of(GpuTypeId(0)),
        2,
        "GPUs are left without cores"
    );
    let id = submit(&mut cluster, 1, 1, wide);
    assert_eq!(cluster.fitting_types(cluster.demand(id)), 0);
    let text = cluster
        .submit(Submission {
            num_gpus: 7,
            ..cluster.job(id).request
        })
        .unwrap_err()
        .to_string();
    assert!(text.contains("1 to 6"), "{text}");
}

#[test]
fn a_node_that_goes_down_sends_its_jobs_back_to_their_last_checkpoint() {
    let mut cluster = cluster(true, false);
    let id = submit(&mut cluster, 1, 4, Resources::WHOLE_GPU);
    start(&mut cluster, id, 0);
    cluster.advance(Time::from_secs_f64(37.0));
    let mut stopped = Vec::new();
    cluster.set_node_state(NodeId(0), NodeState::Down, &mut stopped);
    cluster.check();
    assert_eq!(stopped, [id]);
    let job = cluster.job(id);
    assert_eq!(
        (job.executed_s, job.num_failures, job.num_preemptions),
        (30.0, 1, 0)
    );
    assert_eq!(cluster.num_free_of(GpuTypeId(0)), 4, "the other node");
    assert_eq!(cluster.num_withheld(), 4);
    // It goes on elsewhere after the restart: 37 + 30 + 70 s.
    start(&mut cluster, id, 0);
    assert_eq!(cluster.job(id).expected_finish, Time::from_secs_f64(137.0));
}

#[test]
fn a_gang_on_two_types_runs_at_the_pace_of_the_slower() {
    let mut cluster = cluster(true, true);
    let id = submit(&mut cluster, 0, 4, Resources::WHOLE_GPU);
    let slice = |node, gpus| Slice {
        node: NodeId(node),
        gpus,
    };
    let slices: Placement = [slice(2, 0b11), slice(0, 0b11)].into_iter().collect();
    let by_links = cluster.facts(ClassId(0), Tasks::ANY, &slices).locality;
    cluster.start(id, slices);
    cluster.check();
    let job = cluster.job(id);
    assert_eq!((job.gpu_type, job.rate), (GpuTypeId(0), by_links));
    assert_eq!(cluster.gpus_freed_by(id), 2, "of the slower type");
}
