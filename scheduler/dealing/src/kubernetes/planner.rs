//! The policies `kubernetes` and `kubernetes-gangs` on the clock of a cluster.

mod gate;

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster::{Cluster, JobState, NodeState};
use pleach_scheduler::{ActionKind, JobId, JobLabels, Planner, PolicyError, Problem, Time};

use super::config::KubernetesConfig;
use super::pods::{Pods, empty, free_of};
use super::preemption::{Bound, victims};
use super::queue::Queue;
use crate::slurm::{Nodes, Room};
use crate::starts::start_what_fits;

/// From a job to its pods in the queue. *Measured*: the median of recorded runs.
const MADE: Time = Time(20_000);
/// From the end of a pod until those that were refused are tried. *Measured*: 0.02 to 0.04 s, 90 % within 0.28 s.
const FREED: Time = Time(30_000);

/// A pod of a job, by its number; of a native gang the first stands for all.
type Pod = (JobId, u32);
/// Request, types and priority of pods that fit nowhere: nor do others alike.
type Full = BTreeSet<(Room, u64, i32)>;

/// The planner.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    config: KubernetesConfig,
    native: bool,
    /// Priorities by the rows of jobs.
    priorities: Vec<i32>,
    queue: Queue<Pod>,
    empty: Nodes,
    jobs: BTreeMap<JobId, Pods>,
    /// Jobs that no equal pods can say, fractions of GPUs among them: the cluster places them.
    others: Vec<JobId>,
    num_seen: usize,
    num_up: usize,
    /// Pods to come.
    to_come: BTreeSet<(Time, Pod)>,
    /// When those that were refused are tried again.
    wakes: Option<Time>,
    /// When something last changed.
    changed: Time,
    num_draws: u64,
    /// Whether only the pods of jobs come that are let in.
    is_gated: bool,
}

