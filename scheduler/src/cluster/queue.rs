//! The queue: pending jobs, grouped by demand and kept in several orders at once.
//!
//! Jobs that ask for the same thing (tenant, gang size, allowed GPU types) fit or do not fit together, so "the first
//! job under an order that fits" costs one look at each *demand*, never a walk over the whole queue. Within a demand
//! the gang size is constant, so the shortest remaining time and the smallest remaining GPU-time are one order.

use super::ordered_set::OrderedSet;
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

/// What a group of pending jobs asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Who asks.
    pub tenant: TenantId,
    /// Gang size.
    pub num_gpus: u32,
    /// Bit mask of GPU types on which the job can run.
    pub types: u64,
}

/// The pending jobs of one demand, in three orders. Keys are ascending; equal keys are ordered by job id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) arrival: OrderedSet<JobId>,
    pub(crate) remaining: OrderedSet<(Time, JobId)>,
    pub(crate) service: OrderedSet<(u8, JobId)>,
}

/// The first jobs of a present demand, side by side with those of the others: most looks at the queue need no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) demand: Demand,
    pub(crate) arrival: JobId,
    pub(crate) remaining: (Time, JobId),
    pub(crate) service: (u8, JobId),
    /// Row of the demand's group.
    row: u32,
}

impl Head {
    fn of(demand: Demand, row: u32, group: &Group) -> Option<Head> {
        Some(Head {
            demand,
            arrival: *group.arrival.first()?,
            remaining: *group.remaining.first()?,
            service: *group.service.first()?,
            row,
        })
    }
}

impl Group {
    /// Makes room for `num` jobs, so that none of them allocates when it comes.
    fn reserve(&mut self, num: usize) {
        self.arrival.reserve(num);
        self.remaining.reserve(num);
        self.service.reserve(num);
    }
}

/// All pending jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Demands with at least one pending job, sorted.
    heads: Vec<Head>,
    /// All demands that there have ever been, sorted, each with the row of its group.
    known: Vec<(Demand, u32)>,
    /// Groups in the order in which their demands first came; an empty one keeps its memory.
    groups: Vec<Group>,
    len: usize,
    num_gpus: u64,
}

/// Sort keys of a pending job; they cannot change while it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueKeys {
    pub(crate) remaining: Time,
    pub(crate) service_class: u8,
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

    /// Demands with at least one pending job, in a fixed order.
    #[inline]
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&Demand, &Group)> {
        self.heads
            .iter()
            .map(|head| (&head.demand, &self.groups[head.row as usize]))
    }

    /// The first jobs of each of them.
    #[inline]
    pub(crate) fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// All jobs of a demand.
    #[inline]
    pub(crate) fn group(&self, head: &Head) -> &Group {
        &self.groups[head.row as usize]
    }

    pub(crate) fn insert(&mut self, demand: Demand, job: JobId, keys: QueueKeys) {
        let row = self.row_of(demand);
        let group = &mut self.groups[row as usize];
        group.arrival.insert(job);
        group.remaining.insert((keys.remaining, job));
        group.service.insert((keys.service_class, job));
        let at = self.heads.binary_search_by_key(&demand, |head| head.demand);
        if let Some(head) = Head::of(demand, row, group) {
            match at {
                Ok(at) => self.heads[at] = head,
                Err(at) => self.heads.insert(at, head),
            }
        }
        self.len += 1;
        self.num_gpus += u64::from(demand.num_gpus);
    }

    pub(crate) fn remove(&mut self, demand: Demand, job: JobId, keys: QueueKeys) {
        let at = self
            .heads
            .binary_search_by_key(&demand, |head| head.demand)
            .expect("the demand of a pending job is present");
        let row = self.heads[at].row;
        let group = &mut self.groups[row as usize];
        let found = group.arrival.remove(&job)
            && group.remaining.remove(&(keys.remaining, job))
            && group.service.remove(&(keys.service_class, job));
        assert!(found, "{job:?} is not in the queue under its keys");
        match Head::of(demand, row, group) {
            Some(head) => self.heads[at] = head,
            None => drop(self.heads.remove(at)),
        }
        self.len -= 1;
        self.num_gpus -= u64::from(demand.num_gpus);
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
                self.groups.push(Group::default());
                self.known.insert(at, (demand, row));
                self.heads.reserve(self.known.len() - self.heads.len());
                row
            }
        }
    }
}
