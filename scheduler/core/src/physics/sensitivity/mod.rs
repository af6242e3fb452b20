//! What CPU cores, host memory and storage bandwidth do to the speed of a training job.
//!
//! A [`Sensitivity`] is a grid of speeds over (cores per GPU, host memory per GPU), relative to the GPU-proportional
//! share of the machine that it was measured on, and optionally what the job needs from storage. A gang asks with its
//! smallest share per GPU, because a synchronous gang is as fast as its slowest member.
//!
//! # Interpolation
//! Bilinear between the levels of the grid; above the last level the speed stays; below the first it falls linearly to
//! 0 at 0. Storage caps the result: `speed <= storage / (need at speed 1 x missed)`, where the cache holds a fixed part
//! of the data set and so misses exactly `1 - min(1, memory / data set)` of every epoch.
//!
//! # Refused
//! Axes that do not rise, grids of another size, speeds that fall where a resource grows.
//!
//! # Source
//! Synergy (OSDI'22): optimistic profiling and its closed form; per-model speeds as released with its simulator (MIT).

use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::settings;
use crate::settings::Settings as _;

mod synergy;
#[cfg(test)]
mod tests;

pub use synergy::{SYNERGY_MODELS, SynergyModel};

/// Most levels on an axis.
pub(crate) const MAX_LEVELS: usize = 64;
/// Largest speed of a surface, as that of a class.
const SPEED_MAX: f64 = 1e6;

/// Speed of a job over what a GPU of it is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// Cores per GPU at which the speed is known, rising.
    pub cores: Vec<f64>,
    /// Host memory per GPU at which the speed is known, GiB, rising.
    pub memory_gib: Vec<f64>,
    /// Speeds, 1 = the GPU-proportional share; row-major `[cores, memory]`; never falling along either axis.
    pub speed: Vec<f64>,
    /// What the job reads; `None` = storage never binds beyond what is in the grid.
    #[serde(default)]
    pub storage: Option<StorageNeed>,
}

settings! {
    /// What a job reads from storage.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct StorageNeed: required {
        /// MB/s per GPU at speed 1 with nothing cached.
        pub mbps_at_speed_1: f64, in 1e-6..=1e9;
        /// Size of the data set, GiB; per GPU, that is divided by the GPUs that share one cache.
        pub dataset_gib: f64, in 1e-6..=1e9;
    }
}

/// What one GPU of a job is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// CPU cores.
    pub cores: f64,
    /// Host memory, GiB.
    pub memory_gib: f64,
    /// Storage bandwidth, MB/s.
    pub storage_mbps: f64,
}

impl Share {
    /// The GPU-proportional share of Synergy's servers: 24 cores, 500 GB and 500 MB/s over 8 GPUs.
    pub const SYNERGY: Share = Share {
        cores: 3.0,
        memory_gib: 62.5,
        storage_mbps: 62.5,
    };
}

impl StorageNeed {
    /// Largest speed that the storage can feed; infinite where everything is cached.
    fn cap(&self, share: Share) -> f64 {
        let missed = 1.0 - (share.memory_gib / self.dataset_gib).min(1.0);
        let need = self.mbps_at_speed_1 * missed;
        if need > 0.0 {
            share.storage_mbps / need
        } else {
            f64::INFINITY
        }
    }
}

/// (index of the level at or below, weight of the next level, factor) for a value on an axis.
fn locate(levels: &[f64], value: f64) -> (usize, f64, f64) {
    let above = levels.iter().position(|level| *level > value);
    match above {
        Some(0) => (0, 0.0, (value / levels[0]).max(0.0)),
        Some(next) => {
            let (low, high) = (levels[next - 1], levels[next]);
            (next - 1, (value - low) / (high - low), 1.0)
        }
        None => (levels.len() - 1, 0.0, 1.0),
    }
}

impl Sensitivity {
    /// Speed on this share of a machine, 1 = the GPU-proportional share of the machine that was measured. Of validated
    /// grids and finite shares.
    #[must_use]
    pub fn speed(&self, share: Share) -> f64 {
        let (row, down, core_factor) = locate(&self.cores, share.cores);
        let (column, right, memory_factor) = locate(&self.memory_gib, share.memory_gib);
        let width = self.memory_gib.len();
        let at = |row: usize, column: usize| self.speed[row * width + column];
        // At the last level the weight of the next is 0; the index is held within the grid.
        let (below, beside) = ((row + 1).min(self.cores.len() - 1), (column + 1).min(width - 1));
        let upper = at(row, column) + right * (at(row, beside) - at(row, column));
        let lower = at(below, column) + right * (at(below, beside) - at(below, column));
        let speed = (upper + down * (lower - upper)) * core_factor * memory_factor;
        match &self.storage {
            Some(need) => speed.min(need.cap(share)),
            None => speed,
        }
    }

    /// The smallest level of cores, and then of memory, that reaches the best speed of the grid to within `tolerance`
    /// (0 = exactly): the job's demand per GPU, with no claim on storage.
    #[must_use]
    pub fn demand(&self, tolerance: f64) -> Share {
        let best = self.speed.iter().copied().fold(0.0, f64::max);
        let width = self.memory_gib.len();
        let enough = |speed: &f64| *speed >= best * (1.0 - tolerance);
        let first = self.speed.iter().position(enough).unwrap_or(0);
        Share {
            cores: self.cores[first / width],
            memory_gib: self.memory_gib[first % width],
            storage_mbps: 0.0,
        }
    }

    /// Checks axes, size and monotony.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn validate(&self) -> Result<(), Problem> {
        let fail = |key: &str, value: String, allowed: String, hint: &str| {
            Err(Problem::new(format!("sensitivity.{key}"), value, allowed, hint))
        };
        for (key, axis) in [("cores", &self.cores), ("memory_gib", &self.memory_gib)] {
            let rising = axis.windows(2).all(|pair| pair[0] < pair[1]);
            let positive = axis.iter().all(|level| (1e-6..=1e9).contains(level));
            if axis.is_empty() || axis.len() > MAX_LEVELS || !rising || !positive {
                let allowed = format!("1 to {MAX_LEVELS} rising numbers from 1e-6 to 1e9");
                return fail(
                    key,
                    format!("{axis:?}"),
                    allowed,
                    "sort the levels and drop repeats",
                );
            }
        }
        let (height, width) = (self.cores.len(), self.memory_gib.len());
        if self.speed.len() != height * width {
            let allowed = format!("{height} x {width} speeds");
            return fail(
                "speed",
                format!("{} speeds", self.speed.len()),
                allowed,
                "one speed for each pair of levels, cores first",
            );
        }
        for (cell, speed) in self.speed.iter().enumerate() {
            let before = (cell % width > 0).then(|| self.speed[cell - 1]);
            let above = (cell >= width).then(|| self.speed[cell - width]);
            let least = before.unwrap_or(0.0).max(above.unwrap_or(0.0));
            if !(least..=SPEED_MAX).contains(speed) {
                return fail(
                    &format!("speed[{cell}]"),
                    speed.to_string(),
                    format!("at least {least}, the speed with less, at most {SPEED_MAX}"),
                    "more of a resource is never slower; smooth the measurement",
                );
            }
        }
        let need = self.storage.as_ref();
        let hint = "leave storage out for a job that does not read";
        need.map_or(Ok(()), |need| need.check_at("sensitivity.storage", hint))
    }
}
