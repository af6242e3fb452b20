//! What became of requests: turnarounds, violations, throughput.

/// One request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// µs.
    pub arrival_us: u64,
    /// µs.
    pub deadline_us: u64,
    /// What it would have taken alone, µs.
    pub isolated_us: u64,
    /// End of its last layer, µs.
    pub finish_us: u64,
}

impl Served {
    /// From arrival to end over what it would have taken alone, at least 1.
    #[must_use]
    pub fn normalised_turnaround(&self) -> f64 {
        (self.finish_us - self.arrival_us) as f64 / self.isolated_us as f64
    }

    /// Ended after its deadline.
    #[must_use]
    pub fn is_violation(&self) -> bool {
        self.finish_us > self.deadline_us
    }
}

/// A whole list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// By arrival.
    pub requests: Vec<Served>,
    /// Time that accelerators were busy, all together, µs.
    pub busy_us: u64,
    /// Times that an accelerator left a request for another one before it had ended.
    pub num_preemptions: u64,
}

impl Outcome {
    /// Share of requests that ended after their deadline, 0 to 1.
    #[must_use]
    pub fn violation_share(&self) -> f64 {
        let late = self.requests.iter().filter(|served| served.is_violation());
        late.count() as f64 / self.requests.len() as f64
    }

    /// Average normalised turnaround time (ANTT), at least 1.
    #[must_use]
    pub fn antt(&self) -> f64 {
        let all = self.requests.iter().map(Served::normalised_turnaround);
        all.sum::<f64>() / self.requests.len() as f64
    }

    /// System throughput (STP): requests over the time from the first arrival to the last end, 1/s.
    #[must_use]
    pub fn stp_per_s(&self) -> f64 {
        let first_us = self.requests.iter().map(|served| served.arrival_us).min();
        let last_us = self.requests.iter().map(|served| served.finish_us).max();
        let span_us = last_us.unwrap_or(0) - first_us.unwrap_or(0);
        self.requests.len() as f64 * 1e6 / span_us as f64
    }

    /// A quantile of the normalised turnaround, by the nearest rank.
    #[must_use]
    pub fn turnaround_quantile(&self, part: f64) -> f64 {
        let all = self.requests.iter().map(Served::normalised_turnaround);
        pleach_serving::quantile::nearest_rank(all.collect(), part)
    }
}
