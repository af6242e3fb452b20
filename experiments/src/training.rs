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
use pleach_agents::trainer::{Learner, Trainer};
use pleach_env::config::Source;
use pleach_env::seed::Seed;
use pleach_env::vec_env::VecEnv;
use pleach_env::vector::AutoresetMode;
use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::contestant::{BEST_CHECKPOINT, Contestant};
use crate::error::Error;
use crate::fitness;
use crate::scenario::env_error;
use crate::settings::{TrainSettings, agent_error};
use crate::validation::Validation;

/// Folder of the numbered checkpoints within a run.
const CHECKPOINTS: &str = "checkpoints";
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

/// Progress of a run: updates made, updates in all, and a word on how it goes.
pub type Report<'a> = dyn FnMut(u64, u64, String) + 'a;

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
    let mut run = Run::open(settings, validation, seed, folder, clock)?;
    learn(&mut run, report).map_err(|error| run.stopped(error))?;
    run.finish()
}

/// What a learner plays in, opened once.
enum Arena {
    Steps(VecEnv),
    Episodes(Source),
}

fn learn(run: &mut Run<'_>, report: &mut Report<'_>) -> Result<(), Error> {
    let (settings, validation) = (run.settings, run.validation);
    let mut arena = match settings.train.learner {
        Learner::Ppo => {
            let mode = AutoresetMode::SameStep;
            Arena::Steps(VecEnv::new(&settings.env, settings.num_envs, mode).map_err(env_error)?)
        }
        Learner::Evolution => Arena::Episodes(Source::open(&settings.env).map_err(env_error)?),
    };
    let total = settings.train.num_updates;
    while !run.trainer.is_finished() {
        let frames_per_s = match &mut arena {
            Arena::Steps(envs) => run.update(envs)?,
            Arena::Episodes(source) => run.evolve(source)?,
        };
        let done = run.trainer.num_updates();
        let due = settings.validate_every > 0 && done.is_multiple_of(settings.validate_every);
        if due || done == total {
            run.validate()?;
        }
        if done.is_multiple_of(settings.checkpoint_every) || done == total {
            run.save()?;
        }
        let ratio = run.curve.last().map_or(f64::NAN, |point| point.ratio);
        report(
            done,
            total,
            format!(
                "JCT {ratio:.3} of {}, {frames_per_s:.0} frames/s",
                validation.best()
            ),
        );
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
}

impl<'a> Run<'a> {
    fn open(
        settings: &'a TrainSettings,
        validation: &'a Validation,
        seed: u64,
        folder: &'a Path,
        clock: &'a dyn Fn() -> f64,
    ) -> Result<Run<'a>, Error> {
        let named = |name: &str| match name {
            "none" => None,
            "best" => Some(validation.best().to_string()),
            name => Some(name.to_string()),
        };
        let prior = named(&settings.prior);
        let teacher = named(&settings.warm_start).filter(|_| prior.is_none());
        let latest = Checkpoint::latest_good(&folder.join(CHECKPOINTS)).map_err(agent_error)?;
        let resumed = latest.good.is_some();
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
                let trainer = Trainer::new(settings.train, contract, Seed(seed).child("training", 0));
                (trainer.map_err(agent_error)?.on(settings.device), 0)
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
        let mut teacher = Contestant::heuristic(teacher)?.policy()?;
        let settings = self.settings;
        let mut envs =
            VecEnv::new(&settings.env, settings.num_envs, AutoresetMode::SameStep).map_err(env_error)?;
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
                Ok((taught, envs.choice_of(index, &mut clone)?))
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

    /// One generation of evolution strategies; gives decided passes per second.
    fn evolve(&mut self, source: &Source) -> Result<f64, Error> {
        let (started_s, settings) = ((self.clock)(), self.settings);
        let num_workloads = settings.train.evolution.num_workloads;
        let stats = self.trainer.evolve(|members, seed| {
            let arena = (source, &settings.env);
            fitness::of_population(arena, &settings.objective, num_workloads, members, seed)
        })?;
        let frames_per_s = self.frames_per_s(started_s, stats.num_frames);
        self.logger
            .generation(&stats, (self.clock)(), frames_per_s)
            .map_err(agent_error)?;
        Ok(frames_per_s)
    }

    fn frames_per_s(&mut self, started_s: f64, num_frames: u64) -> f64 {
        let new = num_frames - self.num_frames;
        self.num_frames = num_frames;
        new as f64 / ((self.clock)() - started_s).max(1e-9)
    }

    fn validate(&mut self) -> Result<(), Error> {
        let policy = self.trainer.policy().map_err(agent_error)?;
        let (ratio, means) = self
            .validation
            .judge(&self.settings.env, Contestant::network("network", policy))?;
        let point = CurvePoint {
            update: self.trainer.num_updates(),
            num_frames: self.num_frames,
            ratio,
        };
        self.curve.push(point);
        if self.trainer.note_evaluation(-ratio.ln()) {
            self.trainer
                .checkpoint()
                .save(&self.folder.join(BEST_CHECKPOINT))
                .map_err(agent_error)?;
        }
        let mut figures = vec![("ratio_to_best_heuristic".to_string(), ratio)];
        figures.extend(means);
        let histograms = self.trainer.histograms().map_err(agent_error)?;
        let (logger, now_unix_s) = (&mut self.logger, (self.clock)());
        logger
            .evaluation(self.num_frames, now_unix_s, &figures)
            .and_then(|()| logger.histograms(self.num_frames, now_unix_s, &histograms))
            .map_err(agent_error)
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
        let policy = LearnedPolicy::load(&self.folder.join(BEST_CHECKPOINT)).map_err(agent_error)?;
        Ok(Trained {
            policy: policy.named("network"),
            curve: self.curve,
            teacher: self.teacher,
        })
    }
}

#[cfg(test)]
mod tests {
    use pleach_agents::trainer::TrainConfig;

    use super::*;
    use crate::commands::train::env_of;
    use crate::contest::contest;

    #[test]
    fn dagger_asks_the_teacher_about_what_its_clone_runs_into() {
        let mut settings = settings(Learner::Ppo);
        settings.prior = "none".into();
        settings.warm_start = "sjf".into();
        settings.warm_start_steps = 40;
        let ratio = |rounds: u32| {
            let folder = tempfile::tempdir().unwrap();
            let mut settings = settings.clone();
            settings.dagger_rounds = rounds;
            let trained = trained(&settings, folder.path());
            let latest = Checkpoint::latest_good(&folder.path().join(CHECKPOINTS)).unwrap();
            (trained.curve[0].ratio, latest.good.unwrap().1.parameters)
        };
        let ((once, first), (corrected, second)) = (ratio(0), ratio(3));
        assert_ne!(first, second, "three rounds taught nothing");
        assert!(
            corrected.is_finite() && corrected < once * 1.1,
            "{corrected} {once}"
        );
    }

    fn settings(learner: Learner) -> TrainSettings {
        let plain = TrainSettings::default();
        TrainSettings {
            env: env_of("Pleach/Philly-v0", Some(40), Some(2.0)).unwrap(),
            num_envs: 4,
            prior: "sjf-reserve".into(),
            prior_weight: 0.1,
            num_validation: 3,
            train: TrainConfig {
                learner,
                num_updates: 0,
                group_size: 2,
                num_steps: 64,
                ..plain.train
            },
            ..plain
        }
    }

    fn trained(settings: &TrainSettings, folder: &Path) -> Trained {
        let validation = Validation::new(&settings.env, 1, settings.num_validation).unwrap();
        train(settings, &validation, 1, folder, &|| 0.0, &mut |_, _, _| {}).unwrap()
    }

    #[test]
    fn a_network_that_corrects_a_heuristic_begins_as_that_heuristic_run_for_run() {
        for learner in [Learner::Ppo, Learner::Evolution] {
            let (settings, folder) = (settings(learner), tempfile::tempdir().unwrap());
            let network = Contestant::network("learned", trained(&settings, folder.path()).policy);
            let both = [Contestant::heuristic("sjf-reserve").unwrap(), network];
            let validation = Validation::new(&settings.env, 1, 3).unwrap();
            let runs = contest(&validation.bouts, &both, &settings.env.sim, &|| {}).unwrap();
            for pair in runs.chunks(2) {
                assert_eq!(pair[0].jct_s, pair[1].jct_s);
            }
        }
    }

    #[test]
    fn both_learners_move_away_from_it_and_repeat_themselves() {
        for learner in [Learner::Ppo, Learner::Evolution] {
            let mut settings = settings(learner);
            settings.train.num_updates = 2;
            settings.train.value_warmup_updates = 0;
            settings.train.evolution.num_pairs = 3;
            // So wide that members differ even on a few short lists.
            settings.train.evolution.sigma = 2.0;
            settings.train.evolution.num_workloads = 2;
            let run = || {
                let folder = tempfile::tempdir().unwrap();
                trained(&settings, folder.path());
                let latest = Checkpoint::latest_good(&folder.path().join(CHECKPOINTS)).unwrap();
                latest.good.unwrap().1
            };
            let (first, again) = (run(), run());
            assert_eq!(first, again);
            assert_eq!((first.update, first.contract.prior.is_some()), (2, true));
            // The end of the pointer began at zero, which is no correction at all.
            let layout =
                pleach_agents::parameters::Layout::new(first.config.network, first.contract.spaces).unwrap();
            let end = layout
                .entries
                .iter()
                .find(|entry| entry.name == "pointer.out.weight");
            assert!(
                first.parameters[end.unwrap().range.clone()]
                    .iter()
                    .any(|w| *w != 0.0)
            );
        }
    }
}
