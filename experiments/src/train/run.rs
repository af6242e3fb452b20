//! A run: how it begins or goes on, and its updates.

use std::path::Path;

use pleach_agents::learner::{Play, Stats, way};
use pleach_agents::{Checkpoint, Demonstrations, Device, Error as AgentError, Logger, Trainer};
use pleach_env::{AutoresetMode, EnvConfig, Seed, Source, VecEnv};
use pleach_network::{Contract, Inference, Prior};

use super::curve::CurvePoint;
use super::extend;
use super::trained::{CHECKPOINTS, VALIDATION_BYTES_MAX, VALIDATION_FILE};
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::results::PolicyRun;
use crate::progress::{Progress, Watcher};
use crate::run_folder::atomic_file;
use crate::train::fine_tuning::network_at;
use crate::train::imitation;
use crate::train::population::{Bounded, Generation, policies};
use crate::train::settings::TrainSettings;
use crate::train::units::Units;
use crate::train::validation::Validation;

pub(super) struct Run<'a> {
    pub(super) settings: &'a TrainSettings,
    pub(super) clock: &'a dyn Fn() -> f64,
    pub(super) validation: &'a Validation,
    pub(super) folder: &'a Path,
    pub(super) trainer: Trainer,
    pub(super) logger: Logger,
    pub(super) curve: Vec<CurvePoint>,
    pub(super) num_frames: u64,
    /// Updates that the newest checkpoint holds.
    pub(super) num_saved: u64,
    pub(super) teacher: Option<String>,
    pub(super) bounds: Option<Bounds>,
    /// The other processes that play generations with this one.
    pub(super) units: Option<Units>,
}

/// The policy that the bounds are measured against, and its runs on the validation workloads.
pub(super) struct Bounds {
    pub(super) baseline: PolicySpec,
    pub(super) runs: Vec<PolicyRun>,
}

impl Bounds {
    fn of(heuristic: &str, settings: &TrainSettings, validation: &Validation) -> Result<Bounds, Error> {
        let baseline = PolicySpec::heuristic(heuristic)?;
        let runs = validation.runs(&settings.env, &baseline)?;
        Ok(Bounds { baseline, runs })
    }
}

