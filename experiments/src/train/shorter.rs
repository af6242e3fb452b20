//! A training that begins where a finished shorter one ended: a rung of a sweep, above the rung below.
//!
//! The shorter run is copied and brought to the new length, so that what is found in the folder is a training that was broken off.
//! That is done only where the end is bit-equal to that of a training from the beginning ([`differences_from_whole`]); a unit
//! remains a function of its configuration and its seed.

use std::fs;
use std::path::Path;

use pleach_agents::Device;

use super::extend::differences_from_whole;
use super::settings::TrainSettings;
use super::settings_file;
use crate::error::Error;
use crate::run_folder::{RunDescription, RunFolder, SETTINGS_FILE, copy_run, is_finished};

/// Lays the finished run in `shorter` into `out`, brought to the length of `settings`. Gives whether it did: not where `out` is there
/// already, where the shorter run is not there whole or not one of these settings and this seed, where the longer one would have
/// gone another way from the beginning, and where gradients are taken on a device, which promises no bits.
///
/// # Errors
/// [`Error::Problem`] where files cannot be copied.
pub fn begin_from(shorter: &Path, settings: &TrainSettings, seed: u64, out: &Path) -> Result<bool, Error> {
    if out.exists() || !is_finished(shorter) || settings.device != Device::Cpu {
        return Ok(false);
    }
    let (Ok(Some(run)), Ok(before)) = (
        RunDescription::read(shorter),
        settings_file::read(&shorter.join(SETTINGS_FILE)),
    ) else {
        return Ok(false);
    };
    let num_updates = before.train.num_updates;
    let mut longer = before.clone();
    longer.train.num_updates = settings.train.num_updates;
    let is_same = longer == *settings && num_updates < settings.train.num_updates;
    if !is_same || !differences_from_whole(settings, num_updates).is_empty() {
        return Ok(false);
    }
    // A copy that was broken off is begun anew; only a whole one gets the name.
    let copy = out.with_extension("copy");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|source| Error::io("remove", &copy, source))?;
    }
    copy_run(shorter, &copy)?;
    let text = toml::to_string_pretty(settings).map_err(|error| Error::Failed(error.to_string()))?;
    let extended = RunFolder::open_extended(&run.command, (&before, settings), seed, &copy);
    match extended.and_then(|folder| folder.write(SETTINGS_FILE, text.as_bytes())) {
        Ok(_) => {
            fs::rename(&copy, out).map_err(|source| Error::io("rename", &copy, source))?;
            Ok(true)
        }
        Err(error) if error.system().is_some() => Err(error),
        // Another seed or program, or files that were changed since: from the beginning, then.
        Err(_) => {
            fs::remove_dir_all(&copy).map_err(|source| Error::io("remove", &copy, source))?;
            Ok(false)
        }
    }
}
