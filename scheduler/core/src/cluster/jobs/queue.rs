//! The queue: pending jobs, grouped by demand and kept in several orders at once.
//!
//! Jobs that ask for the same thing (tenant, gang size, allowed GPU types) fit or do not fit together, so "the first
//! job under an order that fits" costs one look at each *demand*, never a walk over the whole queue. Within a demand
//! the gang size is constant, so the shortest remaining time and the smallest remaining GPU-time are one order.

use std::cmp::Ordering;

use crate::cluster::jobs::ordered_set::{Member, OrderedSet};
use crate::cluster::jobs::shape::ShapeId;
use crate::ids::{JobId, TenantId, Time};

/// Thresholds between the service classes of least attained service, GPU·s.
///
/// # Source
/// Tiresias (NSDI'19), constants of the released code: three thresholds, 3,250 / 7,200 / 18,000 GPU·s.
const SERVICE_CLASSES_GPU_S: [f64; 3] = [3250.0, 7200.0, 18000.0];

/// The service class of an attained service: 0 is served least.
pub(crate) fn service_class(attained_gpu_s: f64) -> u8 {
    let passed = SERVICE_CLASSES_GPU_S
        .iter()
        .filter(|threshold| attained_gpu_s >= **threshold);
    passed.count() as u8
}

/// Whether an attained service has passed the first service class.
#[inline]
pub(crate) fn has_passed_first_class(attained_gpu_s: f64) -> bool {
    attained_gpu_s >= SERVICE_CLASSES_GPU_S[0]
}

/// What a group of pending jobs asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// The tenant that asks.
    pub tenant: TenantId,
    /// Gang size.
    pub num_gpus: u32,
    /// Bit mask of GPU types on which the job can run.
    pub types: u64,
    /// What each of its GPUs comes with.
    pub shape: ShapeId,
}

/// A sort key and its job; smaller comes first.
pub(crate) type Row = (i64, JobId);

/// A pending job in one of the orders that are kept of its demand, with what it takes to pass over long ones in any order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    key: i64,
    job: JobId,
    rest: u32,
}

/// A believed remaining time, µs, as a weight: in units of about a second, rounded down, so that a longer one never weighs less.
pub(crate) fn rest_weight(rest_us: i64) -> u32 {
    u32::try_from(rest_us.max(0) >> 20).unwrap_or(u32::MAX)
}

impl Waiting {
    /// Its key and the job.
    #[inline]
    pub(crate) fn row(self) -> Row {
        (self.key, self.job)
    }
}

impl Ord for Waiting {
    #[inline]
    fn cmp(&self, other: &Waiting) -> Ordering {
        self.row().cmp(&other.row())
    }
}

impl PartialOrd for Waiting {
    #[inline]
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.row() == other.row()
    }
}

impl Eq for Waiting {}

impl Member for Waiting {
    const WEIGHED: bool = true;

    #[inline]
    fn weight(&self) -> u32 {
        self.rest
    }
}

/// Orders that are kept of the jobs of each demand. Keys cannot change while a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// By id; so is the key.
    Arrival,
    /// By believed remaining time, µs.
    Remaining,
    /// By service class.
    Service,
}

const NUM_KEPT: usize = 3;

/// The pending jobs of one demand, in three orders that look alike, so that one loop walks any of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    rows: [OrderedSet<Waiting>; NUM_KEPT],
    /// Gang size of its every job.
    pub(crate) num_gpus: u32,
}

impl Group {
    /// The jobs in one order.
    #[inline]
    pub(crate) fn rows(&self, kept: Kept) -> &OrderedSet<Waiting> {
        &self.rows[kept as usize]
    }
}

/// The first jobs of a present demand, side by side with those of the others: most looks at the queue need no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) demand: Demand,
    firsts: [Row; NUM_KEPT],
    /// Row of the demand's group.
    pub(crate) row: u32,
}

/// Orders whose keys do not change while a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Arrival,
    Remaining,
    GpuTime,
    Service,
    LargestGang,
}

const NUM_ORDERS: usize = 5;

/// The first job of a demand under an order. Sorts by key, then by job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct First {
    pub(crate) key: i64,
    pub(crate) job: JobId,
    /// Row of the demand's group.
    pub(crate) row: u32,
}

