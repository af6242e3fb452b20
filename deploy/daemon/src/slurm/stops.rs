//! Running jobs that a policy stops for waiting ones, where `preemption = true`. Slurm requeues them, and starts what comes first in
//! the order.
//!
//! What the site allows bounds it: batch jobs of the driven partition whose `Requeue` is set, without the mark `pleach:off`, that have
//! run for `PreemptExemptTime`; where `PreemptType` is not `preempt/none`, in a partition whose `PreemptMode` requeues or cancels. All
//! others stay whatever a policy decides. No job is stopped while one that was stopped before still holds its nodes.
//!
//! # Source
//! Slurm 22.05: `requeue incomplete` revives no job that has ended, and is refused for jobs that are no batch jobs or not to be
//! requeued; the refusal names the job. A requeued job may start again after `cred_expire`, two minutes by default.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;
use pleach_site::slurm::{limit_s, values};

use super::feed::{Feed, Line, about};
use super::records::{self, Lines};
use super::seen::Seen;
use super::site::config_value;
use super::table::{SQUEUE, fields, named_id};
use crate::error::Error;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::slurm::mark::Mark;
use crate::snapshot::{JobSeen, Phase};
use crate::system::NotSent;

/// What is asked of `squeue` about running jobs. The mark is last: it may be any text.
const FIELDS: &str = "JobArrayID:|,BatchFlag:|,Requeue:|,Partition:|,admin_comment:|";

/// Time after which a stopped job that still holds its nodes is no longer waited for, s. *Ours*: far above `KillWait`.
const LEAVES_S_MAX: i64 = 600;

/// What stops jobs, and what it remembers of it.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    /// Whether any may be stopped.
    is_on: bool,
    /// When stops were sent of jobs that still hold their nodes, Unix time, s.
    sent: BTreeMap<ExternalId, i64>,
}

impl Stops {
    /// That stop jobs where `is_on` says so.
    pub(crate) fn new(is_on: bool) -> Stops {
        Stops {
            is_on,
            ..Stops::default()
        }
    }

    /// Marks the running jobs that cannot be stopped. Where Slurm does not say which they are none can.
    pub(super) fn look(&self, commands: &Commands, partition: &str, seen: &mut Seen) {
        if !self.is_on {
            return;
        }
        let now_s = seen.snapshot.taken_s;
        let (may_stop, exempt_s) = match told(commands, partition) {
            Ok(told) => told,
            Err(error) => {
                seen.notes.push(format!("no running job is stopped: {error}"));
                (BTreeSet::new(), 0)
            }
        };
        let has_run = |job: &JobSeen| job.start_s.is_some_and(|start_s| now_s - start_s >= exempt_s);
        for job in &mut seen.snapshot.jobs {
            job.terms.stays = job.phase == Phase::Running && !(may_stop.contains(&job.id) && has_run(job));
        }
    }

    /// Stops what is decided to be stopped, all of it or nothing, and writes into each decision what became of it.
    pub(super) fn tell(
        &mut self,
        (feed, commands): (&mut Feed, &Commands),
        seen: &Seen,
        now: &mut [Planned],
    ) -> Vec<String> {
        if !self.is_on || self.is_awaited(seen) {
            return Vec::new();
        }
        let is_stop = |planned: &&mut Planned| planned.decision.action == Action::Preempt;
        let mut stops: Vec<(String, &mut Planned)> = now
            .iter_mut()
            .filter(is_stop)
            .map(|planned| (planned.job().to_string(), planned))
            .collect();
        let lines: Vec<Line> = stops.iter().filter_map(|(name, _)| Line::requeue(name)).collect();
        let said = match feed.carry_out(commands, &lines) {
            Ok(said) => said,
            // Some of them may leave: all are waited for.
            Err(error) => {
                self.sent.extend(
                    stops
                        .iter()
                        .map(|(_, planned)| (planned.job(), seen.snapshot.taken_s)),
                );
                return vec![format!("jobs were not stopped, or in part: {error}")];
            }
        };
        for (name, planned) in &mut stops {
            match said.iter().find(|text| about(text) == Some(name.as_str())) {
                Some(text) => planned.outcome = NotSent::refused(text).why,
                None => {
                    planned.outcome = "sent".into();
                    self.sent.insert(planned.job(), seen.snapshot.taken_s);
                }
            }
        }
        Vec::new()
    }

    /// Whether some that were stopped still hold their nodes.
    fn is_awaited(&mut self, seen: &Seen) -> bool {
        let (now_s, jobs) = (seen.snapshot.taken_s, &seen.snapshot.jobs);
        let holds = |job: &JobSeen| match &job.phase {
            Phase::Running => true,
            Phase::Foreign { reason } => reason == "is completing",
            _ => false,
        };
        self.sent.retain(|job, sent_s| {
            let is_here = jobs.iter().any(|other| other.id == *job && holds(other));
            is_here && (*sent_s..*sent_s + LEAVES_S_MAX).contains(&now_s)
        });
        !self.sent.is_empty()
    }
}

/// The running jobs that may be stopped, and the time for which each has to have run, s.
fn told(commands: &Commands, partition: &str) -> Result<(BTreeSet<ExternalId>, i64), Error> {
    let config = commands.run("scontrol", &["show", "config"])?;
    let preempts = config_value(&config, "PreemptType").is_some_and(|kind| kind != "preempt/none");
    if preempts {
        let text = commands.run("scontrol", &["-o", "show", "partition", partition])?;
        let mode = text
            .lines()
            .find_map(|line| values(line).get("PreemptMode").map(|mode| mode.to_lowercase()));
        let allows = |mode: String| mode.contains("requeue") || mode.contains("cancel");
        if !mode.is_some_and(allows) {
            return Ok((BTreeSet::new(), 0));
        }
    }
    let exempt = config_value(&config, "PreemptExemptTime").and_then(|text| limit_s(&text).ok()?);
    let args = ["-h", "-a", "-t", "RUNNING", "-p", partition, "-O"];
    let jobs = records::ask(commands, SQUEUE, &args, FIELDS)?;
    let mut found = BTreeSet::new();
    let one = |row, line: &str| {
        let [name, batch, requeue, own, mark] = fields::<5>(SQUEUE, row, line)?;
        let may = batch == "1" && requeue == "1" && own == partition && Mark::read(mark) != Mark::Off;
        Ok(named_id(name).filter(|_| may && !name.contains('+')))
    };
    records::each(&mut Lines::new(), &jobs.text, one, |job| found.extend(*job))?;
    Ok((found, exempt.map_or(0, |exempt_s| exempt_s as i64)))
}

#[cfg(test)]
#[path = "stops_tests.rs"]
mod tests;
