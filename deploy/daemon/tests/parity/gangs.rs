//! Shares and gangs as Slurm gives them.

use super::*;

#[test]
fn a_share_goes_to_the_gpu_that_slurm_will_choose_and_never_among_whole_ones() {
    let mut snapshot = cluster_of(2, 1, false);
    let share = |number: u64, shards: u32| JobSeen {
        share: Some(Share {
            shards,
            gpu_milli: gpu_milli(shards, SHARDS),
            gpu: None,
        }),
        ..waiting(number, 1, 1, 100)
    };
    let runs = |number: u64, shards: u32, gpu: u32| JobSeen {
        phase: Phase::Running,
        start_s: Some(EPOCH_S - 50),
        nodes: vec!["g1".into()],
        share: share(number, shards).share.map(|share| Share {
            gpu: Some(gpu),
            ..share
        }),
        ..share(number, shards)
    };
    // Half of GPU 0, three quarters of GPU 1 and all of GPU 2 are given; GPU 3 is in use by others.
    snapshot.nodes[1].shared = Some(SharedNode { gpus_taken: 0b1000 });
    snapshot.jobs = vec![
        runs(1, 2, 0),
        runs(2, 3, 1),
        runs(3, 4, 2),
        share(4, 1),
        share(5, 1),
        share(6, 1),
        waiting(7, 1, 4, 100),
        share(8, 1),
    ];
    let memory = Memory::default();
    let (mut policy, mut fallback) = (
        Loaded::heuristic("fifo-skip").unwrap(),
        Loaded::heuristic("fifo").unwrap(),
    );
    let mut deciders = Deciders {
        policy: &mut policy,
        fallback: &mut fallback,
    };
    let plan = round::plan(&snapshot, &memory, &mut deciders, &settings(), false, &mut || {
        false
    })
    .unwrap();
    let starts: Vec<_> = plan
        .decisions
        .iter()
        .map(|planned| {
            (
                planned.job().to_string(),
                planned.nodes.join(","),
                planned.decision.placement[0].gpus,
            )
        })
        .collect();
    let start = |job: &str, node: &str, gpus| (job.to_owned(), node.to_owned(), gpus);
    assert_eq!(
        starts,
        [
            start("4", "g1", 0b1),
            start("5", "g1", 0b1),
            start("6", "g1", 0b10),
            start("7", "g0", 0b1111)
        ]
    );
}

pub fn waiting(number: u64, num_nodes: u32, gpus_per_node: u32, limit_s: i64) -> JobSeen {
    JobSeen {
        id: ExternalId::number(number),
        phase: Phase::Waiting,
        account: String::new(),
        user: String::new(),
        submit_s: EPOCH_S - 1_000_000 + number as i64,
        start_s: None,
        limit_s: Some(limit_s),
        num_nodes,
        gpus_per_node,
        is_packed: false,
        share: None,
        gpu_types: Vec::new(),
        gpu_type: None,
        num_cpus: 1,
        nodes: Vec::new(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    }
}

pub fn decide(
    snapshot: &Snapshot,
    policy: &str,
    is_late: &mut dyn FnMut() -> bool,
) -> (Vec<(String, String)>, Option<String>) {
    let mut policy = Loaded::heuristic(policy).unwrap();
    let mut fallback = Loaded::heuristic("fifo").unwrap();
    let mut deciders = Deciders {
        policy: &mut policy,
        fallback: &mut fallback,
    };
    let memory = Memory::default();
    let plan = round::plan(snapshot, &memory, &mut deciders, &settings(), false, is_late).unwrap();
    let starts = plan
        .decisions
        .iter()
        .map(|planned| (planned.job().to_string(), planned.nodes.join(",")));
    (starts.collect(), plan.fallback)
}

#[test]
fn gangs_get_one_node_or_whole_nodes_and_never_what_others_hold() {
    let mut snapshot = empty(3);
    // A job that the daemon does not know has three GPUs of g0.
    snapshot.nodes[0].num_gpus_used = 3;
    snapshot.jobs = vec![
        waiting(1, 1, 3, 100),
        waiting(2, 2, 4, 200),
        waiting(3, 1, 1, 300),
    ];
    let (starts, _) = decide(&snapshot, "sjf", &mut || false);
    // Job 1 takes a part of g1 or g2, so no two whole nodes are left for job 2.
    assert_eq!(starts.len(), 2);
    assert_eq!(starts[0].0, "1");
    assert!(starts[0].1 == "g1" || starts[0].1 == "g2");
    assert_eq!(starts[1].0, "3");
    snapshot.jobs.remove(0);
    let (starts, _) = decide(&snapshot, "sjf", &mut || false);
    assert_eq!(
        starts,
        [
            ("2".to_string(), "g1,g2".to_string()),
            ("3".to_string(), "g0".to_string())
        ]
    );
    snapshot.nodes[1].state = NodeState::Draining;
    let (starts, _) = decide(&snapshot, "sjf", &mut || false);
    assert_eq!(starts, [("3".to_string(), "g0".to_string())]);
}
