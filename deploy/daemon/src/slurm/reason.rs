//! Why jobs do not start that were let go, in Slurm's own words: `squeue -O Reason`; and what is no refusal.

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;

use super::mark::PAUSE_S_MAX;
use super::table::{SQUEUE, fields};
use crate::error::Error;
use crate::slurm::command::Commands;
use crate::snapshot::{JobSeen, Phase};
use crate::system::Late;

/// Most jobs that are asked for with one command, whose line has to fit.
const JOBS_MAX: usize = 500;

/// Beginnings of Slurm's reasons that are those of the node to which a job was let go: another one may take it. All others (limits
/// of accounts, QOS and partitions, licences) are the same everywhere.
///
/// # Source
/// Seen on Slurm 22.05 for jobs with a node by name: CPUs, memory or GPUs taken, a reservation to come, `--exclusive` on a used
/// node, a node drained or down.
const REASONS_OF_NODES: [&str; 7] = [
    "None",
    "Resources",
    "Priority",
    "ReqNodeNotAvail",
    "Nodes required",
    "Nodes_required",
    "NodeDown",
];

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

/// Whether Slurm's scheduler may not have looked at a job yet that was let go: then nothing has refused it. *Ours*: it has three times
/// as long for that as for other reasons.
pub(super) fn is_unlooked(job: &JobSeen, reason: &str, (now_s, limit_s): (i64, i64)) -> bool {
    let Phase::Released { since_s } = job.phase else {
        return false;
    };
    matches!(reason, "None" | "Priority") && !is_overdue(since_s, now_s, limit_s.saturating_mul(3))
}

/// A node that refused is remembered, so its job may go to another one at once. Who would be refused everywhere pauses.
///
/// Of several nodes Slurm does not say which one it was: the first is taken for it, and if it was not, the next try with the others
/// shows that.
pub(super) fn why_late(job: &JobSeen, reason: Option<&String>, tries: u32, release_limit_s: i64) -> Late {
    let is_of_node =
        reason.is_none_or(|reason| REASONS_OF_NODES.iter().any(|words| reason.starts_with(words)));
    let node = job.nodes.first().filter(|_| is_of_node);
    Late {
        job: job.id,
        node: node.cloned(),
        reason: reason.map_or("Slurm gives no reason", String::as_str).to_owned(),
        pause_s: match node {
            Some(_) => 0,
            None => (release_limit_s << tries.min(10)).min(PAUSE_S_MAX),
        },
    }
}

/// Time since a release; one that lies in the future comes from a clock that was set back, and is over.
pub(super) fn is_overdue(since_s: i64, now_s: i64, limit_s: i64) -> bool {
    now_s - since_s > limit_s || since_s > now_s + limit_s
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
