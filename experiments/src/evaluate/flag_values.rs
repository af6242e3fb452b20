//! Values of flags and how they are read: numbers with their ranges, names, small files. What is wrong is refused with the allowed set
//! and a hint.

use std::ops::RangeInclusive;
use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pleach_agents::Learner;
use pleach_env::Split;
use pleach_env::availability::AvailabilityConfig;
use pleach_env::batch_system::BatchSystem;
use pleach_env::failures::OutcomeModel;
use pleach_env::site_failures::SiteFailures;
use pleach_env::workload::import::Format;
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{ActionKind, ActionSet};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};
use serde_json::Value;

use crate::run_folder::atomic_file::read_toml;

/// A kind of action that has to be granted, by its name.
pub(crate) fn action(name: &str) -> Result<ActionKind, String> {
    let named = ActionSet::of_names([name])?.within("--actions", ActionSet::GRANTED)?;
    named.iter().next().ok_or_else(|| "a name is missing".into())
}

/// Largest plan of nodes that come and go, bytes: a million changes.
const CAPACITY_BYTES_MAX: u64 = 1 << 26;
/// Largest file of a batch system, bytes.
const BATCH_SYSTEM_BYTES_MAX: u64 = 1 << 16;

/// In a file, what a flag takes as a text, or the same in full.
fn text_or_whole<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    input: D,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    match Value::deserialize(input)? {
        Value::Null => Ok(None),
        Value::String(text) => read(&text).map(Some).map_err(D::Error::custom),
        whole => serde_json::from_value(whole).map(Some).map_err(D::Error::custom),
    }
}

macro_rules! in_files {
    ($($name:ident: $kind:ty = $read:path),+) => {
        /// How files have what flags take as a text.
        pub(crate) mod in_files {
            use super::*;
            $(pub(crate) fn $name<'de, D: Deserializer<'de>>(input: D) -> Result<Option<$kind>, D::Error> {
                text_or_whole(input, $read)
            })+
        }
    };
}

in_files!(
    days: f64 = crate::evaluate::day::days,
    overheads: Overheads = super::overheads,
    outcomes: OutcomeModel = super::outcomes,
    site_failures: SiteFailures = super::site_failures,
    capacity: AvailabilityConfig = super::capacity,
    batch_system: BatchSystem = super::batch_system
);

/// A number above 0.
///
/// # Errors
/// A sentence with the allowed set.
pub fn positive(text: &str) -> Result<f64, String> {
    within(text, f64::MIN_POSITIVE, 1e12, "a number above 0")
}

/// A number of at least 0.
///
/// # Errors
/// A sentence with the allowed set.
pub fn not_negative(text: &str) -> Result<f64, String> {
    within(text, 0.0, 1e12, "a number of at least 0")
}

/// Offered load: GPU-time that arrives per GPU-time there is.
///
/// # Errors
/// A sentence with the allowed set.
pub fn load(text: &str) -> Result<f64, String> {
    within(
        text,
        0.01,
        10.0,
        "0.01 to 10; 1 offers exactly what the cluster can do, try 0.8",
    )
}

/// How far a search moves at first, over what is usual.
///
/// # Errors
/// A sentence with the allowed set.
pub fn step(text: &str) -> Result<f64, String> {
    within(text, 0.01, 10.0, "0.01 to 10, try 0.3")
}

/// Takes whole numbers of a range.
pub fn whole<T>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64> + 'static,
{
    move |text| {
        let number = text
            .trim()
            .parse::<u64>()
            .ok()
            .filter(|number| range.contains(number));
        let value = number.and_then(|number| T::try_from(number).ok());
        value.ok_or_else(|| match (range.start(), range.end()) {
            (least, &u64::MAX) => format!("allowed is a whole number of at least {least}"),
            (least, most) => format!("allowed is a whole number from {least} to {most}"),
        })
    }
}

/// A share above 0.
///
/// # Errors
/// A sentence with the allowed set.
pub fn share(text: &str) -> Result<f64, String> {
    within(
        text,
        f64::MIN_POSITIVE,
        1.0,
        "a share above 0, at most 1, try 0.5",
    )
}

