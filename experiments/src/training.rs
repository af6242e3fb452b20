//! A training run in a folder: imitation of a heuristic, then PPO, with validation, checkpoints and logs, resumable.
//!
//! The streams of seeds are separate: `training` draws what the learner plays, `validation` what the best network is
//! chosen on, `test` what is reported. Resumed after a kill, a run ends in the same bytes: what belongs to a checkpoint is
//! on the disk before it, and what is beyond the newest one is made again.

use std::path::Path;

use pleach_agents::checkpoint::Checkpoint;
use pleach_agents::contract::Contract;
use pleach_agents::device::Device;
use pleach_agents::imitation::Demonstrations;
use pleach_agents::log::Logger;
use pleach_agents::policy::LearnedPolicy;
use pleach_agents::prior::Prior;
use pleach_agents::trainer::{Learner, TrainConfig, Trainer};
use pleach_env::config::{EnvConfig, Source};
use pleach_env::seed::Seed;
use pleach_env::vec_env::VecEnv;
use pleach_env::vector::AutoresetMode;
use pleach_scheduler::planners;
use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::constraint;
use crate::contestant::{BEST_CHECKPOINT, Contestant};
use crate::error::Error;
use crate::fine_tuning::network_at;
use crate::fitness::{self, Bounded};
use crate::imitation;
use crate::results::PolicyRun;
use crate::scenario::env_error;
use crate::settings::{TrainSettings, agent_error};
use crate::validation::Validation;

/// Folder of the numbered checkpoints within a run.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
/// History of validation within a run.
const VALIDATION_FILE: &str = "validation.json";
/// Largest history, bytes.
const VALIDATION_BYTES_MAX: u64 = 64 << 20;

/// One validation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Updates made.
    pub update: u64,
    /// Environment steps made.
    pub num_frames: u64,
    /// Average JCT against the best heuristic, see [`Validation::ratio`].
    pub ratio: f64,
    /// Largest excess over a bound, see [`constraint::Constraint::excess`]; none without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
}

impl CurvePoint {
    /// The network kept to all bounds: it may be the one that is kept.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.excess.is_none_or(|excess| excess <= 0.0)
    }
}

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
        let admitted = self.curve.iter().filter(|point| point.is_admitted());
        admitted.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

/// What a run has to say while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Updates made, updates in all, and a word on how it goes.
    Updated(u64, u64, String),
    /// One line that somebody should read.
    Note(String),
}

/// Whom a run tells.
pub type Report<'a> = dyn FnMut(News) + 'a;

/// Trains in `folder`, going on from its last good checkpoint if there is one. `clock` gives seconds since
/// 1970; it goes into TensorBoard and the log of speed only.
///
/// # Errors
/// Settings out of range, a folder that cannot be written, a loss that is not finite (the last good state is kept).
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
            "JCT {ratio:.3} of {}, {frames_per_s:.0} frames/s",
            validation.best()
        );
        report(News::Updated(done, total, message));
    }
    Ok(())
}

struct Run<'a> {
    settings: &'a TrainSettings,
    clock: &'a dyn Fn() -> f64,
    validation: &'a Validation,
    folder: &'a Path,
    trainer: Trainer,
    logger: Logger,
    curve: Vec<CurvePoint>,
    num_frames: u64,
    /// Updates that the newest checkpoint holds.
    num_saved: u64,
    teacher: Option<String>,
    bounds: Option<Bounds>,
}

/// Whom the bounds are held against, and its runs on the validation workloads.
struct Bounds {
    baseline: Contestant,
    runs: Vec<PolicyRun>,
}

