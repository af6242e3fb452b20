//! Queues, quotas and cycles of Kueue on one state, without a clock: each cycle tries the heads of all ClusterQueues.
//!
//! # Source
//! `pkg/scheduler/scheduler.go` and `pkg/cache/queue` of Kueue 0.17, checked against every cycle of recorded runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::assign::{Assignment, Group, Mode};
use super::config::{KueueConfig, Policy, ResourceGroup, Strategy};
use super::quota::{Amounts, Quota, RESOURCES, Share, Tree};
use super::victims::reserved;

/// A workload as its ClusterQueue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its number in the tables of whoever asks.
    pub job: u32,
    /// Its ClusterQueue.
    pub queue: usize,
    /// The higher the earlier.
    pub priority: i64,
    /// When it was created, whole seconds: Kubernetes keeps no more.
    pub created_s: i64,
    /// What decides within a second.
    pub uid: u64,
    /// Thousandths of GPUs and cores, and MiB.
    pub asks: [i64; 3],
    /// GPU types on which it can run, as a bit mask.
    pub kinds: u64,
}

/// What became of a workload in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has its quota, on these GPU types.
    Admitted(u64),
    /// It waits until these are gone; those that were evicted before are not named.
    Preempts(Vec<u32>),
    /// Another one of the cycle was before it; it is tried again.
    Again,
    /// It waits.
    Refused,
}

/// An admitted workload.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) work: Workload,
    pub(super) usage: Amounts,
    pub(super) since_s: i64,
    pub(super) evicted: bool,
}

/// Waiting workloads in order: priority, second of creation, UID.
type Line = BTreeSet<(Reverse<i64>, i64, u64, u32)>;

#[derive(Clone, Debug, Default)]
struct Queue {
    active: Line,
    /// Those that were refused and wait for a flush.
    inadmissible: Line,
    /// The one that preempts is the head until it is admitted.
    preempting: Option<u32>,
}

/// ClusterQueues, cohorts and workloads.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) config: KueueConfig,
    /// Whether workloads may be preempted at all.
    pub(super) preempts: bool,
    pub(super) tree: Tree,
    /// Groups of resources by ClusterQueue.
    pub(super) groups: Vec<Vec<Group>>,
    /// GPU types of each flavour.
    pub(super) flavours: Vec<u64>,
    pub(super) held: BTreeMap<u32, Held>,
    queues: Vec<Queue>,
    waiting: BTreeMap<u32, Workload>,
}

struct Entry {
    work: Workload,
    found: Assignment,
    victims: Vec<u32>,
}

impl State {
    /// Empty queues of a site whose GPU types have these names. Settings must be valid.
    #[must_use]
    pub fn new(config: KueueConfig, types: &[String], preempts: bool) -> State {
        let names: Vec<String> = config.flavors.iter().map(|flavor| flavor.name.clone()).collect();
        let num = names.len() * RESOURCES;
        let mut cohorts: Vec<&str> = config.cohorts.iter().map(|cohort| cohort.name.as_str()).collect();
        let parents = config.cohorts.iter().map(|cohort| cohort.parent_name.as_str());
        for name in parents.chain(
            config
                .cluster_queues
                .iter()
                .map(|queue| queue.cohort_name.as_str()),
        ) {
            if !name.is_empty() && !cohorts.contains(&name) {
                cohorts.push(name);
            }
        }
        let num_queues = config.cluster_queues.len();
        let place = |name: &str| {
            let cohort = cohorts.iter().position(|of| *of == name)?;
            Some(num_queues + cohort)
        };
        let mut tree = Tree::default();
        for queue in &config.cluster_queues {
            let quotas = quotas(&queue.resource_groups, &names, num);
            tree.push(place(&queue.cohort_name), quotas, queue.fair_sharing.weight);
        }
        for cohort in &config.cohorts {
            let quotas = quotas(&cohort.resource_groups, &names, num);
            tree.push(place(&cohort.parent_name), quotas, cohort.fair_sharing.weight);
        }
        for _ in config.cohorts.len()..cohorts.len() {
            tree.push(None, vec![Quota::default(); num], 1.0);
        }
        tree.tie();
        let mask = |of: &str| {
            let known = types.iter().zip(0..).filter(|(name, _)| *name == of);
            match of.is_empty() || types.len() == 1 {
                true => u64::MAX,
                false => known.fold(0, |mask, (_, kind)| mask | 1_u64 << kind),
            }
        };
        State {
            preempts,
            tree,
            groups: config
                .cluster_queues
                .iter()
                .map(|queue| groups(&queue.resource_groups, &names))
                .collect(),
            flavours: config
                .flavors
                .iter()
                .map(|flavor| mask(&flavor.gpu_type))
                .collect(),
            held: BTreeMap::new(),
            queues: vec![Queue::default(); num_queues],
            waiting: BTreeMap::new(),
            config,
        }
    }

