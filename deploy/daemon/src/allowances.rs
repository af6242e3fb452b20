//! Jobs that a round keeps out of its tables, because others that it starts take what a limit leaves.
//!
//! Tables do not know sums over jobs of several nodes and types: limits of accounts, licences. So a round whose starts would exceed
//! one is decided again without the starts that exceed it, and without all other jobs for which too little is left then. Jobs
//! that are not under that limit get their GPUs in the same round. All of it follows from the snapshot and the policy, so a log
//! is decided again to the same bits.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::exclusions::Exclusions;
use crate::record::Planned;
use crate::snapshot::{JobSeen, Snapshot};

/// Most attempts at a round; then starts that would exceed a limit are left out, and what they would have had stays free for a
/// round. *Ours*: each costs as much as a round, and the second is the last one unless the policy then chooses others of the same
/// account.
const ATTEMPTS_MAX: u32 = 4;

/// Before the first attempt. Under `Drive::Order` there is only one attempt: it ranks all jobs all the same.
pub(crate) fn first(is_order: bool) -> Exclusions {
    Exclusions {
        num_attempts: if is_order { ATTEMPTS_MAX } else { 0 },
        ..Exclusions::default()
    }
}

/// What is kept out of the next attempt at a round that would decide so; none: these decisions stand, those that were taken out
/// of them apart.
pub(crate) fn next(
    exclusions: &Exclusions,
    snapshot: &Snapshot,
    decisions: &mut Vec<Planned>,
) -> Option<Exclusions> {
    if snapshot.site.allowances.is_empty() {
        return None;
    }
    let mut left: Vec<u64> = snapshot
        .site
        .allowances
        .iter()
        .map(|allowance| allowance.left)
        .collect();
    let seen: BTreeMap<ExternalId, &JobSeen> = snapshot.jobs.iter().map(|job| (job.id, job)).collect();
    let (mut taken, mut late) = (BTreeSet::new(), BTreeSet::new());
    let starts = decisions
        .iter()
        .filter(|planned| planned.decision.action == Action::Start);
    for job in starts.filter_map(|planned| seen.get(&planned.job())) {
        if job.terms.lacking(&left).is_some() {
            late.insert(job.id);
            continue;
        }
        for (row, amount) in &job.terms.takes {
            if let Some(left) = left.get_mut(*row as usize) {
                *left = left.saturating_sub(*amount);
            }
        }
        taken.insert(job.id);
    }
    if late.is_empty() {
        return None;
    }
    if exclusions.num_attempts >= ATTEMPTS_MAX {
        decisions.retain(|planned| !late.contains(&planned.job()));
        return None;
    }
    let waits = snapshot
        .jobs
        .iter()
        .filter(|job| !job.is_placed() && !taken.contains(&job.id));
    let barred = waits.filter_map(|job| {
        let what = &snapshot.site.allowances.get(job.terms.lacking(&left)?)?.what;
        Some((
            job.id,
            format!("those that come before it take what is left of {what}"),
        ))
    });
    Some(Exclusions {
        jobs: exclusions.jobs.clone().into_iter().chain(barred).collect(),
        num_attempts: exclusions.num_attempts + 1,
    })
}
