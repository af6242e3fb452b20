//! A generation that several processes play together. Members are seeds, so only a checkpoint goes out and figures come back.
//!
//! The training process writes the state before the generation to `units/` in the run's folder, plays its part, and reads those
//! of the others. It plays every part that does not come itself: a unit that is killed costs time and nothing else, and the
//! bytes of the run are those of one process. Nothing but the folder is shared, so units may run wherever it can be seen.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use pleach_agents::Checkpoint;
use serde::{Deserialize, Serialize};

use super::population::{Generation, Play};
use crate::error::Error;
use crate::evaluate::policy_spec::PolicySpec;
use crate::run_folder::hash::hash_file;
use crate::run_folder::{SETTINGS_FILE, atomic_file};

/// Folder of the exchange within a run; it is gone when the training has ended.
pub(super) const UNITS: &str = "units";
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
/// How long a part is waited for that nobody has begun, s, unless its unit did not come the last time either. *Assumed.*
const BEGIN_S: f64 = 2.0;
/// How long a part is waited for that was begun: so many times as long as one's own took, and at least so many seconds.
/// *Assumed.*
const PATIENCE: f64 = 3.0;
const PATIENCE_MIN_S: f64 = 10.0;

/// What is to be played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// Generations made before.
    pub(super) generation: u64,
    /// Hex SHA-256 of the state.
    pub(super) state: String,
    /// Hex SHA-256 of the run's settings.
    pub(super) settings: String,
    /// Parts of the generation, the training process's own among them.
    pub(super) num_units: usize,
    /// Plays of the generation.
    pub(super) num_plays: usize,
    /// The heuristic against which bounds are held, if any are.
    pub(super) baseline: Option<String>,
}

impl Task {
    /// The plays of a part.
    pub(super) fn part(&self, unit: usize) -> Range<usize> {
        let at = |unit: usize| unit * self.num_plays / self.num_units;
        at(unit)..at(unit + 1)
    }
}

/// That a unit has begun its part of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begun {
    pub(super) state: String,
}

/// A part that was played. Figures are the bits of their numbers, so that none is rounded on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub(super) state: String,
    /// Loss, passes, excess over each bound.
    plays: Vec<(u64, u64, Vec<u64>)>,
}

impl Part {
    pub(super) fn of(state: &str, plays: &[Play]) -> Part {
        let bits = |play: &Play| {
            let excess = play.excess.iter().map(|value| value.to_bits()).collect();
            (play.loss.to_bits(), play.num_passes, excess)
        };
        Part {
            state: state.to_string(),
            plays: plays.iter().map(bits).collect(),
        }
    }

    fn into_plays(self) -> Vec<Play> {
        let play = |(loss, num_passes, excess): (u64, u64, Vec<u64>)| Play {
            loss: f64::from_bits(loss),
            num_passes,
            excess: excess.into_iter().map(f64::from_bits).collect(),
        };
        self.plays.into_iter().map(play).collect()
    }
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
    /// As [`Generation::plays`]; a folder that cannot be written.
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
            generation: checkpoint.update,
            state,
            settings: self.settings.clone(),
            num_units: self.is_here.len(),
            num_plays: generation.num_plays(),
            baseline: self.baseline.clone(),
        };
        atomic_file::write_compact_json(&self.folder.join(TASK_FILE), &task)?;
        let started_s = clock();
        let mut plays = generation.plays(task.part(0))?;
        let own_s = clock() - started_s;
        for unit in 1..task.num_units {
            let part = self.wait_for(&task, unit, own_s, clock);
            plays.extend(match part {
                Some(part) => part,
                None => generation.plays(task.part(unit))?,
            });
        }
        Ok(plays)
    }

    /// The part of a unit; none where it does not come.
    fn wait_for(
        &mut self,
        task: &Task,
        unit: usize,
        own_s: f64,
        clock: &dyn Fn() -> f64,
    ) -> Option<Vec<Play>> {
        let since_s = clock();
        loop {
            // A file that is damaged or of another state is as good as none.
            let part: Option<Part> =
                atomic_file::read_json(&part_file(&self.folder, unit), EXCHANGE_BYTES_MAX).ok();
            let part =
                part.filter(|part| part.state == task.state && part.plays.len() == task.part(unit).len());
            if let Some(part) = part {
                self.is_here[unit] = true;
                return Some(part.into_plays());
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