/// How the key of a job among those of its demand becomes its key among all: the gang size is the same for the whole demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rekey {
    times: i64,
    plus: i64,
}

impl Rekey {
    /// The key as it is.
    pub(crate) const SAME: Rekey = Rekey { times: 1, plus: 0 };

    /// The key times the gang.
    pub(crate) fn times(num_gpus: u32) -> Rekey {
        Rekey {
            times: i64::from(num_gpus),
            plus: 0,
        }
    }

    /// One key for all.
    pub(crate) fn all(key: i64) -> Rekey {
        Rekey { times: 0, plus: key }
    }

    #[inline]
    pub(crate) fn of(self, (key, job): Row) -> Row {
        match self.times {
            1 => (key + self.plus, job),
            times => (key.saturating_mul(times) + self.plus, job),
        }
    }
}

impl Order {
    /// The order in which the jobs of one demand stand under this one, and what makes their keys.
    #[inline]
    pub(crate) fn within(self, num_gpus: u32) -> (Kept, Rekey) {
        match self {
            Order::Arrival => (Kept::Arrival, Rekey::SAME),
            Order::Remaining => (Kept::Remaining, Rekey::SAME),
            Order::GpuTime => (Kept::Remaining, Rekey::times(num_gpus)),
            Order::Service => (Kept::Service, Rekey::SAME),
            Order::LargestGang => (Kept::Arrival, Rekey::all(-i64::from(num_gpus))),
        }
    }
}

impl Head {
    fn of(demand: Demand, row: u32, group: &Group) -> Option<Head> {
        let [arrival, remaining, service] = &group.rows;
        let firsts = [arrival.first()?, remaining.first()?, service.first()?].map(|first| first.row());
        Some(Head { demand, firsts, row })
    }

    /// The first job in one order, with its key.
    #[inline]
    pub(crate) fn first(&self, kept: Kept) -> Row {
        self.firsts[kept as usize]
    }

    /// The first job under an order of all demands, with its key there.
    #[inline]
    pub(crate) fn first_by(&self, order: Order) -> Row {
        let (kept, rekey) = order.within(self.demand.num_gpus);
        rekey.of(self.first(kept))
    }

    /// The first jobs under each order, in the order of [`Order`].
    fn firsts(&self) -> [First; NUM_ORDERS] {
        [
            Order::Arrival,
            Order::Remaining,
            Order::GpuTime,
            Order::Service,
            Order::LargestGang,
        ]
        .map(|order| {
            let (key, job) = self.first_by(order);
            First {
                key,
                job,
                row: self.row,
            }
        })
    }
}

impl Group {
    /// Makes room for `num` jobs, so that none of them allocates when it comes.
    fn reserve(&mut self, num: usize) {
        self.rows.iter_mut().for_each(|rows| rows.reserve(num));
    }
}

/// All pending jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Demands with at least one pending job, sorted.
    heads: Vec<Head>,
    /// First jobs of all present demands under each order, sorted: the best job of an order is found without a look at
    /// the demands that have only worse ones.
    firsts: [Vec<First>; NUM_ORDERS],
    /// All demands that there have ever been, sorted, each with the row of its group.
    known: Vec<(Demand, u32)>,
    /// Groups in the order in which their demands first came; an empty one keeps its memory.
    groups: Vec<Group>,
    len: usize,
    num_gpus: u64,
    /// Believed GPU time of all of them, GPU·µs.
    gpu_time: i128,
}

/// Sort keys of a pending job; they cannot change while it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueKeys {
    pub(crate) remaining: Time,
    pub(crate) service_class: u8,
}

impl QueueKeys {
    /// The job's place in each order that is kept.
    pub(crate) fn rows(self, job: JobId) -> [Waiting; NUM_KEPT] {
        let rest = rest_weight(self.remaining.0);
        let keys = [i64::from(job.0), self.remaining.0, i64::from(self.service_class)];
        keys.map(|key| Waiting { key, job, rest })
    }
}

impl Queue {
    /// Number of pending jobs.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// GPUs that all pending jobs ask for.
    pub(crate) fn num_gpus(&self) -> u64 {
        self.num_gpus
    }

