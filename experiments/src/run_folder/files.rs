//! Which files in the folder are the run's: to be listed, and to be removed with it.

use std::fs;
use std::path::Path;

use super::Artefact;
use super::names::{CONFIG_FILE, DESCRIPTION_BYTES_MAX, EXCHANGE, RUN_FILE, SETTINGS_FILE};
use crate::error::Error;
use crate::run_folder::atomic_file;
use crate::run_folder::lock::LOCK_FILE;
use pleach_policies::{ARTEFACTS_FILE, is_inside};

/// What training writes with the time of day in it.
const CLOCKED: [&str; 2] = ["timing.jsonl", "tensorboard"];
/// What training goes on from or adds to; also there when a run is broken off, before anything is listed.
const TRAINING_STATE: [&str; 7] = [
    "checkpoints",
    "network.ckpt",
    "validation.json",
    "metrics.jsonl",
    "histograms.jsonl",
    "timing.jsonl",
    "tensorboard",
];

/// What training writes beside its checkpoints: worth nothing without one.
const LOGS: [&str; 4] = ["metrics.jsonl", "histograms.jsonl", "timing.jsonl", "tensorboard"];

/// Names of all files of the run in `folder` but for the logs of speed, sorted; with `/`, relative to it.
pub(super) fn files_of(folder: &Path) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    collect_files(folder, folder, &mut files)?;
    files.sort();
    Ok(files)
}

/// Names of all files under `folder`, relative to `root`, without temporary ones. Links are not followed.
fn collect_files(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), Error> {
    let failed = |source| Error::io("read", folder, source);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if CLOCKED.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            collect_files(root, &path, files)?;
        } else if kind.is_file() {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<_> = relative
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            let name = parts.join("/");
            if !name.ends_with(atomic_file::TEMPORARY_SUFFIX) && name != ARTEFACTS_FILE && name != LOCK_FILE {
                files.push(name);
            }
        }
    }
    Ok(())
}

/// Copies all files of a run, the logs of speed too. Links are not followed.
pub(crate) fn copy_run(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |source| Error::io("copy", from, source);
    fs::create_dir_all(to).map_err(|source| Error::io("make folder", to, source))?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (kind, name) = (entry.file_type().map_err(failed)?, entry.file_name());
        if kind.is_dir() {
            copy_run(&entry.path(), &to.join(name))?;
        } else if kind.is_file() && name != LOCK_FILE && !atomic_file::is_temporary(&name) {
            fs::copy(entry.path(), to.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Removes what writers that were killed left in `folder` and the folders in it. A run that was killed at its first file is
/// thereby as good as none. Links are not followed, and the exchange of a training with other processes is left alone: they write
/// there while one of them begins again.
pub(crate) fn remove_temporaries(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && entry.file_name() != EXCHANGE {
            remove_temporaries(&entry.path())?;
        } else if atomic_file::is_temporary(&entry.file_name()) && kind.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what the earlier run listed as its own, the list first so that a broken-off removal is not a finished run, and
/// what training goes on from, listed or not: a new run must not go on from an old one's state.
pub(super) fn clear(path: &Path) -> Result<(), Error> {
    let list = path.join(ARTEFACTS_FILE);
    let artefacts: Vec<Artefact> = if list.is_file() {
        atomic_file::read_json(&list, DESCRIPTION_BYTES_MAX)?
    } else {
        Vec::new()
    };
    remove_if_there(&list)?;
    for artefact in &artefacts {
        if is_inside(&artefact.file) && artefact.file != RUN_FILE {
            remove_if_there(&path.join(&artefact.file))?;
        }
    }
    for name in TRAINING_STATE {
        remove(&path.join(name))?;
    }
    Ok(())
}

/// Whether a run's folder has nothing but what says which run it is, and logs of a training that got to no checkpoint.
pub(super) fn holds_no_results(path: &Path) -> Result<bool, Error> {
    let failed = |source| Error::io("read", path, source);
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let says_which = [RUN_FILE, CONFIG_FILE, SETTINGS_FILE, LOCK_FILE];
        if !says_which.iter().chain(&LOGS).any(|own| name == *own) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes what a run without results has left but for its description, which comes last, so that what is there is ours until then.
pub(super) fn remove_results_of_nothing(path: &Path) -> Result<(), Error> {
    for name in LOGS.iter().chain(&[SETTINGS_FILE, CONFIG_FILE]) {
        remove(&path.join(name))?;
    }
    Ok(())
}

/// Removes all that a run without results has left; the folder too where the run made it.
pub(super) fn remove_traces(path: &Path, is_new: bool) -> Result<(), Error> {
    remove_results_of_nothing(path)?;
    remove_if_there(&path.join(RUN_FILE))?;
    if is_new {
        remove_if_there(&path.join(LOCK_FILE))?;
        fs::remove_dir(path).map_err(|source| Error::io("remove", path, source))?;
    }
    Ok(())
}

fn remove(place: &Path) -> Result<(), Error> {
    match place.is_dir() {
        true => fs::remove_dir_all(place).map_err(|source| Error::io("remove", place, source)),
        false => remove_if_there(place),
    }
}

pub(super) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::io("remove", path, source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_written_files_go_but_for_those_of_other_processes_in_the_exchange() {
        let folder = tempfile::tempdir().unwrap();
        let half = [
            ".a.json.7.0.tmp",
            "networks/.b.ckpt.7.0.tmp",
            "units/.part-1.json.8.0.tmp",
        ];
        for name in half {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "half").unwrap();
        }
        remove_temporaries(folder.path()).unwrap();
        assert_eq!(
            half.map(|name| folder.path().join(name).is_file()),
            [false, false, true]
        );
    }
}
