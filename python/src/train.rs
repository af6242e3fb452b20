//! Trainings for Python: what `pleach train` does, in the folder that it leaves.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pleach_env::{EnvConfig, RewardConfig};
use pleach_experiments::progress::Progress;
use pleach_experiments::run_folder::{Existing, RunFolder, SETTINGS_FILE};
use pleach_experiments::train::settings::TrainSettings;
use pleach_experiments::train::validation::Validation;
use pleach_experiments::train::{fine_tuning, settings_file, train as learn};
use pleach_experiments::{Error, Watcher};
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors::{of_env, of_experiment, refused};
use crate::interrupt::Work;
use crate::settings::{merge, settings as env_settings};

/// How long an update may go on once the training is to end, so that it is kept. Assumed.
const GRACE: Duration = Duration::from_secs(60);
/// Name of the command in the run's folder, which goes on with either.
const COMMAND: &str = "train";

/// Trains in the folder `out`: what was found, in JSON. `tell` is called with updates done, in all, and a word on them, now and then,
/// on the thread of the caller.
#[pyfunction]
#[pyo3(signature = (id, changes, config, learner, seed, num_threads, out, existing, tell))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are named by the one caller in Python"
)]
pub(crate) fn train(
    py: Python<'_>,
    id: &str,
    changes: &str,
    config: &str,
    learner: &str,
    seed: u64,
    num_threads: usize,
    out: PathBuf,
    existing: &str,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    let env = env_settings(id, changes).map_err(of_env)?;
    let settings = settings(env, config, learner)?;
    let existing = existing_of(existing)?;
    let total = settings.train.num_updates;
    let own = Work::within(GRACE);
    let watcher = watcher(&own, total, tell);
    let work = move || trained(&settings, seed, &out, existing, &watcher);
    let done = own.run(py, num_threads, work)?;
    let found = done.map_err(of_experiment)?;
    Ok(found.to_string())
}

/// A watcher that passes the wish on, and tells of updates on the thread of the caller.
fn watcher(own: &Work, total: u64, tell: Option<Py<PyAny>>) -> Watcher {
    let Some(tell) = tell.map(Arc::new) else {
        return own.wish.watcher();
    };
    let (errands, wish) = (own.errands.clone(), own.wish.clone());
    own.wish.heard(Watcher::new(move |progress| {
        let Progress::At(done, word) = progress else {
            return;
        };
        let (tell, wish, word) = (Arc::clone(&tell), wish.clone(), word.to_owned());
        let (told, is_told) = channel::<()>();
        let errand = move |py: Python<'_>| {
            let answer = tell.call1(py, (done, total, word));
            if answer.is_err() {
                wish.make();
            }
            drop(told);
            answer.map(|_| ())
        };
        // An exception of an update ends the training after it. Where the caller has left, the exception has no receiver.
        if errands.send(Box::new(errand)).is_ok() {
            let _ = is_told.recv();
        }
    }))
}

/// What `pleach train` has built in for the learner, with the changes of `config`, key by key at any depth.
fn settings(env: EnvConfig, config: &str, learner: &str) -> PyResult<TrainSettings> {
    let failed = |error: serde_json::Error| {
        refused(
            "config",
            error,
            "the settings of a training",
            "help(pleach.train) says how they are given.",
        )
    };
    let known = serde_json::from_value(learner.into());
    let learner = known.map_err(|_| refused("learner", learner, "evolution, ppo", "evolution is usual."))?;
    let changes: Value = serde_json::from_str(config).map_err(failed)?;
    let built_in =
        settings_file::built_in_for(learner, changes.get("fine_tune").is_some()).map_err(of_experiment)?;
    let mut env = env;
    // What an environment pays where nothing is said is for loops of one's own.
    if env.reward == RewardConfig::default() {
        env.reward = built_in.env.reward.clone();
    }
    let mut whole = serde_json::to_value(TrainSettings { env, ..built_in }).map_err(failed)?;
    if let (Some(own), Some(map)) = (changes.get("objective"), whole.as_object_mut()) {
        // Weights are given together.
        map.insert("objective".into(), own.clone());
    }
    merge(&mut whole, changes);
    let mut settings: TrainSettings = serde_json::from_value(whole).map_err(failed)?;
    fine_tuning::adopt(&mut settings).map_err(of_experiment)?;
    settings.validate().map_err(of_experiment)?;
    Ok(settings)
}

fn existing_of(word: &str) -> PyResult<Existing> {
    match word {
        "refuse" => Ok(Existing::Refuse),
        "resume" => Ok(Existing::Resume),
        "replace" => Ok(Existing::Replace),
        other => Err(refused(
            "existing",
            other,
            "refuse, resume, replace",
            "It says what becomes of a run that is in out.",
        )),
    }
}

fn trained(
    settings: &TrainSettings,
    seed: u64,
    out: &Path,
    existing: Existing,
    watcher: &Watcher,
) -> Result<Value, Error> {
    let folder = RunFolder::open(COMMAND, settings, seed, Some(out), existing)?;
    let text = toml::to_string_pretty(settings).map_err(|error| Error::Failed(error.to_string()))?;
    folder.write(SETTINGS_FILE, text.as_bytes())?;
    let validation = Validation::by(&settings.objective, &settings.env, seed, settings.num_validation)?;
    let clock = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64())
    };
    let trained = learn(settings, &validation, seed, folder.path(), &clock, watcher)?;
    folder.finish()?;
    let best = trained.best();
    Ok(serde_json::json!({
        "best_heuristic": validation.best(),
        "teacher": trained.teacher,
        "best_ratio": best.map(|point| point.ratio),
        "best_update": best.map(|point| point.update),
        "num_validation": settings.num_validation,
        "validation": trained.curve,
        "verdict": trained.verdict(settings, &validation),
    }))
}
