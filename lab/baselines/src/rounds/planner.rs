//! A planner that leases GPUs round by round so that every job comes to what it is due.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, NodeState, Placement};
use pleach_scheduler::{GpuTypeId, JobId, Planner, PolicyError, Time};

use super::assign::{Left, assign, carry_out, takes_part, what_if};
use super::mechanism::{JobCombination, Rounds, Targets};
use crate::shared::allocation::start_fractions;
use crate::shared::timer::RoundTimer;
use crate::shared::what_if::is_whole_gpu_job;

/// How a [`RoundPlanner`] keeps time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRules {
    /// Length of a round.
    pub round: Time,
    /// A round lasts at least so many times what the dearest restart costs; 0 = as long as it is.
    pub restarts_min: f64,
    /// Least time between two changes of targets.
    pub retarget_min: Time,
    /// Every round begins with another GPU type, for policies that do not know which is fast; else the fastest is allocated
    /// first.
    pub types_in_turn: bool,
}

impl RoundRules {
    /// Length of a round on this cluster.
    fn round_on(&self, cluster: &Cluster) -> Time {
        let restarts_s = self.restarts_min * cluster.restart_cost_s_max();
        self.round.max(Time::from_secs_f64(restarts_s))
    }

    /// Rounds of 360 s, targets that change every 1,920 s at most.
    ///
    /// # Source
    /// Gavel (OSDI'20), section 7.1, and the defaults of its simulator.
    #[cfg(test)]
    pub(crate) const GAVEL: RoundRules = RoundRules {
        round: Time(360_000_000),
        restarts_min: 0.0,
        retarget_min: Time(1_920_000_000),
        types_in_turn: false,
    };
}

/// How a job runs while its planner rests; the job itself may have ended when it is asked.
#[derive(Clone, Copy, Debug)]
struct Stint {
    job: JobId,
    /// Type of its first node.
    gpu_type: GpuTypeId,
    gpus_asked: f64,
    gpus_held: f64,
    attained_gpu_s: f64,
    run_start: Time,
}

impl Stint {
    fn of(cluster: &Cluster, id: JobId) -> Stint {
        let job = cluster.job(id);
        Stint {
            job: id,
            gpu_type: cluster.nodes()[job.placement[0].node.index()].gpu_type,
            gpus_asked: job.request.gpus(),
            gpus_held: job.gpus_held(),
            attained_gpu_s: job.attained_gpu_s,
            run_start: job.run_start,
        }
    }

    /// As [`Job::attained_gpu_s_at`](pleach_scheduler::cluster::Job::attained_gpu_s_at) of a job that runs.
    fn attained_gpu_s_at(&self, now: Time) -> f64 {
        self.attained_gpu_s + self.gpus_held * (now - self.run_start).as_secs_f64().max(0.0)
    }
}

/// Asks `targets` what every job is due whenever jobs have come or left (but not too often) and leases GPUs accordingly.
///
/// Between the ends of rounds it only starts jobs that ask for fractions of a GPU, which have no part in rounds, unless the
/// cluster is idle. A job that came since targets were set takes only what no other job wants. Types are allocated in the order
/// of their mean speed for the jobs at hand, the fastest first, or in turn.
#[derive(Clone, Debug)]
pub struct RoundPlanner<F> {
    name: String,
    rules: RoundRules,
    targets: F,
    rounds: Option<Rounds>,
    /// Attained service of each job when it was last looked at, GPU·s. `[job]`
    attained_gpu_s: Vec<f64>,
    /// The combinations that had a lease in the last round, and where.
    last: BTreeMap<JobCombination, Placement>,
    timer: RoundTimer,
    /// What those in `last` had received when the rest began.
    stints: BTreeMap<JobCombination, Vec<Stint>>,
    targets_set: Option<Time>,
    changed: bool,
    /// Nodes that were up at the last look.
    num_up: usize,
    num_rounds: usize,
}

