//! What another policy would have decided in the rounds of a log: how many rounds, and which starts come earlier, later or
//! elsewhere first.
//!
//! Each round is decided on what was seen and remembered in it, as in a replay. So a start that the policy would have sent
//! earlier leaves the later rounds as they were: the job waits on there, and its GPUs are free. A difference is therefore
//! reported once, where it first shows, and what would have followed is not. The simulator shows that, on a workload captured
//! from the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;
use serde::Serialize;

use crate::record::{Planned, RoundRecord};
use crate::round;

/// Most starts of each kind that are listed one by one; all are counted.
const TOLD: [(Change, usize); 3] = [(Change::Earlier, 9), (Change::Later, 6), (Change::Elsewhere, 5)];

/// How a start differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It comes in an earlier round than in the log, or the log has none.
    Earlier,
    /// It comes in no round up to the one in which the log has it.
    Later,
    /// It comes in the same round, on other nodes.
    Elsewhere,
}

/// One start that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// How.
    pub change: Change,
    /// The job.
    pub job: ExternalId,
    /// Its GPUs.
    pub num_gpus: u32,
    /// When the log has the start, Unix time, s; none: it has none.
    pub log_s: Option<i64>,
    /// When the policy would have sent it first, Unix time, s; none: not before the log.
    pub here_s: Option<i64>,
    /// The nodes in the log.
    pub log_nodes: Vec<String>,
    /// The nodes of the policy.
    pub here_nodes: Vec<String>,
}

impl Moved {
    /// What the list goes by, largest first: how much earlier the start comes, s; else how large the job is, GPUs.
    fn weight(&self, until_s: i64) -> i64 {
        match (self.change, self.here_s) {
            (Change::Earlier, Some(here_s)) => self.log_s.unwrap_or(until_s) - here_s,
            _ => i64::from(self.num_gpus),
        }
    }
}

/// Counts of a comparison. Of each job its first start counts, one that the batch system refused not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// The policy that decided again.
    pub policy: String,
    /// Time of the first round and of the last one, Unix time, s; none: there was no round.
    pub from_s: Option<i64>,
    /// As `from_s`.
    pub until_s: Option<i64>,
    /// Rounds that were decided again.
    pub num_rounds: u64,
    /// Those of them that are decided otherwise.
    pub num_otherwise: u64,
    /// Rounds that were left out: the fallback had decided in the log.
    pub num_by_fallback: u64,
    /// Rounds that were left out: the policy failed on them.
    pub num_failed: u64,
    /// Starts in the log.
    pub num_starts: u64,
    /// Those of them in the same round on the same nodes.
    pub num_alike: u64,
    /// Starts that come earlier.
    pub num_earlier: u64,
    /// Those of them that the log does not have at all: the job waited on, or was taken back.
    pub num_only_here: u64,
    /// By how much starts that the log has come earlier, on average, s.
    pub earlier_s_mean: f64,
    /// Starts that come later.
    pub num_later: u64,
    /// Starts on other nodes.
    pub num_elsewhere: u64,
    /// Jobs stopped in the log.
    pub num_stops: u64,
    /// Jobs stopped by the policy.
    pub num_stops_here: u64,
    /// Some of the starts that differ, those that differ most first: at most 20.
    pub starts: Vec<Moved>,
}

/// Compares round by round.
#[derive(Debug, Default)]
pub struct Compare {
    difference: Difference,
    /// Starts of the policy that the log has not had yet, with the number of rounds read by then.
    open: BTreeMap<ExternalId, (u64, Moved)>,
    /// Jobs whose start the log has had.
    started: BTreeSet<ExternalId>,
    /// Number of them at which those are forgotten that have left.
    num_started_max: usize,
    kept: [Vec<Moved>; TOLD.len()],
    earlier_s: i64,
}

impl Compare {
    /// Nothing is compared yet.
    #[must_use]
    pub fn new(policy: &str) -> Compare {
        Compare {
            difference: Difference {
                policy: policy.to_owned(),
                ..Difference::default()
            },
            ..Compare::default()
        }
    }

    /// A round that is left out, because the fallback decided it in the log or the policy failed on it now.
    pub fn leave_out(&mut self, is_failure: bool) {
        match is_failure {
            true => self.difference.num_failed += 1,
            false => self.difference.num_by_fallback += 1,
        }
    }

    /// A round of the log, and what the policy decides in it.
    pub fn read(&mut self, record: &RoundRecord, here: &[Planned]) {
        let now_s = record.snapshot.taken_s;
        let difference = &mut self.difference;
        difference.from_s.get_or_insert(now_s);
        difference.until_s = Some(now_s);
        difference.num_rounds += 1;
        difference.num_otherwise += u64::from(!round::is_same(here, &record.decisions));
        let num = |list: &[Planned]| of(list, Action::Preempt).count() as u64;
        difference.num_stops += num(&record.decisions);
        difference.num_stops_here += num(here);
        for planned in of(here, Action::Start).filter(|planned| !self.started.contains(&planned.job())) {
            self.open.entry(planned.job()).or_insert_with(|| {
                let moved = Moved {
                    change: Change::Earlier,
                    job: planned.job(),
                    num_gpus: planned.decision.num_gpus,
                    log_s: None,
                    here_s: Some(now_s),
                    log_nodes: Vec::new(),
                    here_nodes: planned.nodes.clone(),
                };
                (difference.num_rounds, moved)
            });
        }
        for planned in of(&record.decisions, Action::Start) {
            let is_sent = planned.outcome.is_empty() || planned.outcome == "sent";
            if is_sent && self.started.insert(planned.job()) {
                self.start(planned, now_s);
            }
        }
        if self.started.len() > self.num_started_max {
            let there: BTreeSet<ExternalId> = record.snapshot.jobs.iter().map(|job| job.id).collect();
            self.started.retain(|job| there.contains(job));
            self.num_started_max = 2 * self.started.len() + 1000;
        }
    }

