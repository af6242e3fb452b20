//! The id under which the world outside knows a job: a Slurm job number, a task of a Slurm array, a Kubernetes UID.
//!
//! Rows of the job table are numbers of the cluster's own and are given to other jobs once theirs have left; what is written
//! down or sent away names a job by this id. It is a small value without memory of its own, so a record of a decision allocates
//! nothing for it. Spelled as `4711`, `4711_3`, `123e4567-e89b-42d3-a456-426614174000`, or `#17` for the jobs that the cluster
//! numbers itself; any other text is refused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::problem::Problem;

/// Upper half of a plain number.
const NUMBER: u64 = 0;
/// Upper half of a task of an array. A UUID never has it: the version in its 13th digit is at least 1.
const TASK: u64 = 1;
/// Upper half of a number that the cluster gave.
const OWN: u64 = 2;
/// Where the version of a UUID stands in its upper half.
const VERSION: u64 = 0xf000;

/// Name of a job outside the cluster's tables. Ordered, but in no order of the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalId {
    high: u64,
    low: u64,
}

impl ExternalId {
    /// A number, as Slurm gives to a job.
    #[must_use]
    pub const fn number(number: u64) -> ExternalId {
        ExternalId {
            high: NUMBER,
            low: number,
        }
    }

    /// A task of a Slurm array.
    #[must_use]
    pub const fn task(array: u32, task: u32) -> ExternalId {
        ExternalId {
            high: TASK,
            low: (array as u64) << 32 | task as u64,
        }
    }

    /// The job that came as number `number` to a cluster that numbers its jobs itself.
    pub(crate) const fn own(number: u64) -> ExternalId {
        ExternalId {
            high: OWN,
            low: number,
        }
    }

    /// The number and the task of a job of Slurm's: such jobs by arrival.
    #[must_use]
    pub const fn arrival(self) -> (u64, u64) {
        match self.high {
            NUMBER => (self.low, 0),
            TASK => (self.low >> 32, self.low & 0xffff_ffff),
            _ => (u64::MAX, 0),
        }
    }

    /// The number that the cluster gave it, if it did.
    #[must_use]
    pub(crate) const fn own_number(self) -> Option<u64> {
        match self.high {
            OWN => Some(self.low),
            _ => None,
        }
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.high {
            NUMBER => write!(f, "{}", self.low),
            TASK => write!(f, "{}_{}", self.low >> 32, self.low & 0xffff_ffff),
            OWN => write!(f, "#{}", self.low),
            high => write!(
                f,
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                high >> 32,
                high >> 16 & 0xffff,
                high & 0xffff,
                self.low >> 48,
                self.low & 0xffff_ffff_ffff
            ),
        }
    }
}

impl FromStr for ExternalId {
    type Err = Problem;

    fn from_str(text: &str) -> Result<ExternalId, Problem> {
        let parsed = if let Some(number) = text.strip_prefix('#') {
            digits(number).map(ExternalId::own)
        } else if let Some((array, task)) = text.split_once('_') {
            let part = |text| digits(text).and_then(|number| u32::try_from(number).ok());
            part(array)
                .zip(part(task))
                .map(|(array, task)| ExternalId::task(array, task))
        } else if text.contains('-') {
            uuid(text)
        } else {
            digits(text).map(ExternalId::number)
        };
        parsed.ok_or_else(|| {
            Problem::new(
                "job",
                format!("{:?}", text.chars().take(64).collect::<String>()),
                "a number, ARRAY_TASK, a UUID of version 1 to 15 in lower case, or #NUMBER",
                "for example 4711, 4711_3 or 123e4567-e89b-42d3-a456-426614174000",
            )
        })
    }
}

/// A number without sign or leading zeros.
fn digits(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn uuid(text: &str) -> Option<ExternalId> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let shaped = |(at, byte): (usize, u8)| match byte {
        b'-' => DASHES.contains(&at),
        b'0'..=b'9' | b'a'..=b'f' => !DASHES.contains(&at),
        _ => false,
    };
    if text.len() != 36 || !text.bytes().enumerate().all(shaped) {
        return None;
    }
    let hex = text.replace('-', "");
    let high = u64::from_str_radix(hex.get(..16)?, 16).ok()?;
    let low = u64::from_str_radix(hex.get(16..)?, 16).ok()?;
    (high & VERSION != 0).then_some(ExternalId { high, low })
}

impl Serialize for ExternalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ExternalId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ExternalId, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_comes_back_as_it_was_written() {
        let texts = [
            "0",
            "4711",
            "18446744073709551615",
            "4711_3",
            "4294967295_4294967295",
            "#17",
            "123e4567-e89b-42d3-a456-426614174000",
            "00000000-0000-1000-0000-000000000000",
        ];
        let ids = texts.map(|text| text.parse::<ExternalId>().unwrap());
        for (id, text) in ids.iter().zip(texts) {
            assert_eq!(id.to_string(), text);
            let json = serde_json::to_string(id).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<ExternalId>(&json).unwrap(), *id);
        }
        let different: std::collections::BTreeSet<_> = ids.into_iter().collect();
        assert_eq!(different.len(), texts.len());
        assert_eq!(ids[1], ExternalId::number(4711));
        assert_eq!(ids[3], ExternalId::task(4711, 3));
    }

    #[test]
    fn a_text_with_two_meanings_or_none_is_refused_by_value() {
        for text in [
            "",
            "-1",
            "+1",
            "007",
            "1_",
            "1_4294967296",
            "18446744073709551616",
            "#",
            "job",
            "00000000-0000-0000-0000-000000000001",
            "123E4567-e89b-42d3-a456-426614174000",
            "123e4567e89b42d3a456426614174000-",
        ] {
            let error = text.parse::<ExternalId>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
