//! Numbers, texts and truth values of a result by dotted key.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A parameter or scalar as text without quotes.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Numbers, texts and truth values of a result by dotted key.
pub(super) fn scalars_of(value: &Value) -> BTreeMap<String, Value> {
    let mut scalars = BTreeMap::new();
    flatten("", value, &mut scalars);
    scalars
}

fn flatten(prefix: &str, value: &Value, scalars: &mut BTreeMap<String, Value>) {
    let below = |table: &Map<String, Value>, scalars: &mut BTreeMap<String, Value>| {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}.{name}")
            };
            flatten(&key, value, scalars);
        }
    };
    match value {
        Value::Object(table) => below(table, scalars),
        Value::Array(_) | Value::Null => {}
        scalar => {
            let key = if prefix.is_empty() { "value" } else { prefix };
            scalars.insert(key.to_string(), scalar.clone());
        }
    }
}
