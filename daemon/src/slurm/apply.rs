//! Carries decisions out by `scontrol`, so that ending at any point leaves a Slurm that works.
//!
//! A start is two commands: nodes and mark are written while the job is held, then it is released. Between the two it is a
//! held job like any other. Slurm alone starts jobs, so none is started twice; one that was cancelled in the meantime is
//! refused by Slurm and dropped here. A preemption is `requeuehold incomplete`, which never revives a job that has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use pleach_scheduler::ExternalId;

use crate::error::Error;
use crate::order::Order;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::slurm::feed::is_gone;
use crate::slurm::mark::{Mark, PAUSE_S_MAX};
use crate::slurm::observe::is_to_give_back;
use crate::slurm::parts::is_name;
use crate::slurm::ranking::{self, Telling, Writes};
use crate::slurm::reason::reasons;
use crate::slurm::seen::Seen;
use crate::snapshot::{JobSeen, Phase};
use crate::system::{Hands, Kept, Late, NotSent};

/// Beginnings of Slurm's reasons that are those of the node to which a job was let go: another one may take it. All others (limits
/// of accounts, QOS and partitions, licences) are the same everywhere.
///
/// # Source
/// Seen on Slurm 22.05 for jobs with a node by name: CPUs, memory or GPUs taken, a reservation to come, `--exclusive` on a used
/// node, a node drained or down.
const REASONS_OF_NODES: [&str; 7] = [
    "None",
    "Resources",
    "Priority",
    "ReqNodeNotAvail",
    "Nodes required",
    "Nodes_required",
    "NodeDown",
];

/// Holds jobs that nobody holds, holds those again that did not start, gives back those that it cannot decide about: jobs of the
/// snapshot, and parts of heterogeneous jobs by their names.
fn keep(commands: &Commands, seen: &Seen, release_limit_s: i64) -> Kept {
    let Seen { snapshot, parts, .. } = seen;
    let mut kept = Kept::default();
    let is_late = |job: &JobSeen| match job.phase {
        Phase::Released { since_s } => is_overdue(since_s, snapshot.taken_s, release_limit_s),
        _ => false,
    };
    let late: Vec<ExternalId> = snapshot
        .jobs
        .iter()
        .filter(|job| is_late(job))
        .map(|job| job.id)
        .collect();
    // Where Slurm does not say why, the node is held to be the reason.
    let reasons = reasons(commands, &late).unwrap_or_default();
    for job in &snapshot.jobs {
        let result = match &job.phase {
            Phase::Loose => hold(commands, job.id, Mark::HELD),
            Phase::Released { .. } if is_late(job) => {
                let tries = job.num_tries.saturating_add(1);
                let late = why_late(job, reasons.get(&job.id), tries, release_limit_s);
                let until_s = snapshot.taken_s + late.pause_s;
                kept.late.push(late);
                hold(commands, job.id, Mark::Held { tries, until_s })
            }
            Phase::Foreign { reason } if is_to_give_back(reason) => give_back(commands, &job.id.to_string()),
            _ => continue,
        };
        kept.notes.extend(result.err().map(|error| error.to_string()));
    }
    let given_back = parts.iter().map(|part| give_back(commands, part));
    kept.notes
        .extend(given_back.filter_map(|result| Some(result.err()?.to_string())));
    kept
}

/// A node that refused is remembered, so its job may go to another one at once. Who would be refused everywhere pauses.
///
/// Of several nodes Slurm does not say which one it was: the first is taken for it, and if it was not, the next try with the others
/// shows that.
fn why_late(job: &JobSeen, reason: Option<&String>, tries: u32, release_limit_s: i64) -> Late {
    let is_of_node =
        reason.is_none_or(|reason| REASONS_OF_NODES.iter().any(|words| reason.starts_with(words)));
    let node = job.nodes.first().filter(|_| is_of_node);
    Late {
        job: job.id,
        node: node.cloned(),
        reason: reason.map_or("Slurm gives no reason", String::as_str).to_owned(),
        pause_s: match node {
            Some(_) => 0,
            None => (release_limit_s << tries.min(10)).min(PAUSE_S_MAX),
        },
    }
}

