//! Lines that a command of Slurm's was asked to print: fields that are separated by `|` and not padded.

use crate::error::Error;
use crate::slurm::command::{Commands, Records};
use crate::slurm::records;

use pleach_scheduler::ExternalId;
pub(super) use pleach_site::slurm::is_null;
use pleach_site::slurm::whole;

/// The command that shows jobs.
pub(super) const SQUEUE: &str = "squeue";

/// What is asked of it about each job. The account is last: it may be any text. Of a dependency it is asked whether there is one, in as
/// many characters as `(null)` has: an array of a thousand tasks may wait for thousands of jobs each.
pub(super) const JOB_FIELDS: &str = "JobArrayID:|,State:|,PriorityLong:|,tres-per-node:|,tres-per-job:|,tres-per-task:|,\
tres-per-socket:|,NumNodes:|,NumCPUs:|,NodeList:|,ReqNodes:|,admin_comment:|,Reason:|,TimeLimit:|,SubmitTime:|,StartTime:|,\
RestartCnt:|,OverSubscribe:|,Contiguous:|,Feature:|,Dependency:6|,Reservation:|,Licenses:|,Partition:|,UserName:|,Account:|";
pub(super) const NUM_JOB_FIELDS: usize = 26;
/// Places among them, from 0: nodes by name, the mark, the reason.
pub(super) const NODES_FIELD: usize = 10;
pub(super) const MARK_FIELD: usize = 11;
pub(super) const REASON_FIELD: usize = 12;

/// What a name of Slurm's stands for: an array that waits as one job is one, a part of a heterogeneous job is as a task of its first.
pub(super) fn named_id(name: &str) -> Option<ExternalId> {
    let name = whole(name);
    match name.split_once('+') {
        Some((first, part)) => Some(ExternalId::task(first.parse().ok()?, part.parse().ok()?)),
        None => name.parse().ok(),
    }
}

/// Fields before the others of a line.
pub(super) const NUM_RULE_FIELDS: usize = 4;

/// What is asked of `squeue` about each job.
pub(super) fn rule_fields() -> String {
    // Features and licences may hold the separator: they are asked for apart, and what has none stands in their places.
    let fields = JOB_FIELDS
        .replace("Feature:|", "Contiguous:|")
        .replace("Licenses:|", "Contiguous:|");
    format!("tres-alloc:|,QOS:|,cpus-per-tres:|,EligibleTime:|,{fields}")
}

/// The fields before the others, and the others.
pub(super) fn more_fields(row: usize, line: &str) -> Result<([&str; NUM_RULE_FIELDS], &str), Error> {
    let (mut found, mut parts) = ([""; NUM_RULE_FIELDS], line.splitn(NUM_RULE_FIELDS + 1, '|'));
    found
        .iter_mut()
        .zip(&mut parts)
        .for_each(|(field, part)| *field = part);
    let rest = parts.next();
    rest.map(|rest| (found, rest))
        .ok_or_else(|| Error::garbage(SQUEUE, row, line, "has too few fields"))
}

/// The lines of jobs with these fields, those of [`JOB_FIELDS`] among them, and with `more` flags.
///
/// A job that wants nodes for itself has `NO` in `OverSubscribe` up to Slurm 24.11. In 26.05 every job that does not share has
/// it, and the field `Exclusive` tells the two apart; older versions lack that field. So where there is a `NO`, one query finds
/// out whether there is the field; then the word is `NO/NO` of a job that takes a part of a node.
pub(super) fn job_lines(commands: &Commands, more: &[&str], fields: &str) -> Result<Records, Error> {
    let ask = |fields: &str| {
        records::ask(
            commands,
            SQUEUE,
            &[&["-h"][..], more, &["-a", "-O"]].concat(),
            fields,
        )
    };
    let newer = || ask(&fields.replace("OverSubscribe:|", "OverSubscribe:/,Exclusive:|"));
    let known = commands.shows_exclusive.get();
    if known == Some(&true) {
        return newer();
    }
    let told = ask(fields)?;
    let place = fields.split(',').position(|field| field == "OverSubscribe:|");
    let is_open = |line: &str| place.and_then(|place| line.split('|').nth(place)) == Some("NO");
    // Most sites have no such job: the word is looked for before the fields.
    if known.is_some() || !(told.text.contains("|NO|") && told.text.lines().any(is_open)) {
        return Ok(told);
    }
    // Slurm 22.05 complains of a field that it does not know, prints nothing for it, and ends well.
    let lacks = |line: &str| {
        let word = place.and_then(|place| line.split('|').nth(place));
        word.is_some_and(|word| word.ends_with('/'))
    };
    match newer() {
        Ok(newer) if newer.text.lines().any(lacks) => {
            let _ = commands.shows_exclusive.set(false);
            Ok(told)
        }
        Ok(newer) => {
            let _ = commands.shows_exclusive.set(true);
            Ok(newer)
        }
        Err(Error::Command { reason, .. }) if reason.contains("Invalid job format") => {
            let _ = commands.shows_exclusive.set(false);
            Ok(told)
        }
        Err(error) => Err(error),
    }
}

