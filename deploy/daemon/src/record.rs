//! What is written down of a round: enough to decide it again, and to tell why.

use pleach_scheduler::decision::Action;
use pleach_scheduler::{Decision, Estimate, ExternalId, Provenance};
use serde::{Deserialize, Serialize};

use crate::dealing::Turn;
use crate::memory::Memory;
use crate::order::Order;
use crate::snapshot::Snapshot;

/// Most bytes of a line of the log.
pub const LINE_MAX: usize = 256 << 20;

/// What begins a line of the log that tells what changed; all other lines are whole rounds.
pub(crate) const BEGINS: &str = "{\"delta\":";

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundRecord {
    /// Number of the round since the daemon began.
    pub round: u64,
    /// Whether nothing was carried out.
    pub is_shadow: bool,
    /// Name of the policy.
    pub policy: String,
    /// What answered in its place and why, where it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Why the policy itself left this round to another rule; the round is decided again alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<String>,
    /// What was seen.
    pub snapshot: Snapshot,
    /// What was remembered.
    #[serde(default, skip_serializing_if = "Memory::is_empty")]
    pub memory: Memory,
    /// What a dealer's deal hung on beside the two; none where another one decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The order of the waiting jobs, under `Drive::Order`; none where jobs are held and let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// What was decided, in its order; beside an order, what the policy would have done then.
    pub decisions: Vec<Planned>,
    /// Time for observing, s.
    pub observe_s: f64,
    /// Time for deciding, s.
    pub decide_s: f64,
    /// Time for carrying out, s.
    pub apply_s: f64,
}

/// What was decided in a round, without what it was decided on: what an explanation needs of a line of the log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DecidedRound {
    /// As [`RoundRecord::round`].
    pub round: u64,
    /// As [`RoundRecord::is_shadow`].
    pub is_shadow: bool,
    /// As [`RoundRecord::policy`].
    pub policy: String,
    /// As [`RoundRecord::fallback`].
    #[serde(default)]
    pub fallback: Option<String>,
    /// As [`RoundRecord::aside`].
    #[serde(default)]
    pub aside: Option<String>,
    /// When the cluster was looked at, Unix time, s.
    #[serde(default)]
    pub taken_s: i64,
    /// Where a whole round has that time.
    #[serde(default)]
    snapshot: Option<Taken>,
    /// As [`RoundRecord::order`].
    #[serde(default)]
    pub order: Option<Order>,
    /// As [`RoundRecord::decisions`].
    pub decisions: Vec<Planned>,
}

impl DecidedRound {
    /// Reads a line of a log, of either form.
    ///
    /// # Errors
    /// What is no such line.
    pub(crate) fn read(line: &str) -> serde_json::Result<DecidedRound> {
        /// As a line has it that tells what changed.
        #[derive(Deserialize)]
        struct Line {
            delta: DecidedRound,
        }
        let mut round: DecidedRound = match line.starts_with(BEGINS) {
            true => serde_json::from_str(line).map(|line: Line| line.delta)?,
            false => serde_json::from_str(line)?,
        };
        if let Some(Taken { taken_s }) = round.snapshot.take() {
            round.taken_s = taken_s;
        }
        Ok(round)
    }

    /// Whether something was decided or written about a job; a shadow's order is about all that are in it.
    #[must_use]
    pub fn is_about(&self, job: ExternalId) -> bool {
        let is_ranked = |order: &Order| match self.is_shadow {
            true => order.place(job).is_some(),
            false => order.written.contains_key(&job.to_string()),
        };
        self.order.as_ref().is_some_and(is_ranked)
            || self.decisions.iter().any(|planned| planned.job() == job)
    }

    /// What was decided about a job and why, in words, decision by decision; `name` is how it is called.
    #[must_use]
    pub fn told(&self, job: ExternalId, name: &str) -> Vec<String> {
        let by = match (&self.fallback, &self.aside) {
            (Some(fallback), _) => fallback.clone(),
            (None, Some(aside)) => format!("{}, which steps aside: {aside}", self.policy),
            (None, None) => self.policy.clone(),
        };
        let (round, taken_s) = (self.round, self.taken_s);
        let about = || self.decisions.iter().filter(|planned| planned.job() == job);
        let is_stopped = about().any(|planned| planned.decision.action == Action::Preempt);
        if let Some(order) = self.order.as_ref().filter(|_| !is_stopped) {
            let Some(place) = order.told(job) else {
                return Vec::new();
            };
            let now = about().next().map_or(String::new(), |planned| {
                let on = planned.nodes.join(",");
                let what = match planned.decision.action {
                    Action::Reserve => "GPUs would be held back for it".to_owned(),
                    _ => format!("it would start now on {on}"),
                };
                format!("{what}\n{}{}", planned.belief(), planned.why)
            });
            let written = match (self.is_shadow, order.written.get(&job.to_string())) {
                (true, _) => "; only decided (shadow)".to_owned(),
                (false, Some(factor)) => format!("; factor {factor} written"),
                (false, None) => String::new(),
            };
            return vec![format!(
                "round {round} at {taken_s}: {name} is {place}{written}\nby {by}\n{now}"
            )];
        }
        let tell = |planned: &Planned| {
            let outcome = match self.is_shadow {
                true => "only decided (shadow)",
                false => planned.outcome.as_str(),
            };
            let nodes = match planned.nodes.is_empty() {
                true => "that become free".to_owned(),
                false => format!("of {}: {outcome}", planned.nodes.join(",")),
            };
            let action = format!("{:?}", planned.decision.action).to_lowercase();
            let part = match planned.decision.gpu_milli {
                1000 => String::new(),
                milli => format!("{milli} thousandths of "),
            };
            let num_gpus = planned.decision.num_gpus;
            format!(
                "round {round} at {taken_s}: {action} {name} on {part}{num_gpus} GPU(s) {nodes}\nby {by}\n{}{}",
                planned.belief(),
                planned.why
            )
        };
        about().map(tell).collect()
    }
}

/// All that is read of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Taken {
    taken_s: i64,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// The record of the scheduler.
    pub decision: Decision,
    /// Names of the nodes of its placement, in the order of its slices.
    pub nodes: Vec<String>,
    /// What was believed of the job's run time, s, and where that came from; none in logs of before it was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_s: Option<Estimate>,
    /// Why, in words; empty where a network or a heuristic decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What became of it; empty in shadow mode.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// The nodes of it that would not take the job; empty: it was sent, or it is not the nodes' fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_by: Vec<String>,
}

impl Planned {
    /// The job.
    #[must_use]
    pub fn job(&self) -> ExternalId {
        self.decision.job
    }

    /// The believed run time in words, with where it comes from; nothing where it was not written down.
    #[must_use]
    pub fn belief(&self) -> String {
        let Some(estimate_s) = self.estimate_s else {
            return String::new();
        };
        let from = match estimate_s.provenance {
            Provenance::UserLimit => "its time limit",
            Provenance::Predicted => "predicted from ended jobs",
            Provenance::Profile => "measured beforehand",
            Provenance::Oracle => "known",
        };
        format!("believed run time {:.0} s: {from}\n", estimate_s.value)
    }
}

/// Lets the memory know which nodes would not take the jobs of a look that were sent to them at Unix time `now_s`.
pub fn remember_refusals(decisions: &[Planned], snapshot: &Snapshot, memory: &mut Memory, now_s: i64) {
    for planned in decisions {
        for node in &planned.refused_by {
            let job = snapshot.refused_as(planned.job());
            memory.refused(job, node, &planned.outcome, now_s);
        }
    }
}
