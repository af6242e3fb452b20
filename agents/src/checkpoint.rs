//! A training run in one file: what resumes it. What deploys its network is another format,
//! [`TrainedNetwork`](pleach_network::TrainedNetwork).
//!
//! A [`Container`] with the magic `PLEACHCK`, version 1:
//!
//! ```text
//! header    JSON: configuration, contract, seed, update, frames, best score, Adam's steps, normaliser, multipliers, own, sizes
//! f32 ...   parameters, Adam's means, Adam's squares: num_parameters each
//! f32 ...   num_memory more: what a run that learns from forks has beside them, its parameters that play and its newest forks
//! ```
//!
//! All settings are read back, so a file whose settings this version does not know is refused: a run goes on with the version
//! that began it.

use std::path::{Path, PathBuf};

use pleach_env::Seed;
use pleach_network::{Container, Contract, Normaliser};
use serde::{Deserialize, Serialize};

use crate::adam::Adam;
use crate::counterfactual::{Forks, Memory};
use crate::error::Error;
use crate::learner_name::Learner;
use crate::networks;
use crate::train_config::TrainConfig;

/// How the name of a checkpoint ends, and how while it is written.
const FINAL_EXTENSION: &str = "ckpt";
const TEMPORARY_EXTENSION: &str = "ckpt.tmp";
const MAGIC: [u8; 8] = *b"PLEACHCK";
/// Version of the format that this crate writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// Parameters, Adam's means, Adam's squares.
const NUM_LISTS: usize = 3;

/// State of a training run between two updates.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// All settings.
    pub config: TrainConfig,
    /// What the network sees and chooses among.
    pub contract: Contract,
    /// Root of the run's randomness.
    pub seed: Seed,
    /// Updates made.
    pub update: u64,
    /// Environment steps made.
    pub num_frames: u64,
    /// Score of the best evaluation so far, larger being better.
    pub best_score: Option<f64>,
    /// Scale of the value head.
    pub normaliser: Normaliser,
    /// Multipliers of the caller's constraints, see [`Trainer::multipliers`](crate::trainer::Trainer::multipliers).
    pub multipliers: Vec<f64>,
    /// State of a learner of one's own, see [`Trainer::own`](crate::trainer::Trainer::own).
    pub own: Vec<f64>,
    /// What a run that learns from forks remembers.
    pub(crate) memory: Option<Memory>,
    /// All parameters, in [`Layout`](pleach_network::Layout)'s order.
    pub parameters: Vec<f32>,
    /// The optimiser.
    pub adam: Adam,
}

/// What [`Checkpoint::latest_good`] found.
#[derive(Debug)]
pub struct Latest {
    /// The newest file that can be read; None where there is none.
    pub good: Option<(PathBuf, Checkpoint)>,
    /// Why newer files were passed over.
    pub passed_over: Vec<Error>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    config: TrainConfig,
    contract: Contract,
    seed: Seed,
    update: u64,
    num_frames: u64,
    best_score: Option<f64>,
    adam_num_steps: u64,
    normaliser: Normaliser,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    multipliers: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own: Vec<f64>,
    num_parameters: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    num_memory: usize,
}

impl Checkpoint {
    /// The file's bytes.
    ///
    /// # Errors
    /// [`Error::Problem`] where a number is not finite and has no JSON.
    fn to_bytes(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let mut numbers = Vec::new();
        if let Some(memory) = &self.memory {
            numbers.extend_from_slice(&memory.parameters);
            memory
                .forks
                .write(self.config.counterfactual.num_kept, &mut numbers);
        }
        let header = Header {
            config: self.config,
            contract: self.contract.clone(),
            seed: self.seed,
            update: self.update,
            num_frames: self.num_frames,
            best_score: self.best_score,
            adam_num_steps: self.adam.num_steps,
            normaliser: self.normaliser,
            multipliers: self.multipliers.clone(),
            own: self.own.clone(),
            num_parameters: self.parameters.len(),
            num_memory: numbers.len(),
        };
        let header = serde_json::to_vec(&header).map_err(|error| refuse(path, error))?;
        let lists = [&self.parameters, &self.adam.mean, &self.adam.square, &numbers].map(Vec::as_slice);
        Ok(Container::encode(MAGIC, FORMAT_VERSION, &header, &lists))
    }

