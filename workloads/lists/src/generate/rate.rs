//! An arrival rate in files: a file cannot say "none" where a rate is the default, so 0 says "from the load".

use serde::{Deserialize, Deserializer, Serializer};

#[allow(clippy::ref_option)] // The signature that serde asks for.
pub(super) fn serialize<S: Serializer>(rate: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rate.unwrap_or(0.0))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let rate = f64::deserialize(deserializer)?;
    Ok((rate != 0.0).then_some(rate))
}
