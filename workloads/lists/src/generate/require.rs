//! Ranges that every generator refuses to leave.

use pleach_scheduler::ConfigError;

use super::super::{NUM_JOBS_MAX, SUBMIT_S_MAX};
use crate::Error;

/// Span of the arrivals that makes the load exact, s.
pub(super) fn span_for(demand_gpu_s: f64, load: f64, capacity_gpus: f64) -> Result<f64, Error> {
    let span_s = demand_gpu_s / (load * capacity_gpus);
    Error::refuse_if(
        span_s > SUBMIT_S_MAX,
        "load",
        load,
        "a load under which the jobs arrive within 2e9 s",
        "raise the load, or ask for fewer jobs or more nodes",
    )?;
    Ok(span_s)
}

pub(super) fn require(
    key: &str,
    value: impl ToString,
    is_met: bool,
    allowed: &str,
) -> Result<(), ConfigError> {
    ConfigError::refuse_if(
        !is_met,
        format_args!("generator.{key}"),
        value,
        allowed,
        "see docs/workloads.md",
    )
}

pub(super) fn require_common(num_jobs: usize, load: f64) -> Result<(), ConfigError> {
    require(
        "num_jobs",
        num_jobs,
        (1..=NUM_JOBS_MAX).contains(&num_jobs),
        "1 to 10,000,000",
    )?;
    require("load", load, (0.001..=100.0).contains(&load), "0.001 to 100")
}
