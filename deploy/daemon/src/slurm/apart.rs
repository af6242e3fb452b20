//! Jobs with GPUs that the tables cannot say, on driven nodes: shares where none are given, GPUs of several kinds, partitions that
//! reach further. Slurm would start them before those who wait for the policy, so they are held like all others, and let go where they
//! take nothing from anybody: to nodes that the policy does not use, at once; else last, when nobody who came before them waits.
//!
//! To be kept to such nodes a job shuns the others (`ExcNodeList`); what its user shuns stands in its mark meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

use super::rules::{Asks, shunned};
use super::scope::Reach;
use super::standing::Standing;
use super::table::is_null;
use crate::snapshot::{Allowance, JobSeen, Phase, Snapshot};
use pleach_tables::slurm::{expand, fold};

/// Longest time for which somebody waits for those who came before him, s. *Ours*: who may never start would hold him up for ever.
const LAST_S_MAX: i64 = 86_400;

/// What is to be done about one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// To be held; with nodes of its own again where the daemon has named or shunned others for it.
    Hold {
        /// Whether there are such nodes.
        is_changed: bool,
    },
    /// To be let go without these nodes, as a list.
    Without {
        /// Those and the ones that its user shuns.
        nodes: String,
        /// The latter alone.
        own: String,
    },
    /// To be let go to any.
    Last,
}

/// What is done about all of them, and what an operator should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// By arrival.
    pub steps: Vec<(ExternalId, Step)>,
    /// A sentence for the status; empty where there is no such job.
    pub told: String,
}

/// Decides about those among the jobs of a look, which are in order of arrival, and writes into their phases what `why-not` says.
pub(super) fn steps<'a, 'b>(
    snapshot: &mut Snapshot,
    asks: &'a BTreeMap<ExternalId, Asks<'b>>,
    (reach, wishes): (&Reach, &str),
) -> Steps {
    let mut steps = Steps::default();
    if asks.values().all(|ask| ask.apart.is_none()) {
        return steps;
    }
    let shunned = shunned(wishes);
    let left: Vec<u64> = snapshot
        .site
        .allowances
        .iter()
        .map(|Allowance { left, .. }| *left)
        .collect();
    let now_s = snapshot.taken_s;
    // Whether somebody who came before waits for the policy, and no limit keeps him.
    let mut is_behind = false;
    let (mut num_last, mut num_kept) = (0, 0);
    for job in &mut snapshot.jobs {
        let apart = |ask: &'a Asks<'b>| Some((ask, ask.apart.as_deref()?, ask.stands?));
        let Some((ask, why, stands)) = asks.get(&job.id).and_then(apart) else {
            is_behind |= waits(job, &left);
            continue;
        };
        let own = ask
            .shuns
            .or(shunned.get(&job.id).copied())
            .filter(|own| !is_null(own));
        let own = own.unwrap_or_default();
        let off = reach.kept_off(ask.partitions, &ask.wish, ask.num_nodes);
        let off = off.filter(|_| stands.standing != Standing::Refused);
        let is_kept = || covers(shunned.get(&job.id).copied().unwrap_or_default(), &off);
        let (step, does) = match stands.standing {
            Standing::LetGo if ask.shuns.is_none() || is_kept() => {
                num_kept += usize::from(ask.shuns.is_some());
                (None, "and was let go apart from the policy".to_owned())
            }
            Standing::Free | Standing::LetGo => {
                let is_changed = stands.is_marked;
                (
                    Some(Step::Hold { is_changed }),
                    "and nobody holds it yet".to_owned(),
                )
            }
            _ if !stands.may_begin => (None, "and may not begin yet".to_owned()),
            // Where what its user shuns cannot be read, no other nodes are written in its place.
            Standing::Held | Standing::Refused => match off.zip(expand(own).ok()) {
                Some((off, own_nodes)) => {
                    let off = off
                        .iter()
                        .chain(&own_nodes)
                        .map(String::as_str)
                        .collect::<BTreeSet<_>>();
                    let (nodes, own) = (fold(off), own.to_owned());
                    num_kept += 1;
                    (
                        Some(Step::Without { nodes, own }),
                        "and is about to be let go to nodes set aside".to_owned(),
                    )
                }
                None if is_behind && now_s - job.submit_s < LAST_S_MAX => {
                    num_last += 1;
                    let what = "no nodes are set aside that would do (`spare_nodes`), so it waits until nobody who came before it does";
                    (None, format!("and {what}"))
                }
                None => (Some(Step::Last), "and is about to be let go".to_owned()),
            },
        };
        job.phase = Phase::Foreign {
            reason: format!("{why}, which the tables cannot say, {does}"),
        };
        steps.steps.extend(step.map(|step| (job.id, step)));
    }
    if num_last + num_kept > 0 {
        steps.told = format!(
            "beyond the tables: {num_last} job(s) wait to be last, for which no nodes are set aside (`spare_nodes`), {num_kept} go to nodes \
             set aside"
        );
    }
    steps
}

/// Whether a job waits for the policy, and no limit keeps it from starting whatever is free.
fn waits(job: &JobSeen, left: &[u64]) -> bool {
    matches!(job.phase, Phase::Waiting | Phase::Loose | Phase::Released { .. })
        && job.terms.lacking(left).is_none()
}

/// Whether nodes, as a list, are all of those that a job is to be kept off.
fn covers(shunned: &str, off: &Option<BTreeSet<String>>) -> bool {
    let Ok(shunned) = expand(if is_null(shunned) { "" } else { shunned }) else {
        return false;
    };
    let shunned: BTreeSet<String> = shunned.into_iter().collect();
    off.as_ref().is_some_and(|off| off.is_subset(&shunned))
}

#[cfg(test)]
#[path = "apart_tests.rs"]
mod tests;
