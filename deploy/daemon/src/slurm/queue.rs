//! What waits in a partition as Slurm orders it, of whatever kind, with the factor that it has.
//!
//! Two commands tell it: `squeue` the jobs that wait and why, `sprio` the factors of those that Slurm may start. A job that is held,
//! waits for another one or for a time is not in the queue, and keeps the factor that it had: it lies outside, and has to lose that
//! factor before its user has changed it and it may start.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pleach_scheduler::{ExternalId, IdHash};
use pleach_site::slurm::{is_name, whole};

use super::records::{self, Lines, all, each};
use super::table::{fields, named_id, number};
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
    pub name: Arc<str>,
    /// What it is in the tables.
    pub job: Option<ExternalId>,
    /// Whether it is several tasks that wait together.
    pub is_array: bool,
    /// Its present `SiteFactor`.
    pub factor: i64,
    /// Why Slurm does not start it.
    pub reason: Arc<str>,
}

/// A job that waits and has no place in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Its name as `scontrol` takes it.
    pub name: String,
    /// Its present `SiteFactor`; none: Slurm does not tell it.
    pub factor: Option<i64>,
}

/// What waits in a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// What Slurm may start, by arrival.
    pub queue: Vec<Place>,
    /// What it may not start yet: held, or behind another job or a time; and tasks that stand in the line of their array though they
    /// are jobs of their own by now, with limits that the line does not show.
    pub outside: Vec<Outside>,
    /// Factors other than 0 of jobs that wait in other partitions, by name.
    pub elsewhere: BTreeMap<String, i64>,
    /// What could not be read.
    pub notes: Vec<String>,
}

/// A job of a line: number, priority, when it came, and itself without its factor.
type Line = (u64, u64, i64, Place);

/// What was read in the last look: jobs, and factors by job number with the partition.
#[derive(Debug, Default)]
pub(super) struct Known {
    jobs: Lines<Line>,
    factors: Lines<(u64, i64, String)>,
}

/// What waits in partitions.
///
/// # Errors
/// A command that fails or takes too long, or output that it cannot have printed.
pub fn observe(commands: &Commands, partitions: &[&str]) -> Result<Waiting, Error> {
    observe_again(commands, partitions, &mut Known::default())
}

/// The same where lines of the last look are known.
pub(super) fn observe_again(
    commands: &Commands,
    partitions: &[&str],
    known: &mut Known,
) -> Result<Waiting, Error> {
    let names = partitions.join(",");
    let args = ["-h", "-a", "-t", "PENDING", "-p", &names, "-O"];
    let jobs = records::ask(commands, SQUEUE, &args, FIELDS)?;
    let factors = commands.run(SPRIO, &["-h", "-o", "%i|%S|%r|"])?;
    let mut waiting = read_again((&jobs.text, &factors), partitions, known)?;
    waiting.notes.extend(jobs.notes(SQUEUE));
    Ok(waiting)
}

/// What two texts tell of partitions.
///
/// # Errors
/// A text that the command cannot have printed.
pub fn read(jobs: &str, factors: &str, partitions: &[&str]) -> Result<Waiting, Error> {
    read_again((jobs, factors), partitions, &mut Known::default())
}

fn read_again(
    (jobs, factors): (&str, &str),
    partitions: &[&str],
    known: &mut Known,
) -> Result<Waiting, Error> {
    let mut factors = read_factors(&mut known.factors, factors, partitions)?;
    let mut waiting = Waiting::default();
    let mut queue: Vec<((i64, u64), Place)> = Vec::with_capacity(factors.len());
    let note = each(
        &mut known.jobs,
        jobs,
        line,
        |(id, priority, submit_s, place)| match factors.remove(id) {
            Some(Factor { factor, .. }) if *priority > 0 => {
                let place = Place {
                    factor,
                    ..place.clone()
                };
                queue.push(((*submit_s, *id), place));
            }
            known => waiting.outside.push(Outside {
                name: place.name.to_string(),
                factor: known.map(|known| known.factor),
            }),
        },
    )?;
    waiting.notes.extend(note);
    queue.sort_unstable_by_key(|(arrival, _)| *arrival);
    waiting.queue = queue.into_iter().map(|(_, place)| place).collect();
    let rest = factors.into_iter().filter(|(_, of)| of.factor != 0);
    for (id, Factor { factor, is_here }) in rest.collect::<BTreeMap<_, _>>() {
        let name = id.to_string();
        match is_here {
            true => waiting.outside.push(Outside {
                name,
                factor: Some(factor),
            }),
            false => {
                waiting.elsewhere.insert(name, factor);
            }
        }
    }
    Ok(waiting)
}

