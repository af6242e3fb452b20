//! Flags that several commands take, each once: its name, its words and its range.

use std::path::{Path, PathBuf};

use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::flag_values;
use crate::run_folder::Existing;
use clap::{ArgAction, Args};
use serde::{Deserialize, Serialize};

/// The name of a file that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// Whether the name of a file means standard output.
#[must_use]
pub fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

/// Where all draws come from.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeedFlag {
    /// Root of all randomness. The same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = flag_values::whole::<u64>(0..=u64::MAX))]
    pub seed: u64,
}

/// Results for programs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonFlag {
    /// Also write the results as JSON to this file (schema in docs/cli.md); - for standard output, without tables and words
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
}

/// How much is said.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct QuietFlag {
    /// No progress bar, no table and no words; errors only
    #[arg(long, short, help_heading = "Machine")]
    pub quiet: bool,
}

/// How a command behaves on this machine. None of it may change a result.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFlags {
    /// Threads to use [default: all cores]. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u16>(1..=1024), help_heading = "Machine")]
    pub threads: Option<u16>,
    /// How much is said.
    #[command(flatten)]
    pub words: QuietFlag,
}

/// Seed, results as JSON, machine: what everything takes that computes.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportFlags {
    /// Where draws come from.
    #[command(flatten)]
    pub draws: SeedFlag,
    /// Results for programs.
    #[command(flatten)]
    pub data: JsonFlag,
    /// This machine.
    #[command(flatten)]
    pub machine: MachineFlags,
}

impl ReportFlags {
    /// Root of all randomness.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.draws.seed
    }

    /// Where the results go as JSON.
    #[must_use]
    pub fn json(&self) -> Option<&Path> {
        self.data.json.as_deref()
    }

    /// Errors only.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.machine.words.quiet
    }
}

/// The same, and a folder for the artefacts.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunArgs {
    /// Seed, JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
    /// Folder for the artefacts [default: runs/COMMAND-CONFIGHASH-SEED; evaluate, workload describe and distill check write none
    /// without --out]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Replace a finished run in the folder
    #[arg(long, conflicts_with = "resume", help_heading = "Output")]
    pub force: bool,
    /// Go on in a run of the same configuration
    #[arg(long, help_heading = "Output")]
    pub resume: bool,
}

impl RunArgs {
    /// Root of all randomness.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.report.seed()
    }

    /// Where the results go as JSON.
    #[must_use]
    pub fn json(&self) -> Option<&Path> {
        self.report.json()
    }

    /// Errors only.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.report.quiet()
    }

    /// What the flags say about a run that is there already.
    #[must_use]
    pub fn existing(&self) -> Existing {
        Existing::from_flags(self.force, self.resume)
    }
}

/// What becomes of a file that is there already.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct ForceFlag {
    /// Replace the file if it is there
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}

impl ForceFlag {
    /// Refuses to write over what is there.
    ///
    /// # Errors
    /// A file that is there and may not be replaced; `key` is the flag that names it.
    pub fn check(&self, key: &'static str, path: &Path) -> Result<(), Error> {
        Error::refuse_if(
            path.exists() && !self.force,
            key,
            path.display(),
            "a new file",
            "Give another name, or --force to replace it.",
        )?;
        Ok(())
    }
}

/// Results for readers.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFlag {
    /// Also write all tables and plots as one page to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
}

/// Episodes of an environment that are not as it has them.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
pub struct EpisodeFlags {
    /// Offered load [default: the environment's]
    #[arg(long, value_name = "LOAD", value_parser = flag_values::load)]
    pub load: Option<f64>,
    /// Jobs in an episode [default: the environment's]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(10..=1_000_000))]
    pub num_jobs: Option<u32>,
}

/// Settings of a learner.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsFlags {
    /// Settings in TOML, laid over the built-in ones key by key; unknown keys are refused, and flags win [default: the built-in ones]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change one setting of the learner, repeated: a key of settings.toml and its value
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub set: Vec<String>,
    /// The same as a table, of a sweep.
    #[arg(skip)]
    #[serde(skip)]
    pub keys: serde_json::Map<String, serde_json::Value>,
}

/// Settings of a world that is not of jobs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorldFlag {
    /// Change a setting of a world that is not of jobs, or of its search (search.KEY), repeated: `pleach workload` lists them
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append, help_heading = "Workload")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
}

/// Policies beside the one that it is about.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgainstFlag {
    /// Policies to show beside, repeated or with commas [default: with --after or --floor fifo,easy,gpu-time-reserve]
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
}

impl AgainstFlag {
    /// The policies of the flag, or these where it is not given.
    ///
    /// # Errors
    /// As `Door::open_all`.
    pub fn or(&self, otherwise: &[&str]) -> Result<Vec<PolicySpec>, Error> {
        let names: Vec<String> = match self.against.as_slice() {
            [] => otherwise.iter().map(|name| (*name).to_string()).collect(),
            given => given.to_vec(),
        };
        Ok(DOOR.open_all(&names)?)
    }
}

/// Forms of a tree outside the program.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct FormsFlag {
    /// Forms to write, repeated or with commas: c, rust, go, python, onnx; of a network onnx alone
    #[arg(long, value_name = "FORM", value_delimiter = ',', action = ArgAction::Append)]
    pub to: Vec<String>,
}
