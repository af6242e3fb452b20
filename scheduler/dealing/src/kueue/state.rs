//! Queues, quotas and cycles of Kueue on one state, without a clock: each cycle tries the heads of all ClusterQueues.
//!
//! # Source
//! `pkg/scheduler/scheduler.go` and `pkg/cache/queue` of Kueue 0.17, checked against every cycle of recorded runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::config::{KueueConfig, Policy, ResourceGroup, Strategy};
use super::quota::{Amounts, Member, Quota, Quotas, RESOURCES};
use super::workload::{Assignment, Group, Held, Mode, Outcome, Workload};

/// A waiting workload's place: priority, second of creation, UID.
type Place = (Reverse<i64>, i64, u64, u32);

#[derive(Clone, Debug, Default)]
struct Queue {
    active: BTreeSet<Place>,
    /// Those that were refused and wait for a flush.
    inadmissible: BTreeSet<Place>,
    /// The one that preempts is the head until it is admitted.
    preempting: Option<u32>,
}

/// ClusterQueues, cohorts and workloads.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) config: KueueConfig,
    /// Whether workloads may be preempted at all.
    pub(super) preempts: bool,
    pub(super) quotas: Quotas,
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
        let names: Vec<&str> = config.flavors.iter().map(|flavor| flavor.name.as_str()).collect();
        let (mut cohorts, mut quotas) = (BTreeMap::new(), Quotas::default());
        for queue in &config.cluster_queues {
            let root = config.root(&queue.cohort_name);
            let num = cohorts.len();
            quotas.queues.push(Member {
                cohort: (!root.is_empty()).then(|| *cohorts.entry(root).or_insert(num)),
                quotas: quotas_of(&queue.resource_groups, &names),
                usage: vec![0; names.len() * RESOURCES],
                weight: queue.fair_sharing.weight,
            });
        }
        quotas.cohorts = vec![vec![0; names.len() * RESOURCES]; cohorts.len()];
        for cohort in &config.cohorts {
            let known = cohorts.get(config.root(&cohort.name));
            for (place, quota) in quotas_of(&cohort.resource_groups, &names).iter().enumerate() {
                known
                    .into_iter()
                    .for_each(|cohort| quotas.cohorts[*cohort][place] += quota.nominal);
            }
        }
        let mask = |of: &str| {
            let known = types.iter().zip(0..).filter(|(name, _)| *name == of);
            match of.is_empty() || types.len() == 1 {
                true => u64::MAX,
                false => known.fold(0, |mask, (_, kind)| mask | 1_u64 << kind),
            }
        };
        let queues = config.cluster_queues.iter();
        State {
            preempts,
            quotas,
            groups: queues
                .map(|queue| groups_of(&queue.resource_groups, &names))
                .collect(),
            flavours: config
                .flavors
                .iter()
                .map(|flavor| mask(&flavor.gpu_type))
                .collect(),
            held: BTreeMap::new(),
            queues: vec![Queue::default(); config.cluster_queues.len()],
            waiting: BTreeMap::new(),
            config,
        }
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
            .map_or_else(|| of(name).or(alone), |queue| of(&queue.cluster_queue))
    }

    /// The value of a priority class, or of a number; 0 where it is neither.
    #[must_use]
    pub fn priority(&self, class: &str) -> i64 {
        let known = self.config.priorities.get(class).copied();
        known.or_else(|| class.parse().ok()).unwrap_or(0)
    }

    /// A workload comes, or comes back.
    pub fn submit(&mut self, work: Workload) {
        self.waiting.insert(work.job, work);
        self.queues[work.queue].active.insert(place_of(&work));
    }

    /// Whether a workload could ever have its quota.
    #[must_use]
    pub fn could_fit(&self, work: &Workload) -> bool {
        self.groups[work.queue].iter().all(|group| {
            group.flavours.iter().any(|flavour| {
                let most = |resource: &usize| {
                    self.quotas
                        .most_and_left(work.queue, flavour * RESOURCES + resource)
                        .0
                };
                let fits = group
                    .resources
                    .iter()
                    .all(|resource| work.asks[*resource] <= most(resource));
                fits && work.kinds & self.flavours[*flavour] != 0
            })
        })
    }

    /// Pods ended that held so much; the first queue of the cohort that may have room now. A workload that waits is withdrawn.
    pub fn give_back(&mut self, job: u32, asks: [i64; 3]) -> Option<usize> {
        self.leave(job);
        self.waiting.remove(&job);
        let held = self.held.get_mut(&job)?;
        let queue = held.work.queue;
        let part = |(place, amount): &(usize, i64)| (*place, asks[place % RESOURCES].min(*amount));
        let less: Amounts = held.usage.iter().map(part).collect();
        held.usage
            .iter_mut()
            .zip(&less)
            .for_each(|(of, (_, less))| of.1 -= less);
        held.usage.retain(|(_, amount)| *amount > 0);
        if held.usage.is_empty() {
            self.held.remove(&job);
        }
        self.quotas.count(queue, &less, -1);
        self.quotas.sharing(queue).next()
    }

    /// The pods of an evicted workload are gone: it waits again.
    pub fn evicted(&mut self, job: u32) -> Option<usize> {
        let work = self.held.get(&job)?.work;
        let freed = self.give_back(job, [i64::MAX; 3]);
        self.submit(work);
        freed
    }

    /// Those that were refused in a queue and its cohort are tried again.
    pub fn flush(&mut self, queue: usize) {
        for other in self.quotas.sharing(queue) {
            let queue = &mut self.queues[other];
            queue.active.append(&mut queue.inadmissible);
        }
    }

    /// The heads of the ClusterQueues.
    #[must_use]
    pub fn heads(&self) -> Vec<u32> {
        let head = |queue: &Queue| {
            let is_active = |job: &u32| {
                self.waiting
                    .get(job)
                    .is_some_and(|of| queue.active.contains(&place_of(of)))
            };
            queue
                .preempting
                .filter(is_active)
                .or_else(|| queue.active.first().map(|place| place.3))
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
                entry.found.borrows,
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
            let is_first = !victims.iter().any(|job| gone.contains(job));
            let (outcome, taken) = match found.mode {
                Mode::NoFit => (Outcome::Refused, Amounts::new()),
                mode if mode < Mode::Fit && victims.is_empty() => {
                    (Outcome::Refused, self.reserved(&work, &found))
                }
                _ if !(is_first
                    && self.without(&all, |state| state.quotas.fits(work.queue, &found.usage, true))) =>
                {
                    (Outcome::Again, Amounts::new())
                }
                Mode::Fit => (Outcome::Admitted(found.kinds), found.usage.clone()),
                _ => {
                    gone.extend(&victims);
                    let new = victims.into_iter().filter(|job| !self.held[job].evicted);
                    (Outcome::Preempts(new.collect()), found.usage.clone())
                }
            };
            self.quotas.count(work.queue, &taken, 1);
            added.push((work.queue, taken));
            done.push((work.job, outcome, found.usage));
        }
        for (queue, amounts) in added {
            self.quotas.count(queue, &amounts, -1);
        }
        done
    }

    /// What a workload holds back that waits and cannot be sure to get its quota back.
    fn reserved(&self, work: &Workload, found: &Assignment) -> Amounts {
        if self.config.cluster_queues[work.queue]
            .preemption
            .reclaim_within_cohort
            == Policy::Any
        {
            return Amounts::new();
        }
        let queue = &self.quotas.queues[work.queue];
        let of = |(place, amount): &(usize, i64)| {
            let Quota {
                nominal, borrowing, ..
            } = queue.quotas[*place];
            let own = nominal - queue.usage[*place];
            let most = match found.borrows {
                true => borrowing.map_or(*amount, |limit| own + limit),
                false => own.max(0),
            };
            (*place, most.min(*amount))
        };
        found.usage.iter().map(of).collect()
    }

    /// The next entry where shares decide: first one that would not borrow, then the least share with its head, the highest
    /// priority, the oldest.
    fn fairest(&mut self, entries: &[Entry]) -> usize {
        let mut keys = Vec::new();
        for entry in entries {
            let (queue, usage) = (entry.work.queue, &entry.found.usage);
            self.quotas.count(queue, usage, 1);
            let is_borrowing = usage
                .iter()
                .any(|(place, _)| self.quotas.borrows(queue, (*place, 0)));
            keys.push((is_borrowing, self.quotas.share(queue)));
            self.quotas.count(queue, usage, -1);
        }
        let first = (0..keys.len()).min_by(|one, two| {
            let (one, two) = (&keys[*one], &keys[*two]);
            one.0.cmp(&two.0).then(one.1.cmp(&two.1))
        });
        first.unwrap_or(0)
    }

    /// A cycle, whose outcomes are carried out.
    pub fn cycle(&mut self, now_s: i64) -> Vec<(u32, Outcome)> {
        let tried = self.looked_at().into_iter().map(|(job, outcome, usage)| {
            match &outcome {
                Outcome::Admitted(_) => self.take(job, usage, now_s),
                Outcome::Preempts(victims) => self.preempt(job, victims),
                Outcome::Again => {}
                Outcome::Refused => self.refuse(job),
            }
            (job, outcome)
        });
        tried.collect()
    }

    /// A waiting workload has its quota, whether it fits or not.
    pub fn admit(&mut self, job: u32, now_s: i64) {
        if let Some(work) = self.waiting.get(&job).copied() {
            let found = self.assign(&work);
            self.take(job, found.usage, now_s);
        }
    }

    fn take(&mut self, job: u32, usage: Amounts, since_s: i64) {
        self.leave(job);
        if let Some(work) = self.waiting.remove(&job) {
            self.quotas.count(work.queue, &usage, 1);
            let evicted = false;
            self.held.insert(
                job,
                Held {
                    work,
                    usage,
                    since_s,
                    evicted,
                },
            );
        }
    }

    /// A waiting workload waits for the place of others.
    pub fn preempt(&mut self, job: u32, victims: &[u32]) {
        for victim in victims {
            self.held
                .get_mut(victim)
                .into_iter()
                .for_each(|held| held.evicted = true);
        }
        if let Some(queue) = self.best_effort(job) {
            queue.preempting = Some(job);
        }
    }

    /// A waiting workload does not fit: in a queue of best effort it waits for a flush.
    pub fn refuse(&mut self, job: u32) {
        if let Some(place) = self.waiting.get(&job).map(place_of)
            && let Some(queue) = self.best_effort(job)
        {
            queue.active.remove(&place);
            queue.inadmissible.insert(place);
        }
    }

    /// So do those of its queue that ask for the same: they would be refused at the same instant.
    pub fn refuse_alike(&mut self, job: u32) {
        let Some(of) = self.waiting.get(&job).copied() else {
            return;
        };
        let is_alike = |work: &Workload| {
            (work.asks, work.kinds) == (of.asks, of.kinds) && (!self.preempts || work.priority == of.priority)
        };
        let active = self.queues[of.queue].active.iter().map(|place| place.3);
        let alike: Vec<u32> = active.filter(|job| is_alike(&self.waiting[job])).collect();
        alike.into_iter().for_each(|job| self.refuse(job));
    }

    /// The queue of a waiting workload, where it is of best effort.
    fn best_effort(&mut self, job: u32) -> Option<&mut Queue> {
        let queue = self.waiting.get(&job)?.queue;
        let strategy = self.config.cluster_queues[queue].queueing_strategy;
        (strategy == Strategy::BestEffortFIFO).then(|| &mut self.queues[queue])
    }

    /// Takes a workload out of the lines.
    fn leave(&mut self, job: u32) {
        if let Some(work) = self.waiting.get(&job) {
            let queue = &mut self.queues[work.queue];
            queue.active.remove(&place_of(work));
            queue.inadmissible.remove(&place_of(work));
        }
    }
}

