//! Flags that every run takes: the seed, where its artefacts go, and how it behaves on this machine.

use std::path::{Path, PathBuf};

use clap::Args;

use pleach_experiments::run_folder::Existing;

/// The name of a file that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// Whether the name of a file means standard output.
#[must_use]
pub fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

/// Seed, output and machine. None of it but the seed may change a result.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunArgs {
    /// Root of all randomness. The same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Folder for the artefacts [default: runs/COMMAND-CONFIGHASH-SEED; evaluate and workload describe write none without --out]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Replace a finished run in the folder
    #[arg(long, conflicts_with = "resume", help_heading = "Output")]
    pub force: bool,
    /// Go on in a run of the same configuration
    #[arg(long, help_heading = "Output")]
    pub resume: bool,
    /// Also write the results as JSON to this file (schema in docs/cli.md); - for standard output, without tables and words
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Threads to use [default: all cores]. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Machine")]
    pub threads: Option<u16>,
    /// No progress bar and no table; errors only
    #[arg(long, short, help_heading = "Machine")]
    pub quiet: bool,
}

impl RunArgs {
    /// What the flags say about a run that is there already.
    #[must_use]
    pub fn existing(&self) -> Existing {
        Existing::from_flags(self.force, self.resume)
    }
}
