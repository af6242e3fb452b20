//! Commands of the batch system: started without a shell, ended at a deadline, and read up to a limit, as a whole or record by record.
//!
//! Texts of users may hold any byte: what is no UTF-8 is read as U+FFFD.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::pulse::Pulse;

/// Most bytes of an output that is read as a whole: a hundred thousand jobs at some hundred bytes each.
const OUTPUT_MAX: u64 = 64 << 20;

/// Longest record that is kept, bytes: a job on thousands of nodes that are no neighbours. *Ours*. A longer one is left out, so the
/// text of one user costs that user's job alone.
const RECORD_MAX: usize = 16 << 10;

/// Most bytes of all records that are kept, *ours*: ten thousand jobs, Slurm's `MaxJobCount`, with the longest records.
const KEPT_MAX: usize = 256 << 20;

/// Left-out records whose beginning is reported, and how much of it, bytes.
const HEADS_MAX: usize = 3;
const HEAD_BYTES: usize = 40;

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
    /// A command that cannot be started, does not end in time, ends with an error, or says more than 64 MiB.
    pub fn run(&self, program: &str, args: &[&str]) -> Result<String, Error> {
        if let Some(model) = &self.model {
            self.pulse.rest(self.limit);
            return model.run(program, args);
        }
        let bytes = self.read(program, args, whole)?;
        if bytes.len() as u64 > OUTPUT_MAX {
            return Err(too_much(program, args, OUTPUT_MAX));
        }
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Runs a command to its end; the records that it printed, each of which ends with `end`, whose last byte ends a line.
    ///
    /// # Errors
    /// As [`Commands::run`]; records of more than 256 MiB in all.
    pub(super) fn records(&self, program: &str, args: &[&str], end: &str) -> Result<Records, Error> {
        let end = end.as_bytes().to_vec();
        let records = match &self.model {
            Some(_) => Records::read(self.run(program, args)?.as_bytes(), &end),
            None => self.read(program, args, move |pipe| Records::read(pipe, &end))?,
        };
        match records.text.len() > KEPT_MAX {
            true => Err(too_much(program, args, KEPT_MAX as u64)),
            false => Ok(records),
        }
    }

    /// Runs a command to its end, while `take` reads its standard output.
    fn read<T: Default + Send + 'static>(
        &self,
        program: &str,
        args: &[&str],
        take: impl FnOnce(ChildStdout) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.pulse.rest(self.limit);
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
        let out = child.stdout.take();
        let out = thread::spawn(move || out.map(take).unwrap_or_default());
        let err = child.stderr.take();
        let err = thread::spawn(move || err.map(whole).unwrap_or_default());
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
        let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        if !code.success() {
            let text = String::from_utf8_lossy(&err);
            let text: String = text.trim().chars().take(300).collect();
            return Err(fail(format!("{code}: {text}")));
        }
        Ok(out)
    }
}

fn too_much(program: &str, args: &[&str], most: u64) -> Error {
    Error::Command {
        command: format!("{program} {}", args.join(" ")),
        reason: format!("more than {most} bytes of output"),
    }
}

/// All that a pipe has. One byte beyond the limit tells that there was more.
fn whole(pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = pipe.take(OUTPUT_MAX + 1).read_to_end(&mut bytes);
    bytes
}

/// What a command printed record by record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    /// The records as lines, without their ends, in which control characters are `?`.
    pub(super) text: String,
    /// What had no such end: it was cut, or was never a record.
    pub(super) rest: String,
    /// Records that were left out because they were too long.
    pub(super) num_long: usize,
    /// How the first of these begin.
    pub(super) heads: Vec<String>,
}

impl Records {
    fn read(pipe: impl Read, end: &[u8]) -> Records {
        let (mut records, mut pipe) = (Records::default(), BufReader::with_capacity(1 << 16, pipe));
        // Of a record that is too long its last bytes alone are kept, which may be the beginning of its end.
        let (mut record, mut is_long) = (Vec::new(), false);
        while records.text.len() <= KEPT_MAX {
            let part = (&mut pipe).take(RECORD_MAX as u64).read_until(b'\n', &mut record);
            if !part.is_ok_and(|num| num > 0) {
                break;
            }
            if record.ends_with(end) {
                match is_long || record.len() > RECORD_MAX + end.len() {
                    true => records.leave(&record, is_long),
                    false => records.keep(&record[..record.len() - end.len()]),
                }
                record.clear();
                is_long = false;
            } else if record.len() > RECORD_MAX + end.len() {
                if !is_long {
                    records.head(&record);
                }
                is_long = true;
                record.drain(..record.len() - end.len());
            }
        }
        records.rest = String::from_utf8_lossy(&record).into_owned();
        records
    }