    /// Writes the file under a temporary name, syncs it and renames it.
    ///
    /// # Errors
    /// [`Error::Problem`] where the folder cannot be written; the old file is then as it was.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        Ok(Container::save(&self.to_bytes(path)?, path, TEMPORARY_EXTENSION)?)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Problem`] where it cannot be read; [`Error::Problem`] where it is cut short, altered, of another version
    /// or does not fit itself.
    pub fn load(path: &Path) -> Result<Checkpoint, Error> {
        let opened = Container::open(path, &[(MAGIC, FORMAT_VERSION)])?;
        let header = serde_json::from_slice(&opened.header);
        let header: Header = header.map_err(|error| {
            let reason = format!(
                "header: {error}; the file is damaged, or a run of another version, which goes on with that"
            );
            refuse(path, reason)
        })?;
        header.config.check().map_err(|error| refuse(path, error))?;
        let layout = networks::layout(header.config.network, header.contract.spaces)
            .map_err(|error| refuse(path, error))?;
        let (count, fits) = (header.num_parameters, layout.num_parameters());
        if count != fits {
            let reason = format!("{count} parameters in its header; the network has {fits}");
            return Err(refuse(path, reason));
        }
        let spaces = header.contract.spaces;
        let memory_max = match header.config.learner {
            Learner::COUNTERFACTUAL => header
                .config
                .counterfactual
                .num_kept
                .saturating_mul(Forks::numbers_max(spaces))
                .saturating_add(fits),
            // Parameters of which the network is the mean.
            _ => fits,
        };
        let lists_max = NUM_LISTS.saturating_add(memory_max.div_ceil(fits.max(1)));
        let container = opened.read(fits, lists_max)?;
        let held = container.num_numbers().unwrap_or(0);
        if header.num_memory > memory_max || held != NUM_LISTS * count + header.num_memory {
            let more = header.num_memory;
            let reason = format!("{held} numbers; {NUM_LISTS} lists of {count} and {more} more are expected");
            return Err(refuse(path, reason));
        }
        let mut numbers = container.numbers();
        let mut take = || numbers.by_ref().take(count).collect::<Vec<f32>>();
        let (parameters, mean, square) = (take(), take(), take());
        let more: Vec<f32> = numbers.collect();
        let lists = [&parameters, &mean, &square, &more].into_iter();
        if !lists.flatten().all(|number| number.is_finite()) {
            return Err(refuse(path, "a parameter is not finite"));
        }
        let memory = match more.split_at_checked(count).filter(|_| !more.is_empty()) {
            Some((parameters, forks)) => Some(Memory {
                parameters: parameters.to_vec(),
                forks: Forks::read(spaces, forks)
                    .ok_or_else(|| refuse(path, "forks that do not fit themselves"))?,
            }),
            None if more.is_empty() => None,
            None => return Err(refuse(path, "fewer numbers to remember than parameters")),
        };
        Ok(Checkpoint {
            config: header.config,
            contract: header.contract,
            seed: header.seed,
            update: header.update,
            num_frames: header.num_frames,
            best_score: header.best_score,
            normaliser: header.normaliser,
            multipliers: header.multipliers,
            own: header.own,
            memory,
            parameters,
            adam: Adam {
                mean,
                square,
                num_steps: header.adam_num_steps,
            },
        })
    }

