//! The controller's own time of a round at 1,000 nodes and 1,000 waiting pods, or 5,000 suspended Jobs behind 4,000 pods, from the lists
//! of the API server (as they are read) to the decisions, also where nothing or one pod has changed since the last round. Requests are
//! not in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, Node, NodeCondition, NodeStatus, Pod, PodSchedulingGate, PodSpec, PodTemplateSpec,
    ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use pleach_daemon::fleet;
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_kubernetes::Settings;
use pleach_kubernetes::memo::Memo;
use pleach_kubernetes::observe::{Lists, observe};

const NOW_S: i64 = 1_795_000_000;
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../checkpoints/reference/");

fn quantities(list: &[(&str, String)]) -> BTreeMap<String, Quantity> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), Quantity(value.clone())))
        .collect()
}

fn node(number: usize) -> Node {
    let name = format!("n{number:04}");
    let labels = [
        ("kubernetes.io/hostname", name.as_str()),
        ("nvidia.com/gpu.product", "A100"),
    ];
    Node {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(
                labels
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..ObjectMeta::default()
        },
        spec: None,
        status: Some(NodeStatus {
            allocatable: Some(quantities(&[
                ("cpu", "64".into()),
                ("memory", "512Gi".into()),
                ("nvidia.com/gpu", "8".into()),
            ])),
            conditions: Some(vec![NodeCondition {
                type_: "Ready".into(),
                status: "True".into(),
                ..NodeCondition::default()
            }]),
            ..NodeStatus::default()
        }),
    }
}

/// A pod that waits, or runs on a node.
fn pod(number: usize, gpus: usize, node: Option<usize>) -> Pod {
    let uid = format!("123e4567-e89b-42d3-a456-{number:012x}");
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("p{number}")),
            namespace: Some("team".into()),
            uid: Some(uid),
            resource_version: Some("1".into()),
            creation_timestamp: Timestamp::from_second(NOW_S - 1000 - number as i64)
                .ok()
                .map(Time),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            active_deadline_seconds: Some(600 + (number * 7919 % 90_000) as i64),
            containers: vec![Container {
                resources: Some(ResourceRequirements {
                    limits: Some(quantities(&[("nvidia.com/gpu", gpus.to_string())])),
                    requests: Some(quantities(&[("cpu", "4".into()), ("memory", "16Gi".into())])),
                    ..ResourceRequirements::default()
                }),
                ..Container::default()
            }],
            node_name: node.map(|node| format!("n{node:04}")),
            scheduling_gates: node.is_none().then(|| {
                vec![PodSchedulingGate {
                    name: "pleach/hold".into(),
                }]
            }),
            ..PodSpec::default()
        }),
        status: None,
    }
}

/// A Job of one pod that waits without it.
fn suspended(number: usize) -> Job {
    let Pod { metadata, spec, .. } = pod(number, 2, None);
    let template = PodTemplateSpec {
        metadata: None,
        spec: spec.map(|spec| PodSpec {
            scheduling_gates: None,
            ..spec
        }),
    };
    let notes = [("pleach/suspended".to_owned(), "0".to_owned())];
    Job {
        metadata: ObjectMeta {
            name: Some(format!("j{number}")),
            annotations: Some(notes.into()),
            ..metadata
        },
        spec: Some(JobSpec {
            suspend: Some(true),
            template,
            ..JobSpec::default()
        }),
        status: None,
    }
}

fn rounds(criterion: &mut Criterion) {
    let settings = Settings {
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    let num = 1000;
    let waiting = Lists {
        nodes: (0..num).map(node).map(Arc::new).collect(),
        pods: (0..4 * num)
            .map(|number| Arc::new(pod(number, 2, Some(number / 4))))
            .collect(),
        jobs: (4 * num..9 * num).map(suspended).map(Arc::new).collect(),
        ..Lists::default()
    };
    let observed = observe(&waiting, &settings, NOW_S);
    assert_eq!(observed.snapshot.jobs.len(), 9 * num);
    criterion.bench_function("observe/4000 pods and 5000 suspended Jobs", |bencher| {
        bencher.iter(|| observe(&waiting, &settings, NOW_S).snapshot.jobs.len());
    });
    let mut memo = Memo::default();
    let traces = observed.traces;
    criterion.bench_function("observe/the same again", |bencher| {
        bencher.iter(|| {
            memo.observe(&traces, &waiting, &settings, NOW_S)
                .snapshot
                .jobs
                .len()
        });
    });
    let mut other = waiting.clone();
    criterion.bench_function("observe/the same with another pod", |bencher| {
        bencher.iter(|| {
            other.pods[0] = Arc::new(pod(0, 2, Some(0)));
            memo.observe(&traces, &other, &settings, NOW_S)
                .snapshot
                .jobs
                .len()
        });
    });
    let lists = Lists {
        nodes: (0..num).map(node).map(Arc::new).collect(),
        pods: (0..num)
            .map(|number| pod(number, 6, Some(number)))
            .chain((num..2 * num).map(|number| pod(number, 1 + number * 31 % 4, None)))
            .map(Arc::new)
            .collect(),
        ..Lists::default()
    };
    criterion.bench_function("observe/1000", |bencher| {
        bencher.iter(|| observe(&lists, &settings, NOW_S).snapshot.jobs.len());
    });
    for (name, policy) in [
        ("sjf", "sjf".to_owned()),
        (
            "tree",
            format!("{REFERENCE}../../tests/trees/PhillyGang-v1-tree.json"),
        ),
    ] {
        let loaded = Loaded::of(&policy, fleet::capabilities(&settings.rounds));
        let (Ok(mut policy), Ok(mut fallback)) = (loaded, Loaded::heuristic("easy")) else {
            println!("{name}: {policy} cannot be read");
            continue;
        };
        criterion.bench_function(&format!("observe to decision/{name}/1000"), |bencher| {
            bencher.iter(|| {
                let observed = observe(&lists, &settings, NOW_S);
                let mut memory = Memory::default();
                memory.observe(&observed.snapshot);
                let mut deciders = Deciders {
                    policy: &mut policy,
                    fallback: &mut fallback,
                };
                let plan = round::plan(
                    &observed.snapshot,
                    &memory,
                    &mut deciders,
                    &settings.rounds,
                    false,
                    &mut || false,
                )?;
                assert!(
                    plan.fallback.is_none() && plan.decisions.len() > 100,
                    "too little was decided"
                );
                Ok::<usize, pleach_daemon::Error>(plan.decisions.len())
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = rounds
}
criterion_main!(benches);
