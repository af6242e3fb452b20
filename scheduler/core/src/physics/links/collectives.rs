//! Collectives besides the all-reduce: gathers, scatters and all-to-all, of which steps of large models are made.
//!
//! ```text
//! gather, scatter   W = (n-1)/n S,  t = latency + W / B + root sqrt(W),  B a ring: min(ring inside, 0.97 net, ceiling)
//! all to all        t = latency + S (n-m)/n / (net / m)      m ranks in a domain; of one domain S (n-1)/n / ring
//! ```
//!
//! Switches do not help: 361 and 363 GB/s of 480 are measured for both on H200.
//!
//! # Source
//! stas00/ml-engineering, network README. All to all: volume over the NICs of a rank, without contention inside the switches.

use super::{Fabric, RING_NET, Spread};

impl Fabric {
    /// Time in which every rank gathers `bytes` of which it has its part, or scatters their sum, s.
    #[must_use]
    pub fn gather_s(&self, spread: Spread, bytes: f64) -> f64 {
        if spread.num_gpus <= 1 {
            return 0.0;
        }
        let ranks = f64::from(spread.num_gpus);
        let volume = (ranks - 1.0) / ranks * bytes;
        let mut gb_per_s = self.ring_gb_per_s(spread);
        if spread.num_domains > 1 {
            gb_per_s = gb_per_s.min(RING_NET * self.net_gb_per_s(spread));
        }
        if spread.num_domains > 2 {
            gb_per_s = gb_per_s.min(self.between.ceiling_gb_per_s.unwrap_or(f64::INFINITY));
        }
        let (latency_us, root_us) = self.delays_us(spread);
        latency_us * 1e-6 + volume / (gb_per_s * 1e9) + root_us * 1e-6 * (volume / 1e6).sqrt()
    }

    /// Time in which every rank sends each other its part of `bytes`, s.
    #[must_use]
    pub fn all_to_all_s(&self, spread: Spread, bytes: f64) -> f64 {
        if spread.num_gpus <= 1 {
            return 0.0;
        }
        let ranks = f64::from(spread.num_gpus);
        let (latency_us, _) = self.delays_us(spread);
        let near = f64::from(spread.domain_gpus_min);
        let seconds = if spread.num_domains <= 1 {
            bytes * (ranks - 1.0) / ranks / (self.ring_gb_per_s(spread) * 1e9)
        } else {
            bytes * (ranks - near) / ranks / (self.net_gb_per_s(spread) / near * 1e9)
        };
        latency_us * 1e-6 + seconds
    }

    /// What a ring gets inside a domain.
    fn ring_gb_per_s(&self, spread: Spread) -> f64 {
        match self.inside.islands_gb_per_s {
            Some(islands) if !spread.is_one_island => islands,
            _ => self.inside.ring_gb_per_s,
        }
    }
}
