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

use crate::error::ConfigError;

/// Most levels on an axis.
pub const MAX_LEVELS: usize = 64;

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

/// What a job reads from storage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageNeed {
    /// MB/s per GPU at speed 1 with nothing cached.
    pub mbps_at_speed_1: f64,
    /// Size of the data set, GiB; per GPU, that is divided by the GPUs that share one cache.
    pub dataset_gib: f64,
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

/// The closed form: an input pipeline that prepares items on cores, reads what the cache misses, and feeds a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Speed at which the GPU is the bottleneck, 1 = the GPU-proportional share.
    pub gpu_speed: f64,
    /// Speed that one core can prepare for.
    pub speed_per_core: f64,
    /// What it reads.
    pub storage: StorageNeed,
}

impl Pipeline {
    /// Speed on this share: the smallest of GPU, preparation and reading.
    #[must_use]
    pub fn speed(&self, share: Share) -> f64 {
        let prepared = self.speed_per_core * share.cores;
        self.gpu_speed.min(prepared).min(self.storage.cap(share))
    }

    /// The pipeline as a grid over these levels, with the storage need beside it: what Synergy calls optimistic
    /// profiling. Exact at the levels and wherever the bottleneck does not change within a cell.
    #[must_use]
    pub fn grid(&self, cores: &[f64], memory_gib: &[f64]) -> Sensitivity {
        let mut speed = Vec::with_capacity(cores.len() * memory_gib.len());
        for level in cores {
            speed.extend(
                memory_gib
                    .iter()
                    .map(|_| self.gpu_speed.min(self.speed_per_core * level)),
            );
        }
        Sensitivity {
            cores: cores.into(),
            memory_gib: memory_gib.into(),
            speed,
            storage: Some(self.storage),
        }
    }
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
    /// A job that only needs its GPU.
    #[must_use]
    pub fn insensitive() -> Sensitivity {
        Sensitivity {
            cores: vec![1.0],
            memory_gib: vec![20.83],
            speed: vec![1.0],
            storage: None,
        }
    }

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

    /// Speed on `share` relative to `fair`, the GPU-proportional share of *this* cluster. 0 where `fair` gives 0.
    #[must_use]
    pub fn relative_speed(&self, share: Share, fair: Share) -> f64 {
        let base = self.speed(fair);
        if base > 0.0 { self.speed(share) / base } else { 0.0 }
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
    pub fn validate(&self) -> Result<(), ConfigError> {
        let fail = |key: &str, value: String, allowed: String, hint: &str| {
            Err(ConfigError {
                key: format!("sensitivity.{key}"),
                value,
                allowed,
                hint: hint.into(),
            })
        };
        for (key, axis) in [("cores", &self.cores), ("memory_gib", &self.memory_gib)] {
            let rising = axis.windows(2).all(|pair| pair[0] < pair[1]);
            let positive = axis.iter().all(|level| level.is_finite() && *level > 0.0);
            if axis.is_empty() || axis.len() > MAX_LEVELS || !rising || !positive {
                let allowed = format!("1 to {MAX_LEVELS} rising numbers above 0");
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
            if !(speed.is_finite() && *speed >= least) {
                return fail(
                    &format!("speed[{cell}]"),
                    speed.to_string(),
                    format!("at least {least}, the speed with less"),
                    "more of a resource is never slower; smooth the measurement",
                );
            }
        }
        if let Some(need) = &self.storage {
            for (key, value) in [
                ("mbps_at_speed_1", need.mbps_at_speed_1),
                ("dataset_gib", need.dataset_gib),
            ] {
                if !(value.is_finite() && value > 0.0) {
                    let key = format!("storage.{key}");
                    return fail(
                        &key,
                        value.to_string(),
                        "a number above 0".into(),
                        "leave storage out for a job that does not read",
                    );
                }
            }
        }
        Ok(())
    }

    /// The surface of one of Synergy's models, or of a class (`image`, `speech`, `language`: the model in the middle of
    /// the class, resnet18, m5 and transformer).
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<Sensitivity, ConfigError> {
        let model = match name {
            "image" => "resnet18",
            "speech" => "m5",
            "language" => "transformer",
            other => other,
        };
        let found = SYNERGY_MODELS.iter().find(|row| row.name == model);
        found.map(SynergyModel::surface).ok_or_else(|| {
            let names: Vec<&str> = SYNERGY_MODELS.iter().map(|row| row.name).collect();
            ConfigError {
                key: "sensitivity".into(),
                value: name.into(),
                allowed: format!("image, speech, language, {}", names.join(", ")),
                hint: "or write cores, memory_gib and speed".into(),
            }
        })
    }
}

/// A row of Synergy's table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SynergyModel {
    /// Its name.
    pub name: &'static str,
    /// `image`, `speech` or `language`.
    pub class: &'static str,
    /// Items in a batch.
    pub batch: u32,
    /// Time of an iteration at the GPU-proportional share of a V100, s.
    pub iteration_s: f64,
    /// Speed at 62.5 GB per GPU for [`CORE_LEVELS`].
    speed: [f64; 9],
    /// Speeds from 12 cores on (6 for m5) at 125 GB and at 187.5 GB, where more memory helps.
    with_memory: Option<(usize, f64, f64)>,
}

/// Cores per GPU in Synergy's grid.
const CORE_LEVELS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0];
/// Memory per GPU in Synergy's grid, GB as printed.
const MEMORY_LEVELS: [f64; 5] = [20.83, 62.5, 125.0, 187.5, 250.0];
/// Speed of image and speech models at the smallest memory level: the working set does not fit.
const THRASHING: f64 = 0.1;

