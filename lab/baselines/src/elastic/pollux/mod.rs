//! Pollux: each round a genetic search for the GPUs of every job on every node.
//!
//! ```text
//! SPEEDUP_j(A_j) = best goodput of A_j over its batches / best goodput of the fair share
//! FITNESS_p(A)   = ( mean of SPEEDUP_j(A_j)^p )^(1/p)
//! ```
//!
//! The fair share is an exclusive 1/J of the GPUs. A running job whose GPUs change has its speed-up multiplied by
//! `(T - R d) / (T + d)`: age T, R restarts of d each so far. A job may hold at most twice the GPUs that it ever held, and at
//! most one job that runs on several nodes has GPUs of a node. The batch goes with the GPUs.
//!
//! # Source
//! Qiao et al., OSDI'21, section 4.2; p = -1, rounds of 60 s, and of the released code the population of 100 and 100
//! generations, warm-started from the population of the round before.
//!
//! # Deviations
//! - A round's search ends after 10 generations without a fitter individual (`patience`); the published 100 generations are
//!   the most of a round, and all of them with `patience` null.
//! - A mutation changes two jobs on average. The released operators change every job of every child (a job on one node loses
//!   its only entry each time), which leaves hardly a child that is fitter: on the authors' sixth list that ends in a mean
//!   JCT of 3,537 s, this in 2,470 s, published 2,446 s. `mutated_jobs` null is the operator as released.
//! - The released code sorts by two objectives (fitness and the size of a cluster that grows); the size is given here, so the
//!   fittest survive.
//! - The released code multiplies moved jobs by 0.9 instead; the paper's factor is used. It concerns running jobs, and is held
//!   above what a job without GPUs counts (0.01, *assumed*: at p = -1 zero would make all such allocations equal).
//! - Several GPU types: a job runs on one, and as in Sia's comparison the search takes all for equal unless `knows_types`.
//! - Rigid jobs have their gang or nothing; what their fair share is worth is that part of their gang.
//! - Throughput and noise scale are the scheduler's profile of the class, not learned from the run. Quotas and the CPU and memory
//!   of nodes are not part of the search; where they bind, jobs get less than it found.

mod genes;

use genes::{Effort, Individual, Problem, Row};
use pleach_scheduler::cluster::{Cluster, Placement};
use pleach_scheduler::{ConfigError, GpuTypeId, JobId, NodeId, Planner, PolicyError, Time};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::field::Field;
use super::scaling::{Paces, Scaling};
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;

/// Settings of [`Pollux`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolluxConfig {
    /// Power p of the generalised mean, -100 to 100 but 0.
    pub fairness_power: f64,
    /// Length of a round, s, 1 to 1e6.
    pub round_s: f64,
    /// Individuals of the search, 2 to 10,000.
    pub population: usize,
    /// Generations of a round, 0 to 10,000.
    pub generations: u32,
    /// Generations in a row without a fitter individual after which the search of a round ends; such generations count on
    /// from round to round until the jobs, what they may hold, what they hold or the nodes change. None = never; at least 1.
    pub patience: Option<u32>,
    /// Mean number of jobs that a mutation changes, above 0; none = all jobs, as released. *Assumed.*
    pub mutated_jobs: Option<f64>,
    /// Factor by which a job's GPUs may exceed the most that it held so far, 2 to 1000.
    pub growth: u32,
    /// Whether jobs that run on several nodes are kept off each other's nodes.
    pub avoid_interference: bool,
    /// What a restart counts, s, 0 to 1e6; none = what it costs here.
    pub restart_s: Option<f64>,
    /// Whether the search knows that GPU types differ in speed.
    pub knows_types: bool,
    /// What the speed-up of a job without GPUs counts, above 0, at most 1. *Assumed.*
    pub idle_speedup: f64,
    /// Seed of the search.
    pub seed: u64,
}

impl Default for PolluxConfig {
    fn default() -> PolluxConfig {
        PolluxConfig {
            fairness_power: -1.0,
            round_s: 60.0,
            population: 100,
            generations: 100,
            patience: Some(10),
            mutated_jobs: Some(2.0),
            growth: 2,
            avoid_interference: true,
            restart_s: None,
            knows_types: false,
            idle_speedup: 0.01,
            seed: 0,
        }
    }
}