    /// Saves as `update-NNNNNNNN.ckpt` in `folder` and removes all but the `keep_last` newest (at least 1).
    ///
    /// # Errors
    /// [`Error::Problem`] where the folder cannot be written.
    pub fn save_numbered(&self, folder: &Path, keep_last: usize) -> Result<PathBuf, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let path = folder.join(format!("update-{:08}.ckpt", self.update));
        self.save(&path)?;
        Checkpoint::remove_before(&path, keep_last)?;
        Ok(path)
    }

    /// Removes all but the `keep_last` newest (at least 1) numbered checkpoints up to `path`, and what a save that was
    /// killed left. A run that goes on from `path` does so before anything else. Newer files, which could not be read,
    /// stay until they are written again.
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be removed.
    pub fn remove_before(path: &Path, keep_last: usize) -> Result<(), Error> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut files = numbered(folder, FINAL_EXTENSION)?;
        let up_to = files.iter().position(|(_, file)| file == path);
        let num_kept = keep_last.max(1);
        files.truncate((up_to.map_or(0, |index| index + 1)).saturating_sub(num_kept));
        files.extend(numbered(folder, TEMPORARY_EXTENSION)?);
        for (_, file) in &files {
            std::fs::remove_file(file).map_err(Error::io(file))?;
        }
        Ok(())
    }

    /// The numbered checkpoints of a folder with their updates, oldest first, readable or not; none where there is no folder.
    ///
    /// # Errors
    /// [`Error::Problem`] where the folder cannot be listed.
    pub fn numbered_in(folder: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
        numbered(folder, FINAL_EXTENSION)
    }

    /// The newest checkpoint of a folder that can be read. A folder that does not exist has none.
    ///
    /// # Errors
    /// [`Error::Problem`] where the folder cannot be listed.
    pub fn latest_good(folder: &Path) -> Result<Latest, Error> {
        let mut passed_over = Vec::new();
        for (_, path) in numbered(folder, FINAL_EXTENSION)?.into_iter().rev() {
            match Checkpoint::load(&path) {
                Ok(checkpoint) => {
                    return Ok(Latest {
                        good: Some((path, checkpoint)),
                        passed_over,
                    });
                }
                Err(error) => passed_over.push(error),
            }
        }
        Ok(Latest {
            good: None,
            passed_over,
        })
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Numbered checkpoints of a folder, oldest first; none where there is no folder.
fn numbered(folder: &Path, extension: &str) -> Result<Vec<(u64, PathBuf)>, Error> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let number = name
            .strip_prefix("update-")
            .and_then(|rest| rest.strip_suffix(extension)?.strip_suffix('.'));
        if let Some(number) = number.and_then(|digits| digits.parse().ok()) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

fn refuse(path: &Path, reason: impl ToString) -> Error {
    pleach_scheduler::Problem::data(path, reason).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::Trainer;
    use pleach_env::Spaces;
    use pleach_network::NetworkConfig;
    use pleach_scheduler::policy::CandidateConfig;

    fn checkpoint(update: u64) -> Checkpoint {
        let network = NetworkConfig {
            hidden: 8,
            context: 8,
            ..NetworkConfig::default()
        };
        let config = TrainConfig {
            network,
            horizon_s: 1.0 / 3.0,
            ..TrainConfig::default()
        };
        let spaces = Spaces::new(2, 4, 3);
        let contract = Contract {
            schema_hash: "schema-a".to_owned(),
            ..Contract::current(spaces, CandidateConfig::default(), "a test")
        };
        let trainer = Trainer::new(config, contract, Seed(7)).unwrap();
        let mut checkpoint = Checkpoint {
            update,
            ..trainer.checkpoint()
        };
        checkpoint.normaliser.mean = -1.0e300 / 3.0;
        checkpoint.multipliers = vec![0.1 + 0.2, 0.0];
        checkpoint.own = vec![0.7 - 0.1];
        checkpoint.adam.mean[3] = f32::MIN_POSITIVE / 4.0;
        checkpoint
    }

    #[test]
    fn what_is_loaded_is_what_was_saved_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ckpt");
        let saved = checkpoint(3);
        saved.save(&path).unwrap();
        assert_eq!(Checkpoint::load(&path).unwrap(), saved);
        let names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names, ["a.ckpt"]);
    }

    #[test]
    fn damaged_short_foreign_and_newer_files_are_refused_and_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ckpt");
        let good = checkpoint(3).to_bytes(&path).unwrap();
        let reason = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Checkpoint::load(&path).unwrap_err().to_string()
        };
        for length in [0, 5, 15, 40, good.len() / 2, good.len() - 1] {
            let reason = reason(&good[..length]);
            assert!(reason.contains("cut short"), "{length}: {reason}");
        }
        for byte in [25, good.len() / 2, good.len() - 1] {
            let mut damaged = good.clone();
            damaged[byte] ^= 1;
            assert!(reason(&damaged).contains("damaged"), "{byte}");
        }
        let mut newer = good.clone();
        newer[8] = 2;
        assert!(reason(&newer).contains("format version 2; this program reads version 1"));
        assert!(reason(b"{\"weights\": []}").contains("does not begin with PLEACHCK"));
        // A run whose settings this version does not know.
        let older = Container::encode(MAGIC, FORMAT_VERSION, br#"{"config": {"overlap": true}}"#, &[]);
        let said = reason(&older);
        assert!(
            said.contains("unknown field `overlap`")
                && said.contains("a run of another version, which goes on with that"),
            "{said}"
        );
        std::fs::write(&path, &good).unwrap();
        let found = Checkpoint::load(&path).unwrap();
        let error = Error::from(found.contract.check_schema("schema-b").unwrap_err());
        assert_eq!(
            error.to_string(),
            "contract: feature schema: expected schema-b, found schema-a. See docs/learning.md."
        );
        let missing = Checkpoint::load(&folder.path().join("none")).unwrap_err();
        assert!(matches!(missing, Error::Problem(problem) if problem.system().is_some()));
    }

    #[test]
    fn a_network_of_another_size_than_its_parameters_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ckpt");
        let mut wrong = checkpoint(0);
        wrong.parameters.pop();
        wrong.save(&path).unwrap();
        assert!(
            Checkpoint::load(&path)
                .unwrap_err()
                .to_string()
                .contains("the network has")
        );
    }

    #[test]
    fn the_newest_good_checkpoint_is_found_behind_a_damaged_one_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        for update in [1, 2, 9, 10] {
            checkpoint(update).save_numbered(folder.path(), 3).unwrap();
        }
        assert!(!folder.path().join("update-00000001.ckpt").exists());
        std::fs::write(folder.path().join("update-00000010.ckpt"), b"PLEACHCK").unwrap();
        std::fs::write(folder.path().join("notes.txt"), b"").unwrap();
        let Latest { good, passed_over } = Checkpoint::latest_good(folder.path()).unwrap();
        let (path, checkpoint) = good.unwrap();
        assert_eq!((checkpoint.update, passed_over.len()), (9, 1));
        assert!(path.ends_with("update-00000009.ckpt"));
        assert!(
            Checkpoint::latest_good(&folder.path().join("none"))
                .unwrap()
                .good
                .is_none()
        );
    }

    #[test]
    fn going_on_clears_old_and_half_written_checkpoints_and_never_the_one_gone_on_from() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for update in [3, 4, 5] {
            checkpoint(update).save_numbered(folder.path(), 9).unwrap();
        }
        std::fs::write(at("update-00000006.ckpt"), b"PLEACHCK").unwrap();
        std::fs::write(at("update-00000007.ckpt.tmp"), b"PLEACHCK").unwrap();
        let (good, _) = Checkpoint::latest_good(folder.path()).unwrap().good.unwrap();
        Checkpoint::remove_before(&good, 1).unwrap();
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["update-00000005.ckpt", "update-00000006.ckpt"]);
    }
}
