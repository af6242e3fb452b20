//! Graphs and lists that are drawn: graphs like those of TPC-H's queries on Spark, and like batch jobs of Alibaba.

use std::sync::Arc;

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::{cos, exp, ln, pow};
use pleach_workloads::Seed;

use crate::engine::mix;
use crate::graph::{Graph, LEVELS, Profile};
use crate::list::{Arrival, List, Machine};

/// Shape of drawn graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Queries of TPC-H on Spark.
    ///
    /// # Source
    /// Decima's measurements, 154 graphs: 2 to 18 stages (mean 9.2), 0.89 edges a stage, median 200 tasks, work of 935 s on average
    /// (90 % between 178 and 2,764 s), fresh tasks about 2 s longer. How these go together is *assumed*.
    Tpch,
    /// Batch jobs of a cloud: many small ones, a few large ones. *Assumed* after descriptions of Alibaba's trace of 2018: most jobs
    /// have few stages, some tens of them; the work spans four orders of magnitude.
    Alibaba,
}

/// Draws from a seed.
struct Draws(u64);

impl Draws {
    /// Evenly from 0 to below 1.
    fn even(&mut self) -> f64 {
        self.0 = mix(self.0);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, num: usize) -> usize {
        ((self.even() * num as f64) as usize).min(num.saturating_sub(1))
    }

    /// The factor of a lognormal distribution with median 1.
    fn spread(&mut self, sigma: f64) -> f64 {
        let radius = (-2.0 * ln(1.0 - self.even())).sqrt();
        exp(sigma * radius * cos(std::f64::consts::TAU * self.even()))
    }

    /// With this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(1.0 - self.even())
    }
}

/// So many graphs of a shape; the same seed is the same graphs.
///
/// # Errors
/// None in practice.
pub fn graphs(shape: Shape, num: usize, seed: Seed) -> Result<Vec<Graph>, Problem> {
    let graph = |number: usize| {
        let mut draws = Draws(seed.child("graph", number as u64).0);
        match shape {
            Shape::Tpch => tpch(&mut draws),
            Shape::Alibaba => alibaba(&mut draws),
        }
    };
    (0..num).map(graph).collect()
}

/// A tree of joins: every stage but the last has one child, soon after it.
fn tpch(draws: &mut Draws) -> Result<Graph, Problem> {
    let num = 2 + (15.4 * (draws.even() + draws.even()) / 2.0) as usize;
    let work_ms = 660e3 * draws.spread(0.834);
    let mut edge = |stage: usize| {
        (
            stage as u32,
            (stage + 1 + draws.below(4.min(num - 1 - stage))) as u32,
        )
    };
    let edges: Vec<(u32, u32)> = (0..num - 1).map(&mut edge).collect();
    let is_scan = |stage: usize| edges.iter().all(|(_, child)| *child as usize != stage);
    // Spark's default of 200 partitions after a shuffle; scans have a task a block.
    let size = pow(work_ms / 660e3, 0.7);
    let tasks: Vec<u32> = (0..num)
        .map(|stage| match draws.even() {
            _ if is_scan(stage) => (60.0 * size * draws.spread(1.0)).clamp(1.0, 800.0) as u32,
            even if stage + 1 == num && even < 0.5 => 1,
            even if even < 0.12 => (20.0 * draws.spread(1.0)).clamp(1.0, 200.0) as u32,
            _ => 200,
        })
        .collect();
    let shares: Vec<f64> = tasks
        .iter()
        .map(|tasks| pow(f64::from(*tasks), 0.6) * draws.spread(0.9))
        .collect();
    let total: f64 = shares.iter().sum();
    let profiles: Vec<Profile> = tasks
        .iter()
        .zip(&shares)
        .map(|(tasks, share)| {
            let mean_ms = (work_ms * share / total / f64::from(*tasks)).clamp(20.0, 120e3);
            profile(draws, *tasks, mean_ms, 2_000.0)
        })
        .collect();
    Graph::new(&profiles, &edges)
}

