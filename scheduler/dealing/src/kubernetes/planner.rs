//! The policies `kubernetes` and `kubernetes-gangs` on the clock of a cluster.

mod gate;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pleach_scheduler::cluster::{Cluster, JobState, NodeState};
use pleach_scheduler::{ActionKind, JobId, JobLabels, Planner, PolicyError, Problem, Time};

use super::config::KubernetesConfig;
use super::pods::{On, Pods, empty, free_of};
use super::preemption::{Bound, victims};
use super::queue::Queue;
use crate::slurm::{Nodes, Room};
use crate::starts::start_what_fits;

/// From a job to its pods in the queue. *Measured*: the median of recorded runs.
const MADE: Time = Time(20_000);
/// From the end of a pod until those that were refused are tried. *Measured*: 0.02 to 0.04 s, 90 % within 0.28 s.
const FREED: Time = Time(30_000);

/// Where nothing runs and gangs hold nodes in parts, the last of them is taken off its nodes after so long. The real one waits for
/// ever. *Assumed*: an operator deletes it.
const STUCK: Time = Time(3_600_000_000);

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
    /// The state of the draws.
    lot: u64,
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
            lot: config.seed,
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
    fn take_off(&mut self, id: JobId, pods: &mut Pods, is_gone: impl Fn(usize, &On) -> bool, now: Time) {
        let is_gone = |number: &usize| is_gone(*number, &pods.on[*number]);
        let mut gone: Vec<usize> = (0..pods.on.len()).filter(is_gone).collect();
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
        let is_away =
            |_: usize, on: &On| on.is_some_and(|(node, _)| cluster.nodes()[node].state != NodeState::Up);
        let other_nodes = std::mem::replace(&mut self.num_up, num_up) != num_up;
        for (id, mut pods) in std::mem::take(&mut self.jobs) {
            let state = cluster.job(id).state;
            let was = std::mem::replace(&mut pods.seen, state);
            if was != state && matches!(state, JobState::Finished | JobState::Running) {
                (0..pods.on.len()).for_each(|number| self.queue.remove((id, number as u32)));
            }
            match (was, state) {
                (_, JobState::Finished) => {
                    self.wake(now + FREED);
                    continue;
                }
                (_, JobState::Running) => {}
                (JobState::Running, _) => self.take_off(id, &mut pods, |_, _| true, now),
                _ if was != state => self.wake(now + FREED),
                _ if other_nodes => self.take_off(id, &mut pods, is_away, now),
                _ => {}
            }
            self.jobs.insert(id, pods);
        }
        let others = self.others.len();
        self.others
            .retain(|id| cluster.job(*id).state != JobState::Finished);
        if other_nodes || others > self.others.len() {
            self.wake(now + FREED);
        }
        for number in std::mem::replace(&mut self.num_seen, cluster.jobs().len())..cluster.jobs().len() {
            let id = JobId(number as u32);
            if !self.is_gated || cluster.job(id).state == JobState::Running {
                self.see(cluster, id);
            }
        }
    }

    /// A job whose pods come.
    fn see(&mut self, cluster: &Cluster, id: JobId) {
        let now = cluster.now();
        let priority = self.priorities.get(id.index()).copied().unwrap_or(0);
        let state = cluster.job(id).state;
        match Pods::of(cluster, &self.empty, id, priority).filter(|_| state != JobState::Finished) {
            Some(pods) => {
                if state != JobState::Running {
                    self.come(id, &pods, 0..pods.on.len(), now);
                }
                self.jobs.insert(id, pods);
            }
            None => {
                self.others.push(id);
                self.wake(now + FREED);
            }
        }
    }

    /// Takes into the queue what is due; whether there was anything.
    fn take_due(&mut self, now: Time) -> bool {
        let mut is_any = false;
        while let Some((at, pod)) = self.to_come.first().copied().filter(|(at, _)| *at <= now) {
            self.to_come.remove(&(at, pod));
            if let Some(pods) = self.jobs.get(&pod.0)
                && pods.seen != JobState::Running
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
        for pods in self.jobs.values().filter(|pods| pods.is_in_parts()) {
            for (node, _) in pods.on.iter().flatten() {
                nodes.free[*node].less(pods.ask);
            }
        }
        nodes
    }

    /// One of some, by lot: a linear congruential generator with Knuth's constants.
    fn draw<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        self.lot = self
            .lot
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        of.get((self.lot >> 33) as usize % of.len().max(1)).cloned()
    }

    /// Gives nodes to some pods of a job, to all of them or to none.
    fn bind(&mut self, nodes: &mut Nodes, pods: &mut Pods, numbers: Range<usize>, now: Time) -> bool {
        let (mut left, mut bound) = (nodes.clone(), pods.clone());
        for number in numbers {
            let scoring = &self.config.scoring;
            let best = scoring.best(&left, bound.ask, |node| bound.may_be(&left, node));
            let Some(node) = self.draw(&best) else {
                return false;
            };
            left.free[node].less(bound.ask);
            bound.on[number] = Some((node, now));
        }
        (*nodes, *pods) = (left, bound);
        true
    }

    /// Has pods of lower priority removed for one that fits nowhere; whether that makes room.
    fn preempt(&mut self, cluster: &mut Cluster, nodes: &mut Nodes, pods: &Pods) -> bool {
        let lower = |of: &Pods| of.priority < pods.priority;
        if !cluster.capabilities().can(ActionKind::Preempt) || !self.jobs.values().any(lower) {
            return false;
        }
        let mut bound = Vec::new();
        for (id, of) in self.jobs.iter().filter(|(_, of)| lower(of)) {
            for (number, on) in of.on.iter().enumerate() {
                bound.extend(on.map(|(node, since)| Bound {
                    pod: (*id, number),
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
            self.take_off(id, &mut of, |other, _| other == number, cluster.now());
            if of.seen == JobState::Running {
                cluster.preempt(id);
                of.seen = JobState::Pending;
            }
            self.jobs.insert(id, of);
        }
        *nodes = self.nodes(cluster);
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
        let Some(mut pods) = self.jobs.get(&id).cloned() else {
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
        is_stuck.then(|| self.changed + STUCK)
    }
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
            let in_parts = self.jobs.iter().filter(|(_, pods)| pods.is_in_parts());
            let mut those: Vec<(JobId, Pods)> = in_parts.map(|(id, pods)| (*id, pods.clone())).collect();
            // The first stays and is tried before what comes anew: were only the last taken off, it could take the same parts again.
            let stays = usize::from(those.len() > 1);
            for (id, mut pods) in those.drain(stays..) {
                self.take_off(id, &mut pods, |_, _| true, now);
                self.jobs.insert(id, pods);
            }
            self.wake(now);
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
