//! Which jobs hold GPUs of which type in the coming round: targets, what was received, deficits.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{GpuTypeId, JobId};

/// Priority of a combination with a target that has received nothing, as a multiple of its target (Gavel's simulator).
const UNSERVED: f64 = 1e9;

/// The jobs that hold GPUs together: one job, or two of the same gang size that share all their GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobCombination {
    /// The job, the earlier of two.
    pub job: JobId,
    /// The job beside it.
    pub beside: Option<JobId>,
}

impl JobCombination {
    /// A job alone.
    #[must_use]
    pub fn alone(job: JobId) -> JobCombination {
        JobCombination { job, beside: None }
    }

    /// Two jobs, in either order.
    #[must_use]
    pub fn pair(a: JobId, b: JobId) -> JobCombination {
        JobCombination {
            job: a.min(b),
            beside: Some(a.max(b)),
        }
    }

    /// Its jobs.
    pub fn jobs(self) -> impl Iterator<Item = JobId> {
        std::iter::once(self.job).chain(self.beside)
    }

    /// Whether the job is one of it.
    #[must_use]
    pub fn includes(self, job: JobId) -> bool {
        self.job == job || self.beside == Some(job)
    }
}

/// What each combination is due: a fraction of its time on each GPU type. `[num_types]`
pub type Targets = BTreeMap<JobCombination, Vec<f64>>;

/// What one combination is due and has received since the targets last changed.
#[derive(Clone, Debug)]
struct Entry {
    /// Place in the order of arrival, which breaks ties.
    number: u64,
    /// Fraction of its time on each type; none where the targets were set before it came. `[num_types]`
    target: Option<Vec<f64>>,
    /// Credit and the time received on each type, s. `[num_types]`
    received_s: Vec<f64>,
    /// Time that it is still owed from before the last change of targets, s; negative = it owes. `[num_types]`
    deficit_s: Vec<f64>,
}

/// A combination that has won GPUs of a type for the coming round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The combination.
    pub combination: JobCombination,
    /// The type of all its GPUs.
    pub gpu_type: GpuTypeId,
    /// Whether targets were set since the combination came.
    pub planned: bool,
}

/// Targets, what was received, deficits.
#[derive(Clone, Debug)]
pub struct Rounds {
    half_round_s: f64,
    num_types: usize,
    entries: BTreeMap<JobCombination, Entry>,
    num_added: u64,
    /// Time received on each type by all combinations since the last change of targets, with half a round for each combination
    /// that was there then, s. `[num_types]`
    received_s: Vec<f64>,
}

impl Rounds {
    /// No combinations yet. `round_s` is the nominal length of a round.
    #[must_use]
    pub fn new(round_s: f64, num_types: usize) -> Rounds {
        Rounds {
            half_round_s: round_s / 2.0,
            num_types,
            entries: BTreeMap::new(),
            num_added: 0,
            received_s: vec![0.0; num_types],
        }
    }

    /// A combination has come. It waits without a target until targets are set. A job alone starts with the credit of half a
    /// round, a pair with none.
    pub fn add(&mut self, combination: JobCombination) {
        let credit_s = if combination.beside.is_none() {
            self.half_round_s
        } else {
            0.0
        };
        self.entries.insert(
            combination,
            Entry {
                number: self.num_added,
                target: None,
                received_s: vec![credit_s; self.num_types],
                deficit_s: vec![0.0; self.num_types],
            },
        );
        self.num_added += 1;
    }

    /// A job has left, and with it every combination of which it was one.
    pub fn remove(&mut self, job: JobId) {
        self.entries.retain(|combination, _| !combination.includes(job));
    }

    /// Whether a combination is known.
    pub(super) fn contains(&self, combination: JobCombination) -> bool {
        self.entries.contains_key(&combination)
    }

    /// Forgets the pairs that are due nothing any more.
    pub(super) fn retain_pairs_of(&mut self, targets: &Targets) {
        self.entries
            .retain(|combination, _| combination.beside.is_none() || targets.contains_key(combination));
    }

    /// Combinations, by job.
    pub fn combinations(&self) -> impl Iterator<Item = JobCombination> {
        self.entries.keys().copied()
    }

    /// A combination has held its GPUs of a type for so many seconds.
    pub fn receive(&mut self, combination: JobCombination, gpu_type: GpuTypeId, seconds: f64) {
        if let Some(entry) = self.entries.get_mut(&combination) {
            entry.received_s[gpu_type.index()] += seconds;
            self.received_s[gpu_type.index()] += seconds;
        }
    }

