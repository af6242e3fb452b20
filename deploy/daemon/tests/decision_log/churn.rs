//! A cluster whose jobs come, start and end, as a log sees it: random, and the same for the same seed.

use pleach_daemon::memory::Memory;
use pleach_daemon::order::Order;
use pleach_daemon::record::{Planned, RoundRecord};
use pleach_daemon::snapshot::{Allowance, JobSeen, NodeSeen, Phase, Site, Snapshot, Terms, VERSION};
use pleach_scheduler::cluster::{NodeState, Placement, Slice};
use pleach_scheduler::decision::Action;
use pleach_scheduler::{Decision, Estimate, ExternalId, JobId, NodeId, Provenance};

/// When the log begins, Unix time, s.
pub const EPOCH_S: i64 = 1_795_000_000;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % most.max(1)
    }
}

/// Nodes of eight GPUs; jobs of 1, 2, 4 or 8 on one node.
pub struct Churn {
    pub random: Random,
    record: RoundRecord,
    next_job: u64,
}

impl Churn {
    /// As many jobs wait and run as given.
    pub fn new(seed: u64, num_nodes: u64, num_waiting: u64, num_running: u64) -> Churn {
        let node = |number: u64| NodeSeen {
            name: format!("gpu-{number:04}"),
            gpu_type: ["a100", "h100"][(number % 2) as usize].into(),
            num_gpus: 8,
            num_gpus_used: 0,
            num_cpus_free: 128,
            host: None,
            state: NodeState::Up,
            shared: None,
        };
        let mut churn = Churn {
            random: Random(seed),
            record: RoundRecord {
                round: 0,
                is_shadow: false,
                policy: "PhillyGang-v1-tree".into(),
                fallback: None,
                aside: None,
                snapshot: Snapshot {
                    version: VERSION,
                    taken_s: EPOCH_S,
                    site: Site::default(),
                    nodes: (0..num_nodes).map(node).collect(),
                    jobs: Vec::new(),
                },
                memory: Memory::default(),
                turn: None,
                order: None,
                decisions: Vec::new(),
                observe_s: 0.1,
                decide_s: 0.02,
                apply_s: 0.3,
            },
            next_job: 4_000_000,
        };
        for _ in 0..num_running {
            churn.come();
            let last = churn.record.snapshot.jobs.len() - 1;
            churn.start(last);
        }
        for _ in 0..num_waiting {
            churn.come();
        }
        churn.record.decisions.clear();
        churn
    }

    fn come(&mut self) {
        let user = self.random.below(200);
        let gpus = 1 << self.random.below(4);
        self.next_job += 1 + self.random.below(3);
        let job = JobSeen {
            id: ExternalId::number(self.next_job),
            phase: Phase::Waiting,
            account: format!("team-{}", user % 20),
            user: format!("user-{user}"),
            submit_s: self.record.snapshot.taken_s - self.random.below(2) as i64,
            start_s: None,
            limit_s: Some(600 * (1 + self.random.below(144)) as i64),
            num_nodes: 1,
            gpus_per_node: gpus,
            is_packed: false,
            share: None,
            gpu_type: (self.random.below(5) == 0).then(|| "h100".into()),
            gpu_types: Vec::new(),
            num_cpus: gpus * 8,
            nodes: Vec::new(),
            num_restarts: 0,
            num_tries: 0,
            not_before_s: 0,
            predicted_s: Some(self.random.below(1_000_000) as f64 / 7.0),
            terms: Terms {
                memory_mib: gpus * 1000,
                takes: vec![(0, u64::from(gpus))],
                ..Terms::default()
            },
        };
        let left = Allowance {
            what: "GrpTRES".into(),
            left: self.next_job % 7,
        };
        self.record.snapshot.site.allowances = vec![left];
        self.record.snapshot.jobs.push(job);
    }

    /// A job is decided about and runs in the next look.
    fn start(&mut self, row: usize) {
        let at = self.random.below(self.record.snapshot.nodes.len() as u64) as usize;
        let why_leaf = self.random.below(60) as u32;
        let snapshot = &mut self.record.snapshot;
        let (node, job) = (&mut snapshot.nodes[at], &mut snapshot.jobs[row]);
        node.num_gpus_used = (node.num_gpus_used + job.gpus_per_node).min(8);
        node.num_cpus_free = node.num_cpus_free.saturating_sub(job.num_cpus);
        job.phase = Phase::Running;
        job.start_s = Some(snapshot.taken_s + 1);
        job.nodes = vec![node.name.clone()];
        let slice = Slice {
            node: NodeId(at as u32),
            gpus: ((1_u64 << job.gpus_per_node) - 1)
                << (node.num_gpus_used - job.gpus_per_node.min(node.num_gpus_used)),
        };
        let placement: Placement = [slice].into_iter().collect();
        self.record.memory.started(job.id, &job.nodes, &placement);
        let decision = Decision {
            job: job.id,
            row: JobId(u32::MAX),
            action: Action::Start,
            num_gpus: job.gpus_per_node,
            placement,
            gpu_milli: 1000,
            gpu_memory_mib_per_gpu: 0,
            cpu_milli_per_gpu: 0,
            memory_mib_per_gpu: 0,
            num_copies: 1,
            reservation: None,
            leaf: Some(why_leaf),
        };
        self.record.decisions.push(Planned {
            decision,
            nodes: job.nodes.clone(),
            estimate_s: job.predicted_s.map(|value| Estimate {
                value,
                provenance: Provenance::Predicted,
            }),
            why: format!(
                "wait_s = {} > 1800: estimate_s = {:.1} <= 7200: num_gpus = {} <= 4: fits_one_node: leaf {why_leaf}, value {:.4}",
                snapshot.taken_s - job.submit_s,
                job.predicted_s.unwrap_or(0.0),
                job.gpus_per_node,
                f64::from(why_leaf) / 7.0
            ),
            outcome: "sent".into(),
            refused_by: Vec::new(),
        });
    }

