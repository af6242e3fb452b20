//! Tells Slurm the order of the jobs that wait: their `SiteFactor`s.
//!
//! Slurm starts the jobs, by all of its own rules. Nothing is held, so a daemon that ends anywhere leaves a queue that goes on; a factor
//! that was lost or came late is seen in the next round, which reads all factors anew.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use pleach_dealing::RANKED_MAX;
use pleach_scheduler::{ExternalId, IdHash};

use super::feed::{Feed, Line, about, refused};
use super::outside::Outsiders;
use super::pins::Pins;
use super::queue::{Place, Waiting};
use super::rivals::Rivals;
use super::stops::Stops;
use crate::error::Error;
use crate::factors;
use crate::order::Order;
use crate::slurm::command::Commands;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// How an order is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telling {
    /// Distance of neighbours.
    pub step: i64,
    /// Most factors that are written in one round.
    pub updates_max: usize,
}

/// Writes the factors that are wrong, as many as a round may, and notes them in the order; what an operator should know of it.
///
/// Those outside the queue that lose theirs are written last: what was written of an array is so of all its tasks. Each of the two
/// may have half of the round, and what the other one leaves.
pub(super) fn tell(
    (feed, commands): (&mut Feed, &Commands),
    (rivals, outsiders): (&mut Rivals, &mut Outsiders),
    (waiting, snapshot): (&Waiting, &Snapshot),
    order: &mut Order,
    telling: Telling,
) -> Vec<String> {
    let queue = &waiting.queue;
    let changed = changes(queue, &in_turn(order, snapshot), telling.step);
    let due = outsiders.due(waiting);
    let most = telling.updates_max;
    let num = changed.len().min(most - due.len().min(most / 2));
    let part = changed[..num]
        .iter()
        .map(|(place, factor)| (&*queue[*place].name, *factor));
    let none = due.iter().take(most - num).map(|name| (name.as_str(), 0));
    let told: Vec<(&str, i64)> = part.clone().chain(none.clone()).collect();
    let num_all = changed.len() + due.len();
    order.num_left = num_all - told.len();
    let lines: Vec<Line> = told
        .iter()
        .filter_map(|(name, factor)| Line::factor(name, *factor))
        .collect();
    outsiders.ranked(part.clone());
    let said = match feed.carry_out(commands, &lines) {
        Ok(said) => said,
        Err(error) => {
            rivals.factors(part, false);
            order.num_left = num_all;
            return vec![format!("the order was not told, or in part: {error}")];
        }
    };
    let stay: BTreeSet<&str> = said.iter().filter_map(|text| about(text)).collect();
    let is_told = |name: &str| !stay.contains(name);
    rivals.factors(part.filter(|(name, _)| is_told(name)), true);
    outsiders.cleared(none.map(|(name, _)| name).filter(|name| is_told(name)));
    let written = told.iter().map(|(name, factor)| ((*name).to_owned(), *factor));
    order.written = written.collect();
    refused(&said).into_iter().collect()
}

/// Time after which a job that takes no part in the order has its place by arrival, s. *Ours*: so whatever is read wrongly here delays a
/// job by no more.
const TURN_S_MAX: i64 = 86_400;

/// The order with the jobs that take no part in it now behind all others: above their limits, or with no node open to them. By arrival
/// they would start before jobs that the policy prefers in the moment in which they may. What the tables do not know stays where it
/// came.
fn in_turn(order: &Order, snapshot: &Snapshot) -> Order {
    let is_due = |job: &&JobSeen| snapshot.taken_s - job.submit_s < TURN_S_MAX;
    let known = snapshot
        .jobs
        .iter()
        .filter(|job| matches!(job.phase, Phase::Loose | Phase::Blocked { .. }));
    let due: HashSet<ExternalId, IdHash> = known.filter(is_due).map(|job| job.id).collect();
    let (ranked, rest) = order.jobs.split_at(order.num_ranked.min(order.jobs.len()));
    let had: HashSet<&ExternalId, IdHash> = order.jobs.iter().collect();
    // Where there are more than are ranked, those behind them are in the order of arrival anyway.
    let is_full = ranked.len() >= RANKED_MAX;
    let rest = rest.iter().filter(|job| is_full || due.contains(job));
    let others = snapshot.jobs.iter().map(|job| &job.id);
    let others = others.filter(|job| due.contains(job) && !had.contains(job));
    Order {
        jobs: ranked.iter().chain(rest).chain(others).copied().collect(),
        num_ranked: ranked.len(),
        ..Order::default()
    }
}

/// Places in the queue whose factors are wrong, and what they have to be, those first that matter most.
fn changes(queue: &[Place], order: &Order, step: i64) -> Vec<(usize, i64)> {
    let jobs: Vec<Option<ExternalId>> = queue.iter().map(|waiting| waiting.job).collect();
    let (wanted, cut) = factors::wanted(&jobs, order);
    let present: Vec<i64> = wanted.iter().map(|place| queue[*place].factor).collect();
    let changed = factors::changes(&present, cut, step).into_iter();
    changed.map(|(at, factor)| (wanted[at], factor)).collect()
}

