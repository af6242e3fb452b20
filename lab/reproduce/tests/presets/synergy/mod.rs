//! Synergy's simulator: rounds of 300 s on a grid, the whole cluster given out anew in each, CPU cores and host memory
//! granted with the GPUs.
//!
//! A job knows two speeds: the one that its ideal CPU and memory give, and 1 with the share of a server that is
//! proportional to its GPUs. What is granted is granted by the cluster, which refuses to give a core twice; where its own
//! surface of speeds says another speed than these two, the lease says by how much ([`Synergy::num_leases`]). Kept as they
//! are there:
//! - Jobs are seen to have finished when their lease ends; a lease does whole iterations only.
//! - SRTF and FTF order by the speed that a job was granted when it was last tuned, not by its ideal one.
//! - A job whose peers must give way takes *every* job of a server back to its proportional share, in order of servers
//!   spanned, cores and memory per GPU, until enough is free, also those that have nothing to give.
//! - FTF runs the jobs with the *smallest* expected slowdown first.
//!
//! The scheduler's own [`ServerAllocator`] decides which GPUs, cores and memory each job gets: what is here is the order of
//! jobs, the two speeds and the clock.
//!
//! # Source
//! msr-fiddle/synergy at 1bb2bed, `simulator/schedulers/*_synergy_new.py`, `simulator/resources/cluster.py` and
//! `simulator/jobs`, read for their behaviour.
//!
//! # What is deliberately not here
//! The ILP (`+opt`); gangs larger than a server; the priority of jobs that have waited for 1,000 h, which no recorded run
//! reaches; storage bandwidth, which is never short there.

mod ideal;

use std::collections::BTreeMap;

use pleach_baselines::rounds::apply_leases;
use pleach_baselines::synergy::{Holding, ResourceDemand, Server, ServerAllocator};
use pleach_scheduler::cluster::{Cluster, JobState, Placement, Shape, Slice};
use pleach_scheduler::cluster_spec::Resources;
use pleach_scheduler::{JobId, NodeId, Planner, PolicyError, Time};

pub use ideal::{Ideal, Sensitivity};

use ideal::Vector;
use pleach_env::world::{LeaseTerms, RoundClock, RoundEnd, Seen};

use super::in_rounds::RoundPreset;

/// The clock. A job's work is its iterations, 1 s of the reference run each, and its speed 1 over its iteration time with
/// the proportional share.
pub const CLOCK: RoundClock = RoundClock {
    length: Time(300_000_000),
    end: RoundEnd::Grid,
    seen: Seen::AtLeaseEnd,
    step_s: Some(1.0),
};

/// The order in which jobs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By arrival.
    Fifo,
    /// By remaining run time.
    Srtf,
    /// By attained GPU time.
    Las,
    /// By the slowdown that a job would have if it ran to its end from now.
    Ftf,
}

/// What CPU and memory a job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The proportional share (`+fair`).
    Proportional,
    /// What is ideal for it, or it does not run in this round (no suffix).
    Greedy,
    /// What is ideal for it where that is free, else the proportional share, which others must make free (`+tune`).
    Tune,
}

/// Synergy's simulator as a planner.
#[derive(Debug)]
pub struct Synergy {
    order: Order,
    grant: Grant,
    server: Vector,
    ideals: Vec<Ideal>,
    /// Jobs that have not finished, in the order of the last round. The order breaks ties.
    runnable: Vec<JobId>,
    num_seen: usize,
    /// Speed as it stood when the job was last tuned. `[job]`
    speedup: Vec<f64>,
    allocator: ServerAllocator,
    /// What the speed granted is of the cluster's own. `[running job]`
    factors: BTreeMap<JobId, f64>,
    num_leases: [u64; 2],
    problem: Option<String>,
}

impl Synergy {
    /// A planner for servers of `server` = GPUs, CPU cores, memory (GiB). `[job]` in the order of submission.
    #[must_use]
    pub fn new(order: Order, grant: Grant, server: [f64; 3], ideals: Vec<Ideal>) -> Synergy {
        Synergy {
            order,
            grant,
            server,
            speedup: ideals.iter().map(|ideal| ideal.speedup).collect(),
            ideals,
            runnable: Vec::new(),
            num_seen: 0,
            allocator: ServerAllocator::default(),
            factors: BTreeMap::new(),
            num_leases: [0; 2],
            problem: None,
        }
    }

    /// The first thing that did not go as in the simulator.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// What a job may get, per GPU. Gangs are powers of two, so that the division is exact.
    fn demand(&self, job: JobId) -> ResourceDemand {
        let [gpus, cpu_cores, memory_gib] = self.ideals[job.index()].demand;
        let [server_gpus, server_cores, server_gib] = self.server;
        let fair = [server_cores / server_gpus, server_gib / server_gpus];
        let best = match self.grant {
            Grant::Proportional => fair,
            Grant::Greedy | Grant::Tune => [cpu_cores / gpus, memory_gib / gpus],
        };
        ResourceDemand::new(gpus as u32, best, fair)
    }

    /// The speed that a job is granted: its ideal one, but 1 where it had to come down to its proportional share.
    fn granted_speed(&self, job: JobId) -> f64 {
        match self.allocator.held.get(&job) {
            Some(holding) if !holding.is_best && holding.demand.tuned != holding.demand.best => 1.0,
            Some(_) if self.grant == Grant::Proportional => 1.0,
            _ => self.ideals[job.index()].speedup,
        }
    }

