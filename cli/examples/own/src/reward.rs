//! A reward of one's own: a sum over time that an expression may name.

use pleach_cli::env::world::Integrals;

/// Hours of GPUs that were free. It must add up: what it is of two steps together is the sum of both.
pub fn idle_gpu_hours(gained: &Integrals) -> f64 {
    gained.idle_gpu_s / 3600.0
}
