//! Environments by name: registered ones, and those of trainings by their settings.

use std::path::Path;

use pleach_env::EnvConfig;
use pleach_env::workload::generate::{GeneratorConfig, Profile};

use crate::error::Error;
use crate::file_kind::FileKind;
use crate::run_folder::atomic_file::read_toml;

/// Largest settings of a training, bytes.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// The environment of a name: a registered one by its id, or that of a training's settings by their file (`NAME.toml`, with a
/// table `env`); none for any other name.
///
/// # Errors
/// A file of that name without an environment of this version.
pub(crate) fn env_named(name: &str) -> Result<Option<EnvConfig>, Error> {
    if let Ok(config) = EnvConfig::registered(name) {
        return Ok(Some(config));
    }
    if !is_settings(name) {
        return Ok(None);
    }
    let path = Path::new(name);
    let mut settings: toml::Table = read_toml(path, SETTINGS_BYTES_MAX)?;
    let Some(env) = settings.remove("env") else {
        let message = "there is no table `env`: as a workload, settings of a training are taken (settings.toml of its folder)";
        return Err(FileKind::Settings.or_other(path, Error::data(path, message)));
    };
    let env: EnvConfig = env
        .try_into()
        .map_err(|error| Error::data(path, format!("env: {error}")))?;
    env.validate()?;
    Ok(Some(env))
}

/// Whether a name is that of a file with settings of a training.
fn is_settings(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some_and(|extension| extension == "toml") && path.is_file() && !Profile::is_file(path)
}

/// Whether a name means a file with jobs, and no preset or environment.
pub(crate) fn is_list(name: &str) -> bool {
    EnvConfig::registered(name).is_err()
        && GeneratorConfig::preset(name).is_err()
        && !is_settings(name)
        && !Profile::is_file(Path::new(name))
        && Path::new(name).is_file()
}
