//! Settings of a world by key: from `--set`, from a configuration or from Python.

use pleach_scheduler::settings::{Settings as Fields, with_nearest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// Settings by key, as numbers, texts, lists or true.
pub type Settings = Map<String, Value>;

/// Reads `KEY=VALUE`, a value of TOML or else a bare text.
///
/// # Errors
/// A text without `=`.
pub fn of_pairs(pairs: &[String]) -> Result<Settings, Error> {
    let mut found = Settings::new();
    for pair in pairs {
        let (key, text) = pair
            .split_once('=')
            .ok_or_else(|| Error::config("set", pair, "KEY=VALUE", "Such as --set replicas=8."))?;
        let table: Result<toml::Table, _> = toml::from_str(&format!("value = {text}"));
        let value = table.ok().and_then(|mut table| table.remove("value"));
        let value = value.and_then(|value| serde_json::to_value(value).ok());
        found.insert(key.trim().replace('-', "_"), value.unwrap_or_else(|| text.into()));
    }
    Ok(found)
}

/// What a world does not look at is refused, as a flag or as a key.
#[must_use]
pub fn not_read(flag: &str, world: &str) -> Error {
    let hint = format!("Leave it out; pleach workload settings {world} lists what --set KEY=VALUE takes.");
    Error::config(flag, "given", format!("none of this world: {world}"), hint)
}

/// The settings with these values.
///
/// # Errors
/// A key that is not there, a value of another kind or out of its range.
pub fn read<T: Fields + Serialize + DeserializeOwned + Default>(settings: &Settings) -> Result<T, Error> {
    let refused = |error: serde_json::Error| {
        let hint = "Leave it out for its default.";
        let known: Vec<String> = T::fields("").into_iter().map(|field| field.key).collect();
        let said = with_nearest(&error.to_string());
        Error::config("set", said, format!("keys are {}", known.join(", ")), hint)
    };
    let mut whole = serde_json::to_value(T::default()).map_err(refused)?;
    for (key, value) in settings {
        let is_list = whole.get(key).is_some_and(Value::is_array);
        whole[key] = match value {
            Value::Array(_) => value.clone(),
            one if is_list => listed(one),
            one => one.clone(),
        };
    }
    let read: T = serde_json::from_value(whole).map_err(refused)?;
    read.check_at("", "Leave it out for its default.")?;
    Ok(read)
}

/// One value, or several with commas, as a list.
fn listed(value: &Value) -> Value {
    let Value::String(text) = value else {
        return Value::Array(vec![value.clone()]);
    };
    let one = |part: &str| match part.trim().parse::<f64>() {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(part.trim()),
    };
    Value::Array(text.split(',').map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worlds::requests::RequestsSettings;

    #[test]
    fn pairs_are_numbers_texts_and_lists_and_what_is_wrong_is_named() {
        let of = |pairs: &[&str]| -> Result<RequestsSettings, String> {
            let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_string()).collect();
            let settings = of_pairs(&pairs).map_err(|error| error.to_string())?;
            read(&settings).map_err(|error| error.to_string())
        };
        let found = of(&[
            "replicas=8",
            "model=mistral-7b",
            "loads=0.8,1",
            "pools=2:6",
            "refuse=true",
            "rate-per-s=90",
        ]);
        let found = found.unwrap();
        assert_eq!(
            (found.replicas, found.model.as_str(), found.refuse),
            (8, "mistral-7b", true)
        );
        assert_eq!(
            (found.loads, found.pools, found.rate_per_s),
            (vec![0.8, 1.0], vec!["2:6".to_string()], 90.0)
        );
        for (pair, words) in [
            ("replicas=0", "1 to 4096"),
            ("model=gpt", "llama-3-8b"),
            ("replica=8", "Did you mean replicas?"),
            ("burst=4", "0 to 3"),
            ("replicas", "KEY=VALUE"),
            ("lists=many", "invalid type"),
        ] {
            let said = of(&[pair]).unwrap_err();
            assert!(said.contains(words), "{pair}: {said}");
        }
    }
}
