//! The feature schema: every number that a network or a tree may read, with unit, range and scale.
//!
//! The schema is hashed; a policy file carries the hash of the schema that it was made for and is refused under another.
//! Scales are fixed here and not learned from data, so the network in training and the tree in production see the same
//! numbers. `docs/features.md` is generated from this table.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

pub(crate) mod column;
mod control;
mod feature;

pub use control::{Control, control_of};
pub use feature::{Feature, Scale, log10_1p};

/// All features, their order and their hash.
#[derive(Debug)]
pub struct FeatureSchema {
    /// Features of one candidate, in column order. `[F]`
    pub candidate: &'static [Feature],
    /// Features of the cluster and its queue. `[G]`
    pub global: &'static [Feature],
    hash: String,
}

impl FeatureSchema {
    /// The schema of this version.
    pub fn current() -> &'static FeatureSchema {
        static CURRENT: OnceLock<FeatureSchema> = OnceLock::new();
        CURRENT.get_or_init(|| {
            let (candidate, global) = (column::CANDIDATE, column::GLOBAL);
            FeatureSchema {
                candidate,
                global,
                hash: hash_of(&canonical(candidate, global)),
            }
        })
    }

    /// Hex SHA-256 over the canonical text of the schema.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// F.
    #[must_use]
    pub fn num_candidate(&self) -> usize {
        self.candidate.len()
    }

    /// G.
    #[must_use]
    pub fn num_global(&self) -> usize {
        self.global.len()
    }

    /// Index of a feature in the joined row: candidate features first, then global ones.
    #[must_use]
    pub fn joined_index(&self, name: &str) -> Option<usize> {
        self.candidate
            .iter()
            .chain(self.global)
            .position(|feature| feature.name == name)
    }

    /// The feature at a joined index; none beyond the last.
    #[must_use]
    pub fn joined(&self, index: usize) -> Option<&'static Feature> {
        match index.checked_sub(self.candidate.len()) {
            None => self.candidate.get(index),
            Some(index) => self.global.get(index),
        }
    }

    /// Name of the feature at a joined index; `?` beyond the last.
    #[must_use]
    pub fn joined_name(&self, index: usize) -> &'static str {
        self.joined(index).map_or("?", |feature| feature.name)
    }

    /// The schema as a Markdown page; `docs/features.md` is this text.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "# Features\n\nWhat a network or a tree may read, in column order. This page is the output of `pleach features`; \
             a test holds the two together.\nA raw value is clamped to its range and then scaled: *linear d* is raw / d, \
             *log d* is log10(1 + raw) / d.\n\n",
        );
        text.push_str(&format!("Schema hash: `{}`\n", self.hash));
        text.push_str(&table("Of a candidate", self.candidate));
        text.push_str(&table("Of the cluster and its queue", self.global));
        text
    }

    /// The canonical text that is hashed: one line per feature, everything that changes a policy's input.
    #[must_use]
    pub fn canonical(&self) -> String {
        canonical(self.candidate, self.global)
    }
}

fn table(title: &str, features: &[Feature]) -> String {
    let mut text =
        format!("\n## {title}\n\n| # | name | unit | range | scale | meaning |\n|---|---|---|---|---|---|\n");
    for (index, feature) in features.iter().enumerate() {
        let Feature {
            name,
            unit,
            min,
            max,
            scale,
            doc,
        } = feature;
        let scale = match scale {
            Scale::Linear(divisor) => format!("linear {divisor}"),
            Scale::Log(divisor) => format!("log {divisor}"),
        };
        text.push_str(&format!(
            "| {index} | `{name}` | {unit} | {min} to {max} | {scale} | {doc} |\n"
        ));
    }
    text
}

fn canonical(candidate: &[Feature], global: &[Feature]) -> String {
    let mut text = String::from("pleach features 1\n");
    for (group, features) in [("candidate", candidate), ("global", global)] {
        for feature in features {
            let Feature {
                name,
                unit,
                min,
                max,
                scale,
                ..
            } = feature;
            text.push_str(&format!("{group} {name} [{unit}] {min} {max} {scale:?}\n"));
        }
    }
    text
}

fn hash_of(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_scales_invert() {
        let schema = FeatureSchema::current();
        for (index, feature) in schema.candidate.iter().chain(schema.global).enumerate() {
            assert_eq!(
                schema.joined_index(feature.name),
                Some(index),
                "{} appears twice",
                feature.name
            );
            assert_eq!(schema.joined_name(index), feature.name);
            assert!(feature.min < feature.max && !feature.doc.is_empty());
            for raw in [feature.min, feature.max, (feature.min + feature.max) / 2.0] {
                let back = feature.scale.invert(feature.encode(raw));
                assert!(
                    (back - f64::from(raw)).abs() <= 1e-4 * f64::from(raw.abs()).max(1.0),
                    "{}",
                    feature.name
                );
            }
        }
    }

    #[test]
    fn encode_tames_infinities_and_nan() {
        let feature = &FeatureSchema::current().candidate[column::Candidate::RemainingS as usize];
        for raw in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(feature.encode(raw).is_finite());
        }
    }

    #[test]
    fn the_hash_covers_what_a_policy_reads() {
        let schema = FeatureSchema::current();
        assert_eq!(schema.hash().len(), 64);
        let mut other = schema.candidate.to_vec();
        other[4].max += 1.0;
        assert_ne!(schema.hash(), hash_of(&canonical(&other, schema.global)));
    }
}
