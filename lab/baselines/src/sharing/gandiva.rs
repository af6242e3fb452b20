//! Gandiva: gangs take turns, pairs are packed by trial, and spread gangs are drawn together.
//!
//! Where more jobs wait than fit, gangs take turns: when a quantum is over, those that have waited longest take the place of
//! those that have run longest. A job that still finds no GPUs is put beside the running job that uses its GPUs least,
//! and what both then do is measured: if together they do less than the GPUs would alone, the newcomer is taken away again and
//! pairs of these classes are not tried any more. At the end of a quantum, gangs that lie on more nodes than they need
//! move where that pays for the restart.
//!
//! # Source
//! Xiao et al., OSDI'18: suspend and resume with a quantum of about a minute, packing by profiling in place, migration to better
//! locality. No run times are known to it.
//!
//! # Deviations
//! - Gandiva suspends in about 100 ms. Where restarts cost more, a quantum lasts so long that they take a given part of it at
//!   most (the limit is assumed).
//! - Migration only draws gangs together; that it also empties nodes for gangs to come, and that jobs grow onto idle GPUs and
//!   shrink again, is left out.
//! - A trial is judged by the believed rates of the pair after the trial's time, not by counted mini-batches.

use std::collections::BTreeSet;

use pleach_scheduler::cluster::{Cluster, JobState, Sharing};
use pleach_scheduler::{ActionKind, ClassId, ConfigError, JobId, Planner, PolicyError, Time};

use super::draw_together::draw_together;
use super::gandiva_config::GandivaConfig;
use super::turns::{RunningGroup, take_turns};
use crate::shared::allocate_by_priority::tightest;
use crate::shared::allocation::start_fractions;
use crate::shared::what_if::is_whole_gpu_job;

/// A pair that is being tried.
#[derive(Clone, Copy, Debug)]
struct Trial {
    newcomer: JobId,
    partner: JobId,
    ends: Time,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Gandiva {
    config: GandivaConfig,
    /// When each job last began to wait. `[job]`
    waits_since: Vec<Time>,
    turn_ends: Time,
    trials: Vec<Trial>,
    /// Pairs of classes that were tried and did less than one alone; the lower class first.
    refused: BTreeSet<(ClassId, ClassId)>,
    slices: Vec<pleach_scheduler::cluster::Slice>,
}

impl Gandiva {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: GandivaConfig) -> Result<Gandiva, ConfigError> {
        config.validate()?;
        Ok(Gandiva {
            config,
            waits_since: Vec::new(),
            turn_ends: Time::ZERO,
            trials: Vec::new(),
            refused: BTreeSet::new(),
            slices: Vec::new(),
        })
    }

    /// A turn, long enough for the dearest restart among the running jobs.
    fn quantum(&self, cluster: &Cluster) -> Time {
        let costs = cluster.running().map(|id| cluster.restart_cost_s(id));
        let dearest_s = costs.fold(0.0, f64::max);
        Time::from_secs_f64(self.config.quantum_s.max(dearest_s / self.config.overhead_max))
    }

    fn stop(&mut self, cluster: &mut Cluster, id: JobId) {
        cluster.preempt(id);
        self.waits_since[id.index()] = cluster.now();
    }

    /// The waiting jobs, longest wait first.
    fn waiting(&self, cluster: &Cluster) -> Vec<JobId> {
        let mut waiting: Vec<JobId> = cluster
            .pending()
            .filter(|id| is_whole_gpu_job(cluster.job(*id)))
            .collect();
        waiting.sort_unstable_by_key(|id| (self.waits_since[id.index()], *id));
        waiting
    }

    /// Takes pairs apart that were tried for long enough and do less than one alone.
    fn judge(&mut self, cluster: &mut Cluster) {
        let now = cluster.now();
        for trial in std::mem::take(&mut self.trials) {
            let jobs = [trial.newcomer, trial.partner];
            if !is_pair(cluster, jobs) {
                continue;
            }
            if now < trial.ends {
                self.trials.push(trial);
                continue;
            }
            let part = |id: JobId| cluster.job(id).rate / cluster.job(id).rate_alone;
            if part(jobs[0]) + part(jobs[1]) < self.config.keep_above {
                self.refused.insert(classes(cluster, jobs));
                if cluster.capabilities().can(ActionKind::Preempt) {
                    self.stop(cluster, trial.newcomer);
                }
            }
        }
    }

