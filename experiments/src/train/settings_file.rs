//! Settings of a training run in TOML: what a file says, over what `pleach train` has built in.
//!
//! A key that the file leaves out is as in `pleach train` with that key alone, also inside a table that the file has. A table that takes one of several forms (`WHOLE`) is taken as the file has it, for half of
//! one form and half of another mean nothing.

use std::path::Path;

use pleach_agents::Learner;
use pleach_env::{EnvConfig, Expression, RewardConfig};
use pleach_scheduler::settings::with_nearest;
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use crate::error::Error;
use crate::removed::instead_of_key;
use crate::run_folder::atomic_file::{finite, read_text};
use crate::train::settings::TrainSettings;
use crate::train::unnamed;

/// Largest file, bytes.
const BYTES_MAX: u64 = 1 << 20;
/// The environment of `pleach train` without one.
pub(crate) const DEFAULT_ENV: &str = "Pleach/Philly-v0";
/// Tables that a file replaces and does not complete.
const WHOLE: [&str; 3] = ["env.workload", "env.sim.estimates", "objective"];

/// Whether a file replaces the table at this key, and does not complete it.
#[must_use]
pub fn is_whole(key: &str) -> bool {
    WHOLE.contains(&key)
}

/// What is built in for PPO, and what files that name a learner are laid over.
///
/// # Errors
/// None in practice: the environment is registered.
pub fn built_in() -> Result<TrainSettings, Error> {
    let delay = Expression::parse("-delay")?;
    Ok(TrainSettings {
        env: EnvConfig {
            reward: RewardConfig::Expression(delay),
            ..EnvConfig::registered(DEFAULT_ENV)?
        },
        ..TrainSettings::default()
    })
}

/// The settings of evolution strategies on lists as long as the environment's: those of `configs/suite.toml`.
///
/// # Errors
/// Not in practice: the file is part of the program.
pub fn evolution() -> Result<TrainSettings, Error> {
    parse(include_str!("../../configs/suite.toml")).map_err(Error::Failed)
}

/// The settings of evolution strategies that go on from a network, on longer lists: those of `configs/suite-longer.toml`.
///
/// # Errors
/// Not in practice: the file is part of the program.
pub fn evolution_longer() -> Result<TrainSettings, Error> {
    parse(include_str!("../../configs/suite-longer.toml")).map_err(Error::Failed)
}

/// The settings of exact credit by forks: those of `configs/counterfactual.toml`.
///
/// # Errors
/// Not in practice: the file is part of the program.
pub fn counterfactual() -> Result<TrainSettings, Error> {
    parse(include_str!("../../configs/counterfactual.toml")).map_err(Error::Failed)
}

/// What is built in for a learner, in the environment of plain `pleach train`; `goes_on` from a network.
///
/// # Errors
/// Not in practice: files and environment are part of the program.
pub fn built_in_for(learner: Learner, goes_on: bool) -> Result<TrainSettings, Error> {
    let plain = built_in()?;
    let own = match (learner, goes_on) {
        (Learner::EVOLUTION, false) => evolution()?,
        (Learner::EVOLUTION, true) => evolution_longer()?,
        (Learner::COUNTERFACTUAL, _) => counterfactual()?,
        _ => {
            let mut own = plain.clone();
            own.train.learner = learner;
            if learner == Learner::IMITATION {
                own.train.num_updates = 0;
            }
            own
        }
    };
    Ok(TrainSettings {
        env: plain.env,
        ..own
    })
}

/// Reads settings.
///
/// # Errors
/// [`Error::Problem`] where there is no file, [`Error::Problem`] for unknown keys, values of another kind, and numbers that are not finite.
pub fn read(path: &Path) -> Result<TrainSettings, Error> {
    parse(&read_text(path, BYTES_MAX)?).map_err(|message| Error::data(path, message))
}

