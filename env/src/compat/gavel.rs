//! Gavel's simulator: the round mechanism of [`pleach_scheduler::rounds`] under its clock and with its quirks.
//!
//! Targets are given, one table for each time that they were computed, so that what is checked is the mechanism and the
//! clock and not which of several optima a solver returns. Kept as they are there:
//! - Targets change only after a job has come, left or failed, and 1,920 s after the last change; a job that came since has
//!   no target, and where it wins a place in the dealing the place stays empty.
//! - Nothing runs and jobs wait: the next round begins at the next arrival; after the last arrival targets are computed
//!   anew at once.
//! - The time received in a round counts from the end of the last round in which anything ran.
//! - A lease with fewer steps than the gang has GPUs fails: its steps are lost, and after five such in a row the job leaves.
//! - Policies that do not know GPU types visit them in an order that is shuffled every round.
//! - Ties are broken by rounding errors, so times are kept as floats here, beside the clock of the world.
//!
//! # Source
//! stanford-futuredata/gavel at c4fa400, `scheduler/scheduler.py`, read for its behaviour.
//!
//! # What is deliberately not here
//! Policies that pack two jobs onto one GPU.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::error::PolicyError;
use pleach_scheduler::ids::{GpuTypeId, JobId, Time};
use pleach_scheduler::planner::Planner;
use pleach_scheduler::rounds::{Rounds, Turn, lease, place};

use super::in_rounds::RoundPreset;
use super::python_random::PythonRandom;
use crate::world::{LeaseOutcome, LeaseTerms, RoundClock, RoundEnd, Seen};

/// Length of a round, s.
const ROUND_S: f64 = 360.0;
/// Failures in a row after which a job leaves.
const MAX_FAILURES: u32 = 5;

/// The clock: a round ends with its last whole step. A job's work is its steps, 1 s of the reference run each, and its
/// speed on a type its steps per second there.
pub const CLOCK: RoundClock = RoundClock {
    length: Time(360_000_000),
    end: RoundEnd::LastStep,
    seen: Seen::AtOnce,
    step_s: Some(1.0),
};

/// What each job was due from the time at which it was computed.
pub type Targets = BTreeMap<JobId, Vec<f64>>;

/// What distinguishes Gavel's policies once their targets are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GavelRules {
    /// Seed of the simulator. Index of the random stream of the order of types: seed + 5.
    pub seed: u32,
    /// Least time between two changes of targets, s.
    pub retarget_min_s: f64,
    /// Jobs without priority take what nobody else wants: all policies but FIFO.
    pub leftovers: bool,
    /// The policy does not know GPU types.
    pub blind: bool,
}

impl GavelRules {
    /// The rules under a policy's name in the simulator, for example `max_min_fairness_perf`.
    #[must_use]
    pub fn of(policy: &str) -> GavelRules {
        let knows = ["_perf", "_packed", "allox", "gandiva"];
        GavelRules {
            seed: 0,
            retarget_min_s: 1920.0,
            leftovers: !policy.starts_with("fifo"),
            blind: !knows.iter().any(|word| policy.contains(word)),
        }
    }
}

/// A micro-task: what one job does in one round.
#[derive(Clone, Copy, Debug)]
struct MicroTask {
    job: JobId,
    gpu_type: GpuTypeId,
    steps: u64,
    finish_s: f64,
    failed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    steps_left: u64,
    num_failures: u32,
}

/// Gavel's simulator as a planner.
#[derive(Debug)]
pub struct Gavel {
    rules: GavelRules,
    num_jobs: usize,
    targets: Vec<Targets>,
    /// When targets were set, s. `[number of times]`
    retargeted_s: Vec<f64>,
    rounds: Rounds,
    types: Vec<GpuTypeId>,
    random: PythonRandom,
    progress: Vec<Progress>,
    tasks: Vec<MicroTask>,
    round_end_s: Option<f64>,
    last_retarget_s: f64,
    changed: bool,
    problem: Option<String>,
}

impl Gavel {
    /// A planner for `num_jobs` jobs in all and GPU types visited in the order of `types`; `targets[k]` is what was due
    /// after the k-th change.
    #[must_use]
    pub fn new(rules: GavelRules, num_jobs: usize, types: Vec<GpuTypeId>, targets: Vec<Targets>) -> Gavel {
        Gavel {
            rounds: Rounds::new(ROUND_S, types.len()),
            random: PythonRandom::new(rules.seed + 5),
            rules,
            num_jobs,
            targets,
            retargeted_s: Vec::new(),
            types,
            progress: Vec::new(),
            tasks: Vec::new(),
            round_end_s: None,
            last_retarget_s: 0.0,
            changed: false,
            problem: None,
        }
    }

