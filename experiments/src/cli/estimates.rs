//! What policies believe about the lengths of jobs.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Spread of the multiplicative noise, at most.
const SIGMA_MAX: f64 = 10.0;

/// Source of the estimates that policies see.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EstimateSource {
    /// The true length. No deployed scheduler has it; an upper bound.
    Oracle,
    /// What the user asked for, where the trace has it.
    User,
    /// The true length times `exp(sigma z)` with z standard normal.
    Lognormal {
        /// Spread of the logarithm, 0 to 10; 1 means typically wrong by a factor of 2.7.
        sigma: f64,
    },
}

impl FromStr for EstimateSource {
    type Err = String;

    fn from_str(text: &str) -> Result<EstimateSource, String> {
        let wrong = || {
            format!(
                "allowed is oracle, user, or lognormal:SIGMA with 0 <= SIGMA <= {SIGMA_MAX}. Try lognormal:0.5"
            )
        };
        match text {
            "oracle" => Ok(EstimateSource::Oracle),
            "user" => Ok(EstimateSource::User),
            _ => {
                let sigma = text.strip_prefix("lognormal:").ok_or_else(wrong)?;
                let sigma: f64 = sigma.parse().map_err(|_| wrong())?;
                if (0.0..=SIGMA_MAX).contains(&sigma) {
                    Ok(EstimateSource::Lognormal { sigma })
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
            EstimateSource::Lognormal { sigma } => write!(out, "lognormal:{sigma}"),
        }
    }
}

impl Serialize for EstimateSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_read_back_as_they_are_shown_and_others_are_refused() {
        for text in ["oracle", "user", "lognormal:0.5"] {
            assert_eq!(text.parse::<EstimateSource>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "Oracle",
            "lognormal",
            "lognormal:-1",
            "lognormal:NaN",
            "lognormal:11",
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