/// As [`read`], from the text; the error in words.
///
/// # Errors
/// Unknown keys, values of another kind, numbers that are not finite.
pub fn parse(text: &str) -> Result<TrainSettings, String> {
    // Alone first: the message of an unknown key then has its line.
    toml::from_str::<TrainSettings>(text)
        .map_err(|error| format!("{error}{}", instead_of_key(error.message()).unwrap_or_default()))?;
    let file: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    finite(&file)?;
    let keys = serde_json::to_value(&file).map_err(|error| error.to_string())?;
    let keys = keys.as_object().map(dotted).unwrap_or_default();
    let is_named = keys.iter().any(|key| key == "train.learner");
    let learner = match is_named {
        true => Learner::PPO,
        false => unnamed::learner(keys.iter().map(String::as_str)),
    };
    let built_in = built_in_for(learner, false).map_err(|error| error.to_string())?;
    let mut base = Table::try_from(&built_in).map_err(|error| error.to_string())?;
    lay_over(&mut base, file, "");
    base.try_into()
        .map_err(|error: toml::de::Error| error.message().to_string())
}

/// Settings with these values over their own, table by table.
///
/// # Errors
/// A key that there is not, a value of another kind.
pub(crate) fn completed(settings: &TrainSettings, keys: &Map<String, Json>) -> Result<TrainSettings, Error> {
    let refused = |error: String| {
        let hint = format!("Here: {}. docs/learning.md lists the keys.", with_nearest(&error));
        let allowed = "keys of the settings with values of their kinds";
        Error::config("set", Json::Object(keys.clone()), allowed, hint)
    };
    if keys.is_empty() {
        return Ok(settings.clone());
    }
    let mut base = Table::try_from(settings).map_err(|error| refused(error.to_string()))?;
    let file = Table::try_from(keys).map_err(|error| refused(error.to_string()))?;
    lay_over(&mut base, file, "");
    base.try_into()
        .map_err(|error: toml::de::Error| refused(error.message().to_owned()))
}

/// The keys of settings, `train.ppo.clip`, of those that are no tables.
pub(crate) fn dotted(keys: &Map<String, Json>) -> Vec<String> {
    let of = |(name, value): (&String, &Json)| match value.as_object() {
        Some(inner) => dotted(inner).iter().map(|key| format!("{name}.{key}")).collect(),
        None => vec![name.clone()],
    };
    keys.iter().flat_map(of).collect()
}

