//! Lines of jobs that no user can break: a text of a user's may hold an end of line, and all that could stand behind it.
//!
//! Where accounts are not enforced, `sbatch --account` takes any text. So what is asked for ends in a word that nobody knows before
//! the answer is there, and a line is what stands before that word.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::Error;
use crate::slurm::command::Commands;

/// A word that nobody can guess, for one question.
fn word() -> String {
    format!("end-{:016x}", RandomState::new().build_hasher().finish())
}

/// Runs a command whose last argument is a list of fields, each with `|` behind it: its lines, one for each record, in which control
/// characters are `?`.
///
/// # Errors
/// As [`Commands::run`], without the word.
pub(super) fn ask(commands: &Commands, program: &str, args: &[&str], fields: &str) -> Result<String, Error> {
    let word = word();
    let asked = format!("{fields}{word}|");
    let told = commands.run(program, &[args, &[&asked]].concat());
    match told {
        Ok(text) => Ok(unbroken(text, &format!("{word}|\n"))),
        Err(Error::Command { command, reason }) => Err(Error::Command {
            command: command.replace(&asked, fields),
            reason: reason.replace(&asked, fields),
        }),
        Err(Error::Deadline { command, limit }) => Err(Error::Deadline {
            command: command.replace(&asked, fields),
            limit,
        }),
        Err(other) => Err(other),
    }
}

/// The records that end so, as lines. What has no such end was cut, or was never a record, and is left as it is.
fn unbroken(text: String, end: &str) -> String {
    if !text.contains(end) {
        return text;
    }
    let mut lines = String::with_capacity(text.len());
    for part in text.split_inclusive(end) {
        match part.strip_suffix(end) {
            None => lines += part,
            Some(record) => {
                match record.bytes().any(|byte| byte.is_ascii_control()) {
                    true => lines += &record.replace(|c: char| c.is_ascii_control(), "?"),
                    false => lines += record,
                }
                lines.push('\n');
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_ends_at_the_word_and_nowhere_before() {
        let text = "7|main|a|end-1|\n8|main|x|\n9|PENDING|0|\r|end-1|\n10|ma";
        assert_eq!(
            unbroken(text.into(), "end-1|\n"),
            "7|main|a|\n8|main|x|?9|PENDING|0|?|\n10|ma"
        );
        // Words of an error are no records.
        let text = "slurm_load_jobs error\nagain\n";
        assert_eq!(unbroken(text.into(), "end-1|\n"), text);
        assert_ne!(word(), word());
    }

    #[test]
    fn errors_name_what_was_asked_for_without_the_word() {
        let commands = Commands {
            limit: std::time::Duration::from_secs(20),
            ..crate::Settings::default().commands()
        };
        let args = ["-c", "echo \"bad $0\" >&2; exit 1"];
        let error = ask(&commands, "sh", &args, "Account:|").unwrap_err().to_string();
        assert!(
            error.contains("bad Account:|") && !error.contains("end-"),
            "{error}"
        );
    }
}
