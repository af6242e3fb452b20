//! The formats that are read, by name: those with a reader of their own, and those that are a mapping.

use pleach_scheduler::heuristics::nearest_of;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::mappings::{LISTS, mapping_of};

/// A format of job list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// This project's own file (docs/workload-file.md).
    Canonical,
    /// A list with a mapping of this crate, by its name.
    Mapped(&'static str),
    /// Gavel's tab-separated lists.
    Gavel,
    /// Eva's lists, in JSON.
    Eva,
    /// Shockwave's tab-separated lists.
    Shockwave,
    /// The Standard Workload Format of batch logs.
    Swf,
    /// What `sacct -P` prints of a site's own Slurm.
    Sacct,
    /// What `sacct --json` prints.
    SacctJson,
    /// What `kubectl get pods,jobs -A -o json` prints.
    Kubernetes,
    /// Any table with a header, by a mapping.
    Table,
}

/// Formats that are no mapping.
const OWN: [(Format, &str); 9] = [
    (Format::Canonical, "canonical"),
    (Format::Gavel, "gavel"),
    (Format::Eva, "eva"),
    (Format::Shockwave, "shockwave"),
    (Format::Swf, "swf"),
    (Format::Sacct, "sacct"),
    (Format::SacctJson, "sacct-json"),
    (Format::Kubernetes, "kubernetes"),
    (Format::Table, "table"),
];

impl Format {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Format> {
        let mapped = LISTS.iter().map(|(name, _)| Format::Mapped(name));
        let own = OWN.into_iter().map(|(format, _)| format);
        own.clone().take(1).chain(mapped).chain(own.skip(1))
    }

    /// The format of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Format> {
        Format::all().find(|format| format.word() == word)
    }

    /// The word used in configurations and reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Format::Mapped(name) => name,
            own => OWN
                .iter()
                .find(|(format, _)| *format == own)
                .map_or("", |(_, word)| word),
        }
    }

    /// The preset of links that stands for those of the site that lists of this format are of; none where those that its GPUs
    /// usually come with do.
    ///
    /// # Source
    /// As the generators' ([`crate::generate`]): Philly (ATC'19), Gavel's spread gangs; the others *assumed*.
    pub(super) fn site_fabric(self) -> Option<&'static str> {
        match self {
            Format::Gavel => Some("gavel"),
            Format::Mapped(name) => mapping_of(name)?.published.as_ref()?.site_fabric.as_deref(),
            _ => None,
        }
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Format, D::Error> {
        let word = String::deserialize(from)?;
        Format::of_word(&word).ok_or_else(|| {
            let words: Vec<&str> = Format::all().map(Format::word).collect();
            let nearest = nearest_of(&words, &word).unwrap_or_default();
            D::Error::custom(format!(
                "unknown format `{word}`, expected one of {}; did you mean {nearest}?",
                words.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::physics::links::Fabric;

    #[test]
    fn every_format_has_one_word_in_files_and_reports() {
        for format in Format::all() {
            let word = format!("\"{}\"", format.word());
            assert_eq!(serde_json::to_string(&format).unwrap(), word);
            assert_eq!(serde_json::from_str::<Format>(&word).unwrap(), format);
            let preset = format.site_fabric();
            assert!(
                preset.is_none_or(|name| Fabric::from_name(name).is_ok()),
                "{word}"
            );
        }
        let said = serde_json::from_str::<Format>("\"phily\"")
            .unwrap_err()
            .to_string();
        assert!(said.contains("did you mean philly?"), "{said}");
    }
}