    /// Sets what every combination is due from now on; one that is not named is due nothing. What was due in the `elapsed_s`
    /// since the last time and not received becomes deficit.
    ///
    /// # Panics
    /// If a target has not one fraction for each type.
    pub fn set_targets(&mut self, elapsed_s: f64, targets: &Targets) {
        let half_round_s = self.half_round_s;
        for kind in 0..self.num_types {
            self.received_s[kind] = 0.0;
            for entry in self.entries.values_mut() {
                let received_s = entry.received_s[kind] - half_round_s;
                let due_s = entry
                    .target
                    .as_ref()
                    .map_or(0.0, |target| target[kind] * elapsed_s);
                entry.deficit_s[kind] += due_s - received_s;
                entry.received_s[kind] = half_round_s;
                self.received_s[kind] += half_round_s;
            }
        }
        for (combination, entry) in &mut self.entries {
            let target = targets.get(combination);
            assert!(target.is_none_or(|target| target.len() == self.num_types));
            entry.target = Some(target.cloned().unwrap_or_else(|| vec![0.0; self.num_types]));
        }
    }

    /// How urgent the combination is on a type: its target over the share of all time received there that was its own.
    fn priority(&self, entry: &Entry, kind: usize) -> f64 {
        let target = entry.target.as_ref().map_or(0.0, |target| target[kind]);
        if target == 0.0 {
            return 0.0;
        }
        let share = if self.received_s[kind] == 0.0 {
            0.0
        } else {
            entry.received_s[kind] / self.received_s[kind]
        };
        if share > 0.0 {
            target / share
        } else {
            target * UNSERVED
        }
    }

    /// Allocates all GPUs of the cluster for one round, type by type in the given order: by priority, then deficit, then
    /// target, then arrival. A combination that does not fit into what is left of a type is passed over, and a job has one lease.
    /// `can_run` says whether a combination makes progress on a type. With `leftovers`, combinations without priority take what
    /// no other wants.
    #[must_use]
    pub fn allocate(
        &self,
        cluster: &Cluster,
        order: &[GpuTypeId],
        can_run: impl Fn(JobCombination, GpuTypeId) -> bool,
        leftovers: bool,
    ) -> Vec<Lease> {
        let mut left: Vec<u32> = (0..cluster.num_types())
            .map(|kind| cluster.num_gpus_of(GpuTypeId(kind as u8)))
            .collect();
        self.allocate_where(order, can_run, leftovers, |combination, gpu_type| {
            let num_gpus = cluster.job(combination.job).request.num_gpus;
            let left = &mut left[gpu_type.index()];
            let fits = num_gpus <= *left;
            *left -= if fits { num_gpus } else { 0 };
            fits
        })
    }

    /// As [`Rounds::allocate`], with `take` to say whether there is room for a combination, and to take it.
    #[must_use]
    pub(crate) fn allocate_where(
        &self,
        order: &[GpuTypeId],
        can_run: impl Fn(JobCombination, GpuTypeId) -> bool,
        leftovers: bool,
        mut take: impl FnMut(JobCombination, GpuTypeId) -> bool,
    ) -> Vec<Lease> {
        let mut leases: Vec<Lease> = Vec::new();
        let mut taken = BTreeSet::new();
        for &gpu_type in order {
            let kind = gpu_type.index();
            let runs = self
                .entries
                .iter()
                .filter(|(combination, _)| can_run(**combination, gpu_type));
            let mut queue: Vec<([f64; 3], u64, JobCombination, bool)> = runs
                .map(|(combination, entry)| {
                    let target = entry.target.as_ref().map_or(0.0, |target| target[kind]);
                    let keys = [self.priority(entry, kind), entry.deficit_s[kind], target];
                    (keys, entry.number, *combination, entry.target.is_some())
                })
                .collect();
            queue.sort_by(|a, b| {
                let keys = b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal);
                keys.then(a.1.cmp(&b.1))
            });
            for (keys, _, combination, planned) in queue {
                let has_lease = combination.jobs().any(|job| taken.contains(&job));
                if has_lease || (keys[0] <= 0.0 && !leftovers) || !take(combination, gpu_type) {
                    continue;
                }
                taken.extend(combination.jobs());
                leases.push(Lease {
                    combination,
                    gpu_type,
                    planned,
                });
            }
        }
        leases
    }
}
