//! Settings of a search, and what it makes little.

use pleach_env::Seed;
use pleach_scheduler::Problem;
use pleach_scheduler::key_weight::MAX_KEY_WEIGHTS;
use pleach_scheduler::portable_math::exp;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use serde::{Deserialize, Serialize};

/// What came of one tree on one list of jobs, against the caller's baseline on the same list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Natural logarithm of the ratio of average JCT; below 0 is better.
    pub ln_jct: f64,
    /// The same of the 99th percentile of JCT.
    pub ln_p99: f64,
}

impl Outcome {
    /// Of a list that was broken off, because its tree is out of the race ([`Standing`](super::Standing)).
    pub const BROKEN_OFF: Outcome = Outcome {
        ln_jct: f64::INFINITY,
        ln_p99: f64::INFINITY,
    };
}

settings! {
    /// Settings of a search. The defaults are those of the experiment in docs/distilling.md, and *assumed* elsewhere.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SearchConfig {
        /// Root of all randomness.
        pub seed: Seed = Seed(0);
        /// Parts that the lists are of, in turn.
        pub num_parts: usize = 4, in 1..;
        /// Lists to be simulated at least, starts included and those that are broken off; the batch in which they are reached is
        /// finished.
        pub simulations: u64 = 30_000;
        /// Starts that are run on all lists: those that are best on the first rung.
        pub starts: usize = 12, in 1..;
        /// Children of a batch.
        pub batch: usize = 16, in 1..=1024;
        /// Lists of the race, rung by rung, growing; multiples of the number of parts.
        pub rungs: Vec<usize> = vec![8, 24, 72];
        /// Children that go on to the next rung, rung by rung: one number less than rungs.
        pub survivors: Vec<usize> = vec![5, 2], in 1..;
        /// Trees of each size that are kept.
        pub of_each_size: usize = 3, in 1..=100;
        /// Most leaves. 2 to 256
        pub leaves_max: usize = 12, in 2..=256;
        /// Most features in a key. 0 to 4
        pub key_features_max: usize = MAX_KEY_WEIGHTS, in 0..=MAX_KEY_WEIGHTS;
        /// Most jobs that fit which are offered of each order. 1 to 64
        pub fitting_max: usize = 16, in 1..=64;
        /// Weight of what a part loses against the baseline.
        pub loss_weight: f64 = 2.0, in 0.0..=1e3;
        /// Weight of the 99th percentile beyond its bound.
        pub tail_weight: f64 = 0.3, in 0.0..=1e3;
        /// Ratio of the 99th percentile to the baseline's that costs nothing.
        pub tail_bound: f64 = 1.05, in 0.0..=1e3;
    }
}

impl SearchConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        self.check_at("search", "")?;
        let grows = self.rungs.windows(2).all(|pair| pair[0] < pair[1]);
        let is_in_parts = |lists: &usize| *lists > 0 && lists.is_multiple_of(self.num_parts);
        let hint = "the defaults are a good start";
        Problem::refuse_if(
            self.rungs.is_empty() || !grows || !self.rungs.iter().all(is_in_parts),
            "search.rungs",
            format_args!("{:?}", self.rungs),
            format_args!("growing numbers of lists, multiples of {} parts", self.num_parts),
            hint,
        )?;
        Problem::refuse_if(
            self.survivors.len() + 1 != self.rungs.len(),
            "search.survivors",
            format_args!("{:?}", self.survivors),
            "a number of 1 or more for each rung but the last",
            hint,
        )?;
        Ok(())
    }

    /// Lists of the last rung.
    #[must_use]
    pub fn num_lists(&self) -> usize {
        self.rungs.last().copied().unwrap_or(0)
    }

    /// What is to be little: the mean over the parts of the mean logarithm of the ratio of average JCT; `loss_weight` times that
    /// logarithm of each part in which it is above 0; and `tail_weight` times the mean over the parts of what the ratio of the 99th
    /// percentile is beyond `tail_bound`.
    #[must_use]
    pub fn objective(&self, outcomes: &[Outcome]) -> f64 {
        let num_parts = self.num_parts.max(1);
        let mut value = 0.0;
        for part in 0..num_parts {
            let of_part = || outcomes.iter().skip(part).step_by(num_parts);
            let num = of_part().count().max(1) as f64;
            let ln_jct = of_part().map(|outcome| outcome.ln_jct).sum::<f64>() / num;
            let ln_p99 = of_part().map(|outcome| outcome.ln_p99).sum::<f64>() / num;
            value += ln_jct / num_parts as f64;
            value += self.loss_weight * ln_jct.max(0.0);
            value += self.tail_weight * (exp(ln_p99) - self.tail_bound).max(0.0) / num_parts as f64;
        }
        value
    }
}
