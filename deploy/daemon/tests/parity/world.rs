//! What the daemon sees of a simulated cluster.

use super::*;

pub const EPOCH_S: i64 = 1_795_000_000;

/// Numbers that look random, the same on every machine.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A network whose scores depend on every feature.
pub fn tree() -> TreePolicy {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyShare-v1-tree.json"
    );
    TreePolicy::new(Tree::load(path.as_ref()).unwrap())
}

pub fn network() -> Box<dyn Policy> {
    let spaces = Spaces::of(&pleach_scheduler::features::DECISION_1, 64);
    let network = any_network(Contract::current(spaces, CandidateConfig::default(), "a test"));
    Box::new(LearnedPolicy::from_network(&network).unwrap())
}

/// A dealer of a file over the rows of a deal: a tree with a key, or a network.
pub fn learned_dealer(is_tree: bool) -> RoundDealer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder
        .path()
        .join(if is_tree { "tree.json" } else { "network.ckpt" });
    if is_tree {
        let number = |name: &str| deal_schema().joined_index(name).unwrap() as u16;
        let leaf = |id: u32, score: f32| Node::Leaf {
            id,
            score,
            samples: 0,
            weight: 0.0,
        };
        let nodes = [
            Node::Split {
                feature: number("service"),
                threshold: 6.0,
                left: 1,
                right: 2,
            },
            leaf(0, 1.0),
            leaf(1, 0.0),
        ];
        let meta = TreeMeta {
            name: "young first".into(),
            tie_key: TieKey::Index,
            key_weights: vec![KeyWeight {
                feature: number("rest"),
                weight: 1.0,
            }],
            needs: Needs::full(),
            estimates: Vec::new(),
            trained_by: BTreeMap::new(),
        };
        let tree = Tree::over(deal_schema(), meta, &nodes).unwrap();
        tree.save(&path).unwrap();
    } else {
        let spaces = Spaces::of(&deal_schema().views[0], 64);
        let contract = Contract::over(deal_schema(), spaces, CandidateConfig::default(), "a test");
        any_network(contract).save(&path).unwrap();
    }
    let loaded = Loaded::of(path.to_str().unwrap(), fleet::capabilities(&settings())).unwrap();
    match loaded.decider {
        Decider::Dealing(dealing) => dealing.dealer().clone(),
        _ => panic!("what scores a deal deals"),
    }
}

fn any_network(contract: Contract) -> TrainedNetwork {
    let config = NetworkConfig {
        hidden: 16,
        context: 16,
        heads: 0,
        ..NetworkConfig::default()
    };
    let mut numbers = Numbers(7);
    let num = Layout::new(config, contract.spaces).unwrap().num_parameters();
    TrainedNetwork {
        config,
        contract,
        normaliser: Normaliser::default(),
        provenance: Provenance::default(),
        parameters: (0..num)
            .map(|_| numbers.next(2001) as f32 / 2000.0 - 0.5)
            .collect(),
        graph: None,
    }
}

pub fn loaded(policy: Box<dyn Policy>) -> Loaded {
    Loaded {
        name: policy.name().to_owned(),
        decider: Decider::Policy(policy),
        tree: None,
        warnings: Vec::new(),
        of_several_types: None,
    }
}

pub fn settings() -> RoundSettings {
    RoundSettings {
        preemption: true,
        nodes_per_rack: 2,
        ..RoundSettings::default()
    }
}

pub fn node(number: usize, num_gpus: u32) -> NodeSeen {
    NodeSeen {
        name: format!("g{number}"),
        gpu_type: "a100".into(),
        num_gpus,
        num_gpus_used: 0,
        num_cpus_free: 1000,
        host: None,
        shared: None,
        state: NodeState::Up,
    }
}

pub fn empty(num_nodes: usize) -> Snapshot {
    Snapshot {
        version: VERSION,
        taken_s: EPOCH_S,
        site: Site::default(),
        nodes: (0..num_nodes).map(|number| node(number, 4)).collect(),
        jobs: Vec::new(),
    }
}

