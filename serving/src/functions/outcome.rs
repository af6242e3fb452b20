//! What became of requests: hits, cost, latencies, cold starts.

use serde::Serialize;

use super::timeline::Timeline;

/// Buckets of an octave: a quantile is right to half a percent.
const STEPS: u64 = 128;

/// Counts of latencies, us, by size: as much memory for a million as for ten.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latencies {
    counts: Vec<u64>,
    num: u64,
    sum_us: u64,
}

impl Latencies {
    pub(crate) fn new() -> Latencies {
        Latencies {
            counts: Vec::new(),
            num: 0,
            sum_us: 0,
        }
    }

    pub(crate) fn add(&mut self, latency_us: u64) {
        let bucket = bucket(latency_us);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.num += 1;
        self.sum_us = self.sum_us.saturating_add(latency_us);
    }

    /// Mean, us; NaN of none.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.sum_us as f64 / self.num as f64
    }

    /// A quantile by the nearest rank, to half a percent, us; NaN of none.
    #[must_use]
    pub fn quantile_us(&self, part: f64) -> f64 {
        let rank = ((part * self.num as f64).ceil() as u64).clamp(1, self.num.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_us(bucket as u64);
            }
        }
        f64::NAN
    }
}

fn bucket(latency_us: u64) -> usize {
    let octave = u64::from(
        (latency_us / STEPS)
            .checked_ilog2()
            .map_or(0, |octave| octave + 1),
    );
    let shift = octave.saturating_sub(1);
    (shift * STEPS + (latency_us >> shift)) as usize
}

fn middle_us(bucket: u64) -> f64 {
    if bucket < 2 * STEPS {
        return bucket as f64;
    }
    let shift = bucket / STEPS - 1;
    let low = (bucket - shift * STEPS) << shift;
    low as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

/// A whole run. Each request is served in time, served late, shed, or expired.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Requests.
    pub num_requests: u64,
    /// Served within their target.
    pub hits: u64,
    /// Served after it.
    pub late: u64,
    /// Dropped by the dispatcher.
    pub shed: u64,
    /// Dropped past their deadline, or left waiting at the end.
    pub expired: u64,
    /// What cores and slices cost while held, $.
    pub usd: f64,
    /// Of which for cold starts, $.
    pub cold_usd: f64,
    /// Containers that had to be made.
    pub cold_starts: u64,
    /// Batches.
    pub batches: u64,
    /// Requests in them, each at each of its functions.
    pub batched: u64,
    /// Times that a node was asked for, and that none had room.
    pub asked: u64,
    /// None had room.
    pub refused: u64,
    /// Slices held times time, us.
    pub slice_us: f64,
    /// Cores held times time, us.
    pub core_us: f64,
    /// Time that containers were warm and idle, us.
    pub idle_us: u64,
    /// End of the last batch, us.
    pub makespan_us: u64,
    /// Most requests at once.
    pub in_flight_max: usize,
    /// Of requests that were served.
    pub latencies: Latencies,
    /// What was held and waited over time.
    pub timeline: Timeline,
}

impl Outcome {
    pub(crate) fn new() -> Outcome {
        Outcome {
            num_requests: 0,
            hits: 0,
            late: 0,
            shed: 0,
            expired: 0,
            usd: 0.0,
            cold_usd: 0.0,
            cold_starts: 0,
            batches: 0,
            batched: 0,
            asked: 0,
            refused: 0,
            slice_us: 0.0,
            core_us: 0.0,
            idle_us: 0,
            makespan_us: 0,
            in_flight_max: 0,
            latencies: Latencies::new(),
            timeline: Timeline::new(),
        }
    }

    /// Share of all requests that were served in time, 0 to 1.
    #[must_use]
    pub fn hit_share(&self) -> f64 {
        self.hits as f64 / self.num_requests as f64
    }

    /// Share that was not served, 0 to 1.
    #[must_use]
    pub fn dropped_share(&self) -> f64 {
        (self.shed + self.expired) as f64 / self.num_requests as f64
    }

    /// Cost of 1,000 requests, $.
    #[must_use]
    pub fn usd_per_1000(&self) -> f64 {
        1e3 * self.usd / self.num_requests as f64
    }

    /// Cost of 1,000 hits, $; infinite where there is none.
    #[must_use]
    pub fn usd_per_1000_hits(&self) -> f64 {
        1e3 * self.usd / self.hits as f64
    }

    /// Mean requests of a batch.
    #[must_use]
    pub fn batch_mean(&self) -> f64 {
        self.batched as f64 / self.batches as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_latencies_to_half_a_percent() {
        let mut all: Vec<u64> = (0..5_000_u64)
            .map(|i| (i * i * 7_919) % 3_000_017 / (1 + i % 97))
            .collect();
        let mut counted = Latencies::new();
        all.iter().for_each(|latency_us| counted.add(*latency_us));
        all.sort_unstable();
        for part in [0.001, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let exact = all[((part * 5_000.0_f64).ceil() as usize).max(1) - 1] as f64;
            let found = counted.quantile_us(part);
            assert!(
                (found - exact).abs() <= 0.005 * exact,
                "{part}: {found} for {exact}"
            );
        }
        let mean = all.iter().sum::<u64>() as f64 / 5_000.0;
        assert!((counted.mean_us() - mean).abs() < 1e-9);
        assert!(Latencies::new().quantile_us(0.5).is_nan());
    }
}
