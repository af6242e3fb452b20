//! One long-lived `scontrol` that is fed lines on its standard input: hundreds of changes a second, where a process for each makes
//! eighty.
//!
//! What it says of lines that failed comes in their order on standard error and names the job. Behind each batch a word is sent that
//! is no command, and what it says of that tells that all lines before were carried out.
//!
//! # Source
//! Measured on Slurm 22.05 with slurmdbd: 735 releases, 654 updates a second on standard input.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Instant;

use pleach_site::slurm::is_name;

use crate::error::Error;
use crate::slurm::command::Commands;
use crate::slurm::mark::FORETOLD;

const SCONTROL: &str = "scontrol";

/// Most bytes of a line of its complaints that are read.
const COMPLAINT_MAX: u64 = 4096;

/// Lines after which the process is begun anew, whatever it may have gathered.
const LINES_MAX: u64 = 1 << 20;

/// A change that `scontrol` understands, made of numbers and checked names alone: no other text is ever passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(String);

impl Line {
    /// Sets a job's factor; none of a name that is no job's.
    #[must_use]
    pub fn factor(job: &str, factor: i64) -> Option<Line> {
        Line::of(job, |job| format!("update jobid={job} sitefactor={factor}"))
    }

    /// Names the nodes of a job that waits, or lifts them; none of names that are no job's or no nodes'.
    #[must_use]
    pub fn nodes(job: &str, nodes: &[String]) -> Option<Line> {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_node = |name: &String| !name.is_empty() && name.chars().all(is_safe);
        let are_nodes = nodes.iter().all(is_node);
        are_nodes.then_some(())?;
        Line::of(job, |job| {
            format!("update jobid={job} reqnodelist={}", nodes.join(","))
        })
    }

    /// Says when a job would start, where its user sees it; none of a name that is no job's. `words` are letters, digits, `-`, `:`.
    #[must_use]
    pub fn foretold(job: &str, words: &str) -> Option<Line> {
        let is_plain = words
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | ':'));
        is_plain.then_some(())?;
        Line::of(job, |job| {
            format!("update jobid={job} admincomment={FORETOLD}{words}")
        })
    }

    /// Requeues a job that has not ended; none of a name that is no job's.
    #[must_use]
    pub fn requeue(job: &str) -> Option<Line> {
        Line::of(job, |job| format!("requeue incomplete {job}"))
    }

    /// Releases jobs in their order; none of a name that is no job's.
    #[must_use]
    pub fn release_all(jobs: &[&str]) -> Option<Line> {
        Line::of_list(jobs, |jobs| format!("release {jobs}"))
    }

    /// Takes the marks of jobs away; none of a name that is no job's.
    #[must_use]
    pub fn unmark(jobs: &[&str]) -> Option<Line> {
        Line::of_list(jobs, |jobs| format!("update jobid={jobs} admincomment="))
    }

    /// Names the nodes that a job is kept off.
    #[must_use]
    pub fn shunned(job: &str, own: &str) -> Option<Line> {
        is_list(own).then_some(())?;
        Line::of(job, |job| format!("update jobid={job} excnodelist={own}"))
    }

    /// Names the nodes that a job's user named.
    #[must_use]
    pub fn wished(job: &str, wish: &str) -> Option<Line> {
        is_list(wish).then_some(())?;
        Line::of(job, |job| format!("update jobid={job} reqnodelist={wish}"))
    }

    fn of_list(jobs: &[&str], line: impl FnOnce(&str) -> String) -> Option<Line> {
        let are_names = !jobs.is_empty() && jobs.iter().all(|job| is_name(job));
        are_names.then(|| Line(line(&jobs.join(","))))
    }

    fn of(job: &str, line: impl FnOnce(&str) -> String) -> Option<Line> {
        is_name(job).then(|| Line(line(job)))
    }
}

/// Whether a text is a list of nodes, or nothing.
fn is_list(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ',' | '[' | ']'))
}

/// The job that a complaint is about: `... for job 4_2`, `... for job 7: ...`.
pub(super) fn about(complaint: &str) -> Option<&str> {
    let is_of_name = |c: char| c.is_ascii_digit() || c == '_' || c == '+';
    let name = |(at, word): (usize, &str)| {
        let rest = &complaint[at + word.len()..];
        let name = &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())];
        is_name(name).then_some(name)
    };
    complaint.rmatch_indices("job ").find_map(name)
}

/// A `scontrol` that waits for lines; begun when there are some, and anew after one that did not answer.
#[derive(Debug, Default)]
pub struct Feed {
    running: Option<Running>,
    num_batches: u64,
}

