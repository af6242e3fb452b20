//! Gavel's simulator: the round mechanism of [`pleach_baselines::rounds`] under its clock and with its quirks.
//!
//! Targets are given, one table for each time that they were computed, so that what is checked is the mechanism and the
//! clock and not which of several optima a solver returns. Kept as they are there:
//! - Targets change only after a job has come, left or failed, and 1,920 s after the last change; a job that came since has
//!   no target, and where it wins a place in the allocation the place stays empty.
//! - Nothing runs and jobs wait: the next round begins at the next arrival; after the last arrival targets are computed
//!   anew at once.
//! - The time received in a round counts from the end of the last round in which anything ran.
//! - A lease with fewer steps than the gang has GPUs fails: its steps are lost, and after five such in a row the job leaves.
//! - Policies that do not know GPU types visit them in an order that is shuffled every round.
//! - Two jobs on the same GPUs run at their measured speeds beside each other for the whole round, also when one ends
//!   early, and both end when the later one does. What a pair receives is not counted for its jobs.
//! - Ties are broken by rounding errors, so times are kept as floats here, beside the clock of the world.
//!
//! # Source
//! stanford-futuredata/gavel at c4fa400, `scheduler/scheduler.py`, read for its behaviour.
//!
//! # What is deliberately not here
//! The optimisers behind the targets.

use std::collections::BTreeMap;

use pleach_baselines::rounds::{JobCombination, Lease, Rounds, Targets, apply_leases, place};
use pleach_env::world::{LeaseOutcome, LeaseTerms, RoundClock, RoundEnd, Seen};
use pleach_scheduler::cluster::{Cluster, JobState, Placement};
use pleach_scheduler::{ClassId, GpuTypeId, JobId, Planner, PolicyError, Time};

use super::in_rounds::RoundPreset;
use super::python_random::PythonRandom;

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

/// Steps per second of two classes on the same GPUs of a type.
pub type PairSpeeds = BTreeMap<(GpuTypeId, ClassId, ClassId), [f64; 2]>;

/// What distinguishes Gavel's policies once their targets are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GavelRules {
    /// Seed of the simulator. Index of the random stream of the order of types: seed + 5.
    pub seed: u32,
    /// Least time between two changes of targets, s.
    pub retarget_min_s: f64,
    /// Jobs without priority take what no other job wants: all policies but FIFO.
    pub leftovers: bool,
    /// The policy does not know GPU types.
    pub blind: bool,
    /// Two jobs may share GPUs.
    pub packs: bool,
}

impl GavelRules {
    /// The rules under a policy's name in the simulator, for example `max_min_fairness_perf`.
    #[must_use]
    pub fn of(policy: &str) -> GavelRules {
        let packs = policy.ends_with("_packed") || policy == "gandiva";
        GavelRules {
            seed: 0,
            retarget_min_s: 1920.0,
            leftovers: !policy.starts_with("fifo"),
            blind: !packs && !policy.ends_with("_perf") && policy != "allox",
            packs,
        }
    }
}

/// A micro-task: what one combination does in one round.
#[derive(Clone, Copy, Debug)]
struct MicroTask {
    combination: JobCombination,
    gpu_type: GpuTypeId,
    /// Steps and steps per second of its jobs.
    steps: [(u64, f64); 2],
    start_s: f64,
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
    pairs: PairSpeeds,
    random: PythonRandom,
    progress: Vec<Progress>,
    tasks: Vec<MicroTask>,
    places: BTreeMap<JobCombination, Placement>,
    terms: BTreeMap<JobId, LeaseTerms>,
    round_end_s: Option<f64>,
    last_retarget_s: f64,
    changed: bool,
    problem: Option<String>,
}

