//! A Slurm in this process: jobs, nodes, limits, and a scheduler that starts what may start. Only [`World::pass`] lets time pass.

use std::collections::{BTreeMap, VecDeque};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::job::{Hold, Job, State};

/// Lines of what happened that a failure prints.
const TOLD_MAX: usize = 200;

pub const USERS: [&str; 3] = ["ann", "bob", "cleo"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    Up,
    Drained,
    Down,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub gpu_type: &'static str,
    pub num_gpus: u32,
    pub num_cpus: u32,
    pub feature: &'static str,
    pub state: NodeState,
}

/// Slurm, and what the daemon has asked of it.
#[derive(Debug)]
pub struct World {
    pub rng: ChaCha8Rng,
    /// Time that has passed, s.
    pub now_s: i64,
    /// What clocks show beyond that, s.
    pub clock_s: i64,
    pub jobs: BTreeMap<u64, Job>,
    pub nodes: Vec<Node>,
    /// Most GPUs of a user at once.
    pub limits: BTreeMap<&'static str, u32>,
    pub next: u64,
    pub next_place: u64,
    /// Whether faults, users and operators are at rest.
    pub is_quiet: bool,
    /// Part of all calls before which a user or an operator does something.
    pub activity: f64,
    /// Jobs that wait and fit, since when.
    pub fits_since: BTreeMap<u64, i64>,
    pub fate: super::faults::Fate,
    pub rules: super::rules::Rules,
    told: VecDeque<String>,
}

impl World {
    pub fn new(seed: u64, rules: super::rules::Rules) -> World {
        let node = |(number, gpu_type, num_gpus, feature): (u32, &'static str, u32, &'static str)| Node {
            name: format!("g{number}"),
            gpu_type,
            num_gpus,
            num_cpus: 4 * num_gpus.max(2),
            feature,
            state: NodeState::Up,
        };
        let nodes = [
            (1, "a100", 4, "nvme"),
            (2, "a100", 4, ""),
            (3, "a100", 4, ""),
            (4, "v100", 8, ""),
            (5, "", 0, "nvme"),
        ];
        World {
            rng: ChaCha8Rng::seed_from_u64(seed),
            now_s: 1_795_000_000,
            clock_s: 0,
            jobs: BTreeMap::new(),
            nodes: nodes.map(node).to_vec(),
            limits: BTreeMap::from([("cleo", 8)]),
            next: 1,
            next_place: 0,
            is_quiet: false,
            activity: 0.0,
            fits_since: BTreeMap::new(),
            fate: super::faults::Fate::default(),
            rules,
            told: VecDeque::new(),
        }
    }

    /// What clocks show, Unix, s.
    pub fn shown_s(&self) -> i64 {
        self.now_s + self.clock_s
    }

    pub fn tell(&mut self, text: String) {
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        let call = self.fate.num_calls;
        self.told.push_back(format!("{} call {call}: {text}", self.now_s));
    }

    pub fn told(&self) -> String {
        self.told.iter().map(|line| line.clone() + "\n").collect()
    }

    pub fn chance(&mut self, part: f64) -> bool {
        self.rng.random_bool(part)
    }

    /// One of so many.
    pub fn draw(&mut self, num: usize) -> usize {
        self.rng.random_range(0..num)
    }

    pub fn used(&self, node: &str) -> (u32, u32) {
        let on = |job: &&Job| job.is_running() && job.nodes.iter().any(|name| name == node);
        let of = |(gpus, cpus), job: &Job| (gpus + job.gpus_per_node, cpus + job.cpus_per_node);
        self.jobs.values().filter(on).fold((0, 0), of)
    }

