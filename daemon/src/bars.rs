//! What a round keeps out of its tables so that nobody goes where he was refused.
//!
//! Tables do not know which job may have which node. So a round whose decisions send a job to a node that refused it
//! ([`crate::refusals`]) is decided again with that node taking nobody, which sends the job to another one if there is any. Where
//! nothing at all starts then, the node goes back to the others and the jobs that were refused wait. All of it follows from the
//! snapshot, the memory and the policy, so a log is decided again to the same bits.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::memory::Memory;
use crate::record::Planned;
use crate::round::is_carried_out;
use crate::snapshot::{JobSeen, Snapshot};

/// Most attempts with nodes that take nobody, before the jobs that were refused wait. *Ours*: each costs as much as a round.
const ATTEMPTS_MAX: u32 = 8;

/// What is kept out of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bars {
    /// Nodes that take nobody.
    pub nodes: BTreeSet<String>,
    /// Jobs that wait, and why.
    pub jobs: BTreeMap<ExternalId, String>,
    num_attempts: u32,
}

impl Bars {
    /// What is kept out of the next attempt at a round, which would decide so; none: these decisions stand.
    #[must_use]
    pub fn next(&self, snapshot: &Snapshot, memory: &Memory, decisions: &[Planned]) -> Option<Bars> {
        if !self.jobs.is_empty() {
            return None;
        }
        let refused = refused(snapshot, memory, decisions);
        match refused.is_empty() {
            true if self.nodes.is_empty() || decisions.iter().any(is_carried_out) => None,
            false if self.num_attempts < ATTEMPTS_MAX => Some(Bars {
                nodes: &self.nodes | &refused,
                jobs: BTreeMap::new(),
                num_attempts: self.num_attempts + 1,
            }),
            _ => Some(Bars {
                jobs: waiting(snapshot, memory),
                ..Bars::default()
            }),
        }
    }

    /// What a reader of a round should know of it; empty where nothing is kept out.
    #[must_use]
    pub fn told(&self) -> String {
        match self.nodes.is_empty() {
            true => String::new(),
            false => {
                let names: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
                format!(
                    "{} take(s) nobody in this round: who would go there was refused there.\n",
                    names.join(",")
                )
            }
        }
    }
}

/// Nodes to which jobs would be sent that were refused there.
fn refused(snapshot: &Snapshot, memory: &Memory, decisions: &[Planned]) -> BTreeSet<String> {
    let starts = decisions
        .iter()
        .filter(|planned| planned.decision.action == Action::Start);
    let bad = starts.flat_map(|planned| {
        let refusals = memory.refusals(planned.job());
        let is_bad = move |node: &&String| {
            refusals.is_some_and(|refusals| refusals.of(node, snapshot.taken_s).is_some())
        };
        planned.nodes.iter().filter(is_bad)
    });
    bad.cloned().collect()
}

/// Jobs without a place that some node refused, and why they wait.
fn waiting(snapshot: &Snapshot, memory: &Memory) -> BTreeMap<ExternalId, String> {
    let jobs = snapshot.jobs.iter().filter(|job| !job.is_placed());
    let why = |job: &JobSeen| {
        let refusals = memory.refusals(job.id)?;
        refusals.at(snapshot.taken_s).next()?;
        let why = "no other node is free for it beside those that refused it";
        Some((job.id, why.to_owned()))
    };
    jobs.filter_map(why).collect()
}
