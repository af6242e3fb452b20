//! What policies believe about the lengths of jobs.

use std::fmt;
use std::str::FromStr;

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
}

impl FromStr for EstimateSource {
    type Err = String;

    fn from_str(text: &str) -> Result<EstimateSource, String> {
        let wrong = || {
            format!(
                "allowed is oracle, user, history, or lognormal:SIGMA[:BIAS] with 0 <= SIGMA <= {SIGMA_MAX} and \
                 1e-6 <= BIAS <= 1e6. Try lognormal:0.5"
            )
        };
        match text {
            "oracle" => Ok(EstimateSource::Oracle),
            "user" => Ok(EstimateSource::User),
            "history" => Ok(EstimateSource::History),
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
        }
    }
}

impl Serialize for EstimateSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EstimateSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EstimateSource, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_read_back_as_they_are_shown_and_others_are_refused() {
        for text in ["oracle", "user", "history", "lognormal:0.5", "lognormal:0.5:2"] {
            assert_eq!(text.parse::<EstimateSource>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "Oracle",
            "lognormal",
            "lognormal:-1",
            "lognormal:NaN",
            "lognormal:11",
            "lognormal:1:0",
            "lognormal:1:2:3",
        ] {
            assert!(
                text.parse::<EstimateSource>()
                    .unwrap_err()
                    .contains("lognormal:SIGMA"),
                "{text}"
            );
        }
    }
}