impl<F> RoundPlanner<F>
where
    F: FnMut(&Cluster) -> Result<Targets, PolicyError> + Send,
{
    /// A planner around whatever says what jobs are due, alone or in pairs. Pairs need a cluster that can share GPUs.
    #[must_use]
    pub fn new(name: &str, rules: RoundRules, targets: F) -> RoundPlanner<F> {
        RoundPlanner {
            name: name.into(),
            rules,
            targets,
            rounds: None,
            attained_gpu_s: Vec::new(),
            last: BTreeMap::new(),
            timer: RoundTimer::new(rules.round),
            stints: BTreeMap::new(),
            targets_set: None,
            changed: false,
            num_up: 0,
            num_rounds: 0,
        }
    }

    /// Notes which jobs came, which left, and what was received since the last look.
    fn look(&mut self, cluster: &Cluster) {
        let rounds = self.rounds.get_or_insert_with(|| {
            Rounds::new(self.rules.round_on(cluster).as_secs_f64(), cluster.num_types())
        });
        for (combination, placement) in &self.last {
            let gpu_type = cluster.nodes()[placement[0].node.index()].gpu_type;
            let mut received_s = 0.0_f64;
            for job in combination.jobs() {
                let row = cluster.job(job);
                let attained_gpu_s = row.attained_gpu_s_at(cluster.now());
                let before_gpu_s = std::mem::replace(&mut self.attained_gpu_s[job.index()], attained_gpu_s);
                received_s = received_s.max((attained_gpu_s - before_gpu_s) / row.request.gpus());
            }
            rounds.receive(*combination, gpu_type, received_s);
        }
        let finished = |job: &JobId| cluster.job(*job).state == JobState::Finished;
        for job in self
            .last
            .keys()
            .flat_map(|combination| combination.jobs())
            .filter(finished)
        {
            rounds.remove(job);
            self.changed = true;
        }
        // A combination whose job was stopped by others (a failure) keeps no GPUs.
        self.last.retain(|combination, placement| {
            combination
                .jobs()
                .all(|job| cluster.job(job).placement == *placement)
        });
        for index in self.attained_gpu_s.len()..cluster.jobs().len() {
            let job = &cluster.jobs()[index];
            self.attained_gpu_s.push(job.attained_gpu_s);
            if is_whole_gpu_job(job) && job.state != JobState::Finished {
                rounds.add(JobCombination::alone(JobId(index as u32)));
                self.changed = true;
            }
        }
        let num_up = cluster
            .nodes()
            .iter()
            .filter(|node| node.state == NodeState::Up)
            .count();
        self.changed |= num_up != self.num_up;
        self.num_up = num_up;
    }

    fn combinations(&self) -> impl Iterator<Item = JobCombination> {
        self.rounds.iter().flat_map(Rounds::combinations)
    }

    /// Notes what is needed to book, later, what is received in the rounds that are rested through.
    fn begin_rest(&mut self, cluster: &Cluster) {
        self.stints.clear();
        if !self.timer.rests() {
            return;
        }
        let stint = |id: JobId| Stint::of(cluster, id);
        for combination in self.last.keys() {
            self.stints
                .insert(*combination, combination.jobs().map(stint).collect());
        }
    }

    /// Books what was received in the rounds that were rested through, round by round, as looks would have done: sums of
    /// floats are the same only in the same order.
    fn catch_up(&mut self, now: Time) {
        let Some(rounds) = &mut self.rounds else {
            return;
        };
        for begin in self.timer.rested(now) {
            for (combination, stints) in &self.stints {
                let mut received_s = 0.0_f64;
                for stint in stints {
                    let attained_gpu_s = stint.attained_gpu_s_at(begin);
                    let before_gpu_s =
                        std::mem::replace(&mut self.attained_gpu_s[stint.job.index()], attained_gpu_s);
                    received_s = received_s.max((attained_gpu_s - before_gpu_s) / stint.gpus_asked);
                }
                rounds.receive(*combination, stints[0].gpu_type, received_s);
            }
            self.num_rounds += 1;
        }
    }

    fn retarget(&mut self, cluster: &Cluster) -> Result<(), PolicyError> {
        let now = cluster.now();
        let last = self.targets_set;
        let Some(rounds) = self.rounds.as_mut().filter(|_| self.changed) else {
            return Ok(());
        };
        if last.is_some_and(|last| now < last + self.rules.retarget_min) {
            return Ok(());
        }
        let targets = (self.targets)(cluster)?;
        for pair in targets.keys().filter(|combination| combination.beside.is_some()) {
            if !rounds.contains(*pair) {
                rounds.add(*pair);
            }
        }
        rounds.set_targets((now - last.unwrap_or(now)).as_secs_f64(), &targets);
        rounds.retain_pairs_of(&targets);
        self.targets_set = Some(now);
        self.changed = false;
        Ok(())
    }
}

