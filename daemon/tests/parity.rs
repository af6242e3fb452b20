//! The simulator's way and the daemon's way to the same cluster: jobs that are submitted, started, stopped and ended one by one,
//! and snapshots of what Slurm would show, made into tables anew each time. Candidates, features, scores and decisions are
//! the same, bit for bit; with whole GPUs alone, and with nodes whose GPUs are given in shares.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Instant;

use pleach_daemon::RoundSettings;
use pleach_daemon::fleet::{self, Fleet};
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::{Decider, Loaded};
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Share, SharedNode, Snapshot, VERSION};
use pleach_daemon::source::shares::gpu_milli;
use pleach_dealing::{RoundDealer, Trust};
use pleach_network::{
    Contract, Layout, LearnedPolicy, NetworkConfig, Normaliser, Provenance, TrainedNetwork,
};
use pleach_scheduler::cluster::{JobState, NodeState};
use pleach_scheduler::observation::Spaces;
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::policy::{CandidateConfig, Policy};
use pleach_scheduler::tree::{Tree, TreePolicy};
use pleach_scheduler::{
    ClassId, Cluster, Decision, Estimate, ExternalId, JobId, Resources, Submission, TenantId, Time,
    heuristics,
};

const EPOCH_S: i64 = 1_795_000_000;

/// Numbers that look random, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A network whose scores depend on every feature.
fn tree() -> TreePolicy {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../checkpoints/reference/PhillyShare-v1-tree.json"
    );
    TreePolicy::new(Tree::load(path.as_ref()).unwrap())
}

fn network() -> Box<dyn Policy> {
    let config = NetworkConfig {
        hidden: 16,
        context: 16,
        heads: 0,
    };
    let schema = pleach_scheduler::features::FeatureSchema::current();
    let spaces = Spaces::plain(schema.num_global(), 64, schema.num_candidate());
    let mut numbers = Numbers(7);
    let num = Layout::new(config, spaces).unwrap().num_parameters();
    let network = TrainedNetwork {
        config,
        contract: Contract::current(spaces, CandidateConfig::default(), "a test"),
        normaliser: Normaliser::default(),
        provenance: Provenance::default(),
        parameters: (0..num)
            .map(|_| numbers.next(2001) as f32 / 2000.0 - 0.5)
            .collect(),
    };
    Box::new(LearnedPolicy::from_network(&network).unwrap())
}

fn loaded(policy: Box<dyn Policy>) -> Loaded {
    Loaded {
        name: policy.name().to_owned(),
        decider: Decider::Policy(policy),
        tree: None,
        selector: None,
        warnings: Vec::new(),
    }
}

fn settings() -> RoundSettings {
    RoundSettings {
        preemption: true,
        nodes_per_rack: 2,
        ..RoundSettings::default()
    }
}

fn node(number: usize, num_gpus: u32) -> NodeSeen {
    NodeSeen {
        name: format!("g{number}"),
        gpu_type: "a100".into(),
        num_gpus,
        num_gpus_used: 0,
        num_cpus_free: 1000,
        shared: None,
        state: NodeState::Up,
    }
}

fn empty(num_nodes: usize) -> Snapshot {
    Snapshot {
        version: VERSION,
        taken_s: EPOCH_S,
        nodes: (0..num_nodes).map(|number| node(number, 4)).collect(),
        jobs: Vec::new(),
    }
}

/// Shards of each GPU that is given in shares.
const SHARDS: u32 = 4;

/// The cluster without jobs; the GPUs of its last nodes are given in shares.
fn cluster_of(num_nodes: usize, num_shared: usize) -> Snapshot {
    let mut snapshot = empty(num_nodes);
    for node in snapshot.nodes.iter_mut().skip(num_nodes - num_shared) {
        node.shared = Some(SharedNode::default());
    }
    snapshot
}

/// What Slurm would show of the simulated cluster. It tells on which GPUs shares run in every other look.
fn shown(cluster: &Cluster, names: &[String], num_shared: usize, now_s: i64) -> Snapshot {
    let mut snapshot = cluster_of(names.len(), num_shared);
    snapshot.taken_s = now_s;
    for id in cluster.active() {
        let job = cluster.job(id);
        let runs = job.state == JobState::Running;
        for slice in &job.placement {
            snapshot.nodes[slice.node.index()].num_gpus_used += slice.num_gpus();
        }
        let (size, gpu_milli) = (job.request.num_gpus, job.request.resources.gpu_milli);
        let is_share = job.request.class == SHARES;
        let told = runs && is_share && now_s % 2 == 0;
        let num_nodes = if size > 4 { size / 4 } else { 1 };
        snapshot.jobs.push(JobSeen {
            id: job.external,
            phase: if runs { Phase::Running } else { Phase::Waiting },
            account: String::new(),
            user: String::new(),
            submit_s: job.submit.0 / 1_000_000,
            start_s: runs.then_some(job.run_start.0 / 1_000_000),
            limit_s: Some(job.request.estimate_s.value as i64),
            num_nodes,
            gpus_per_node: size / num_nodes,
            is_packed: false,
            share: is_share.then(|| Share {
                shards: u32::from(gpu_milli) * SHARDS / 1000,
                gpu_milli,
                gpu: told.then(|| job.placement[0].gpus.trailing_zeros()),
            }),
            gpu_types: Vec::new(),
            gpu_type: None,
            num_cpus: 1,
            nodes: job
                .placement
                .iter()
                .map(|slice| names[slice.node.index()].clone())
                .collect(),
            num_restarts: job.num_preemptions,
            num_tries: 0,
            not_before_s: 0,
            predicted_s: None,
        });
    }
    snapshot
}

