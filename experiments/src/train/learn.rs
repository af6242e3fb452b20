//! The training loop: updates, validations and checkpoints until it is done.

use std::path::Path;

use pleach_agents::learner::{Play, Plays, way};
use pleach_env::{AutoresetMode, EnvConfig, Episode, Seed, Source, VecEnv};

use super::objective;
use super::run::Run;
use super::settings::TrainSettings;
use super::trained::Trained;
use super::units;
use super::validation::Validation;
use crate::error::Error;
use crate::progress::{Progress, Watcher};

/// Trains in `folder`, going on from its last good checkpoint if there is one. `clock` gives seconds since
/// 1970; it goes into TensorBoard and the log of speed only.
///
/// # Errors
/// Settings out of range, jobs that are not there at either end of a curriculum, a folder that cannot be written, a loss that
/// is not finite (the last good state is kept); [`Error::Stopped`] where `watcher` asked for it.
pub fn train(
    settings: &TrainSettings,
    validation: &Validation,
    seed: u64,
    folder: &Path,
    clock: &dyn Fn() -> f64,
    watcher: &Watcher,
) -> Result<Trained, Error> {
    settings.validate()?;
    let settings = &settings.narrowed().discounted_by(validation);
    settings.curriculum.open_ends(&settings.env)?;
    let mut run = Run::open(settings, validation, seed, folder, clock, watcher)?;
    learn(&mut run, watcher).map_err(|error| run.stopped(error))?;
    units::close(folder)?;
    run.finish()
}

/// What a learner plays in, opened once for each stage of its curriculum.
enum TrainingEnv {
    Steps(VecEnv),
    Episodes(Source, Box<EnvConfig>),
    Lists(Source, Box<EnvConfig>),
}

impl TrainingEnv {
    fn open(settings: &TrainSettings, stage: u64) -> Result<TrainingEnv, Error> {
        let env = settings.curriculum.env_of(&settings.env, stage);
        Ok(match way(settings.train.learner).plays() {
            Plays::Steps => {
                let mode = AutoresetMode::SameStep;
                TrainingEnv::Steps(VecEnv::new(&env, settings.num_envs, mode)?)
            }
            Plays::Episodes => TrainingEnv::Episodes(Source::open(&env)?, Box::new(env)),
            Plays::Lists => TrainingEnv::Lists(Source::open(&env)?, Box::new(env)),
        })
    }
}

fn learn(run: &mut Run<'_>, watcher: &Watcher) -> Result<(), Error> {
    let (settings, validation) = (run.settings, run.validation);
    let total = settings.train.num_updates;
    let judged = if settings.objective == objective::avg_jct() {
        "JCT"
    } else {
        "objective"
    };
    let mut stage = run.stage();
    let mut env_of_stage = TrainingEnv::open(settings, stage)?;
    while !run.trainer.is_finished() && !run.is_apart() {
        if stage != run.stage() {
            stage = run.stage();
            env_of_stage = TrainingEnv::open(settings, stage)?;
        }
        let (mut figures, frames_per_s) = match &mut env_of_stage {
            TrainingEnv::Steps(envs) => (Vec::new(), run.update(Play::Steps(envs))?),
            TrainingEnv::Episodes(source, env) => run.evolve(source, env)?,
            TrainingEnv::Lists(source, env) => {
                let lists = |seed: Seed, load: f64| {
                    let workload = source.workload(env, seed)?;
                    let workload = workload.scaled_load(load).map_err(pleach_env::Error::from)?;
                    Ok(Episode::begin(env, &workload, seed)?)
                };
                (Vec::new(), run.update(Play::Lists(&lists))?)
            }
        };
        if !settings.curriculum.is_default() {
            figures.push(("charts/curriculum_stage".to_string(), stage as f64));
        }
        run.logger.figures(run.num_frames, (run.clock)(), figures)?;
        let done = run.trainer.num_updates();
        let due = settings.validate_every > 0 && done.is_multiple_of(settings.validate_every);
        if due || done == total {
            run.validate()?;
        }
        if done.is_multiple_of(settings.checkpoint_every) || done == total || run.is_apart() {
            run.save()?;
        }
        let ratio = run.curve.last().map_or(f64::NAN, |point| point.ratio);
        let message = format!(
            "{judged} {ratio:.3} of {}, {frames_per_s:.0} frames/s",
            validation.best()
        );
        watcher.tell(Progress::At(done, &message));
        if let Some(stopped) = watcher.asked_to_stop(done, total) {
            return Err(run.break_off(stopped)?);
        }
    }
    Ok(())
}
