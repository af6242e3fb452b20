//! What is known at an instant of jobs that have ended and of jobs that have begun: run times by user, size and limit, waits by size.

use std::collections::{BTreeMap, VecDeque};

use pleach_env::workload::Workload;

/// Ended jobs of one kind that count, the last ones. *Ours*.
const LAST: usize = 64;
/// Jobs of one kind from which it is taken for known, and those of them that must have run longer than a job already has. *Ours*.
const KNOWN: usize = 8;
const LONGER: usize = 3;
/// Part of ended jobs that keep their limit from which limits are taken to be enforced, and by how much a job may miss it. *Ours*.
const KEPT: f64 = 0.95;
const GRACE: f64 = 1.05;
/// Begun jobs of a size whose waits count. *Ours*.
const WAITS: usize = 300;
/// Sizes: 1, 2 to 3, 4 to 7, and so on to 64 and more GPUs.
const SIZES: usize = 7;

/// Run times of one kind of job, parts of their limits, or s of those without: the last ones in the order of their ends, and sorted.
#[derive(Clone, Debug, Default)]
struct Pool {
    order: VecDeque<f64>,
    sorted: Vec<f64>,
}

impl Pool {
    fn add(&mut self, value: f64, most: usize) {
        if self.order.len() == most
            && let Some(first) = self.order.pop_front()
        {
            let at = self.sorted.partition_point(|other| *other < first);
            self.sorted.remove(at);
        }
        self.order.push_back(value);
        let at = self.sorted.partition_point(|other| *other < value);
        self.sorted.insert(at, value);
    }
}

/// What a job is like.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// Number of its user; those without one are one.
    pub user: u32,
    /// Bucket of its GPUs.
    pub size: u8,
    /// Its time limit, s; 0 where it has none.
    pub limit_s: f64,
}

impl Who {
    /// By what its run time is compared with that of others: its limit, where it has one.
    fn scale(self) -> f64 {
        if self.limit_s > 0.0 { self.limit_s } else { 1.0 }
    }

    /// Kinds that it belongs to, the narrowest first: those in which run times are parts of limits, where it has one, or those in
    /// which they are seconds.
    fn kinds(self, is_part: bool) -> [(u8, u32, u8, u32); 5] {
        let (limit, unit) = match is_part {
            true => ((self.limit_s as u32).max(1), 1),
            false => (0, 0),
        };
        [
            (0, self.user, self.size, limit),
            (1, self.user, self.size, unit),
            (2, self.user, 0, unit),
            (3, 0, self.size, unit),
            (4, 0, 0, unit),
        ]
    }
}

/// Everything that has ended and begun so far.
#[derive(Clone, Debug)]
pub struct Past {
    who: Vec<Who>,
    users: BTreeMap<String, u32>,
    pools: BTreeMap<(u8, u32, u8, u32), Pool>,
    waits: Vec<Pool>,
    num_limited: usize,
    num_kept: usize,
}

/// Bucket of a number of GPUs.
#[must_use]
pub fn size(num_gpus: u32) -> u8 {
    (num_gpus.max(1).ilog2() as u8).min(SIZES as u8 - 1)
}

impl Past {
    /// Before anything has happened in a list.
    #[must_use]
    pub fn of(workload: &Workload) -> Past {
        let mut users = BTreeMap::new();
        let mut number = |name: &str| {
            let next = users.len() as u32 + 1;
            *users.entry(name.to_owned()).or_insert(next)
        };
        let who = workload.jobs.iter().map(|job| Who {
            user: job.user.as_deref().map_or(0, &mut number),
            size: size(job.num_gpus),
            limit_s: job.estimate_s.unwrap_or(0.0),
        });
        Past {
            who: who.collect(),
            users,
            pools: BTreeMap::new(),
            waits: vec![Pool::default(); SIZES + 1],
            num_limited: 0,
            num_kept: 0,
        }
    }

    /// What a job of the list is like.
    #[must_use]
    pub fn who(&self, job: usize) -> Who {
        self.who[job]
    }

    /// Number of a user by name; that of an unknown one where there is none of the name.
    #[must_use]
    pub fn user(&self, name: Option<&str>) -> u32 {
        name.map_or(0, |name| {
            *self.users.get(name).unwrap_or(&(self.users.len() as u32 + 1))
        })
    }

    /// A job of the list has ended after so long a run, s.
    pub fn ended(&mut self, job: usize, run_s: f64) {
        let who = self.who[job];
        for kind in who.kinds(false) {
            self.pools.entry(kind).or_default().add(run_s, LAST);
        }
        if who.limit_s > 0.0 {
            for kind in who.kinds(true) {
                self.pools.entry(kind).or_default().add(run_s / who.limit_s, LAST);
            }
            self.num_limited += 1;
            self.num_kept += usize::from(run_s <= who.limit_s * GRACE);
        }
    }

    /// A job of the list has begun after so long a wait, s.
    pub fn began(&mut self, job: usize, wait_s: f64) {
        self.waits[usize::from(self.who[job].size)].add(wait_s, WAITS);
        self.waits[SIZES].add(wait_s, WAITS);
    }

    /// Waits of the last jobs of a size, sorted, s; of all where few of the size are known.
    #[must_use]
    pub fn waits(&self, size: u8) -> &[f64] {
        let of = &self.waits[usize::from(size)].sorted;
        if of.len() >= 20 {
            of
        } else {
            &self.waits[SIZES].sorted
        }
    }

    /// Mean wait of the last 20 jobs of a size that have begun, s.
    #[must_use]
    pub fn recent_wait_s(&self, size: Option<u8>) -> f64 {
        let pool = &self.waits[size.map_or(SIZES, usize::from)].order;
        let last = pool.iter().rev().take(20);
        last.clone().sum::<f64>() / (last.count().max(1) as f64)
    }

    /// How long a job that has run for `age_s` may run in all, as likely as each other.
    #[must_use]
    pub fn runs(&self, who: Who, age_s: f64) -> Runs<'_> {
        let of = |kind| {
            let all = &self.pools.get(kind)?.sorted;
            let longer = &all[all.partition_point(|run| *run <= age_s / who.scale())..];
            (all.len() >= KNOWN && longer.len() >= LONGER).then_some(longer)
        };
        let binds = self.num_kept as f64 >= KEPT * self.num_limited as f64;
        let is_limited = who.limit_s > 0.0 && binds;
        Runs {
            known: who
                .kinds(who.limit_s > 0.0)
                .iter()
                .find_map(of)
                .unwrap_or_default(),
            scale: who.scale(),
            age_s,
            most_s: is_limited.then_some(who.limit_s),
        }
    }
}

/// Run times of which one is a job's, over their scale, sorted; empty where nothing like it is known.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    known: &'a [f64],
    scale: f64,
    age_s: f64,
    most_s: Option<f64>,
}

impl Runs<'_> {
    /// The run time at a part of the distribution, 0 to 1; later than the age. Where nothing is known a run goes on for as long
    /// again with a chance of one half.
    #[must_use]
    pub fn at(self, part: f64) -> f64 {
        let last = self.known.len().saturating_sub(1);
        let run_s = match self
            .known
            .get(((part * self.known.len() as f64) as usize).min(last))
        {
            Some(part) => part * self.scale,
            None => self.age_s.max(600.0) / (1.0 - part).max(0.01),
        };
        self.most_s
            .map_or(run_s, |most_s| run_s.min(most_s))
            .max(self.age_s + 1.0)
    }
}