impl<F> Planner for RoundPlanner<F>
where
    F: FnMut(&Cluster) -> Result<Targets, PolicyError> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        start_fractions(cluster);
        self.catch_up(cluster.now());
        if self.rounds.is_none() {
            self.timer = RoundTimer::new(self.rules.round_on(cluster));
        }
        if !self.timer.begins(cluster) {
            return Ok(());
        }
        self.look(cluster);
        self.retarget(cluster)?;
        let Some(rounds) = &self.rounds else {
            return Ok(());
        };
        let eligible: Vec<JobId> = cluster
            .active()
            .into_iter()
            .filter(|id| takes_part(cluster, *id))
            .collect();
        let order = if self.rules.types_in_turn {
            let num = cluster.num_types();
            let kinds = (0..num).map(|kind| GpuTypeId(((kind + self.num_rounds) % num) as u8));
            kinds.collect()
        } else {
            types_by_speed(cluster, &eligible)
        };
        self.num_rounds += 1;
        let is_in = |job: JobId| takes_part(cluster, job);
        let can_run = |combination: JobCombination, kind: GpuTypeId| {
            let runs = |job: JobId| cluster.job(job).types >> kind.0 & 1 == 1;
            combination.jobs().all(|job| is_in(job) && runs(job))
        };
        let free = what_if(cluster);
        let mut left = Left::of(cluster, &free);
        let leases = rounds.allocate_where(&order, can_run, true, |combination, kind| {
            left.take(cluster, combination, kind)
        });
        let placements = assign(cluster, (free, left), &leases, &order, eligible.into_iter());
        carry_out(cluster, &placements);
        self.last = placements;
        // Where no targets are due and every job runs on the type that is allocated first, all of them fit there in any order.
        let first = order.first().copied();
        let is_first = |id: JobId| !takes_part(cluster, id) || Some(cluster.job(id).gpu_type) == first;
        let is_timeless = !self.changed
            && (!self.rules.types_in_turn || cluster.num_types() == 1)
            && self
                .combinations()
                .all(|combination| combination.beside.is_none())
            && cluster.running().all(is_first);
        self.timer.settle(cluster, is_timeless);
        self.begin_rest(cluster);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.timer.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        self.timer.rests()
    }
}

/// The GPU types by the mean speed of these jobs on them, the highest first.
fn types_by_speed(cluster: &Cluster, jobs: &[JobId]) -> Vec<GpuTypeId> {
    let mut speeds = vec![0.0; cluster.num_types()];
    for id in jobs {
        let class = cluster.job(*id).request.class;
        for (speeds, speed) in speeds.iter_mut().zip(&cluster.class(class).speed) {
            *speeds += speed;
        }
    }
    let mut order: Vec<GpuTypeId> = (0..cluster.num_types())
        .map(|kind| GpuTypeId(kind as u8))
        .collect();
    order.sort_by(|a, b| speeds[b.index()].total_cmp(&speeds[a.index()]));
    order
}
