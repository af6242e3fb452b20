//! Carries decisions out by `scontrol`, so that ending at any point leaves a Slurm that works.
//!
//! A start is two commands: nodes and mark are written while the job is held, then it is released. Between the two it is a
//! held job like any other. Slurm alone starts jobs, so none is started twice; one that was cancelled in the meantime is
//! refused by Slurm and dropped here. A preemption is `requeuehold incomplete`, which never revives a job that has ended.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::error::Error;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::slurm::mark::{Mark, PAUSE_S_MAX};
use crate::slurm::observe::GIVE_BACK;
use crate::slurm::parts::is_name;
use crate::slurm::reason::reasons;
use crate::slurm::seen::Seen;
use crate::snapshot::{JobSeen, Phase, Snapshot};
use crate::system::{Kept, Late};

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
pub fn keep(commands: &Commands, seen: &Seen, release_limit_s: i64) -> Kept {
    let Seen { snapshot, parts } = seen;
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
            Phase::Foreign { reason } if reason.starts_with(GIVE_BACK) => {
                give_back(commands, &job.id.to_string())
            }
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

/// The mark comes first: a held job without one would look like its user's.
fn hold(commands: &Commands, job: ExternalId, mark: Mark) -> Result<(), Error> {
    let job = job.to_string();
    update(commands, &job, &[&format!("admincomment={mark}")])?;
    commands.run("scontrol", &["hold", &job]).map(drop)
}

fn update(commands: &Commands, job: &str, changes: &[&str]) -> Result<(), Error> {
    let id = format!("jobid={job}");
    let mut args = vec!["update", id.as_str()];
    args.extend(changes);
    commands.run("scontrol", &args).map(drop)
}

/// A job, a task of an array or a part of a heterogeneous job.
fn give_back(commands: &Commands, job: &str) -> Result<(), Error> {
    // A pin that cannot be lifted is no reason to keep the job waiting.
    let _ = update(commands, job, &["reqnodelist="]);
    commands.run("scontrol", &["release", job])?;
    // Released first: whoever ends between the two leaves a job that runs, with a stale mark that the next round reads.
    let _ = update(commands, job, &["admincomment="]);
    Ok(())
}

/// Carries decisions out in their order and writes what became of each into it; the jobs whose preemption was sent.
///
/// A start is put off where the nodes have not the CPUs for it, which the tables do not know.
pub fn apply(commands: &Commands, snapshot: &Snapshot, decisions: &mut [Planned]) -> Vec<ExternalId> {
    let seen: BTreeMap<ExternalId, &JobSeen> = snapshot.jobs.iter().map(|job| (job.id, job)).collect();
    let mut cpus: BTreeMap<&str, u32> = snapshot
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.num_cpus_free))
        .collect();
    let mut emptied: BTreeSet<String> = BTreeSet::new();
    let mut refused: BTreeSet<String> = BTreeSet::new();
    let mut stopped = Vec::new();
    for planned in decisions {
        let id = planned.job();
        planned.outcome = match planned.decision.action {
            Action::Reserve => continue,
            Action::Preempt => {
                match commands.run("scontrol", &["requeuehold", "incomplete", &id.to_string()]) {
                    Ok(_) => {
                        emptied.extend(planned.nodes.iter().cloned());
                        stopped.push(id);
                        "sent".into()
                    }
                    Err(error) => {
                        refused.extend(planned.nodes.iter().cloned());
                        format!("refused: {error}")
                    }
                }
            }
            Action::Start => match seen.get(&id) {
                None => "not sent: the job was not seen".into(),
                Some(_) if planned.nodes.iter().any(|node| refused.contains(node)) => {
                    "put off: a job there could not be stopped".into()
                }
                Some(job) => match obstacle(job, planned, &mut cpus, &emptied) {
                    Some((node, why)) => {
                        planned.refused_by.extend(node);
                        format!("put off: {why}")
                    }
                    None => match start(commands, job, planned, snapshot.taken_s) {
                        Ok(()) => "sent".into(),
                        Err(error) => {
                            let is_of_node = error.to_string().to_lowercase().contains("node");
                            let node = planned.nodes.first().filter(|_| is_of_node);
                            planned.refused_by.extend(node.cloned());
                            format!("refused: {error}")
                        }
                    },
                },
            },
        };
    }
    stopped
}

/// What keeps a decision from being carried out as it is, and the node that does, if it is one.
fn obstacle(
    job: &JobSeen,
    planned: &Planned,
    cpus: &mut BTreeMap<&str, u32>,
    emptied: &BTreeSet<String>,
) -> Option<(Option<String>, String)> {
    let even = planned
        .decision
        .placement
        .iter()
        .all(|slice| slice.num_gpus() == job.gpus_per_node);
    if planned.nodes.len() != job.num_nodes as usize || !even {
        let (num, gpus) = (job.num_nodes, job.gpus_per_node);
        return Some((
            None,
            format!("{num} nodes with {gpus} GPUs each are not to be had"),
        ));
    }
    let needed = job.num_cpus.div_ceil(job.num_nodes.max(1));
    for node in &planned.nodes {
        let free = cpus.get(node.as_str()).copied().unwrap_or(0);
        if free < needed && !emptied.contains(node) {
            return Some((Some(node.clone()), format!("{node} has {free} of {needed} CPUs")));
        }
    }
    for node in &planned.nodes {
        if let Some(free) = cpus.get_mut(node.as_str()) {
            *free = free.saturating_sub(needed);
        }
    }
    None
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
            "JobArrayID:|,admin_comment:|",
        ],
    )?;
    let (mut num, mut refused) = (0, Vec::new());
    for line in text.lines() {
        let Some((id, mark)) = line.trim_end_matches('|').split_once('|') else {
            continue;
        };
        if !is_name(id) || matches!(Mark::read(mark), Mark::None | Mark::Off) {
            continue;
        }
        match give_back(commands, id) {
            Ok(()) => num += 1,
            Err(error) => refused.push(error.to_string()),
        }
    }
    Ok((num, refused))
}