const fn model(
    name: &'static str,
    class: &'static str,
    batch: u32,
    iteration_s: f64,
    speed: [f64; 9],
    with_memory: Option<(usize, f64, f64)>,
) -> SynergyModel {
    SynergyModel {
        name,
        class,
        batch,
        iteration_s,
        speed,
        with_memory,
    }
}

/// Synergy's models on V100 servers with 3 cores and 62.5 GB per GPU, one GPU each.
///
/// # Source
/// Synergy (OSDI'22), profiles released with its simulator (MIT, (c) Microsoft).
#[rustfmt::skip]
pub const SYNERGY_MODELS: [SynergyModel; 10] = [
    model("alexnet", "image", 512, 0.60, [0.30, 0.66, 1.0, 1.25, 1.53, 1.75, 2.0, 2.0, 2.0], Some((7, 2.94, 2.94))),
    model("resnet18", "image", 512, 0.64, [0.37, 0.72, 1.0, 1.30, 1.53, 1.75, 2.40, 2.40, 2.40], None),
    model("resnet50", "image", 512, 0.78, [0.40, 0.74, 1.0, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15], None),
    model("mobilenet", "image", 512, 0.71, [0.37, 0.72, 1.0, 1.30, 1.49, 1.55, 1.55, 1.55, 1.55], None),
    model("shufflenet", "image", 512, 0.615, [0.30, 0.66, 1.0, 1.25, 1.53, 1.75, 2.0, 2.0, 2.0], Some((7, 2.89, 2.89))),
    model("m5", "speech", 512, 0.60, [0.30, 0.66, 1.0, 1.2, 1.4, 1.5, 1.5, 1.5, 1.5], Some((5, 2.0, 2.5))),
    model("deepspeech", "speech", 20, 0.757, [0.30, 0.66, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], None),
    model("gnmt", "language", 128, 0.12, [1.0; 9], None),
    model("transformer", "language", 128, 0.67, [1.0; 9], None),
    model("lstm", "language", 20, 0.011, [1.0; 9], None),
];