    pub(super) fn num_queues(&self) -> usize {
        self.queues.len()
    }

    /// The ClusterQueue of a LocalQueue; of one that is not known the only one of its namespace, or of the site. None: Kueue does
    /// not manage it.
    #[must_use]
    pub fn queue(&self, namespace: &str, name: &str) -> Option<usize> {
        let of = |name: &str| {
            self.config
                .cluster_queues
                .iter()
                .position(|queue| queue.name == name)
        };
        let mut own = self
            .config
            .local_queues
            .iter()
            .filter(|queue| queue.namespace == namespace);
        let named = own.clone().find(|queue| queue.name == name);
        let only = own.next().filter(|_| own.next().is_none());
        let alone = (self.queues.len() == 1).then_some(0);
        named
            .or(only)
            .and_then(|queue| of(&queue.cluster_queue))
            .or_else(|| of(name))
            .or(alone)
    }

    /// The value of a priority class, or of a number; 0 where it is neither.
    #[must_use]
    pub fn priority(&self, class: &str) -> i64 {
        let known = self.config.priorities.get(class).copied();
        known.or_else(|| class.parse().ok()).unwrap_or(0)
    }

    /// The root of a ClusterQueue's cohorts: what is flushed together.
    #[must_use]
    pub fn root(&self, queue: usize) -> usize {
        self.tree.root(queue)
    }

    /// A workload comes, or comes back.
    pub fn submit(&mut self, work: Workload) {
        self.waiting.insert(work.job, work);
        self.queues[work.queue].active.insert(key(&work));
    }

    /// Whether a workload could ever have its quota.
    #[must_use]
    pub fn could_fit(&self, work: &Workload) -> bool {
        self.groups[work.queue].iter().all(|group| {
            group.flavours.iter().any(|flavour| {
                let fits = |resource: &usize| {
                    work.asks[*resource] <= self.tree.most(work.queue, flavour * RESOURCES + resource)
                };
                work.kinds & self.flavours[*flavour] != 0 && group.resources.iter().all(fits)
            })
        })
    }

    /// Pods ended that held so much; the root whose queues may have room now. Of a workload that waits: it is withdrawn.
    pub fn give_back(&mut self, job: u32, asks: [i64; 3]) -> Option<usize> {
        self.leave(job);
        self.waiting.remove(&job);
        let held = self.held.get_mut(&job)?;
        let queue = held.work.queue;
        let mut less = Amounts::new();
        for (place, amount) in &mut held.usage {
            let part = asks[*place % RESOURCES].min(*amount);
            *amount -= part;
            less.push((*place, part));
        }
        held.usage.retain(|(_, amount)| *amount > 0);
        if held.usage.is_empty() {
            self.held.remove(&job);
        }
        self.tree.remove(queue, &less);
        Some(self.root(queue))
    }

    /// The pods of an evicted workload are gone: it waits again.
    pub fn evicted(&mut self, job: u32) -> Option<usize> {
        let work = self.held.get(&job)?.work;
        let root = self.give_back(job, [i64::MAX; 3]);
        self.submit(work);
        root
    }

    /// Those that were refused are tried again.
    pub fn flush(&mut self, root: usize) {
        for queue in 0..self.queues.len() {
            if self.tree.root(queue) == root {
                let mut back = std::mem::take(&mut self.queues[queue].inadmissible);
                self.queues[queue].active.append(&mut back);
            }
        }
    }

    /// The heads of the ClusterQueues.
    #[must_use]
    pub fn heads(&self) -> Vec<u32> {
        let head = |queue: &Queue| {
            let first = queue.active.first().map(|key| key.3);
            let is_active = |job: &u32| queue.active.contains(&key(&self.waiting[job]));
            queue.preempting.filter(is_active).or(first)
        };
        self.queues.iter().filter_map(head).collect()
    }

    /// What a cycle would make of the heads, in the order in which it takes them.
    pub fn tried(&mut self) -> Vec<(u32, Outcome)> {
        self.looked_at()
            .into_iter()
            .map(|(job, outcome, _)| (job, outcome))
            .collect()
    }

