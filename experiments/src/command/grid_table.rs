//! A table of settings, as grids and other files have it, read as the struct whose fields are flags of a command.
//!
//! Keys are the fields' names. Flags of a group (`[workload]`, `[scheduling]`) may stand beside the others; where the flag takes
//! several values one may stand alone, or several with commas in a text. Unknown keys are answered with the nearest known one.

use clap::{Arg, Args, Command};
use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::nearest_of;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::removed::{Place, instead};

/// The flags of a struct.
pub(crate) fn flags<A: Args>() -> Vec<Arg> {
    A::augment_args(Command::new(""))
        .get_arguments()
        .cloned()
        .collect()
}

/// A field that is a struct of flags itself.
#[derive(Clone, Debug)]
pub struct Group {
    name: &'static str,
    flags: Vec<Arg>,
}

impl Group {
    /// The group of this field.
    #[must_use]
    pub fn of<A: Args>(name: &'static str) -> Group {
        let flags = flags::<A>();
        Group { name, flags }
    }

    fn has(&self, key: &str) -> bool {
        self.flags.iter().any(|flag| flag.get_id() == key)
    }
}

/// Reads a struct of flags with these groups; `command` is whose they are, for hints.
///
/// # Errors
/// A key that there is not, a value of another kind.
pub fn read<A: Args + DeserializeOwned>(
    command: &str,
    table: Map<String, Value>,
    groups: &[Group],
) -> Result<A, Problem> {
    let flags = flags::<A>();
    let mut placed = Vec::new();
    for (key, value) in table {
        match (groups.iter().find(|group| group.name == key), value) {
            (Some(group), Value::Object(inner)) => {
                let inner = inner.into_iter();
                placed.extend(inner.map(|(key, value)| (Some(group), key, value)));
            }
            (_, value) => placed.push((groups.iter().find(|group| group.has(&key)), key, value)),
        }
    }
    let mut whole = Map::new();
    for (group, key, value) in placed {
        let of = group.map_or(&flags, |group| &group.flags);
        let Some(flag) = of.iter().find(|flag| flag.get_id() == key.as_str()) else {
            let names = flags.iter().map(|flag| flag.get_id().as_str());
            return Err(unknown(names.collect(), &key, &value));
        };
        let value = listed(flag, value);
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        let alone = match group {
            Some(group) => Map::from_iter([(group.name.to_owned(), alone.into())]),
            None => alone,
        };
        serde_json::from_value::<A>(Value::Object(alone)).map_err(|error| {
            let hint = format!("pleach {command} --help lists the flags.");
            Problem::new(
                &key,
                shown(&value),
                format!("a value of its kind ({error})"),
                hint,
            )
        })?;
        match group {
            Some(group) => {
                let table = whole.entry(group.name).or_insert_with(|| Map::new().into());
                table.as_object_mut().into_iter().for_each(|table| {
                    table.insert(key.clone(), value.clone());
                });
            }
            None => {
                whole.insert(key, value);
            }
        }
    }
    serde_json::from_value(Value::Object(whole))
        .map_err(|error| Problem::new(command, "its settings", "settings that go together", error))
}

/// A key that there is not, with what it is called now or the nearest that there is.
pub(crate) fn unknown(mut names: Vec<&str>, key: &str, value: &Value) -> Problem {
    names.sort_unstable();
    names.dedup();
    let nearest = nearest_of(&names, key).unwrap_or_default();
    let hint = instead(Place::Flag, key).map_or_else(|| format!("Did you mean {nearest}?"), str::to_owned);
    Problem::new(key, shown(value), names.join(", "), hint)
}

/// The value of a flag that takes several, as a list.
fn listed(flag: &Arg, value: Value) -> Value {
    match (flag.get_action(), value, flag.get_value_delimiter()) {
        (clap::ArgAction::Append, Value::String(text), Some(delimiter)) => {
            text.split(delimiter).map(Value::from).collect()
        }
        (clap::ArgAction::Append, list @ Value::Array(_), _) => list,
        (clap::ArgAction::Append, Value::Null, _) => Value::Array(Vec::new()),
        (clap::ArgAction::Append, one, _) => Value::Array(vec![one]),
        (_, value, _) => value,
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::evaluate::evaluation::EvaluationConfig;

    fn of(table: Value) -> Result<EvaluationConfig, Problem> {
        EvaluationConfig::of_table(table.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn flags_of_groups_stand_beside_the_others_or_in_their_tables() {
        let flat = json!({"policy": "sjf,fifo", "load": 0.8, "overheads": "zero", "actions": ["reserve"], "days": "36h"});
        let nested = json!({"policy": ["sjf", "fifo"], "workload": {"load": 0.8, "days": 1.5},
            "scheduling": {"overheads": "zero", "actions": "reserve"}});
        let config = of(flat).unwrap();
        assert_eq!(config, of(nested).unwrap());
        assert_eq!(
            (config.workload.load, config.workload.days),
            (Some(0.8), Some(1.5))
        );
        assert_eq!(config.workload.workload, ["Pleach/Philly-v0"]);
        assert_eq!(of(json!({})).unwrap(), EvaluationConfig::default());
    }

    #[test]
    fn what_is_no_setting_is_answered_with_the_nearest_and_another_kind_with_its_key() {
        for (table, words) in [
            (json!({"polcy": "sjf"}), "Did you mean policy?"),
            (json!({"workload": {"laod": 1}}), "Did you mean load?"),
            (json!({"preemption": 1}), "config: preemption = 1: "),
            (json!({"overheads": "zro"}), "pollux30"),
        ] {
            let said = of(table.clone()).unwrap_err().to_string();
            assert!(said.contains(words), "{table}: {said}");
        }
    }
}