/// All that a policy sees at one decision and what it answers, by the names of the jobs.
fn point_of(pass: &Pass, cluster: &Cluster, action: usize) -> Vec<String> {
    let name = |id: JobId| cluster.job(id).external.to_string();
    let set = pass.candidates();
    let mut lines: Vec<String> = set
        .iter()
        .map(|row| {
            let place = set.placement(row);
            let victims: Vec<_> = set.victims(row).iter().map(|id| name(*id)).collect();
            let facts = (
                row.facts,
                row.reserved_type,
                row.heads,
                row.wait_to_fit_s.to_bits(),
            );
            format!(
                "{:?} {:?} {place:?} {victims:?} {facts:?}",
                row.kind,
                row.job.map(name)
            )
        })
        .collect();
    let seen = pass.observation().as_ref();
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    lines.push(format!("{:?} {:?}", bits(seen.global), bits(seen.candidates)));
    lines.push(format!("{:?} {:?} {action}", bits(pass.scores()), seen.mask));
    lines
}

/// What was seen at each decision, and the decisions.
type Played = (Vec<Vec<String>>, Vec<Decision>);

/// A way to play one instant.
type Player = Box<dyn FnMut(&mut Cluster) -> Played>;

fn player(make: impl Fn() -> Box<dyn Policy> + 'static) -> Player {
    let mut policy = make();
    Box::new(move |cluster| run(cluster, policy.as_mut()))
}

/// Deals every instant; what is seen are the scores of all jobs on all types.
fn dealer(name: &'static str) -> Player {
    deals(RoundDealer::by_name(name).unwrap())
}

