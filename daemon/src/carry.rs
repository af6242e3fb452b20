//! Carries the decisions of a round out in their order, whatever the batch system, and writes what became of each into it.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::pulse::Pulse;
use crate::record::Planned;
use crate::snapshot::{JobSeen, Snapshot};
use crate::system::Hands;

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
    for planned in decisions.iter_mut() {
        pulse.beat();
        if planned.decision.action == Action::Reserve {
            continue;
        }
        let Some(job) = seen.get(&planned.job()) else {
            planned.outcome = "not sent: the job was not seen".into();
            continue;
        };
        let is_start = planned.decision.action == Action::Start;
        let is_full = planned.nodes.iter().any(|node| full.contains(node));
        let sent = match is_start {
            true if is_full => {
                planned.outcome = "put off: a job there could not be stopped".into();
                continue;
            }
            true => hands.start(job, planned, now_s).await,
            false => hands.stop(job, planned).await,
        };
        match sent {
            Ok(()) => planned.outcome = "sent".into(),
            Err(not) => (planned.outcome, planned.refused_by) = (not.why, not.nodes),
        }
        match (is_start, planned.outcome == "sent") {
            (false, true) => stopped.push(job.id),
            (false, false) => full.extend(planned.nodes.iter().cloned()),
            (true, _) => {}
        }
    }
    for (job, not) in hands.settle().await {
        let is_it = |planned: &&mut Planned| planned.job() == job && planned.decision.action == Action::Start;
        if let Some(planned) = decisions.iter_mut().find(is_it) {
            (planned.outcome, planned.refused_by) = (not.why, not.nodes);
        }
    }
    stopped
}
