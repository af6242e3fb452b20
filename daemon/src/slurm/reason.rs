//! Why jobs do not start that were let go, in Slurm's own words: `squeue -O Reason`.

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;

use super::table::{SQUEUE, fields};
use crate::error::Error;
use crate::slurm::command::Commands;

/// Most jobs that are asked for with one command, whose line has to fit.
const JOBS_MAX: usize = 500;

/// Slurm's reasons for jobs that wait; those that have left, or of which it says nothing, are not among them. Nothing is asked for
/// no jobs, and no more than the first 500 of a list.
///
/// # Errors
/// A command that fails, or output that it cannot have printed.
pub fn reasons(commands: &Commands, jobs: &[ExternalId]) -> Result<BTreeMap<ExternalId, String>, Error> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let list: Vec<String> = jobs.iter().take(JOBS_MAX).map(ToString::to_string).collect();
    let list = list.join(",");
    let args = [
        "-h",
        "-r",
        "-a",
        "-j",
        list.as_str(),
        "-O",
        "JobArrayID:|,Reason:|",
    ];
    read(&commands.run(SQUEUE, &args)?)
}

fn read(text: &str) -> Result<BTreeMap<ExternalId, String>, Error> {
    let mut found = BTreeMap::new();
    for (row, line) in text.lines().enumerate() {
        let [id, reason] = fields::<2>(SQUEUE, row + 1, line)?;
        let id: ExternalId = id
            .parse()
            .map_err(|_| Error::garbage(SQUEUE, row + 1, line, "begins with no job number"))?;
        if !reason.is_empty() {
            found.insert(id, reason.to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_and_what_is_no_reason_is_refused() {
        let found = read("7|Resources|\n8_1|ReqNodeNotAvail, UnavailableNodes:g1|\n9||\n").unwrap();
        assert_eq!(found[&ExternalId::number(7)], "Resources");
        assert_eq!(
            found[&ExternalId::task(8, 1)],
            "ReqNodeNotAvail, UnavailableNodes:g1"
        );
        assert_eq!(found.len(), 2);
        assert!(read("").unwrap().is_empty());
        for text in ["slurm_load_jobs error: Invalid job id specified", "x|Resources|"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
