//! What became of frames.

/// A run's counts. Every frame that was released is met, late or skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Frames whose release lay before the end of the run.
    pub released: u64,
    /// Of them, ended by their deadline.
    pub met: u64,
    /// Ended after it.
    pub late: u64,
    /// Never begun, for the frame before ended after they were due, or given up.
    pub skipped: u64,
    /// Frames that ended between the warm-up and the end of the run.
    pub num_in_window: u64,
    /// From the warm-up to the end, µs.
    pub window_us: u64,
    /// Stages that ended.
    pub num_stages: u64,
    /// Most stages in flight.
    pub in_flight_max: u32,
    /// Sum of the times from release to end of frames that ended, µs.
    pub response_us: u64,
}

impl Outcome {
    /// Frames that ended, per second, without the warm-up.
    #[must_use]
    pub fn fps(&self) -> f64 {
        self.num_in_window as f64 * 1e6 / self.window_us as f64
    }

    /// Share of released frames that did not end by their deadline, 0 to 1.
    #[must_use]
    pub fn missed_share(&self) -> f64 {
        1.0 - self.met as f64 / self.released.max(1) as f64
    }
}

/// A stage from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageRun {
    /// Whose frame it is of.
    pub task: usize,
    /// Its place in the network.
    pub stage: usize,
    /// Where it ran.
    pub context: usize,
    /// When it took a stream.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
    /// When its frame is due.
    pub due_us: u64,
}
