//! A training run in a folder: imitation of a heuristic, then PPO, with validation, checkpoints and logs, resumable.
//!
//! The streams of seeds are separate: `training` draws what the learner plays, `validation` what the best network is
//! chosen on, `test` what is reported. Resumed after a kill, a run ends in the same bytes.

use std::path::Path;

use pleach_agents::checkpoint::Checkpoint;
use pleach_agents::contract::Contract;
use pleach_agents::imitation::Demonstrations;
use pleach_agents::log::Logger;
use pleach_agents::policy::LearnedPolicy;
use pleach_agents::ppo::PpoConfig;
use pleach_agents::trainer::{TrainConfig, Trainer};
use pleach_env::config::EnvConfig;
use pleach_env::seed::Seed;
use pleach_env::vec_env::VecEnv;
use pleach_env::vector::AutoresetMode;
use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::contest::{Bout, contest};
use crate::contestant::{BEST_CHECKPOINT, Contestant};
use crate::error::Error;
use crate::metric::MAIN_METRIC;
use crate::results::PolicyRun;
use crate::scenario::{env_error, episodes, seeds};

/// Folder of the numbered checkpoints within a run.
const CHECKPOINTS: &str = "checkpoints";
/// History of validation within a run.
const VALIDATION_FILE: &str = "validation.json";
/// Largest history, bytes.
const VALIDATION_BYTES_MAX: u64 = 64 << 20;

/// Everything that shapes a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Environments that step together.
    pub num_envs: usize,
    /// Whom to imitate first: a heuristic's name, `best` for the best one on the validation workloads, `none`.
    pub warm_start: String,
    /// Steps of each environment that are shown by the one imitated.
    pub warm_start_steps: usize,
    /// Workloads on which the best network is chosen.
    pub num_validation: usize,
    /// Updates between validations; 0 for one at the end only.
    pub validate_every: u64,
    /// Updates between checkpoints.
    pub checkpoint_every: u64,
    /// Numbered checkpoints that are kept.
    pub keep_last: usize,
    /// The learner.
    pub train: TrainConfig,
    /// The environment.
    pub env: EnvConfig,
}

/// *Assumed*, by trial on `Pleach/Philly-v0`. What mattered: whole episodes in a rollout (`num_steps`), a horizon that is
/// long against the longest job (with a short one, starving a gang is worth it), a value of `gae_lambda` near 1, and little
/// entropy: deployed policies take the likeliest candidate, which in a spread-out policy is too often to hold, because
/// the chance of starting is split among many starts.
impl Default for TrainSettings {
    fn default() -> TrainSettings {
        TrainSettings {
            num_envs: 32,
            warm_start: "best".into(),
            warm_start_steps: 1000,
            num_validation: 64,
            validate_every: 5,
            checkpoint_every: 10,
            keep_last: 3,
            train: TrainConfig {
                num_steps: 1024,
                group_size: 16,
                horizon_s: 200_000.0,
                gae_lambda: 0.98,
                value_warmup_updates: 3,
                ppo: PpoConfig {
                    entropy_coef: 0.002,
                    learning_rate: 5e-4,
                    ..PpoConfig::default()
                },
                ..TrainConfig::default()
            },
            env: EnvConfig::default(),
        }
    }
}

impl TrainSettings {
    /// The same without candidates that the cluster never offers, so that the network's contract asks for none of a kind
    /// that it has not met in training.
    #[must_use]
    pub fn narrowed(&self) -> TrainSettings {
        let mut settings = self.clone();
        let capabilities = self.env.sim.capabilities;
        settings.env.candidates.preempt &= capabilities.preemption;
        settings.env.candidates.reserve &= capabilities.reservation;
        settings
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        self.env.validate().map_err(env_error)?;
        self.train.check().map_err(agent_error)?;
        let numbers = [
            ("num_envs", self.num_envs as u64, 1..=65_536),
            ("warm_start_steps", self.warm_start_steps as u64, 1..=1_000_000),
            ("num_validation", self.num_validation as u64, 1..=10_000),
            ("checkpoint_every", self.checkpoint_every, 1..=1_000_000),
            ("keep_last", self.keep_last as u64, 1..=1_000),
        ];
        for (key, value, range) in numbers {
            if !range.contains(&value) {
                let allowed = format!("{} to {}", range.start(), range.end());
                return Err(Error::config(
                    key,
                    value,
                    allowed,
                    "Leave it out for the default.",
                ));
            }
        }
        Ok(())
    }
}

/// Turns a learner's error into ours.
#[must_use]
pub fn agent_error(error: pleach_agents::error::Error) -> Error {
    match error {
        pleach_agents::error::Error::Config { key, value, allowed } => {
            Error::config(key, value, allowed, "See docs/learning.md.")
        }
        pleach_agents::error::Error::Env(error) => env_error(error),
        other => Error::Failed(other.to_string()),
    }
}

/// Workloads on which policies are chosen, and what the heuristics do there.
#[derive(Clone, Debug)]
pub struct Validation {
    /// The workloads.
    pub bouts: Vec<Bout>,
    /// Heuristics with their geometric mean of average JCT, s, best first.
    pub ranking: Vec<(String, f64)>,
    /// Average JCT of the best heuristic on each workload, s.
    pub base_jct_s: Vec<f64>,
}