impl<'a> Run<'a> {
    fn open(
        settings: &'a TrainSettings,
        validation: &'a Validation,
        seed: u64,
        folder: &'a Path,
        clock: &'a dyn Fn() -> f64,
        report: &mut Report<'_>,
    ) -> Result<Run<'a>, Error> {
        let named = |name: &str| match name {
            "none" => None,
            "best" => Some(validation.best().to_string()),
            name => Some(name.to_string()),
        };
        let prior = named(&settings.prior);
        let teacher = named(&settings.warm_start).filter(|_| prior.is_none());
        let bounds = match settings.constraint.is_empty() {
            true => None,
            false => {
                let name = match settings.constraint.baseline.as_str() {
                    "prior" => prior.clone().or_else(|| named("best")),
                    name => named(name),
                };
                let baseline = Contestant::heuristic(&name.unwrap_or_default())?;
                let runs = validation.runs(&settings.env, &baseline)?;
                Some(Bounds { baseline, runs })
            }
        };
        let latest = Checkpoint::latest_good(&folder.join(CHECKPOINTS)).map_err(agent_error)?;
        let resumed = latest.good.is_some();
        for damaged in &latest.passed_over {
            let from = latest
                .good
                .as_ref()
                .map_or("the beginning".to_string(), |(path, _)| {
                    path.display().to_string()
                });
            report(News::Note(format!(
                "passed over: {damaged}; going on from {from}"
            )));
        }
        let (trainer, num_frames) = match latest.good {
            Some((path, checkpoint)) => {
                Checkpoint::remove_before(&path, settings.keep_last).map_err(agent_error)?;
                let num_frames = checkpoint.num_frames;
                let trainer = Trainer::resume(checkpoint).map_err(agent_error)?;
                (trainer.on(settings.device), num_frames)
            }
            None => {
                let trained_on = serde_json::to_string(&settings.env).unwrap_or_default();
                let mut contract =
                    Contract::current(settings.env.spaces(), settings.env.candidates, trained_on);
                let weight = settings.prior_weight;
                contract.prior = prior.map(|policy| Prior { policy, weight });
                let seed = Seed(seed).child("training", 0);
                let mut trainer = Trainer::new(settings.train, contract, seed).map_err(agent_error)?;
                if let Some(place) = &settings.fine_tune {
                    trainer.go_on_from(&network_at(place)?).map_err(agent_error)?;
                }
                (trainer.on(settings.device), 0)
            }
        };
        let mut curve: Vec<CurvePoint> = Vec::new();
        let history = folder.join(VALIDATION_FILE);
        if resumed && history.exists() {
            curve = atomic_file::read_json(&history, VALIDATION_BYTES_MAX)?;
            curve.retain(|point| point.update <= trainer.num_updates());
        }
        let mut logger = Logger::open(folder, resumed.then_some(num_frames), clock()).map_err(agent_error)?;
        let mut all = serde_json::to_value(settings).unwrap_or_default();
        all["seed"] = seed.into();
        if settings.device != Device::Cpu {
            all["device"] = settings.device.name().into();
        }
        logger.settings(&all, clock()).map_err(agent_error)?;
        let mut run = Run {
            settings,
            clock,
            validation,
            folder,
            trainer,
            logger,
            curve,
            num_frames,
            num_saved: 0,
            teacher,
            bounds,
        };
        run.num_saved = run.trainer.num_updates();
        if !resumed {
            run.imitate(seed)?;
            run.validate()?;
            run.save()?;
        }
        Ok(run)
    }

    fn imitate(&mut self, seed: u64) -> Result<(), Error> {
        let Some(teacher) = &self.teacher else {
            return Ok(());
        };
        let settings = self.settings;
        let mut envs =
            VecEnv::new(&settings.env, settings.num_envs, AutoresetMode::SameStep).map_err(env_error)?;
        if planners::find(teacher).is_some() {
            let shown =
                imitation::of_planner(teacher, &mut envs, settings, Seed(seed).child("imitation", 0))?;
            self.trainer.warm_start(&shown).map_err(agent_error)?;
            return Ok(());
        }
        let mut teacher = Contestant::heuristic(teacher)?.policy()?;
        let show = |envs: &mut VecEnv, index: usize, _: &_| Ok(envs.choice_of(index, &mut *teacher)?);
        let (num_steps, horizon_s) = (settings.warm_start_steps, settings.train.horizon_s);
        let of_round = |round: u32| Seed(seed).child("imitation", u64::from(round));
        let mut shown = Demonstrations::collect(&mut envs, of_round(0), num_steps, horizon_s, show)
            .map_err(agent_error)?;
        self.trainer.warm_start(&shown).map_err(agent_error)?;
        for round in 1..=settings.dagger_rounds {
            let mut clone = self.trainer.policy().map_err(agent_error)?;
            let both = |envs: &mut VecEnv, index: usize, _: &_| {
                let taught = envs.choice_of(index, &mut *teacher)?;
                Ok((Some(taught), envs.choice_of(index, &mut clone)?))
            };
            let said = Demonstrations::correct(&mut envs, of_round(round), num_steps, horizon_s, both);
            shown.extend(&said.map_err(agent_error)?);
            self.trainer.warm_start(&shown).map_err(agent_error)?;
        }
        Ok(())
    }

    /// What to say of an error that stops the run: what is kept, and how to go on.
    fn stopped(&self, error: Error) -> Error {
        let (folder, saved) = (self.folder.join(CHECKPOINTS), self.num_saved);
        let kept = format!("the state after {saved} updates is kept in {}", folder.display());
        match error {
            Error::Io { .. } => Error::Failed(format!("{error}; {kept}. Mend it and go on with --resume")),
            Error::Failed(_) => Error::Failed(format!("{error}; {kept}")),
            other => other,
        }
    }

    /// One update of PPO; gives frames per second.
    fn update(&mut self, envs: &mut VecEnv) -> Result<f64, Error> {
        let started_s = (self.clock)();
        let stats = self.trainer.update(envs).map_err(agent_error)?;
        let frames_per_s = self.frames_per_s(started_s, stats.num_frames);
        self.logger
            .update(&stats, (self.clock)(), frames_per_s)
            .map_err(agent_error)?;
        Ok(frames_per_s)
    }

    /// The stage of the curriculum that the next update is of; always the same without one.
    fn stage(&self) -> u64 {
        let TrainConfig {
            num_updates,
            restart_every,
            ..
        } = self.settings.train;
        let curriculum = &self.settings.curriculum;
        if curriculum.is_default() {
            return 0;
        }
        curriculum.stage(self.trainer.num_updates(), num_updates, restart_every)
    }

    /// One generation of evolution strategies; gives what there is to say of the bounds, and decided passes per second.
    fn evolve(&mut self, source: &Source, env: &EnvConfig) -> Result<(Vec<(String, f64)>, f64), Error> {
        let (started_s, settings) = ((self.clock)(), self.settings);
        let num_workloads = settings.train.evolution.num_workloads;
        let constraint = &settings.constraint;
        let (present, multipliers) = (self.trainer.policy()?, self.trainer.multipliers().to_vec());
        let bounded = self.bounds.as_ref().map(|bounds| Bounded {
            constraint,
            baseline: &bounds.baseline,
            multipliers: &multipliers,
            present: &present,
        });
        let mut excess = Vec::new();
        let stats = self.trainer.evolve(|members, seed| {
            let arena = (source, env);
            let judged =
                fitness::of_population(arena, &settings.objective, num_workloads, members, bounded, seed)?;
            excess = judged.excess;
            Ok::<_, Error>((judged.fitness, judged.num_passes))
        })?;
        let multipliers = constraint.stepped(&multipliers, &excess);
        let mut figures = Vec::new();
        for (key, (excess, multiplier)) in constraint.metrics.keys().zip(excess.iter().zip(&multipliers)) {
            figures.push((format!("losses/excess_{key}"), *excess));
            figures.push((format!("losses/multiplier_{key}"), *multiplier));
        }
        self.trainer.set_multipliers(multipliers);
        let frames_per_s = self.frames_per_s(started_s, stats.num_frames);
        self.logger
            .generation(&stats, (self.clock)(), frames_per_s)
            .map_err(agent_error)?;
        Ok((figures, frames_per_s))
    }

    fn frames_per_s(&mut self, started_s: f64, num_frames: u64) -> f64 {
        let new = num_frames - self.num_frames;
        self.num_frames = num_frames;
        new as f64 / ((self.clock)() - started_s).max(1e-9)
    }

    fn validate(&mut self) -> Result<(), Error> {
        let policy = self.trainer.policy().map_err(agent_error)?;
        let env = &self.settings.env;
        let runs = self
            .validation
            .runs(env, &Contestant::network("network", policy))?;
        let (ratio, means) = self.validation.judged(&runs);
        let excess = self.excess(&runs);
        let point = CurvePoint {
            update: self.trainer.num_updates(),
            num_frames: self.num_frames,
            ratio,
            excess: excess.iter().map(|(_, excess)| *excess).reduce(f64::max),
        };
        self.curve.push(point);
        if point.is_admitted() && self.trainer.note_evaluation(-ratio.ln()) {
            self.trainer
                .checkpoint()
                .save(&self.folder.join(BEST_CHECKPOINT))
                .map_err(agent_error)?;
        }
        let mut figures = vec![("ratio_to_best_heuristic".to_string(), ratio)];
        figures.extend(means);
        figures.extend(
            excess
                .into_iter()
                .map(|(key, excess)| (format!("excess_{key}"), excess)),
        );
        let histograms = self.trainer.histograms().map_err(agent_error)?;
        let (logger, now_unix_s) = (&mut self.logger, (self.clock)());
        logger
            .evaluation(self.num_frames, now_unix_s, &figures)
            .and_then(|()| logger.histograms(self.num_frames, now_unix_s, &histograms))
            .map_err(agent_error)
    }

    /// Mean excess of runs on the validation workloads over each bound.
    fn excess(&self, runs: &[PolicyRun]) -> Vec<(String, f64)> {
        let Some(bounds) = &self.bounds else {
            return Vec::new();
        };
        let constraint = &self.settings.constraint;
        let of_run = |(own, base): (&PolicyRun, &PolicyRun)| {
            constraint.excess(|key| own.metrics[key], |key| base.metrics[key])
        };
        let each: Vec<Vec<f64>> = runs.iter().zip(&bounds.runs).map(of_run).collect();
        let keys = constraint.metrics.keys().cloned();
        keys.zip(constraint::means(&each)).collect()
    }

    fn save(&mut self) -> Result<(), Error> {
        self.logger.sync().map_err(agent_error)?;
        atomic_file::write_json(&self.folder.join(VALIDATION_FILE), &self.curve)?;
        let folder = self.folder.join(CHECKPOINTS);
        self.trainer
            .checkpoint()
            .save_numbered(&folder, self.settings.keep_last)
            .map_err(agent_error)?;
        self.num_saved = self.trainer.num_updates();
        Ok(())
    }

    fn finish(mut self) -> Result<Trained, Error> {
        self.logger
            .end(self.num_frames, (self.clock)())
            .map_err(agent_error)?;
        if !self.curve.iter().any(CurvePoint::is_admitted) {
            let excess = self.curve.iter().filter_map(|point| point.excess);
            let nearest = excess.fold(f64::INFINITY, f64::min).exp();
            return Err(Error::Failed(format!(
                "no network kept to the constraint on the validation workloads: the nearest one is at {nearest:.3} of a \
                 bound. The last state is kept in {}; train for longer, or loosen constraint.metrics",
                self.folder.join(CHECKPOINTS).display()
            )));
        }
        let policy = LearnedPolicy::load(&self.folder.join(BEST_CHECKPOINT)).map_err(agent_error)?;
        Ok(Trained {
            policy: policy.named("network"),
            curve: self.curve,
            teacher: self.teacher,
        })
    }
}