    /// Orders the jobs that have not finished.
    fn sort(&mut self, cluster: &Cluster) {
        self.runnable
            .retain(|job| cluster.job(*job).state != JobState::Finished);
        self.runnable
            .extend((self.num_seen..cluster.jobs().len()).map(|job| JobId(job as u32)));
        self.num_seen = cluster.jobs().len();
        let now = cluster.now();
        let key = |id: &JobId| -> (f64, Time) {
            let (job, ideal) = (cluster.job(*id), &self.ideals[id.index()]);
            let iterations = job.request.estimate_s.value;
            let rest = (iterations - job.executed_s_at(now)).round();
            let speedup = match self.grant {
                Grant::Proportional => 1.0,
                _ => self.speedup[id.index()],
            };
            let rest_s = ideal.iteration_s * rest / speedup;
            let key = match self.order {
                Order::Fifo => 0.0,
                Order::Srtf => rest_s,
                Order::Las => job.attained_gpu_s_at(now),
                Order::Ftf => ((now - job.submit).as_secs_f64() + rest_s) / (ideal.iteration_s * iterations),
            };
            (key, job.submit)
        };
        let mut keyed: Vec<((f64, Time), JobId)> = self.runnable.iter().map(|job| (key(job), *job)).collect();
        keyed.sort_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.runnable = keyed.into_iter().map(|(_, job)| job).collect();
    }

    /// Leases in which the cluster's own surface of speeds said the same as the simulator's two speeds, and others: gangs
    /// that would like more than a server has, to which the simulator gives a speed on a straight line.
    #[must_use]
    pub fn num_leases(&self) -> [u64; 2] {
        self.num_leases
    }

    /// Empties the cluster and starts what was planned. A gang on one server takes its lowest free GPUs, others the highest.
    fn carry_out(&mut self, cluster: &mut Cluster) {
        apply_leases(cluster, &BTreeMap::new());
        self.factors.clear();
        let mut free: Vec<u64> = cluster.nodes().iter().map(|node| node.free).collect();
        let mut placements: BTreeMap<JobId, Placement> = BTreeMap::new();
        for job in &self.allocator.placed {
            let Holding { counts, is_whole, .. } = &self.allocator.held[job];
            let slices = counts.iter().map(|(server, count)| {
                let gpus = take(&mut free[*server], *count, *is_whole);
                let node = NodeId(*server as u32);
                Slice { node, gpus }
            });
            placements.insert(*job, slices.collect());
        }
        for (job, placement) in placements {
            let [cpu_cores, memory_gib] = self.allocator.held[&job].each;
            let granted = cluster.number_shape(Shape::of(&Resources {
                cpu_cores,
                memory_gib,
                ..Resources::WHOLE_GPU
            }));
            let Some(granted) = granted else {
                self.problem.get_or_insert("too many different grants".into());
                continue;
            };
            cluster.start_with(job, placement, granted);
            let fair_rate = 1.0 / self.ideals[job.index()].iteration_s;
            let factor = self.granted_speed(job) * fair_rate / cluster.job(job).rate;
            let differs = (factor - 1.0).abs() > 1e-9;
            if differs && !self.ideals[job.index()].is_capped {
                let text = format!("{job:?} is {factor} as fast as the cluster's surface says");
                self.problem.get_or_insert(text);
            }
            self.num_leases[usize::from(differs)] += 1;
            self.factors.insert(job, factor);
        }
    }
}

/// Takes some of a server's free GPUs.
fn take(free: &mut u64, num: u32, lowest: bool) -> u64 {
    let mut taken = 0;
    for _ in 0..num {
        let gpu = if lowest {
            free.trailing_zeros()
        } else {
            63 - free.leading_zeros()
        };
        taken |= 1 << gpu;
        *free &= !(1 << gpu);
    }
    taken
}

impl Planner for Synergy {
    fn name(&self) -> &str {
        "synergy"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.sort(cluster);
        let [_, cpu_cores, memory_gib] = self.server;
        let server = |num_gpus: u32| Server::new(num_gpus, [cpu_cores, memory_gib]);
        self.allocator =
            ServerAllocator::new(cluster.nodes().iter().map(|node| server(node.num_gpus)).collect());
        let mut jobs = self.runnable.clone();
        let mut left = f64::from(cluster.num_gpus());
        if self.order == Order::Las {
            jobs.retain(|job| {
                let gpus = self.ideals[job.index()].demand[0];
                let runs = gpus <= left;
                left -= if runs { gpus } else { 0.0 };
                runs
            });
            if self.grant == Grant::Tune {
                jobs.sort_by(|a, b| {
                    let gpus = |job: &JobId| self.ideals[job.index()].demand[0];
                    gpus(b).total_cmp(&gpus(a))
                });
            }
        }
        for job in jobs {
            let demand = self.demand(job);
            if demand.num_gpus > self.allocator.num_free() {
                continue;
            }
            if self.grant != Grant::Tune {
                self.allocator.place(job, &demand, true);
            } else if !self.allocator.tune(job, &demand) {
                let text = format!("{job:?} does not fit although its peers gave way");
                self.problem.get_or_insert(text);
            }
        }
        for job in &self.runnable {
            self.speedup[job.index()] = self.granted_speed(*job);
        }
        self.carry_out(cluster);
        Ok(())
    }
}

impl RoundPreset for Synergy {
    fn terms(&self, job: JobId) -> LeaseTerms {
        LeaseTerms {
            rate_factor: self.factors.get(&job).copied().unwrap_or(1.0),
            ..LeaseTerms::default()
        }
    }
}