impl<'a> Run<'a> {
    pub(super) fn open(
        settings: &'a TrainSettings,
        validation: &'a Validation,
        seed: u64,
        folder: &'a Path,
        clock: &'a dyn Fn() -> f64,
        watcher: &Watcher,
    ) -> Result<Run<'a>, Error> {
        let named = |name: &str| match name {
            "none" => None,
            "best" => Some(validation.best().to_string()),
            names if names.contains(',') => validation.best_of(names).map(String::from),
            name => Some(name.to_string()),
        };
        let prior = named(&settings.prior);
        let teacher = named(&settings.warm_start).filter(|_| prior.is_none());
        let bounds = if settings.constraint.is_empty() {
            None
        } else {
            let name = match settings.constraint.baseline.as_str() {
                "prior" => prior.clone().or_else(|| named("best")),
                name => named(name),
            };
            Some(Bounds::of(&name.unwrap_or_default(), settings, validation)?)
        };
        extend::adopt_length(folder, settings.train.num_updates)?;
        let latest = Checkpoint::latest_good(&folder.join(CHECKPOINTS))?;
        let resumed = latest.good.is_some();
        for damaged in &latest.passed_over {
            let from = latest
                .good
                .as_ref()
                .map_or("the beginning".to_string(), |(path, _)| {
                    path.display().to_string()
                });
            let line = format!("passed over: {damaged}; going on from {from}");
            watcher.tell(Progress::Note(&line));
        }
        let (trainer, num_frames) = match latest.good {
            Some((path, checkpoint)) => {
                Checkpoint::remove_before(&path, settings.keep_last)?;
                let num_frames = checkpoint.num_frames;
                let trainer = Trainer::resume(checkpoint)?;
                (trainer.on(settings.device), num_frames)
            }
            None => {
                let trained_on = serde_json::to_string(&settings.env).unwrap_or_default();
                let mut contract =
                    Contract::current(settings.env.spaces(), settings.env.candidates, trained_on);
                let weight = settings.prior_weight;
                contract.prior = prior.map(|policy| Prior { policy, weight });
                let seed = Seed(seed).child("training", 0);
                let mut trainer = Trainer::new(settings.train, contract, seed)?;
                if let Some(place) = &settings.fine_tune {
                    trainer.go_on_from(&network_at(place)?)?;
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
        let mut logger = Logger::open(folder, resumed.then_some(num_frames), clock())?;
        let mut all = serde_json::to_value(settings).unwrap_or_default();
        all["seed"] = seed.into();
        if settings.device != Device::Cpu {
            all["device"] = settings.device.name().into();
        }
        logger.settings(&all, clock())?;
        let baseline = bounds.as_ref().map(|bounds| &bounds.baseline);
        let units = Units::open(folder, settings.num_units, baseline)?;
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
            units,
        };
        run.num_saved = run.trainer.num_updates();
        if resumed {
            run.check_kept(seed, watcher)?;
        } else {
            run.imitate(seed)?;
            run.validate()?;
            run.save()?;
        }
        Ok(run)
    }

    pub(super) fn imitate(&mut self, seed: u64) -> Result<(), Error> {
        let Some(teacher) = &self.teacher else {
            return Ok(());
        };
        let settings = self.settings;
        let mut envs = VecEnv::new(&settings.env, settings.num_envs, AutoresetMode::SameStep)?;
        if DOOR.find(teacher).is_some() {
            let shown =
                imitation::of_planner(teacher, &mut envs, settings, Seed(seed).child("imitation", 0))?;
            self.trainer.warm_start(&shown)?;
            return Ok(());
        }
        let mut teacher = DOOR.open_one(teacher)?.policy()?;
        let show = |envs: &mut VecEnv, index: usize, _: &_| Ok(envs.choice_of(index, &mut *teacher)?);
        let (num_steps, horizon_s) = (settings.warm_start_steps, settings.train.horizon_s);
        let of_round = |round: u32| Seed(seed).child("imitation", u64::from(round));
        let mut shown = Demonstrations::collect(&mut envs, of_round(0), num_steps, horizon_s, show)?;
        self.trainer.warm_start(&shown)?;
        for round in 1..=settings.dagger_rounds {
            let mut clone = self.trainer.policy()?;
            let both = |envs: &mut VecEnv, index: usize, _: &_| {
                let taught = envs.choice_of(index, &mut *teacher)?;
                Ok((Some(taught), envs.choice_of(index, &mut clone)?))
            };
            let said = Demonstrations::correct(&mut envs, of_round(round), num_steps, horizon_s, both);
            shown.extend(&said?);
            self.trainer.warm_start(&shown)?;
        }
        Ok(())
    }

    /// One update; gives frames per second.
    pub(super) fn update(&mut self, play: Play<'_>) -> Result<f64, Error> {
        let started_s = (self.clock)();
        let stats = way(self.settings.train.learner).update(&mut self.trainer, play)?;
        self.noted(&stats, started_s)
    }

    fn noted(&mut self, stats: &Stats, started_s: f64) -> Result<f64, Error> {
        let frames_per_s = self.frames_per_s(started_s, stats.num_frames());
        self.logger.update(stats, (self.clock)(), frames_per_s)?;
        Ok(frames_per_s)
    }

    /// The stage of the curriculum that the next update is of; always the same without one.
    pub(super) fn stage(&self) -> u64 {
        self.settings.stage(self.trainer.num_updates())
    }

    /// One update from episodes; gives what there is to say of the bounds, and decided passes per second.
    pub(super) fn evolve(
        &mut self,
        source: &Source,
        env: &EnvConfig,
    ) -> Result<(Vec<(String, f64)>, f64), Error> {
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
        let checkpoint = self.units.is_some().then(|| self.trainer.checkpoint());
        let (mut units, clock) = (self.units.as_mut(), self.clock);
        let contract = self.trainer.contract().clone();
        let mut played = |networks: &[Inference], seed: Seed| {
            let members = policies(&contract, networks)?;
            let generation = Generation {
                source,
                env,
                objective: &settings.objective,
                num_workloads,
                members: &members,
                bounded,
                seed,
            };
            let plays = match (&mut units, &checkpoint) {
                (Some(units), Some(checkpoint)) => units.play(&generation, checkpoint, clock)?,
                _ => generation.plays(&generation.all())?,
            };
            let judged = generation.judge(&plays);
            excess = judged.excess;
            Ok::<_, Error>((judged.fitness, judged.num_passes))
        };
        let mut judge = |networks: &[Inference], seed: Seed| played(networks, seed).map_err(AgentError::from);
        let learner = way(settings.train.learner);
        let stats = learner.update(&mut self.trainer, Play::Episodes(&mut judge))?;
        let multipliers = constraint.stepped(&multipliers, &excess);
        let mut figures = Vec::new();
        for (key, (excess, multiplier)) in constraint.metrics.keys().zip(excess.iter().zip(&multipliers)) {
            figures.push((format!("losses/excess_{key}"), *excess));
            figures.push((format!("losses/multiplier_{key}"), *multiplier));
        }
        self.trainer.set_multipliers(multipliers);
        Ok((figures, self.noted(&stats, started_s)?))
    }

    fn frames_per_s(&mut self, started_s: f64, num_frames: u64) -> f64 {
        let new = num_frames - self.num_frames;
        self.num_frames = num_frames;
        new as f64 / ((self.clock)() - started_s).max(1e-9)
    }
}
