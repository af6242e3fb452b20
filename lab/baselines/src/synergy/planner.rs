//! Synergy in rounds: which jobs run is decided by an order and the GPUs alone, then CPU and host memory are given out.
//!
//! Every round the cluster is emptied on paper. Jobs are taken in their order as long as their gangs fit the GPUs, those
//! that do not fit are passed over; then they are placed with what [`Grant`] gives them. What changes is stopped and
//! started; a job with the same GPUs and the same grant goes on.
//!
//! # Source
//! Mohan et al., Synergy (OSDI'22), section 4: proportional, GREEDY, TUNE and OPT.
//!
//! # Deviations
//! - The paper knows equal servers. Here each GPU type is given out by itself; a job goes to the type on which its class is
//!   fastest and that still has GPUs for it.
//! - A job would rather stay on its GPUs than move up (`stay`); the released simulator moves jobs every round, which costs
//!   nothing there.
//! - A changed grant of CPU or memory stops and restarts a job here, with what that costs.
//! - Jobs that TUNE could not place, because others on their servers hold fractions or more CPU than is proportional, are
//!   tried once more on any type. GREEDY falls back to the proportional share on an otherwise idle cluster.
//! - Jobs on draining nodes stay where they are.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, ShapeId};
use pleach_scheduler::{ClassId, ConfigError, GpuTypeId, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::optimum::{Group, optimum};
use super::order::Order;
use super::round::{Round, types_of};
use crate::shared::allocation::start_fractions;
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;
use pleach_dealing::demand::{Counts, ResourceDemand};
use pleach_dealing::profile::Profiles;

/// Settings of [`Synergy`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynergyConfig {
    /// The order of the jobs. The paper puts Synergy on top of several orders; its headline figures are over FIFO.
    pub order: Order,
    /// Length of a round, s, above 0.
    pub round_s: f64,
    /// What is best for a job may be slower than the fastest by this part, 0 to 1. *Ours*; 0 = nothing.
    pub tolerance: f64,
    /// Whether a job would rather stay on its GPUs than move up. *Ours*.
    pub stay: bool,
    /// Whether jobs that want most GPUs, CPU and memory are placed first, as the paper says; else they are in their order, as in the
    /// released simulator.
    pub largest_first: bool,
}

impl Default for SynergyConfig {
    fn default() -> SynergyConfig {
        SynergyConfig {
            order: Order::Fifo,
            round_s: 300.0,
            tolerance: 0.0,
            stay: true,
            largest_first: true,
        }
    }
}

impl SynergyConfig {
    pub(super) fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let round_s = self.round_s;
        let ok = (1.0..=1e7).contains(&round_s);
        check(name, "round_s", round_s, ok, "1 to 1e7")?;
        let tolerance = self.tolerance;
        let ok = (0.0..=1.0).contains(&tolerance);
        check(name, "tolerance", tolerance, ok, "0 to 1")
    }
}

/// What CPU and memory a job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The proportional share.
    Proportional,
    /// What is best for it, or it does not run in this round.
    Greedy,
    /// What is best for it where that is free, else the proportional share, which others must make free.
    Tune,
    /// What is best for all together where that is free, else as [`Grant::Tune`].
    Optimum,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Synergy {
    name: &'static str,
    grant: Grant,
    config: SynergyConfig,
    timer: RoundTimer,
    profiles: Profiles,
}

impl Synergy {
    /// # Errors
    /// A setting out of its range.
    pub fn new(name: &'static str, grant: Grant, config: SynergyConfig) -> Result<Synergy, ConfigError> {
        config.validate(name)?;
        Ok(Synergy {
            name,
            grant,
            timer: RoundTimer::new(Time::from_secs_f64(config.round_s)),
            profiles: Profiles::new(config.tolerance),
            config,
        })
    }

    fn demand(&mut self, cluster: &Cluster, round: &Round, id: JobId, kind: GpuTypeId) -> ResourceDemand {
        let profile = self.profiles.of(cluster, id, kind);
        let num_gpus = cluster.job(id).request.num_gpus;
        let stays = if self.config.stay {
            round.counts_now(cluster, id, kind)
        } else {
            Counts::new()
        };
        match self.grant {
            Grant::Proportional => ResourceDemand {
                stays,
                ..ResourceDemand::new(num_gpus, profile.fair, profile.fair)
            },
            Grant::Greedy | Grant::Tune | Grant::Optimum => profile.demand(num_gpus, stays),
        }
    }

    /// Tries to place a job on one of its types, fastest first.
    fn place(&mut self, cluster: &Cluster, round: &mut Round, id: JobId, best: bool) -> bool {
        if !round.has_quota(cluster, id) {
            return false;
        }
        for kind in types_of(cluster, id) {
            if round.allocators[kind.index()].num_free() < cluster.job(id).request.num_gpus {
                continue;
            }
            let demand = self.demand(cluster, round, id, kind);
            if round.allocators[kind.index()].place(id, &demand, best) {
                round.charge(cluster, id);
                return true;
            }
        }
        false
    }

