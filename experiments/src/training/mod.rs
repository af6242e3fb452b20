//! A training run in a folder: imitation of a heuristic, then PPO, with validation, checkpoints and logs, resumable.
//!
//! The streams of seeds are separate: `training` draws what the learner plays, `validation` what the best network is
//! chosen on, `test` what is reported. Resumed after a kill, a run ends in the same bytes: what belongs to a checkpoint is
//! on the disk before it, and what is beyond the newest one is made again.

mod curve;
mod extend;
mod keep;
mod kept;
mod run;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::Path;

use pleach_agents::policy::LearnedPolicy;
use pleach_agents::trainer::Learner;
use pleach_env::config::{EnvConfig, Source};
use pleach_env::vec_env::VecEnv;
use pleach_env::vector::AutoresetMode;

use self::run::Run;
use crate::error::Error;
use crate::fitness;
use crate::scenario::env_error;
use crate::settings::{TrainSettings, agent_error};
use crate::validation::Validation;

pub use self::curve::CurvePoint;
pub use self::extend::differences_from_whole;

/// Folder of the numbered checkpoints within a run.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
/// History of validation within a run.
const VALIDATION_FILE: &str = "validation.json";
/// Largest history, bytes.
const VALIDATION_BYTES_MAX: u64 = 64 << 20;

/// What a training run gave.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The network that was best on the validation workloads.
    pub policy: LearnedPolicy,
    /// Validation over training.
    pub curve: Vec<CurvePoint>,
    /// The heuristic that was imitated, if any.
    pub teacher: Option<String>,
}

impl Trained {
    /// The validation of the network that was kept.
    #[must_use]
    pub fn best(&self) -> Option<&CurvePoint> {
        best_of(&self.curve)
    }
}

/// The first of the best points whose network may be kept.
fn best_of(curve: &[CurvePoint]) -> Option<&CurvePoint> {
    let first = curve.first()?;
    let admitted = curve.iter().filter(|point| point.is_admitted(first));
    admitted.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

/// What a run has to say while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Updates made, updates in all, and a word on how it goes.
    Updated(u64, u64, String),
    /// One line that somebody should read.
    Note(String),
}

/// Whom a run tells, and who can end it: after [`News::Updated`] a run that is told to break off keeps its state and ends.
pub type Report<'a> = dyn FnMut(News) -> ControlFlow<Stopped> + 'a;

/// That a run is to end, and by which signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Number of the signal.
    pub signal: i32,
}

/// Trains in `folder`, going on from its last good checkpoint if there is one. `clock` gives seconds since
/// 1970; it goes into TensorBoard and the log of speed only.
///
/// # Errors
/// Settings out of range, jobs that are not there at either end of a curriculum, a folder that cannot be written, a loss that is not
/// finite (the last good state is kept); [`Error::Stopped`] where `report` said so.
pub fn train(
    settings: &TrainSettings,
    validation: &Validation,
    seed: u64,
    folder: &Path,
    clock: &dyn Fn() -> f64,
    report: &mut Report<'_>,
) -> Result<Trained, Error> {
    settings.validate()?;
    let settings = &settings.narrowed();
    settings.curriculum.open_ends(&settings.env)?;
    let mut run = Run::open(settings, validation, seed, folder, clock, report)?;
    learn(&mut run, report).map_err(|error| run.stopped(error))?;
    run.finish()
}

/// What a learner plays in, opened once for each stage of its curriculum.
enum Arena {
    Steps(VecEnv),
    Episodes(Source, Box<EnvConfig>),
}

impl Arena {
    fn open(settings: &TrainSettings, stage: u64) -> Result<Arena, Error> {
        let env = settings.curriculum.env_of(&settings.env, stage)?;
        Ok(match settings.train.learner {
            Learner::Ppo => {
                let mode = AutoresetMode::SameStep;
                Arena::Steps(VecEnv::new(&env, settings.num_envs, mode).map_err(env_error)?)
            }
            Learner::Evolution => Arena::Episodes(Source::open(&env).map_err(env_error)?, Box::new(env)),
        })
    }
}

fn learn(run: &mut Run<'_>, report: &mut Report<'_>) -> Result<(), Error> {
    let (settings, validation) = (run.settings, run.validation);
    let total = settings.train.num_updates;
    let judged = if settings.objective == fitness::avg_jct() {
        "JCT"
    } else {
        "objective"
    };
    let mut stage = run.stage();
    let mut arena = Arena::open(settings, stage)?;
    while !run.trainer.is_finished() {
        if stage != run.stage() {
            stage = run.stage();
            arena = Arena::open(settings, stage)?;
        }
        let (mut figures, frames_per_s) = match &mut arena {
            Arena::Steps(envs) => (Vec::new(), run.update(envs)?),
            Arena::Episodes(source, env) => run.evolve(source, env)?,
        };
        if !settings.curriculum.is_default() {
            figures.push(("charts/curriculum_stage".to_string(), stage as f64));
        }
        run.logger
            .figures(run.num_frames, (run.clock)(), figures)
            .map_err(agent_error)?;
        let done = run.trainer.num_updates();
        let due = settings.validate_every > 0 && done.is_multiple_of(settings.validate_every);
        if due || done == total {
            run.validate()?;
        }
        if done.is_multiple_of(settings.checkpoint_every) || done == total {
            run.save()?;
        }
        let ratio = run.curve.last().map_or(f64::NAN, |point| point.ratio);
        let message = format!(
            "{judged} {ratio:.3} of {}, {frames_per_s:.0} frames/s",
            validation.best()
        );
        if let ControlFlow::Break(stopped) = report(News::Updated(done, total, message)) {
            return Err(run.break_off(stopped)?);
        }
    }
    Ok(())
}
