//! Small clusters on which jobs share, for the tests of these planners.

use pleach_scheduler::cluster::{Capabilities, Cluster, Placement, Sharing, Slice, Submission};
use pleach_scheduler::cluster_spec::{ClusterSpec, Load, ModelClass, Resources};
use pleach_scheduler::physics::interference::PairEntry;
use pleach_scheduler::{ActionKind, ClassId, Estimate, JobId, NodeId, Planner, Provenance, TenantId, Time};

/// A class that keeps a GPU busy for a part of the time.
pub(super) fn class(name: &str, utilisation: f64) -> ModelClass {
    let load = Load {
        utilisation,
        bandwidth: 0.0,
    };
    ModelClass {
        name: name.into(),
        load,
        ..ModelClass::default()
    }
}

/// Nodes of GPUs with 32 GiB. Jobs of each two classes slow each other by a factor, as (victim, neighbour, factor).
pub(super) fn cluster_of(
    num_nodes: u32,
    gpus_per_node: u32,
    classes: &[ModelClass],
    slower: &[(&str, &str, f64)],
) -> Cluster {
    let mut spec = ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes);
    let pairs = slower.iter().map(|(victim, neighbour, factor)| PairEntry {
        gpu_type: "GPU".into(),
        victim: (*victim).into(),
        neighbour: (*neighbour).into(),
        speed: 1.0 / factor,
    });
    spec.pairs = pairs.collect();
    let capabilities = Capabilities {
        restart_cost_s: 0.0,
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    Cluster::new(&spec, classes, capabilities).unwrap()
}

/// One class whose jobs slow each other by a factor.
pub(super) fn cluster(num_nodes: u32, gpus_per_node: u32, slower: f64) -> Cluster {
    cluster_of(
        num_nodes,
        gpus_per_node,
        &[class("any", 0.5)],
        &[("any", "any", slower)],
    )
}

pub(super) fn submit_as(
    cluster: &mut Cluster,
    class: u16,
    num_gpus: u32,
    estimate_s: f64,
    gib: f64,
) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(class),
        num_gpus,
        estimate_s: Estimate {
            value: estimate_s,
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            gpu_memory_gib: gib,
            ..Resources::WHOLE_GPU
        },
    };
    cluster.submit(request).unwrap()
}

/// Puts a pending job on GPUs of node 0.
pub(super) fn start_on(cluster: &mut Cluster, id: JobId, gpus: u64) {
    let slice = Slice {
        node: NodeId(0),
        gpus,
    };
    cluster.start(id, Placement::from_slice(&[slice]));
}

/// Plans at a time; the jobs that run then, and their GPUs on each node.
pub(super) fn plan_at(
    planner: &mut dyn Planner,
    cluster: &mut Cluster,
    now_s: f64,
) -> Vec<(u32, Vec<(u32, u64)>)> {
    cluster.advance(Time::from_secs_f64(now_s));
    planner.plan(cluster).unwrap();
    cluster.check();
    let running = crate::test_clusters::running(cluster);
    let slices = |id: u32| {
        let placement = &cluster.job(JobId(id)).placement;
        placement.iter().map(|slice| (slice.node.0, slice.gpus)).collect()
    };
    running.into_iter().map(|id| (id, slices(id))).collect()
}
