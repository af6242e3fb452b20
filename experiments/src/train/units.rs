//! A generation that several processes play together. Members are seeds, so only a checkpoint goes out and figures come back.
//!
//! The training process writes the state before the generation to `units/` in the run's folder, plays its part, and reads those
//! of the others. It plays every part that does not come itself: a unit that is killed costs time and nothing else, and the
//! bytes of the run are those of one process. Nothing but the folder is shared, so units may run wherever it can be seen.
//!
//! An answer is checked and a share of it is played again ([`part`](super::part)): a unit of another program, with other settings
//! or on a machine that computes otherwise ends the training with an error. This is against mishaps. A user that can write to the
//! folder can write its checkpoints too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use pleach_agents::Checkpoint;
use serde::{Deserialize, Serialize};

use super::part::{self, Limits, Part};
use super::population::{Generation, Play};
use super::task::Task;
use crate::door::PolicySpec;
use crate::error::Error;
pub(super) use crate::run_folder::EXCHANGE as UNITS;
use crate::run_folder::hash::hash_file;
use crate::run_folder::{SETTINGS_FILE, atomic_file};

/// The state before a generation.
pub(super) const STATE_FILE: &str = "generation.ckpt";
/// What is to be played.
pub(super) const TASK_FILE: &str = "task.json";
/// Largest file of the exchange but the state, bytes; a play takes some hundred.
pub(super) const EXCHANGE_BYTES_MAX: u64 = 64 << 20;
/// Between two looks at the folder.
pub(super) const POLL: Duration = Duration::from_millis(20);
/// How often the exchange is tried to be removed.
const CLOSE_TRIES: usize = 50;
/// How long the process waits for a part that has not been begun, s, unless its unit did not come the last time either.
/// *Assumed.*
const BEGIN_S: f64 = 2.0;
/// How long the process waits for a part that was begun: so many times as long as its own took, and at least so many seconds.
/// *Assumed.*
const PATIENCE: f64 = 3.0;
const PATIENCE_MIN_S: f64 = 10.0;

/// Version of the exchange: counted up where a play, its number or its figures come to mean something else.
const EXCHANGE_VERSION: u32 = 2;

/// The program that plays, by its version and that of the exchange.
pub(super) fn program() -> String {
    format!(
        "pleach {}, exchange {EXCHANGE_VERSION}",
        env!("CARGO_PKG_VERSION")
    )
}

fn first_version() -> String {
    "the first version of the exchange".to_string()
}

/// Of what program a task is; read before the rest of it, which another version may not know.
#[derive(Debug, Deserialize)]
pub(super) struct Headed {
    /// As in the [`Task`].
    #[serde(default = "first_version")]
    pub(super) program: String,
}

/// That a unit has begun its part of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begun {
    pub(super) state: String,
}

/// The file in which a unit says that it has begun.
pub(super) fn begun_file(folder: &Path, unit: usize) -> PathBuf {
    folder.join(format!("begun-{unit}.json"))
}

/// The file with a unit's part.
pub(super) fn part_file(folder: &Path, unit: usize) -> PathBuf {
    folder.join(format!("part-{unit}.json"))
}

/// Ends the exchange of a run, if there was one.
///
/// # Errors
/// A folder that cannot be removed.
pub(super) fn close(run: &Path) -> Result<(), Error> {
    let folder = run.join(UNITS);
    for _ in 0..CLOSE_TRIES {
        // A unit may write while its file's folder is being removed.
        if !folder.exists() || std::fs::remove_dir_all(&folder).is_ok() {
            return Ok(());
        }
        sleep(POLL);
    }
    std::fs::remove_dir_all(&folder).map_err(|source| Error::io("remove", &folder, source))
}

/// The units of a training, as its process sees them.
#[derive(Debug)]
pub(super) struct Units {
    folder: PathBuf,
    settings: String,
    baseline: Option<String>,
    /// Whether each came the last time. `[unit]`
    is_here: Vec<bool>,
}

