//! The policy `slurm`: the two schedulers and the priorities on the clock of a cluster.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, NodeState};
use pleach_scheduler::{ActionKind, JobId, JobLabels, Planner, PolicyError, Problem, Time};

use super::asks::{ask_of, modelled, start};
use super::config::SlurmConfig;
use super::factors::Facts;
use super::fair_share::Tree;
use super::limits::Allowed;
use super::nodes::{Nodes, Room};
use super::rules::Rules;
use super::schedule::{State, Waiting};
use crate::starts::start_what_fits;

/// Slurm wakes backfill each second after a cycle, and begins one where something has changed.
const POLL: Time = Time(1_000_000);

/// A job's user, account, partition, quality of service, features and licences.
#[derive(Clone, Debug, Default)]
struct Labels([Box<str>; 6], f64);

impl Labels {
    fn view(&self) -> JobLabels<'_> {
        let [user, account, partition, qos, constraint, licences] = &self.0;
        JobLabels {
            user,
            account,
            partition,
            qos,
            constraint,
            licences,
            held_s: self.1,
        }
    }
}

/// What is kept of a job that waits or runs.
#[derive(Clone, Debug)]
struct Row {
    waiting: Waiting,
    facts: Facts,
    /// When it was submitted.
    submit: Time,
    /// Since when it may run, whole seconds.
    eligible_s: i64,
    priority: u32,
    /// Its user in the tree.
    member: usize,
    /// Since when it runs, whole seconds.
    since_s: Option<i64>,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Slurm {
    config: SlurmConfig,
    labels: Vec<Labels>,
    rules: Option<Rules>,
    rows: BTreeMap<JobId, Row>,
    /// Jobs that no equal parts of nodes can say, fractions of GPUs among them, as they were seen: the cluster places them.
    others: BTreeMap<JobId, JobState>,
    num_seen: usize,
    /// Nodes that were there.
    num_up: usize,
    tree: Tree,
    /// The last recomputation.
    computed_at: Option<Time>,
    main_at: Option<Time>,
    cycle_at: Time,
    has_changed: bool,
    /// Time 0 of the cluster's clock on Slurm's, whole seconds: it rounds by its own.
    zero_s: i64,
}

impl Slurm {
    /// A planner with these settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: SlurmConfig) -> Result<Slurm, Problem> {
        config.validate()?;
        let mut tree = Tree::of(&config.shares);
        let priority = config.priority.as_ref();
        if let Some(priority) = priority.filter(|_| config.shares.iter().any(|share| share.usage > 0)) {
            tree.rank(priority.fair_tree);
        }
        Ok(Slurm {
            tree,
            config,
            labels: Vec::new(),
            rules: None,
            rows: BTreeMap::new(),
            others: BTreeMap::new(),
            num_seen: 0,
            num_up: 0,
            computed_at: None,
            main_at: None,
            cycle_at: Time::ZERO,
            has_changed: false,
            zero_s: 0,
        })
    }

    fn whole_s(&self, at: Time) -> i64 {
        self.zero_s + at.0.div_euclid(1_000_000)
    }

    /// Learns what the cluster is, once.
    fn begin(&mut self, cluster: &Cluster) {
        self.zero_s = cluster.spec().seen.time_0_unix_s.unwrap_or(0.0).floor() as i64;
        self.cycle_at = cluster.now() + POLL;
        let tenants = cluster.tenants().iter().map(|tenant| Allowed {
            gpus: (!cluster.borrowing()).then_some(u64::from(tenant.quota_gpus)),
            ..Allowed::default()
        });
        let nodes = cluster.nodes();
        self.num_up = nodes.iter().filter(|node| node.state == NodeState::Up).count();
        let all = nodes.iter().map(|node| Room {
            gpus: node.num_gpus,
            cpu_milli: modelled(node.cpu_milli, node.cpu_milli),
            memory_mib: modelled(node.memory_mib, node.memory_mib),
        });
        let kinds = nodes.iter().map(|node| node.gpu_type.0);
        self.rules = Some(Rules::new(
            &self.config,
            Nodes::new(all.collect(), kinds.collect()),
            tenants.collect(),
        ));
    }

