//! Synergy's simulator: rounds of 300 s on a grid, the whole cluster dealt out anew in each, CPU cores and host memory
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
//! # Source
//! msr-fiddle/synergy at 1bb2bed, `simulator/schedulers/*_synergy_new.py`, `simulator/resources/cluster.py` and
//! `simulator/jobs`, read for their behaviour.
//!
//! # What is deliberately not here
//! The ILP (`+opt`); gangs larger than a server; the priority of jobs that have waited for 1,000 h, which no recorded run
//! reaches; storage bandwidth, which is never short there.

mod ideal;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pleach_scheduler::cluster::{Cluster, JobState, Placement, Shape, Slice};
use pleach_scheduler::error::PolicyError;
use pleach_scheduler::ids::{JobId, NodeId, Time};
use pleach_scheduler::planner::Planner;
use pleach_scheduler::rounds::lease;
use pleach_scheduler::spec::Resources;

pub use ideal::{Ideal, Sensitivity};

use ideal::{Vector, add, fits, scaled};

use super::in_rounds::RoundPreset;
use crate::world::{LeaseTerms, RoundClock, RoundEnd, Seen};

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

/// What a job holds in the round being planned.
#[derive(Clone, Debug, Default)]
struct Holding {
    /// GPUs by server.
    gpus: BTreeMap<usize, Vec<u32>>,
    /// All resources by server.
    shares: BTreeMap<usize, Vector>,
    total: Vector,
    speed: f64,
}

/// Servers in the round being planned.
#[derive(Clone, Debug, Default)]
struct Servers {
    /// Free GPUs, lowest first. `[server]`
    free_gpus: Vec<Vec<u32>>,
    /// Free resources. `[server]`
    free: Vec<Vector>,
    /// Jobs that hold something, in the order in which they are looked at when room must be made. `[server]`
    jobs: Vec<Vec<JobId>>,
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
    servers: Servers,
    held: BTreeMap<JobId, Holding>,
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
            servers: Servers::default(),
            held: BTreeMap::new(),
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

