//! The genetic search of Pollux: an individual is a matrix of GPUs, one row for each job, one column for each node.
//!
//! A generation crosses pairs of parents (cut along the jobs), mutates (in some rows about one entry that is nothing and
//! about one that is something), repairs what breaks a rule, and keeps the fittest of parents and children. Equal
//! individuals are kept once. Everything is drawn from one ChaCha8 stream.
//!
//! # Source
//! Pollux (OSDI'21), section 4.2.2, and the operators of the released code: mutation with probability 1 / (number of such
//! entries in the row) to a uniform number, repair by job limits, interference avoidance and node capacities.

use pleach_scheduler::portable_math::pow;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

/// GPUs of each job on each node. `[jobs * nodes]`
pub(super) type Individual = Vec<u8>;

/// One job of the search.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// What it holds now; none while it waits. `[nodes]`
    pub current: Option<Vec<u8>>,
    /// Factor on its speed-up where it does not go on as it is.
    pub restart_factor: f64,
    /// Fewest and most GPUs; the same for a rigid job.
    pub least: u32,
    pub most: u32,
    /// Speed-up over the fair share on one node, by type and GPUs; 0 where it cannot run. `[type][num_gpus - least]`
    pub one_node: Vec<Vec<f64>>,
    /// The same on several nodes.
    pub several_nodes: Vec<Vec<f64>>,
}

/// What is searched: how many GPUs of which node each job gets.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// Type of each node. `[nodes]`
    pub kinds: Vec<u8>,
    /// GPUs of each node that can be given away. `[nodes]`
    pub capacity: Vec<u8>,
    pub rows: Vec<Row>,
    /// Power of the generalised mean.
    pub power: f64,
    /// What the speed-up of a job without GPUs counts.
    pub idle_speedup: f64,
    /// At most one job that runs on several nodes on each node.
    pub avoid_interference: bool,
    /// Mean number of rows that a mutation changes.
    pub mutated_jobs: f64,
}

/// How much a search does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Individuals that survive a generation.
    pub population: usize,
    /// Most generations.
    pub generations: u32,
    /// Generations in a row without a fitter one after which the search ends.
    pub patience: u32,
    /// Such generations that an earlier search of the same problem ended with.
    pub stalled: u32,
}

/// Scratch of the repair.
#[derive(Clone, Debug, Default)]
struct Scratch {
    order: Vec<usize>,
    free: Vec<u8>,
    has_distributed: Vec<bool>,
}

impl Problem {
    fn num_nodes(&self) -> usize {
        self.capacity.len()
    }

