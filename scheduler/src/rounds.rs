//! Rounds: GPUs are leased for a fixed time and dealt out anew when the leases end, so that over many rounds every job
//! receives the share of each GPU type that it is due.
//!
//! A policy that says *what each job is due* (a fraction of its time on every GPU type) need not say *when*: at the end of
//! each round a job's priority on a type is its target over the share that it has received there, the jobs of highest
//! priority take the GPUs, and a job keeps the GPUs that it had where it can. When targets change, what a job is still owed
//! is kept as a deficit and breaks ties.
//!
//! [`Rounds`] is the bookkeeping, without a clock of its own: whoever drives it says what was received and when targets
//! change. [`RoundPlanner`] drives it on a cluster: it renews leases, preempts and starts.
//!
//! # Source
//! Gavel (OSDI'20), section 5: priorities, half a round of credit for a new job, deficits, gangs placed by decreasing size.
//!
//! # What is deliberately not here
//! How targets come about (an optimiser), and jobs that share a GPU.

use std::collections::BTreeMap;

use crate::cluster::{Cluster, JobState, Placement, Slice};
use crate::error::PolicyError;
use crate::ids::{GpuTypeId, JobId, NodeId, Time};
use crate::planner::Planner;

/// Priority of a job with a target that has received nothing, as a multiple of its target (Gavel, `scheduler.py`).
const UNSERVED: f64 = 1e9;

/// What one job is due and has received since the targets last changed.
#[derive(Clone, Debug)]
struct Entry {
    /// Fraction of its time on each type; none where the targets were set before it came. `[num_types]`
    target: Option<Vec<f64>>,
    /// Half a round, and the time received on each type, s. `[num_types]`
    received_s: Vec<f64>,
    /// Time that it is still owed from before the last change of targets, s; negative = it owes. `[num_types]`
    deficit_s: Vec<f64>,
}

/// A job that has won GPUs of a type for the coming round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The job.
    pub job: JobId,
    /// The type of all its GPUs.
    pub gpu_type: GpuTypeId,
    /// Whether targets are known for the job; a job that came since they were set has none.
    pub planned: bool,
}

/// Targets, what was received, deficits.
#[derive(Clone, Debug)]
pub struct Rounds {
    half_round_s: f64,
    num_types: usize,
    entries: BTreeMap<JobId, Entry>,
    /// Time received on each type by all jobs since the last change of targets, with half a round for each job that was
    /// there then, s. `[num_types]`
    received_s: Vec<f64>,
}

impl Rounds {
    /// No jobs yet. `round_s` is the nominal length of a round.
    #[must_use]
    pub fn new(round_s: f64, num_types: usize) -> Rounds {
        Rounds {
            half_round_s: round_s / 2.0,
            num_types,
            entries: BTreeMap::new(),
            received_s: vec![0.0; num_types],
        }
    }

    /// A job has come. It waits without a target until targets are set.
    pub fn add(&mut self, job: JobId) {
        self.entries.insert(
            job,
            Entry {
                target: None,
                received_s: vec![self.half_round_s; self.num_types],
                deficit_s: vec![0.0; self.num_types],
            },
        );
    }

    /// A job has left.
    pub fn remove(&mut self, job: JobId) {
        self.entries.remove(&job);
    }

    /// Whether the job is known.
    #[must_use]
    pub fn contains(&self, job: JobId) -> bool {
        self.entries.contains_key(&job)
    }

