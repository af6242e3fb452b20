//! The daemon for Slurm: beside the simulator, on a Slurm of shell scripts, and its files.

#![allow(clippy::unwrap_used)]

#[cfg(unix)]
mod bounded;
mod capture;
mod decision_log;
mod deploy;
mod driver;
#[cfg(unix)]
mod fake_slurm;
mod held;
mod history;
mod parity;
#[cfg(unix)]
mod passing;
mod priorities;
mod promised;
mod simulated;
mod site;