impl Validation {
    /// Draws the workloads and runs all heuristics on them.
    ///
    /// # Errors
    /// Where a workload or a run fails.
    pub fn new(env: &EnvConfig, seed: u64, num: usize) -> Result<Validation, Error> {
        let bouts = episodes(env, &seeds(seed, "validation", num))?;
        let heuristics = Contestant::open_all(&[])?;
        let runs = contest(&bouts, &heuristics, &env.sim, &|| {})?;
        let mut ranking: Vec<(String, f64)> = heuristics
            .iter()
            .map(|heuristic| {
                (
                    heuristic.name().to_string(),
                    geometric_mean(&jct_s_of(&runs, heuristic.name())),
                )
            })
            .collect();
        ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
        let base_jct_s = jct_s_of(&runs, &ranking[0].0);
        Ok(Validation {
            bouts,
            ranking,
            base_jct_s,
        })
    }

    /// The best heuristic.
    #[must_use]
    pub fn best(&self) -> &str {
        &self.ranking[0].0
    }

    /// Geometric mean over the workloads of a policy's average JCT over the best heuristic's; below 1 is better.
    ///
    /// # Errors
    /// Where a run fails.
    pub fn ratio(&self, env: &EnvConfig, contestant: Contestant) -> Result<f64, Error> {
        let runs = contest(&self.bouts, std::slice::from_ref(&contestant), &env.sim, &|| {})?;
        let jct_s = jct_s_of(&runs, contestant.name());
        let ratios: Vec<f64> = jct_s
            .iter()
            .zip(&self.base_jct_s)
            .map(|(own, base)| own / base)
            .collect();
        Ok(geometric_mean(&ratios))
    }
}

fn jct_s_of(runs: &[PolicyRun], policy: &str) -> Vec<f64> {
    runs.iter()
        .filter(|run| run.policy == policy)
        .map(|run| run.metrics[MAIN_METRIC])
        .collect()
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}

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
    let mut envs =
        VecEnv::new(&settings.env, settings.num_envs, AutoresetMode::SameStep).map_err(env_error)?;
    let total = settings.train.num_updates;
    while !run.trainer.is_finished() {
        let (started_s, frames) = (clock(), run.num_frames);
        let stats = run.trainer.update(&mut envs).map_err(agent_error)?;
        let elapsed_s = (clock() - started_s).max(1e-9);
        run.num_frames = stats.num_frames;
        let frames_per_s = (stats.num_frames - frames) as f64 / elapsed_s;
        run.logger
            .update(&stats, clock(), frames_per_s)
            .map_err(agent_error)?;
        let done = run.trainer.num_updates();
        let due = settings.validate_every > 0 && done % settings.validate_every == 0;
        if due || done == total {
            run.validate()?;
        }
        if done % settings.checkpoint_every == 0 || done == total {
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
    run.finish()
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
        let teacher = match settings.warm_start.as_str() {
            "none" => None,
            "best" => Some(validation.best().to_string()),
            name => Some(name.to_string()),
        };
        let latest = Checkpoint::latest_good(&folder.join(CHECKPOINTS)).map_err(agent_error)?;
        let resumed = latest.good.is_some();
        let (trainer, num_frames) = match latest.good {
            Some((_, checkpoint)) => {
                let num_frames = checkpoint.num_frames;
                (Trainer::resume(checkpoint).map_err(agent_error)?, num_frames)
            }
            None => {
                let trained_on = serde_json::to_string(&settings.env).unwrap_or_default();
                let contract = Contract::current(settings.env.spaces(), settings.env.candidates, trained_on);
                (
                    Trainer::new(settings.train, contract, Seed(seed).child("training", 0))
                        .map_err(agent_error)?,
                    0,
                )
            }
        };
        let mut curve: Vec<CurvePoint> = Vec::new();
        let history = folder.join(VALIDATION_FILE);
        if resumed && history.exists() {
            curve = atomic_file::read_json(&history, VALIDATION_BYTES_MAX)?;
            curve.retain(|point| point.update <= trainer.num_updates());
        }
        let logger = Logger::open(folder, num_frames, clock()).map_err(agent_error)?;
        let mut run = Run {
            settings,
            clock,
            validation,
            folder,
            trainer,
            logger,
            curve,
            num_frames,
            teacher,
        };
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
        let seed = Seed(seed).child("imitation", 0);
        let shown =
            Demonstrations::collect(&mut envs, seed, num_steps, horizon_s, show).map_err(agent_error)?;
        self.trainer.warm_start(&shown).map_err(agent_error)?;
        Ok(())
    }

    fn validate(&mut self) -> Result<(), Error> {
        let policy = self.trainer.policy().map_err(agent_error)?;
        let ratio = self
            .validation
            .ratio(&self.settings.env, Contestant::network("ppo", policy))?;
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
        let figures = [("ratio_to_best_heuristic".to_string(), ratio)];
        self.logger
            .evaluation(self.num_frames, (self.clock)(), &figures)
            .map_err(agent_error)
    }

    fn save(&mut self) -> Result<(), Error> {
        atomic_file::write_json(&self.folder.join(VALIDATION_FILE), &self.curve)?;
        let folder = self.folder.join(CHECKPOINTS);
        self.trainer
            .checkpoint()
            .save_numbered(&folder, self.settings.keep_last)
            .map_err(agent_error)?;
        Ok(())
    }

    fn finish(self) -> Result<Trained, Error> {
        let policy = LearnedPolicy::load(&self.folder.join(BEST_CHECKPOINT)).map_err(agent_error)?;
        Ok(Trained {
            policy: policy.named("ppo"),
            curve: self.curve,
            teacher: self.teacher,
        })
    }
}