    fn fair(&self, num_gpus: f64) -> Vector {
        scaled(self.server, num_gpus / self.server[0])
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

    /// Gives a job its gang and a demand, on one server if there is one, else GPU by GPU where fewest are free.
    fn place(&mut self, job: JobId, demand: Vector, speed: f64) -> bool {
        let num_gpus = demand[0];
        let servers = &self.servers;
        let whole = (0..servers.free.len())
            .filter(|server| !servers.free_gpus[*server].is_empty() && fits(demand, servers.free[*server]))
            .min_by_key(|server| servers.free_gpus[*server].len());
        let mut holding = Holding {
            speed,
            ..Holding::default()
        };
        if let Some(server) = whole.filter(|_| num_gpus > 1.0) {
            let gpus = self.servers.free_gpus[server]
                .drain(..num_gpus as usize)
                .collect();
            holding.gpus.insert(server, gpus);
            holding.shares.insert(server, demand);
        } else if let Some(counts) = self.spread(scaled(demand, 1.0 / num_gpus), num_gpus as usize) {
            for (server, count) in counts {
                let free = &mut self.servers.free_gpus[server];
                holding.gpus.insert(server, free.split_off(free.len() - count));
                holding
                    .shares
                    .insert(server, scaled(demand, count as f64 / num_gpus));
            }
        } else {
            return false;
        }
        for (server, share) in &holding.shares {
            add(&mut self.servers.free[*server], *share, -1.0);
            self.servers.jobs[*server].push(job);
        }
        holding.total = demand;
        self.held.insert(job, holding);
        true
    }

    /// GPUs by server, one after the other from the server with the fewest free ones; a server into which one more does
    /// not fit is out.
    fn spread(&self, per_gpu: Vector, num_gpus: usize) -> Option<BTreeMap<usize, usize>> {
        let servers = &self.servers;
        let mut heap: BinaryHeap<Reverse<(usize, usize)>> = servers
            .free_gpus
            .iter()
            .enumerate()
            .filter(|(_, gpus)| !gpus.is_empty())
            .map(|(server, gpus)| Reverse((gpus.len(), server)))
            .collect();
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for _ in 0..num_gpus {
            let (left, server) = loop {
                let Reverse((left, server)) = heap.pop()?;
                let taken = counts.get(&server).copied().unwrap_or(0);
                let mut free = servers.free[server];
                add(&mut free, scaled(per_gpu, taken as f64), -1.0);
                if fits(per_gpu, free) {
                    break (left, server);
                }
            };
            *counts.entry(server).or_default() += 1;
            if left > 1 {
                heap.push(Reverse((left - 1, server)));
            }
        }
        Some(counts)
    }

    /// A job's demand no higher than its proportional share, and whether that is less than it would like.
    fn tuned(&self, job: JobId) -> (Vector, bool) {
        let ideal = self.ideals[job.index()].demand;
        let fair = self.fair(ideal[0]);
        if fits(ideal, fair) {
            (ideal, false)
        } else {
            (fair, true)
        }
    }

    fn tune(&mut self, job: JobId) {
        let ideal = self.ideals[job.index()];
        if self.place(job, ideal.demand, self.speedup[job.index()]) {
            return;
        }
        let (demand, adjusted) = self.tuned(job);
        if adjusted {
            self.speedup[job.index()] = 1.0;
        }
        let speed = self.speedup[job.index()];
        if self.place(job, demand, speed) {
            return;
        }
        for (server, gpus) in self.roomy(demand[0] as usize) {
            self.make_room(server, scaled(demand, gpus as f64 / demand[0]));
        }
        if !self.place(job, demand, speed) {
            let text = format!("{job:?} does not fit although its peers gave way");
            self.problem.get_or_insert(text);
        }
    }

    /// Servers on which room must be made, and for how many GPUs.
    fn roomy(&self, mut num_gpus: usize) -> Vec<(usize, usize)> {
        let free = |server: usize| self.servers.free_gpus[server].len();
        let all = 0..self.servers.free.len();
        if num_gpus > 1
            && let Some(server) = all.clone().find(|server| free(*server) >= num_gpus)
        {
            return vec![(server, num_gpus)];
        }
        let mut order: Vec<usize> = all.filter(|server| free(*server) > 0).collect();
        order.sort_by_key(|server| (free(*server), *server));
        let mut chosen = Vec::new();
        for server in order {
            let gpus = free(server).min(num_gpus);
            chosen.push((server, gpus));
            num_gpus -= gpus;
            if num_gpus == 0 {
                break;
            }
        }
        chosen
    }

    /// Takes the jobs of a server back to their proportional shares until `wanted` would fit.
    fn make_room(&mut self, server: usize, wanted: Vector) {
        let short = |wanted: Vector, free: Vector| {
            let mut need = wanted;
            add(&mut need, free, -1.0);
            need.map(|part| part.max(0.0))
        };
        let mut need = short(wanted, self.servers.free[server]);
        if need == [0.0; 3] {
            return;
        }
        let held = &self.held;
        self.servers.jobs[server].sort_by(|a, b| {
            let key = |job: &JobId| {
                let Holding { shares, total, .. } = &held[job];
                [shares.len() as f64, -total[1] / total[0], -total[2] / total[0]]
            };
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut victims = Vec::new();
        for job in &self.servers.jobs[server] {
            let Holding { gpus, total, .. } = &self.held[job];
            let gpus = gpus[&server].len() as f64;
            let excess = short(scaled(*total, gpus / total[0]), self.fair(gpus));
            need = short(need, excess);
            victims.push(*job);
            if need == [0.0; 3] {
                break;
            }
        }
        for job in victims {
            let (demand, adjusted) = self.tuned(job);
            if adjusted {
                self.speedup[job.index()] = 1.0;
            }
            let Some(holding) = self.held.get_mut(&job) else {
                continue;
            };
            for (server, share) in &mut holding.shares {
                add(&mut self.servers.free[*server], *share, 1.0);
                *share = scaled(demand, holding.gpus[server].len() as f64 / demand[0]);
                add(&mut self.servers.free[*server], *share, -1.0);
            }
            (holding.total, holding.speed) = (demand, 1.0);
        }
    }

    /// Leases in which the cluster's own surface of speeds said the same as the simulator's two speeds, and others: gangs
    /// that would like more than a server has, to which the simulator gives a speed on a straight line.
    #[must_use]
    pub fn num_leases(&self) -> [u64; 2] {
        self.num_leases
    }

    /// Empties the cluster and starts what was planned.
    fn carry_out(&mut self, cluster: &mut Cluster) {
        lease(cluster, &BTreeMap::new());
        self.factors.clear();
        for (job, holding) in &self.held {
            let slice = |(server, gpus): (&usize, &Vec<u32>)| Slice {
                node: NodeId(*server as u32),
                gpus: gpus.iter().fold(0, |mask, gpu| mask | 1_u64 << gpu),
            };
            let placement: Placement = holding.gpus.iter().map(slice).collect();
            let [gpus, cpu_cores, memory_gib] = holding.total;
            let granted = cluster.number_shape(Shape::of(&Resources {
                cpu_cores: cpu_cores / gpus,
                memory_gib: memory_gib / gpus,
                ..Resources::WHOLE_GPU
            }));
            let Some(granted) = granted else {
                self.problem.get_or_insert("too many different grants".into());
                continue;
            };
            cluster.start_with(*job, placement, granted);
            let fair_rate = 1.0 / self.ideals[job.index()].iteration_s;
            let factor = holding.speed * fair_rate / cluster.job(*job).rate;
            let differs = (factor - 1.0).abs() > 1e-9;
            if differs && !self.ideals[job.index()].is_capped {
                let text = format!("{job:?} is {factor} as fast as the cluster's surface says");
                self.problem.get_or_insert(text);
            }
            self.num_leases[usize::from(differs)] += 1;
            self.factors.insert(*job, factor);
        }
    }
}

impl Planner for Synergy {
    fn name(&self) -> &str {
        "synergy"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.sort(cluster);
        for job in &self.runnable {
            self.speedup[job.index()] = self.ideals[job.index()].speedup;
        }
        let nodes = cluster.nodes();
        self.servers = Servers {
            free_gpus: nodes.iter().map(|node| (0..node.num_gpus).collect()).collect(),
            free: vec![self.server; nodes.len()],
            jobs: vec![Vec::new(); nodes.len()],
        };
        self.held.clear();
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
            let ideal = self.ideals[job.index()];
            let free: usize = self.servers.free_gpus.iter().map(Vec::len).sum();
            if ideal.demand[0] as usize > free {
                continue;
            }
            match self.grant {
                Grant::Proportional => {
                    self.place(job, self.fair(ideal.demand[0]), 1.0);
                }
                Grant::Greedy => {
                    self.place(job, ideal.demand, ideal.speedup);
                }
                Grant::Tune => self.tune(job),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_tunes_takes_the_surplus_of_its_peers_back() {
        // One server of 2 GPUs, 6 cores, 100 GiB. The first job takes 5 cores for speed 2. The second wants 3 cores: 1 is
        // free, so the first goes back to its share of 3 and to speed 1.
        let model = |cpu_cores, speedup| Sensitivity {
            iteration_s: 1.0,
            cpu_cores,
            memory_gib: 50.0,
            speedup,
        };
        let server = [2.0, 6.0, 100.0];
        let ideals = vec![
            Ideal::of(model(5.0, 2.0), 1, server),
            Ideal::of(model(3.0, 1.0), 1, server),
        ];
        let mut planner = Synergy::new(Order::Fifo, Grant::Tune, server, ideals);
        planner.servers = Servers {
            free_gpus: vec![vec![0, 1]],
            free: vec![server],
            jobs: vec![Vec::new()],
        };
        planner.tune(JobId(0));
        assert_eq!(
            (planner.held[&JobId(0)].total[1], planner.held[&JobId(0)].speed),
            (5.0, 2.0)
        );
        planner.tune(JobId(1));
        assert_eq!(
            (planner.held[&JobId(0)].total[1], planner.held[&JobId(0)].speed),
            (3.0, 1.0)
        );
        assert_eq!(planner.held[&JobId(1)].total[1], 3.0);
        assert_eq!(planner.problem(), None);
    }
}
