//! What placed jobs hold while nodes shrink and vanish: a GPU that breaks, a device plugin that begins anew, a node that is deleted.
//! No GPU that a listed job holds on a node that is there is offered to another job.

use std::collections::BTreeMap;

use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::snapshot::{HostSeen, JobSeen, NodeSeen, Phase, Share, SharedNode, Snapshot, Terms};
use pleach_daemon::{RoundSettings, fleet};
use pleach_scheduler::ExternalId;
use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::decision::Action;
use proptest::prelude::*;

use crate::site::seen;

const NOW_S: i64 = 1_795_000_000;

fn node(number: usize, num_gpus: u32) -> NodeSeen {
    NodeSeen {
        name: format!("g{number}"),
        gpu_type: "a100".into(),
        num_gpus,
        num_gpus_used: 0,
        num_cpus_free: 64,
        host: None,
        state: NodeState::Up,
        shared: None,
    }
}

fn waiting(number: u64, gpus_per_node: u32) -> JobSeen {
    JobSeen {
        id: ExternalId::number(number),
        phase: Phase::Waiting,
        account: String::new(),
        user: String::new(),
        submit_s: NOW_S - 100 + number as i64,
        start_s: None,
        limit_s: Some(1000),
        num_nodes: 1,
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

fn placed(number: u64, gpus_per_node: u32, nodes: &[usize], phase: Phase) -> JobSeen {
    JobSeen {
        start_s: (phase == Phase::Running).then_some(NOW_S - 50),
        phase,
        num_nodes: nodes.len() as u32,
        num_cpus: nodes.len() as u32,
        nodes: nodes.iter().map(|number| format!("g{number}")).collect(),
        ..waiting(number, gpus_per_node)
    }
}

/// Thousandths of GPUs that jobs hold or are given, by node.
type Milli = BTreeMap<String, u64>;

fn add(to: &mut Milli, nodes: &[String], job: &JobSeen) {
    for name in nodes {
        *to.entry(name.clone()).or_default() += u64::from(job.gpus_per_node) * u64::from(job.gpu_milli());
    }
}

/// What a round gives to the jobs that wait.
fn given(snapshot: &Snapshot, policy: &str, settings: &RoundSettings) -> Milli {
    let capabilities = fleet::capabilities(settings);
    let mut policy = Loaded::of(policy, capabilities).unwrap();
    let mut fallback = Loaded::heuristic("fifo").unwrap();
    let mut deciders = Deciders {
        policy: &mut policy,
        fallback: &mut fallback,
    };
    let memory = Memory::default();
    let plan = round::plan(snapshot, &memory, &mut deciders, settings, false, &mut || false).unwrap();
    assert_eq!(plan.fallback, None);
    let mut given = Milli::new();
    for planned in &plan.decisions {
        if planned.decision.action == Action::Start {
            let job = snapshot.jobs.iter().find(|job| job.id == planned.job());
            add(&mut given, &planned.nodes, job.unwrap());
        }
    }
    given
}

/// Names of the nodes that four jobs of eight GPUs are given.
fn given_whole(nodes: Vec<NodeSeen>, jobs: Vec<JobSeen>) -> Vec<String> {
    let four = (100..104).map(|number| waiting(number, 8));
    let snapshot = seen(nodes, jobs.into_iter().chain(four).collect());
    let given = given(&snapshot, "sjf", &RoundSettings::default());
    given.into_keys().collect()
}

#[test]
fn what_a_gang_holds_elsewhere_stays_held_when_one_of_its_gpus_breaks_or_its_node_is_gone() {
    let free = ["g4", "g5", "g6", "g7"];
    for phase in [Phase::Running, Phase::Released { since_s: NOW_S - 5 }] {
        let nodes = || -> Vec<NodeSeen> {
            let used = if phase == Phase::Running { 8 } else { 0 };
            let all = (0..8).map(|number| NodeSeen {
                num_gpus_used: if number < 4 { used } else { 0 },
                ..node(number, 8)
            });
            all.collect()
        };
        let gang = || vec![placed(1, 8, &[0, 1, 2, 3], phase.clone())];
        assert_eq!(given_whole(nodes(), gang()), free, "nothing is wrong");
        for num_gpus in [7, 4, 1] {
            let mut nodes = nodes();
            nodes[0].num_gpus = num_gpus;
            nodes[0].num_gpus_used = nodes[0].num_gpus_used.min(num_gpus);
            assert_eq!(
                given_whole(nodes, gang()),
                free,
                "{num_gpus} GPUs left, {phase:?}"
            );
        }
        let mut without = nodes();
        without.remove(0);
        assert_eq!(given_whole(without, gang()), free, "the node is gone, {phase:?}");
        // A pod that was lost and is not made yet: the gang is larger than its places.
        let mut short = gang();
        (short[0].num_nodes, short[0].is_packed) = (5, true);
        assert_eq!(given_whole(nodes(), short), free, "one place is lost, {phase:?}");
        // An operator names the GPUs of one node anew.
        let mut renamed = nodes();
        renamed[3].gpu_type = "h100".into();
        assert_eq!(given_whole(renamed, gang()), free, "another GPU type, {phase:?}");
        let mut asks = gang();
        asks[0].gpu_type = Some("v100".into());
        assert_eq!(given_whole(nodes(), asks), free, "no GPU of its type, {phase:?}");
    }
}

#[test]
fn cpus_and_memory_of_a_gang_that_lacks_a_gpu_are_not_given_away() {
    let host = HostSeen {
        num_cpus: 16,
        memory_mib: 64_000,
        memory_mib_free: 8_000,
    };
    let busy = |number: usize, num_gpus: u32| NodeSeen {
        num_gpus_used: 4,
        num_cpus_free: 2,
        host: Some(host),
        ..node(number, num_gpus)
    };
    let mut gang = placed(1, 4, &[0, 1], Phase::Running);
    (gang.num_cpus, gang.terms.memory_mib) = (28, 56_000);
    let mut asks = waiting(2, 4);
    asks.num_cpus = 12;
    // Four GPUs of g1 are free, and two CPUs.
    for left in [8, 3] {
        let snapshot = seen(vec![busy(0, left), busy(1, 8)], vec![gang.clone(), asks.clone()]);
        assert!(
            given(&snapshot, "sjf", &RoundSettings::default()).is_empty(),
            "{left}"
        );
    }
}

/// A placed job: GPUs on each node, nodes as bits, whether it runs, whether it asks for a part of a GPU and how large it is.
type JobDraw = (u32, u8, bool, Option<u16>, bool);
/// A node: GPUs, those that are left, whether it is there, is given in shares, keeps its type; GPUs of others.
type NodeDraw = (u32, u32, bool, bool, bool, u32);

fn job_of(number: u64, draw: &JobDraw) -> JobSeen {
    let (gpus, at, is_running, milli, is_packed) = draw;
    let share = milli.map(|gpu_milli| Share {
        shards: 1,
        gpu_milli,
        gpu: Some(*gpus - 1),
    });
    let at: Vec<usize> = (0..5).filter(|bit| at >> bit & 1 == 1).collect();
    let (gpus, at) = match share {
        Some(_) => (1, &at[..1]),
        None => (*gpus, &at[..]),
    };
    let phase = match is_running {
        true => Phase::Running,
        false => Phase::Released { since_s: NOW_S - 9 },
    };
    let job = placed(number, gpus, at, phase);
    JobSeen {
        share,
        is_packed: *is_packed && at.len() > 1,
        ..job
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_gpu_that_a_listed_job_holds_is_offered_whatever_nodes_shrink_or_vanish(
        nodes in prop::collection::vec((1_u32..9, 0_u32..9, prop::bool::weighted(0.8), prop::bool::weighted(0.3),
            prop::bool::weighted(0.8), 0_u32..3), 5),
        jobs in prop::collection::vec((1_u32..9, 1_u8..32, any::<bool>(),
            prop::option::weighted(0.3, 100_u16..1001), any::<bool>()), 0..8),
        asks in prop::collection::vec((1_u32..9, prop::option::weighted(0.4, 100_u16..1001)), 1..12),
        policy in prop::sample::select(vec!["sjf", "easy", "deal:sjf", "las-deal"]),
        types in prop::sample::select(vec![None, Some("a100".to_owned()), Some("v100".to_owned())]),
    ) {
        let mut held = Milli::new();
        let mut running = Milli::new();
        let mut listed: Vec<JobSeen> = Vec::new();
        for (number, draw) in jobs.iter().enumerate() {
            let mut job = job_of(number as u64, draw);
            job.gpu_type.clone_from(&types);
            add(&mut held, &job.nodes, &job);
            if job.phase == Phase::Running {
                add(&mut running, &job.nodes, &job);
            }
            listed.push(job);
        }
        let waits = asks.iter().zip(100..).map(|((gpus, milli), number)| JobSeen {
            share: milli.map(|gpu_milli| Share { shards: 1, gpu_milli, gpu: None }),
            ..waiting(number, if milli.is_some() { 1 } else { *gpus })
        });
        listed.extend(waits);
        let mut there = Vec::new();
        for (number, draw) in nodes.iter().enumerate().filter(|(_, draw): &(usize, &NodeDraw)| draw.2) {
            let (had, left, _, is_shared, keeps_type, others) = *draw;
            let num_gpus = had.min(left).max(1);
            let of_running = running.get(&format!("g{number}")).map_or(0, |milli| milli.div_ceil(1000));
            there.push(NodeSeen {
                num_gpus_used: (of_running as u32 + others).min(num_gpus),
                gpu_type: if keeps_type { "a100" } else { "h100" }.into(),
                shared: is_shared.then_some(SharedNode { gpus_taken: (1 << others.min(num_gpus)) - 1 }),
                ..node(number, num_gpus)
            });
        }
        let snapshot = seen(there, listed);
        let settings = RoundSettings::default();
        for (name, milli) in given(&snapshot, policy, &settings) {
            let node = snapshot.nodes.iter().find(|node| node.name == name).unwrap();
            let number: usize = name[1..].parse().unwrap();
            let all = u64::from(node.num_gpus) * 1000;
            let held = held.get(&name).copied().unwrap_or(0) + 1000 * u64::from(nodes[number].5);
            prop_assert!(held + milli <= all, "{name} has {all}, {held} are held, {milli} were given");
        }
    }
}