    /// The next turn: the jobs that have waited longest take the GPUs of those that have run longest.
    fn turn(&mut self, cluster: &mut Cluster, quantum: Time) {
        let waiting = self.waiting(cluster);
        if waiting.is_empty() || !cluster.capabilities().can(ActionKind::Preempt) {
            return;
        }
        for RunningGroup { jobs, .. } in take_turns(cluster, &waiting, quantum) {
            for id in jobs {
                self.stop(cluster, id);
            }
        }
        for id in waiting {
            self.start(cluster, id);
        }
        // What is left goes to the jobs that have just been stopped.
        for id in self.waiting(cluster) {
            self.start(cluster, id);
        }
    }

    fn start(&mut self, cluster: &mut Cluster, id: JobId) {
        if let Some(placement) = tightest(cluster, id, &mut self.slices) {
            cluster.start(id, placement);
        }
    }

    /// Puts waiting jobs beside running ones, to see how they fare.
    fn try_pairs(&mut self, cluster: &mut Cluster) {
        if cluster.capabilities().sharing == Sharing::Off || cluster.num_pending() == 0 {
            return;
        }
        let mut alone: Vec<JobId> = cluster
            .running()
            .filter(|id| !cluster.job(*id).is_sharing)
            .collect();
        let utilisation = |id: JobId| cluster.class(cluster.job(id).request.class).load.utilisation;
        alone.sort_unstable_by(|a, b| utilisation(*a).total_cmp(&utilisation(*b)).then(a.cmp(b)));
        for id in self.waiting(cluster) {
            let fits = |partner: &JobId| {
                !self.refused.contains(&classes(cluster, [id, *partner])) && cluster.can_pack(id, *partner)
            };
            let Some(at) = alone.iter().position(fits) else {
                continue;
            };
            let partner = alone.remove(at);
            let placement = cluster.job(partner).placement.clone();
            cluster.start(id, placement);
            self.trials.push(Trial {
                newcomer: id,
                partner,
                ends: cluster.now() + Time::from_secs_f64(self.config.trial_s),
            });
        }
    }
}

/// Whether two jobs run beside each other.
fn is_pair(cluster: &Cluster, jobs: [JobId; 2]) -> bool {
    let [a, b] = jobs.map(|id| cluster.job(id));
    a.state == JobState::Running && b.state == JobState::Running && a.is_sharing && a.placement == b.placement
}

fn classes(cluster: &Cluster, jobs: [JobId; 2]) -> (ClassId, ClassId) {
    let [a, b] = jobs.map(|id| cluster.job(id).request.class);
    (a.min(b), a.max(b))
}

impl Planner for Gandiva {
    fn name(&self) -> &str {
        "gandiva"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        for index in self.waits_since.len()..cluster.jobs().len() {
            self.waits_since.push(cluster.jobs()[index].submit);
        }
        start_fractions(cluster);
        self.judge(cluster);
        for id in self.waiting(cluster) {
            self.start(cluster, id);
        }
        let now = cluster.now();
        if now >= self.turn_ends {
            let quantum = self.quantum(cluster);
            self.turn(cluster, quantum);
            draw_together(cluster, &self.config);
            self.turn_ends = now + quantum;
        }
        self.try_pairs(cluster);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let trial = self.trials.iter().map(|trial| trial.ends).min();
        let waits = cluster.num_running() > 0 && cluster.num_pending() > 0;
        let turn = waits.then_some(self.turn_ends);
        trial.into_iter().chain(turn).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{class, cluster_of, plan_at, submit_as};
    use super::*;
    use crate::test_clusters::submit;
    use pleach_scheduler::NodeId;
    use pleach_scheduler::cluster::{Capabilities, Placement, Slice};
    use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};

    fn gandiva() -> Gandiva {
        Gandiva::new(GandivaConfig::default()).unwrap()
    }

    fn jobs_at(planner: &mut Gandiva, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        let running = plan_at(planner, cluster, now_s);
        running.into_iter().map(|job| job.0).collect()
    }

    /// One node on which nothing can be shared.
    fn alone(num_gpus: u32, restart_cost_s: f64) -> Cluster {
        let capabilities = Capabilities {
            restart_cost_s,
            ..Capabilities::DEFAULT.with(ActionKind::Preempt)
        };
        let spec = ClusterSpec::uniform(1, num_gpus, 1);
        Cluster::new(&spec, &[ModelClass::default()], capabilities).unwrap()
    }