#[derive(Debug)]
struct Running {
    child: Child,
    input: Sender<String>,
    complaints: Receiver<String>,
    num_lines: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Feed {
    /// Carries lines out in their order; what was said of those that failed.
    ///
    /// # Errors
    /// A process that cannot be begun, ends, or has not done with all lines within the limit of a command: some of them may have
    /// been carried out, and may still be.
    pub fn carry_out(&mut self, commands: &Commands, lines: &[Line]) -> Result<Vec<String>, Error> {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(model) = &commands.model {
            let texts: Vec<&str> = lines.iter().map(|line| line.0.as_str()).collect();
            let said = model.feed(&texts)?;
            return Ok(said.iter().filter_map(|line| complaint(line)).collect());
        }
        self.num_batches += 1;
        let end_word = format!("pleach-end-{}", self.num_batches);
        let fail = |reason: String| Error::Command {
            command: format!("{SCONTROL} with {} lines on standard input", lines.len()),
            reason,
        };
        let mut running = match self.running.take() {
            Some(running) => running,
            None => Running::begin(commands).map_err(|error| fail(error.to_string()))?,
        };
        let end = Instant::now() + commands.limit;
        let mut text: String = lines.iter().map(|line| line.0.clone() + "\n").collect();
        text += &end_word;
        text.push('\n');
        // Where its writer is gone it has ended, and says so below.
        let _ = running.input.send(text);
        let mut said = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match running.complaints.recv_timeout(left) {
                Ok(line) if line.contains(&end_word) => break,
                Ok(line) => said.extend(complaint(&line)),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::Deadline {
                        command: format!("{SCONTROL} with {} lines on standard input", lines.len()),
                        limit: commands.limit,
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let last = said.last().map_or("it said nothing", String::as_str);
                    return Err(fail(format!("it ended: {last}")));
                }
            }
        }
        running.num_lines += lines.len() as u64;
        self.running = Some(running).filter(|running| running.num_lines < LINES_MAX);
        Ok(said)
    }
}

/// A complaint without what `scontrol` puts before it; nothing of an empty line, of the noise that follows a refused release, and of
/// what it says of tasks of an array that were changed (`26_14-19: No error`).
fn complaint(line: &str) -> Option<String> {
    let text = line.trim().trim_start_matches("scontrol: ").trim();
    let is_noise = text.is_empty() || text.starts_with("slurm_suspend error") || text.ends_with(": No error");
    (!is_noise).then(|| text.chars().take(300).collect())
}

/// Whether a refusal says that the job has left or begun meanwhile, or is so new that it is to be asked for again.
pub(super) fn is_gone(text: &str) -> bool {
    let gone = [
        "Invalid job id",
        "already finished",
        "already/still running",
        "no longer pending",
        "try again in a bit",
    ];
    gone.iter().any(|words| text.contains(words))
}

/// Refusals in one line: how many, and the first. Jobs that have left or begun meanwhile are none.
pub(super) fn refused(said: &[String]) -> Option<String> {
    let others: Vec<&String> = said.iter().filter(|text| !is_gone(text)).collect();
    let first = others.first()?;
    // What Slurm 22.05 answers an account without the right, or without the right to touch an administrator's hold.
    let is_of_account = ["Invalid user id", "Access/permission denied"];
    let is_of_account = is_of_account.iter().any(|words| first.contains(words));
    let fix = match is_of_account {
        true => {
            " (the daemon's account must be SlurmUser or an operator: `sacctmgr modify user NAME set adminlevel=operator`)"
        }
        false => "",
    };
    Some(format!(
        "{} changes of the order were refused; the first: {first}{fix}",
        others.len()
    ))
}

impl Running {
    fn begin(commands: &Commands) -> std::io::Result<Running> {
        let mut child = commands
            .command(SCONTROL)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(said)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(std::io::Error::other("it has no standard input"));
        };
        // As many as a batch has lines: a reader that is not read waits, and so does the process.
        let (sender, complaints) = sync_channel(1024);
        thread::spawn(move || forward(BufReader::new(said), &sender));
        // Written from a thread of its own: a process that reads nothing must not hold the round up for ever.
        let (to_write, texts) = channel();
        thread::spawn(move || write(input, &texts));
        Ok(Running {
            child,
            input: to_write,
            complaints,
            num_lines: 0,
        })
    }
}

