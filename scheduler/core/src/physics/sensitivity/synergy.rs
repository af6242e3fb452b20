//! Synergy's ten models: speeds over cores and memory, as surfaces by name.
//!
//! # Source
//! Synergy (OSDI'22), profiles released with its simulator (MIT, (c) Microsoft).

use super::Sensitivity;
use crate::problem::Problem;

impl Sensitivity {
    /// The surface of one of Synergy's models, or of a class (`image`, `speech`, `language`: the model in the middle of
    /// the class, resnet18, m5 and transformer).
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<Sensitivity, Problem> {
        let model = match name {
            "image" => "resnet18",
            "speech" => "m5",
            "language" => "transformer",
            other => other,
        };
        let found = SYNERGY_MODELS.iter().find(|row| row.name == model);
        found.map(SynergyModel::surface).ok_or_else(|| {
            let names: Vec<&str> = SYNERGY_MODELS.iter().map(|row| row.name).collect();
            Problem::new(
                "sensitivity",
                name,
                format!("image, speech, language, {}", names.join(", ")),
                "or write cores, memory_gib and speed",
            )
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