    /// The row of a job.
    pub fn row_of<'a>(&self, individual: &'a [u8], job: usize) -> &'a [u8] {
        &individual[job * self.num_nodes()..(job + 1) * self.num_nodes()]
    }

    /// Speed-up of a job over its fair share.
    pub fn speedup(&self, job: usize, gpus: &[u8]) -> f64 {
        let row = &self.rows[job];
        let total: u32 = gpus.iter().map(|gpus| u32::from(*gpus)).sum();
        let first = gpus.iter().position(|gpus| *gpus > 0);
        let Some(first) = first.filter(|_| total >= row.least) else {
            return self.idle_speedup;
        };
        let alone = u32::from(gpus[first]) == total;
        let table = if alone { &row.one_node } else { &row.several_nodes };
        let column = (total - row.least) as usize;
        let speedup = table[usize::from(self.kinds[first])].get(column).copied();
        let stays = row.current.as_deref().is_none_or(|current| current == gpus);
        let factor = if stays { 1.0 } else { row.restart_factor };
        (speedup.unwrap_or(0.0) * factor).max(self.idle_speedup)
    }

    /// The generalised mean of the speed-ups.
    pub fn fitness(&self, individual: &[u8]) -> f64 {
        let jobs = 0..self.rows.len();
        let speedups = jobs.map(|job| self.speedup(job, self.row_of(individual, job)));
        let num = self.rows.len() as f64;
        if self.power == -1.0 {
            // The usual case, without powers.
            return num / speedups.map(|speedup| 1.0 / speedup).sum::<f64>();
        }
        let sum: f64 = speedups.map(|speedup| pow(speedup, self.power)).sum();
        pow(sum / num, 1.0 / self.power)
    }

    /// Makes an individual keep every rule, jobs in a random order: those that come first keep more of what they have.
    fn repair(&self, individual: &mut [u8], scratch: &mut Scratch, rng: &mut ChaCha8Rng) {
        scratch.order.clear();
        scratch.order.extend(0..self.rows.len());
        scratch.order.shuffle(rng);
        self.repair_in_order(individual, scratch, rng);
    }

    fn repair_in_order(&self, individual: &mut [u8], scratch: &mut Scratch, rng: &mut ChaCha8Rng) {
        scratch.free.clear();
        scratch.free.extend_from_slice(&self.capacity);
        scratch.has_distributed.clear();
        scratch.has_distributed.resize(self.num_nodes(), false);
        for at in 0..scratch.order.len() {
            let job = scratch.order[at];
            let from = job * self.num_nodes();
            let gpus = &mut individual[from..from + self.num_nodes()];
            self.repair_row(&self.rows[job], gpus, scratch, rng);
            let is_distributed = gpus.iter().filter(|gpus| **gpus > 0).count() > 1;
            for (node, gpus) in gpus.iter().enumerate() {
                scratch.free[node] -= gpus;
                scratch.has_distributed[node] |= is_distributed && *gpus > 0;
            }
        }
    }

    fn repair_row(&self, row: &Row, gpus: &mut [u8], scratch: &Scratch, rng: &mut ChaCha8Rng) {
        self.keep_one_type(row, gpus);
        for (gpus, free) in gpus.iter_mut().zip(&scratch.free) {
            *gpus = (*gpus).min(*free);
        }
        if self.avoid_interference && gpus.iter().filter(|gpus| **gpus > 0).count() > 1 {
            for (gpus, has) in gpus.iter_mut().zip(&scratch.has_distributed) {
                if *has {
                    *gpus = 0;
                }
            }
        }
        let mut total: u32 = gpus.iter().map(|gpus| u32::from(*gpus)).sum();
        if total > row.most {
            // Nodes in a random rotation give back what is too much.
            let start = rng.random_range(0..gpus.len());
            for step in 0..gpus.len() {
                let entry = &mut gpus[(start + step) % self.capacity.len()];
                let back = (total - row.most).min(u32::from(*entry));
                *entry -= back as u8;
                total -= back;
            }
        }
        if total > 0 && total < row.least {
            self.complete(row, gpus, total, scratch);
        }
    }

    /// A job runs on one type: that of which it has most, of equally many the first. Types on which it cannot run are left.
    fn keep_one_type(&self, row: &Row, gpus: &mut [u8]) {
        let num_types = row.one_node.len();
        let of = |kind: usize, gpus: &[u8]| -> u32 {
            let entries = gpus.iter().zip(&self.kinds);
            let here = entries.filter(|(_, on)| usize::from(**on) == kind);
            here.map(|(gpus, _)| u32::from(*gpus)).sum()
        };
        let mut best = (0, usize::MAX);
        for kind in 0..num_types {
            let runs = row.one_node[kind].iter().any(|speedup| *speedup > 0.0);
            let here = of(kind, gpus);
            if runs && here > best.0 {
                best = (here, kind);
            }
        }
        for (gpus, on) in gpus.iter_mut().zip(&self.kinds) {
            if usize::from(*on) != best.1 {
                *gpus = 0;
            }
        }
    }

    /// Takes what is missing to the fewest GPUs from nodes of the same type, those of the job first; nothing if that is too
    /// little.
    fn complete(&self, row: &Row, gpus: &mut [u8], mut total: u32, scratch: &Scratch) {
        let kind = gpus
            .iter()
            .position(|gpus| *gpus > 0)
            .map(|node| self.kinds[node]);
        for own in [true, false] {
            for (node, entry) in gpus.iter_mut().enumerate() {
                let may = Some(self.kinds[node]) == kind && (*entry > 0) == own;
                let disturbs = self.avoid_interference && scratch.has_distributed[node];
                if !may || (disturbs && !own) || total >= row.least {
                    continue;
                }
                let take = u32::from(scratch.free[node] - *entry).min(row.least - total);
                *entry += take as u8;
                total += take;
            }
        }
        let spread = gpus.iter().filter(|gpus| **gpus > 0).count() > 1;
        let disturbs = gpus
            .iter()
            .zip(&scratch.has_distributed)
            .any(|(gpus, has)| *gpus > 0 && *has);
        if total < row.least || (self.avoid_interference && spread && disturbs) {
            gpus.fill(0);
        }
    }

    /// In each row that is mutated entries change with probability 1 / (entries that are nothing) or 1 / (entries that are
    /// something).
    fn mutate(&self, individual: &mut [u8], rng: &mut ChaCha8Rng) {
        let nodes = self.num_nodes();
        let part = self.mutated_jobs / self.rows.len() as f64;
        for gpus in individual.chunks_exact_mut(nodes) {
            if part < 1.0 && !rng.random_bool(part) {
                continue;
            }
            let num_some = gpus.iter().filter(|gpus| **gpus > 0).count() as u32;
            let num_none = nodes as u32 - num_some;
            for (entry, capacity) in gpus.iter_mut().zip(&self.capacity) {
                let among = if *entry > 0 { num_some } else { num_none };
                if rng.random_range(0..among) == 0 {
                    *entry = rng.random_range(0..=*capacity);
                }
            }
        }
    }

    /// Every running job goes on as it is; waiting jobs get nothing.
    pub fn current(&self) -> Individual {
        let nothing = vec![0; self.num_nodes()];
        let rows = self
            .rows
            .iter()
            .flat_map(|row| row.current.as_ref().unwrap_or(&nothing).iter().copied());
        rows.collect()
    }

    /// The fair shares: each job in turn gets its share of the GPUs (its gang, where it is rigid) as tightly as it goes.
    pub fn fair(&self) -> Individual {
        let all: u32 = self.capacity.iter().map(|gpus| u32::from(*gpus)).sum();
        let share = (all / self.rows.len().max(1) as u32).max(1);
        let mut free = self.capacity.clone();
        let mut individual = vec![0; self.rows.len() * self.num_nodes()];
        for (row, gpus) in self
            .rows
            .iter()
            .zip(individual.chunks_exact_mut(self.num_nodes()))
        {
            let wanted = share.clamp(row.least, row.most);
            for kind in 0..row.one_node.len() {
                let runs = row.one_node[kind].iter().any(|speedup| *speedup > 0.0);
                if runs && self.take_tightly(kind, wanted, &mut free, gpus) {
                    break;
                }
            }
        }
        individual
    }

    /// The node with least room that holds all, else nodes with most room first; false if the type has too little room.
    fn take_tightly(&self, kind: usize, wanted: u32, free: &mut [u8], gpus: &mut [u8]) -> bool {
        let mut nodes: Vec<(u8, usize)> = (0..free.len())
            .filter(|node| usize::from(self.kinds[*node]) == kind && free[*node] > 0)
            .map(|node| (free[node], node))
            .collect();
        if nodes.iter().map(|(room, _)| u32::from(*room)).sum::<u32>() < wanted {
            return false;
        }
        nodes.sort_unstable();
        let single = nodes.iter().position(|(room, _)| u32::from(*room) >= wanted);
        match single {
            Some(single) => nodes = vec![nodes[single]],
            None => nodes.reverse(),
        }
        let mut rest = wanted;
        for (room, node) in nodes {
            let take = rest.min(u32::from(room)) as u8;
            free[node] -= take;
            gpus[node] = take;
            rest -= u32::from(take);
        }
        true
    }

    /// Searches, from an earlier population, the present state and the fair shares on; returns the population, the fittest
    /// first, and for how many generations in a row there has been none fitter. Of equally fit individuals the older ones
    /// come first.
    pub fn search(
        &self,
        earlier: Vec<Individual>,
        effort: Effort,
        rng: &mut ChaCha8Rng,
    ) -> (Vec<Individual>, u32) {
        let Effort {
            population,
            generations,
            patience,
            mut stalled,
        } = effort;
        let mut scratch = Scratch::default();
        let mut all: Vec<(f64, Individual)> = Vec::with_capacity(2 * population);
        let add = |all: &mut Vec<(f64, Individual)>, individual: Individual| {
            all.push((self.fitness(&individual), individual));
        };
        for mut individual in [self.current(), self.fair()].into_iter().chain(earlier) {
            // In the order of arrival, so that what keeps the rules stays what it is.
            scratch.order = (0..self.rows.len()).collect();
            self.repair_in_order(&mut individual, &mut scratch, rng);
            add(&mut all, individual);
        }
        let given = all.len();
        while all.len() < population {
            let mut individual = all[all.len() % given].1.clone();
            self.mutate(&mut individual, rng);
            self.repair(&mut individual, &mut scratch, rng);
            add(&mut all, individual);
        }
        survive(&mut all, population);
        for _ in 0..generations {
            if stalled >= patience {
                break;
            }
            let (num_parents, fittest) = (all.len(), all[0].0);
            for _ in 0..population {
                let pick = |rng: &mut ChaCha8Rng| {
                    // A tournament of two: the population is sorted, so the lower position is the fitter.
                    let pair = [rng.random_range(0..num_parents), rng.random_range(0..num_parents)];
                    pair[0].min(pair[1])
                };
                let parents = [pick(rng), pick(rng)];
                let cut = rng.random_range(0..=self.rows.len()) * self.num_nodes();
                let mut child = all[parents[0]].1.clone();
                child[cut..].copy_from_slice(&all[parents[1]].1[cut..]);
                self.mutate(&mut child, rng);
                self.repair(&mut child, &mut scratch, rng);
                add(&mut all, child);
            }
            survive(&mut all, population);
            stalled = if all[0].0 > fittest { 0 } else { stalled + 1 };
        }
        let population = all.into_iter().map(|(_, individual)| individual).collect();
        (population, stalled)
    }
}

/// Keeps the fittest, each once.
fn survive(all: &mut Vec<(f64, Individual)>, population: usize) {
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut kept: Vec<(f64, Individual)> = Vec::with_capacity(2 * population);
    for (fitness, individual) in all.drain(..) {
        let equally_fit = kept.iter().rev().take_while(|(other, _)| *other == fitness);
        if kept.len() < population && equally_fit.into_iter().all(|(_, other)| *other != individual) {
            kept.push((fitness, individual));
        }
    }
    *all = kept;
}

#[cfg(test)]
#[path = "genes_tests.rs"]
mod tests;