    fn end(&mut self, row: usize) {
        let snapshot = &mut self.record.snapshot;
        let job = snapshot.jobs.remove(row);
        for name in &job.nodes {
            if let Some(node) = snapshot.nodes.iter_mut().find(|node| node.name == *name) {
                node.num_gpus_used = node.num_gpus_used.saturating_sub(job.gpus_per_node);
                node.num_cpus_free = (node.num_cpus_free + job.num_cpus).min(128);
            }
        }
    }

    /// A random job of those that run, or of those that wait: the first behind a random place.
    fn any(&mut self, runs: bool) -> Option<usize> {
        let num = self.record.snapshot.jobs.len();
        let first = self.random.below(num as u64) as usize;
        let mut rows = (first..num).chain(0..first);
        rows.find(|row| (self.record.snapshot.jobs[*row].phase == Phase::Running) == runs)
    }

    /// The next look, `after_s` later: as many jobs came, were started and ended as given.
    pub fn step(&mut self, after_s: i64, (num_came, num_started, num_ended): (u64, u64, u64)) -> RoundRecord {
        self.record.round += 1;
        self.record.snapshot.taken_s += after_s;
        self.record.decisions.clear();
        for _ in 0..num_ended {
            if let Some(row) = self.any(true) {
                self.end(row);
            }
        }
        (0..num_came).for_each(|_| self.come());
        self.record.memory.observe(&self.record.snapshot);
        // What was seen and remembered is of before what was decided.
        let mut record = self.record.clone();
        for _ in 0..num_started {
            if let Some(row) = self.any(false) {
                self.start(row);
            }
        }
        record.decisions.clone_from(&self.record.decisions);
        record
    }

    /// The next look, at which anything may have happened: nodes come, go, drain and change their order, jobs are requeued,
    /// refused, blocked, left alone; clocks jump.
    pub fn anything(&mut self) -> RoundRecord {
        let nums = (self.random.below(4), self.random.below(3), self.random.below(3));
        let after_s = self.random.below(100) as i64 - 10;
        self.step(after_s, nums);
        for _ in 0..self.random.below(4) {
            let (what, bits) = (self.random.below(10), self.random.below(1 << 40));
            self.happen(what, bits);
        }
        self.record.memory.observe(&self.record.snapshot);
        self.record.is_shadow = self.random.below(2) == 0;
        self.record.fallback = (self.random.below(9) == 0).then(|| "easy answered: late".into());
        let jobs: Vec<ExternalId> = self.record.snapshot.jobs.iter().map(|job| job.id).collect();
        self.record.order = (self.random.below(2) == 0).then(|| Order {
            num_jobs: jobs.len(),
            num_ranked: jobs.len(),
            written: jobs.first().map(|job| (job.to_string(), 7)).into_iter().collect(),
            jobs,
            num_left: 3,
        });
        self.record.aside = (self.random.below(9) == 0).then(|| "another type".into());
        self.record.apply_s = self.random.below(1_000_000) as f64 / 3e6;
        self.record.clone()
    }

    fn happen(&mut self, what: u64, bits: u64) {
        let now_s = self.record.snapshot.taken_s;
        let Snapshot { nodes, jobs, .. } = &mut self.record.snapshot;
        let at = (bits % nodes.len().max(1) as u64) as usize;
        let row = (bits % jobs.len().max(1) as u64) as usize;
        match what {
            0 if !nodes.is_empty() => nodes[at].state = NodeState::Draining,
            1 if nodes.len() > 1 => drop(nodes.remove(at)),
            2 => {
                let mut node = nodes[at].clone();
                node.name = format!("new-{bits}");
                nodes.insert(at, node);
            }
            3 => nodes.rotate_left(at),
            4 => jobs.rotate_left(row),
            _ if jobs.is_empty() => {}
            5 => {
                let reason = "waits for \"another\" job".to_owned();
                jobs[row].phase = Phase::Blocked { reason };
            }
            6 => {
                let reason = "asks for features".to_owned();
                jobs[row].phase = Phase::Foreign { reason };
            }
            7 => {
                let id = jobs[row].id;
                let node = nodes[at].name.clone();
                self.record.memory.refused(id, &node, "no CPUs", now_s);
            }
            8 => {
                // Requeued, and listed behind the others.
                let mut job = jobs.remove(row);
                job.phase = Phase::Waiting;
                (job.start_s, job.num_restarts) = (None, job.num_restarts + 1);
                jobs.push(job);
            }
            _ => jobs[row].phase = Phase::Released { since_s: now_s - 1 },
        }
    }
}