/// Shards of each GPU that is given in shares.
pub const SHARDS: u32 = 4;

/// CPUs and memory of each node, where they count.
pub const HOST: HostSeen = HostSeen {
    num_cpus: 12,
    memory_mib: 60_000,
    memory_mib_free: 60_000,
};

/// Nodes that rules close, where there are some.
pub const CLOSED: [&str; 3] = ["g[0-1]", "g5", "g[2-4]"];

/// The cluster without jobs; the GPUs of its last nodes are given in shares.
pub fn cluster_of(num_nodes: usize, num_shared: usize, has_hosts: bool) -> Snapshot {
    let mut snapshot = empty(num_nodes);
    if has_hosts {
        for node in &mut snapshot.nodes {
            node.num_cpus_free = HOST.num_cpus;
            node.host = Some(HOST);
        }
        let rule = |closed: &str| Rule {
            closed: closed.into(),
            why: "is closed".into(),
        };
        snapshot.site.rules = CLOSED.map(rule).into();
    }
    for node in snapshot.nodes.iter_mut().skip(num_nodes - num_shared) {
        node.shared = Some(SharedNode::default());
    }
    snapshot
}

/// What Slurm would show of the simulated cluster. It tells on which GPUs shares run in every other look.
pub fn shown(
    (cluster, rules): (&Cluster, &BTreeMap<ExternalId, Vec<u32>>),
    names: &[String],
    (num_shared, has_hosts): (usize, bool),
    now_s: i64,
) -> Snapshot {
    let mut snapshot = cluster_of(names.len(), num_shared, has_hosts);
    snapshot.taken_s = now_s;
    for id in cluster.active() {
        let job = cluster.job(id);
        let runs = job.state == JobState::Running;
        let asked = job.request.resources;
        let (cpus, memory_mib) = (asked.cpu_cores as u32, (asked.memory_gib * 1024.0) as u32);
        for slice in &job.placement {
            let node = &mut snapshot.nodes[slice.node.index()];
            node.num_gpus_used += slice.num_gpus();
            node.num_cpus_free -= cpus * slice.num_gpus();
            if let Some(host) = &mut node.host {
                host.memory_mib_free -= memory_mib * slice.num_gpus();
            }
        }
        let (size, gpu_milli) = (job.request.num_gpus, job.request.resources.gpu_milli);
        let is_share = job.request.class == SHARES;
        let told = runs && is_share && now_s % 2 == 0;
        let tasks = job.request.resources.tasks;
        let each = u32::from(tasks.gpus_per_task);
        let is_one = tasks.is_any() || tasks.nodes_max == 1;
        let num_nodes = if is_one { 1 } else { size / each };
        // A name for each pod.
        let num_on = |slice: &Slice| {
            if is_one { 1 } else { slice.num_gpus() / each }
        };
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
            is_packed: !is_one && tasks.tasks_per_node_max == 0,
            share: is_share.then(|| Share {
                shards: u32::from(gpu_milli) * SHARDS / 1000,
                gpu_milli,
                gpu: told.then(|| job.placement[0].gpus.trailing_zeros()),
            }),
            gpu_types: Vec::new(),
            gpu_type: None,
            num_cpus: if has_hosts { cpus * size } else { 1 },
            nodes: job
                .placement
                .iter()
                .flat_map(|slice| {
                    let name = names[slice.node.index()].clone();
                    std::iter::repeat_n(name, num_on(slice) as usize)
                })
                .collect(),
            num_restarts: job.num_preemptions,
            num_tries: 0,
            not_before_s: 0,
            predicted_s: None,
            terms: Terms {
                memory_mib: memory_mib * size / num_nodes,
                rules: rules.get(&job.external).cloned().unwrap_or_default(),
                ..Terms::default()
            },
        });
    }
    snapshot
}
