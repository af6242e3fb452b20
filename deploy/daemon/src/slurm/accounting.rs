//! Jobs that ended before the daemon first looked, from Slurm's accounting. Read once, where nothing was learned yet.

use std::time::Duration;

use super::table::number;
use crate::error::Error;
use crate::history::EndedJob;
use crate::slurm::command::Commands;
use pleach_site::slurm::{expand, gpus_of_tres, is_nothing};

const SACCT: &str = "sacct";
/// The account is last: it may be any text.
const FIELDS: &str = "State,Start,End,AllocTRES,NodeList,User,Account";
const NUM_FIELDS: usize = 7;
/// Ends of jobs' own, as in [`super::ended`].
const STATES: &str = "CA,CD,DL,F,OOM,TO";
/// Accounting may take longer than the controller.
const LIMIT: Duration = Duration::from_secs(60);

/// Jobs of a partition with GPUs that ended on their own in the last `days` days.
///
/// # Errors
/// A command that fails or takes longer than a minute, as without accounting; output that it cannot have printed.
pub fn observe(commands: &Commands, partition: &str, days: u32) -> Result<Vec<EndedJob>, Error> {
    let commands = Commands {
        limit: commands.limit.max(LIMIT),
        ..commands.clone()
    };
    let since = format!("now-{days}days");
    let args = [
        "-n", "-P", "-X", "-a", "-r", partition, "-S", &since, "-E", "now", "-s", STATES, "-o", FIELDS,
    ];
    read(&commands.run(SACCT, &args)?)
}

/// The jobs that a text tells of.
///
/// # Errors
/// A line that the command cannot have printed.
pub fn read(text: &str) -> Result<Vec<EndedJob>, Error> {
    let mut jobs = Vec::new();
    for (row, line) in text.lines().enumerate() {
        let found: Vec<&str> = line.splitn(NUM_FIELDS, '|').collect();
        let [_state, start, end, tres, nodes, user, account] = found[..] else {
            let reason = format!("{} fields; {NUM_FIELDS} were asked for", found.len());
            return Err(Error::garbage(SACCT, row + 1, line, reason));
        };
        // A job that never ran has no GPUs either.
        let Ok(Some((num_gpus, _))) = gpus_of_tres(tres) else {
            continue;
        };
        if is_nothing(start) || is_nothing(end) {
            continue;
        }
        let start_s: i64 = number(SACCT, row + 1, line, "start time", start)?;
        let end_s: i64 = number(SACCT, row + 1, line, "end time", end)?;
        let nodes = if is_nothing(nodes) { "" } else { nodes };
        jobs.push(EndedJob {
            user: user.to_owned(),
            account: account.to_owned(),
            num_gpus,
            start_s,
            end_s,
            nodes: expand(nodes).map_err(|error| Error::garbage(SACCT, row + 1, line, error.to_string()))?,
        });
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_with_gpus_that_ran_are_read() {
        let text = "COMPLETED|1795000000|1795000060|billing=4,cpu=4,gres/gpu=2,node=1|g1|ann|team\n\
                    CANCELLED by 1000|Unknown|1795000060||None assigned|ann|team\n\
                    FAILED|1795000000|1795000060|billing=4,cpu=4,node=1|g1|ann|team\n\
                    TIMEOUT|1795000000|1795003600|cpu=4,gres/gpu:a100=8,gres/gpu=8,node=2|g[1-2]|bob|a|b\n";
        let jobs = read(text).unwrap();
        assert_eq!(jobs.len(), 2);
        assert_eq!((jobs[0].num_gpus, jobs[0].user.as_str()), (2, "ann"));
        assert_eq!((jobs[1].num_gpus, jobs[1].account.as_str()), (8, "a|b"));
        assert_eq!(jobs[1].nodes, ["g1", "g2"]);
        assert!(read("sacct: error: no").is_err());
        assert!(read("FAILED|soon|1795000060|gres/gpu=1|g1|ann|team").is_err());
    }
}