impl PolluxConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        let refuse =
            |key: &str, value: String, ok: bool, allowed: &str| check("pollux", key, value, ok, allowed);
        let power = self.fairness_power;
        let ok = power != 0.0 && (-100.0..=100.0).contains(&power);
        refuse("fairness_power", power.to_string(), ok, "-100 to 100, not 0")?;
        let round_s = self.round_s;
        let ok = (1.0..=1e6).contains(&round_s);
        refuse("round_s", round_s.to_string(), ok, "1 to 1e6")?;
        let population = self.population;
        let ok = (2..=10_000).contains(&population);
        refuse("population", population.to_string(), ok, "2 to 10,000")?;
        let generations = self.generations;
        let ok = generations <= 10_000;
        refuse("generations", generations.to_string(), ok, "0 to 10,000")?;
        let patience = self.patience.unwrap_or(1);
        let ok = patience >= 1;
        refuse("patience", patience.to_string(), ok, "1 or more, or null")?;
        let mutated = self.mutated_jobs.unwrap_or(1.0);
        let ok = mutated > 0.0 && mutated <= 1e9;
        refuse("mutated_jobs", mutated.to_string(), ok, "above 0, or null")?;
        let growth = self.growth;
        let ok = (2..=1000).contains(&growth);
        refuse("growth", growth.to_string(), ok, "2 to 1000")?;
        let restart_s = self.restart_s.unwrap_or(0.0);
        let ok = (0.0..=1e6).contains(&restart_s);
        refuse("restart_s", restart_s.to_string(), ok, "0 to 1e6, or left out")?;
        let idle = self.idle_speedup;
        let ok = idle > 0.0 && idle <= 1.0;
        refuse("idle_speedup", idle.to_string(), ok, "above 0, at most 1")
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Pollux {
    config: PolluxConfig,
    timer: RoundTimer,
    rng: ChaCha8Rng,
    paces: Paces,
    /// Most GPUs that each job ever held. `[job]`
    most_held: Vec<u32>,
    /// The jobs of the last search, by arrival, and its population.
    population: (Vec<JobId>, Vec<Individual>),
    /// What the last search was about, and for how many generations it had found nothing fitter.
    stalled: (Vec<Facts>, Vec<u8>, u32),
}

/// What must be the same for the search of a round to count as that of the round before: the job, the most that it may
/// hold, and what it holds.
type Facts = (JobId, u32, Option<Vec<u8>>);

impl Pollux {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: PolluxConfig) -> Result<Pollux, ConfigError> {
        config.validate()?;
        let mut hash = Sha256::new();
        hash.update(b"pleach.planner.pollux.v1");
        hash.update(config.seed.to_le_bytes());
        Ok(Pollux {
            timer: RoundTimer::new(Time::from_secs_f64(config.round_s)),
            rng: ChaCha8Rng::from_seed(hash.finalize().into()),
            config,
            paces: Paces::default(),
            most_held: Vec::new(),
            population: (Vec::new(), Vec::new()),
            stalled: (Vec::new(), Vec::new(), 0),
        })
    }

    /// Factor on the speed-up of a running job whose GPUs change.
    fn restart_factor(&self, cluster: &Cluster, id: JobId) -> f64 {
        let job = cluster.job(id);
        let age_s = (cluster.now() - job.submit).as_secs_f64();
        let each_s = self
            .config
            .restart_s
            .unwrap_or_else(|| cluster.restart_cost_s(id));
        if each_s == 0.0 {
            return 1.0;
        }
        let paid_s = f64::from(job.num_preemptions) * each_s;
        ((age_s - paid_s) / (age_s + each_s)).max(self.config.idle_speedup)
    }

    fn row(&self, cluster: &Cluster, field: &Field, job: &Scaling, num_jobs: usize) -> Row {
        let num_nodes = cluster.nodes().len();
        let limit = self.most_held[job.id.index()]
            .saturating_mul(self.config.growth)
            .min(field.quota_left(job.tenant));
        let most = job.most.min(limit).max(job.least);
        let share = (cluster.num_gpus() / num_jobs as u32).max(1);
        let fair = job.types().first().map_or(1.0, |kind| {
            if job.is_rigid() {
                self.rate(job, *kind, job.asked, false) * f64::from(share.min(job.asked))
                    / f64::from(job.asked)
            } else {
                let share = share.clamp(job.least, job.most);
                self.rate(job, *kind, share, job.nodes_for(*kind, share) > 1)
            }
        });
        // A share on which it happens not to run counts as the gang that it asked for.
        let fair = if fair > 0.0 { fair } else { 1.0 };
        let table = |several: bool| {
            let kinds = (0..cluster.num_types()).map(|kind| GpuTypeId(kind as u8));
            let on = |kind| (job.least..=most).map(move |gpus| self.rate(job, kind, gpus, several) / fair);
            kinds.map(|kind| on(kind).collect()).collect()
        };
        let current = job.held.map(|_| {
            let mut gpus = vec![0; num_nodes];
            for slice in &cluster.job(job.id).placement {
                gpus[slice.node.index()] = slice.num_gpus() as u8;
            }
            gpus
        });
        Row {
            current,
            restart_factor: self.restart_factor(cluster, job.id),
            least: job.least,
            most,
            one_node: table(false),
            several_nodes: table(true),
        }
    }

    /// What the search takes for the rate on so many GPUs of a type.
    fn rate(&self, job: &Scaling, kind: GpuTypeId, num_gpus: u32, several: bool) -> f64 {
        let fewest = job.nodes_for(kind, num_gpus);
        let num_nodes = if several { fewest.max(2) } else { 1 };
        if self.config.knows_types {
            job.rate(kind, num_gpus, num_nodes)
        } else {
            job.pace_at(kind, num_gpus, num_nodes)
        }
    }

    /// The last population with the rows of the jobs of today; new jobs have nothing.
    fn remembered(&self, jobs: &[JobId], num_nodes: usize) -> Vec<Individual> {
        let (before, population) = &self.population;
        let rows: Vec<Option<usize>> = jobs.iter().map(|id| before.binary_search(id).ok()).collect();
        let carried = population.iter().map(|individual| {
            let mut now = vec![0; jobs.len() * num_nodes];
            for (gpus, row) in now.chunks_exact_mut(num_nodes).zip(&rows) {
                if let Some(row) = row {
                    gpus.copy_from_slice(&individual[row * num_nodes..(row + 1) * num_nodes]);
                }
            }
            now
        });
        carried.collect()
    }

    /// Gives each job what was found for it, the jobs that do not change first.
    fn give(cluster: &Cluster, field: &mut Field, problem: &Problem, best: &[u8], scalings: &[Scaling]) {
        let mut rest = Vec::new();
        for (row, job) in scalings.iter().enumerate() {
            let gpus = problem.row_of(best, row);
            let stays = problem.rows[row].current.as_deref() == Some(gpus);
            if !(stays && field.keep(cluster, job)) && gpus.iter().any(|gpus| *gpus > 0) {
                rest.push((job, gpus));
            }
        }
        for (job, gpus) in rest {
            let mut left = job.most.min(field.quota_left(job.tenant));
            let mut placement = Placement::new();
            for (node, gpus) in gpus.iter().enumerate() {
                let node = NodeId(node as u32);
                let num = u32::from(*gpus).min(field.free.hosts(node, job.shape)).min(left);
                if num > 0 {
                    placement.push(field.free.lowest(node, num));
                    left -= num;
                }
            }
            let num_gpus: u32 = placement.iter().map(|slice| slice.num_gpus()).sum();
            if num_gpus >= job.least {
                field.give(cluster, job, placement);
            }
        }
    }
}

