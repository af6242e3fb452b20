//! What a file holds for the deployment of its tree: golden vectors.
//!
//! Each key is read under its own name, so that a number that no reader could take (-1, 1e300, NaN) is refused with the key.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::tree::Tree;
use crate::tree::error::TreeError;
use crate::tree::golden::{GOLDEN_RULE, Golden};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileGolden {
    rule: u64,
    rows: u64,
    sha256: String,
}

impl From<&Golden> for FileGolden {
    fn from(golden: &Golden) -> FileGolden {
        FileGolden {
            rule: GOLDEN_RULE,
            rows: golden.num_rows,
            sha256: golden.sha256.clone(),
        }
    }
}

impl FileGolden {
    pub(super) fn read(self, tree: &Tree) -> Result<Golden, TreeError> {
        let golden = Golden {
            num_rows: self.rows,
            sha256: self.sha256,
        };
        tree.check_golden(self.rule, &golden)?;
        Ok(golden)
    }
}

/// Reads a value; an error begins with the name of its key.
fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(key: &str, from: D) -> Result<Option<T>, D::Error> {
    let value = T::deserialize(from).map_err(|error| D::Error::custom(format!("{key}: {error}")))?;
    Ok(Some(value))
}

pub(super) fn golden<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FileGolden>, D::Error> {
    named("golden", from)
}

pub(super) fn fallback<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    named("fallback", from)
}

pub(super) fn gpu_types_max<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    named("gpu_types_max", from)
}

/// Refuses keys that came with version 2: each with whether it is there.
pub(super) fn refuse_in_version_1(keys: &[(&'static str, bool)]) -> Result<(), TreeError> {
    match keys.iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(TreeError::Value {
            key,
            value: "given".into(),
            allowed: "none in a file of version 1: say \"version\": 2".into(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
