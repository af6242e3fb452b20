//! The columns of a policy file: those that it reads have to be the same here, by name and definition. Others do not matter.
//!
//! Up to version 2 a file lists all columns of the first view with their hash, which no other view ever has; later ones list what
//! is read. So a column that is added is noticed by no file.

use serde::Deserialize;

use crate::features::{FeatureSchema, clip, hash_of};
use crate::tree::Tree;
use crate::tree::error::TreeError;

/// Most lines of differences in a refusal.
const MAX_DIFFERENCES: usize = 24;

impl Tree {
    /// The name of the rows that the text of a file says its tree reads; empty where it names none.
    #[must_use]
    pub fn rows_of(text: &str) -> String {
        #[derive(Deserialize)]
        struct Header {
            rows: String,
        }
        serde_json::from_str(text).map_or_else(|_| String::new(), |header: Header| header.rows)
    }

    /// Whether its rows are candidates of a pass.
    pub(crate) fn is_of_decisions(&self) -> bool {
        self.schema() == FeatureSchema::current()
    }

    /// Whether files from before views could say all that it reads.
    pub(crate) fn is_of_first_view(&self) -> bool {
        self.is_of_decisions() && self.width() == self.schema().views[0].len
    }

    /// The definitions of the columns that it reads, by their numbers.
    pub(super) fn lines_read(&self) -> Vec<String> {
        let reads = self.reads().into_iter();
        reads.map(|number| self.feature(number).line()).collect()
    }

    /// Hex SHA-256 over the columns: the first view's hash, or that of the columns read where one of them is a newer one.
    #[must_use]
    pub fn features_hash(&self) -> String {
        if self.is_of_first_view() {
            self.schema().hash().into()
        } else {
            hash_of(&self.lines_read().join("\n"))
        }
    }
}

/// A key that has to be there.
pub(super) fn needed<'a, T>(key: &str, value: Option<&'a T>) -> Result<&'a T, TreeError> {
    value.ok_or_else(|| TreeError::Json(format!("missing field `{key}`")))
}

/// Refuses keys of other versions.
pub(super) fn absent(keys: &[(&'static str, bool)], when: &str) -> Result<(), TreeError> {
    match keys.iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(TreeError::Value {
            key,
            value: "given".into(),
            allowed: format!("none; there is such a key {when}"),
        }),
        None => Ok(()),
    }
}

/// Refuses the rows of another kind of decision.
pub(super) fn check_rows(schema: &FeatureSchema, rows: Option<&str>) -> Result<(), TreeError> {
    let own = FeatureSchema::current().name;
    let found = rows.unwrap_or(own);
    if found == schema.name {
        return Ok(());
    }
    Err(TreeError::Value {
        key: "rows",
        value: clip(found),
        allowed: format!("{}, of which this reader is", schema.name),
    })
}

/// A list of all columns with its hash, of which some are read.
pub(crate) fn check_listed<'a>(
    schema: &FeatureSchema,
    hash: &str,
    lines: &[String],
    names: impl Iterator<Item = &'a str>,
) -> Result<(), TreeError> {
    let own: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let differences = schema.differences(lines, names);
    if hash == hash_of(&own) && differences.is_empty() {
        return Ok(());
    }
    let differences = match differences.is_empty() {
        true => vec!["  a hash that is not that of the columns listed".into()],
        false => differences,
    };
    Err(refusal(clip(hash), schema.hash().into(), differences))
}

/// A list of the columns that are read.
pub(super) fn check_read<'a>(
    schema: &FeatureSchema,
    lines: &[String],
    names: impl Iterator<Item = &'a str>,
) -> Result<(), TreeError> {
    let differences = schema.differences(lines, names);
    if differences.is_empty() {
        return Ok(());
    }
    let file = format!("reads {} columns of {}", lines.len(), schema.name);
    let program = format!("has {} of them", schema.features.len());
    Err(refusal(file, program, differences))
}

fn refusal(file: String, program: String, mut differences: Vec<String>) -> TreeError {
    let rest = differences.len().saturating_sub(MAX_DIFFERENCES);
    differences.truncate(MAX_DIFFERENCES);
    if rest > 0 {
        differences.push(format!("  and {rest} more"));
    }
    TreeError::Schema {
        file,
        program,
        differences: differences.join("\n") + "\n",
    }
}
