//! Records of jobs that no user can break: a text of a user's may hold an end of line, and all that could stand behind it.
//!
//! Where accounts are not enforced, `sbatch --account` takes any text. So what is asked for ends in a word that is unknown until
//! the answer is there, and a record is what stands before that word. Each is read by itself: one that cannot be read, or is longer
//! than any has to be, is left out and reported, and its job is left alone.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::Error;
use crate::slurm::command::{Commands, Records};

/// A word that cannot be guessed, for one question.
fn word() -> String {
    format!("end-{:016x}", RandomState::new().build_hasher().finish())
}

/// Runs a command whose last argument is a list of fields, each with a separator behind it: its records as lines, in which control
/// characters are `?`.
///
/// # Errors
/// As [`Commands::records`], without the word.
pub(super) fn ask(commands: &Commands, program: &str, args: &[&str], fields: &str) -> Result<Records, Error> {
    let word = word();
    let asked = format!("{fields}{word}|");
    let told = commands.records(program, &[args, &[&asked]].concat(), &format!("{word}|\n"));
    let told = told.and_then(
        |records| match (records.text.is_empty(), records.rest.is_empty()) {
            (false, false) => Err(Error::Command {
                command: format!("{program} {} {asked}", args.join(" ")),
                reason: "its output was cut".into(),
            }),
            // No records at all: the caller that reads the rest refuses it.
            (true, false) => Ok(Records {
                text: records.rest,
                ..Records::default()
            }),
            _ => Ok(records),
        },
    );
    told.map_err(|error| match error {
        Error::Command { command, reason } => Error::Command {
            command: command.replace(&asked, fields),
            reason: reason.replace(&asked, fields),
        },
        Error::Deadline { command, limit } => Error::Deadline {
            command: command.replace(&asked, fields),
            limit,
        },
        other => other,
    })
}

/// Lines of the last look among which one that is not the next is looked for. *Ours*: more than change in a row in most rounds.
const LOOKS: usize = 64;

/// Lines as they were read in the last look: one that is the same, in the same order but for some that went or came, is not read again.
/// What they tell lies apart, for lines are moved about.
pub(super) type Lines<T> = VecDeque<(String, Box<T>)>;

/// Reads lines one by one, numbered from 1, and shows `take` what each tells; what is to be said of those that cannot be read.
///
/// # Errors
/// The first that cannot be read, where none can: what was printed is something else.
pub(super) fn each<T>(
    known: &mut Lines<T>,
    text: &str,
    read: impl FnMut(usize, &str) -> Result<T, Error>,
    take: impl FnMut(&T),
) -> Result<Option<String>, Error> {
    match all_but(known, text, read, take) {
        Some((_, error)) if known.is_empty() => Err(error),
        Some((num_unread, error)) => Ok(Some(format!(
            "{num_unread} job(s) cannot be read and are left alone: {error}"
        ))),
        None => Ok(None),
    }
}

/// The same where all lines have to be read.
///
/// # Errors
/// The first that cannot be read.
pub(super) fn all<T>(
    known: &mut Lines<T>,
    text: &str,
    read: impl FnMut(usize, &str) -> Result<T, Error>,
    take: impl FnMut(&T),
) -> Result<(), Error> {
    all_but(known, text, read, take).map_or(Ok(()), |(_, error)| Err(error))
}

/// Reads lines; how many cannot be read, and why the first.
fn all_but<T>(
    known: &mut Lines<T>,
    text: &str,
    mut read: impl FnMut(usize, &str) -> Result<T, Error>,
    mut take: impl FnMut(&T),
) -> Option<(usize, Error)> {
    let (mut before, mut num_unread, mut first) = (std::mem::take(known), 0, None);
    known.reserve(before.len());
    let (mut rest, mut row) = (text, 0);
    while !rest.is_empty() {
        row += 1;
        // The next line is mostly the next that is known: then its end is looked for at one place.
        let next = before.front().and_then(|(line, _)| {
            let behind = rest.strip_prefix(line.as_str())?;
            behind.strip_prefix('\n')
        });
        if let Some(behind) = next
            && let Some(found) = before.pop_front()
        {
            rest = behind;
            take(&found.1);
            known.push_back(found);
            continue;
        }
        let line = rest.lines().next().unwrap_or_default();
        rest = rest.split_once('\n').map_or("", |(_, behind)| behind);
        let place = before.iter().take(LOOKS).position(|(known, _)| known == line);
        drop(before.drain(..place.unwrap_or(0)));
        let found = match place.and_then(|_| before.pop_front()) {
            Some(found) => Ok(found),
            None => read(row, line).map(|read| (line.to_owned(), Box::new(read))),
        };
        match found {
            Ok(found) => {
                take(&found.1);
                known.push_back(found);
            }
            Err(error) => {
                num_unread += 1;
                first.get_or_insert(error);
            }
        }
    }
    first.map(|error| (num_unread, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<Records, Error> {
        let commands = Commands {
            limit: std::time::Duration::from_secs(20),
            ..crate::Settings::default().commands()
        };
        ask(&commands, "sh", &["-c", script], "Account:|")
    }

    #[test]
    fn records_end_at_a_word_that_changes_and_what_was_cut_is_refused() {
        let whole = sh("end=${0#Account:|}; printf '7|a|%s\\n8|b|\\n9|%s\\n' \"$end\" \"$end\"").unwrap();
        assert_eq!(whole.text, "7|a|\n8|b|?9|\n");
        let cut = sh("end=${0#Account:|}; printf '7|a|%s\\n8|b' \"$end\"")
            .unwrap_err()
            .to_string();
        assert!(cut.contains("was cut") && !cut.contains("end-"), "{cut}");
        assert_eq!(sh("echo error").unwrap().text, "error\n");
        assert_ne!(word(), word());
    }

    #[test]
    fn a_line_that_cannot_be_read_costs_itself_alone_unless_none_can_be() {
        let number = |row, line: &str| {
            line.parse::<u32>()
                .map_err(|_| Error::garbage("squeue", row, line, "no number"))
        };
        let each = |text| {
            let mut found = Vec::new();
            let note = super::each(&mut Lines::new(), text, number, |one| found.push(*one))?;
            Ok::<_, Error>((found, note))
        };
        assert_eq!(each("1\n2\n").unwrap(), (vec![1, 2], None));
        let (found, note) = each("1\nx\n2\ny\n").unwrap();
        assert_eq!(found, [1, 2]);
        assert!(
            note.unwrap()
                .starts_with("2 job(s) cannot be read and are left alone: ")
        );
        assert!(each("x\ny\n").is_err() && each("").unwrap().0.is_empty());
    }

    #[test]
    fn errors_name_what_was_asked_for_without_the_word() {
        let error = sh("echo \"bad $0\" >&2; exit 1").unwrap_err().to_string();
        assert!(
            error.contains("bad Account:|") && !error.contains("end-"),
            "{error}"
        );
    }
}