fn place_of(work: &Workload) -> Place {
    (Reverse(work.priority), work.created_s, work.uid, work.job)
}

/// Quotas of all places.
fn quotas_of(groups: &[ResourceGroup], names: &[&str]) -> Vec<Quota> {
    let mut quotas = vec![Quota::default(); names.len() * RESOURCES];
    for flavor in groups.iter().flat_map(|group| &group.flavors) {
        let number = names.iter().position(|name| *name == flavor.name);
        for quota in flavor.resources.iter().filter(|_| number.is_some()) {
            if let Some((resource, units)) = quota.resource() {
                let whole = |value: f64| (value * units).round() as i64;
                quotas[number.unwrap_or(0) * RESOURCES + resource] = Quota {
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
fn groups_of(groups: &[ResourceGroup], names: &[&str]) -> Vec<Group> {
    let group = |group: &ResourceGroup| {
        let quotas = group
            .flavors
            .first()
            .into_iter()
            .flat_map(|flavor| &flavor.resources);
        let flavours = group.flavors.iter();
        Group {
            resources: quotas.filter_map(|quota| Some(quota.resource()?.0)).collect(),
            flavours: flavours
                .filter_map(|of| names.iter().position(|name| *name == of.name))
                .collect(),
        }
    };
    groups.iter().map(group).collect()
}
