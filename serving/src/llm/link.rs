//! How keys and values move from one replica to another: a time for each transfer and one for each byte, as in BLIS.

use pleach_scheduler::Problem;

use crate::llm::step_time::{Model, ps_of_s};

/// Of each transfer, s (the default of BLIS, which calls it a placeholder).
const TRANSFER_S: f64 = 50e-6;
/// Slowest and fastest link, GB/s.
const GB_PER_S: std::ops::RangeInclusive<f64> = 0.001..=1e6;

/// How keys and values move from one replica to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Of each transfer, ps.
    pub transfer_ps: u64,
    /// More for each token, ps.
    pub token_ps: u64,
}

impl Link {
    /// Of a model by name, where each of the `num_gpus` GPUs of a replica moves so many GB/s: NVLink 600, InfiniBand 50, PCIe 64.
    ///
    /// # Errors
    /// A name that is not there, a link out of range, GPUs among which the heads cannot be split.
    pub fn of(model: &str, num_gpus: u32, gb_per_s: f64) -> Result<Link, Problem> {
        if !GB_PER_S.contains(&gb_per_s) {
            let allowed = format!("{} to {}", GB_PER_S.start(), GB_PER_S.end());
            return Err(Problem::new("link_gb_s", gb_per_s, allowed, "Try 50."));
        }
        let model = Model::of(model)?;
        model.check_split(num_gpus)?;
        let bytes = f64::from(model.kv_bytes_per_token) / f64::from(num_gpus);
        Ok(Link {
            transfer_ps: ps_of_s(TRANSFER_S),
            token_ps: ps_of_s(bytes / (gb_per_s * 1e9)),
        })
    }

    /// Time of a transfer of so many tokens, ps.
    #[must_use]
    pub fn move_ps(&self, tokens: u32) -> u64 {
        self.transfer_ps + self.token_ps * u64::from(tokens)
    }
}
