//! The condition of a split as files have it: the scaled threshold that runs, and beside it the raw one with its unit for readers.

use crate::features::FeatureSchema;
use crate::tree::error::NodeError;

/// Relative difference between a raw threshold in a file and the one that runs; the writer rounds to six digits.
const RAW_TOLERANCE: f64 = 1e-4;

/// A condition in a file.
pub(crate) struct WrittenSplit {
    /// Name of the feature.
    pub(crate) feature: String,
    /// Scaled, as in the observation.
    pub(crate) threshold: f32,
    /// In the feature's unit.
    pub(crate) raw: Option<f64>,
    /// The feature's unit.
    pub(crate) unit: Option<String>,
}

/// A number rounded to six significant digits, for readers.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

impl WrittenSplit {
    /// The form of a condition of a valid tree.
    pub(crate) fn of(schema: &FeatureSchema, feature: u16, threshold: f32) -> WrittenSplit {
        let found = &schema.features[usize::from(feature)];
        WrittenSplit {
            feature: found.name.into(),
            threshold,
            raw: Some(rounded(found.scale.invert(threshold))),
            unit: Some(found.unit.into()),
        }
    }

    /// Index of the feature in the joined row, and the threshold that runs. `are_as_written` says that no threshold of the file was
    /// changed: then one that contradicts its raw value gives way to it.
    ///
    /// # Errors
    /// An unknown feature, a number that is not finite, a raw threshold out of range or at odds with the scaled one.
    pub(crate) fn read(self, schema: &FeatureSchema, are_as_written: bool) -> Result<(u16, f32), NodeError> {
        let WrittenSplit {
            feature: name,
            threshold,
            raw,
            unit,
        } = self;
        let Some(index) = schema.joined_index(&name) else {
            let name = name.chars().take(60).collect();
            return Err(NodeError::UnknownFeature { name });
        };
        if !threshold.is_finite() {
            return Err(NodeError::NotFinite { what: "threshold" });
        }
        let found = &schema.features[index];
        let meant = found.scale.invert(threshold);
        let differs = raw.is_some_and(|raw| (raw - meant).abs() > RAW_TOLERANCE * meant.abs() + 1e-6);
        let is_edited = differs && are_as_written;
        let threshold = match raw {
            Some(raw) if is_edited && (f64::from(found.min)..f64::from(found.max)).contains(&raw) => {
                found.encode(raw as f32)
            }
            Some(raw) if is_edited => {
                return Err(NodeError::RawRange {
                    raw,
                    min: found.min,
                    max: found.max,
                    unit: found.unit,
                });
            }
            _ => threshold,
        };
        if (differs && !is_edited) || unit.as_ref().is_some_and(|unit| unit != found.unit) {
            let unit: String = unit.unwrap_or_default().chars().take(20).collect();
            return Err(NodeError::Raw {
                shown: format!("{} {unit}", raw.unwrap_or(meant)),
                threshold,
                meant: format!("{} {}", rounded(meant), found.unit),
            });
        }
        Ok((index as u16, threshold))
    }
}
