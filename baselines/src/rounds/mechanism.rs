//! Who holds GPUs of which type in the coming round: targets, what was received, deficits.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::ids::{GpuTypeId, JobId};

/// Priority of a party with a target that has received nothing, as a multiple of its target (Gavel's simulator).
const UNSERVED: f64 = 1e9;

/// Who takes a turn together: one job, or two of the same gang size that share all their GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Party {
    /// The job, the earlier of two.
    pub job: JobId,
    /// The job beside it.
    pub beside: Option<JobId>,
}

impl Party {
    /// A job alone.
    #[must_use]
    pub fn alone(job: JobId) -> Party {
        Party { job, beside: None }
    }

    /// Two jobs, in either order.
    #[must_use]
    pub fn pair(a: JobId, b: JobId) -> Party {
        Party {
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

/// What each party is due: a fraction of its time on each GPU type. `[num_types]`
pub type Targets = BTreeMap<Party, Vec<f64>>;

/// What one party is due and has received since the targets last changed.
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

/// A party that has won GPUs of a type for the coming round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The party.
    pub party: Party,
    /// The type of all its GPUs.
    pub gpu_type: GpuTypeId,
    /// Whether targets were set since the party came.
    pub planned: bool,
}

/// Targets, what was received, deficits.
#[derive(Clone, Debug)]
pub struct Rounds {
    half_round_s: f64,
    num_types: usize,
    entries: BTreeMap<Party, Entry>,
    num_added: u64,
    /// Time received on each type by all parties since the last change of targets, with half a round for each party that
    /// was there then, s. `[num_types]`
    received_s: Vec<f64>,
}

impl Rounds {
    /// Nobody yet. `round_s` is the nominal length of a round.
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

    /// A party has come. It waits without a target until targets are set. A job alone starts with the credit of half a
    /// round, a pair with none.
    pub fn add(&mut self, party: Party) {
        let credit_s = if party.beside.is_none() {
            self.half_round_s
        } else {
            0.0
        };
        self.entries.insert(
            party,
            Entry {
                number: self.num_added,
                target: None,
                received_s: vec![credit_s; self.num_types],
                deficit_s: vec![0.0; self.num_types],
            },
        );
        self.num_added += 1;
    }

    /// A job has left, and with it every party of which it was one.
    pub fn remove(&mut self, job: JobId) {
        self.entries.retain(|party, _| !party.includes(job));
    }

    /// Whether a party is known.
    pub(super) fn contains(&self, party: Party) -> bool {
        self.entries.contains_key(&party)
    }

    /// Forgets the pairs that are due nothing any more.
    pub(super) fn retain_pairs_of(&mut self, targets: &Targets) {
        self.entries
            .retain(|party, _| party.beside.is_none() || targets.contains_key(party));
    }

    /// Parties, by job.
    pub fn parties(&self) -> impl Iterator<Item = Party> {
        self.entries.keys().copied()
    }

    /// A party has held its GPUs of a type for so many seconds.
    pub fn receive(&mut self, party: Party, gpu_type: GpuTypeId, seconds: f64) {
        if let Some(entry) = self.entries.get_mut(&party) {
            entry.received_s[gpu_type.index()] += seconds;
            self.received_s[gpu_type.index()] += seconds;
        }
    }

    /// Sets what every party is due from now on; one that is not named is due nothing. What was due in the `elapsed_s`
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
        for (party, entry) in &mut self.entries {
            let target = targets.get(party);
            assert!(target.is_none_or(|target| target.len() == self.num_types));
            entry.target = Some(target.cloned().unwrap_or_else(|| vec![0.0; self.num_types]));
        }
    }

    /// How much the party's turn it is on a type: its target over the share of all time received there that was its own.
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

    /// Deals all GPUs of the cluster for one round, type by type in the given order: by priority, then deficit, then
    /// target, then arrival. A party that does not fit into what is left of a type is passed over, and a job has one turn.
    /// `can_run` says whether a party makes progress on a type. With `leftovers`, parties without priority take what
    /// nobody else wants.
    #[must_use]
    pub fn deal(
        &self,
        cluster: &Cluster,
        order: &[GpuTypeId],
        can_run: impl Fn(Party, GpuTypeId) -> bool,
        leftovers: bool,
    ) -> Vec<Turn> {
        let mut left: Vec<u32> = (0..cluster.num_types())
            .map(|kind| cluster.num_gpus_of(GpuTypeId(kind as u8)))
            .collect();
        self.deal_where(order, can_run, leftovers, |party, gpu_type| {
            let num_gpus = cluster.job(party.job).request.num_gpus;
            let left = &mut left[gpu_type.index()];
            let fits = num_gpus <= *left;
            *left -= if fits { num_gpus } else { 0 };
            fits
        })
    }

    /// As [`Rounds::deal`], with `take` to say whether there is room for a party, and to take it.
    #[must_use]
    pub fn deal_where(
        &self,
        order: &[GpuTypeId],
        can_run: impl Fn(Party, GpuTypeId) -> bool,
        leftovers: bool,
        mut take: impl FnMut(Party, GpuTypeId) -> bool,
    ) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        let mut taken = BTreeSet::new();
        for &gpu_type in order {
            let kind = gpu_type.index();
            let runs = self
                .entries
                .iter()
                .filter(|(party, _)| can_run(**party, gpu_type));
            let mut queue: Vec<([f64; 3], u64, Party, bool)> = runs
                .map(|(party, entry)| {
                    let target = entry.target.as_ref().map_or(0.0, |target| target[kind]);
                    let keys = [self.priority(entry, kind), entry.deficit_s[kind], target];
                    (keys, entry.number, *party, entry.target.is_some())
                })
                .collect();
            queue.sort_by(|a, b| {
                let keys = b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal);
                keys.then(a.1.cmp(&b.1))
            });
            for (keys, _, party, planned) in queue {
                let has_turn = party.jobs().any(|job| taken.contains(&job));
                if has_turn || (keys[0] <= 0.0 && !leftovers) || !take(party, gpu_type) {
                    continue;
                }
                taken.extend(party.jobs());
                turns.push(Turn {
                    party,
                    gpu_type,
                    planned,
                });
            }
        }
        turns
    }
}
