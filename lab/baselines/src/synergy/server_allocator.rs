//! Synergy's placement: equal servers of one GPU type are given out, each gang with CPU and host memory in proportion to
//! the GPUs that it has on each server.
//!
//! Two steps decide everything. [`ServerAllocator::place`] puts a gang on the fullest server that holds it whole, else spreads
//! it GPU by GPU. [`ServerAllocator::tune`] gives a job what is best for it; where that is not free its proportional share; and
//! where even that is not free it takes back from its peers what they hold beyond theirs.
//!
//! The units of CPU and memory are the caller's, so that a scheduler can count in whole thousandths of a core and MiB. The
//! order of the arithmetic is that of the released simulator: its preset in the crate above runs on this file.
//!
//! # Source
//! Synergy (OSDI'22), section 4; msr-fiddle/synergy at 1bb2bed (MIT), `simulator/resources/cluster.py`, read for its
//! behaviour.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pleach_scheduler::JobId;

use pleach_dealing::demand::{Counts, CpuMemory, Holding, ResourceDemand, add, fits, scaled};

/// A server is short of something where less than this is free: what is below is rounding.
const SHORT: f64 = 1e-9;

/// A server while it is given out.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Free GPUs.
    pub free_gpus: u32,
    /// Free CPU and memory.
    pub free: CpuMemory,
    /// The jobs that hold something, in the order in which they are looked at when room must be made.
    jobs: Vec<JobId>,
}

impl Server {
    /// A server on which no job holds anything yet.
    #[must_use]
    pub fn new(free_gpus: u32, free: CpuMemory) -> Server {
        Server {
            free_gpus,
            free,
            jobs: Vec::new(),
        }
    }
}

/// The servers of one type, and what each job holds.
#[derive(Clone, Debug, Default)]
pub struct ServerAllocator {
    /// Lowest first.
    pub servers: Vec<Server>,
    /// What each job holds.
    pub held: BTreeMap<JobId, Holding>,
    /// The holders in the order in which they were placed.
    pub placed: Vec<JobId>,
}

impl ServerAllocator {
    /// Empty servers.
    #[must_use]
    pub fn new(servers: Vec<Server>) -> ServerAllocator {
        ServerAllocator {
            servers,
            ..ServerAllocator::default()
        }
    }

    /// Free GPUs.
    #[must_use]
    pub fn num_free(&self) -> u32 {
        self.servers.iter().map(|server| server.free_gpus).sum()
    }

    /// Gives a gang its GPUs with what is best for it, or tuned: where it would rather stay, else on one server if there is
    /// one (single GPUs do not ask), else GPU by GPU where fewest are free. False if it does not fit.
    pub fn place(&mut self, job: JobId, demand: &ResourceDemand, best: bool) -> bool {
        let each = if best { demand.best } else { demand.tuned };
        let all = scaled(each, f64::from(demand.num_gpus));
        let stays = !demand.stays.is_empty() && self.has(&demand.stays, each);
        let (counts, is_whole) = if stays {
            (demand.stays.clone(), false)
        } else if let Some(server) = self.whole(demand.num_gpus, all) {
            (Counts::from([(server, demand.num_gpus)]), true)
        } else if let Some(counts) = self.spread(each, demand.num_gpus) {
            (counts, false)
        } else {
            return false;
        };
        for (server, count) in &counts {
            let server = &mut self.servers[*server];
            server.free_gpus -= count;
            add(&mut server.free, scaled(each, f64::from(*count)), -1.0);
            server.jobs.push(job);
        }
        let holding = Holding {
            demand: demand.clone(),
            counts,
            each,
            is_best: best,
            is_whole,
        };
        self.held.insert(job, holding);
        self.placed.push(job);
        true
    }

    /// Synergy-TUNE for one job: what is best for it; else its proportional share; else that after its peers gave back what
    /// they hold beyond theirs. False if it does not fit even so.
    pub fn tune(&mut self, job: JobId, demand: &ResourceDemand) -> bool {
        if self.place(job, demand, true) || self.place(job, demand, false) {
            return true;
        }
        for (server, count) in self.roomy(demand.num_gpus) {
            self.make_room(server, scaled(demand.tuned, f64::from(count)));
        }
        self.place(job, demand, false)
    }