    /// Follows what has happened since the last time; whether there was anything.
    fn follow(&mut self, cluster: &Cluster) -> bool {
        if self.rules.is_none() {
            self.begin(cluster);
        }
        let zero_s = self.zero_s;
        for (id, row) in self.rows.iter_mut().filter(|(_, row)| row.since_s.is_none()) {
            let job = cluster.job(*id);
            if job.state == JobState::Running {
                row.since_s = Some(zero_s + job.run_start.0.div_euclid(1_000_000));
            }
        }
        let is_recomputed = self.recompute(cluster.now());
        let is_news = self.see(cluster) | is_recomputed;
        self.has_changed |= is_news;
        is_news
    }

    /// Sees jobs that came, ended or were requeued; whether there were any.
    fn see(&mut self, cluster: &Cluster) -> bool {
        let now_s = self.whole_s(cluster.now());
        let computed_s = self.computed_at.map(|at| self.whole_s(at));
        let mut is_news = self.see_others(cluster);
        let mut gone: Vec<JobId> = Vec::new();
        for (id, row) in &mut self.rows {
            let job = cluster.job(*id);
            match (job.state, row.since_s) {
                (JobState::Finished, _) => gone.push(*id),
                (JobState::Pending | JobState::Held, Some(since_s)) => {
                    is_news = true;
                    if self.config.enforce_limits {
                        used(
                            &mut self.tree,
                            (self.rules.as_ref(), &self.config),
                            row,
                            (since_s, computed_s),
                            now_s,
                        );
                    }
                    row.since_s = None;
                    row.eligible_s = now_s + self.config.requeue_delay_s.ceil() as i64;
                }
                _ => {}
            }
        }
        for id in gone {
            is_news = true;
            let Some(row) = self.rows.remove(&id) else {
                continue;
            };
            if let (true, Some(since_s)) = (self.config.enforce_limits, row.since_s) {
                used(
                    &mut self.tree,
                    (self.rules.as_ref(), &self.config),
                    &row,
                    (since_s, computed_s),
                    now_s,
                );
            }
        }
        while self.num_seen < cluster.jobs().len() {
            let id = JobId(self.num_seen as u32);
            self.num_seen += 1;
            let state = cluster.job(id).state;
            if state == JobState::Finished {
                continue;
            }
            is_news = true;
            match self.row(cluster, id, now_s) {
                Some(row) => drop(self.rows.insert(id, row)),
                None => drop(self.others.insert(id, state)),
            }
        }
        is_news
    }

    /// Sees nodes that come and go, and jobs without a row that ended or were requeued; whether there were any.
    fn see_others(&mut self, cluster: &Cluster) -> bool {
        let up = cluster.nodes().iter().filter(|node| node.state == NodeState::Up);
        let num_up = up.count();
        let mut is_news = num_up != std::mem::replace(&mut self.num_up, num_up);
        self.others.retain(|id, seen| {
            let state = cluster.job(*id).state;
            let before = std::mem::replace(seen, state);
            is_news |= before != state && state != JobState::Running;
            state != JobState::Finished
        });
        is_news
    }

    /// None for a job that no equal parts of nodes can say.
    fn row(&mut self, cluster: &Cluster, id: JobId, now_s: i64) -> Option<Row> {
        let labels = self.labels.get(id.index()).cloned().unwrap_or_default();
        let labels = labels.view();
        let rules = self.rules.as_mut().expect("it has begun");
        let job = cluster.job(id);
        if job.request.resources.is_fractional() {
            return None;
        }
        let partition = rules.partition(labels.partition);
        let empty = rules.state();
        let mut among = rules.among(partition, labels);
        let mut ask = ask_of(cluster, id, &empty.nodes, &among);
        if ask.is_none() {
            // The list says that it ran, so features that too few nodes have did not bound it.
            among.clone_from(&empty.partitions[partition]);
            ask = ask_of(cluster, id, &empty.nodes, &among);
        }
        let ask = ask?;
        let (mut bounds, mut counts) = rules.places(labels);
        let of_tenant = (rules.config().limits.len() + job.request.tenant.index(), 0);
        bounds.push(of_tenant);
        counts.push(of_tenant);
        // The list says that it ran, so what it could never meet did not bound it.
        bounds.retain(|place| empty.usage.allows(&ask, std::slice::from_ref(place)));
        let waiting = Waiting {
            job: id.0,
            ask,
            partition,
            among,
            licences: rules.licences(labels),
            group: rules.group(partition, labels),
            limit_s: (job.request.estimate_s.value.ceil() as i64).max(1),
            bounds,
            counts,
        };
        let facts = rules.facts(&waiting, labels);
        let mut row = Row {
            member: self.tree.member(labels.account, labels.user),
            waiting,
            facts,
            submit: job.submit - Time::from_secs_f64(labels.held_s),
            eligible_s: now_s,
            priority: 0,
            since_s: (job.state == JobState::Running).then_some(now_s),
        };
        self.price(&mut row, now_s);
        Some(row)
    }

