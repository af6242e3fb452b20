//! `--set KEY=VALUE`: single values of a configuration, changed from the command line.

use pleach_scheduler::settings::nearest_key;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::removed::instead_of_key;
use crate::run_folder::atomic_file::finite;

/// `settings` with the value at each dotted key replaced: `train.evolution.sigma=0.3`. A value is TOML; what is no TOML is
/// taken as text, so that `prior=sjf` needs no quotes.
///
/// # Errors
/// [`Error::Problem`] where a text has no `=`, a key does not exist, or the value is of another kind than the settings take.
pub fn apply<T: Serialize + DeserializeOwned>(settings: &T, overrides: &[String]) -> Result<T, Error> {
    let read = |overrides: &[String]| Ok::<_, Error>(replaced(settings, overrides)?.try_into::<T>());
    let mut error = match read(overrides)? {
        Ok(settings) => return Ok(settings),
        Err(error) => error,
    };
    // The first one that is refused beside those before it.
    let mut found = overrides.join(" ");
    for (place, text) in overrides.iter().enumerate() {
        if let Err(first) = read(&overrides[..=place])? {
            found.clone_from(text);
            error = first;
            break;
        }
    }
    let message = error.message();
    let nearest = || nearest_key(message).map(|key| format!("Did you mean {key}? "));
    let next = instead_of_key(message).map(|instead| format!("{instead} "));
    let next = next.or_else(nearest).unwrap_or_default();
    let hint = format!("Here: {message}. {next}docs/learning.md lists the keys.");
    let allowed = "keys of the settings with values of their kinds";
    Err(Error::config("set", found, allowed, hint))
}

/// The settings as a table with the values replaced.
fn replaced<T: Serialize>(settings: &T, overrides: &[String]) -> Result<toml::Value, Error> {
    let failed = |error: String| Error::Failed(format!("the settings cannot be written: {error}"));
    let mut tree = toml::Value::try_from(settings).map_err(|error| failed(error.to_string()))?;
    for text in overrides {
        let Some((key, value)) = text.split_once('=') else {
            let hint = "For example: --set train.evolution.sigma=0.3";
            return Err(Error::config("set", text, "KEY=VALUE", hint));
        };
        let parsed = parse(value);
        let alone = toml::Table::from_iter([(key.to_string(), parsed.clone())]);
        Error::refuse_if(
            finite(&alone).is_err(),
            key,
            value,
            "finite numbers",
            "Leave it out for the default.",
        )?;
        *place_of(&mut tree, key)? = parsed;
    }
    Ok(tree)
}

/// Where a key is, or would be: which keys there are is for the settings to say when they are read back.
fn place_of<'a>(tree: &'a mut toml::Value, key: &str) -> Result<&'a mut toml::Value, Error> {
    let mut place = tree;
    for part in key.split('.') {
        let hint = "The keys are those of settings.toml in a run's folder.";
        let table = place
            .as_table_mut()
            .ok_or_else(|| Error::config("set", key, "a key of a table", hint))?;
        place = table
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
    }
    Ok(place)
}

fn parse(value: &str) -> toml::Value {
    let line = format!("value = {value}");
    let table: Option<toml::Table> = toml::from_str(&line).ok();
    let parsed = table.and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| toml::Value::String(value.to_string()))
}

#[cfg(test)]
mod tests {
    use pleach_agents::Learner;

    use super::*;
    use crate::train::settings::TrainSettings;

    fn set(overrides: &[&str]) -> Result<TrainSettings, Error> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_string()).collect();
        apply(&TrainSettings::default(), &overrides)
    }

    #[test]
    fn values_are_replaced_at_any_depth_and_the_rest_stays() {
        let changed = set(&[
            "train.learner=evolution",
            "train.evolution.sigma=0.25",
            "prior=sjf",
            "objective.p99_jct_s=0.2",
            "env.max_steps=7",
        ])
        .unwrap();
        let mut expected = TrainSettings::default();
        expected.train.learner = Learner::EVOLUTION;
        expected.train.evolution.sigma = 0.25;
        expected.prior = "sjf".into();
        expected.objective.insert("p99_jct_s".into(), 0.2);
        // A key that is absent by default.
        expected.env.max_steps = Some(7);
        assert_eq!(changed, expected);
    }

    #[test]
    fn of_several_the_one_that_is_wrong_is_named() {
        let message = set(&["prior=sjf", "train.sigma=1", "env.max_steps=7"])
            .unwrap_err()
            .to_string();
        assert!(message.contains("set = train.sigma=1: allowed"), "{message}");
        for (overrides, own, other) in [
            (["train.sigma=1", "env.foo=2"], "sigma", "foo"),
            (["env.foo=2", "train.sigma=1"], "foo", "sigma"),
        ] {
            let message = set(&overrides).unwrap_err().to_string();
            let reason = message.split("Here: ").nth(1).unwrap();
            assert!(reason.contains(own) && !reason.contains(other), "{message}");
        }
    }

    #[test]
    fn unknown_keys_and_values_of_another_kind_are_refused_with_what_is_known() {
        for (text, word) in [
            ("train.sigma=1", "evolution"),
            ("train.evolution.sigma=big", "expected f64"),
            ("train.ppo.gradients=burn", "Take the key out"),
            ("prior", "KEY=VALUE"),
            ("num_envs.more=1", "num_envs.more"),
            ("objective={ avg_jct_s = nan }", "finite"),
        ] {
            let message = set(&[text]).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