    fn has(&self, counts: &Counts, each: CpuMemory) -> bool {
        counts.iter().all(|(server, count)| {
            let server = &self.servers[*server];
            *count <= server.free_gpus && fits(scaled(each, f64::from(*count)), server.free)
        })
    }

    /// The server with fewest free GPUs that holds a gang of several GPUs; ties to the lowest.
    fn whole(&self, num_gpus: u32, all: CpuMemory) -> Option<usize> {
        let servers = self.servers.iter().enumerate();
        let holding = servers.filter(|(_, server)| server.free_gpus >= num_gpus && fits(all, server.free));
        let best = holding.min_by_key(|(_, server)| server.free_gpus);
        best.map(|(server, _)| server).filter(|_| num_gpus > 1)
    }

    /// GPUs by server, one after the other from the server with the fewest free ones; a server into which one more does
    /// not fit is out.
    fn spread(&self, each: CpuMemory, num_gpus: u32) -> Option<Counts> {
        let servers = self.servers.iter().enumerate();
        let open = servers.filter(|(_, server)| server.free_gpus > 0 && fits(each, server.free));
        let mut heap: BinaryHeap<Reverse<(u32, usize)>> = open
            .map(|(number, server)| Reverse((server.free_gpus, number)))
            .collect();
        let mut counts = Counts::new();
        for _ in 0..num_gpus {
            let (left, server) = loop {
                let Reverse((left, server)) = heap.pop()?;
                let taken = counts.get(&server).copied().unwrap_or(0);
                let mut free = self.servers[server].free;
                add(&mut free, scaled(each, f64::from(taken)), -1.0);
                if fits(each, free) {
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

    /// Servers on which room must be made, and for how many GPUs: the first that has GPUs for the whole gang, else those
    /// with fewest free.
    fn roomy(&self, mut num_gpus: u32) -> Vec<(usize, u32)> {
        let servers = self.servers.iter().enumerate();
        let with_some = servers.filter(|(_, server)| server.free_gpus > 0);
        let mut order: Vec<(u32, usize)> = with_some
            .map(|(number, server)| (server.free_gpus, number))
            .collect();
        if num_gpus > 1
            && let Some((_, server)) = order.iter().find(|(free, _)| *free >= num_gpus)
        {
            return vec![(*server, num_gpus)];
        }
        order.sort_unstable();
        let mut chosen = Vec::new();
        for (free, server) in order {
            let count = free.min(num_gpus);
            chosen.push((server, count));
            num_gpus -= count;
            if num_gpus == 0 {
                break;
            }
        }
        chosen
    }

    /// Takes the jobs of a server back to their tuned share, in order of servers spanned and then of CPU and memory per
    /// GPU, until `wanted` would fit; also those on the way that have nothing to give.
    fn make_room(&mut self, number: usize, wanted: CpuMemory) {
        let mut need = wanted;
        add(&mut need, self.servers[number].free, -1.0);
        if fits(need, [0.0; 2]) {
            return;
        }
        let held = &self.held;
        self.servers[number].jobs.sort_by(|a, b| {
            let key = |job: &JobId| {
                let Holding { counts, each, .. } = &held[job];
                [counts.len() as f64, -each[0], -each[1]]
            };
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut givers = Vec::new();
        for job in &self.servers[number].jobs {
            let Holding {
                demand, counts, each, ..
            } = &self.held[job];
            let count = f64::from(counts[&number]);
            // A job that gives cores back may be due more memory than it held, and the other way round.
            let mut given = scaled(*each, count);
            add(&mut given, scaled(demand.tuned, count), -1.0);
            add(&mut need, given, -1.0);
            givers.push(*job);
            if fits(need, [0.0; 2]) {
                break;
            }
        }
        let mut touched = Vec::new();
        for job in givers {
            let Some(holding) = self.held.get_mut(&job) else {
                continue;
            };
            let (before, after) = (holding.each, holding.demand.tuned);
            (holding.each, holding.is_best) = (after, false);
            for (server, count) in &holding.counts {
                let (free, count) = (&mut self.servers[*server].free, f64::from(*count));
                add(free, scaled(before, count), 1.0);
                add(free, scaled(after, count), -1.0);
                touched.push(*server);
            }
        }
        // The same on the other servers of a gang: then its peers there go back to their shares too. Ends, since every
        // job goes back once, and shares fit.
        for server in touched {
            let is_short = self.servers[server].free.iter().any(|free| *free < -SHORT);
            if is_short {
                self.make_room(server, [0.0; 2]);
            }
        }
    }

    /// Asserts that nothing is given away twice and that gangs are whole.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self, capacity: &[Server]) {
        for (number, (server, all)) in self.servers.iter().zip(capacity).enumerate() {
            let here = |holding: &Holding| holding.counts.get(&number).copied().unwrap_or(0);
            let gpus: u32 = self.held.values().map(here).sum();
            assert_eq!(gpus + server.free_gpus, all.free_gpus, "GPUs of server {number}");
            for input in 0..2 {
                let taken = self
                    .held
                    .values()
                    .map(|holding| holding.each[input] * f64::from(here(holding)));
                let sum = taken.sum::<f64>() + server.free[input];
                let slack = 1e-9 * all.free[input].max(1.0);
                assert!(
                    (sum - all.free[input]).abs() <= slack && server.free[input] >= -slack,
                    "server {number} gives away {sum} of {}",
                    all.free[input]
                );
            }
        }
        for (job, holding) in &self.held {
            assert_eq!(
                holding.counts.values().sum::<u32>(),
                holding.demand.num_gpus,
                "{job:?} is whole"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Servers of 2 GPUs, 6 cores, 100 GiB.
    fn servers(num: usize) -> Vec<Server> {
        vec![Server::new(2, [6.0, 100.0]); num]
    }

    fn demand(num_gpus: u32, cores: f64, memory_gib: f64) -> ResourceDemand {
        ResourceDemand::new(num_gpus, [cores, memory_gib], [3.0, 50.0])
    }

    #[test]
    fn who_tunes_takes_the_surplus_of_its_peers_back() {
        // The first job takes 5 of 6 cores. The second wants 3: 1 is free, so the first goes back to its share of 3.
        let mut allocator = ServerAllocator::new(servers(1));
        assert!(allocator.tune(JobId(0), &demand(1, 5.0, 50.0)));
        assert_eq!(
            (allocator.held[&JobId(0)].each, allocator.held[&JobId(0)].is_best),
            ([5.0, 50.0], true)
        );
        assert!(allocator.tune(JobId(1), &demand(1, 3.0, 50.0)));
        let each = [0, 1].map(|job| allocator.held[&JobId(job)].each);
        assert_eq!(each, [[3.0, 50.0], [3.0, 50.0]]);
        assert!(!allocator.held[&JobId(0)].is_best);
        allocator.check(&servers(1));
    }

    #[test]
    fn a_job_that_needs_little_leaves_its_cores_to_one_that_can_use_them() {
        // A language model takes 1 core, so 5 are left for the image model beside it: no job has to give.
        let mut allocator = ServerAllocator::new(servers(1));
        assert!(allocator.tune(JobId(0), &demand(1, 1.0, 20.0)));
        assert!(allocator.tune(JobId(1), &demand(1, 5.0, 50.0)));
        assert!(allocator.held.values().all(|holding| holding.is_best));
        assert_eq!(allocator.servers[0].free, [0.0, 30.0]);
    }

    #[test]
    fn the_fattest_gives_first_and_only_as_many_as_are_needed_give() {
        // One server of 4 GPUs, 12 cores. Jobs with 5, 4 and 1 cores; the fourth wants 3, of which 2 are free: the one with 5
        // gives 2 and that is enough.
        let mut allocator = ServerAllocator::new(vec![Server::new(4, [12.0, 200.0])]);
        for (job, cores) in [4.0, 5.0, 1.0].into_iter().enumerate() {
            assert!(allocator.tune(JobId(job as u32), &demand(1, cores, 50.0)));
        }
        assert!(allocator.tune(JobId(3), &demand(1, 3.0, 50.0)));
        let cores = [0, 1, 2, 3].map(|job| allocator.held[&JobId(job)].each[0]);
        assert_eq!(cores, [4.0, 3.0, 1.0, 3.0]);
    }

    #[test]
    fn gangs_go_to_the_fullest_server_that_holds_them_whole_and_are_spread_only_if_none_does() {
        // Server 0 has 1 GPU left, server 1 has 2. A pair goes to server 1; then a pair finds 1 GPU here and 2 on server 2.
        let mut allocator = ServerAllocator::new(servers(3));
        assert!(allocator.place(JobId(0), &demand(1, 3.0, 50.0), true));
        assert!(allocator.place(JobId(1), &demand(2, 3.0, 50.0), true));
        assert_eq!(allocator.held[&JobId(1)].counts, Counts::from([(1, 2)]));
        assert!(allocator.place(JobId(2), &demand(1, 3.0, 50.0), true));
        assert_eq!(
            allocator.held[&JobId(2)].counts,
            Counts::from([(0, 1)]),
            "fewest free first"
        );
        assert!(allocator.place(JobId(3), &demand(1, 3.0, 50.0), true));
        assert!(
            !allocator.place(JobId(4), &demand(2, 3.0, 50.0), true),
            "one GPU is left"
        );
        // A job that stays where it was does not move up.
        let mut allocator = ServerAllocator::new(servers(3));
        let stays = Counts::from([(2, 1)]);
        assert!(allocator.place(
            JobId(0),
            &ResourceDemand {
                stays: stays.clone(),
                ..demand(1, 3.0, 50.0)
            },
            true
        ));
        assert_eq!(allocator.held[&JobId(0)].counts, stays);
    }

    #[test]
    fn greedy_strands_gpus_where_cores_ran_out_and_tune_does_not() {
        let fat = demand(1, 6.0, 50.0);
        let mut greedy = ServerAllocator::new(servers(1));
        assert!(greedy.place(JobId(0), &fat, true));
        assert!(!greedy.place(JobId(1), &fat, true));
        assert_eq!(greedy.num_free(), 1);
        let mut tuned = ServerAllocator::new(servers(1));
        assert!(tuned.tune(JobId(0), &fat) && tuned.tune(JobId(1), &fat));
        assert_eq!(tuned.num_free(), 0);
    }

    proptest! {
        #[test]
        fn whoever_has_gpus_can_be_tuned_and_nobody_falls_below_its_share(
            num_servers in 1_usize..4,
            draws in proptest::collection::vec((1_u32..6, 1_u32..24, 1_u32..400), 1..30),
        ) {
            // Servers of 4 GPUs, 12 cores, 200 GiB: 3 cores and 50 GiB per GPU.
            let all = vec![Server::new(4, [12.0, 200.0]); num_servers];
            let mut allocator = ServerAllocator::new(all.clone());
            for (job, (num_gpus, cores, memory_gib)) in draws.into_iter().enumerate() {
                let demand = ResourceDemand::new(num_gpus, [f64::from(cores), f64::from(memory_gib)], [3.0, 50.0]);
                let runs = allocator.tune(JobId(job as u32), &demand);
                // Proportional shares always fit where GPUs are free: TUNE strands none.
                prop_assert_eq!(runs, allocator.held.contains_key(&JobId(job as u32)));
                prop_assert!(runs || allocator.num_free() < num_gpus);
                allocator.check(&all);
            }
            for holding in allocator.held.values() {
                let due = [3.0_f64, 50.0];
                let enough = (0..2).all(|input| holding.each[input] >= due[input].min(holding.demand.best[input]));
                prop_assert!(enough, "{:?}", holding);
            }
        }
    }
}
