//! What can go wrong while a cluster is driven. None of it stops Slurm: a round that fails is reported and tried again.

use std::path::PathBuf;
use std::time::Duration;

use pleach_scheduler::{PolicyError, Problem};
use thiserror::Error;

/// An error of the daemon.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting or a policy that cannot be used, in the words of every door.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A log that cannot be made a workload of.
    #[error("{}: {reason}", path.display())]
    Capture {
        /// The list that was to be written.
        path: PathBuf,
        /// Why it is not.
        reason: String,
    },
    /// A policy that failed in the middle of a round.
    #[error(transparent)]
    Scoring(#[from] PolicyError),
    /// A command of Slurm's that could not be run, ended with an error, or said too much.
    #[error("{command}: {reason}")]
    Command {
        /// The command as it was run.
        command: String,
        /// What happened.
        reason: String,
    },
    /// A command of Slurm's that did not end.
    #[error("{command}: no answer within {limit:?}; it was ended")]
    Deadline {
        /// The command as it was run.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// Output that is not what the command prints.
    #[error("{command}, line {line}: {text:?}: {reason}")]
    Garbage {
        /// The command.
        command: &'static str,
        /// Line, from 1.
        line: usize,
        /// The line, cut at 200 characters.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file whose text is not what it should be.
    #[error("{}{}: {reason}", path.display(), in_line(*line))]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, from 1; 0 for the whole file.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process drives the cluster.
    #[error("{}: {holder} works with this folder; end it first, or name another state_dir", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
        /// What has it, as it wrote into the lock: program and process.
        holder: String,
    },
    /// Jobs would be handed back while a daemon holds them.
    #[error(
        "{}: {holder} works with this folder and would hold the jobs again; end it first, or add --force",
        path.display()
    )]
    Driven {
        /// The lock.
        path: PathBuf,
        /// As in [`Error::Busy`].
        holder: String,
    },
}

/// Where in a file, if it is one line.
fn in_line(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!(", line {line}"),
    }
}

impl Error {
    /// An error about a line of a command's output.
    pub(crate) fn garbage(
        command: &'static str,
        line: usize,
        text: &str,
        reason: impl Into<String>,
    ) -> Error {
        Error::Garbage {
            command,
            line,
            text: text.chars().take(200).collect(),
            reason: reason.into(),
        }
    }

    /// An error about a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { path, source }
    }
}