    /// A start of the log.
    fn start(&mut self, planned: &Planned, now_s: i64) {
        self.difference.num_starts += 1;
        let here = self.open.remove(&planned.job());
        let is_earlier = |round: &u64| *round < self.difference.num_rounds;
        let change = match &here {
            None => Change::Later,
            Some((round, _)) if is_earlier(round) => Change::Earlier,
            Some((_, here)) if here.here_nodes == planned.nodes => return self.difference.num_alike += 1,
            Some(_) => Change::Elsewhere,
        };
        let moved = Moved {
            change,
            job: planned.job(),
            num_gpus: planned.decision.num_gpus,
            log_s: Some(now_s),
            here_s: here.as_ref().and_then(|(_, here)| here.here_s),
            log_nodes: planned.nodes.clone(),
            here_nodes: here.map_or(Vec::new(), |(_, here)| here.here_nodes),
        };
        self.earlier_s += moved.here_s.map_or(0, |here_s| now_s - here_s);
        self.keep(moved, now_s);
    }

    /// Counts a start that differs, and keeps it where it is among those that differ most.
    fn keep(&mut self, moved: Moved, until_s: i64) {
        match moved.change {
            Change::Earlier => self.difference.num_earlier += 1,
            Change::Later => self.difference.num_later += 1,
            Change::Elsewhere => self.difference.num_elsewhere += 1,
        }
        let kinds = self.kept.iter_mut().zip(TOLD);
        for (kept, (_, most)) in kinds.filter(|(_, (change, _))| *change == moved.change) {
            let weight = moved.weight(until_s);
            let at = kept.partition_point(|other| other.weight(until_s) >= weight);
            kept.insert(at, moved.clone());
            kept.truncate(most);
        }
    }

    /// The comparison of all rounds that were read.
    #[must_use]
    pub fn end(mut self) -> Difference {
        let until_s = self.difference.until_s.unwrap_or_default();
        let in_log = self.difference.num_earlier;
        if in_log > 0 {
            self.difference.earlier_s_mean = self.earlier_s as f64 / in_log as f64;
        }
        for (_, moved) in std::mem::take(&mut self.open).into_values() {
            self.difference.num_only_here += 1;
            self.keep(moved, until_s);
        }
        self.difference.starts = self.kept.concat();
        self.difference
    }
}

fn of(decisions: &[Planned], action: Action) -> impl Iterator<Item = &Planned> {
    decisions
        .iter()
        .filter(move |planned| planned.decision.action == action)
}

impl Difference {
    /// In words: counts, at most 20 starts, and what this does not say.
    #[must_use]
    pub fn told(&self) -> String {
        let (Some(from_s), Some(until_s)) = (self.from_s, self.until_s) else {
            return format!(
                "No round of the log was decided again by {}: {} by the fallback, {} on which it failed.",
                self.policy, self.num_by_fallback, self.num_failed
            );
        };
        let mut text = format!(
            "{} of {} rounds from {from_s} to {until_s} are decided otherwise by {}; left out: {} by the fallback, {} on which it \
             failed\n\
             {} starts in the log: {} in the same round on the same nodes, {} earlier (by {:.0} s on average), {} later, {} \
             elsewhere; {} more that the log does not have; {} stops in the log, {} here\n",
            self.num_otherwise,
            self.num_rounds,
            self.policy,
            self.num_by_fallback,
            self.num_failed,
            self.num_starts,
            self.num_alike,
            self.num_earlier - self.num_only_here,
            self.earlier_s_mean,
            self.num_later,
            self.num_elsewhere,
            self.num_only_here,
            self.num_stops,
            self.num_stops_here,
        );
        for moved in &self.starts {
            let _ = writeln!(text, "  {}", line(moved, until_s));
        }
        text + "Each round is decided on the queue as it was in the log: a start that comes earlier here does not take its GPUs \
                from later rounds. What would have followed, JCT above all, tells `capture` with `pleach evaluate`."
    }
}

fn line(moved: &Moved, until_s: i64) -> String {
    let Moved {
        job,
        num_gpus,
        log_s,
        here_s,
        ..
    } = moved;
    let nodes = |nodes: &[String]| match nodes {
        [] => "no node".to_owned(),
        [node] => node.clone(),
        [node, rest @ ..] => format!("{node} and {} more", rest.len()),
    };
    let (log, here) = (nodes(&moved.log_nodes), nodes(&moved.here_nodes));
    let by_s = |log_s: i64| log_s - here_s.unwrap_or(log_s);
    let what = match (moved.change, log_s) {
        (Change::Earlier, Some(log_s)) => {
            format!("{} s earlier, on {here} (log: {log} at {log_s})", by_s(*log_s))
        }
        (Change::Earlier, None) => format!("on {here}; the log has no start in {} s more", by_s(until_s)),
        (Change::Later, _) => format!("later (log: {log} at {})", log_s.unwrap_or_default()),
        (Change::Elsewhere, _) => format!("on {here} (log: {log} at {})", log_s.unwrap_or_default()),
    };
    format!("job {job}, {num_gpus} GPU(s): {what}")
}
