//! `pleach train`: a network from imitation and PPO.

use pleach_agents::device::Device;
use pleach_agents::trainer::Learner;
use pleach_env::config::EnvConfig;

use crate::cli::TrainArgs;
use crate::commands::Context;
use crate::error::Error;
use crate::fine_tuning;
use crate::fitness;
use crate::overrides;
use crate::progress::Bar;
use crate::run_folder::RunFolder;
use crate::scenario::env_error;
use crate::settings::{TrainSettings, agent_error};
use crate::settings_file;
use crate::training::{News, Trained, train};
use crate::validation::Validation;

/// Runs the training.
///
/// # Errors
/// A configuration that cannot be used, a folder in the way, a run that fails.
pub fn run(args: &TrainArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let settings = settings(args)?;
    let device = settings.device.probe().map_err(agent_error)?;
    if settings.device != Device::Cpu && !args.run.quiet {
        context.say(&format!(
            "gradients are taken on {}: {device}",
            settings.device.name()
        ))?;
    }
    let folder = RunFolder::open(
        "train",
        &settings,
        args.run.seed,
        args.run.out.as_deref(),
        args.run.existing(),
    )?;
    let text = toml::to_string_pretty(&settings).map_err(|error| Error::Failed(error.to_string()))?;
    folder.write("settings.toml", text.as_bytes())?;
    let validation = Validation::by(
        &settings.objective,
        &settings.env,
        args.run.seed,
        settings.num_validation,
    )?;
    let trained = with_bar(
        &settings,
        &validation,
        args.run.seed,
        &folder,
        args.run.quiet,
        context,
    )?;
    let best = trained.best();
    if let Some(path) = &args.run.json {
        let value = serde_json::json!({
            "schema": 1,
            "command": "train",
            "best_heuristic": validation.best(),
            "teacher": trained.teacher,
            "best_ratio": best.map(|point| point.ratio),
            "validation": trained.curve,
        });
        crate::atomic_file::write_json(path, &value)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !args.run.quiet {
        if let Some(best) = best {
            context.say(&format!(
                "best on {} validation workloads: {:.3} of the {} of {}, after {} updates",
                settings.num_validation,
                best.ratio,
                fitness::in_words(&settings.objective),
                validation.best(),
                best.update
            ))?;
        }
        context.say(&format!(
            "written to {}; compare it: pleach evaluate --policy {0}",
            place.display()
        ))?;
    }
    Ok(())
}

/// Trains with a progress bar.
///
/// # Errors
/// As [`train`].
pub fn with_bar(
    settings: &TrainSettings,
    validation: &Validation,
    seed: u64,
    folder: &RunFolder,
    quiet: bool,
    context: &Context<'_>,
) -> Result<Trained, Error> {
    let bar = Bar::new(quiet, "train", settings.train.num_updates);
    let mut report = |news: News| match news {
        News::Updated(done, _, message) => bar.at(done, message),
        News::Note(line) => bar.note(&line),
    };
    let trained = train(
        settings,
        validation,
        seed,
        folder.path(),
        context.clock,
        &mut report,
    );
    bar.end();
    trained
}

/// An environment by id with another load and number of jobs.
///
/// # Errors
/// An unknown id.
pub fn env_of(id: &str, num_jobs: Option<u32>, load: Option<f64>) -> Result<EnvConfig, Error> {
    let mut env = EnvConfig::registered(id).map_err(env_error)?;
    resize(&mut env, num_jobs, load)?;
    Ok(env)
}

fn resize(env: &mut EnvConfig, num_jobs: Option<u32>, load: Option<f64>) -> Result<(), Error> {
    let num_jobs = num_jobs.map(|num| num as usize);
    env.workload = env.workload.clone().resized(num_jobs, load).map_err(env_error)?;
    Ok(())
}

/// Updates that make at least so many steps.
#[must_use]
pub fn updates_for(settings: &TrainSettings, env_steps: u64) -> u64 {
    let per_update = (settings.num_envs * settings.train.num_steps).max(1) as u64;
    env_steps.div_ceil(per_update)
}

fn settings(args: &TrainArgs) -> Result<TrainSettings, Error> {
    let mut settings = match &args.config {
        Some(path) => settings_file::read(path)?,
        None => settings_file::built_in()?,
    };
    if let Some(id) = &args.env {
        settings.env = env_of(id, None, None)?;
    }
    resize(&mut settings.env, args.num_jobs, args.load)?;
    if let Some(num_envs) = args.num_envs {
        settings.num_envs = num_envs as usize;
    }
    if let Some(name) = &args.warm_start {
        settings.warm_start.clone_from(name);
    }
    let mut settings = overrides::apply(&settings, &args.set)?;
    if let Some(place) = &args.fine_tune {
        settings.fine_tune = Some(place.clone());
    }
    fine_tuning::adopt(&mut settings)?;
    if let Some(env_steps) = args.env_steps {
        if settings.train.learner == Learner::Evolution {
            let hint = "Give the number of generations: --set train.num_updates=100.";
            return Err(Error::config(
                "env-steps",
                env_steps,
                "nothing with evolution strategies",
                hint,
            ));
        }
        settings.train.num_updates = updates_for(&settings, env_steps);
    }
    settings.device = args.device;
    settings.validate()?;
    Ok(settings)
}
