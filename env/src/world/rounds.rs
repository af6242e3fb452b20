//! A clock of rounds: GPUs are leased, leases end together, and the scheduler decides only then.
//!
//! Simulators of round-based schedulers differ in a few conventions, which are the fields of [`RoundClock`]: where a round
//! ends, when it is seen that a job has done its work, and whether progress counts in whole steps. Rates hold for a whole
//! lease, also where a neighbour leaves within it. With a clock set, the
//! driver calls [`World::advance`] until [`World::round_is_over`], lets the scheduler change the cluster, calls
//! [`World::carry_out`] and then [`World::begin_round`]. Arrivals reach the cluster at their own times all the same.

use std::cmp::Reverse;

use pleach_scheduler::{GpuTypeId, JobId, Time};

use super::World;
use super::round_clock::{Lease, Rounds};

pub use super::round_clock::{LeaseOutcome, LeaseTerms, RoundClock, RoundEnd, Seen};

impl World {
    /// Lets the scheduler decide in rounds; to be called before anything runs.
    ///
    /// # Panics
    /// If the length is not above zero, or something runs.
    pub fn set_rounds(&mut self, clock: RoundClock) {
        assert!(clock.length > Time::ZERO && self.cluster.num_running() == 0);
        self.rounds = Some(Rounds {
            clock,
            end: None,
            leases: Vec::new(),
        });
    }

    /// Whether the round is over, so that the scheduler may decide.
    #[must_use]
    pub fn round_is_over(&self) -> bool {
        let end = self.rounds.as_ref().and_then(|rounds| rounds.end);
        end.is_some_and(|end| end <= self.cluster.now())
    }

    /// Begins a round with the jobs that now hold GPUs.
    pub fn begin_round(&mut self, terms: impl Fn(JobId) -> LeaseTerms) {
        let Some(mut rounds) = self.rounds.take() else {
            return;
        };
        let (now, clock) = (self.cluster.now(), rounds.clock);
        let grid_end = Time((now.0 / clock.length.0 + 1) * clock.length.0);
        let mut jobs: Vec<JobId> = Vec::with_capacity(self.cluster.num_running());
        for kind in 0..self.cluster.num_types() {
            let running = self.cluster.running_of(GpuTypeId(kind as u8));
            jobs.extend(running.iter().map(|(_, job)| *job));
        }
        jobs.sort_unstable();
        rounds.leases.clear();
        rounds.end = match clock.end {
            RoundEnd::Grid if self.cluster.num_pending() + jobs.len() > 0 => Some(grid_end),
            _ => None,
        };
        for job in jobs {
            let terms = terms(job);
            let truth = &mut self.truth[job.index()];
            truth.rate = self.cluster.job(job).rate * truth.pace;
            let (rate, cost_s) = (truth.rate * terms.rate_factor, truth.cost_left_s);
            let span = match clock.end {
                RoundEnd::Grid => grid_end - now,
                RoundEnd::LastStep => clock.length,
            };
            let mut work_s = rate * (span.as_secs_f64() - cost_s).max(0.0);
            if let Some(step_s) = clock.step_s {
                // A step that is done but for rounding is done.
                work_s = (work_s / step_s * (1.0 + 1e-12)).floor() * step_s;
            }
            let finishes = truth.rest_s <= work_s;
            work_s = work_s.min(truth.rest_s);
            let span_s = (cost_s + work_s / rate).max(terms.span_min_s);
            let end = now + Time::from_secs_f64(span_s).max(Time(1));
            if clock.end == RoundEnd::LastStep {
                rounds.end = rounds.end.max(Some(end));
            }
            // The finish that was foreseen without rounds is stale.
            truth.run += 1;
            let leaves = match terms.outcome {
                LeaseOutcome::Kept => finishes,
                LeaseOutcome::Lost => false,
                LeaseOutcome::Left => true,
            };
            if leaves {
                let seen = match clock.seen {
                    Seen::AtLeaseEnd if clock.end == RoundEnd::Grid => grid_end,
                    _ => end,
                };
                self.finishes.push(Reverse((seen, job, truth.run)));
            } else {
                if terms.outcome == LeaseOutcome::Lost {
                    work_s = 0.0;
                }
                let run = truth.run;
                rounds.leases.push(Lease { job, run, work_s });
            }
        }
        self.rounds = Some(rounds);
    }

    pub(super) fn round_end(&self) -> Option<Time> {
        self.rounds.as_ref().and_then(|rounds| rounds.end)
    }

