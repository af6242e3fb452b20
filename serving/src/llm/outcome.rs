//! What became of requests: latencies, hits, refusals.

use serde::{Deserialize, Serialize};

use crate::quantile::nearest_rank;

/// What users expect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// Longest time to the first token (TTFT), s.
    pub ttft_s: f64,
    /// Longest mean time between two later tokens (TPOT), s.
    pub tpot_s: f64,
}

impl Default for Targets {
    /// Half a second and 30 ms, *assumed*: what a chat feels prompt with.
    fn default() -> Targets {
        Targets {
            ttft_s: 0.5,
            tpot_s: 0.03,
        }
    }
}

/// One request that was served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// Time to the first token, s.
    pub ttft_s: f64,
    /// Mean time between two later tokens, s; 0 where there is one token.
    pub tpot_s: f64,
    /// From arrival to the last token, s.
    pub latency_s: f64,
}

impl Served {
    /// Within both targets.
    #[must_use]
    pub fn is_hit(&self, targets: Targets) -> bool {
        self.ttft_s <= targets.ttft_s && self.tpot_s <= targets.tpot_s
    }
}

/// A whole list.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By arrival; none where the request was refused.
    pub requests: Vec<Option<Served>>,
    /// End of the last request, s.
    pub makespan_s: f64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Of which replicas held so many already.
    pub reused_tokens: u64,
    /// Times that a request was computed anew.
    pub num_recomputed: u64,
    /// Steps of all replicas.
    pub num_steps: u64,
}

impl Outcome {
    /// Share of all requests, refused ones among them, that were within both targets, 0 to 1.
    #[must_use]
    pub fn hit_share(&self, targets: Targets) -> f64 {
        let hits = self.served().filter(|served| served.is_hit(targets)).count();
        hits as f64 / self.requests.len() as f64
    }

    /// Share that was refused, 0 to 1.
    #[must_use]
    pub fn refused_share(&self) -> f64 {
        1.0 - self.served().count() as f64 / self.requests.len() as f64
    }

    /// Those that were served.
    pub fn served(&self) -> impl Iterator<Item = Served> {
        self.requests.iter().copied().flatten()
    }

    /// A quantile of a figure of served requests, by the nearest rank; NaN where none was served.
    #[must_use]
    pub fn quantile(&self, part: f64, figure: impl Fn(&Served) -> f64) -> f64 {
        nearest_rank(self.served().map(|served| figure(&served)).collect(), part)
    }

    /// The mean of a figure of served requests; NaN where none was served.
    #[must_use]
    pub fn mean(&self, figure: impl Fn(&Served) -> f64) -> f64 {
        self.served().map(|served| figure(&served)).sum::<f64>() / self.served().count() as f64
    }
}