/// Sets the factors of all that wait back to a new job's, and lifts the nodes that a daemon has named, as the folder has them; how many,
/// and what was refused.
///
/// # Errors
/// A `scontrol` that does not answer; a folder that cannot be written to.
pub fn take_back(commands: &Commands, waiting: &Waiting, folder: &Path) -> Result<(u64, Vec<String>), Error> {
    Pins::of(folder).lift(commands)?;
    let others = waiting.queue.iter().filter(|place| place.factor != 0);
    let outside = waiting.outside.iter().filter(|job| job.factor != Some(0));
    // Those outside come last: what is written of an array is so of all its tasks.
    let names = others
        .map(|place| &*place.name)
        .chain(outside.map(|job| job.name.as_str()));
    let lines: Vec<Line> = names.filter_map(|name| Line::factor(name, 0)).collect();
    let (mut feed, mut refusals) = (Feed::default(), Vec::new());
    for part in lines.chunks(500) {
        refusals.extend(refused(&feed.carry_out(commands, part)?));
    }
    Ok((lines.len() as u64, refusals))
}

/// What writes, and what it has to remember of what was written.
#[derive(Debug)]
pub(crate) struct Writes {
    pub(crate) feed: Feed,
    pub(crate) pins: Pins,
    pub(crate) rivals: Rivals,
    pub(crate) outside: Outsiders,
    pub(crate) stops: Stops,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;
    use crate::pulse::Pulse;
    use crate::snapshot::{Site, VERSION};

    const NUM: usize = 5000;
    const BUDGET: usize = 100;

    fn place(job: u64, factor: i64) -> Place {
        Place {
            name: job.to_string().into(),
            job: Some(ExternalId::number(job)),
            is_array: false,
            factor,
            reason: "Priority".into(),
        }
    }

    /// Numbers of the jobs in the order in which Slurm would start them.
    fn line(queue: &[Place]) -> Vec<u64> {
        let mut line: Vec<(i64, u64)> = queue
            .iter()
            .map(|place| (-place.factor, place.name.parse().unwrap()))
            .collect();
        line.sort_unstable();
        line.into_iter().map(|(_, job)| job).collect()
    }

    /// 5,000 jobs wait, each round may write 100 factors, and in each ten jobs come, of which the policy wants the first at the head.
    #[test]
    fn of_thousands_the_head_is_right_first_and_stays_so_while_others_come() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scontrol");
        let script = "#!/bin/sh\nwhile read -r verb job factor; do case $verb in update) echo \"$job $factor\" >> \"$0.did\" ;;\n\
                      *) echo \"invalid keyword: $verb\" >&2 ;; esac; done\n";
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let commands = Commands {
            folder: Some(folder.path().into()),
            limit: Duration::from_secs(20),
            pulse: Pulse::default(),
            model: None,
            shows_exclusive: Default::default(),
        };
        let did = folder.path().join("scontrol.did");
        let telling = Telling {
            step: 1000,
            updates_max: BUDGET,
        };
        let mut waiting = Waiting {
            queue: (0..NUM as u64).map(|job| place(job, 0)).collect(),
            ..Waiting::default()
        };
        let snapshot = Snapshot {
            version: VERSION,
            taken_s: 0,
            nodes: Vec::new(),
            jobs: Vec::new(),
            site: Site::default(),
        };
        let mut outsiders = Outsiders::default();
        // The newest first; of them a thousand are ranked.
        let (mut feed, mut rivals) = (Feed::default(), Rivals::default());
        let mut num_right = 0;
        for round in 0..15 {
            let queue = &waiting.queue;
            let jobs: Vec<ExternalId> = (0..queue.len() as u64).rev().map(ExternalId::number).collect();
            let mut order = Order {
                num_jobs: jobs.len(),
                jobs,
                num_ranked: 1000,
                ..Order::default()
            };
            let kept = (&mut rivals, &mut outsiders);
            let notes = tell(
                (&mut feed, &commands),
                kept,
                (&waiting, &snapshot),
                &mut order,
                telling,
            );
            assert!(notes.is_empty(), "{notes:?}");
            assert!(order.written.len() <= BUDGET);
            let queue = &mut waiting.queue;
            let text = std::fs::read_to_string(&did).unwrap_or_default();
            let _ = std::fs::remove_file(&did);
            assert_eq!(text.lines().count(), order.written.len());
            for told in text.lines() {
                let (job, factor) = told.split_once(' ').unwrap();
                let job: usize = job.strip_prefix("jobid=").unwrap().parse().unwrap();
                queue[job].factor = factor.strip_prefix("sitefactor=").unwrap().parse().unwrap();
            }
            assert_eq!(rivals.by_factors(queue, round), None);
            let wanted = (0..queue.len() as u64).rev();
            let right = line(queue)
                .into_iter()
                .zip(wanted)
                .take_while(|(is, wanted)| is == wanted)
                .count();
            assert!(
                right >= (num_right + BUDGET - 10).min(1000),
                "round {round}: {right} after {num_right}"
            );
            num_right = right;
            if right >= 1000 {
                assert_eq!(order.num_left, 0);
            }
            let next = queue.len() as u64;
            queue.extend((next..next + 10).map(|job| place(job, 0)));
        }
        assert_eq!(num_right, 1000);
        let behind: Vec<u64> = line(&waiting.queue).split_off(1010);
        assert!(
            behind.is_sorted(),
            "the others start in the order in which they came"
        );
    }
}
