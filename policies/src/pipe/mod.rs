//! A policy in a process of its own, in any language: it is told what it may choose among, a line of JSON a decision, and answers a
//! line.
//!
//! `pipe:COMMAND` starts the command anew for every run, with ten seconds for each answer; `pipe@SECONDS:COMMAND` gives another
//! deadline. A command is words, in quotes where they have blanks; no shell reads it. What is said is [`protocol`]'s. Whatever the
//! process writes to its standard error is shown.
//!
//! A process that cannot be started, ends, is late or says what is no answer ends the run, with the command and the line. It is for
//! the simulator: who drives a cluster takes a tree or a network, which cannot be late.

mod process;
mod protocol;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use pleach_scheduler::PolicyError;
use pleach_scheduler::policy::{DecisionPoint, Policy};

use self::process::Process;
use crate::refusal::Refusal;

/// What stands before a command.
const PREFIX: &str = "pipe";
/// How long an answer may take unless somebody says otherwise, s. *Assumed.*
const DEADLINE_S: f64 = 10.0;
/// The longest deadline, s.
const DEADLINE_S_MAX: f64 = 3_600.0;
/// How long a process may take to begin, s, unless it has longer for each answer: large libraries load slowly. *Assumed.*
const BEGIN_S: f64 = 60.0;

/// A command that is a policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pipe {
    /// As it was asked for, for messages.
    text: String,
    name: String,
    words: Vec<String>,
    deadline: Duration,
}

impl Pipe {
    /// What a place asks for; none where it is no command.
    ///
    /// # Errors
    /// A deadline that is none, a command without words or with an open quote.
    pub(crate) fn of(place: &str) -> Result<Option<Pipe>, Refusal> {
        let Some((prefix, command)) = place.split_once(':') else {
            return Ok(None);
        };
        let refuse = |allowed: &str, hint: &str| Refusal::config("policy", place, allowed, hint);
        let deadline_s = match prefix.strip_prefix(PREFIX) {
            Some("") => DEADLINE_S,
            Some(after) => match after.strip_prefix('@').map(str::parse::<f64>) {
                Some(Ok(seconds)) if seconds > 0.0 && seconds <= DEADLINE_S_MAX => seconds,
                Some(_) => {
                    let allowed = "a deadline above 0 to 3600 s before the command";
                    return Err(refuse(allowed, "For example pipe@2.5:python3 my_policy.py."));
                }
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        let words = words_of(command).ok_or_else(|| refuse("a command", "A quote is not closed."))?;
        let Some(last) = words.iter().rfind(|word| !word.starts_with('-')) else {
            return Err(refuse("a command", "For example pipe:python3 my_policy.py."));
        };
        let stem = Path::new(last).file_stem().unwrap_or_default();
        Ok(Some(Pipe {
            text: place.to_string(),
            name: stem.to_string_lossy().into_owned(),
            words,
            deadline: Duration::from_secs_f64(deadline_s),
        }))
    }

    /// Name in tables: that of the last word's file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Starts the command and greets it, so that what cannot be is known before any work.
    ///
    /// # Errors
    /// A command that cannot be started or does not greet.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let failed = |message: String| {
            let hint = "docs/policy-file.md has what is said over the pipe, and an example.";
            Refusal::config(
                "policy",
                &self.text,
                format!("a command that greets: {message}"),
                hint,
            )
        };
        self.begin().map(drop).map_err(failed)
    }

    /// A policy that has not been asked yet.
    pub(crate) fn policy(&self) -> PipePolicy {
        PipePolicy {
            pipe: self.clone(),
            process: None,
            num_decisions: 0,
        }
    }

    fn begin(&self) -> Result<Process, String> {
        let mut process = Process::start(&self.words)?;
        let patience = self.deadline.max(Duration::from_secs_f64(BEGIN_S));
        let line = process.ask(protocol::hello(), patience)?;
        protocol::greeted(&line).map_err(|said| format!("its first line {said}"))?;
        Ok(process)
    }
}

/// A policy whose choices come over a pipe.
pub(crate) struct PipePolicy {
    pipe: Pipe,
    /// None before the first decision: whoever only asks what a policy needs starts no process.
    process: Option<Process>,
    num_decisions: u64,
}

impl PipePolicy {
    fn scores(&mut self, point: &DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), String> {
        let process = match &mut self.process {
            Some(process) => process,
            None => self.process.insert(self.pipe.begin()?),
        };
        self.num_decisions += 1;
        let number = self.num_decisions;
        let line = process.ask(protocol::question(number, point), self.pipe.deadline);
        let line = line.map_err(|message| format!("decision {number}: {message}"))?;
        let may_hold = point.observation.mask.first().copied().unwrap_or(true);
        protocol::answer(&line, (number, may_hold), scores)
            .map_err(|said| format!("decision {number}: it {said}"))
    }
}

impl Policy for PipePolicy {
    fn name(&self) -> &str {
        &self.pipe.name
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.scores(&point, scores).map_err(|message| {
            // An error is small and is copied. This one ends the run, so its text may live as long as the program.
            let text = format!("policy {}: {message}", self.pipe.text);
            PolicyError::Told(Box::leak(text.into_boxed_str()))
        })
    }
}

/// Words between blanks; quotes, single or double, keep blanks in a word. None where a quote is not closed.
fn words_of(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '\'' || letter == '"' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
