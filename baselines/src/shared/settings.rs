//! Settings of planners: from JSON to their structs, and what is wrong in words.

use pleach_scheduler::ConfigError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads settings; `null` means the defaults. Unknown keys are refused where the struct does so.
///
/// # Errors
/// What does not fit, with the defaults as an example of what does.
pub(crate) fn read<T: DeserializeOwned + Serialize + Default>(
    name: &str,
    settings: &Value,
) -> Result<T, ConfigError> {
    if settings.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(settings.clone()).map_err(|error| {
        ConfigError::new(
            name,
            settings,
            format!("settings such as {}", defaults::<T>()),
            format!("{error}."),
        )
    })
}

/// The defaults as JSON.
pub(crate) fn defaults<T: Serialize + Default>() -> Value {
    serde_json::to_value(T::default()).unwrap_or(Value::Null)
}

/// Refuses a value out of its range.
///
/// # Errors
/// `ok` is false.
pub(crate) fn check(
    name: &str,
    key: &str,
    value: impl ToString,
    ok: bool,
    allowed: &str,
) -> Result<(), ConfigError> {
    if ok {
        return Ok(());
    }
    Err(ConfigError::new(
        format!("{name}.{key}"),
        value,
        allowed,
        "leave it out for the published default",
    ))
}
