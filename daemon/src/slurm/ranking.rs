//! Tells Slurm the order of the jobs that wait: their `SiteFactor`s, and with *order-and-place* the nodes of those that would start
//! now.
//!
//! Slurm starts the jobs, by all of its own rules. Nothing is held, so whoever ends anywhere leaves a queue that goes on; a factor
//! that was lost or came late is seen in the next round, which reads all factors anew.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::ExternalId;

use super::factors;
use super::feed::{Feed, Line};
use super::pins::Pins;
use super::queue::Place;
use crate::error::Error;
use crate::order::Order;
use crate::slurm::command::Commands;

/// Jobs that are given back to Slurm in one round. *Ours*: three lines each, and 150 such jobs a second were measured.
const BACK_MAX: usize = 250;

/// How an order is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telling {
    /// Distance of neighbours.
    pub step: i64,
    /// Most factors that are written in one round.
    pub updates_max: usize,
    /// Whether nodes are named too.
    pub places: bool,
}

/// Writes the factors that are wrong, as many as a round may, and notes them in the order; what an operator should know of it.
pub(super) fn tell(
    (feed, commands): (&mut Feed, &Commands),
    queue: &[Place],
    order: &mut Order,
    telling: Telling,
) -> Vec<String> {
    let changed = changes(queue, order, telling.step);
    let part = &changed[..changed.len().min(telling.updates_max)];
    order.num_left = changed.len() - part.len();
    let lines: Vec<Line> = part
        .iter()
        .filter_map(|(place, factor)| Line::factor(&queue[*place].name, *factor))
        .collect();
    let said = match feed.carry_out(commands, &lines) {
        Ok(said) => said,
        Err(error) => {
            order.num_left = changed.len();
            return vec![format!("the order was not told, or in part: {error}")];
        }
    };
    let written = part
        .iter()
        .map(|(place, factor)| (queue[*place].name.clone(), *factor));
    order.written = written.collect();
    refused(&said).into_iter().collect()
}

/// Places in the queue whose factors are wrong, and what they have to be, those first that matter most.
fn changes(queue: &[Place], order: &Order, step: i64) -> Vec<(usize, i64)> {
    let place_of: BTreeMap<ExternalId, usize> = queue
        .iter()
        .enumerate()
        .filter_map(|(place, waiting)| Some((waiting.job?, place)))
        .collect();
    let known = |jobs: &[ExternalId]| -> Vec<usize> {
        jobs.iter().filter_map(|job| place_of.get(job).copied()).collect()
    };
    // Who has left since is in no queue.
    let ranked = known(&order.jobs);
    let num_ranked = known(&order.jobs[..order.num_ranked.min(order.jobs.len())]).len();
    let mut is_ranked = vec![false; queue.len()];
    for place in &ranked {
        is_ranked[*place] = true;
    }
    let (wanted, cut) = factors::merged(&is_ranked, &ranked, num_ranked);
    let present: Vec<i64> = wanted.iter().map(|place| queue[*place].factor).collect();
    let changed = factors::changes(&present, cut, step).into_iter();
    changed.map(|(at, factor)| (wanted[at], factor)).collect()
}

/// Refusals in one line: how many, and the first. Jobs that have left or begun meanwhile are none.
pub(super) fn refused(said: &[String]) -> Option<String> {
    let is_gone = |text: &&String| {
        let gone = [
            "Invalid job id",
            "already finished",
            "already/still running",
            "no longer pending",
        ];
        gone.iter().any(|words| text.contains(words))
    };
    let others: Vec<&String> = said.iter().filter(|text| !is_gone(text)).collect();
    let first = others.first()?;
    Some(format!(
        "{} changes of the order were refused; the first: {first}",
        others.len()
    ))
}

/// Gives jobs back that are held or pinned for a daemon that held jobs; what an operator should know of it.
pub(super) fn give_back(feed: &mut Feed, commands: &Commands, names: &[String]) -> Vec<String> {
    let part = &names[..names.len().min(BACK_MAX)];
    let lines =
        |line: fn(&str) -> Option<Line>| -> Vec<Line> { part.iter().filter_map(|name| line(name)).collect() };
    let lift = |name: &str| Line::nodes(name, &[]);
    let mut notes = Vec::new();
    // A pin that cannot be lifted is no reason to keep a job waiting, nor is a mark that stays: not every account may take it away.
    for (lines, is_told) in [
        (lines(lift), false),
        (lines(Line::release), true),
        (lines(Line::unmark), false),
    ] {
        match feed.carry_out(commands, &lines) {
            Ok(said) if is_told => notes.extend(refused(&said)),
            Ok(_) => {}
            Err(error) => notes.push(error.to_string()),
        }
    }
    notes
}

/// Sets the factors of a queue back to a new job's, and lifts the nodes that a daemon has named, as the folder has them; how many, and what was refused.
///
/// # Errors
/// A `scontrol` that does not answer; a folder that cannot be written to.
pub fn take_back(commands: &Commands, queue: &[Place], folder: &Path) -> Result<(u64, Vec<String>), Error> {
    Pins::of(folder).lift(commands)?;
    let others = queue.iter().filter(|place| place.factor != 0);
    let lines: Vec<Line> = others.filter_map(|place| Line::factor(&place.name, 0)).collect();
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
}