    #[test]
    fn gangs_take_turns_of_a_minute_and_who_waited_longest_is_next() {
        let mut cluster = alone(2, 0.0);
        let mut planner = gandiva();
        for num_gpus in [2, 1, 2] {
            submit(&mut cluster, num_gpus, 1e4);
        }
        assert_eq!(jobs_at(&mut planner, &mut cluster, 0.0), [0]);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(60.0)));
        assert_eq!(jobs_at(&mut planner, &mut cluster, 59.0), [0]);
        // Job 1 takes one GPU; job 2 needs both.
        assert_eq!(jobs_at(&mut planner, &mut cluster, 60.0), [1]);
        assert_eq!(jobs_at(&mut planner, &mut cluster, 120.0), [2]);
        assert_eq!(jobs_at(&mut planner, &mut cluster, 180.0), [0]);
        assert_eq!(jobs_at(&mut planner, &mut cluster, 240.0), [1]);
        // When job 1 ends, job 2 starts at once, before the end of a turn.
        cluster.finish(JobId(1));
        cluster.advance(Time::from_secs_f64(250.0));
        assert_eq!(jobs_at(&mut planner, &mut cluster, 250.0), [2]);
    }

    #[test]
    fn a_turn_is_twenty_times_as_long_as_the_dearest_restart() {
        let mut cluster = alone(1, 30.0);
        let mut planner = gandiva();
        for _ in 0..2 {
            submit(&mut cluster, 1, 1e4);
        }
        jobs_at(&mut planner, &mut cluster, 0.0);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(600.0)));
        assert_eq!(jobs_at(&mut planner, &mut cluster, 599.0), [0]);
        assert_eq!(jobs_at(&mut planner, &mut cluster, 600.0), [1]);
    }

    #[test]
    fn a_pair_that_does_less_than_one_alone_is_taken_apart_and_not_tried_again() {
        // Beside each other light jobs run at 1 / 1.2 (sum 1.67), heavy ones at 1 / 2.5 (sum 0.8).
        let classes = [class("light", 0.2), class("heavy", 0.9)];
        let slower = [("light", "light", 1.2), ("heavy", "heavy", 2.5)];
        for (kind, at_60_s, at_61_s) in [(0, vec![0, 1], vec![0, 1]), (1, vec![1], vec![1])] {
            let mut cluster = cluster_of(1, 1, &classes, &slower);
            let mut planner = gandiva();
            for _ in 0..2 {
                submit_as(&mut cluster, kind, 1, 1e4, 1.0);
            }
            assert_eq!(jobs_at(&mut planner, &mut cluster, 0.0), [0, 1]);
            assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(60.0)));
            // The heavy newcomer is stopped, and then has its turn alone.
            assert_eq!(jobs_at(&mut planner, &mut cluster, 60.0), at_60_s);
            assert_eq!(jobs_at(&mut planner, &mut cluster, 61.0), at_61_s);
        }
    }

    #[test]
    fn a_job_is_packed_beside_the_one_that_uses_its_gpu_least() {
        let classes = [class("heavy", 0.9), class("light", 0.2)];
        let mut cluster = cluster_of(1, 2, &classes, &[]);
        let mut planner = gandiva();
        for kind in [0, 1, 0] {
            submit_as(&mut cluster, kind, 1, 1e4, 1.0);
        }
        let running = plan_at(&mut planner, &mut cluster, 0.0);
        assert_eq!(running[2], (2, running[1].1.clone()));
    }

    #[test]
    fn a_spread_gang_is_drawn_together_when_a_node_has_room() {
        let class = ModelClass {
            locality: LocalityFactors::PHILLY,
            ..ModelClass::default()
        };
        let mut cluster = cluster_of(2, 2, &[class], &[]);
        let mut planner = gandiva();
        let gang = submit(&mut cluster, 2, 1e4);
        let slices = [0, 1].map(|node| Slice {
            node: NodeId(node),
            gpus: 0b1,
        });
        cluster.start(gang, Placement::from_slice(&slices));
        let other = submit(&mut cluster, 1, 1e4);
        assert_eq!(
            plan_at(&mut planner, &mut cluster, 0.0),
            [(0, vec![(1, 0b11)]), (other.0, vec![(0, 0b10)])]
        );
        assert_eq!(cluster.job(gang).rate, 1.0);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let wrong = GandivaConfig {
            overhead_max: 0.0,
            ..GandivaConfig::default()
        };
        let text = Gandiva::new(wrong).unwrap_err().to_string();
        assert!(text.contains("gandiva.overhead_max"), "{text}");
    }
}
