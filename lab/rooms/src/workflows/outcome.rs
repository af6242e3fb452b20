//! What became of queries: slowdowns, and how often a model was there.

/// One query that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// µs.
    pub arrival_us: u64,
    /// End of its last task, µs.
    pub finish_us: u64,
    /// Its longest path with all models in memory and nothing moved, µs.
    pub critical_us: u64,
}

impl Served {
    /// Latency over the critical path, at least 1.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        (self.finish_us - self.arrival_us) as f64 / self.critical_us as f64
    }
}

/// A whole list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// By arrival.
    pub queries: Vec<Served>,
    /// Tasks of all queries.
    pub num_tasks: u64,
    /// Models that were loaded.
    pub num_loads: u64,
    /// Tasks that ran elsewhere than planned.
    pub num_moved: u64,
    /// Time that GPUs ran tasks, all together, µs.
    pub busy_us: u64,
}

impl Outcome {
    /// Mean over queries.
    #[must_use]
    pub fn slowdown_mean(&self) -> f64 {
        self.queries.iter().map(Served::slowdown).sum::<f64>() / self.queries.len() as f64
    }

    /// A quantile over queries, by the nearest rank.
    #[must_use]
    pub fn slowdown_quantile(&self, part: f64) -> f64 {
        pleach_serving::quantile::nearest_rank(self.queries.iter().map(Served::slowdown).collect(), part)
    }

    /// Share of tasks for which no model was loaded, 0 to 1. One loaded ahead of its task counts as loaded.
    #[must_use]
    pub fn hit_share(&self) -> f64 {
        1.0 - self.num_loads as f64 / self.num_tasks as f64
    }
}