/// Whether a job wants whole nodes for itself, by the word of [`job_lines`]. Of nodes of its user's or its account's own it may share
/// some.
pub(super) fn is_whole_node(word: &str) -> bool {
    match word.split_once('/') {
        Some((_, exclusive)) => exclusive == "NODE",
        None => word == "NO",
    }
}

/// The fields of a line; the last one may hold separators of its own.
pub(super) fn fields<'a, const N: usize>(
    command: &'static str,
    row: usize,
    line: &'a str,
) -> Result<[&'a str; N], Error> {
    let (mut found, mut num) = ([""; N], 0);
    for (field, part) in found
        .iter_mut()
        .zip(line.strip_suffix('|').unwrap_or("").splitn(N, '|'))
    {
        *field = part;
        num += 1;
    }
    match num == N {
        true => Ok(found),
        false => Err(Error::garbage(
            command,
            row,
            line,
            format!("{num} fields; {N} were asked for"),
        )),
    }
}

/// A number in a field.
pub(super) fn number<T: std::str::FromStr>(
    command: &'static str,
    row: usize,
    line: &str,
    what: &str,
    text: &str,
) -> Result<T, Error> {
    text.parse().map_err(|_| {
        Error::garbage(
            command,
            row,
            line,
            format!("{what} = {text:?} is no number in range"),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::slurm::command::Model;

    /// Place of the word for sharing nodes.
    const OVER_FIELD: usize = 17;

    /// A `squeue` of a release with or without the field `Exclusive`, with one job that is printed as `word`.
    #[derive(Debug)]
    struct Squeue {
        is_newer: bool,
        /// Prints nothing for a field that it does not know, and ends well.
        is_silent: bool,
        word: Mutex<&'static str>,
        num_asked: AtomicUsize,
    }

    impl Model for Squeue {
        fn run(&self, _: &str, args: &[&str]) -> Result<String, Error> {
            self.num_asked.fetch_add(1, Ordering::Relaxed);
            let asks = args.last().unwrap().contains("Exclusive:|");
            let word = *self.word.lock().unwrap();
            if asks && self.is_silent {
                return Ok(format!("{}{word}/|0|\n", "x|".repeat(OVER_FIELD)));
            }
            if asks && !self.is_newer {
                let reason = "exit status: 1: squeue: error: Invalid job format specification: Exclusive";
                let command = args.join(" ");
                return Err(Error::Command {
                    command,
                    reason: reason.into(),
                });
            }
            let word = if asks { format!("{word}/NODE") } else { word.into() };
            Ok(format!("{}{word}|0|\n", "x|".repeat(OVER_FIELD)))
        }

        fn feed(&self, _: &[&str]) -> Result<Vec<String>, Error> {
            Ok(Vec::new())
        }
    }

    /// What is read of a job, and how often `squeue` was asked, look by look.
    fn looks((is_newer, is_silent): (bool, bool), words: &[&'static str]) -> Vec<(bool, usize)> {
        let squeue = Arc::new(Squeue {
            is_newer,
            is_silent,
            word: Mutex::new("OK"),
            num_asked: AtomicUsize::new(0),
        });
        let mut commands = crate::Settings::default().commands();
        commands.model = Some(Arc::clone(&squeue) as Arc<dyn Model>);
        let look = |word: &&'static str| {
            *squeue.word.lock().unwrap() = *word;
            let text = job_lines(&commands, &[], JOB_FIELDS).unwrap().text;
            let own = is_whole_node(text.split('|').nth(OVER_FIELD).unwrap());
            (own, squeue.num_asked.swap(0, Ordering::Relaxed))
        };
        words.iter().map(look).collect()
    }

    #[test]
    fn who_wants_nodes_for_itself_is_asked_once_where_the_word_leaves_it_open() {
        assert_eq!(
            looks((false, false), &["OK", "NO", "NO", "YES"]),
            [(false, 1), (true, 2), (true, 1), (false, 1)]
        );
        assert_eq!(
            looks((false, true), &["NO", "NO", "OK"]),
            [(true, 2), (true, 1), (false, 1)]
        );
        assert_eq!(looks((true, false), &["NO", "NO"]), [(true, 2), (true, 1)]);
        assert!(!is_whole_node("NO/NO") && !is_whole_node("YES/NO") && !is_whole_node("NO/USER"));
        assert!(!is_whole_node("USER") && is_whole_node("NO/NODE"));
    }
}