fn line(row: usize, line: &str) -> Result<Line, Error> {
    let [id, name, priority, submit, reason] = fields::<5>(SQUEUE, row, line)?;
    let id = number(SQUEUE, row, line, "job number", id)?;
    let priority = number(SQUEUE, row, line, "priority", priority)?;
    let submit_s = number(SQUEUE, row, line, "submit time", submit)?;
    let (is_array, name) = (name.contains('['), whole(name));
    if !is_name(name) {
        return Err(Error::garbage(SQUEUE, row, line, "names no job"));
    }
    let place = Place {
        name: name.into(),
        job: named_id(name),
        is_array,
        factor: 0,
        reason: reason.into(),
    };
    Ok((id, priority, submit_s, place))
}

/// Factors by job number.
type Factors = HashMap<u64, Factor, IdHash>;

/// A job's factor, and whether it waits in one of the partitions.
struct Factor {
    factor: i64,
    is_here: bool,
}

/// Factors by job number. A job of several partitions has a line for each, with one factor.
fn read_factors(
    known: &mut Lines<(u64, i64, String)>,
    text: &str,
    partitions: &[&str],
) -> Result<Factors, Error> {
    let mut factors = Factors::default();
    factors.reserve(text.len() / 16);
    let one = |row, line: &str| {
        let [id, factor, partition] = fields::<3>(SPRIO, row, line)?;
        let id = number(SPRIO, row, line, "job number", id.trim())?;
        let factor = number(SPRIO, row, line, "factor", factor.trim())?;
        Ok((id, factor, partition.trim().to_owned()))
    };
    all(known, text, one, |(id, factor, partition)| {
        let is_here = partitions.contains(&partition.as_str());
        let factor = *factor;
        let known = factors.entry(*id).or_insert(Factor { factor, is_here });
        known.factor = factor;
        known.is_here |= is_here;
    })?;
    Ok(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_wait_are_in_the_queue_by_arrival_and_those_that_slurm_may_not_start_lie_outside() {
        let jobs = "6|6|1|1795000003|Priority|\n5|5_[0-9%2]|1|1795000002|Priority|\n4|4_[1-9]|500|1795000001|Resources|\n\
                    8|7+1|1|1795000004|Resources|\n3|3|0|1795000000|JobHeldUser|\n12|4_0|1|1795000001|Resources|\n\
                    13|13|1|1795000005|BeginTime|\n";
        let factors = "6|0|main|\n4|500|main|\n5|-7|main|\n8|700|low|\n8|700|main|\n12|3|main|\n3|9|main|\n\
                       14|0|main|\n15|8|main|\n16|6|low|\n17|0|low|\n";
        let waiting = read(jobs, factors, &["main"]).unwrap();
        let outside = |name: &str, factor| Outside {
            name: name.into(),
            factor,
        };
        // Held, behind a time, and a task that stands in its array's line with a limit of its own.
        assert_eq!(
            waiting.outside,
            [outside("3", Some(9)), outside("13", None), outside("15", Some(8))]
        );
        assert_eq!(waiting.elsewhere, BTreeMap::from([("16".to_owned(), 6)]));
        let queue = waiting.queue;
        let names: Vec<(&str, i64)> = queue.iter().map(|place| (&*place.name, place.factor)).collect();
        assert_eq!(names, [("4", 500), ("4_0", 3), ("5", -7), ("6", 0), ("7+1", 700)]);
        assert_eq!(queue[0].job, Some(ExternalId::number(4)));
        assert_eq!(
            (queue[1].job, queue[4].job),
            (Some(ExternalId::task(4, 0)), Some(ExternalId::task(7, 1)))
        );
        assert_eq!(&*queue[0].reason, "Resources");
        assert_eq!(read("", "", &["main"]).unwrap(), Waiting::default());
        let one = read(
            "6|6; shutdown|1|1795000003|Priority|\n7|7|1|1795000003|Priority|\n",
            "7|0|main|\n",
            &["main"],
        )
        .unwrap();
        assert_eq!(
            (one.queue.len(), one.notes.len()),
            (1, 1),
            "a line that names no job costs itself alone"
        );
        for (jobs, factors) in [
            ("slurm_load_jobs error: Invalid", ""),
            ("6|6; shutdown|1|1795000003|Priority|\n", "6|0|main|\n"),
            ("6|6|1|1795000003|Priority|\n", "sprio: error\n"),
            ("6|6|x|1795000003|Priority|\n", "6|0|main|\n"),
        ] {
            assert!(read(jobs, factors, &["main"]).is_err(), "{jobs}");
        }
    }
}