impl Gavel {
    /// A planner for `num_jobs` jobs in all and GPU types visited in the order of `types`; `targets[k]` is what was due
    /// after the k-th change. `pairs` is needed only for policies that pack.
    #[must_use]
    pub fn new(
        rules: GavelRules,
        num_jobs: usize,
        types: Vec<GpuTypeId>,
        targets: Vec<Targets>,
        pairs: PairSpeeds,
    ) -> Gavel {
        Gavel {
            rounds: Rounds::new(ROUND_S, types.len()),
            random: PythonRandom::new(rules.seed + 5),
            rules,
            num_jobs,
            targets,
            retargeted_s: Vec::new(),
            types,
            pairs,
            progress: Vec::new(),
            tasks: Vec::new(),
            places: BTreeMap::new(),
            terms: BTreeMap::new(),
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

    /// The first thing that did not go as in the simulator: targets asked for more often than they are given, a job that
    /// left the world at another time than the simulator's steps say, or that is as fast beside another one as the
    /// cluster's table of pairs does not say. A job that gains from company is none of these: the cluster knows no such.
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
        tasks.sort_by(|a, b| {
            b.finish_s
                .total_cmp(&a.finish_s)
                .then(a.combination.cmp(&b.combination))
        });
        for task in tasks {
            let mut left = Vec::new();
            for (job, (steps, _)) in task.combination.jobs().zip(task.steps) {
                let progress = &mut self.progress[job.index()];
                if !task.failed {
                    progress.num_failures = 0;
                    progress.steps_left -= steps;
                } else if task.combination.beside.is_none() {
                    progress.num_failures += 1;
                }
                if progress.steps_left == 0 || progress.num_failures >= MAX_FAILURES {
                    left.push(job);
                }
            }
            if !task.failed {
                self.rounds
                    .receive(task.combination, task.gpu_type, task.finish_s - begin_s);
            }
            self.changed |= task.failed || !left.is_empty();
            for job in task.combination.jobs() {
                let leaves = left.contains(&job);
                if leaves {
                    self.rounds.remove(job);
                }
                if leaves != (cluster.job(job).state == JobState::Finished) {
                    let text = format!("{job:?} at {end_s} s: leaves = {leaves}, but not in the world");
                    self.problem.get_or_insert(text);
                }
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
            let job_id = JobId(index as u32);
            let gang = |id: JobId| cluster.job(id).request.num_gpus;
            let alone = self
                .rounds
                .combinations()
                .filter(|combination| combination.beside.is_none());
            let others: Vec<JobId> = alone.map(|combination| combination.job).collect();
            self.rounds.add(JobCombination::alone(job_id));
            for other in others
                .into_iter()
                .filter(|other| self.rules.packs && gang(*other) == gang(job_id))
            {
                self.rounds.add(JobCombination::pair(other, job_id));
            }
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

    fn allocate(&mut self, cluster: &Cluster, now_s: f64) -> Vec<Lease> {
        self.retarget(now_s);
        let mut order = self.types.clone();
        if self.rules.blind {
            self.random.shuffle(&mut order);
        }
        let can_run = |combination: JobCombination, kind: GpuTypeId| {
            let speeds = self.speeds(cluster, combination, kind);
            combination.jobs().zip(speeds).all(|(_, speed)| speed > 0.0)
        };
        let mut leases = self
            .rounds
            .allocate(cluster, &order, can_run, self.rules.leftovers);
        leases.retain(|lease| lease.planned);
        leases
    }

    /// Steps per second of a combination's jobs on a type.
    fn speeds(&self, cluster: &Cluster, combination: JobCombination, kind: GpuTypeId) -> [f64; 2] {
        let class = |job: JobId| cluster.job(job).request.class;
        match combination.beside {
            None => [cluster.class(class(combination.job)).speed[kind.index()], 0.0],
            Some(beside) => {
                let key = (kind, class(combination.job), class(beside));
                self.pairs.get(&key).copied().unwrap_or_default()
            }
        }
    }

    fn task(&self, cluster: &Cluster, lease: Lease, now_s: f64) -> MicroTask {
        let mut task = MicroTask {
            combination: lease.combination,
            gpu_type: lease.gpu_type,
            steps: [(0, 0.0); 2],
            start_s: now_s,
            finish_s: now_s,
            failed: false,
        };
        let speeds = self.speeds(cluster, lease.combination, lease.gpu_type);
        for (index, job) in lease.combination.jobs().enumerate() {
            let steps = ((speeds[index] * ROUND_S) as u64).min(self.progress[job.index()].steps_left);
            task.steps[index] = (steps, speeds[index]);
            task.finish_s = task.finish_s.max(now_s + steps as f64 / speeds[index]);
            task.failed |= steps < u64::from(cluster.job(job).request.num_gpus);
        }
        task
    }

    /// What the world must know of the leases: gains from company, attempts that fail, pairs that end together.
    fn note_terms(&mut self, cluster: &Cluster) {
        self.terms.clear();
        for task in &self.tasks {
            for (job, (_, speed)) in task.combination.jobs().zip(task.steps) {
                let last = self.progress[job.index()].num_failures + 1 >= MAX_FAILURES;
                let rate_factor = speed / cluster.job(job).rate;
                let alone = cluster.class(cluster.job(job).request.class).speed[task.gpu_type.index()];
                if (rate_factor - 1.0).abs() > 1e-9 && speed <= alone {
                    let text = format!("{job:?} is {rate_factor} as fast as the cluster says");
                    self.problem.get_or_insert(text);
                }
                let terms = LeaseTerms {
                    rate_factor,
                    outcome: match (task.failed, last && task.combination.beside.is_none()) {
                        (false, _) => LeaseOutcome::Kept,
                        (true, false) => LeaseOutcome::Lost,
                        (true, true) => LeaseOutcome::Left,
                    },
                    span_min_s: task.finish_s - task.start_s,
                };
                self.terms.insert(job, terms);
            }
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
        let mut leases = self.allocate(cluster, now_s);
        if leases.is_empty() && self.progress.len() == self.num_jobs {
            self.last_retarget_s = 0.0;
            leases = self.allocate(cluster, now_s);
        }
        self.tasks = leases
            .iter()
            .map(|lease| self.task(cluster, *lease, now_s))
            .collect();
        self.places = place(cluster, &leases, &self.places);
        apply_leases(cluster, &self.places);
        self.note_terms(cluster);
        Ok(())
    }
}

impl RoundPreset for Gavel {
    fn terms(&self, job: JobId) -> LeaseTerms {
        self.terms.get(&job).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::in_rounds::run;
    use super::super::test_workloads::{job, workload};
    use super::*;
    use pleach_scheduler::cluster_spec::ClusterSpec;

    fn finishes(
        num_gpus: u32,
        jobs: Vec<pleach_env::workload::JobSpec>,
        targets: Vec<Targets>,
    ) -> (Vec<f64>, Vec<f64>) {
        let mut workload = workload(jobs);
        workload.cluster = ClusterSpec::uniform(1, num_gpus, 1);
        let rules = GavelRules::of("max_min_fairness_perf");
        let types = vec![GpuTypeId(0)];
        let mut planner = Gavel::new(rules, workload.jobs.len(), types, targets, PairSpeeds::new());
        let result = run(&workload, CLOCK, &mut planner, &mut |_| {}).unwrap();
        assert_eq!(planner.problem(), None);
        let finishes = result.jobs.iter().map(|job| job.finish_s).collect();
        (finishes, planner.retargeted_s().to_vec())
    }

    fn all(jobs: &[u32]) -> Targets {
        jobs.iter()
            .map(|job| (JobCombination::alone(JobId(*job)), vec![1.0]))
            .collect()
    }

    #[test]
    fn a_newcomer_waits_for_new_targets_although_a_gpu_is_free() {
        // Steps of 1 s, 360 a round. Job 0 comes at 0 s and job 1 at 100 s. Targets are set at 0 s and, because the last
        // time was 0, at 360 s again: job 1 runs from there. Job 2 comes at 400 s and is seen at 720 s, but targets may
        // change only from 360 + 1,920 = 2,280 s on: at 2,520 s, the first end of a round after that.
        let jobs = vec![
            job("a", 0.0, 1, 3600.0),
            job("b", 100.0, 1, 360.0),
            job("c", 400.0, 1, 360.0),
        ];
        let (finishes, retargeted_s) = finishes(3, jobs, vec![all(&[0]), all(&[0, 1]), all(&[0, 2])]);
        assert_eq!(retargeted_s, [0.0, 360.0, 2520.0]);
        assert_eq!(finishes, [3600.0, 720.0, 2880.0]);
    }

    #[test]
    fn a_gang_with_fewer_steps_left_than_gpus_fails_five_times_and_leaves() {
        // 362 steps on 4 GPUs: 360 in the first round, then five attempts at the last 2, of 2 s each.
        let (finishes, _) = finishes(4, vec![job("a", 0.0, 4, 362.0)], vec![all(&[0]); 7]);
        assert_eq!(finishes, [370.0]);
    }
}