impl SynergyModel {
    /// Its grid.
    #[must_use]
    pub fn surface(&self) -> Sensitivity {
        let mut speed = Vec::with_capacity(CORE_LEVELS.len() * MEMORY_LEVELS.len());
        for (row, plain) in self.speed.iter().enumerate() {
            let (at_125, at_187) = match self.with_memory {
                Some((from, at_125, at_187)) if row >= from => (at_125, at_187),
                _ => (*plain, *plain),
            };
            let least = if self.class == "language" { 1.0 } else { THRASHING };
            speed.extend([least, *plain, at_125, at_187, at_187]);
        }
        Sensitivity {
            cores: CORE_LEVELS.into(),
            memory_gib: MEMORY_LEVELS.into(),
            speed,
            storage: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(cores: f64, memory_gib: f64) -> Share {
        Share {
            cores,
            memory_gib,
            storage_mbps: 62.5,
        }
    }

    #[test]
    fn every_published_surface_is_valid_and_1_at_the_fair_share() {
        for row in &SYNERGY_MODELS {
            let surface = row.surface();
            surface.validate().unwrap();
            assert_eq!(surface.speed(Share::SYNERGY), 1.0, "{}", row.name);
        }
    }

    #[test]
    fn demands_are_the_published_ones() {
        let published = [
            ("alexnet", 12.0, 125.0, 2.94),
            ("resnet18", 9.0, 62.5, 2.40),
            ("resnet50", 4.0, 62.5, 1.15),
            ("mobilenet", 6.0, 62.5, 1.55),
            ("shufflenet", 12.0, 125.0, 2.89),
            ("m5", 6.0, 187.5, 2.50),
            ("deepspeech", 3.0, 62.5, 1.0),
            ("gnmt", 1.0, 20.83, 1.0),
            ("lstm", 1.0, 20.83, 1.0),
        ];
        for (name, cores, memory_gib, best) in published {
            let surface = Sensitivity::from_name(name).unwrap();
            let demand = surface.demand(0.0);
            assert_eq!((demand.cores, demand.memory_gib), (cores, memory_gib), "{name}");
            assert_eq!(surface.speed(demand), best, "{name}");
        }
    }

    #[test]
    fn figure_1_is_met() {
        // AlexNet is 3.1x faster on 12 than on 3 cores, ResNet-18 2.3x on 9 than on 3.
        let gain = |name: &str, cores: f64| {
            let surface = Sensitivity::from_name(name).unwrap();
            surface.speed(share(cores, 250.0)) / surface.speed(share(3.0, 250.0))
        };
        assert!((gain("alexnet", 12.0) / 3.1 - 1.0).abs() < 0.06);
        assert!((gain("resnet18", 9.0) / 2.3 - 1.0).abs() < 0.05);
    }

    #[test]
    fn between_levels_the_speed_is_linear_and_beyond_them_it_stays_or_falls_to_0() {
        let surface = Sensitivity::from_name("resnet18").unwrap();
        // Half-way from 6 to 9 cores: (1.75 + 2.40) / 2.
        assert!((surface.speed(share(7.5, 62.5)) - 2.075).abs() < 1e-12);
        assert_eq!(surface.speed(share(48.0, 900.0)), 2.40);
        // Half of the smallest level: half its speed.
        assert!((surface.speed(share(0.5, 62.5)) - 0.185).abs() < 1e-12);
        assert_eq!(surface.speed(share(0.0, 62.5)), 0.0);
        // alexnet, half-way from 9 to 12 cores and from 62.5 to 125 GB: the mean of 2, 2, 2 and 2.94 = 2.235.
        let surface = Sensitivity::from_name("alexnet").unwrap();
        assert!((surface.speed(share(10.5, 93.75)) - 2.235).abs() < 1e-12);
        // Too little memory: 0.1, whatever the cores.
        assert!((surface.speed(share(12.0, 20.83)) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_cache_that_holds_half_the_data_halves_what_is_read() {
        let pipeline = Pipeline {
            gpu_speed: 3.0,
            speed_per_core: 0.5,
            storage: StorageNeed {
                mbps_at_speed_1: 50.0,
                dataset_gib: 100.0,
            },
        };
        // 4 cores prepare for speed 2; nothing cached: 25 MB/s feed 0.5; half cached: 1; all cached: 2, the cores.
        let at = |memory_gib: f64, storage_mbps: f64| Share {
            cores: 4.0,
            memory_gib,
            storage_mbps,
        };
        assert_eq!(pipeline.speed(at(0.0, 25.0)), 0.5);
        assert_eq!(pipeline.speed(at(50.0, 25.0)), 1.0);
        assert_eq!(pipeline.speed(at(100.0, 25.0)), 2.0);
        // As a grid it says the same at its levels.
        let grid = pipeline.grid(&[1.0, 2.0, 4.0, 8.0], &[25.0, 50.0, 100.0]);
        grid.validate().unwrap();
        for cores in [1.0, 2.0, 4.0, 8.0] {
            for memory_gib in [25.0, 50.0, 100.0] {
                let share = Share {
                    cores,
                    ..at(memory_gib, 25.0)
                };
                assert!((grid.speed(share) - pipeline.speed(share)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_richer_cluster_has_another_fair_share() {
        let surface = Sensitivity::from_name("image").unwrap();
        let fair = share(6.0, 62.5);
        assert_eq!(surface.relative_speed(fair, fair), 1.0);
        assert!((surface.relative_speed(share(9.0, 62.5), fair) - 2.40 / 1.75).abs() < 1e-12);
    }

    #[test]
    fn broken_surfaces_are_refused_by_name() {
        let mut surface = Sensitivity::from_name("m5").unwrap();
        surface.speed[3] = 0.01;
        let text = surface.validate().unwrap_err().to_string();
        assert!(text.contains("sensitivity.speed[3]"), "{text}");
        surface.speed.pop();
        assert!(surface.validate().unwrap_err().to_string().contains("9 x 5"));
        surface.cores[1] = 1.0;
        assert!(
            surface
                .validate()
                .unwrap_err()
                .to_string()
                .contains("sensitivity.cores")
        );
        let text = Sensitivity::from_name("vgg").unwrap_err().to_string();
        assert!(text.contains("vgg") && text.contains("alexnet"), "{text}");
        Sensitivity::insensitive().validate().unwrap();
    }

    proptest! {
        #[test]
        fn more_of_anything_is_never_slower(
            index in 0_usize..10, cores in 0.0_f64..30.0, memory_gib in 0.0_f64..300.0, storage_mbps in 0.0_f64..500.0,
            more in 0.0_f64..20.0,
        ) {
            let mut surface = SYNERGY_MODELS[index].surface();
            surface.storage = Some(StorageNeed { mbps_at_speed_1: 60.0, dataset_gib: 140.0 });
            let base = Share { cores, memory_gib, storage_mbps };
            let speed = surface.speed(base);
            prop_assert!(speed >= 0.0 && speed.is_finite());
            for richer in [
                Share { cores: cores + more, ..base },
                Share { memory_gib: memory_gib + more, ..base },
                Share { storage_mbps: storage_mbps + more, ..base },
            ] {
                prop_assert!(surface.speed(richer) >= speed - 1e-12);
            }
        }
    }
}