/// Writes texts one after the other, until no sender or no reader is left.
fn write(mut input: ChildStdin, texts: &Receiver<String>) {
    for text in texts {
        if input
            .write_all(text.as_bytes())
            .and_then(|()| input.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Forwards complaints line by line, until they end or no receiver is left.
fn forward(mut said: impl BufRead, to: &SyncSender<String>) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = std::io::Read::take(&mut said, COMPLAINT_MAX).read_until(b'\n', &mut bytes);
        let is_over = !matches!(read, Ok(num) if num > 0);
        if is_over || to.send(String::from_utf8_lossy(&bytes).into_owned()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn commands(folder: &std::path::Path, script: &str) -> Commands {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join(SCONTROL);
        std::fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Commands {
            folder: Some(folder.into()),
            limit: Duration::from_millis(700),
            pulse: crate::pulse::Pulse::default(),
            model: None,
            shows_exclusive: Default::default(),
        }
    }

    fn lines(jobs: &[&str]) -> Vec<Line> {
        jobs.iter().map(|job| Line::factor(job, 5).unwrap()).collect()
    }

    #[test]
    fn nothing_but_checked_names_and_numbers_is_a_line() {
        for name in ["", "x", "1;2", "1 2", "!!", "1\n2", "-1", "1=2"] {
            assert_eq!(Line::factor(name, 1), None, "{name:?}");
            assert_eq!(Line::release_all(&[name]), None, "{name:?}");
        }
        assert_eq!(
            Line::factor("7+0", -3).unwrap().0,
            "update jobid=7+0 sitefactor=-3"
        );
        assert_eq!(
            Line::nodes("4_2", &["g-1".into(), "h2".into()]).unwrap().0,
            "update jobid=4_2 reqnodelist=g-1,h2"
        );
        assert_eq!(
            Line::nodes("4_2", &[]).unwrap().0,
            "update jobid=4_2 reqnodelist="
        );
        for node in ["", "g1,g2", "g[1-2]", "g1 priority=9", "g1\nshutdown"] {
            assert_eq!(Line::nodes("4", &[node.into()]), None, "{node:?}");
        }
    }

    #[test]
    fn whom_a_complaint_is_about_is_read_from_its_end() {
        for (text, job) in [
            ("Invalid job id specified for job 99", Some("99")),
            ("Job has already finished for job 4_2", Some("4_2")),
            (
                "error: Could not load state information for job 97: Invalid job id specified",
                Some("97"),
            ),
            ("Access/permission denied", None),
        ] {
            assert_eq!(about(text), job, "{text}");
        }
        for text in ["g1 x", "g1;x", "g1\nx"] {
            assert_eq!((Line::wished("4", text), Line::shunned("4", text)), (None, None));
        }
        assert_eq!(
            Line::shunned("4", "g[1-2]").unwrap().0,
            "update jobid=4 excnodelist=g[1-2]"
        );
        assert_eq!(Line::release_all(&["1", "2;x"]), None);
        assert_eq!(
            Line::unmark(&["1", "2_3"]).unwrap().0,
            "update jobid=1,2_3 admincomment="
        );
    }

    #[test]
    fn one_process_takes_all_batches_and_says_what_failed() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo $$ >> $(dirname $0)/pids\nwhile read -r verb job more; do case $verb in\n\
                      update) case $job in jobid=9*) echo \"Invalid job id specified for job ${job#*=}\" >&2; echo >&2 ;; esac\n\
                      echo \"$verb $job $more\" >> $(dirname $0)/did ;;\n*) echo \"invalid keyword: $verb\" >&2 ;; esac; done\n";
        let (commands, mut feed) = (commands(folder.path(), script), Feed::default());
        assert_eq!(feed.carry_out(&commands, &[]).unwrap(), Vec::<String>::new());
        assert!(
            !folder.path().join("pids").exists(),
            "nothing is begun for nothing"
        );
        assert_eq!(
            feed.carry_out(&commands, &lines(&["1", "2"])).unwrap(),
            Vec::<String>::new()
        );
        let said = feed.carry_out(&commands, &lines(&["9", "3", "91"])).unwrap();
        assert_eq!(
            said,
            [
                "Invalid job id specified for job 9",
                "Invalid job id specified for job 91"
            ]
        );
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("pids").lines().count(), 1);
        assert_eq!(read("did").lines().count(), 5);
    }

    #[test]
    fn one_that_hangs_or_ends_is_an_error_and_the_next_batch_begins_another() {
        let folder = tempfile::tempdir().unwrap();
        let hangs = commands(folder.path(), "sleep 30\n");
        let mut feed = Feed::default();
        let many: Vec<Line> = (1..20_000)
            .filter_map(|job| Line::factor(&job.to_string(), 1))
            .collect();
        let began = Instant::now();
        let error = feed.carry_out(&hangs, &many).unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(10));
        let ends = commands(
            folder.path(),
            "echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2\n",
        );
        let error = feed.carry_out(&ends, &lines(&["1"])).unwrap_err().to_string();
        assert!(error.contains("Unable to contact"), "{error}");
        let works = commands(
            folder.path(),
            "while read -r verb more; do case $verb in pleach*) echo \"$verb\" >&2 ;; esac; done\n",
        );
        assert!(feed.carry_out(&works, &lines(&["1"])).unwrap().is_empty());
    }
}