fn within(text: &str, low: f64, high: f64, allowed: &str) -> Result<f64, String> {
    let value: f64 = text
        .trim()
        .parse()
        .map_err(|_| format!("not a number; allowed is {allowed}"))?;
    if value.is_finite() && (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(format!("allowed is {allowed}"))
    }
}

/// Takes the names of learners, those of a program's own among them, each with what it does.
pub(crate) fn learner() -> impl TypedValueParser<Value = Learner> {
    let all = pleach_agents::learner::all();
    let names = all.map(|learner| PossibleValue::new(learner.name()).help(learner.doc()));
    PossibleValuesParser::from(names.collect::<Vec<_>>()).try_map(learner_named)
}

/// A learner by a name that no parser has let through otherwise.
///
/// # Errors
/// Another name.
#[expect(clippy::needless_pass_by_value, reason = "clap gives the text away")]
pub fn learner_named(name: String) -> Result<Learner, String> {
    Learner::find(&name).ok_or_else(|| format!("there is no learner {name}"))
}

/// Takes the parts of a list.
pub(crate) fn split() -> impl TypedValueParser<Value = Split> {
    PossibleValuesParser::new(Split::ALL.map(Split::word)).map(|word| {
        Split::ALL
            .into_iter()
            .find(|split| split.word() == word)
            .unwrap_or(Split::Test)
    })
}

/// Takes the words of the formats.
pub(crate) fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::all().map(Format::word))
        .try_map(|word| Format::of_word(&word).ok_or("not a format"))
}

/// How two jobs can run on the same GPUs, by name.
pub(crate) fn sharing() -> impl TypedValueParser<Value = Sharing> {
    PossibleValuesParser::new(["off", "time-slice", "mps"]).map(|word| match word.as_str() {
        "time-slice" => Sharing::TimeSlice,
        "mps" => Sharing::Mps,
        _ => Sharing::Off,
    })
}

/// Reads the plan of nodes that come and go.
pub(crate) fn capacity(path: &str) -> Result<AvailabilityConfig, String> {
    let config: AvailabilityConfig =
        read_toml(Path::new(path), CAPACITY_BYTES_MAX).map_err(|error| error.to_string())?;
    config.validate().map_err(|error| error.to_string())?;
    Ok(config)
}

/// A batch system by its name, or by a file of its times.
pub(crate) fn batch_system(text: &str) -> Result<BatchSystem, String> {
    let found: BatchSystem = if text.ends_with(".toml") {
        read_toml(Path::new(text), BATCH_SYSTEM_BYTES_MAX).map_err(|error| error.to_string())?
    } else {
        BatchSystem::from_name(text).map_err(|error| error.to_string())?
    };
    found.validate().map_err(|error| error.to_string())?;
    Ok(found)
}

pub(crate) fn outcomes(text: &str) -> Result<OutcomeModel, String> {
    OutcomeModel::from_name(text).map_err(|error| error.to_string())
}

pub(crate) fn site_failures(text: &str) -> Result<SiteFailures, String> {
    SiteFailures::from_name(text).map_err(|error| error.to_string())
}

pub(crate) fn overheads(text: &str) -> Result<Overheads, String> {
    Overheads::from_name(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_with_the_allowed_set() {
        assert_eq!(load("0.8"), Ok(0.8));
        assert!(load("0").unwrap_err().contains("0.01 to 10"));
        assert!(positive("NaN").is_err() && positive("0").is_err() && positive("inf").is_err());
        assert_eq!(not_negative("0"), Ok(0.0));
        let seeds = whole::<u32>(1..=1000);
        assert_eq!(seeds("10"), Ok(10));
        for text in ["ten", "-1", "1.5", "0", "1001", ""] {
            assert_eq!(
                seeds(text),
                Err("allowed is a whole number from 1 to 1000".into()),
                "{text}"
            );
        }
        assert!(not_negative("-1").is_err() && not_negative("x").unwrap_err().contains("not a number"));
    }
}
