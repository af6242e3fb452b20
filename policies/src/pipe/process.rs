//! A process that is asked a line and answers a line, in time or not at all.
//!
//! Two threads stand between us and its pipes, so that neither a process that reads nothing nor one that writes nothing holds the run.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// Longest line, bytes: a score for each of 64 candidates is a thousand.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Looks at a process that has closed its output, and the time between them: it ends a moment later.
const LOOKS: u32 = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

pub(super) struct Process {
    child: Child,
    questions: Sender<String>,
    answers: Receiver<Result<String, String>>,
    /// Whether it was asked anything yet.
    has_asked: bool,
}

impl Process {
    /// Starts a command.
    ///
    /// # Errors
    /// In words.
    pub(super) fn start(words: &[String]) -> Result<Process, String> {
        let (program, arguments) = words.split_first().ok_or("there is no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let (questions, to_ask) = channel();
        // An answer too many waits here until it is refused.
        let (to_answer, answers) = sync_channel(1);
        if let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
            thread::spawn(move || write(stdin, &to_ask));
            thread::spawn(move || read(stdout, &to_answer));
        }
        Ok(Process {
            child,
            questions,
            answers,
            has_asked: false,
        })
    }

    /// Asks a line and waits for the answer.
    ///
    /// # Errors
    /// In words: an answer before the question, none in time, none any more, one that is no line of text.
    pub(super) fn ask(&mut self, line: String, deadline: Duration) -> Result<String, String> {
        // What it says first is its greeting, whether it waited for ours or not: which of the two came first is chance.
        let early = self.has_asked.then(|| self.answers.try_recv());
        self.has_asked = true;
        if let Some(Ok(early)) = early {
            let early = early.unwrap_or_else(|_| String::new());
            if !early.is_empty() {
                return Err(format!(
                    "the process wrote `{}` before it was asked",
                    shown(&early)
                ));
            }
        }
        // Who does not read any more is found by the missing answer.
        let _ = self.questions.send(line);
        match self.answers.recv_timeout(deadline) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(message)) => Err(message),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer within {} s", deadline.as_secs_f64())),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> String {
        for _ in 0..LOOKS {
            match self.child.try_wait() {
                Ok(Some(status)) => return format!("the process has ended ({status}) without an answer"),
                Ok(None) => thread::sleep(BETWEEN_LOOKS),
                Err(_) => break,
            }
        }
        "the process has closed its output without an answer".to_string()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The beginning of a line, for a message.
pub(super) fn shown(line: &str) -> String {
    const LETTERS: usize = 120;
    let line = line.trim_end();
    match line.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_string(),
    }
}

fn write(mut stdin: ChildStdin, to_ask: &Receiver<String>) {
    while let Ok(mut line) = to_ask.recv() {
        line.push('\n');
        if stdin
            .write_all(line.as_bytes())
            .and_then(|()| stdin.flush())
            .is_err()
        {
            return;
        }
    }
}

fn read(stdout: ChildStdout, to_answer: &SyncSender<Result<String, String>>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = stdout.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let answer = match read {
            Ok(0) | Err(_) => return,
            Ok(num) if num as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') => {
                Err(format!("an answer is longer than {LINE_BYTES_MAX} bytes"))
            }
            Ok(_) => String::from_utf8(line).map_err(|_| "an answer is no UTF-8".to_string()),
        };
        let is_last = answer.is_err();
        if to_answer.send(answer).is_err() || is_last {
            return;
        }
    }
}
