//! How keys and values move from one replica to another: a time for each transfer and one for each byte, as in BLIS.

use pleach_scheduler::Problem;

use crate::llm::step_time::{Server, ps_of_s};

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
    /// Of a server each of whose GPUs moves so many GB/s: NVLink 600, InfiniBand 50, PCIe 64.
    ///
    /// # Errors
    /// A link out of range.
    pub fn of(server: &Server, gb_per_s: f64) -> Result<Link, Problem> {
        Problem::refuse_if(
            !GB_PER_S.contains(&gb_per_s),
            "link_gb_s",
            gb_per_s,
            format_args!("{} to {}", GB_PER_S.start(), GB_PER_S.end()),
            "Try 50.",
        )?;
        Ok(Link {
            transfer_ps: ps_of_s(TRANSFER_S),
            token_ps: ps_of_s(server.gpu_kv_bytes() / (gb_per_s * 1e9)),
        })
    }

    /// Time of a transfer of so many tokens, ps.
    #[must_use]
    pub fn move_ps(&self, tokens: u32) -> u64 {
        self.transfer_ps + self.token_ps * u64::from(tokens)
    }
}