    /// Jobs in order of their ids.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.entries.keys().copied()
    }

    /// A job has held its gang on GPUs of a type for so many seconds.
    pub fn receive(&mut self, job: JobId, gpu_type: GpuTypeId, seconds: f64) {
        if let Some(entry) = self.entries.get_mut(&job) {
            entry.received_s[gpu_type.index()] += seconds;
            self.received_s[gpu_type.index()] += seconds;
        }
    }

    /// Sets what every job is due from now on; a job that is not named is due nothing. What was due in the `elapsed_s`
    /// since the last time and not received becomes deficit.
    ///
    /// # Panics
    /// If a target has not one fraction for each type.
    pub fn set_targets(&mut self, elapsed_s: f64, targets: &BTreeMap<JobId, Vec<f64>>) {
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
        for (job, entry) in &mut self.entries {
            let target = targets.get(job);
            assert!(target.is_none_or(|target| target.len() == self.num_types));
            entry.target = Some(target.cloned().unwrap_or_else(|| vec![0.0; self.num_types]));
        }
    }

    /// How much the job's turn it is on a type: its target over the share of all time received there that was its own.
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

    /// Deals all GPUs of the cluster to the known jobs for one round, type by type in the given order: by priority, then
    /// deficit, then target, then arrival. A job that does not fit into what is left of a type is passed over. With
    /// `leftovers`, jobs without priority take what nobody else wants.
    #[must_use]
    pub fn deal(&self, cluster: &Cluster, order: &[GpuTypeId], leftovers: bool) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        let mut taken = vec![false; cluster.jobs().len()];
        for &gpu_type in order {
            let kind = gpu_type.index();
            let mut queue: Vec<([f64; 3], JobId, bool)> = Vec::new();
            for (job, entry) in &self.entries {
                let target = entry.target.as_ref().map_or(0.0, |target| target[kind]);
                let speed = cluster.class(cluster.job(*job).request.class).speed[kind];
                if speed > 0.0 {
                    let keys = [self.priority(entry, kind), entry.deficit_s[kind], target];
                    queue.push((keys, *job, entry.target.is_some()));
                }
            }
            // Stable, so that equal keys stay in order of arrival.
            queue.sort_by(|(a, ..), (b, ..)| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
            let mut left = cluster.num_gpus_of(gpu_type);
            for (keys, job, planned) in queue {
                let num_gpus = cluster.job(job).request.num_gpus;
                if taken[job.index()] || num_gpus > left || (keys[0] <= 0.0 && !leftovers) {
                    continue;
                }
                left -= num_gpus;
                taken[job.index()] = true;
                turns.push(Turn {
                    job,
                    gpu_type,
                    planned,
                });
            }
        }
        turns
    }
}

/// The exact GPUs of every turn: larger gangs first; among gangs of one size those that run on the type already keep
/// their GPUs where nobody has taken them, and the others take the first free GPUs, node by node.
///
/// # Panics
/// If the turns want more GPUs than there are.
#[must_use]
pub fn place(cluster: &Cluster, turns: &[Turn]) -> Vec<(JobId, Placement)> {
    let nodes = cluster.nodes();
    let mut free: Vec<u64> = nodes
        .iter()
        .map(|node| u64::MAX >> (64 - node.num_gpus))
        .collect();
    let size = |turn: &Turn| cluster.job(turn.job).request.num_gpus;
    let mut order: Vec<Turn> = turns.to_vec();
    order.sort_by_key(|turn| std::cmp::Reverse(size(turn)));
    let mut placed = Vec::with_capacity(order.len());
    for gangs in order.chunk_by(|a, b| size(a) == size(b)) {
        let kept = |turn: &Turn, free: &[u64]| {
            let job = cluster.job(turn.job);
            job.state == JobState::Running
                && nodes[job.placement[0].node.index()].gpu_type == turn.gpu_type
                && job
                    .placement
                    .iter()
                    .all(|slice| slice.gpus & !free[slice.node.index()] == 0)
        };
        let mut moved = Vec::new();
        for turn in gangs {
            if kept(turn, &free) {
                let placement = cluster.job(turn.job).placement.clone();
                for slice in &placement {
                    free[slice.node.index()] &= !slice.gpus;
                }
                placed.push((turn.job, placement));
            } else {
                moved.push(*turn);
            }
        }
        for turn in moved {
            let (mut left, mut placement) = (size(&turn), Placement::new());
            for (index, node) in nodes.iter().enumerate() {
                if node.gpu_type != turn.gpu_type || free[index] == 0 || left == 0 {
                    continue;
                }
                let gpus = lowest(free[index], left);
                free[index] &= !gpus;
                left -= gpus.count_ones();
                let node = NodeId(index as u32);
                placement.push(Slice { node, gpus });
            }
            assert_eq!(left, 0, "{:?} was dealt GPUs that are not there", turn.job);
            placed.push((turn.job, placement));
        }
    }
    placed
}

/// The lowest `num` set bits of a mask, or all of them.
fn lowest(mut mask: u64, num: u32) -> u64 {
    let all = mask;
    for _ in 0..num {
        mask &= mask.wrapping_sub(1);
    }
    all & !mask
}

/// Carries out a dealing: stops the jobs that lost their GPUs or move, renews the leases of those that keep them, starts
/// the others.
pub fn lease(cluster: &mut Cluster, placed: Vec<(JobId, Placement)>) {
    let keeps: BTreeMap<JobId, &Placement> = placed.iter().map(|(job, placement)| (*job, placement)).collect();
    let mut stopped: Vec<JobId> = Vec::new();
    for kind in 0..cluster.num_types() {
        let running = cluster.running_of(GpuTypeId(kind as u8)).iter();
        let lost = running.filter(|(_, job)| keeps.get(job).copied() != Some(&cluster.job(*job).placement));
        stopped.extend(lost.map(|(_, job)| *job));
    }
    stopped.sort_unstable();
    for job in stopped {
        cluster.preempt(job);
    }
    for (job, placement) in placed {
        if cluster.job(job).state == JobState::Pending {
            cluster.start(job, placement);
        }
    }
}

