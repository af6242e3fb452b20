//! Carries the decisions of a round out in their order, whatever the batch system, and writes what became of each into it.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::pulse::Pulse;
use crate::record::Planned;
use crate::snapshot::{JobSeen, Snapshot};
use crate::system::{Hands, Look, NotSent};

/// Decisions with the same outcome that a round names. *Ours*.
const ALIKE_MAX: usize = 20;
/// The outcome of a decision about a job that this round has not seen.
const NOT_SEEN: &str = "not sent: the job was not seen";

/// The jobs whose preemption was sent. Where one could not be stopped, nothing is started: its GPUs are not free.
pub(crate) async fn carry_out(
    hands: &mut impl Hands,
    (snapshot, now_s): (&Snapshot, i64),
    decisions: &mut [Planned],
    pulse: &Pulse,
) -> Vec<ExternalId> {
    let seen: BTreeMap<ExternalId, &JobSeen> = snapshot.jobs.iter().map(|job| (job.id, job)).collect();
    let mut full: BTreeSet<String> = BTreeSet::new();
    let mut stopped = Vec::new();
    // Starts that follow one another are carried out together.
    let mut at = 0;
    while at < decisions.len() {
        pulse.beat();
        let is_start = |planned: &Planned| planned.decision.action == Action::Start;
        let num_starts = decisions[at..]
            .iter()
            .take_while(|planned| is_start(planned))
            .count();
        if num_starts > 0 {
            start_all(hands, (&seen, now_s), &full, &mut decisions[at..at + num_starts]).await;
            at += num_starts;
            continue;
        }
        let planned = &mut decisions[at];
        at += 1;
        if planned.decision.action == Action::Reserve {
            continue;
        }
        let Some(job) = seen.get(&planned.job()) else {
            planned.outcome = NOT_SEEN.into();
            continue;
        };
        let sent = hands.stop(job, planned).await;
        match sent.is_ok() {
            true => stopped.push(job.id),
            false => full.extend(planned.nodes.iter().cloned()),
        }
        told(planned, sent);
    }
    for (job, not) in hands.settle().await {
        let is_it = |planned: &&mut Planned| planned.job() == job && planned.decision.action == Action::Start;
        if let Some(planned) = decisions.iter_mut().find(is_it) {
            (planned.outcome, planned.refused_by) = (not.why, not.nodes);
        }
    }
    stopped
}

async fn start_all(
    hands: &mut impl Hands,
    (seen, now_s): (&BTreeMap<ExternalId, &JobSeen>, i64),
    full: &BTreeSet<String>,
    decisions: &mut [Planned],
) {
    let mut open = Vec::new();
    for (row, planned) in decisions.iter_mut().enumerate() {
        let is_full = planned.nodes.iter().any(|node| full.contains(node));
        match seen.get(&planned.job()) {
            None => planned.outcome = NOT_SEEN.into(),
            Some(_) if is_full => planned.outcome = "put off: a job there could not be stopped".into(),
            Some(job) => open.push((row, *job)),
        }
    }
    let starts: Vec<(&JobSeen, &Planned)> = open.iter().map(|(row, job)| (*job, &decisions[*row])).collect();
    let sent = hands.start_all(&starts, now_s).await;
    for ((row, _), sent) in open.into_iter().zip(sent) {
        told(&mut decisions[row], sent);
    }
}

/// Writes what became of a decision into it.
fn told(planned: &mut Planned, sent: Result<(), NotSent>) {
    match sent {
        Ok(()) => planned.outcome = "sent".into(),
        Err(not) => (planned.outcome, planned.refused_by) = (not.why, not.nodes),
    }
}

/// The jobs whose stops were sent.
pub(crate) fn stopped(decisions: &[Planned]) -> Vec<ExternalId> {
    let sent = |planned: &&Planned| planned.decision.action == Action::Preempt && planned.outcome == "sent";
    decisions.iter().filter(sent).map(Planned::job).collect()
}

/// What became of decisions that were not sent; of many with the same outcome the first ones.
pub(crate) fn unsent(look: &impl Look, decisions: &[Planned]) -> Vec<String> {
    let mut nums: BTreeMap<&str, usize> = BTreeMap::new();
    let mut notes = Vec::new();
    for planned in decisions.iter().filter(|planned| !is_sent(planned)) {
        let num = nums.entry(planned.outcome.as_str()).or_default();
        *num += 1;
        if *num <= ALIKE_MAX {
            notes.push(format!("{}: {}", look.name(planned.job()), planned.outcome));
        }
    }
    let more = nums.into_iter().filter(|(_, num)| *num > ALIKE_MAX);
    notes.extend(more.map(|(outcome, num)| format!("{} more: {outcome}", num - ALIKE_MAX)));
    notes
}

/// Whether a decision was sent, or is a shadow's.
pub(crate) fn is_sent(planned: &Planned) -> bool {
    planned.outcome == "sent" || planned.outcome.is_empty()
}