/// Time since a release; one that lies in the future comes from a clock that was set back, and is over.
fn is_overdue(since_s: i64, now_s: i64, limit_s: i64) -> bool {
    now_s - since_s > limit_s || since_s > now_s + limit_s
}

/// Mark and hold are one change: a held job without a mark would look like its user's, and nobody may come between the two.
///
/// # Source
/// Tried on Slurm 22.05: a job, a task of an array, an array as a whole.
fn hold(commands: &Commands, job: ExternalId, mark: Mark) -> Result<(), Error> {
    let comment = format!("admincomment={mark}");
    update(commands, &job.to_string(), &[&comment, "priority=0"])
}

fn update(commands: &Commands, job: &str, changes: &[&str]) -> Result<(), Error> {
    let id = format!("jobid={job}");
    let mut args = vec!["update", id.as_str()];
    args.extend(changes);
    commands.run("scontrol", &args).map(drop)
}

/// Lifts the nodes and the mark of a job that stays held by its user.
fn lift(commands: &Commands, job: &str) -> Result<(), Error> {
    let _ = update(commands, job, &["reqnodelist="]);
    update(commands, job, &["admincomment="])
}

/// A job, a task of an array or a part of a heterogeneous job.
fn give_back(commands: &Commands, job: &str) -> Result<(), Error> {
    // A pin that cannot be lifted is no reason to keep the job waiting. Its mark stays then, and it is given back again.
    let lifted = update(commands, job, &["reqnodelist="]).or_else(unless_gone);
    commands
        .run("scontrol", &["release", job])
        .map(drop)
        .or_else(unless_gone)?;
    lifted?;
    // Released first: whoever ends between the two leaves a job that runs, with a stale mark that the next round reads.
    let _ = update(commands, job, &["admincomment="]);
    Ok(())
}

/// Who has left or begun meanwhile has nothing to be given back.
fn unless_gone(error: Error) -> Result<(), Error> {
    match is_gone(&error.to_string()) {
        true => Ok(()),
        false => Err(error),
    }
}

/// What carries decisions out on what was seen of Slurm, by `scontrol`.
#[derive(Debug)]
pub struct Scontrol<'a> {
    commands: &'a Commands,
    seen: &'a Seen,
    release_limit_s: i64,
    /// Where no more than an order is told: how, and by whom.
    telling: Option<(Telling, &'a Mutex<Writes>)>,
    /// CPUs that nodes have free, which the tables do not know.
    cpus: BTreeMap<&'a str, u32>,
    /// Nodes where jobs were stopped in this round.
    emptied: BTreeSet<String>,
}

impl<'a> Scontrol<'a> {
    /// For one round.
    pub(super) fn new(
        commands: &'a Commands,
        seen: &'a Seen,
        release_limit_s: i64,
        telling: Option<(Telling, &'a Mutex<Writes>)>,
    ) -> Scontrol<'a> {
        let nodes = seen.snapshot.nodes.iter();
        Scontrol {
            commands,
            seen,
            release_limit_s,
            telling,
            cpus: nodes
                .map(|node| (node.name.as_str(), node.num_cpus_free))
                .collect(),
            emptied: BTreeSet::new(),
        }
    }

    /// Takes the CPUs of a start; what keeps it from being carried out as it is, if anything.
    fn take_cpus(&mut self, job: &JobSeen, planned: &Planned) -> Result<(), NotSent> {
        let slices = &planned.decision.placement;
        let even = slices.iter().all(|slice| slice.num_gpus() == job.gpus_per_node);
        if planned.nodes.len() != job.num_nodes as usize || !even {
            let (num, gpus) = (job.num_nodes, job.gpus_per_node);
            let why = format!("{num} nodes with {gpus} GPUs each are not to be had");
            return Err(NotSent::put_off(why));
        }
        let needed = job.num_cpus.div_ceil(job.num_nodes.max(1));
        for node in &planned.nodes {
            let free = self.cpus.get(node.as_str()).copied().unwrap_or(0);
            if free < needed && !self.emptied.contains(node) {
                let why = format!("{node} has {free} of {needed} CPUs");
                return Err(NotSent::put_off(why).by([node.clone()]));
            }
        }
        for node in &planned.nodes {
            if let Some(free) = self.cpus.get_mut(node.as_str()) {
                *free = free.saturating_sub(needed);
            }
        }
        Ok(())
    }
}