    /// Time passes: jobs end, and those that wait start.
    pub fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.now_s += 1;
            self.end_due();
        }
        self.schedule();
    }

    fn end_due(&mut self) {
        let (now_s, clock_s) = (self.now_s, self.clock_s);
        let mut ended = Vec::new();
        for job in self.jobs.values_mut().filter(|job| job.is_running()) {
            let ran_s = now_s + clock_s - job.start_s.unwrap_or_default();
            // A clock that was set back lengthens no run by more than Slurm's own limit would.
            let (most_s, word) = if job.run_s <= job.limit_s {
                (job.run_s, "COMPLETED")
            } else {
                (job.limit_s, "TIMEOUT")
            };
            if ran_s >= most_s {
                job.state = State::Ended(word);
                job.end_s = Some(now_s + clock_s);
                ended.push(job.name());
            }
        }
        for name in ended {
            self.tell(format!("{name} ends"));
        }
    }

    /// Starts what may start, first by priority, then by arrival.
    pub fn schedule(&mut self) {
        let order = |job: &Job| (-job.priority(), job.number);
        let may = |job: &&Job| job.is_pending() && job.hold == Hold::Nobody;
        let mut waiting: Vec<((i64, u64), u64)> = self
            .jobs
            .values()
            .filter(may)
            .map(|job| (order(job), job.number))
            .collect();
        waiting.sort_unstable();
        for (_, number) in waiting {
            let job = &self.jobs[&number];
            if job.begin_s > self.now_s {
                self.set_reason(number, "BeginTime");
                continue;
            }
            if self.is_limited(job) {
                self.set_reason(number, "AssocGrpGRES");
                continue;
            }
            match self.room(job) {
                Ok(nodes) => self.start(number, nodes),
                Err(reason) => self.set_reason(number, &reason),
            }
        }
    }

    fn set_reason(&mut self, number: u64, reason: &str) {
        if let Some(job) = self.jobs.get_mut(&number) {
            reason.clone_into(&mut job.reason);
        }
    }

    pub fn is_limited(&self, job: &Job) -> bool {
        let Some(limit) = self.limits.get(job.user) else {
            return false;
        };
        let own = |other: &&Job| other.is_running() && other.user == job.user;
        let used: u32 = self.jobs.values().filter(own).map(Job::num_gpus).sum();
        used + job.num_gpus() > *limit
    }

    /// The nodes that would take a job now, or Slurm's reason.
    pub fn room(&self, job: &Job) -> Result<Vec<String>, String> {
        let takes = |node: &&Node| {
            let (gpus, cpus) = self.used(&node.name);
            node.state == NodeState::Up
                && !job.shuns.split(',').any(|shunned| shunned == node.name)
                && job.gpu_type.is_none_or(|asked| asked == node.gpu_type)
                && job.feature.is_none_or(|asked| asked == node.feature)
                && gpus + job.gpus_per_node <= node.num_gpus
                && cpus + job.cpus_per_node <= node.num_cpus
        };
        let mut names: Vec<String> = self
            .nodes
            .iter()
            .filter(takes)
            .map(|node| node.name.clone())
            .collect();
        if let Some(lacks) = job.nodes_asked.iter().find(|asked| !names.contains(asked)) {
            let is_up = self
                .nodes
                .iter()
                .any(|node| node.name == *lacks && node.state == NodeState::Up);
            return Err(match is_up {
                true => "Resources".into(),
                false => format!("ReqNodeNotAvail, UnavailableNodes:{lacks}"),
            });
        }
        names.sort_by_key(|name| !job.nodes_asked.contains(name));
        if names.len() < job.num_nodes as usize {
            return Err("Resources".into());
        }
        names.truncate(job.num_nodes as usize);
        Ok(names)
    }

    fn start(&mut self, number: u64, nodes: Vec<String>) {
        let shown_s = self.shown_s();
        let Some(job) = self.jobs.get_mut(&number) else {
            return;
        };
        (job.state, job.is_whole) = (State::Running, false);
        (job.start_s, job.nodes) = (Some(shown_s), nodes);
        job.reason = "None".into();
        let text = format!("{} starts on {}", job.name(), job.nodes.join(","));
        self.tell(text);
        self.rules.started();
    }

    /// Ends a running job, or puts it back into the queue.
    pub fn stop(&mut self, number: u64, word: Option<&'static str>, hold: Hold) {
        let (shown_s, now_s) = (self.shown_s(), self.now_s);
        self.next_place += 1;
        let place = self.next_place;
        let Some(job) = self.jobs.get_mut(&number).filter(|job| !job.has_ended()) else {
            return;
        };
        if let Some(word) = word {
            (job.state, job.end_s) = (State::Ended(word), Some(shown_s));
            return;
        }
        // Work that was done is kept, as jobs that write checkpoints do.
        let ran_s = shown_s - job.start_s.unwrap_or(shown_s);
        job.run_s = (job.run_s - ran_s.clamp(0, job.run_s)).max(1);
        (job.state, job.start_s) = (State::Pending, None);
        job.nodes.clear();
        (job.hold, job.place) = (hold, place);
        // A requeued job waits a while before it may start again.
        job.begin_s = now_s + 60;
        job.num_restarts += 1;
    }
}