    /// Believed GPU time of all pending jobs, GPU·s; summed in whole microseconds, so in any order the same.
    pub(crate) fn gpu_time_gpu_s(&self) -> f64 {
        self.gpu_time as f64 / 1e6
    }

    /// Demands with at least one pending job, in a fixed order.
    #[inline]
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&Demand, &Group)> {
        self.heads.iter().map(|head| (&head.demand, self.group(head.row)))
    }

    /// The first jobs of each of them.
    #[inline]
    pub(crate) fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The first job of each present demand under an order, best first.
    #[inline]
    pub(crate) fn firsts(&self, order: Order) -> &[First] {
        &self.firsts[order as usize]
    }

    /// All jobs of a demand.
    #[inline]
    pub(crate) fn group(&self, row: u32) -> &Group {
        &self.groups[row as usize]
    }

    /// Number of demands that there have ever been: one more than the highest row.
    #[inline]
    pub(crate) fn num_rows(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn insert(&mut self, demand: Demand, job: JobId, keys: QueueKeys) {
        let row = self.row_of(demand);
        let group = &mut self.groups[row as usize];
        for (rows, member) in group.rows.iter_mut().zip(keys.rows(job)) {
            rows.insert(member);
        }
        self.update_head(demand, row);
        self.len += 1;
        self.num_gpus += u64::from(demand.num_gpus);
        self.gpu_time += i128::from(keys.remaining.0) * i128::from(demand.num_gpus);
    }

    pub(crate) fn remove(&mut self, demand: Demand, job: JobId, keys: QueueKeys) {
        let row = self.row_of(demand);
        let group = &mut self.groups[row as usize];
        let mut rows = group.rows.iter_mut().zip(keys.rows(job));
        let found = rows.all(|(rows, member)| rows.remove(&member));
        assert!(found, "{job:?} is not in the queue under its keys");
        self.update_head(demand, row);
        self.len -= 1;
        self.num_gpus -= u64::from(demand.num_gpus);
        self.gpu_time -= i128::from(keys.remaining.0) * i128::from(demand.num_gpus);
    }

    /// A group has changed: so may have its first jobs.
    fn update_head(&mut self, demand: Demand, row: u32) {
        let at = self.heads.binary_search_by_key(&demand, |head| head.demand);
        let before = at.ok().map(|at| self.heads[at]);
        let head = Head::of(demand, row, &self.groups[row as usize]);
        if let (Some(before), Some(head)) = (&before, &head)
            && before.firsts == head.firsts
        {
            return;
        }
        let (old, new) = (before.map(|head| head.firsts()), head.map(|head| head.firsts()));
        match (at, head) {
            (Ok(at), Some(head)) => self.heads[at] = head,
            (Ok(at), None) => drop(self.heads.remove(at)),
            (Err(at), Some(head)) => self.heads.insert(at, head),
            (Err(_), None) => {}
        }
        for (order, firsts) in self.firsts.iter_mut().enumerate() {
            let (old, new) = (old.map(|rows| rows[order]), new.map(|rows| rows[order]));
            if old == new {
                continue;
            }
            if let Some(Ok(at)) = old.map(|old| firsts.binary_search(&old)) {
                firsts.remove(at);
            }
            if let Some(new) = new {
                let at = firsts.partition_point(|other| *other < new);
                firsts.insert(at, new);
            }
        }
    }

    /// Makes room for `num` pending jobs of one demand, so that none of them allocates when it comes.
    pub(crate) fn reserve(&mut self, demand: Demand, num: usize) {
        let row = self.row_of(demand);
        self.groups[row as usize].reserve(num);
    }

    /// The row of a demand's group, which is new where the demand is.
    fn row_of(&mut self, demand: Demand) -> u32 {
        match self.known.binary_search_by_key(&demand, |(other, _)| *other) {
            Ok(at) => self.known[at].1,
            Err(at) => {
                let row = self.groups.len() as u32;
                self.groups.push(Group {
                    num_gpus: demand.num_gpus,
                    ..Group::default()
                });
                self.known.insert(at, (demand, row));
                self.heads.reserve(self.known.len() - self.heads.len());
                for firsts in &mut self.firsts {
                    firsts.reserve(self.known.len() - firsts.len());
                }
                row
            }
        }
    }
}