    fn allocator(&mut self, cluster: &Cluster, round: &mut Round) {
        let order = round.order.clone();
        if self.grant == Grant::Greedy {
            for id in order {
                self.place(cluster, round, id, true);
            }
            return;
        }
        let chosen = round.choose(cluster, &order);
        let mut demands: Vec<(JobId, GpuTypeId, ResourceDemand)> = chosen
            .into_iter()
            .map(|(id, kind)| (id, kind, self.demand(cluster, round, id, kind)))
            .collect();
        if self.grant == Grant::Optimum {
            self.share_out(cluster, round, &mut demands);
        }
        if self.grant != Grant::Proportional && self.config.largest_first {
            let total = |demand: &ResourceDemand, input: usize| {
                (demand.best[input] * f64::from(demand.num_gpus)) as u64
            };
            demands
                .sort_by_key(|(_, _, demand)| Reverse((demand.num_gpus, total(demand, 0), total(demand, 1))));
        }
        let mut missed = Vec::new();
        for (id, kind, demand) in demands {
            let allocator = &mut round.allocators[kind.index()];
            let runs = match self.grant {
                Grant::Tune | Grant::Optimum => allocator.tune(id, &demand),
                Grant::Proportional | Grant::Greedy => allocator.place(id, &demand, false),
            };
            if runs {
                round.charge(cluster, id);
            } else {
                missed.push(id);
            }
        }
        if !missed.is_empty() {
            self.fill(cluster, round, &order);
        }
    }

    /// Lets every job demand what is best for all together, type by type.
    fn share_out(
        &mut self,
        cluster: &Cluster,
        round: &Round,
        demands: &mut [(JobId, GpuTypeId, ResourceDemand)],
    ) {
        for (number, allocator) in round.allocators.iter().enumerate() {
            let mut members: BTreeMap<(ClassId, ShapeId, u32), Vec<usize>> = BTreeMap::new();
            for (at, (id, kind, demand)) in demands.iter().enumerate() {
                if kind.index() == number {
                    let job = cluster.job(*id);
                    let key = (job.request.class, job.shape, demand.num_gpus);
                    members.entry(key).or_default().push(at);
                }
            }
            let groups: Vec<Group> = members
                .values()
                .map(|of_group| {
                    let (id, kind, demand) = &demands[of_group[0]];
                    Group {
                        num_gpus: demand.num_gpus,
                        num_jobs: of_group.len(),
                        choices: self.profiles.choices(cluster, *id, *kind),
                    }
                })
                .collect();
            let sum = |input: usize| allocator.servers.iter().map(|server| server.free[input]).sum();
            let Some(best) = optimum(&groups, [sum(0), sum(1)]) else {
                continue;
            };
            for (of_group, picks) in members.values().zip(best.picks) {
                for (at, pick) in of_group.iter().zip(picks) {
                    let (id, kind, demand) = &mut demands[*at];
                    let fair = self.profiles.of(cluster, *id, *kind).fair;
                    let stays = std::mem::take(&mut demand.stays);
                    *demand = ResourceDemand {
                        stays,
                        ..ResourceDemand::new(demand.num_gpus, pick, fair)
                    };
                }
            }
        }
    }

    /// Places, in their order, jobs that hold nothing yet and fit as they are.
    fn fill(&mut self, cluster: &Cluster, round: &mut Round, order: &[JobId]) {
        for id in order {
            let holds = round
                .allocators
                .iter()
                .any(|allocator| allocator.held.contains_key(id));
            if !holds && !self.place(cluster, round, *id, true) {
                self.place(cluster, round, *id, false);
            }
        }
    }
}

impl Planner for Synergy {
    fn name(&self) -> &str {
        self.name
    }

    fn places_tasks(&self) -> bool {
        false
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        start_fractions(cluster);
        if !self.timer.begins(cluster) {
            return Ok(());
        }
        let (order, grant) = (self.config.order, self.grant);
        let profiles = &mut self.profiles;
        let shared: &Cluster = cluster;
        let mut round = Round::begin(shared, |jobs| {
            order.sorted(shared, jobs, |id| {
                speed_of(profiles, shared, id, grant == Grant::Proportional)
            })
        });
        self.allocator(cluster, &mut round);
        let runs_nothing = |round: &Round| round.allocators.iter().all(|allocator| allocator.held.is_empty());
        if runs_nothing(&round) {
            let order = round.order.clone();
            self.fill(cluster, &mut round, &order);
        }
        round.carry_out(cluster);
        // By arrival the clock is not looked at.
        self.timer.settle(cluster, order == Order::Fifo);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.timer.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        self.timer.rests()
    }
}

/// How fast a job would run: on its fastest type, with what is best for it or what it is due.
pub(super) fn speed_of(profiles: &mut Profiles, cluster: &Cluster, id: JobId, fair: bool) -> f64 {
    let Some(kind) = types_of(cluster, id).first().copied() else {
        return 1.0;
    };
    let profile = profiles.of(cluster, id, kind);
    let speed = cluster.class(cluster.job(id).request.class).speed[kind.index()];
    let with = if fair {
        profile.fair_speed
    } else {
        profile.best_speed
    };
    (speed * with).max(1e-9)
}
