//! What came of a play: jobs, stages and tasks with their times.

use pleach_experiments::evaluate::stats::quantile;

use super::ids::StageId;
use crate::graph::Wave;

/// Times of a job, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// When it arrived.
    pub arrival_ms: u64,
    /// When its last task ended; none: not yet.
    pub end_ms: Option<u64>,
}

/// Times of a stage, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageRecord {
    /// When its first task began; none: not yet.
    pub start_ms: Option<u64>,
    /// When the last of its tasks so far ends.
    pub end_ms: u64,
    /// Sum of the durations of its tasks.
    pub busy_ms: u64,
}

/// A task, in the order of launching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its stage.
    pub stage: StageId,
    /// How many of the stage were launched before.
    pub number: u32,
    /// Executor that ran it.
    pub executor: u32,
    /// When it began, ms.
    pub start_ms: u64,
    /// When it ended, ms.
    pub end_ms: u64,
    /// What the executor remembered.
    pub wave: Wave,
    /// Executors at the job when it began.
    pub local: u32,
    /// The level from whose durations its own was drawn.
    pub level: u32,
}

/// What came of a play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Jobs by arrival.
    pub jobs: Vec<JobRecord>,
    /// Stages, job by job.
    pub stages: Vec<StageRecord>,
    /// Executors.
    pub executors: u32,
    /// Integral of the jobs in the system over time, job ms.
    pub job_ms: u64,
    /// Time of the last event, ms.
    pub end_ms: u64,
    /// Decisions.
    pub num_decisions: u64,
    /// Tasks that ended.
    pub num_tasks: u64,
    /// Times that an executor went to another job.
    pub num_moves: u64,
    /// Tasks, where they were recorded.
    pub tasks: Vec<TaskRecord>,
}

impl Outcome {
    /// Completion times of the jobs that have ended, s.
    pub fn jcts_s(&self) -> impl Iterator<Item = f64> {
        let times = |job: &JobRecord| Some(1e-3 * (job.end_ms? - job.arrival_ms) as f64);
        self.jobs.iter().filter_map(times)
    }

    /// Mean completion time, s.
    #[must_use]
    pub fn mean_jct_s(&self) -> f64 {
        let sum_ms: u64 = self
            .jobs
            .iter()
            .filter_map(|job| Some(job.end_ms? - job.arrival_ms))
            .sum();
        1e-3 * sum_ms as f64 / self.jobs.len().max(1) as f64
    }

    /// Figures by key.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut jcts_s: Vec<f64> = self.jcts_s().collect();
        jcts_s.sort_unstable_by(f64::total_cmp);
        let num = self.jobs.len().max(1) as f64;
        let first_ms = self.jobs.first().map_or(0, |job| job.arrival_ms);
        vec![
            ("mean_jct_s", self.mean_jct_s()),
            ("p95_jct_s", quantile(&jcts_s, 0.95).unwrap_or(f64::NAN)),
            ("makespan_s", 1e-3 * (self.end_ms - first_ms) as f64),
            ("busy_pct", 100.0 * self.busy_share()),
            ("moves", self.num_moves as f64 / num),
            ("decisions", self.num_decisions as f64 / num),
        ]
    }

    /// Share of the executors' time from the first arrival to the end in which they ran tasks.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        let busy_ms: u64 = self.stages.iter().map(|stage| stage.busy_ms).sum();
        let first_ms = self.jobs.first().map_or(0, |job| job.arrival_ms);
        busy_ms as f64 / (f64::from(self.executors) * (self.end_ms - first_ms).max(1) as f64)
    }
}