    /// Sets the priority of a job as of a recomputation.
    fn price(&self, row: &mut Row, at_s: i64) {
        if let Some(priority) = &self.config.priority {
            row.priority = priority.of(&Facts {
                age_s: (at_s - row.eligible_s) as f64,
                fair_share: self.tree.factor(row.member),
                ..row.facts
            });
        }
    }

    /// Carries out the recomputations that are due; whether there were any.
    fn recompute(&mut self, now: Time) -> bool {
        let Some(priority) = self.config.priority.clone() else {
            return false;
        };
        let period = Time::from_secs_f64(priority.calc_period_s);
        let phase = Time::from_secs_f64(priority.calc_phase_s).0 - self.zero_s * 1_000_000;
        let mut last = *self
            .computed_at
            .get_or_insert(Time(now.0 - (now.0 - phase).rem_euclid(period.0)));
        let mut is_any = false;
        while last + period <= now {
            let at = last + period;
            is_any = true;
            if priority.fair_share > 0 {
                let (last_s, at_s) = (self.whole_s(last), self.whole_s(at));
                self.tree.fade(priority.left((at_s - last_s) as f64));
                let rules = (self.rules.as_ref(), &self.config);
                for row in self.rows.values() {
                    if let Some(since_s) = row.since_s {
                        used(&mut self.tree, rules, row, (since_s, Some(last_s)), at_s);
                    }
                }
            }
            last = at;
        }
        if is_any {
            self.computed_at = Some(last);
            self.tree.rank(priority.fair_tree);
            let (mut rows, last_s) = (std::mem::take(&mut self.rows), self.whole_s(last));
            for row in rows.values_mut().filter(|row| row.since_s.is_none()) {
                self.price(row, last_s);
            }
            self.rows = rows;
        }
        is_any
    }

    /// The nodes with what runs on them, and the waiting jobs in order.
    fn state(&self, cluster: &Cluster) -> (State, Vec<&Waiting>) {
        let rules = self.rules.as_ref().expect("it has begun");
        let mut state = rules.state();
        if !cluster.capabilities().can(ActionKind::Preempt) {
            state.groups.clear();
        }
        let now_s = self.whole_s(cluster.now());
        let mut order: Vec<(JobId, &Row)> = Vec::new();
        for (id, row) in &self.rows {
            let job = cluster.job(*id);
            match job.state {
                JobState::Running => {
                    let on: Vec<usize> = job.placement.iter().map(|slice| slice.node.index()).collect();
                    state.run(
                        &row.waiting,
                        on,
                        self.whole_s(job.run_start) + row.waiting.limit_s,
                    );
                }
                JobState::Pending if row.eligible_s <= now_s => order.push((*id, row)),
                _ => {}
            }
        }
        // The tables are the truth: nodes may be away, and other jobs may share them.
        for (node, free) in cluster.nodes().iter().zip(&mut state.nodes.free) {
            *free = match node.state {
                NodeState::Up => Room {
                    gpus: node.num_free(),
                    cpu_milli: modelled(node.cpu_milli, node.cpu_milli_free).min(free.cpu_milli),
                    memory_mib: modelled(node.memory_mib, node.memory_mib_free).min(free.memory_mib),
                },
                _ => Room::default(),
            };
        }
        order.sort_by_key(|(id, row)| {
            let tier = std::cmp::Reverse(rules.tier(row.waiting.partition));
            (tier, std::cmp::Reverse(row.priority), row.submit, *id)
        });
        (state, order.into_iter().map(|(_, row)| &row.waiting).collect())
    }

