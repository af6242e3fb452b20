//! Small clusters that the tests of planners start from.

#![allow(clippy::unwrap_used)]

use pleach_scheduler::cluster::{Capabilities, Cluster, JobState, Submission};
use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources,
};
use pleach_scheduler::{ActionKind, ClassId, Estimate, JobId, Provenance, TenantId};

use crate::starts;

/// A cluster with one class at speed 1 and Philly's locality factors; preemption on.
pub fn cluster_of(spec: &ClusterSpec) -> Cluster {
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0; spec.gpu_types.len()],
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    Cluster::new(spec, &[class], capabilities).unwrap()
}

/// Submits a job of tenant 0 and class 0.
pub fn submit(cluster: &mut Cluster, num_gpus: u32, estimate_s: f64) -> JobId {
    submit_for(cluster, 0, num_gpus, estimate_s)
}

/// Submits a job of class 0.
pub fn submit_for(cluster: &mut Cluster, tenant: u16, num_gpus: u32, estimate_s: f64) -> JobId {
    let estimate_s = Estimate {
        value: estimate_s,
        provenance: Provenance::Oracle,
    };
    let request = Submission {
        tenant: TenantId(tenant),
        class: ClassId(0),
        num_gpus,
        estimate_s,
        resources: Resources::WHOLE_GPU,
    };
    cluster.submit(request).unwrap()
}

/// Nodes of one type; preemption on, a restart costs nothing.
pub fn preemptive_cluster(num_nodes: u32, gpus_per_node: u32) -> Cluster {
    cluster_of(&ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes))
}

/// One node of each type; one class with these speeds.
pub fn multi_type_cluster(speeds: &[f64], gpus_per_node: u32) -> Cluster {
    let uniform = ClusterSpec::uniform(1, gpus_per_node, 1);
    let name = |kind: usize| format!("type{kind}");
    let spec = ClusterSpec {
        gpu_types: (0..speeds.len())
            .map(|kind| GpuTypeSpec {
                name: name(kind),
                ..uniform.gpu_types[0].clone()
            })
            .collect(),
        node_groups: (0..speeds.len())
            .map(|kind| NodeGroup {
                gpu_type: name(kind),
                ..uniform.node_groups[0].clone()
            })
            .collect(),
        ..uniform
    };
    let class = ModelClass {
        name: "any".into(),
        speed: speeds.to_vec(),
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        restart_cost_s: 0.0,
        ..Capabilities::DEFAULT
            .with(ActionKind::Preempt)
            .with(ActionKind::MixTypes)
    };
    Cluster::new(&spec, &[class], capabilities).unwrap()
}

/// Starts a job on its tightest placement.
pub fn place(cluster: &mut Cluster, id: JobId) {
    let placement = starts::tightest(cluster, id, &mut Vec::new()).expect("it fits");
    cluster.start(id, placement);
}

/// The running jobs, by id.
pub fn running(cluster: &Cluster) -> Vec<u32> {
    let jobs = cluster.jobs().iter().enumerate();
    let running = jobs.filter(|(_, job)| job.state == JobState::Running);
    running.map(|(id, _)| id as u32).collect()
}
