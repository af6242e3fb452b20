//! Settings of planners: from JSON to their structs, and what is wrong in words.

use pleach_scheduler::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads settings; `null` means the defaults. Unknown keys are refused where the struct does so.
///
/// # Errors
/// What does not fit, with the defaults as an example of what does.
pub fn read<T: DeserializeOwned + Serialize + Default>(name: &str, settings: &Value) -> Result<T, Problem> {
    if settings.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(settings.clone()).map_err(|error| {
        Problem::new(
            name,
            settings,
            format!("settings such as {}", defaults::<T>()),
            format!("{error}."),
        )
    })
}

/// As [`read`], where what is left out is as in `base` and not as in the defaults of the struct.
///
/// # Errors
/// What does not fit, with `base` as an example of what does.
pub fn read_over<T: DeserializeOwned + Serialize>(
    name: &str,
    base: &T,
    settings: &Value,
) -> Result<T, Problem> {
    let base = serde_json::to_value(base).unwrap_or(Value::Null);
    let mut merged = base.clone();
    merge(&mut merged, settings);
    serde_json::from_value(merged).map_err(|error| {
        Problem::new(
            name,
            settings,
            format!("settings such as {base}"),
            format!("{error}."),
        )
    })
}

/// Writes the keys of one object over those of another, object by object; null changes nothing at the top.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base
                    .get_mut(key)
                    .filter(|known| known.is_object() && value.is_object())
                {
                    Some(known) => merge(known, value),
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// The defaults as JSON.
pub fn defaults<T: Serialize + Default>() -> Value {
    serde_json::to_value(T::default()).unwrap_or(Value::Null)
}

/// What stands behind a value out of its range.
pub(crate) const DEFAULT_HINT: &str = "leave it out for the published default";

/// Refuses a value out of its range.
///
/// # Errors
/// `ok` is false.
pub fn check(name: &str, key: &str, value: impl ToString, ok: bool, allowed: &str) -> Result<(), Problem> {
    Problem::refuse_if(!ok, format_args!("{name}.{key}"), value, allowed, DEFAULT_HINT)
}