    /// When targets were set, s.
    #[must_use]
    pub fn retargeted_s(&self) -> &[f64] {
        &self.retargeted_s
    }

    /// The first thing that did not go as in the simulator: targets asked for more often than they are given, or a job
    /// that left the world at another time than the simulator's steps say.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Counts what the micro-tasks of the last round did, the latest first. Returns the present time.
    fn settle(&mut self, cluster: &Cluster) -> f64 {
        let mut tasks = std::mem::take(&mut self.tasks);
        let Some(end_s) = tasks.iter().map(|task| task.finish_s).reduce(f64::max) else {
            return cluster.now().as_secs_f64();
        };
        let begin_s = self.round_end_s.replace(end_s).unwrap_or(0.0);
        tasks.sort_by(|a, b| b.finish_s.total_cmp(&a.finish_s).then(a.job.cmp(&b.job)));
        for task in tasks {
            let progress = &mut self.progress[task.job.index()];
            let mut leaves = false;
            if task.failed {
                progress.num_failures += 1;
                leaves = progress.num_failures >= MAX_FAILURES;
                self.changed = true;
            } else {
                progress.num_failures = 0;
                progress.steps_left -= task.steps;
                leaves |= progress.steps_left == 0;
                self.rounds.receive(task.job, task.gpu_type, task.finish_s - begin_s);
            }
            if leaves {
                self.rounds.remove(task.job);
                self.changed = true;
            }
            if leaves != (cluster.job(task.job).state == JobState::Finished) {
                let text = format!("{:?} at {end_s} s: leaves = {leaves}, but not in the world", task.job);
                self.problem.get_or_insert(text);
            }
        }
        end_s
    }

    /// Notes the jobs that have come.
    fn admit(&mut self, cluster: &Cluster) {
        for (index, job) in cluster.jobs().iter().enumerate().skip(self.progress.len()) {
            self.progress.push(Progress {
                steps_left: job.request.estimate_s.value as u64,
                num_failures: 0,
            });
            self.rounds.add(JobId(index as u32));
            self.changed = true;
        }
    }

    fn retarget(&mut self, now_s: f64) {
        let elapsed_s = now_s - self.last_retarget_s;
        if !self.changed || (elapsed_s < self.rules.retarget_min_s && self.last_retarget_s != 0.0) {
            return;
        }
        let number = self.retargeted_s.len();
        if number >= self.targets.len() {
            let text = format!("targets are asked for at {now_s} s, once more than they are given");
            self.problem.get_or_insert(text);
            self.targets.push(Targets::new());
        }
        self.rounds.set_targets(elapsed_s, &self.targets[number]);
        self.retargeted_s.push(now_s);
        self.last_retarget_s = now_s;
        self.changed = false;
    }

    fn deal(&mut self, cluster: &Cluster, now_s: f64) -> Vec<Turn> {
        self.retarget(now_s);
        let mut order = self.types.clone();
        if self.rules.blind {
            self.random.shuffle(&mut order);
        }
        let mut turns = self.rounds.deal(cluster, &order, self.rules.leftovers);
        turns.retain(|turn| turn.planned);
        turns
    }

    fn task(&self, cluster: &Cluster, turn: Turn, now_s: f64) -> MicroTask {
        let request = &cluster.job(turn.job).request;
        let steps_per_s = cluster.class(request.class).speed[turn.gpu_type.index()];
        let steps = ((steps_per_s * ROUND_S) as u64).min(self.progress[turn.job.index()].steps_left);
        MicroTask {
            job: turn.job,
            gpu_type: turn.gpu_type,
            steps,
            finish_s: now_s + steps as f64 / steps_per_s,
            failed: steps < u64::from(request.num_gpus),
        }
    }
}

impl Planner for Gavel {
    fn name(&self) -> &str {
        "gavel"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let now_s = self.settle(cluster);
        self.admit(cluster);
        let mut turns = self.deal(cluster, now_s);
        if turns.is_empty() && self.progress.len() == self.num_jobs {
            self.last_retarget_s = 0.0;
            turns = self.deal(cluster, now_s);
        }
        self.tasks = turns.iter().map(|turn| self.task(cluster, *turn, now_s)).collect();
        let placed = place(cluster, &turns);
        lease(cluster, placed);
        Ok(())
    }
}

impl RoundPreset for Gavel {
    fn terms(&self, job: JobId) -> LeaseTerms {
        let failed = self.tasks.iter().any(|task| task.job == job && task.failed);
        let last = self.progress[job.index()].num_failures + 1 >= MAX_FAILURES;
        LeaseTerms {
            outcome: match (failed, last) {
                (false, _) => LeaseOutcome::Kept,
                (true, false) => LeaseOutcome::Lost,
                (true, true) => LeaseOutcome::Left,
            },
            ..LeaseTerms::default()
        }
    }
}
