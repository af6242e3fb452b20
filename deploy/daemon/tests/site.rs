//! Random sites: CPUs, host memory, rules, limits, nodes that refuse jobs for hidden reasons. No job is sent where the tables say
//! that it may not go, no limit is exceeded, and each job that fits somewhere by the site's rules starts within a number of
//! rounds.

use std::collections::{BTreeMap, BTreeSet};

use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders, Plan};
use pleach_daemon::snapshot::{
    Allowance, HostSeen, JobSeen, NodeSeen, Phase, Rule, Site, Snapshot, Terms, VERSION,
};
use pleach_daemon::{RoundSettings, fleet};
use pleach_scheduler::ExternalId;
use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::decision::Action;
use proptest::prelude::*;

pub const NOW_S: i64 = 1_795_000_000;
/// Time between rounds, s: a refusal lasts 60 to 600 s.
const TICK_S: i64 = 60;
/// Rounds for which a job runs.
const RUN_ROUNDS: i64 = 2;
/// Rounds within which a job that fits starts: each of the jobs before it may find its node last, and they run one after the
/// other.
const ROUNDS: i64 = 80;

pub fn job(number: u64, gpus: u32, num_nodes: u32) -> JobSeen {
    JobSeen {
        id: ExternalId::number(number),
        phase: Phase::Waiting,
        account: String::new(),
        user: String::new(),
        submit_s: NOW_S - 100 + number as i64,
        start_s: None,
        limit_s: Some(1000 + number as i64),
        num_nodes,
        gpus_per_node: gpus,
        is_packed: false,
        share: None,
        gpu_types: Vec::new(),
        gpu_type: None,
        num_cpus: num_nodes,
        nodes: Vec::new(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    }
}

pub fn node(number: usize, num_gpus: u32) -> NodeSeen {
    NodeSeen {
        name: format!("g{number}"),
        gpu_type: "a100".into(),
        num_gpus,
        num_gpus_used: 0,
        num_cpus_free: 16,
        host: None,
        state: NodeState::Up,
        shared: None,
    }
}

pub fn seen(nodes: Vec<NodeSeen>, jobs: Vec<JobSeen>) -> Snapshot {
    Snapshot {
        version: VERSION,
        taken_s: NOW_S,
        nodes,
        jobs,
        site: Site::default(),
    }
}

fn plan(snapshot: &Snapshot, memory: &Memory, policy: &str) -> Plan {
    let (mut policy, mut fallback) = (
        Loaded::heuristic(policy).unwrap(),
        Loaded::heuristic("fifo").unwrap(),
    );
    let mut deciders = Deciders {
        policy: &mut policy,
        fallback: &mut fallback,
    };
    let settings = RoundSettings::default();
    let plan = round::plan(snapshot, memory, &mut deciders, &settings, false, &mut || false).unwrap();
    assert_eq!(plan.fallback, None);
    plan
}

/// Jobs and nodes of the starts.
fn starts(plan: &Plan) -> Vec<(ExternalId, Vec<String>)> {
    let all = plan.decisions.iter();
    all.filter(|planned| planned.decision.action == Action::Start)
        .map(|planned| (planned.job(), planned.nodes.clone()))
        .collect()
}

/// Where four-GPU jobs of one node go on nodes of four GPUs, shortest first.
fn decided(num_nodes: usize, num_jobs: u64, memory: &Memory) -> Vec<(u64, String)> {
    let nodes = (0..num_nodes).map(|number| node(number, 4)).collect();
    let snapshot = seen(nodes, (0..num_jobs).map(|number| job(number, 4, 1)).collect());
    let plan = plan(&snapshot, memory, "sjf");
    starts(&plan)
        .into_iter()
        .map(|(id, nodes)| (id.to_string().parse().unwrap(), nodes.join(",")))
        .collect()
}

fn refused(nodes: impl Iterator<Item = usize>, jobs: &[u64]) -> Memory {
    let mut memory = Memory::default();
    for node in nodes {
        for job in jobs {
            memory.refused(ExternalId::number(*job), &format!("g{node}"), "no CPUs", NOW_S);
        }
    }
    memory
}

#[test]
fn a_job_that_twelve_nodes_refused_goes_to_the_thirteenth_and_others_to_the_twelve() {
    let order = decided(13, 3, &refused(0..12, &[0]));
    let places: Vec<(u64, &str)> = order.iter().map(|(job, node)| (*job, node.as_str())).collect();
    assert_eq!(places, [(0, "g12"), (1, "g0"), (2, "g1")]);
}

#[test]
fn a_job_that_every_node_refused_costs_nobody_a_node_and_says_why_it_waits() {
    for jobs in [&[0][..], &[0, 1], &[0, 1, 2]] {
        let memory = refused(0..3, jobs);
        let others: Vec<u64> = (jobs.len() as u64..4).take(3).collect();
        let started: Vec<u64> = decided(3, 4, &memory).iter().map(|(job, _)| *job).collect();
        assert_eq!(started, others, "{jobs:?}");
    }
    let snapshot = seen(vec![node(0, 4)], vec![job(0, 4, 1)]);
    let built = fleet::build(&snapshot, &refused(0..1, &[0]), &RoundSettings::default(), false);
    let why = built.unwrap().unwrap().left_out[&ExternalId::number(0)].clone();
    assert_eq!(why, "no node is open to it: g0 refused it: no CPUs");
}

#[test]
fn many_jobs_with_refusals_of_their_own_all_go_where_they_may_in_one_round() {
    let mut memory = Memory::default();
    for job in 0..20_u64 {
        // Each was refused by every node but one, which is one other's too.
        for node in (0..20_u64).filter(|node| *node != job / 2) {
            memory.refused(ExternalId::number(job), &format!("g{node}"), "no CPUs", NOW_S);
        }
    }
    let order = decided(20, 20, &memory);
    assert_eq!(order.len(), 10, "{order:?}");
    for (job, node) in order {
        assert_eq!(node, format!("g{}", job / 2));
    }
}

#[test]
fn two_jobs_that_each_can_go_where_the_other_was_refused_both_start() {
    let mut memory = refused(0..1, &[0]);
    memory.refused(ExternalId::number(1), "g1", "no memory", NOW_S);
    assert_eq!(
        decided(2, 2, &memory),
        [(0, "g1".to_owned()), (1, "g0".to_owned())]
    );
}

#[test]
fn who_holds_back_for_a_job_that_lacks_cpus_waits_for_whom_it_needs() {
    // Four GPUs are free everywhere; the CPUs of both nodes end with their jobs, at 5,000 s and at 9,000 s.
    let host = HostSeen {
        num_cpus: 16,
        memory_mib: 64_000,
        memory_mib_free: 64_000,
    };
    let busy = |number: usize| NodeSeen {
        num_gpus_used: 1,
        num_cpus_free: 2,
        host: Some(host),
        ..node(number, 4)
    };
    let runs = |number: u64, limit_s: i64| JobSeen {
        phase: Phase::Running,
        start_s: Some(NOW_S),
        limit_s: Some(limit_s),
        num_cpus: 14,
        nodes: vec![format!("g{}", number - 1)],
        ..job(number, 1, 1)
    };
    let waits = |number: u64, cpus: u32, limit_s: i64| JobSeen {
        num_cpus: cpus,
        limit_s: Some(limit_s),
        ..job(number, 1, 1)
    };
    // The first needs twelve CPUs of g0 at 5,000 s. A later job that ends before may have two of them, one that ends later may
    // not.
    let jobs = vec![
        runs(1, 5000),
        runs(2, 9000),
        waits(3, 12, 100),
        waits(4, 2, 4000),
        waits(5, 2, 20_000),
    ];
    let plan = plan(&seen(vec![busy(0), busy(1)], jobs), &Memory::default(), "easy");
    let all: Vec<(String, Action)> = plan
        .decisions
        .iter()
        .map(|planned| (planned.job().to_string(), planned.decision.action))
        .collect();
    assert!(
        all.contains(&("3".into(), Action::Reserve)) && all.contains(&("4".into(), Action::Start)),
        "{all:?}"
    );
}

/// A node as (GPUs, CPUs, memory in GB, CPUs of others, whether it is up).
type NodeDraw = (u32, u32, u32, u32, bool);
/// A job as (GPUs, nodes, CPUs on a node, GB on a node, rules as bits, nodes that will refuse it as bits, account).
type JobDraw = (u32, u32, u32, u32, u8, u8, u8);

fn site_of(nodes: &[NodeDraw], rules: &[u8; 3], left: u64) -> (Vec<NodeSeen>, Site) {
    let nodes = nodes
        .iter()
        .enumerate()
        .map(|(number, (gpus, cpus, gb, others, is_up))| NodeSeen {
            num_cpus_free: cpus - others.min(cpus),
            host: Some(HostSeen {
                num_cpus: *cpus,
                memory_mib: gb * 1000,
                memory_mib_free: gb * 1000,
            }),
            state: if *is_up {
                NodeState::Up
            } else {
                NodeState::Draining
            },
            ..node(number, *gpus)
        });
    let rule = |(row, closed): (usize, &u8)| {
        let names: Vec<String> = (0..8)
            .filter(|bit| closed >> bit & 1 == 1)
            .map(|bit| format!("g{bit}"))
            .collect();
        Rule {
            closed: names.join(","),
            why: format!("is closed by rule {row}"),
        }
    };
    let site = Site {
        rules: rules.iter().enumerate().map(rule).collect(),
        allowances: vec![Allowance {
            what: "GrpTRES=gres/gpu of account a1".into(),
            left,
        }],
        ..Site::default()
    };
    (nodes.collect(), site)
}

fn job_of(number: u64, draw: &JobDraw) -> JobSeen {
    let (gpus, num_nodes, cpus, gb, rules, _, account) = draw;
    JobSeen {
        num_cpus: cpus * num_nodes,
        terms: Terms {
            memory_mib: gb * 1000,
            rules: (0..3).filter(|bit| rules >> bit & 1 == 1).collect(),
            takes: if *account == 0 {
                vec![(0, u64::from(gpus * num_nodes))]
            } else {
                Vec::new()
            },
            ..Terms::default()
        },
        ..job(number, *gpus, *num_nodes)
    }
}

/// Nodes that a job may have, by the rules and by hidden refusals.
fn may_have(draw: &JobDraw, rules: &[u8; 3], node: usize) -> bool {
    let by_rules = (0..3).all(|bit| draw.4 >> bit & 1 == 0 || rules[bit] >> node & 1 == 0);
    by_rules && draw.5 >> node & 1 == 0
}

/// Whether a job could run if no other job of the tables were there.
fn could_run(draw: &JobDraw, nodes: &[NodeDraw], rules: &[u8; 3], allowed: u64) -> bool {
    let (gpus, num_nodes, cpus, gb, ..) = *draw;
    let holds = |(row, node): &(usize, &NodeDraw)| {
        let (has, all, memory, others, is_up) = **node;
        is_up && gpus <= has && cpus + others.min(all) <= all && gb <= memory && may_have(draw, rules, *row)
    };
    let is_allowed = draw.6 != 0 || u64::from(gpus * num_nodes) <= allowed;
    is_allowed && nodes.iter().enumerate().filter(holds).count() >= num_nodes as usize
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whoever_fits_somewhere_by_the_rules_of_a_site_starts_within_eighty_rounds(
        nodes in prop::collection::vec((1_u32..5, 2_u32..9, 2_u32..9, 0_u32..4, prop::bool::weighted(0.9)), 1..7),
        rules in any::<[u8; 3]>(),
        jobs in prop::collection::vec(
            (1_u32..5, 1_u32..3, 1_u32..5, 0_u32..6, 0_u8..8, any::<u8>(), 0_u8..3), 1..12
        ),
        allowed in 0_u64..9,
        policy in prop::sample::select(vec!["sjf", "fifo-skip", "easy"]),
    ) {
        let mut memory = Memory::default();
        // When a job began, by its row; none: it waits.
        let mut began: BTreeMap<usize, (i64, Vec<String>)> = BTreeMap::new();
        let mut done: BTreeSet<usize> = BTreeSet::new();
        for round in 0..ROUNDS {
            let now_s = NOW_S + round * TICK_S;
            let over: Vec<usize> = began.iter().filter(|(_, (at, _))| round - at >= RUN_ROUNDS).map(|(row, _)| *row).collect();
            for row in over {
                began.remove(&row);
                done.insert(row);
            }
            let running = |row: &usize| jobs[*row].6 == 0;
            let used: u64 = began.keys().filter(|row| running(row)).map(|row| u64::from(jobs[*row].0 * jobs[*row].1)).sum();
            let (mut seen_nodes, site) = site_of(&nodes, &rules, allowed - used);
            let mut seen_jobs = Vec::new();
            for (row, draw) in jobs.iter().enumerate().filter(|(row, _)| !done.contains(row)) {
                let mut job = job_of(row as u64, draw);
                if let Some((at, names)) = began.get(&row) {
                    (job.phase, job.start_s, job.nodes) = (Phase::Running, Some(NOW_S + at * TICK_S), names.clone());
                    for node in seen_nodes.iter_mut().filter(|node| names.contains(&node.name)) {
                        node.num_gpus_used += draw.0;
                        node.num_cpus_free -= draw.2;
                        node.host.as_mut().unwrap().memory_mib_free -= draw.3 * 1000;
                    }
                }
                seen_jobs.push(job);
            }
            let snapshot = Snapshot { taken_s: now_s, site, ..seen(seen_nodes, seen_jobs) };
            memory.observe(&snapshot);
            let decided = starts(&plan(&snapshot, &memory, policy));
            let mut free: BTreeMap<String, (u32, u32, u32)> = snapshot.nodes.iter().map(|node| {
                let host = node.host.unwrap();
                (node.name.clone(), (node.num_gpus - node.num_gpus_used, node.num_cpus_free, host.memory_mib_free))
            }).collect();
            let mut left = snapshot.site.allowances[0].left;
            for (id, names) in decided {
                let row: usize = id.to_string().parse().unwrap();
                let draw = &jobs[row];
                prop_assert_eq!(names.len(), draw.1 as usize);
                for name in &names {
                    let node: usize = name[1..].parse().unwrap();
                    let by_rules = (draw.0, draw.1, draw.2, draw.3, draw.4, 0, draw.6);
                    prop_assert!(nodes[node].4 && may_have(&by_rules, &rules, node), "{name} is closed to {id}");
                    let (gpus, cpus, memory) = free[name];
                    prop_assert!(gpus >= draw.0 && cpus >= draw.2 && memory >= draw.3 * 1000, "{name} is full");
                    free.insert(name.clone(), (gpus - draw.0, cpus - draw.2, memory - draw.3 * 1000));
                }
                if draw.6 == 0 {
                    prop_assert!(u64::from(draw.0 * draw.1) <= left, "the limit is exceeded");
                    left -= u64::from(draw.0 * draw.1);
                }
                let refuses = names.iter().find(|name| draw.5 >> name[1..].parse::<u32>().unwrap() & 1 == 1);
                match refuses {
                    Some(name) => { memory.refused(id, name, "Resources", now_s); }
                    None => { began.insert(row, (round, names)); }
                }
            }
        }
        for (row, draw) in jobs.iter().enumerate() {
            let has_started = done.contains(&row) || began.contains_key(&row);
            prop_assert!(has_started || !could_run(draw, &nodes, &rules, allowed), "job {row} never started: {draw:?}");
        }
    }
}
