//! Lines that a command of Slurm's was asked to print: fields that are separated by `|` and not padded.

use crate::error::Error;
use crate::slurm::command::Commands;

/// The command that shows jobs.
pub(super) const SQUEUE: &str = "squeue";

/// What is asked of it about each job. The account is last: it may be any text.
pub(super) const JOB_FIELDS: &str = "JobArrayID:|,State:|,PriorityLong:|,tres-per-node:|,tres-per-job:|,tres-per-task:|,\
tres-per-socket:|,NumNodes:|,NumCPUs:|,NodeList:|,ReqNodes:|,admin_comment:|,Reason:|,TimeLimit:|,SubmitTime:|,StartTime:|,\
RestartCnt:|,OverSubscribe:|,Contiguous:|,Feature:|,Dependency:|,Reservation:|,Licenses:|,Partition:|,UserName:|,Account:|";
pub(super) const NUM_JOB_FIELDS: usize = 26;
/// Place of the mark among them, from 0.
pub(super) const MARK_FIELD: usize = 11;

/// The lines of jobs with these fields, those of [`JOB_FIELDS`] among them, and with `more` flags. Who wants nodes for itself is `NO` in `OverSubscribe` up to Slurm 24.11. In 26.05 everybody is
/// who does not share, and the field `Exclusive` tells it; before there is none. So where there is a `NO`, it is asked whether there
/// is one, once; then the word is `NO/NO` of a job that takes a part of a node.
pub(super) fn job_lines(commands: &Commands, more: &[&str], fields: &str) -> Result<String, Error> {
    let ask = |fields: &str| commands.run(SQUEUE, &[&["-h"][..], more, &["-a", "-O", fields]].concat());
    let newer = || ask(&fields.replace("OverSubscribe:|", "OverSubscribe:/,Exclusive:|"));
    let known = commands.shows_exclusive.get();
    if known == Some(&true) {
        return newer();
    }
    let text = ask(fields)?;
    let place = fields.split(',').position(|field| field == "OverSubscribe:|");
    let is_open = |line: &str| place.and_then(|place| line.split('|').nth(place)) == Some("NO");
    if known.is_some() || !text.lines().any(is_open) {
        return Ok(text);
    }
    match newer() {
        Ok(text) => {
            let _ = commands.shows_exclusive.set(true);
            Ok(text)
        }
        Err(Error::Command { reason, .. }) if reason.contains("Invalid job format") => {
            let _ = commands.shows_exclusive.set(false);
            Ok(text)
        }
        Err(error) => Err(error),
    }
}

/// Whether a job wants nodes for itself, by the word of [`job_lines`].
pub(super) fn is_exclusive(word: &str) -> bool {
    match word.split_once('/') {
        Some((_, exclusive)) => exclusive != "NO",
        None => !matches!(word, "OK" | "YES"),
    }
}

/// The fields of a line; the last one may hold separators of its own.
pub(super) fn fields<'a, const N: usize>(
    command: &'static str,
    row: usize,
    line: &'a str,
) -> Result<[&'a str; N], Error> {
    let found: Vec<&str> = line.strip_suffix('|').unwrap_or("").splitn(N, '|').collect();
    let num = found.len();
    found
        .try_into()
        .map_err(|_| Error::garbage(command, row, line, format!("{num} fields; {N} were asked for")))
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

/// Whether a field says that there is nothing.
pub(super) fn is_null(text: &str) -> bool {
    text.is_empty() || text == "(null)" || text == "N/A"
}