impl Units {
    /// For a run in `folder` whose settings are written; `num_units` counts the training process, which is unit 0. None where
    /// that is alone.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub(super) fn open(
        folder: &Path,
        num_units: usize,
        baseline: Option<&PolicySpec>,
    ) -> Result<Option<Units>, Error> {
        if num_units <= 1 {
            return Ok(None);
        }
        let settings = folder.join(SETTINGS_FILE);
        let (_, hash) = hash_file(&settings).map_err(|source| Error::io("read", &settings, source))?;
        let folder = folder.join(UNITS);
        std::fs::create_dir_all(&folder).map_err(|source| Error::io("create", &folder, source))?;
        Ok(Some(Units {
            folder,
            settings: hash,
            baseline: baseline.map(|baseline| baseline.name().to_string()),
            is_here: vec![true; num_units],
        }))
    }

    /// All plays of a generation, in order.
    ///
    /// # Errors
    /// As [`Generation::plays`]; a folder that cannot be written; [`Error::Problem`] where a unit's answer is not one to this
    /// task, has a figure that cannot be, or differs from what is played again.
    pub(super) fn play(
        &mut self,
        generation: &Generation<'_>,
        checkpoint: &Checkpoint,
        clock: &dyn Fn() -> f64,
    ) -> Result<Vec<Play>, Error> {
        let file = self.folder.join(STATE_FILE);
        checkpoint.save(&file)?;
        let (_, state) = hash_file(&file).map_err(|source| Error::io("read", &file, source))?;
        let task = Task {
            program: program(),
            generation: checkpoint.update,
            state,
            settings: self.settings.clone(),
            num_units: self.is_here.len(),
            num_plays: generation.num_plays(),
            baseline: self.baseline.clone(),
        };
        atomic_file::write_compact_json(&self.folder.join(TASK_FILE), &task)?;
        let started_s = clock();
        let own: Vec<usize> = task.part(0).collect();
        let again = |unit: usize| part::replayed(task.part(unit), generation.seed, unit);
        let again: Vec<usize> = (1..task.num_units).flat_map(again).collect();
        let mut plays = generation.plays(&[&own[..], &again].concat())?;
        let own_s = clock() - started_s;
        let replays = again.into_iter().zip(plays.split_off(own.len()));
        let replays: BTreeMap<usize, Play> = replays.collect();
        let constraint = generation.bounded.map(|bounded| bounded.constraint);
        let limits = Limits::of(generation.objective, constraint);
        for unit in 1..task.num_units {
            let numbers = task.part(unit);
            plays.extend(match self.wait_for(&task, unit, own_s, clock) {
                Some(part) => {
                    let checked = part.checked(&task, unit, &limits).and_then(|plays| {
                        let replays = replays.range(numbers.clone());
                        for (number, own) in replays {
                            part::compare(unit, *number, own, &plays[number - numbers.start])?;
                        }
                        Ok(plays)
                    });
                    // What was refused would be refused again when the run goes on; where it stays, its name is in the error.
                    checked.inspect_err(|_| drop(std::fs::remove_file(part_file(&self.folder, unit))))?
                }
                None => generation.plays(&numbers.collect::<Vec<_>>())?,
            });
        }
        Ok(plays)
    }

    /// The part of a unit; none where it does not come.
    fn wait_for(&mut self, task: &Task, unit: usize, own_s: f64, clock: &dyn Fn() -> f64) -> Option<Part> {
        let since_s = clock();
        loop {
            // A file that is damaged or of another state is as good as none.
            let part: Option<Part> =
                atomic_file::read_json(&part_file(&self.folder, unit), EXCHANGE_BYTES_MAX).ok();
            if let Some(part) = part.filter(|part| part.state == task.state) {
                self.is_here[unit] = true;
                return Some(part);
            }
            let begun: Option<Begun> =
                atomic_file::read_json(&begun_file(&self.folder, unit), EXCHANGE_BYTES_MAX).ok();
            let limit_s = match begun {
                Some(begun) if begun.state == task.state => (PATIENCE * own_s).max(PATIENCE_MIN_S),
                _ if self.is_here[unit] => BEGIN_S,
                _ => 0.0,
            };
            if clock() - since_s >= limit_s {
                self.is_here[unit] = false;
                return None;
            }
            sleep(POLL);
        }
    }
}