    fn looked_at(&mut self) -> Vec<(u32, Outcome, Amounts)> {
        let mut entries = Vec::new();
        for job in self.heads() {
            let work = self.waiting[&job];
            let found = self.assign(&work);
            let victims = match found.mode {
                Mode::NoFit | Mode::Fit => Vec::new(),
                _ => self.victims(&work, &found.usage, &found.contested),
            };
            entries.push(Entry { work, found, victims });
        }
        entries.sort_by_key(|entry| {
            (
                entry.found.borrowing,
                Reverse(entry.work.priority),
                entry.work.created_s,
            )
        });
        let (mut done, mut gone, mut added) = (Vec::new(), Vec::new(), Vec::new());
        while !entries.is_empty() {
            let next = if self.config.fair_sharing {
                self.fairest(&entries)
            } else {
                0
            };
            let Entry { work, found, victims } = entries.remove(next);
            let all: Vec<u32> = gone.iter().chain(&victims).copied().collect();
            let usage = found.usage;
            let outcome = match found.mode {
                Mode::NoFit => Outcome::Refused,
                Mode::NoVictims | Mode::Preempt | Mode::Reclaim if victims.is_empty() => {
                    let policy = self.config.cluster_queues[work.queue]
                        .preemption
                        .reclaim_within_cohort;
                    if policy != Policy::Any {
                        let kept = reserved(self, &work, &usage, found.borrowing > 0);
                        self.tree.add(work.queue, &kept);
                        added.push((work.queue, kept));
                    }
                    Outcome::Refused
                }
                _ if victims.iter().any(|job| gone.contains(job)) => Outcome::Again,
                _ if !self.without(&all, |state| state.tree.fits(work.queue, &usage, true)) => Outcome::Again,
                mode => {
                    self.tree.add(work.queue, &usage);
                    added.push((work.queue, usage.clone()));
                    gone.extend(&victims);
                    match mode {
                        Mode::Fit => Outcome::Admitted(found.kinds),
                        _ => Outcome::Preempts(
                            victims
                                .into_iter()
                                .filter(|job| !self.held[job].evicted)
                                .collect(),
                        ),
                    }
                }
            };
            done.push((work.job, outcome, usage));
        }
        for (queue, amounts) in added.into_iter().rev() {
            self.tree.remove(queue, &amounts);
        }
        done
    }

    /// Who comes next where shares decide: from the root down the branch that would not borrow, has the least share with its head,
    /// the highest priority, the oldest head.
    fn fairest(&mut self, entries: &[Entry]) -> usize {
        let root = self.root(entries[0].work.queue);
        let mut shares = BTreeMap::new();
        for (number, entry) in entries.iter().enumerate() {
            let queue = entry.work.queue;
            self.tree.add(queue, &entry.found.usage);
            let path: Vec<usize> = std::iter::once(queue).chain(self.tree.above(queue)).collect();
            for pair in path.windows(2) {
                shares.insert((pair[1], number), self.tree.share(pair[0]));
            }
            self.tree.remove(queue, &entry.found.usage);
        }
        self.winner(root, entries, &shares).unwrap_or(0)
    }

    fn winner(
        &self,
        cohort: usize,
        entries: &[Entry],
        shares: &BTreeMap<(usize, usize), Share>,
    ) -> Option<usize> {
        let of_child = |child: &usize| match *child < self.num_queues() {
            true => entries.iter().position(|entry| entry.work.queue == *child),
            false => self.winner(*child, entries, shares),
        };
        let of = |number: usize| {
            let (entry, share) = (&entries[number], &shares[&(cohort, number)]);
            let is_borrowing = entry
                .found
                .usage
                .iter()
                .any(|(place, _)| share.borrowed.contains(place));
            let work = &entry.work;
            (is_borrowing, share, (Reverse(work.priority), work.created_s))
        };
        let children = self.tree.children(cohort).iter().filter_map(of_child);
        children.min_by(|one, two| {
            let (one, two) = (of(*one), of(*two));
            one.0.cmp(&two.0).then(one.1.cmp(two.1)).then(one.2.cmp(&two.2))
        })
    }

    /// A cycle, whose outcomes are carried out.
    pub fn cycle(&mut self, now_s: i64) -> Vec<(u32, Outcome)> {
        let tried = self.looked_at();
        let carried_out = tried.into_iter().map(|(job, outcome, usage)| {
            match &outcome {
                Outcome::Admitted(_) => self.take(job, usage, now_s),
                Outcome::Preempts(victims) => self.preempt(job, victims),
                Outcome::Again => {}
                Outcome::Refused => self.refuse(job),
            }
            (job, outcome)
        });
        carried_out.collect()
    }

