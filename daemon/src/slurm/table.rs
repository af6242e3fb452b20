//! Lines that a command of Slurm's was asked to print: fields that are separated by `|` and not padded.

use crate::error::Error;

/// The command that shows jobs.
pub(super) const SQUEUE: &str = "squeue";

/// What is asked of it about each job. The account is last: it may be any text.
pub(super) const JOB_FIELDS: &str = "JobArrayID:|,State:|,PriorityLong:|,tres-per-node:|,tres-per-job:|,tres-per-task:|,\
tres-per-socket:|,NumNodes:|,NumCPUs:|,NodeList:|,ReqNodes:|,admin_comment:|,Reason:|,TimeLimit:|,SubmitTime:|,StartTime:|,\
RestartCnt:|,OverSubscribe:|,Contiguous:|,Feature:|,Dependency:|,Reservation:|,Licenses:|,Partition:|,UserName:|,Account:|";
pub(super) const NUM_JOB_FIELDS: usize = 26;
/// Place of the mark among them, from 0.
pub(super) const MARK_FIELD: usize = 11;

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
