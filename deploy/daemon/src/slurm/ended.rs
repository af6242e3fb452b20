//! How jobs ended, from Slurm's own memory: `squeue` shows them for `MinJobAge` (300 s by default) after their end. No accounting
//! is needed. Asked for only in rounds in which a job has left.

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;

use super::table::{SQUEUE, fields, is_null, number};
use crate::error::Error;
use crate::history::End;
use crate::slurm::command::Commands;
use pleach_site::slurm::{expand, is_cut};

const FIELDS: &str = "JobArrayID:|,State:|,StartTime:|,EndTime:|,NodeList:|";
const NUM_FIELDS: usize = 5;

/// States in which a job may have left. `squeue` shows none of them unless it is asked for.
const STATES: &str = "BF,CA,CD,DL,F,NF,OOM,PR,TO";

/// Jobs that have ended a short time ago, of all partitions.
///
/// # Errors
/// A command that fails or takes too long, or output that it cannot have printed.
pub fn observe(commands: &Commands) -> Result<BTreeMap<ExternalId, End>, Error> {
    read(&commands.run(SQUEUE, &["-h", "-r", "-a", "-t", STATES, "-O", FIELDS])?)
}

/// The ends that a text tells of.
///
/// # Errors
/// A line that the command cannot have printed.
pub fn read(text: &str) -> Result<BTreeMap<ExternalId, End>, Error> {
    let mut ends = BTreeMap::new();
    for (row, line) in text.lines().enumerate() {
        let [id, state, start, end, nodes] = fields::<NUM_FIELDS>(SQUEUE, row + 1, line)?;
        // Parts of heterogeneous jobs have no number of their own here, and their ends are not needed.
        let Ok(id) = id.parse::<ExternalId>() else {
            continue;
        };
        let time = |what, text| match text {
            "N/A" | "0" | "" => Ok(None),
            _ => number::<i64>(SQUEUE, row + 1, line, what, text).map(Some),
        };
        let (start_s, end_s) = (time("start time", start)?, time("end time", end)?);
        let Some(end_s) = end_s else { continue };
        // Of a job that was cancelled while it waited Slurm gives that moment as its start.
        let has_run = state != "CANCELLED" || start_s != Some(end_s);
        let nodes = expand(if is_null(nodes) { "" } else { nodes });
        let end = End {
            start_s: start_s.filter(|_| has_run),
            end_s,
            is_cut: is_cut(state),
            nodes: nodes.map_err(|error| Error::garbage(SQUEUE, row + 1, line, error.to_string()))?,
        };
        ends.insert(id, end);
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_read_with_who_is_the_reason_for_them() {
        let text = "7|COMPLETED|1795000010|1795000070|g[1-2]|\n8_2|NODE_FAIL|1795000010|1795000020|g1|\n\
                    9|CANCELLED|1795000030|1795000030||\n11|CANCELLED|1795000010|1795000030|g3|\n\
                    10+1|FAILED|1795000010|1795000020|g1|\n";
        let ends = read(text).unwrap();
        let of = |number: u64| &ends[&ExternalId::number(number)];
        assert_eq!(ends.len(), 4);
        let end = End {
            start_s: Some(1_795_000_010),
            end_s: 1_795_000_070,
            is_cut: false,
            nodes: vec!["g1".into(), "g2".into()],
        };
        assert_eq!(*of(7), end);
        assert!(ends[&ExternalId::task(8, 2)].is_cut);
        assert_eq!(of(9).start_s, None, "it never ran");
        assert_eq!(of(11).start_s, Some(1_795_000_010));
        for garbage in [
            "slurm_load_jobs error",
            "7|COMPLETED|soon|1795000070|g1|",
            "7|COMPLETED|",
            "7|COMPLETED|1795000010|1795000070|g[1-|",
        ] {
            assert!(read(garbage).is_err(), "{garbage}");
        }
    }
}
