//! Commands of the batch system: started without a shell, ended at a deadline, and read up to a limit.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::pulse::Pulse;

/// Most bytes of output that are read: a hundred thousand jobs at some hundred bytes each.
const OUTPUT_MAX: u64 = 64 << 20;

/// A Slurm in this process, in place of the commands of a real one: what tests of faults drive.
pub trait Model: std::fmt::Debug + Send + Sync {
    /// What a command prints on standard output.
    ///
    /// # Errors
    /// As [`Commands::run`].
    fn run(&self, program: &str, args: &[&str]) -> Result<String, Error>;

    /// Carries lines out as a `scontrol` does that has them on standard input; what it complains of.
    ///
    /// # Errors
    /// One that ended or did not answer in time: some of the lines may have been carried out, and may still be.
    fn feed(&self, lines: &[&str]) -> Result<Vec<String>, Error>;
}

/// Where the commands are, and how long each may take.
#[derive(Clone, Debug)]
pub struct Commands {
    /// The folder of the commands; none: found in the path.
    pub folder: Option<PathBuf>,
    /// Longest time for one command.
    pub limit: Duration,
    /// Each command is a step of the loop.
    pub pulse: Pulse,
    /// What answers in place of processes; none: a real Slurm.
    pub model: Option<Arc<dyn Model>>,
    /// Whether `squeue` has a field of its own for jobs that want nodes for themselves; empty until it was asked.
    pub shows_exclusive: Arc<OnceLock<bool>>,
}

impl Commands {
    /// A command that is yet to be started.
    pub(super) fn command(&self, program: &str) -> Command {
        let path = match &self.folder {
            Some(folder) => folder.join(program),
            None => Path::new(program).to_path_buf(),
        };
        let mut command = Command::new(path);
        // Times as seconds, and no format or filter of the caller's.
        command.env("SLURM_TIME_FORMAT", "%s").env("LC_ALL", "C");
        for name in ["SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SINFO_FORMAT", "SPRIO_FORMAT"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command to its end; its standard output.
    ///
    /// # Errors
    /// A command that cannot be started, does not end in time, ends with an error, or says more than 64 MiB or what is not
    /// UTF-8.
    pub fn run(&self, program: &str, args: &[&str]) -> Result<String, Error> {
        self.pulse.rest(self.limit);
        if let Some(model) = &self.model {
            return model.run(program, args);
        }
        let shown = || format!("{program} {}", args.join(" "));
        let fail = |reason: String| Error::Command {
            command: shown(),
            reason,
        };
        let mut child = self
            .command(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| fail(error.to_string()))?;
        let out = reader(child.stdout.take());
        let err = reader(child.stderr.take());
        let end = Instant::now() + self.limit;
        let Some(code) = wait(&mut child, end).map_err(|error| fail(error.to_string()))? else {
            // A child of the command may still hold the pipes: their readers are left to themselves.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Deadline {
                command: shown(),
                limit: self.limit,
            });
        };
        while !(out.is_finished() && err.is_finished()) {
            if Instant::now() >= end {
                return Err(Error::Deadline {
                    command: shown(),
                    limit: self.limit,
                });
            }
            thread::sleep(Duration::from_micros(200));
        }
        let bytes = |joined: thread::Result<Vec<u8>>| joined.unwrap_or_default();
        let (out, err) = (bytes(out.join()), bytes(err.join()));
        if !code.success() {
            let text = String::from_utf8_lossy(&err);
            let text: String = text.trim().chars().take(300).collect();
            return Err(fail(format!("{code}: {text}")));
        }
        if out.len() as u64 > OUTPUT_MAX {
            return Err(fail(format!("more than {OUTPUT_MAX} bytes of output")));
        }
        String::from_utf8(out).map_err(|error| fail(error.to_string()))
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // One byte beyond the limit tells that there was more. What broke off has no end of line and is refused there.
            let _ = pipe.take(OUTPUT_MAX + 1).read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(child: &mut Child, end: Instant) -> std::io::Result<Option<std::process::ExitStatus>> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(limit_ms: u64) -> Commands {
        Commands {
            folder: None,
            limit: Duration::from_millis(limit_ms),
            pulse: Pulse::default(),
            model: None,
            shows_exclusive: Arc::default(),
        }
    }

    #[test]
    fn a_command_that_hangs_is_ended_at_the_deadline() {
        let began = Instant::now();
        let error = commands(100).run("sleep", &["30"]).unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_grandchild_that_keeps_the_pipe_open_does_not_hold_up_the_round() {
        let error = commands(300)
            .run("sh", &["-c", "sleep 5 & echo done"])
            .unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
    }

    #[test]
    fn errors_carry_the_command_and_its_own_words() {
        let error = commands(5000)
            .run("sh", &["-c", "echo no such job >&2; exit 3"])
            .unwrap_err();
        assert!(error.to_string().contains("no such job"), "{error}");
        let error = commands(5000).run("sh", &["-c", "printf '\\377'"]).unwrap_err();
        assert!(error.to_string().contains("utf-8"), "{error}");
        assert_eq!(commands(5000).run("echo", &["a"]).unwrap(), "a\n");
    }

    #[test]
    fn output_without_end_is_refused() {
        assert!(
            commands(20_000)
                .run("sh", &["-c", "yes | head -c 70000000"])
                .is_err()
        );
    }
}
