//! What policies believe about the lengths of jobs: a word, or a table where the word does not say enough. Flags, configurations
//! and grids take both.

use std::fmt;
use std::str::FromStr;

use pleach_env::workload::estimates::EstimateModel;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Spread of the multiplicative noise, at most.
const SIGMA_MAX: f64 = 10.0;

/// Source of the estimates that policies see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum EstimateSource {
    /// The true length. No deployed scheduler has it; an upper bound.
    #[default]
    Oracle,
    /// What the user asked for, where the trace has it.
    User,
    /// The true length times `bias exp(sigma z)` with z standard normal.
    Lognormal {
        /// Spread of the logarithm, 0 to 10; 1 means typically wrong by a factor of 2.7.
        sigma: f64,
        /// Median of the error; 1 is right in the median.
        bias: f64,
    },
    /// Learned from the jobs that have ended so far.
    History,
    /// A model with all its numbers, given as a table.
    Model(EstimateModel),
}

/// Time limit of a job whose list has none, s. *Assumed*: a day, a common default of batch systems.
const DEFAULT_LIMIT_S: f64 = 86_400.0;

impl EstimateSource {
    /// The model that it means.
    #[must_use]
    pub fn model(self) -> EstimateModel {
        match self {
            EstimateSource::Oracle => EstimateModel::Oracle,
            EstimateSource::User => EstimateModel::UserLimit {
                default_s: DEFAULT_LIMIT_S,
            },
            EstimateSource::Lognormal { sigma, bias } => EstimateModel::LogNormal { sigma, bias },
            EstimateSource::History => EstimateModel::HISTORY,
            EstimateSource::Model(model) => model,
        }
    }
}

impl FromStr for EstimateSource {
    type Err = String;

    fn from_str(text: &str) -> Result<EstimateSource, String> {
        let wrong = || {
            format!(
                "allowed is oracle, user, history, lognormal:SIGMA[:BIAS] with 0 <= SIGMA <= {SIGMA_MAX} and \
                 1e-6 <= BIAS <= 1e6, or a table such as {{ model = \"user-limit\", default_s = 3600 }}. Try lognormal:0.5"
            )
        };
        match text {
            "oracle" => Ok(EstimateSource::Oracle),
            "user" => Ok(EstimateSource::User),
            "history" => Ok(EstimateSource::History),
            table if table.trim_start().starts_with('{') => {
                let value: toml::Value = table.trim().parse().map_err(|_| wrong())?;
                let model: EstimateModel = value.try_into().map_err(|_| wrong())?;
                model.validate().map_err(|error| error.to_string())?;
                Ok(EstimateSource::Model(model))
            }
            _ => {
                let numbers = text.strip_prefix("lognormal:").ok_or_else(wrong)?;
                let (sigma, bias) = numbers.split_once(':').unwrap_or((numbers, "1"));
                let sigma: f64 = sigma.parse().map_err(|_| wrong())?;
                let bias: f64 = bias.parse().map_err(|_| wrong())?;
                if (0.0..=SIGMA_MAX).contains(&sigma) && (1e-6..=1e6).contains(&bias) {
                    Ok(EstimateSource::Lognormal { sigma, bias })
                } else {
                    Err(wrong())
                }
            }
        }
    }
}

impl fmt::Display for EstimateSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EstimateSource::Oracle => out.write_str("oracle"),
            EstimateSource::User => out.write_str("user"),
            EstimateSource::History => out.write_str("history"),
            EstimateSource::Lognormal { sigma, bias } if *bias == 1.0 => write!(out, "lognormal:{sigma}"),
            EstimateSource::Lognormal { sigma, bias } => write!(out, "lognormal:{sigma}:{bias}"),
            EstimateSource::Model(model) => match toml::Value::try_from(model) {
                Ok(table) => write!(out, "{table}"),
                Err(_) => Err(fmt::Error),
            },
        }
    }
}

impl Serialize for EstimateSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EstimateSource::Model(model) => model.serialize(serializer),
            word => serializer.collect_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for EstimateSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EstimateSource, D::Error> {
        deserializer.deserialize_any(WordOrTable)
    }
}

struct WordOrTable;

impl<'de> Visitor<'de> for WordOrTable {
    type Value = EstimateSource;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a word such as oracle or history, or a table such as { model = \"user-limit\", default_s = 3600 }")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<EstimateSource, E> {
        word.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<EstimateSource, A::Error> {
        let model = EstimateModel::deserialize(MapAccessDeserializer::new(table))?;
        model.validate().map_err(A::Error::custom)?;
        Ok(EstimateSource::Model(model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_read_back_as_they_are_shown_and_others_are_refused() {
        let table = "{ model = \"user-limit\", default_s = 3600.0 }";
        for text in [
            "oracle",
            "user",
            "history",
            "lognormal:0.5",
            "lognormal:0.5:2",
            table,
        ] {
            let source = text.parse::<EstimateSource>().unwrap();
            assert_eq!(source.to_string().parse(), Ok(source));
            // In a file a word is a text and a table a table, and both are written as they are read.
            #[derive(Debug, PartialEq, Serialize, Deserialize)]
            struct File {
                estimates: EstimateSource,
            }
            let quoted = if text == table {
                text.to_string()
            } else {
                format!("'{text}'")
            };
            let file: File = toml::from_str(&format!("estimates = {quoted}")).unwrap();
            assert_eq!(file.estimates, source);
            assert_eq!(
                toml::from_str::<File>(&toml::to_string(&file).unwrap()).unwrap(),
                file
            );
            let json = serde_json::to_value(&file).unwrap();
            assert_eq!(serde_json::from_value::<File>(json).unwrap(), file);
        }
        let model = EstimateModel::UserLimit { default_s: 3600.0 };
        assert_eq!(table.parse::<EstimateSource>().unwrap().model(), model);
        for text in [
            "",
            "Oracle",
            "lognormal",
            "lognormal:-1",
            "lognormal:NaN",
            "lognormal:11",
            "lognormal:1:0",
            "lognormal:1:2:3",
            "{ model = \"user-limit\" }",
            "{ model = \"guess\", default_s = 1.0 }",
            "{",
        ] {
            assert!(
                text.parse::<EstimateSource>()
                    .unwrap_err()
                    .contains("lognormal:SIGMA"),
                "{text}"
            );
        }
        let out_of_range = "{ model = \"log-normal\", sigma = 11.0, bias = 1.0 }";
        let said = out_of_range.parse::<EstimateSource>().unwrap_err();
        assert!(said.contains("estimate.sigma = 11"), "{said}");
    }
}
