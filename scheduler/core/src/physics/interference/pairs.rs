//! Measured pairs: how fast one job runs beside another on one GPU type.

use serde::{Deserialize, Serialize};

use super::guard::{normal, pair_number};
use crate::problem::Problem;

/// One measured pair, as written in a file. Names match a class exactly, or as its family: the entry `ResNet-18` is
/// about the class `ResNet-18 (batch size 64) x1` unless an entry with that full name exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairEntry {
    /// Name of the GPU type.
    pub gpu_type: String,
    /// The job whose speed is given.
    pub victim: String,
    /// The job beside it.
    pub neighbour: String,
    /// Speed of the victim relative to being alone, (0, 1]; 0 = the two do not fit in memory together.
    pub speed: f64,
}

/// Measured pairs by index: `[num_gpu_types, num_classes, num_classes]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairTable {
    num_classes: usize,
    /// Speed of (GPU type, victim, neighbour); -1 = not measured, 0 = out of memory.
    speed: Vec<f64>,
    /// A standard normal number for each (victim, neighbour), drawn from their names. `[num_classes, num_classes]`; empty where
    /// sharing is not guarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    normals: Vec<f64>,
}

/// Stands in the table for a pair that was not measured.
const NOT_MEASURED: f64 = -1.0;

/// The family of a class name: what stands before the first ` (` or ` x`.
#[must_use]
pub fn family(name: &str) -> &str {
    let end = [" (", " x"].iter().filter_map(|mark| name.find(mark)).min();
    &name[..end.unwrap_or(name.len())]
}

impl PairTable {
    /// Resolves entries against the names of a cluster. Entries about GPU types or classes that the cluster does not
    /// have are left out; an exact name outranks a family.
    ///
    /// # Errors
    /// A speed out of range.
    pub fn new(entries: &[PairEntry], gpu_types: &[&str], classes: &[&str]) -> Result<PairTable, Problem> {
        if entries.is_empty() {
            return Ok(PairTable::default());
        }
        let num_classes = classes.len();
        let mut speed = vec![NOT_MEASURED; gpu_types.len() * num_classes * num_classes];
        let mut exactness = vec![0_u8; speed.len()];
        for (index, entry) in entries.iter().enumerate() {
            Problem::refuse_if(
                !(0.0..=1.0).contains(&entry.speed),
                format_args!("pairs[{index}].speed"),
                entry.speed,
                "0 to 1",
                "divide the speed in company by the speed alone; 0 = out of memory",
            )?;
            // How exactly a name is meant, and the classes that it means.
            let meant = |wanted: &str| -> Vec<(usize, u8)> {
                let names = classes.iter().enumerate();
                let exactness = |name: &str| match wanted == name {
                    true => 2,
                    false => u8::from(wanted == family(name)),
                };
                let meant = names.map(|(number, name)| (number, exactness(name)));
                meant.filter(|(_, exactness)| *exactness > 0).collect()
            };
            let (victims, neighbours) = (meant(&entry.victim), meant(&entry.neighbour));
            let types = gpu_types.iter().enumerate();
            for (gpu, _) in types.filter(|(_, name)| **name == entry.gpu_type) {
                for (row, of_victim) in &victims {
                    for (column, of_neighbour) in &neighbours {
                        let cell = (gpu * num_classes + row) * num_classes + column;
                        if of_victim + of_neighbour > exactness[cell] {
                            exactness[cell] = of_victim + of_neighbour;
                            speed[cell] = entry.speed;
                        }
                    }
                }
            }
        }
        Ok(PairTable {
            num_classes,
            speed,
            normals: Vec::new(),
        })
    }

    /// The same table that knows how far pairs of these classes lie from the rule.
    #[must_use]
    pub(crate) fn scattered(mut self, classes: &[&str]) -> PairTable {
        let pairs = classes
            .iter()
            .flat_map(|one| classes.iter().map(move |other| (one, other)));
        self.normals = pairs
            .map(|(one, other)| normal(pair_number(one, other)))
            .collect();
        self.num_classes = classes.len();
        self
    }

    /// How far a pair lies from the rule, in standard deviations; none where the table does not know.
    pub(super) fn deviation(&self, victim: u16, neighbour: u16) -> Option<f64> {
        let cell = usize::from(victim) * self.num_classes + usize::from(neighbour);
        self.normals.get(cell).copied()
    }

    /// Measured speed of `victim` beside `neighbour`; `None` = not measured, 0 = out of memory.
    #[must_use]
    pub fn get(&self, gpu_type: usize, victim: u16, neighbour: u16) -> Option<f64> {
        let (row, column) = (usize::from(victim), usize::from(neighbour));
        if row >= self.num_classes || column >= self.num_classes {
            return None;
        }
        let cell = (gpu_type * self.num_classes + row) * self.num_classes + column;
        self.speed.get(cell).copied().filter(|speed| *speed >= 0.0)
    }
}

/// Gavel's pairs on one V100: mean over batch sizes of the row's speed beside the column, pairs out of memory left out.
///
/// # Source
/// Computed from the throughput table of Gavel's released simulator (MIT, (c) 2020 Stanford FutureData).
#[must_use]
pub fn gavel_v100_pairs() -> Vec<PairEntry> {
    const NAMES: [&str; 7] = [
        "ResNet-18",
        "ResNet-50",
        "Transformer",
        "A3C",
        "LM",
        "Recommendation",
        "CycleGAN",
    ];
    const SPEED: [[f64; 7]; 7] = [
        [0.91, 0.63, 0.81, 0.99, 0.98, 0.96, 0.81],
        [0.76, 0.38, 0.48, 0.50, 0.49, 0.51, 0.46],
        [0.58, 0.26, 0.75, 0.78, 0.75, 0.73, 0.68],
        [0.69, 0.20, 0.77, 0.51, 0.48, 0.60, 0.64],
        [0.67, 0.42, 0.72, 0.64, 0.64, 0.80, 0.59],
        [0.73, 0.21, 0.66, 0.77, 0.68, 0.33, 0.42],
        [0.55, 0.24, 0.76, 0.71, 0.65, 0.60, 0.62],
    ];
    let mut entries = Vec::with_capacity(49);
    for (victim, row) in NAMES.iter().zip(SPEED) {
        for (neighbour, speed) in NAMES.iter().zip(row) {
            entries.push(PairEntry {
                gpu_type: "V100".into(),
                victim: (*victim).into(),
                neighbour: (*neighbour).into(),
                speed,
            });
        }
    }
    entries
}
