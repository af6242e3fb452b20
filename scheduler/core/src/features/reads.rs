//! The columns that a file reads: each has to be the same here, by name and definition. Others do not matter.

use std::collections::BTreeSet;

use super::feature::Feature;
use super::schema::FeatureSchema;
use crate::heuristics::nearest_of;

impl FeatureSchema {
    /// The column with a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&'static Feature> {
        self.joined_index(name).map(|number| &self.features[number])
    }

    /// Whether there is a column with a name.
    ///
    /// # Errors
    /// What is allowed, in words, with the name that is nearest.
    pub fn check_name(&self, name: &str) -> Result<(), String> {
        if self.named(name).is_some() {
            return Ok(());
        }
        let nearest = self.nearest(name).unwrap_or_default();
        Err(format!(
            "a column of {}, of which {nearest} has the nearest name",
            self.name
        ))
    }

    fn nearest(&self, name: &str) -> Option<&'static str> {
        let names: Vec<&'static str> = self.features.iter().map(|feature| feature.name).collect();
        nearest_of(&names, name)
    }

    /// What is another one here, or is not there, of the columns with these names: a line each. `lines` are the definitions of a
    /// file.
    pub fn differences<'a>(&self, lines: &[String], names: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut differences = Vec::new();
        for name in names.collect::<BTreeSet<&str>>() {
            let file = lines.iter().find(|line| name_of(line) == name);
            let program = self.named(name).map(Feature::line);
            if file == program.as_ref() {
                // Neither knows it: whatever asks for it is refused.
                continue;
            }
            if let Some(line) = file {
                differences.push(format!("  only in the file:    {}", clip(line)));
            }
            match program {
                Some(line) => differences.push(format!("  only in the program: {line}")),
                None => {
                    let nearest = self.nearest(name).into_iter();
                    differences
                        .extend(nearest.map(|name| format!("  the nearest name in the program is {name}")));
                }
            }
        }
        differences
    }
}

/// The beginning of a line of a file.
pub(crate) fn clip(line: &str) -> String {
    line.chars().take(120).collect()
}

/// Name of the column that a line defines.
fn name_of(line: &str) -> &str {
    line.split(' ').nth(1).unwrap_or_default()
}