impl Kubernetes {
    /// A planner with these settings, for native gangs or for pods alone.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: KubernetesConfig, native: bool) -> Result<Kubernetes, Problem> {
        config.validate()?;
        Ok(Kubernetes {
            config,
            native,
            priorities: Vec::new(),
            queue: Queue::new(0.0),
            empty: Nodes::default(),
            jobs: BTreeMap::new(),
            others: Vec::new(),
            num_seen: 0,
            num_up: 0,
            to_come: BTreeSet::new(),
            wakes: None,
            changed: Time::ZERO,
            num_draws: 0,
            is_gated: false,
        })
    }

    /// Whether a job is placed all or none.
    fn is_native(&self, pods: &Pods) -> bool {
        self.native && pods.on.len() > 1
    }

    /// Pods come into the queue soon.
    fn come(&mut self, id: JobId, pods: &Pods, numbers: impl IntoIterator<Item = usize>, now: Time) {
        let is_native = self.is_native(pods);
        let of = |number: usize| (now + MADE, (id, if is_native { 0 } else { number as u32 }));
        self.to_come.extend(numbers.into_iter().map(of));
    }

    /// Those that were refused are tried again soon.
    fn wake(&mut self, at: Time) {
        self.wakes = Some(self.wakes.map_or(at, |known| known.min(at)));
    }

    /// Takes pods of a job off their nodes, of a native gang all of them: they come anew.
    fn take_off(&mut self, id: JobId, pods: &mut Pods, is_gone: impl Fn(usize, usize) -> bool, now: Time) {
        let on = pods.on.iter().enumerate();
        let gone = on.filter(|(number, on)| on.is_some_and(|(node, _)| is_gone(*number, node)));
        let mut gone: Vec<usize> = gone.map(|(number, _)| number).collect();
        if gone.is_empty() {
            return;
        }
        if self.is_native(pods) {
            gone = (0..pods.on.len()).collect();
        }
        gone.iter().for_each(|number| pods.on[*number] = None);
        self.come(id, pods, gone, now);
        self.wake(now + FREED);
    }

    /// Follows what has happened since the last time.
    fn follow(&mut self, cluster: &Cluster) {
        let now = cluster.now();
        if self.empty.all.is_empty() {
            let zero_s = cluster.spec().seen.time_0_unix_s.unwrap_or(0.0);
            self.queue = Queue::new(zero_s.rem_euclid(1.0));
            self.empty = empty(cluster);
        }
        let up = cluster.nodes().iter().filter(|node| node.state == NodeState::Up);
        let num_up = up.count();
        let is_away = |_: usize, node: usize| cluster.nodes()[node].state != NodeState::Up;
        let other_nodes = std::mem::replace(&mut self.num_up, num_up) != num_up;
        for (id, mut pods) in std::mem::take(&mut self.jobs) {
            let state = cluster.job(id).state;
            let was = std::mem::replace(&mut pods.seen, state);
            match (was, state) {
                (_, JobState::Finished) => {
                    (0..pods.on.len()).for_each(|number| self.queue.remove((id, number as u32)));
                    self.wake(now + FREED);
                    continue;
                }
                (JobState::Running, JobState::Running) => {}
                (_, JobState::Running) => {
                    (0..pods.on.len()).for_each(|number| self.queue.remove((id, number as u32)));
                    pods.adopt(cluster, id);
                }
                (JobState::Running, _) => self.take_off(id, &mut pods, |_, _| true, now),
                _ if was != state => self.wake(now + FREED),
                _ if other_nodes => self.take_off(id, &mut pods, is_away, now),
                _ => {}
            }
            self.jobs.insert(id, pods);
        }
        if other_nodes {
            self.wake(now + FREED);
        }
        self.others
            .retain(|id| cluster.job(*id).state != JobState::Finished);
        self.see_new(cluster);
    }

    fn see_new(&mut self, cluster: &Cluster) {
        let seen = std::mem::replace(&mut self.num_seen, cluster.jobs().len());
        for number in seen..cluster.jobs().len() {
            let id = JobId(number as u32);
            if !self.is_gated || cluster.job(id).state == JobState::Running {
                self.see(cluster, id);
            }
        }
    }

    /// A job whose pods come.
    fn see(&mut self, cluster: &Cluster, id: JobId) {
        let priority = self.priorities.get(id.index()).copied().unwrap_or(0);
        match (
            cluster.job(id).state,
            Pods::of(cluster, &self.empty, id, priority),
        ) {
            (JobState::Finished, _) => {}
            (_, None) => {
                self.others.push(id);
                self.wake(cluster.now() + FREED);
            }
            (JobState::Running, Some(mut pods)) => {
                pods.adopt(cluster, id);
                self.jobs.insert(id, pods);
            }
            (_, Some(pods)) => {
                self.come(id, &pods, 0..pods.on.len(), cluster.now());
                self.jobs.insert(id, pods);
            }
        }
    }

    /// Takes into the queue what is due; whether there was anything.
    fn take_due(&mut self, now: Time) -> bool {
        let mut is_any = false;
        while let Some((at, pod)) = self.to_come.first().copied().filter(|(at, _)| *at <= now) {
            self.to_come.remove(&(at, pod));
            if let Some(pods) = self
                .jobs
                .get(&pod.0)
                .filter(|pods| pods.seen != JobState::Running)
            {
                self.queue.add(pod, pods.priority, at);
                is_any = true;
            }
        }
        if self.wakes.is_some_and(|at| at <= now) {
            self.wakes = None;
            self.queue.wake(now);
            is_any = true;
        }
        is_any
    }

    /// What was due is tried and refused, as others started nothing of it.
    fn refuse_due(&mut self, now: Time) {
        let last = self.to_come.last().map(|(at, _)| *at);
        let Some(at) = last.max(self.wakes).filter(|at| *at <= now) else {
            return;
        };
        self.take_due(at);
        let tried: Vec<Pod> = std::iter::from_fn(|| self.queue.pop(at)).collect();
        tried.into_iter().for_each(|pod| self.queue.refuse(pod, at));
    }

    /// The nodes with what is free on them.
    fn nodes(&self, cluster: &Cluster) -> Nodes {
        let mut nodes = self.empty.clone();
        nodes.free = cluster.nodes().iter().map(free_of).collect();
        for pods in self.jobs.values() {
            let held = if pods.seen == JobState::Running {
                pods.unasked
            } else {
                pods.ask
            };
            for (node, _) in pods.on.iter().flatten() {
                nodes.free[*node].less(held);
            }
        }
        nodes
    }

    /// One of some, by lot.
    fn draw<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        self.num_draws += 1;
        let drawn = mixed(self.config.seed ^ mixed(self.num_draws)) % of.len().max(1) as u64;
        of.get(drawn as usize).cloned()
    }

    /// Gives nodes to some pods of a job, to all of them or to none.
    fn bind(
        &mut self,
        nodes: &mut Nodes,
        pods: &mut Pods,
        numbers: std::ops::Range<usize>,
        now: Time,
    ) -> bool {
        for number in numbers.clone() {
            let best = self
                .config
                .scoring
                .best(nodes, pods.ask, |node| pods.may_be(nodes, node));
            let Some(node) = self.draw(&best) else {
                for other in numbers.start..number {
                    if let Some((node, _)) = pods.on[other].take() {
                        nodes.free[node].more(pods.ask, nodes.all[node]);
                    }
                }
                return false;
            };
            nodes.free[node].less(pods.ask);
            pods.on[number] = Some((node, now));
        }
        true
    }

    /// Has pods of lower priority removed for one that fits nowhere; whether that makes room.
    fn preempt(&mut self, cluster: &mut Cluster, nodes: &mut Nodes, pods: &Pods) -> bool {
        let lower = |of: &Pods| of.priority < pods.priority;
        if !cluster.capabilities().can(ActionKind::Preempt) || !self.jobs.values().any(lower) {
            return false;
        }
        let mut bound = Vec::new();
        for (id, of) in self
            .jobs
            .iter()
            .filter(|(id, of)| lower(of) && !cluster.job(**id).is_lease)
        {
            for (number, on) in of.on.iter().enumerate() {
                bound.extend(on.map(|(node, since)| Bound {
                    pod: (*id, number as u32),
                    node,
                    ask: of.ask,
                    priority: of.priority,
                    since_s: self.queue.second(since),
                }));
            }
        }
        let found = victims(nodes, (pods.ask, pods.priority), &bound, |node| {
            pods.may_be(nodes, node)
        });
        let Some((_, gone)) = self.draw(&found) else {
            return false;
        };
        for (id, number) in gone {
            let Some(mut of) = self.jobs.remove(&id) else {
                continue;
            };
            let before = of.on.clone();
            self.take_off(id, &mut of, |other, _| other == number as usize, cluster.now());
            for (on, before) in of.on.iter().zip(before) {
                if let (None, Some((node, _))) = (on, before) {
                    nodes.free[node].more(of.ask, nodes.all[node]);
                }
            }
            if of.seen == JobState::Running {
                cluster.preempt(id);
                of.seen = JobState::Pending;
            }
            self.jobs.insert(id, of);
        }
        true
    }

    /// Tries a pod, or a native gang; whether it has its place.
    fn attempt(
        &mut self,
        cluster: &mut Cluster,
        nodes: &mut Nodes,
        (id, number): Pod,
        full: &mut Full,
    ) -> bool {
        let Some(mut pods) = self.jobs.remove(&id) else {
            return true;
        };
        let now = cluster.now();
        let alike = (pods.ask, pods.kinds_left(nodes), pods.priority);
        let may_start = cluster.job(id).state == JobState::Pending && cluster.has_room(cluster.demand(id));
        let is_native = self.is_native(&pods);
        let first = number as usize;
        let numbers = if is_native {
            0..pods.on.len()
        } else {
            first..first + 1
        };
        let may_bind = may_start && !full.contains(&alike);
        let mut is_bound = may_bind && self.bind(nodes, &mut pods, numbers.clone(), now);
        if may_bind && !is_bound && !is_native {
            if self.preempt(cluster, nodes, &pods) {
                full.clear();
                is_bound = self.bind(nodes, &mut pods, numbers, now);
            } else {
                full.insert(alike);
            }
        }
        if is_bound && pods.on.iter().all(Option::is_some) {
            match pods.placement(cluster) {
                Some(placement) => {
                    cluster.start(id, placement);
                    pods.seen = JobState::Running;
                }
                None => self.take_off(id, &mut pods, |_, _| true, now),
            }
        }
        self.jobs.insert(id, pods);
        is_bound
    }

    /// Tries all that are in the queue.
    fn pass(&mut self, cluster: &mut Cluster) {
        let (now, mut nodes, mut full) = (cluster.now(), self.nodes(cluster), BTreeSet::new());
        while let Some(pod) = self.queue.pop(now) {
            if !self.attempt(cluster, &mut nodes, pod, &mut full) {
                self.queue.refuse(pod, now);
            }
        }
        start_what_fits(cluster, &self.others);
        self.changed = now;
    }

    /// When gangs in parts, beside which nothing runs, are taken for stuck.
    fn stuck_at(&self, cluster: &Cluster) -> Option<Time> {
        let is_stuck = cluster.num_running() == 0 && self.jobs.values().any(Pods::is_in_parts);
        is_stuck.then(|| self.changed + Time::from_secs_f64(self.config.stuck_s))
    }
}