/// Values of `file` over those of `base`, table by table. `prefix` is the dotted key of both with a dot at its end.
fn lay_over(base: &mut Table, file: Table, prefix: &str) {
    for (name, value) in file {
        let key = format!("{prefix}{name}");
        match (base.get_mut(&name), value) {
            (Some(Value::Table(base)), Value::Table(file)) if !is_whole(&key) => {
                lay_over(base, file, &format!("{key}."));
            }
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::overrides;
    use pleach_scheduler::ActionKind;

    /// What the shipped files meant when a key that was left out had the default of its own structure.
    fn over_library_defaults(text: &str) -> TrainSettings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_file_with_one_key_differs_from_no_file_in_that_key() {
        let mut expected = counterfactual().unwrap();
        assert_eq!(parse("").unwrap(), expected);
        for removed in [
            "ppo.gradients = 'burn'",
            "imitation.gradients = 'burn'",
            "overlap = true",
            "average_reward = false",
        ] {
            let said = parse(&format!("[train]\n{removed}")).unwrap_err();
            assert!(said.contains("Take the key out"), "{said}");
        }
        expected.train.num_updates = 7;
        assert_eq!(parse("[train]\nnum_updates = 7").unwrap(), expected);
        expected = built_in().unwrap();
        (expected.train.num_updates, expected.train.ppo.clip) = (7, 0.1);
        let text = "[train]\nnum_updates = 7\n[train.ppo]\nclip = 0.1";
        assert_eq!(parse(text).unwrap(), expected);
        expected.env.sim.capabilities.grant(ActionKind::Preempt, true);
        let text = format!("{text}\n[env.sim.capabilities]\npreemption = true");
        assert_eq!(parse(&text).unwrap(), expected);
    }

    #[test]
    fn keys_choose_the_learner_where_none_is_named() {
        for (text, learner) in [
            ("num_validation = 3", Learner::COUNTERFACTUAL),
            ("[train.evolution]\nsigma = 0.5", Learner::EVOLUTION),
            ("[constraint.metrics]\np99_jct_s = 1.1", Learner::EVOLUTION),
            ("[train]\nnum_steps = 8", Learner::PPO),
            ("[env]\nreward = '-jct'", Learner::PPO),
            ("[train]\nlearner = 'imitation'", Learner::IMITATION),
        ] {
            assert_eq!(parse(text).unwrap().train.learner, learner, "{text}");
        }
    }

    #[test]
    fn tables_of_one_of_several_forms_are_not_mixed() {
        let file =
            parse("objective = { makespan_s = 1.0 }\n[env.workload.generate]\npreset = 'pollux'\nload = 1.5")
                .unwrap();
        assert_eq!(file.objective.len(), 1);
        let alone = over_library_defaults("[env.workload.generate]\npreset = 'pollux'\nload = 1.5");
        assert_eq!(file.env.workload, alone.env.workload);
        let text = "[env.sim.estimates]\nmodel = 'user-limit'\ndefault_s = 60.0";
        assert_eq!(parse(text).unwrap().env.sim, over_library_defaults(text).env.sim);
    }

    #[test]
    fn settings_that_a_run_wrote_down_are_read_back_as_they_were() {
        for id in EnvConfig::ids() {
            let mut settings = TrainSettings {
                env: EnvConfig::registered(id).unwrap(),
                ..TrainSettings::default()
            };
            settings.env.max_steps = Some(9);
            let text = toml::to_string_pretty(&settings).unwrap();
            assert_eq!(parse(&text).unwrap(), settings, "{id}");
        }
    }

    #[test]
    fn shipped_files_can_be_used_and_those_of_other_learners_state_all_that_they_need() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let mut num_files = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let settings = parse(&text).unwrap();
            settings.validate().unwrap();
            // Whatever plain `pleach train` may become, a file that clones nothing means the same.
            if settings.warm_start == "none" {
                let mut alone = over_library_defaults(&text);
                alone.train.imitation = settings.train.imitation;
                assert_eq!(settings, alone, "{}", path.display());
            }
            num_files += 1;
        }
        assert_eq!(num_files, 6);
    }

    #[test]
    fn unknown_keys_and_numbers_that_are_none_are_refused_by_name() {
        for (text, words) in [
            ("num_envs = 4\nnum_env = 4", vec!["line 2", "num_env"]),
            ("[train]\nsigma = 1.0", vec!["line 2", "sigma"]),
            ("[train.ppo]\nclip = nan", vec!["train.ppo.clip = nan", "finite"]),
            ("[env.workload.generate]\nload = 1.0", vec!["preset"]),
        ] {
            let said = parse(text).unwrap_err();
            assert!(words.iter().all(|word| said.contains(word)), "{text}: {said}");
        }
    }

    #[test]
    fn what_docs_say_in_toml_can_be_read() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/learning.md");
        let text = std::fs::read_to_string(docs).unwrap();
        let blocks: Vec<&str> = text
            .split("```toml\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(!blocks.is_empty());
        for block in blocks {
            let said = parse(block).err();
            assert!(said.is_none(), "{block}{said:?}");
            // The same as values of --set.
            let table: Table = toml::from_str(block).unwrap();
            let flags: Vec<String> = flags_of(&table, "");
            overrides::apply(&built_in().unwrap(), &flags).unwrap();
        }
    }

    /// `KEY=VALUE` for every value that is no table.
    fn flags_of(table: &Table, prefix: &str) -> Vec<String> {
        let of = |(name, value): (&String, &Value)| match value {
            Value::Table(inner) if name != "workload" => flags_of(inner, &format!("{prefix}{name}.")),
            value => vec![format!("{prefix}{name}={value}")],
        };
        table.iter().flat_map(of).collect()
    }
}