impl Hands for Scontrol<'_> {
    async fn keep(&mut self, _now_s: i64) -> Kept {
        let Some((_, writes)) = self.telling else {
            return keep(self.commands, self.seen, self.release_limit_s);
        };
        let mut writes = writes.lock().unwrap_or_else(PoisonError::into_inner);
        Kept {
            notes: ranking::give_back(&mut writes.feed, self.commands, &self.seen.parts),
            late: Vec::new(),
        }
    }

    async fn rank(&mut self, order: &mut Order, now: &mut [Planned]) -> Vec<String> {
        let Some((telling, writes)) = self.telling else {
            return Vec::new();
        };
        let mut writes = writes.lock().unwrap_or_else(PoisonError::into_inner);
        let Writes { feed, pins } = &mut *writes;
        let queue = &self.seen.queue;
        let mut notes = ranking::tell((feed, self.commands), queue, order, telling);
        if telling.places {
            notes.extend(pins.tell((feed, self.commands), queue, now));
        }
        notes
    }

    async fn stop(&mut self, job: &JobSeen, planned: &Planned) -> Result<(), NotSent> {
        let id = job.id.to_string();
        // The mark comes first here too: one that Slurm started before it was seen has none, and held without one it waits for ever.
        let mark = format!("admincomment={}", Mark::HELD);
        let sent = update(self.commands, &id, &[&mark])
            .and_then(|()| self.commands.run("scontrol", &["requeuehold", "incomplete", &id]));
        sent.map_err(NotSent::refused)?;
        self.emptied.extend(planned.nodes.iter().cloned());
        Ok(())
    }

    async fn start(&mut self, job: &JobSeen, planned: &Planned, now_s: i64) -> Result<(), NotSent> {
        self.take_cpus(job, planned)?;
        start(self.commands, job, planned, now_s).map_err(|error| {
            let is_of_node = error.to_string().to_lowercase().contains("node");
            let node = planned.nodes.first().filter(|_| is_of_node);
            NotSent::refused(error).by(node.cloned())
        })
    }
}

fn start(commands: &Commands, job: &JobSeen, planned: &Planned, now_s: i64) -> Result<(), Error> {
    let mark = Mark::Decided {
        since_s: now_s,
        tries: job.num_tries,
    };
    let nodes = format!("reqnodelist={}", planned.nodes.join(","));
    // Slurm may add nodes to those that it is told, where a job asks for GPUs as a whole.
    let num_nodes = format!("numnodes={0}-{0}", planned.nodes.len());
    let comment = format!("admincomment={mark}");
    let mut changes = vec![nodes.as_str(), num_nodes.as_str(), comment.as_str()];
    if job.num_restarts > 0 {
        // A requeued job has to wait for minutes otherwise. But one that starts within the second in which its last run was ended
        // on the same node is killed there ("Job credential revoked") and fails for good.
        changes.push("starttime=now+2");
    }
    let id = job.id.to_string();
    update(commands, &id, &changes)?;
    commands.run("scontrol", &["release", &id]).map(drop)
}

/// Gives every job that is held for the daemon back to Slurm's own scheduler, in the order of arrival: how many, and what was
/// refused. Needs no policy and no state.
///
/// # Errors
/// A queue that cannot be read.
pub fn hand_back(commands: &Commands) -> Result<(u64, Vec<String>), Error> {
    let text = commands.run(
        "squeue",
        &[
            "-h",
            "-r",
            "-a",
            "-t",
            "PENDING",
            "-S",
            "V,i",
            "-O",
            "JobArrayID:|,admin_comment:|,Reason:|",
        ],
    )?;
    let (mut num, mut refused) = (0, Vec::new());
    for line in text.lines() {
        let mut fields = line.splitn(3, '|');
        let (Some(id), Some(mark), Some(reason)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if !is_name(id) || matches!(Mark::read(mark), Mark::None | Mark::Off) {
            continue;
        }
        let back = match reason.starts_with("JobHeldUser") {
            // Its user holds it, and goes on to.
            true => lift(commands, id),
            false => give_back(commands, id),
        };
        match back {
            Ok(()) => num += 1,
            Err(error) => refused.push(error.to_string()),
        }
    }
    Ok((num, refused))
}