/// The finisher of SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Planner for Kubernetes {
    fn name(&self) -> &str {
        if self.native {
            "kubernetes-gangs"
        } else {
            "kubernetes"
        }
    }

    fn read_labels(&mut self, labels: &mut dyn Iterator<Item = JobLabels<'_>>) {
        self.priorities = labels.map(|of| self.config.priority(of.qos)).collect();
    }

    fn observe(&mut self, cluster: &Cluster) {
        self.refuse_due(cluster.now());
        self.follow(cluster);
    }

    fn plan_at_once(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let mut copy = self.clone();
        copy.observe(cluster);
        copy.wake(cluster.now());
        copy.take_due(cluster.now() + FREED);
        copy.pass(cluster);
        Ok(())
    }

    fn reaction(&self) -> Time {
        MADE + FREED
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let now = cluster.now();
        self.follow(cluster);
        if self.stuck_at(cluster).is_some_and(|at| at <= now) {
            let last = self.jobs.iter().rev().find(|(_, pods)| pods.is_in_parts());
            if let Some((id, mut pods)) = last.map(|(id, pods)| (*id, pods.clone())) {
                self.take_off(id, &mut pods, |_, _| true, now);
                self.jobs.insert(id, pods);
                // The others are tried before it.
                self.wake(now);
            }
        }
        if self.take_due(now) {
            self.pass(cluster);
        }
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let comes = self.to_come.first().map(|(at, _)| *at);
        [comes, self.wakes, self.stuck_at(cluster)]
            .into_iter()
            .flatten()
            .min()
    }
}