impl Planner for Pollux {
    fn name(&self) -> &str {
        "pollux"
    }

    fn places_tasks(&self) -> bool {
        false
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if !self.timer.begins(cluster) {
            return Ok(());
        }
        self.most_held.resize(cluster.jobs().len(), 0);
        let mut field = Field::open(cluster);
        if field.jobs.is_empty() {
            return Ok(());
        }
        let scalings = self.paces.scalings(cluster, &field.jobs);
        let nodes = field.free.nodes();
        let problem = Problem {
            kinds: nodes.iter().map(|node| node.gpu_type.0).collect(),
            capacity: nodes.iter().map(|node| node.num_free() as u8).collect(),
            rows: scalings
                .iter()
                .map(|job| self.row(cluster, &field, job, scalings.len()))
                .collect(),
            power: self.config.fairness_power,
            idle_speedup: self.config.idle_speedup,
            avoid_interference: self.config.avoid_interference,
            mutated_jobs: self.config.mutated_jobs.unwrap_or(f64::INFINITY),
        };
        let earlier = self.remembered(&field.jobs, nodes.len());
        let facts: Vec<Facts> = scalings
            .iter()
            .zip(&problem.rows)
            .map(|(job, row)| (job.id, row.most, row.current.clone()))
            .collect();
        let is_same = self.stalled.0 == facts && self.stalled.1 == problem.capacity;
        let effort = Effort {
            population: self.config.population,
            generations: self.config.generations,
            patience: self.config.patience.unwrap_or(u32::MAX),
            stalled: if is_same { self.stalled.2 } else { 0 },
        };
        let (found, stalled) = problem.search(earlier, effort, &mut self.rng);
        self.stalled = (facts, problem.capacity.clone(), stalled);
        Pollux::give(cluster, &mut field, &problem, &found[0], &scalings);
        field.start_left_over(cluster, &scalings);
        self.population = (field.jobs.clone(), found);
        field.close(cluster);
        for id in cluster.running() {
            let most = &mut self.most_held[id.index()];
            *most = (*most).max(cluster.job(id).num_held);
        }
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.timer.wake_at(cluster)
    }
}

#[cfg(test)]
mod tests;