/// How a [`RoundPlanner`] keeps time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRules {
    /// Length of a round. Gavel: 360 s.
    pub round: Time,
    /// Least time between two changes of targets. Gavel's simulator: 1,920 s.
    pub retarget_min: Time,
}

impl RoundRules {
    /// # Source
    /// Gavel (OSDI'20), section 5, and the driver scripts of its simulator.
    pub const GAVEL: RoundRules = RoundRules {
        round: Time(360_000_000),
        retarget_min: Time(1_920_000_000),
    };
}

/// Asks `targets` what jobs are due whenever jobs have come or gone (but not too often) and leases GPUs accordingly.
///
/// Between the ends of rounds it does nothing, so it must be called at least at every multiple of the round's length.
#[derive(Clone, Debug)]
pub struct RoundPlanner<F> {
    name: String,
    rules: RoundRules,
    targets: F,
    rounds: Option<Rounds>,
    /// Attained service of each job when it was last looked at, GPU·s. `[job]`
    attained_gpu_s: Vec<f64>,
    /// Types on which jobs ran in the last round.
    last: BTreeMap<JobId, GpuTypeId>,
    next_round: Time,
    targets_set: Time,
    changed: bool,
}

impl<F> RoundPlanner<F>
where
    F: FnMut(&Cluster) -> Result<BTreeMap<JobId, Vec<f64>>, PolicyError> + Send,
{
    /// A planner around whatever says what jobs are due: for each job that has not left, one fraction for each GPU type.
    #[must_use]
    pub fn new(name: &str, rules: RoundRules, targets: F) -> RoundPlanner<F> {
        RoundPlanner {
            name: name.into(),
            rules,
            targets,
            rounds: None,
            attained_gpu_s: Vec::new(),
            last: BTreeMap::new(),
            next_round: Time::ZERO,
            targets_set: Time::ZERO,
            changed: false,
        }
    }

    /// Notes who came, who left, and what was received since the last look.
    fn look(&mut self, cluster: &Cluster) {
        let rounds = self
            .rounds
            .get_or_insert_with(|| Rounds::new(self.rules.round.as_secs_f64(), cluster.num_types()));
        for (job, gpu_type) in std::mem::take(&mut self.last) {
            let row = cluster.job(job);
            let attained_gpu_s = row.attained_gpu_s_at(cluster.now());
            let gpu_s = attained_gpu_s - self.attained_gpu_s[job.index()];
            rounds.receive(job, gpu_type, gpu_s / f64::from(row.request.num_gpus));
            self.attained_gpu_s[job.index()] = attained_gpu_s;
            if row.state == JobState::Finished {
                rounds.remove(job);
                self.changed = true;
            }
        }
        for index in self.attained_gpu_s.len()..cluster.jobs().len() {
            self.attained_gpu_s.push(cluster.jobs()[index].attained_gpu_s);
            rounds.add(JobId(index as u32));
            self.changed = true;
        }
    }
}

impl<F> Planner for RoundPlanner<F>
where
    F: FnMut(&Cluster) -> Result<BTreeMap<JobId, Vec<f64>>, PolicyError> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let now = cluster.now();
        if now < self.next_round && cluster.num_running() > 0 {
            return Ok(());
        }
        self.look(cluster);
        let Some(rounds) = &mut self.rounds else {
            return Ok(());
        };
        if self.changed && (now >= self.targets_set + self.rules.retarget_min || self.targets_set == Time::ZERO) {
            let targets = (self.targets)(cluster)?;
            rounds.set_targets((now - self.targets_set).as_secs_f64(), &targets);
            self.targets_set = now;
            self.changed = false;
        }
        let order: Vec<GpuTypeId> = (0..cluster.num_types())
            .map(|kind| GpuTypeId(kind as u8))
            .collect();
        let turns = rounds.deal(cluster, &order, true);
        let placed = place(cluster, &turns);
        self.last = turns.iter().map(|turn| (turn.job, turn.gpu_type)).collect();
        lease(cluster, placed);
        self.next_round = now + self.rules.round;
        Ok(())
    }
}