/// Chains with some joins and forks; sizes spread far.
fn alibaba(draws: &mut Draws) -> Result<Graph, Problem> {
    let num = (4.0 * draws.spread(0.9)).clamp(1.0, 60.0) as usize;
    let mut edges = Vec::new();
    for stage in 1..num {
        let parents = if draws.even() < 0.25 { 2 } else { 1 };
        for _ in 0..parents {
            let parent = stage - 1 - draws.below(stage.min(3));
            edges.push((parent as u32, stage as u32));
        }
    }
    let scale = draws.spread(0.8);
    let profiles: Vec<Profile> = (0..num)
        .map(|_| {
            let tasks = (12.0 * scale * draws.spread(1.3)).clamp(1.0, 2_000.0) as u32;
            let mean_ms = (6e3 * draws.spread(1.0)).clamp(100.0, 600e3);
            profile(draws, tasks, mean_ms, 1_000.0)
        })
        .collect();
    Graph::new(&profiles, &edges)
}

/// Durations around the mean of all tasks: a first task is slower than later ones, a fresh one by `fresh_ms`, and all of them the more
/// executors there are. *Assumed*: 4 % a level, 12 % around each; one task in ten, or one of the first twenty, is a first one.
fn profile(draws: &mut Draws, tasks: u32, mean_ms: f64, fresh_ms: f64) -> Profile {
    let first = 1.2 + 0.8 * draws.even();
    let share = (20.0 / f64::from(tasks)).clamp(0.1, 1.0);
    let later_ms = (mean_ms - share * 0.1 * fresh_ms).max(0.2 * mean_ms) / (1.0 + share * (first - 1.0));
    let has_fresh = draws.even() < 0.4;
    let (mut fresh, mut firsts, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for level in 0..LEVELS.len() {
        let slow_ms = later_ms * (0.86 + 0.04 * level as f64);
        let mut cell = |base_ms: f64| -> Vec<u32> {
            (0..3)
                .map(|_| (base_ms * draws.spread(0.12)).max(1.0) as u32)
                .collect()
        };
        firsts.push(cell(slow_ms * first + 0.1 * fresh_ms));
        rest.push(cell(slow_ms));
        fresh.push(if has_fresh {
            cell(slow_ms + fresh_ms)
        } else {
            Vec::new()
        });
    }
    Profile {
        tasks,
        mean_ms: mean_ms.max(1.0) as u32,
        levels: LEVELS.to_vec(),
        fresh,
        first: firsts,
        rest,
    }
}

/// How jobs come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// All at once.
    Batch {
        /// How many.
        jobs: usize,
    },
    /// One after the other, memoryless.
    Stream {
        /// How many.
        jobs: usize,
        /// Work over what the executors can do.
        load: f64,
    },
}

/// A list of jobs, each with one of the graphs.
///
/// # Errors
/// A number out of range.
pub fn list(
    graphs: &Arc<Vec<Graph>>,
    machine: Machine,
    arrivals: Arrivals,
    seed: Seed,
) -> Result<List, Problem> {
    let mut draws = Draws(seed.child("arrivals", 0).0);
    let (num, gap_ms) = match arrivals {
        Arrivals::Batch { jobs } => (jobs, 0.0),
        Arrivals::Stream { jobs, load } => {
            let work_ms: f64 = graphs.iter().map(|graph| graph.work_ms() as f64).sum();
            let mean_ms = work_ms / graphs.len().max(1) as f64;
            (jobs, mean_ms / f64::from(machine.executors) / load)
        }
    };
    let mut at_ms = 0.0;
    let jobs = (0..num)
        .map(|_| {
            let graph = draws.below(graphs.len()) as u32;
            let job = Arrival {
                at_ms: at_ms as u64,
                graph,
            };
            if gap_ms > 0.0 {
                at_ms += draws.exponential(gap_ms);
            }
            job
        })
        .collect();
    List::new(Arc::clone(graphs), machine, jobs, seed.child("durations", 0).0)
}