    /// Lets one of the two schedulers work; whether it started a job.
    fn schedule(&mut self, cluster: &mut Cluster, is_backfill: bool) -> bool {
        let now_s = self.whole_s(cluster.now());
        let (mut state, order) = self.state(cluster);
        let bounds = self.config.bounds();
        let plans = match is_backfill {
            true => state.backfill(&order, &bounds, now_s),
            false => state.main(&order, &bounds, now_s),
        };
        let mut is_any = false;
        for plan in plans.iter().filter(|plan| plan.start_s <= now_s) {
            plan.preempted.iter().for_each(|job| cluster.preempt(JobId(*job)));
            is_any |= start(cluster, plan);
        }
        let others: Vec<JobId> = self.others.keys().copied().collect();
        is_any | (start_what_fits(cluster, &others) > 0)
    }

    fn waits(&self, cluster: &Cluster) -> bool {
        cluster.num_pending() > 0
    }
}

/// Adds what a job has used since it began or since the last recomputation, faded as Slurm fades it.
fn used(
    tree: &mut Tree,
    (rules, config): (Option<&Rules>, &SlurmConfig),
    row: &Row,
    (since_s, computed_s): (i64, Option<i64>),
    until_s: i64,
) {
    let (Some(rules), Some(priority)) = (rules, &config.priority) else {
        return;
    };
    let seconds = (until_s - since_s.max(computed_s.unwrap_or(since_s))).max(0) as f64;
    tree.add(
        row.member,
        rules.billing(&row.waiting) * seconds * priority.left(seconds),
    );
}

impl Planner for Slurm {
    fn name(&self) -> &str {
        "slurm"
    }

    fn read_labels(&mut self, labels: &mut dyn Iterator<Item = JobLabels<'_>>) {
        let own = |of: JobLabels<'_>| {
            Labels(
                [
                    of.user,
                    of.account,
                    of.partition,
                    of.qos,
                    of.constraint,
                    of.licences,
                ]
                .map(Box::from),
                of.held_s,
            )
        };
        self.labels = labels.map(own).collect();
    }

    fn observe(&mut self, cluster: &Cluster) {
        self.follow(cluster);
    }

    fn plan_at_once(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.follow(cluster);
        self.schedule(cluster, false);
        if self.config.backfill {
            self.schedule(cluster, true);
        }
        Ok(())
    }

    fn reaction(&self) -> Time {
        Time::from_secs_f64(self.config.bf_interval_s + self.config.main_lag_s) + POLL
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let now = cluster.now();
        let is_news = self.follow(cluster);
        if self.has_changed && self.cycle_at < now {
            let polls =
                (now - self.cycle_at).0.div_euclid(POLL.0) + i64::from((now - self.cycle_at).0 % POLL.0 != 0);
            self.cycle_at = self.cycle_at + Time(polls * POLL.0);
        }
        if self.config.backfill && self.has_changed && self.cycle_at <= now && self.waits(cluster) {
            self.cycle_at = now + Time::from_secs_f64(self.config.bf_interval_s);
            self.has_changed = false;
            self.has_changed |= self.schedule(cluster, true);
        }
        match self.main_at {
            Some(at) if at <= now => {
                self.main_at = None;
                self.has_changed |= self.schedule(cluster, false);
            }
            None if is_news => {
                self.main_at = Some(now + Time::from_secs_f64(self.config.main_lag_s));
            }
            _ => {}
        }
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        if !self.waits(cluster) {
            return None;
        }
        let priority = self.config.priority.as_ref();
        let recompute = priority.zip(self.computed_at);
        let recompute = recompute.map(|(priority, last)| last + Time::from_secs_f64(priority.calc_period_s));
        let cycle = (self.config.backfill && self.has_changed).then_some(self.cycle_at);
        let now_s = self.whole_s(cluster.now());
        let requeued = self
            .rows
            .values()
            .filter(|row| row.since_s.is_none() && row.eligible_s > now_s);
        let requeued = requeued
            .map(|row| Time((row.eligible_s - self.zero_s) * 1_000_000))
            .min();
        [self.main_at, cycle, recompute, requeued]
            .into_iter()
            .flatten()
            .min()
    }
}
