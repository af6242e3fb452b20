//! A planner that leases GPUs round by round so that everybody comes to what it is due.

use std::collections::BTreeMap;

use super::{Party, Rounds, Targets, lease, place};
use crate::cluster::{Cluster, JobState, Placement};
use crate::error::PolicyError;
use crate::ids::{GpuTypeId, JobId, Time};
use crate::planner::Planner;

/// How a [`RoundPlanner`] keeps time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRules {
    /// Length of a round.
    pub round: Time,
    /// Least time between two changes of targets.
    pub retarget_min: Time,
}

impl RoundRules {
    /// Rounds of 360 s, targets that change every 1,920 s at most.
    ///
    /// # Source
    /// Gavel (OSDI'20), section 7.1, and the defaults of its simulator.
    pub const GAVEL: RoundRules = RoundRules {
        round: Time(360_000_000),
        retarget_min: Time(1_920_000_000),
    };
}

/// Asks `targets` what everybody is due whenever jobs have come or left (but not too often) and leases GPUs accordingly.
///
/// Between the ends of rounds it does nothing, unless the cluster is idle; so it must be called at least at every multiple
/// of the round's length. A job that came since targets were set takes only what nobody else wants.
#[derive(Clone, Debug)]
pub struct RoundPlanner<F> {
    name: String,
    rules: RoundRules,
    targets: F,
    rounds: Option<Rounds>,
    /// Attained service of each job when it was last looked at, GPU·s. `[job]`
    attained_gpu_s: Vec<f64>,
    /// Who had a turn in the last round, and where.
    last: BTreeMap<Party, Placement>,
    next_round: Time,
    targets_set: Option<Time>,
    changed: bool,
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
            next_round: Time::ZERO,
            targets_set: None,
            changed: false,
        }
    }

    /// Notes who came, who left, and what was received since the last look.
    fn look(&mut self, cluster: &Cluster) {
        let rounds = self
            .rounds
            .get_or_insert_with(|| Rounds::new(self.rules.round.as_secs_f64(), cluster.num_types()));
        for (party, placement) in &self.last {
            let gpu_type = cluster.nodes()[placement[0].node.index()].gpu_type;
            let mut received_s = 0.0_f64;
            for job in party.jobs() {
                let row = cluster.job(job);
                let attained_gpu_s = row.attained_gpu_s_at(cluster.now());
                let before_gpu_s = std::mem::replace(&mut self.attained_gpu_s[job.index()], attained_gpu_s);
                received_s = received_s.max((attained_gpu_s - before_gpu_s) / row.request.gpus());
            }
            rounds.receive(*party, gpu_type, received_s);
        }
        let finished = |job: &JobId| cluster.job(*job).state == JobState::Finished;
        for job in self.last.keys().flat_map(|party| party.jobs()).filter(finished) {
            rounds.remove(job);
            self.changed = true;
        }
        // A party whose job was stopped by others (a failure) keeps no GPUs.
        self.last
            .retain(|party, placement| party.jobs().all(|job| cluster.job(job).placement == *placement));
        for index in self.attained_gpu_s.len()..cluster.jobs().len() {
            self.attained_gpu_s.push(cluster.jobs()[index].attained_gpu_s);
            rounds.add(Party::alone(JobId(index as u32)));
            self.changed = true;
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
        for pair in targets.keys().filter(|party| party.beside.is_some()) {
            if !rounds.entries.contains_key(pair) {
                rounds.add(*pair);
            }
        }
        rounds.set_targets((now - last.unwrap_or(now)).as_secs_f64(), &targets);
        rounds
            .entries
            .retain(|party, _| party.beside.is_none() || targets.contains_key(party));
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
        let now = cluster.now();
        if now < self.next_round && cluster.num_running() > 0 {
            return Ok(());
        }
        self.look(cluster);
        self.retarget(cluster)?;
        let Some(rounds) = &self.rounds else {
            return Ok(());
        };
        let order: Vec<GpuTypeId> = (0..cluster.num_types())
            .map(|kind| GpuTypeId(kind as u8))
            .collect();
        let can_run = |party: Party, kind: GpuTypeId| {
            let speed = |job: JobId| cluster.class(cluster.job(job).request.class).speed[kind.index()];
            party.jobs().all(|job| speed(job) > 0.0)
        };
        let turns = rounds.deal(cluster, &order, can_run, true);
        self.last = place(cluster, &turns, &self.last);
        lease(cluster, &self.last);
        self.next_round = now + self.rules.round;
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let has_jobs = cluster.num_running() + cluster.num_pending() > 0;
        has_jobs.then_some(self.next_round)
    }
}
