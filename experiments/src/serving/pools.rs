//! Pools of replicas beside whole ones, as flags.

use clap::{ArgAction, Args};
use pleach_scheduler::ConfigError;
use pleach_serving::llm::{Link, Pools};

use super::ServingConfig;
use crate::evaluate::flag_values;

/// Which pools are compared with the fleet, and how keys and values move.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct PoolsConfig {
    /// Also split the replicas into pools: so many compute prompts and so many decode, repeated or with commas, such as 6:10
    #[arg(long, value_name = "P:D", value_delimiter = ',', action = ArgAction::Append, help_heading = "Pools")]
    pub pools: Vec<String>,
    /// What a GPU moves of keys and values from pool to pool, GB/s: NVLink 600, PCIe 64, InfiniBand 50
    #[arg(long, value_name = "X", default_value_t = 50.0, value_parser = flag_values::positive, help_heading = "Pools")]
    pub link_gb_s: f64,
}

impl Default for PoolsConfig {
    fn default() -> PoolsConfig {
        PoolsConfig {
            pools: Vec::new(),
            link_gb_s: 50.0,
        }
    }
}

impl PoolsConfig {
    /// The pools, of as many replicas as the fleet has.
    ///
    /// # Errors
    /// No two numbers, more or fewer replicas, a link out of range.
    pub(super) fn of(&self, serving: &ServingConfig) -> Result<Vec<Pools>, ConfigError> {
        let link = Link::of(&serving.model, serving.replica_gpus, self.link_gb_s)?;
        let read = |text: &String| {
            let parts = text.split_once(':').map(|(prefill, decode)| [prefill, decode]);
            let numbers = parts.map(|parts| parts.map(|part| part.trim().parse().unwrap_or(0_usize)));
            match numbers {
                Some([num_prefill, num_decode])
                    if num_prefill.min(num_decode) > 0
                        && num_prefill.saturating_add(num_decode) == usize::from(serving.replicas) =>
                {
                    Ok(Pools {
                        num_prefill,
                        num_decode,
                        link,
                    })
                }
                _ => {
                    let allowed = format!("P:D with P + D = {}, the replicas", serving.replicas);
                    let prefill = (serving.replicas / 2).max(1);
                    let hint = format!(
                        "Try {prefill}:{}.",
                        serving.replicas.saturating_sub(prefill).max(1)
                    );
                    Err(ConfigError::new("pools", text, allowed, hint))
                }
            }
        };
        self.pools.iter().map(read).collect()
    }
}
