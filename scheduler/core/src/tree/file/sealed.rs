//! What a file holds for the deployment of its tree: golden vectors, visits of leaves.
//!
//! Each key is read under its own name, so that a number that no reader could take (-1, 1e300, NaN) is refused with the key.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::tree::Tree;
use crate::tree::error::TreeError;
use crate::tree::golden::Golden;
use crate::tree::visits::Visits;
use crate::wide_gangs::WideGangs;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileGolden {
    rule: u64,
    rows: u64,
    sha256: String,
}

impl FileGolden {
    pub(super) fn of(tree: &Tree, golden: &Golden) -> FileGolden {
        FileGolden {
            rule: tree.golden_rule(),
            rows: golden.num_rows,
            sha256: golden.sha256.clone(),
        }
    }

    pub(super) fn read(self, tree: &Tree) -> Result<Golden, TreeError> {
        let golden = Golden {
            num_rows: self.rows,
            sha256: self.sha256,
        };
        tree.check_golden(self.rule, &golden)?;
        Ok(golden)
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileVisits {
    tree_hash: String,
    decisions: u64,
    leaves: Vec<FileVisit>,
    recorded_on: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileVisit {
    leaf: u32,
    offered: u64,
}

impl FileVisits {
    pub(super) fn of(tree: &Tree, visits: &Visits) -> FileVisits {
        let leaves = tree.leaf_ids().into_iter().zip(&visits.offered);
        FileVisits {
            tree_hash: tree.hash(),
            decisions: visits.num_decisions,
            leaves: leaves
                .map(|(leaf, offered)| FileVisit {
                    leaf,
                    offered: *offered,
                })
                .collect(),
            recorded_on: visits.recorded_on.clone(),
        }
    }

    pub(super) fn read(self, tree: &Tree) -> Result<Visits, TreeError> {
        let fail = |key, value: String, allowed: String| Err(TreeError::Value { key, value, allowed });
        let hash = tree.hash();
        if self.tree_hash != hash {
            let stated = self.tree_hash.chars().take(64).collect();
            let allowed = format!(
                "{hash}, the hash of this tree: record them anew with pleach distill seal FILE --visits"
            );
            return fail("visits.tree_hash", stated, allowed);
        }
        let ids = tree.leaf_ids();
        let mut offered: Vec<Option<u64>> = vec![None; ids.len()];
        for visit in &self.leaves {
            let place = ids.iter().position(|id| *id == visit.leaf);
            match place.and_then(|place| offered.get_mut(place)) {
                Some(count @ None) => *count = Some(visit.offered),
                found => {
                    let allowed = match found {
                        Some(_) => "each leaf once",
                        None => "ids of leaves of this tree",
                    };
                    return fail("visits.leaves", format!("leaf {}", visit.leaf), allowed.into());
                }
            }
        }
        let visits = Visits {
            num_decisions: self.decisions,
            // A leaf that is not listed shortens the list, which is refused below.
            offered: offered.into_iter().flatten().collect(),
            recorded_on: self.recorded_on,
        };
        tree.check_visits(&visits)?;
        Ok(visits)
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

pub(super) fn visits<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FileVisits>, D::Error> {
    named("visits", from)
}

pub(super) fn fallback<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    named("fallback", from)
}

pub(super) fn gpu_types_max<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    named("gpu_types_max", from)
}

pub(super) fn wide_gangs<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WideGangs>, D::Error> {
    named("wide_gangs", from)
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
