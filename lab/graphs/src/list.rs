//! A list of jobs with the executors that they share.

use std::sync::Arc;

use pleach_scheduler::Problem;

use crate::graph::Graph;

/// Most executors. *Assumed.*
pub const EXECUTORS_MAX: u32 = 10_000;
/// Most jobs of a list. *Assumed.*
pub const JOBS_MAX: usize = 100_000;
/// Most stages of all jobs of a list. *Assumed.*
const STAGES_MAX: usize = 4_000_000;
/// Latest arrival, ms: ten years. *Assumed.*
const ARRIVAL_MS_MAX: u64 = 315_360_000_000;
/// Longest delay of an executor, ms. *Assumed.*
const DELAY_MS_MAX: u64 = 3_600_000;

/// Executors and their delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Executors; each runs one task at a time.
    pub executors: u32,
    /// Time that an executor takes to another job, ms.
    pub moving_ms: u64,
    /// Added to the first task of an executor that remembers no stage, where none was measured, ms.
    pub warmup_ms: u64,
    /// Executors that find their stage taken look for work as spark-sched-sim does, which takes job 0 for no job.
    pub mimics_released: bool,
}

impl Default for Machine {
    /// # Source
    /// Decima's simulator: 50 executors, 2 s, 1 s.
    fn default() -> Machine {
        Machine {
            executors: 50,
            moving_ms: 2_000,
            warmup_ms: 1_000,
            mimics_released: false,
        }
    }
}

/// A job of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives, ms.
    pub at_ms: u64,
    /// Number of its graph.
    pub graph: u32,
}

/// Jobs by arrival, their graphs, the executors, and the seed of all durations.
#[derive(Clone, Debug)]
pub struct List {
    graphs: Arc<Vec<Graph>>,
    machine: Machine,
    jobs: Vec<Arrival>,
    seed: u64,
}

impl List {
    /// # Errors
    /// Jobs out of order, a graph that is not there, a number out of range.
    pub fn new(
        graphs: Arc<Vec<Graph>>,
        machine: Machine,
        jobs: Vec<Arrival>,
        seed: u64,
    ) -> Result<List, Problem> {
        let refused = |what: String, allowed: String| {
            Err(Problem::new(
                "list of graph jobs",
                what,
                allowed,
                "Mend the list.",
            ))
        };
        if !(1..=EXECUTORS_MAX).contains(&machine.executors) {
            let allowed = format!("1 to {EXECUTORS_MAX}");
            return refused(format!("{} executors", machine.executors), allowed);
        }
        if machine.moving_ms.max(machine.warmup_ms) > DELAY_MS_MAX {
            let what = format!("delays of {} and {} ms", machine.moving_ms, machine.warmup_ms);
            return refused(what, format!("at most {DELAY_MS_MAX} ms"));
        }
        if !(1..=JOBS_MAX).contains(&jobs.len()) {
            return refused(format!("{} jobs", jobs.len()), format!("1 to {JOBS_MAX}"));
        }
        let mut num_stages = 0;
        for (number, job) in jobs.iter().enumerate() {
            let Some(graph) = graphs.get(job.graph as usize) else {
                let allowed = format!("0 to {}", graphs.len().saturating_sub(1));
                return refused(format!("job {number} with graph {}", job.graph), allowed);
            };
            let is_late = number > 0 && jobs[number - 1].at_ms > job.at_ms;
            if is_late || job.at_ms > ARRIVAL_MS_MAX {
                let allowed = format!("arrivals in order, at most {ARRIVAL_MS_MAX} ms");
                return refused(format!("job {number} at {} ms", job.at_ms), allowed);
            }
            num_stages += graph.stages().len();
        }
        if num_stages > STAGES_MAX {
            return refused(format!("{num_stages} stages"), format!("at most {STAGES_MAX}"));
        }
        Ok(List {
            graphs,
            machine,
            jobs,
            seed,
        })
    }

    /// Graphs by number.
    #[must_use]
    pub fn graphs(&self) -> &[Graph] {
        &self.graphs
    }

    /// The executors.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Jobs by arrival.
    #[must_use]
    pub fn jobs(&self) -> &[Arrival] {
        &self.jobs
    }

    /// Seed of all durations.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The graph of a job.
    #[must_use]
    pub fn graph(&self, job: usize) -> &Graph {
        &self.graphs[self.jobs[job].graph as usize]
    }

    /// Work of all jobs by mean durations, ms.
    #[must_use]
    pub fn work_ms(&self) -> u64 {
        (0..self.jobs.len()).map(|job| self.graph(job).work_ms()).sum()
    }
}