    fn keep(&mut self, record: &[u8]) {
        // Most records are plain, and a record of each job is read in each round: those are looked at without branches.
        let is_control = record
            .iter()
            .fold(false, |found, byte| found | (*byte < b' ') | (*byte == 0x7f));
        match std::str::from_utf8(record) {
            Ok(text) if !is_control => self.text += text,
            _ => {
                let text = String::from_utf8_lossy(record);
                self.text += &text.replace(|c: char| c.is_ascii_control(), "?");
            }
        }
        self.text.push('\n');
    }

    fn leave(&mut self, record: &[u8], is_known: bool) {
        self.num_long += 1;
        if !is_known {
            self.head(record);
        }
    }

    fn head(&mut self, record: &[u8]) {
        if self.heads.len() < HEADS_MAX {
            let head = String::from_utf8_lossy(&record[..record.len().min(HEAD_BYTES)]);
            self.heads.push(head.replace(|c: char| c.is_control(), "?"));
        }
    }

    /// What an operator should know of records that were left out.
    pub(super) fn notes(&self, program: &str) -> Option<String> {
        (self.num_long > 0).then(|| {
            format!(
                "{} record(s) of {program} are longer than {RECORD_MAX} bytes, and their jobs are left alone: {}",
                self.num_long,
                self.heads.join("; ")
            )
        })
    }
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
        let told = commands(5000).run("sh", &["-c", "printf 'a\\377b'"]).unwrap();
        assert_eq!(told, "a\u{fffd}b", "bytes that are no UTF-8 fail nothing");
        assert_eq!(commands(5000).run("echo", &["a"]).unwrap(), "a\n");
    }

    #[test]
    fn a_record_ends_at_its_end_and_a_long_one_costs_itself_alone() {
        let read = |text: &[u8]| Records::read(text, b"|end-1|\n");
        let records = read(b"7|a|end-1|\n8|x|\n9|PENDING|\r|end-1|\n\xff|end-1|\n10|ma");
        assert_eq!(records.text, "7|a\n8|x|?9|PENDING|?\n\u{fffd}\n");
        assert_eq!(records.rest, "10|ma");
        assert_eq!((records.num_long, records.notes("squeue")), (0, None));
        // Words of an error are no records.
        assert_eq!(
            read(b"slurm_load_jobs error\nagain\n").rest,
            "slurm_load_jobs error\nagain\n"
        );
        for length in [
            RECORD_MAX - 9,
            RECORD_MAX,
            RECORD_MAX + 1,
            RECORD_MAX + 9,
            5 * RECORD_MAX,
            1 << 20,
        ] {
            for fill in [&b"x"[..], b"x\n", b"|end-1|"] {
                let long = fill.repeat(length / fill.len());
                let text = [b"7|a|end-1|\n17|", &long[..], b"|end-1|\n8|b|end-1|\n"].concat();
                let records = read(&text);
                let is_long = 3 + long.len() > RECORD_MAX;
                assert_eq!(records.num_long, usize::from(is_long), "{length}");
                assert!(records.text.starts_with("7|a\n") && records.text.ends_with("\n8|b\n"));
                assert!(!is_long || records.text == "7|a\n8|b\n" && records.heads[0].starts_with("17|"));
            }
        }
    }

    #[test]
    fn seventy_megabytes_of_long_records_are_read_one_by_one() {
        let script = "yes \"$(head -c 70000 /dev/zero | tr '\\0' x)|e|\" | head -n 1000; echo '8|b|e|'";
        let records = commands(20_000).records("sh", &["-c", script], "|e|\n").unwrap();
        assert_eq!((records.text.as_str(), records.num_long), ("8|b\n", 1000));
        assert!(
            records
                .notes("squeue")
                .unwrap()
                .contains("1000 record(s) of squeue")
        );
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