    /// A waiting workload has its quota, whether it fits or not; on which GPU types.
    pub fn admit(&mut self, job: u32, now_s: i64) -> u64 {
        let Some(work) = self.waiting.get(&job).copied() else {
            return u64::MAX;
        };
        let found = self.assign(&work);
        self.take(job, found.usage, now_s);
        found.kinds
    }

    fn take(&mut self, job: u32, usage: Amounts, now_s: i64) {
        self.leave(job);
        let Some(work) = self.waiting.remove(&job) else {
            return;
        };
        self.tree.add(work.queue, &usage);
        let queue = &mut self.queues[work.queue];
        queue.preempting = queue.preempting.filter(|of| *of != job);
        let held = Held {
            work,
            usage,
            since_s: now_s,
            evicted: false,
        };
        self.held.insert(job, held);
    }

    /// A waiting workload waits for the place of others.
    pub fn preempt(&mut self, job: u32, victims: &[u32]) {
        for victim in victims {
            if let Some(held) = self.held.get_mut(victim) {
                held.evicted = true;
            }
        }
        let Some(work) = self.waiting.get(&job) else {
            return;
        };
        if self.is_best_effort(work.queue) {
            self.queues[work.queue].preempting = Some(job);
        }
    }

    /// A waiting workload does not fit: in a queue of best effort it waits for a flush.
    pub fn refuse(&mut self, job: u32) {
        let Some(work) = self
            .waiting
            .get(&job)
            .copied()
            .filter(|work| self.is_best_effort(work.queue))
        else {
            return;
        };
        self.leave(job);
        self.queues[work.queue].inadmissible.insert(key(&work));
    }

    /// What asks for the same as a workload that was refused, and waits in the same queue, would be refused at the same instant.
    pub fn refuse_alike(&mut self, job: u32) {
        let Some(of) = self.waiting.get(&job).copied() else {
            return;
        };
        let is_alike = |work: &Workload| {
            (work.asks, work.kinds) == (of.asks, of.kinds) && (!self.preempts || work.priority == of.priority)
        };
        let active = self.queues[of.queue].active.iter().map(|key| key.3);
        let alike: Vec<u32> = active.filter(|job| is_alike(&self.waiting[job])).collect();
        alike.into_iter().for_each(|job| self.refuse(job));
    }

    fn is_best_effort(&self, queue: usize) -> bool {
        self.config.cluster_queues[queue].queueing_strategy == Strategy::BestEffortFIFO
    }

    /// Takes a workload out of the lines.
    fn leave(&mut self, job: u32) {
        if let Some(work) = self.waiting.get(&job) {
            let queue = &mut self.queues[work.queue];
            queue.active.remove(&key(work));
            queue.inadmissible.remove(&key(work));
        }
    }
}

fn key(work: &Workload) -> (Reverse<i64>, i64, u64, u32) {
    (Reverse(work.priority), work.created_s, work.uid, work.job)
}

/// Quotas of all places.
fn quotas(groups: &[ResourceGroup], names: &[String], num: usize) -> Vec<Quota> {
    let mut quotas = vec![Quota::default(); num];
    for flavor in groups.iter().flat_map(|group| &group.flavors) {
        let Some(number) = names.iter().position(|name| *name == flavor.name) else {
            continue;
        };
        for quota in &flavor.resources {
            if let Some((resource, units)) = quota.resource() {
                let whole = |value: f64| (value * units).round() as i64;
                quotas[number * RESOURCES + resource] = Quota {
                    nominal: whole(quota.nominal_quota),
                    borrowing: quota.borrowing_limit.map(whole),
                    lending: quota.lending_limit.map(whole),
                };
            }
        }
    }
    quotas
}

/// Groups of resources, of those that count.
fn groups(groups: &[ResourceGroup], names: &[String]) -> Vec<Group> {
    let group = |group: &ResourceGroup| {
        let quotas = group
            .flavors
            .first()
            .into_iter()
            .flat_map(|flavor| &flavor.resources);
        let flavours = group
            .flavors
            .iter()
            .filter_map(|of| names.iter().position(|name| *name == of.name));
        Group {
            resources: quotas
                .filter_map(|quota| quota.resource().map(|(resource, _)| resource))
                .collect(),
            flavours: flavours.collect(),
        }
    };
    groups.iter().map(group).collect()
}
