//! A unit: a process that plays a part of every generation of a training that another process leads.

use std::path::Path;
use std::thread::sleep;

use pleach_agents::{Checkpoint, Trainer};
use pleach_env::{EnvConfig, Source};
use pleach_scheduler::Problem;
use serde::Serialize;

use super::part::Part;
use super::population::{Bounded, Generation, Play, policies};
use super::settings::TrainSettings;
use super::settings_file;
use super::task::Task;
use super::units::{
    Begun, EXCHANGE_BYTES_MAX, Headed, POLL, STATE_FILE, TASK_FILE, UNITS, begun_file, part_file, program,
};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::progress::Watcher;
use crate::run_folder::hash::hash_file;
use crate::run_folder::{ARTEFACTS_FILE, SETTINGS_FILE, atomic_file};

/// How long a unit waits for a task before it gives up, s. *Assumed.*
const IDLE_S: f64 = 600.0;

/// The run as a unit knows it.
struct Known {
    settings: TrainSettings,
    /// Hex SHA-256 of its file.
    hash: String,
    /// What is played at a stage of the curriculum.
    arena: Option<(u64, Source, EnvConfig)>,
}

impl Known {
    fn read(folder: &Path) -> Result<Known, Error> {
        let file = folder.join(SETTINGS_FILE);
        let (_, hash) = hash_file(&file).map_err(|source| Error::io("read", &file, source))?;
        let settings = settings_file::read(&file)?;
        settings.validate()?;
        Ok(Known {
            settings: settings.narrowed(),
            hash,
            arena: None,
        })
    }

    /// Plays a part.
    fn play(&mut self, task: &Task, unit: usize, checkpoint: Checkpoint) -> Result<Vec<Play>, Error> {
        let trainer = Trainer::resume(checkpoint)?;
        let settings = &self.settings;
        let stage = settings.stage(trainer.num_updates());
        let is_open = self
            .arena
            .as_ref()
            .is_some_and(|(of_stage, ..)| *of_stage == stage);
        if !is_open {
            let env = settings.curriculum.env_of(&settings.env, stage);
            self.arena = Some((stage, Source::open(&env)?, env));
        }
        let Some((_, source, env)) = &self.arena else {
            return Err(Error::Failed("the environment is not open".into()));
        };
        let (networks, seed) = trainer.population()?;
        let members = policies(trainer.contract(), &networks)?;
        let baseline = task.baseline.as_deref().map(PolicySpec::heuristic).transpose()?;
        let present = trainer.policy()?;
        let bounded = baseline.as_ref().map(|baseline| Bounded {
            constraint: &settings.constraint,
            baseline,
            multipliers: trainer.multipliers(),
            present: &present,
        });
        let generation = Generation {
            source,
            env,
            objective: &settings.objective,
            num_workloads: settings.train.evolution.num_workloads,
            members: &members,
            bounded,
            seed,
        };
        if generation.num_plays() != task.num_plays {
            return Err(Error::Failed(format!(
                "the generation has {} plays here and {} in the training process: another version of the program?",
                generation.num_plays(),
                task.num_plays
            )));
        }
        generation.plays(&task.part(unit).collect::<Vec<_>>())
    }
}

/// Plays part `unit` (1 and more; 0 is the training process) of every generation of the run in `folder` until its training has
/// ended. Gives the number of parts played.
///
/// # Errors
/// Settings that cannot be read or that are no longer the run's, a training by another version of the program, a unit that the
/// training does not have, a run that fails;
/// [`Error::Temporary`] where no training process has given work for ten minutes; [`Error::Stopped`] where `watcher` asked.
pub fn play_unit(
    folder: &Path,
    unit: usize,
    clock: &dyn Fn() -> f64,
    watcher: &Watcher,
) -> Result<usize, Error> {
    let exchange = folder.join(UNITS);
    let (mut known, mut played): (Option<Known>, Option<String>) = (None, None);
    let (mut num_played, mut since_s) = (0, clock());
    loop {
        if folder.join(ARTEFACTS_FILE).is_file() {
            return Ok(num_played);
        }
        if let Some(stopped) = watcher.asked_to_stop(num_played as u64, u64::MAX) {
            return Err(Error::Stopped {
                signal: stopped.signal,
                message: format!(
                    "unit {unit} was stopped after {num_played} parts; the training goes on without it"
                ),
            });
        }
        let Some(task) = task_in(&exchange)?.filter(|task| played.as_ref() != Some(&task.state)) else {
            if clock() - since_s > IDLE_S {
                let (folder, limit) = (folder.display(), IDLE_S);
                let message =
                    format!("no generation to play in {folder} for {limit} s: does its training run?");
                return Err(Error::Temporary(message));
            }
            sleep(POLL);
            continue;
        };
        since_s = clock();
        let known = match &mut known {
            Some(known) => known,
            none => none.insert(Known::read(folder)?),
        };
        check(&task, unit, known, folder)?;
        let file = exchange.join(STATE_FILE);
        let hash = hash_file(&file).map(|(_, hash)| hash).unwrap_or_default();
        let Ok(checkpoint) = Checkpoint::load(&file) else {
            sleep(POLL);
            continue;
        };
        // The training process may be a generation further by now.
        if hash != task.state || checkpoint.update != task.generation {
            sleep(POLL);
            continue;
        }
        let begun = Begun {
            state: task.state.clone(),
        };
        put(&exchange, &begun_file(&exchange, unit), &begun)?;
        let plays = known.play(&task, unit, checkpoint)?;
        put(&exchange, &part_file(&exchange, unit), &Part::of(&task, &plays))?;
        played = Some(task.state);
        num_played += 1;
    }
}

/// What is to be played; none where nothing can be read.
fn task_in(exchange: &Path) -> Result<Option<Task>, Error> {
    let Ok(text) = atomic_file::read_text(&exchange.join(TASK_FILE), EXCHANGE_BYTES_MAX) else {
        return Ok(None);
    };
    match serde_json::from_str::<Headed>(&text) {
        Ok(headed) if headed.program != program() => Err(Problem::contract(
            "program of the training",
            program(),
            headed.program,
            "Units play with the program of their training: start this one with that version.",
        )
        .into()),
        Ok(_) => Ok(serde_json::from_str(&text).ok()),
        Err(_) => Ok(None),
    }
}

/// Writes a file of the exchange; nothing where the training has ended meanwhile.
fn put(exchange: &Path, file: &Path, value: &impl Serialize) -> Result<(), Error> {
    match atomic_file::write_compact_json(file, value) {
        Err(_) if !exchange.is_dir() => Ok(()),
        written => written,
    }
}

/// Whether the task is of the run that the unit knows, and has a part for it.
fn check(task: &Task, unit: usize, known: &Known, folder: &Path) -> Result<(), Error> {
    Error::refuse_if(
        !(1..task.num_units).contains(&unit),
        "unit",
        unit,
        format_args!("1 to {}", task.num_units.saturating_sub(1)),
        "The training process was begun with --units, which counts itself.",
    )?;
    Error::refuse_if(
        task.settings != known.hash,
        "out",
        folder.display(),
        "a run whose settings stay as they are",
        "It was begun anew with others: start the unit again.",
    )?;
    Ok(())
}