    /// Credits the work of the leases where the round has ended, and lets an idle cluster's next round begin.
    pub(super) fn settle_round(&mut self) {
        let Some(mut rounds) = self.rounds.take() else {
            return;
        };
        let now = self.cluster.now();
        match rounds.end {
            Some(end) if end <= now => {
                for lease in rounds.leases.drain(..) {
                    if self.truth[lease.job.index()].run != lease.run {
                        continue;
                    }
                    self.told_lease(lease.job, lease.work_s);
                    let truth = &mut self.truth[lease.job.index()];
                    let elapsed_s = (now - truth.since).as_secs_f64();
                    truth.rest_s -= lease.work_s;
                    truth.cost_left_s = (truth.cost_left_s - elapsed_s).max(0.0);
                    truth.since = now;
                    let executed_s = truth.work_s - truth.rest_s;
                    self.cluster.report_progress(lease.job, executed_s);
                }
            }
            Some(_) => {}
            None => {
                rounds.end = match rounds.clock.end {
                    RoundEnd::LastStep => Some(now),
                    RoundEnd::Grid => {
                        let length = rounds.clock.length.0;
                        Some(Time((now.0 + length - 1) / length * length))
                    }
                };
            }
        }
        self.rounds = Some(rounds);
    }
}

#[cfg(test)]
mod tests {
    use pleach_scheduler::cluster::{Capabilities, Placement, Slice};
    use pleach_scheduler::{ActionKind, Estimate, NodeId, Provenance};

    use super::*;
    use crate::test_lists::{job, workload};
    use crate::world::Advance;
    use pleach_workloads::JobSpec;

    const GRID: RoundClock = RoundClock {
        length: Time(100_000_000),
        end: RoundEnd::Grid,
        seen: Seen::AtLeaseEnd,
        step_s: None,
    };

    fn world_of(jobs: Vec<JobSpec>, restart_cost_s: f64, clock: RoundClock) -> World {
        let workload = workload(jobs);
        let oracle = |job: &JobSpec| Estimate {
            value: job.run_time_s,
            provenance: Provenance::Oracle,
        };
        let estimates: Vec<Estimate> = workload.jobs.iter().map(oracle).collect();
        let capabilities = Capabilities {
            restart_cost_s,
            ..Capabilities::DEFAULT.with(ActionKind::Preempt)
        };
        let mut world = World::new(&workload, capabilities, &estimates).unwrap();
        world.set_rounds(clock);
        world
    }

    fn start(world: &mut World, id: u32, gpu: u32) {
        let slice = Slice {
            node: NodeId(0),
            gpus: 1 << gpu,
        };
        world
            .cluster_mut()
            .start(JobId(id), Placement::from_slice(&[slice]));
    }

    /// Every job on the GPU of its number, in every round, under the same terms.
    fn run(world: &mut World, terms: impl Fn(JobId) -> LeaseTerms) -> Vec<f64> {
        while !world.is_over() {
            assert_eq!(world.advance(), Advance::Event);
            if world.round_is_over() {
                for id in 0..world.cluster().jobs().len() as u32 {
                    if world.cluster().job(JobId(id)).state == pleach_scheduler::cluster::JobState::Pending {
                        start(world, id, id);
                    }
                }
                world.carry_out();
                world.begin_round(&terms);
            }
        }
        world.outcomes().map(|job| job.finish_s).collect()
    }

    #[test]
    fn on_a_grid_jobs_start_and_are_seen_to_end_at_whole_multiples() {
        // Arrivals at 0 and 130 s; work of 250 and 10 s: starts at 0 and 200, seen at 300 and 300 s.
        let mut world = world_of(vec![job("a", 0.0, 1, 250.0), job("b", 130.0, 1, 10.0)], 0.0, GRID);
        assert_eq!(run(&mut world, |_| LeaseTerms::default()), [300.0, 300.0]);
        let starts: Vec<f64> = world.outcomes().map(|job| job.first_start_s).collect();
        assert_eq!(starts, [0.0, 200.0]);
    }

    #[test]
    fn an_idle_cluster_waits_for_the_next_arrival_and_then_for_the_grid() {
        let mut world = world_of(vec![job("a", 0.0, 1, 50.0), job("b", 950.0, 1, 50.0)], 0.0, GRID);
        assert_eq!(run(&mut world, |_| LeaseTerms::default()), [100.0, 1100.0]);
    }

