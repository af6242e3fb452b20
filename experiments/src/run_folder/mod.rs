//! One folder for each run: its configuration, its artefacts, and a list of them once it is finished.
//!
//! ```text
//! runs/evaluate-3f2a91c0-0/
//!   run.json         command, version, seed, hash of the configuration
//!   config.toml      the whole configuration, defaults included
//!   ...              what the command makes
//!   artefacts.json   written last: names, sizes and hashes; its presence means finished
//!   lock             empty; locked while a process works here, and not listed
//! ```
//! No file but the two logs of speed that training writes (`timing.jsonl`, `tensorboard/`) holds a clock reading, a host
//! name or a path, and those two are not listed, so two runs of the same seed, configuration and version can be
//! compared byte by byte. What is refused: overwriting a finished run, and touching a folder that is not a run.

pub mod atomic_file;
pub(crate) mod differences;
pub(crate) mod hash;
pub mod lock;

mod description;
mod existing;
mod files;
mod folder;
mod names;
#[cfg(test)]
mod tests;

pub use self::description::RunDescription;
pub use self::existing::Existing;
pub(crate) use self::files::{copy_run, remove_temporaries};
pub use self::folder::{RunFolder, is_finished};
pub use self::hash::sha256_of;
pub(crate) use self::names::EXCHANGE;
pub use self::names::{CONFIG_FILE, SETTINGS_FILE};
pub use pleach_policies::Artefact;
pub(crate) use pleach_policies::{ARTEFACTS_FILE, verify};
