//! Small clusters that the tests of planners start from, and what must hold for every planner.

use super::*;
use crate::cluster::tests::cluster_of;
pub(crate) use crate::cluster::tests::submit;
use crate::cluster::{Cluster, JobState};
use crate::ids::JobId;
use crate::spec::{ClusterSpec, GpuTypeSpec, ModelClass, NodeGroup};

/// Nodes of one type; preemption on, a restart costs nothing.
pub(crate) fn preemptive_cluster(num_nodes: u32, gpus_per_node: u32) -> Cluster {
    cluster_of(&ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes))
}

/// One node of each type; one class with these speeds.
pub(crate) fn multi_type_cluster(speeds: &[f64], gpus_per_node: u32) -> Cluster {
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
        preemption: true,
        mixed_types: true,
        restart_cost_s: 0.0,
        ..Capabilities::DEFAULT
    };
    Cluster::new(&spec, &[class], capabilities).unwrap()
}

/// Starts a job on its tightest placement.
pub(crate) fn place(cluster: &mut Cluster, id: JobId) {
    let placement = give_out::tightest(cluster, id, &mut Vec::new()).expect("it fits");
    cluster.start(id, placement);
}

/// The running jobs, by id.
pub(crate) fn running(cluster: &Cluster) -> Vec<u32> {
    let jobs = cluster.jobs().iter().enumerate();
    let running = jobs.filter(|(_, job)| job.state == JobState::Running);
    running.map(|(id, _)| id as u32).collect()
}

#[test]
fn names_are_unique_and_no_planner_has_the_name_of_a_heuristic() {
    let mut all: Vec<&str> = names()
        .chain(crate::heuristics::names().iter().copied())
        .collect();
    let num = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), num);
}

#[test]
fn every_planner_is_made_from_its_own_defaults_and_refuses_unknown_keys() {
    for entry in entries() {
        let name = entry.info.name;
        let planner = (entry.make)(&(entry.defaults)()).unwrap();
        assert_eq!(planner.name(), name);
        assert_eq!(make(name, &Value::Null).unwrap().name(), name);
        let unknown = serde_json::json!({ "no_such_key": 1 });
        let error = make(name, &unknown).err().unwrap().to_string();
        assert!(
            error.contains("no_such_key") && error.contains(name),
            "{name}: {error}"
        );
    }
}

#[test]
fn what_a_planner_asks_for_is_named_by_flags_and_can_be_added() {
    let asks = Asks {
        preemption: true,
        sharing: true,
        mixed_types: true,
    };
    let bare = Capabilities::DEFAULT;
    assert_eq!(
        asks.missing_from(bare),
        ["--preemption", "--sharing mps", "--mixed-types"]
    );
    assert!(asks.missing_from(asks.added_to(bare)).is_empty());
    assert!(Asks::NOTHING.missing_from(bare).is_empty());
}
