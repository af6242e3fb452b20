//! How a record was made, as it says itself: the comparison that played it, or the real cluster that it was taken from.

use pleach_env::SimConfig;
use pleach_env::schedule::{Record, SETTINGS_BYTES_MAX};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::evaluate::evaluation::EvaluationConfig;
use crate::evaluate::instances::{Instance, seeds};

/// What a record is held to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordSettings {
    /// The version of Pleach that wrote it.
    pub pleach: String,
    /// Whether it was taken from a real cluster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub observed: bool,
    /// Root of all randomness.
    pub seed: u64,
    /// Which policies met which workloads in what cluster.
    pub evaluation: EvaluationConfig,
}

impl RecordSettings {
    /// Of a comparison that is played now.
    #[must_use]
    pub fn of(config: &EvaluationConfig) -> RecordSettings {
        RecordSettings {
            pleach: env!("CARGO_PKG_VERSION").to_string(),
            observed: false,
            seed: config.seed,
            evaluation: config.clone(),
        }
    }

    /// As a record has them; empty where they are too long for a line of it.
    #[must_use]
    pub fn text(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        match text.len() {
            0..=SETTINGS_BYTES_MAX => text,
            _ => String::new(),
        }
    }

    /// What a record is held to: `given` where flags say something, else what the record says of itself, else `given`, the defaults.
    /// With it, where the record is believed, a line that says what it says.
    ///
    /// # Errors
    /// Settings in the record that are none.
    pub fn of_record(
        record: &Record,
        given: RecordSettings,
    ) -> Result<(RecordSettings, Option<String>), Error> {
        let nothing = RecordSettings::of(&EvaluationConfig::default());
        if record.settings.is_empty() || given != nothing {
            return Ok((given, None));
        }
        // By their names: a list would be read as their values in turn.
        let named = serde_json::from_str(&record.settings).map(Value::Object);
        let mut own: RecordSettings = named.and_then(serde_json::from_value).map_err(|error| {
            let hint = "Give --workload, --seed, --seeds and the flags of scheduling as they were, or write the record anew.";
            let value: String = record.settings.chars().take(60).collect();
            let allowed = format!("settings as `evaluate --schedule` writes them ({error})");
            Error::config("settings", value, allowed, hint)
        })?;
        own.evaluation.seed = own.seed;
        let told = own.told();
        Ok((own, Some(told)))
    }

    /// The simulation, and every list with its seed; `note` receives what importers mended.
    ///
    /// # Errors
    /// Settings and lists that cannot be used.
    pub fn instances(&self, note: &mut dyn FnMut(String)) -> Result<(SimConfig, Vec<Instance>), Error> {
        let EvaluationConfig {
            workload,
            scheduling,
            seeds: num_seeds,
            ..
        } = &self.evaluation;
        workload.check()?;
        scheduling.check()?;
        let sim = scheduling.sim(&workload.workload);
        let drawn = seeds(self.seed, "test", *num_seeds as usize);
        let instances = workload.instances(&sim, &drawn, note)?;
        Ok((sim, instances))
    }

    /// What differs from the defaults, in the words of files.
    fn told(&self) -> String {
        let mut parts = vec![format!("seed = {}", self.seed)];
        if self.observed {
            parts.push("observed".to_string());
        }
        let value = |config: &EvaluationConfig| serde_json::to_value(config).unwrap_or_default();
        differences(
            &value(&self.evaluation),
            &value(&EvaluationConfig::default()),
            "",
            &mut parts,
        );
        format!("as the record says: {}", parts.join(", "))
    }
}

fn differences(own: &Value, usual: &Value, name: &str, parts: &mut Vec<String>) {
    match own {
        Value::Object(keys) if usual.is_object() => {
            for (key, own) in keys {
                differences(own, &usual[key], key, parts);
            }
        }
        _ if own == usual => {}
        _ => parts.push(format!("{name} = {own}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(settings: &str) -> Record {
        Record {
            settings: settings.into(),
            ..Record::default()
        }
    }

    fn nothing() -> RecordSettings {
        RecordSettings::of(&EvaluationConfig::default())
    }

    #[test]
    fn a_record_is_held_to_flags_then_to_what_it_says_then_to_the_defaults() {
        let config = EvaluationConfig {
            seeds: 3,
            seed: 7,
            ..EvaluationConfig::default()
        };
        let own = RecordSettings::of(&config);
        let (held, told) = RecordSettings::of_record(&record(&own.text()), nothing()).unwrap();
        assert_eq!(
            (held, told.as_deref()),
            (own.clone(), Some("as the record says: seed = 7, seeds = 3"))
        );
        let given = RecordSettings { seed: 9, ..nothing() };
        let held = RecordSettings::of_record(&record(&own.text()), given.clone()).unwrap();
        assert_eq!(held, (given, None));
        let held = RecordSettings::of_record(&record(""), nothing()).unwrap();
        assert_eq!(held, (nothing(), None));
    }

    #[test]
    fn settings_of_a_daemon_are_read_and_those_of_strangers_are_refused() {
        // As `capture --schedule` writes them.
        let text = r#"{"observed":true,"evaluation":{"scheduling":{"preemption":true},"seeds":1,"workload":{"workload":["week.csv"]}}}"#;
        let (held, _) = RecordSettings::of_record(&record(text), nothing()).unwrap();
        assert!(held.observed && held.evaluation.scheduling.preemption);
        assert_eq!(held.evaluation.workload.workload, ["week.csv"]);
        for text in ["{", "{\"evaluation\": {\"polcy\": []}}", "[]"] {
            let said = RecordSettings::of_record(&record(text), nothing()).unwrap_err();
            assert!(
                said.exit_code() == 2 && said.to_string().contains("Give --workload"),
                "{said}"
            );
        }
    }

    #[test]
    fn settings_too_long_for_a_line_are_left_out() {
        let config = EvaluationConfig {
            policy: vec!["fifo".into(); SETTINGS_BYTES_MAX / 4],
            ..EvaluationConfig::default()
        };
        assert_eq!(RecordSettings::of(&config).text(), "");
    }
}
