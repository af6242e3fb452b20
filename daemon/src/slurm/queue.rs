//! The queue of a partition as Slurm orders it: every job that waits, of whatever kind, with the factor that it has.
//!
//! Two commands tell it: `squeue` who waits and why, `sprio` the factors. Who is held, and who may not start yet (a begin time), is
//! not in it: no factor does anything for it.

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;

use super::parts::{is_name, whole};
use super::table::{fields, number};
use crate::error::Error;
use crate::slurm::command::Commands;

const SQUEUE: &str = "squeue";
const SPRIO: &str = "sprio";

/// What is asked of `squeue`. The reason is last: it may be any text.
const FIELDS: &str = "JobID:|,JobArrayID:|,PriorityLong:|,SubmitTime:|,Reason:|";

/// A job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name as `scontrol` takes it: a job, a task, an array that waits as a whole, a part of a heterogeneous job.
    pub name: String,
    /// The same, where it is no part.
    pub job: Option<ExternalId>,
    /// Whether it is several tasks that wait together.
    pub is_array: bool,
    /// Its present `SiteFactor`.
    pub factor: i64,
    /// Why Slurm does not start it.
    pub reason: String,
}

/// The queue by arrival.
///
/// # Errors
/// A command that fails or takes too long, or output that it cannot have printed.
pub fn observe(commands: &Commands, partition: &str) -> Result<Vec<Place>, Error> {
    let jobs = commands.run(
        SQUEUE,
        &["-h", "-a", "-t", "PENDING", "-p", partition, "-O", FIELDS],
    )?;
    let factors = match jobs.trim().is_empty() {
        true => String::new(),
        false => commands.run(SPRIO, &["-h", "-o", "%i|%S|"])?,
    };
    read(&jobs, &factors)
}

/// The queue that two texts tell of.
///
/// # Errors
/// A line that the command cannot have printed.
pub fn read(jobs: &str, factors: &str) -> Result<Vec<Place>, Error> {
    let factors = read_factors(factors)?;
    let mut queue: BTreeMap<(i64, u64), Place> = BTreeMap::new();
    for (row, line) in jobs.lines().enumerate() {
        let row = row + 1;
        let [id, name, priority, submit, reason] = fields::<5>(SQUEUE, row, line)?;
        let id: u64 = number(SQUEUE, row, line, "job number", id)?;
        let priority: u64 = number(SQUEUE, row, line, "priority", priority)?;
        let submit_s: i64 = number(SQUEUE, row, line, "submit time", submit)?;
        let (is_array, name) = (name.contains('['), whole(name));
        if !is_name(name) {
            return Err(Error::garbage(SQUEUE, row, line, "names no job"));
        }
        let Some(factor) = factors.get(&id).filter(|_| priority > 0) else {
            continue;
        };
        let place = Place {
            name: name.to_owned(),
            job: name.parse().ok(),
            is_array,
            factor: *factor,
            reason: reason.to_owned(),
        };
        queue.insert((submit_s, id), place);
    }
    Ok(queue.into_values().collect())
}

/// Factors by job number. A job of several partitions has a line for each, with one factor.
fn read_factors(text: &str) -> Result<BTreeMap<u64, i64>, Error> {
    let factor = |(row, line): (usize, &str)| {
        let [id, factor] = fields::<2>(SPRIO, row + 1, line)?;
        let id = number(SPRIO, row + 1, line, "job number", id.trim())?;
        Ok((id, number(SPRIO, row + 1, line, "factor", factor.trim())?))
    };
    text.lines().enumerate().map(factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_wait_are_in_the_queue_by_arrival_and_those_that_are_held_are_not() {
        let jobs = "6|6|1|1795000003|Priority|\n5|5_[0-9%2]|1|1795000002|Priority|\n4|4_[1-9]|500|1795000001|Resources|\n\
                    8|7+1|1|1795000004|Resources|\n3|3|0|1795000000|JobHeldUser|\n12|4_0|1|1795000001|Resources|\n\
                    13|13|1|1795000005|BeginTime|\n";
        let queue = read(jobs, "6|0|\n4|500|\n5|-7|\n8|700|\n8|700|\n12|3|\n3|9|\n").unwrap();
        let names: Vec<(&str, i64)> = queue
            .iter()
            .map(|place| (place.name.as_str(), place.factor))
            .collect();
        assert_eq!(names, [("4", 500), ("4_0", 3), ("5", -7), ("6", 0), ("7+1", 700)]);
        assert_eq!(queue[0].job, Some(ExternalId::number(4)));
        assert_eq!((queue[1].job, queue[4].job), (Some(ExternalId::task(4, 0)), None));
        assert_eq!(queue[0].reason, "Resources");
        assert!(read("", "").unwrap().is_empty());
        for (jobs, factors) in [
            ("slurm_load_jobs error: Invalid", ""),
            ("6|6; shutdown|1|1795000003|Priority|\n", "6|0|\n"),
            ("6|6|1|1795000003|Priority|\n", "sprio: error\n"),
            ("6|6|x|1795000003|Priority|\n", "6|0|\n"),
        ] {
            assert!(read(jobs, factors).is_err(), "{jobs}");
        }
    }
}