/// Deals by the passes of a policy.
fn passes(make: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> Player {
    deals(RoundDealer::by_policy("passes", make))
}

fn deals(dealer: RoundDealer) -> Player {
    let trust = Trust {
        num_ended: 10,
        error: 7.0,
    };
    Box::new(move |cluster| {
        let scores = dealer.scores(cluster, trust, true).unwrap();
        let mut points: Vec<String> = Vec::new();
        for id in cluster.active() {
            let kinds = cluster.types_in(cluster.job(id).types);
            let bits: Vec<u64> = kinds.map(|kind| scores.of(cluster, id, kind).to_bits()).collect();
            points.push(format!("{} {bits:?}", cluster.job(id).external));
        }
        points.sort();
        dealer.deal(cluster, trust, true, &[]).unwrap();
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        (vec![points], decisions)
    })
}

fn run(cluster: &mut Cluster, policy: &mut dyn Policy) -> Played {
    let needs = policy.needs();
    let mut pass = Pass::new();
    let (mut points, mut decisions) = (Vec::new(), Vec::new());
    let mut state = pass.open(cluster, &needs);
    while state == PassState::Open {
        let action = pass.decide(cluster, policy).unwrap();
        points.push(point_of(&pass, cluster, action));
        state = pass.act(cluster, &needs, action);
    }
    cluster.take_decisions(&mut decisions);
    (points, decisions)
}

fn plain(decisions: &[Decision]) -> Vec<String> {
    let line = |decision: &Decision| {
        let place = &decision.placement;
        format!(
            "{} {:?} {place:?} {:?}",
            decision.job, decision.action, decision.reservation
        )
    };
    decisions.iter().map(line).collect()
}

/// The class of shares, and that of whole GPUs, where both are given.
const SHARES: ClassId = ClassId(2);
const WHOLE: ClassId = ClassId(1);

/// What a new job asks for: a class, GPUs, and thousandths of each.
fn drawn(numbers: &mut Numbers, num_shared: usize) -> (ClassId, u32, u16) {
    let num_gpus = [1, 1, 2, 3, 4, 4, 8][numbers.next(7) as usize];
    match num_shared {
        0 => (ClassId(0), num_gpus, 1000),
        _ if numbers.next(2) == 0 => (WHOLE, num_gpus, 1000),
        _ => (SHARES, 1, gpu_milli(1 + numbers.next(4) as u32, SHARDS)),
    }
}

/// Follows a simulated cluster for `num_instants`; how many decisions were compared, how many of them stop jobs, and how many
/// start shares beside others.
fn compare(make: &dyn Fn() -> Player, num_instants: usize, num_shared: usize) -> (usize, usize, usize) {
    let settings = settings();
    let mut memory = Memory::default();
    let Fleet {
        mut cluster, nodes, ..
    } = fleet::build(&cluster_of(6, num_shared), &memory, &settings, false)
        .unwrap()
        .unwrap();
    let (mut ours, mut theirs) = (make(), make());
    let mut numbers = Numbers(11);
    let mut ends: BTreeMap<ExternalId, i64> = BTreeMap::new();
    let (mut next, mut now_s, mut num, mut num_stopped, mut num_beside) = (1, EPOCH_S, 0, 0, 0);
    for _ in 0..num_instants {
        now_s += 1 + numbers.next(400) as i64;
        cluster.advance(Time(now_s * 1_000_000));
        for id in cluster.active() {
            let job = cluster.job(id);
            let over = ends.get(&job.external).is_some_and(|end_s| *end_s <= now_s);
            if job.state == JobState::Running && over {
                cluster.finish(id);
            }
        }
        if numbers.next(3) > 0 {
            let (class, num_gpus, gpu_milli) = drawn(&mut numbers, num_shared);
            let limit_s = 60 + numbers.next(20_000);
            let request = Submission {
                tenant: TenantId(0),
                class,
                num_gpus,
                estimate_s: Estimate {
                    value: limit_s as f64,
                    provenance: pleach_scheduler::Provenance::UserLimit,
                },
                resources: Resources {
                    gpu_milli,
                    ..Resources::WHOLE_GPU
                },
            };
            cluster.submit_as(ExternalId::number(next), request).unwrap();
            next += 1;
        }
        let snapshot = shown(&cluster, &nodes, num_shared, now_s);
        memory.observe(&snapshot);
        let mut fleet = fleet::build(&snapshot, &memory, &settings, false)
            .unwrap()
            .unwrap();
        assert!(fleet.left_out.is_empty(), "{:?}", fleet.left_out);
        let simulated = ours(&mut cluster);
        let daemon = theirs(&mut fleet.cluster);
        for (point, other) in simulated.0.iter().zip(&daemon.0) {
            let differs = point.iter().zip(other).find(|(ours, theirs)| ours != theirs);
            assert!(
                differs.is_none() && point.len() == other.len(),
                "at {now_s}: {differs:#?}"
            );
        }
        assert_eq!(simulated.0.len(), daemon.0.len(), "at {now_s}");
        assert_eq!(plain(&simulated.1), plain(&daemon.1), "at {now_s}");
        num += simulated.0.len();
        for decision in &daemon.1 {
            match decision.action {
                pleach_scheduler::decision::Action::Preempt => {
                    num_stopped += 1;
                    memory.preempted(&fleet.cluster, decision.job, decision.row);
                    ends.remove(&decision.job);
                }
                pleach_scheduler::decision::Action::Start => {
                    let id = cluster.find(decision.job).unwrap();
                    // A part of the limit, in whole seconds.
                    let rest_s = cluster.job(id).remaining_s_at(cluster.now());
                    ends.insert(decision.job, now_s + 1 + (rest_s * 0.6) as i64);
                    let of = decision.placement.iter();
                    let names: Vec<_> = of.map(|slice| nodes[slice.node.index()].clone()).collect();
                    memory.started(decision.job, &names, &decision.placement);
                    num_beside += usize::from(cluster.job(id).is_sharing);
                }
                pleach_scheduler::decision::Action::Reserve => {}
            }
        }
    }
    (num, num_stopped, num_beside)
}

#[test]
fn a_network_sees_and_decides_the_same_in_the_simulator_and_in_the_daemon() {
    let (num, ..) = compare(&|| player(network), 600, 0);
    assert!(num > 500, "{num} decisions were compared");
}

#[test]
fn backfill_and_preemption_decide_the_same_in_the_simulator_and_in_the_daemon() {
    let (num, ..) = compare(&|| by_name("easy"), 600, 0);
    assert!(num > 300, "{num} decisions were compared");
    let (num, num_stopped, _) = compare(&|| by_name("srtf"), 600, 0);
    assert!(
        num > 300 && num_stopped > 20,
        "{num} decisions, {num_stopped} stops were compared"
    );
}

fn by_name(name: &'static str) -> Player {
    player(move || heuristics::by_name(name).unwrap())
}

#[test]
fn dealers_score_and_decide_the_same_in_the_simulator_and_in_the_daemon() {
    for name in RoundDealer::NAMES {
        for num_shared in [0, 3] {
            let (num, num_stopped, _) = compare(&|| dealer(name), 600, num_shared);
            assert!(
                num == 600 && num_stopped > 20,
                "{name}: {num} deals, {num_stopped} stops were compared"
            );
        }
    }
}

#[test]
fn passes_over_a_cluster_whose_leases_have_ended_are_the_same_in_the_simulator_and_in_the_daemon() {
    let makes: [&dyn Fn() -> Player; 3] = [&|| passes(|| Box::new(tree())), &|| passes(network), &|| {
        passes(|| heuristics::by_name("sjf").unwrap())
    }];
    for make in makes {
        for num_shared in [0, 3] {
            let (num, num_stopped, _) = compare(make, 600, num_shared);
            assert!(
                num == 600 && num_stopped > 20,
                "{num} deals, {num_stopped} stops were compared"
            );
        }
    }
}

#[test]
fn shares_are_decided_the_same_in_the_simulator_and_in_the_daemon() {
    let makes: [&dyn Fn() -> Player; 3] = [&|| player(network), &|| by_name("easy"), &|| by_name("srtf")];
    for make in makes {
        let (num, _, num_beside) = compare(make, 600, 3);
        assert!(
            num > 300 && num_beside > 50,
            "{num} decisions were compared, {num_beside} shares came beside others"
        );
    }
}

#[test]
fn a_share_goes_to_the_gpu_that_slurm_will_choose_and_never_among_whole_ones() {
    let mut snapshot = cluster_of(2, 1);
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
    // Half of GPU 0, three quarters of GPU 1 and all of GPU 2 are given; GPU 3 is somebody else's.
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

fn waiting(number: u64, num_nodes: u32, gpus_per_node: u32, limit_s: i64) -> JobSeen {
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
    }
}

fn decide(
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
    // Somebody whom the daemon does not know has three GPUs of g0.
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

#[test]
fn a_policy_that_is_too_late_is_answered_for_by_the_fallback_from_the_beginning() {
    let mut snapshot = empty(1);
    snapshot.jobs = vec![
        waiting(1, 1, 2, 900),
        waiting(2, 1, 2, 500),
        waiting(3, 1, 2, 100),
    ];
    assert_eq!(decide(&snapshot, "sjf", &mut || false).0[0].0, "3");
    let mut asked = 0;
    let (starts, fallback) = decide(&snapshot, "sjf", &mut || {
        asked += 1;
        asked > 1
    });
    assert_eq!(
        starts.iter().map(|(job, _)| job.as_str()).collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert!(fallback.unwrap().starts_with("fifo answered: sjf was not done"));
}

/// A cluster of which three quarters of the GPUs are taken, and a queue of its size.
fn large(num: usize) -> Snapshot {
    let mut snapshot = empty(num);
    let mut numbers = Numbers(3);
    for number in 0..num {
        snapshot.nodes[number].num_gpus_used = 3;
        let mut job = waiting(number as u64 + 1, 1, 3, 600 + numbers.next(90_000) as i64);
        job.phase = Phase::Running;
        job.start_s = Some(EPOCH_S - 500);
        job.nodes = vec![format!("g{number}")];
        snapshot.jobs.push(job);
    }
    for number in 0..num {
        let size = 1 + numbers.next(4) as u32;
        snapshot.jobs.push(waiting(
            (num + number) as u64 + 1,
            1,
            size,
            600 + numbers.next(90_000) as i64,
        ));
    }
    snapshot
}

/// Times of our own part of a round; run in release mode: `cargo test --release -p pleach-daemon --test parity -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn time_from_a_snapshot_to_its_decisions() {
    for num in [1000, 10_000] {
        let snapshot = large(num);
        for (name, policy) in [
            ("network", network()),
            ("sjf", heuristics::by_name("sjf").unwrap()),
        ] {
            let mut policy = loaded(policy);
            let mut fallback = Loaded::heuristic("fifo").unwrap();
            for _ in 0..3 {
                let began = Instant::now();
                let built = fleet::build(&snapshot, &Memory::default(), &settings(), false)
                    .unwrap()
                    .unwrap();
                let build = began.elapsed();
                let mut deciders = Deciders {
                    policy: &mut policy,
                    fallback: &mut fallback,
                };
                let began = Instant::now();
                let plan = round::plan(
                    &snapshot,
                    &Memory::default(),
                    &mut deciders,
                    &settings(),
                    false,
                    &mut || false,
                )
                .unwrap();
                let (all, num_starts) = (began.elapsed(), plan.decisions.len());
                println!(
                    "{num} nodes, {} jobs wait: {name}: tables {build:?}, round {all:?}, {num_starts} decisions",
                    built.cluster.num_pending()
                );
            }
        }
    }
}