    #[test]
    fn rounds_that_end_with_their_last_step_follow_each_other_without_a_gap() {
        // Steps of 30 s: three fit into 100 s. Work of 150 s: 90 s in the round from 0 to 90, then 60 s until 150, where
        // the job leaves at once. The other job's 45 s hold one whole step, and the half one is the rest of its work.
        let clock = RoundClock {
            end: RoundEnd::LastStep,
            seen: Seen::AtOnce,
            step_s: Some(30.0),
            ..GRID
        };
        let mut world = world_of(vec![job("a", 0.0, 1, 150.0), job("b", 0.0, 1, 45.0)], 0.0, clock);
        assert_eq!(run(&mut world, |_| LeaseTerms::default()), [150.0, 45.0]);
    }

    #[test]
    fn whole_steps_only_count_and_beliefs_follow() {
        // Steps of 30 s in leases of 100 s on a grid: 90 s a lease. Work of 200 s needs three leases.
        let clock = RoundClock {
            step_s: Some(30.0),
            ..GRID
        };
        let mut world = world_of(vec![job("a", 0.0, 1, 200.0)], 0.0, clock);
        world.advance();
        start(&mut world, 0, 0);
        world.carry_out();
        world.begin_round(|_| LeaseTerms::default());
        world.advance();
        assert!(world.round_is_over());
        let now = world.cluster().now();
        assert_eq!(world.cluster().job(JobId(0)).executed_s_at(now), 90.0);
        assert_eq!(
            world.cluster().job(JobId(0)).expected_finish,
            Time::from_secs_f64(210.0)
        );
        world.carry_out();
        world.begin_round(|_| LeaseTerms::default());
        assert_eq!(run(&mut world, |_| LeaseTerms::default()), [300.0]);
    }

    #[test]
    fn terms_scale_the_rate_hold_a_lease_open_lose_its_work_or_end_the_job() {
        let jobs = || {
            ["scaled", "held", "plain"]
                .map(|id| job(id, 0.0, 1, 150.0))
                .to_vec()
        };
        let clock = RoundClock {
            end: RoundEnd::LastStep,
            seen: Seen::AtOnce,
            ..GRID
        };
        let terms = |id: JobId| LeaseTerms {
            rate_factor: if id.0 == 0 { 2.0 } else { 1.0 },
            span_min_s: if id.0 == 1 { 80.0 } else { 0.0 },
            ..LeaseTerms::default()
        };
        // At twice the rate 75 s; 100 + 50 s, but the lease lasts 80 s; 100 + 50 s.
        assert_eq!(
            run(&mut world_of(jobs(), 0.0, clock), terms),
            [75.0, 180.0, 150.0]
        );
        // The first lease lasts to 100 s and is lost; then as above.
        let mut world = world_of(vec![job("a", 0.0, 1, 150.0)], 0.0, clock);
        world.advance();
        start(&mut world, 0, 0);
        world.carry_out();
        world.begin_round(|_| LeaseTerms {
            outcome: LeaseOutcome::Lost,
            ..LeaseTerms::default()
        });
        assert_eq!(run(&mut world, |_| LeaseTerms::default()), [250.0]);
        let left = LeaseTerms {
            outcome: LeaseOutcome::Left,
            ..LeaseTerms::default()
        };
        let mut world = world_of(vec![job("a", 0.0, 1, 150.0)], 0.0, clock);
        assert_eq!(run(&mut world, |_| left), [100.0]);
    }

    #[test]
    fn a_restart_costs_time_of_its_lease() {
        // 250 s of work. Round 1 runs on GPU 0 (100 s), round 2 on GPU 1 (40 s of restart, 60 s of work), then two renewed
        // leases: 90 s are left, seen at 300 s.
        let mut world = world_of(vec![job("a", 0.0, 1, 250.0)], 40.0, GRID);
        for gpu in [0, 1] {
            world.advance();
            if gpu == 1 {
                world.cluster_mut().preempt(JobId(0));
            }
            start(&mut world, 0, gpu);
            world.carry_out();
            world.begin_round(|_| LeaseTerms::default());
        }
        world.advance();
        let now = world.cluster().now();
        assert_eq!(
            (now, world.cluster().job(JobId(0)).executed_s_at(now)),
            (Time(200_000_000), 160.0)
        );
        world.begin_round(|_| LeaseTerms::default());
        assert_eq!(run(&mut world, |_| LeaseTerms::default()), [300.0]);
    }
}
