//! Observes Slurm by its own commands, `squeue -O` and `sinfo -O`, whose fields are separated by `|` and not padded.
//!
//! The queue is read before the nodes: a job that ends or starts between the two makes a node look fuller, never emptier. A
//! text that is not what the command prints is refused as a whole, with its line. Proved on Slurm 22.05.
//!
//! A job that cannot be carried over into tables without loss (features, reservations, licences, GPUs by task or socket, shares of
//! GPUs where no nodes are set apart for them) is left to Slurm's own scheduler, and the GPUs that it takes
//! are taken out of the cluster that the policy sees.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

use super::node::{NODE_FIELDS, SINFO, node};
use super::node_list::expand;
use super::parts;
use super::queue;
use super::request::{asked, time_limit};
use super::seen::Seen;
use super::shares;
use super::site::check_partition;
use super::table::{NUM_JOB_FIELDS, SQUEUE, fields, is_exclusive, is_null, job_lines, number};
use crate::error::Error;
use crate::slurm::command::Commands;
use crate::slurm::mark::Mark;
use crate::snapshot::{JobSeen, NodeSeen, Phase, Snapshot, VERSION};

/// Reasons for which Slurm itself would start a job later: it may be held and decided by the daemon.
const OPEN_REASONS: [&str; 6] = [
    "None",
    "Priority",
    "Resources",
    "ReqNodeNotAvail",
    "NodeDown",
    "Cleaning",
];

/// Slurm as it is now, for the jobs and nodes of one partition.
///
/// # Errors
/// A command that fails or takes too long, or output that it cannot have printed.
pub fn observe(
    commands: &Commands,
    partition: &str,
    share_nodes: &[String],
    now_s: i64,
) -> Result<Seen, Error> {
    let jobs = job_lines(commands, &["-r"])?;
    let text = nodes(commands, partition)?;
    let details = match share_nodes {
        [] => String::new(),
        _ => commands.run("scontrol", &["-o", "-d", "show", "job"])?,
    };
    let shares = SharesText {
        nodes: share_nodes,
        details: &details,
    };
    let snapshot = read_with(&jobs, &text, partition, &shares, now_s)?;
    Ok(Seen {
        snapshot,
        parts: parts::held(&jobs),
        queue: Vec::new(),
    })
}

/// The same where Slurm starts the jobs itself and is told an order: tasks of an array that wait together are one job, and nobody
/// who is pending and not held is any daemon's; nodes that a daemon has named for jobs (`pinned`) are not their users'.
///
/// # Errors
/// As [`observe`].
pub fn observe_queue(
    commands: &Commands,
    partition: &str,
    pinned: &BTreeSet<String>,
    now_s: i64,
) -> Result<Seen, Error> {
    let queue = queue::observe(commands, partition)?;
    let jobs = job_lines(commands, &[])?;
    let text = nodes(commands, partition)?;
    Ok(Seen {
        snapshot: read_queue(&jobs, &text, partition, pinned, now_s)?,
        parts: parts::marked(&jobs),
        queue,
    })
}

fn nodes(commands: &Commands, partition: &str) -> Result<String, Error> {
    let text = commands.run("sinfo", &["-h", "-N", "-p", partition, "-O", NODE_FIELDS])?;
    if text.trim().is_empty() {
        // Slurm says so little of a partition that is not there.
        check_partition(commands, partition)?;
    }
    Ok(text)
}

/// What is known of shares of GPUs: nothing, where none are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharesText<'a> {
    /// Names of the nodes that are set apart.
    pub nodes: &'a [String],
    /// What `scontrol -o -d show job` printed.
    pub details: &'a str,
}

/// The snapshot that two texts tell of.
///
/// # Errors
/// A line that the command cannot have printed.
pub fn read(jobs: &str, nodes: &str, partition: &str, now_s: i64) -> Result<Snapshot, Error> {
    read_with(jobs, nodes, partition, &SharesText::default(), now_s)
}

/// As [`read`], with shares.
///
/// # Errors
/// As [`read`]; nodes set apart that are not there or have not the same number of shards on each GPU.
pub fn read_with(
    jobs: &str,
    nodes: &str,
    partition: &str,
    shares: &SharesText<'_>,
    now_s: i64,
) -> Result<Snapshot, Error> {
    let look = Look {
        partition,
        gives_shares: !shares.nodes.is_empty(),
        pinned: None,
        now_s,
    };
    read_look(jobs, nodes, look, shares)
}

/// As [`read`], where Slurm starts the jobs itself.
///
/// # Errors
/// As [`read`].
pub fn read_queue(
    jobs: &str,
    nodes: &str,
    partition: &str,
    pinned: &BTreeSet<String>,
    now_s: i64,
) -> Result<Snapshot, Error> {
    let look = Look {
        partition,
        gives_shares: false,
        pinned: Some(pinned),
        now_s,
    };
    read_look(jobs, nodes, look, &SharesText::default())
}

fn read_look(jobs: &str, nodes: &str, look: Look<'_>, shares: &SharesText<'_>) -> Result<Snapshot, Error> {
    let Look {
        gives_shares, now_s, ..
    } = look;
    let mut seen = Vec::new();
    let mut ids = BTreeSet::new();
    for (row, line) in jobs.lines().enumerate() {
        if let Some(job) = job(row + 1, line, look)? {
            if !ids.insert(job.id) {
                return Err(Error::garbage(
                    SQUEUE,
                    row + 1,
                    line,
                    "names a job for the second time",
                ));
            }
            seen.push(job);
        }
    }
    seen.sort_by_key(JobSeen::arrival);
    let mut tables = Vec::new();
    let (mut names, mut num_shards) = (BTreeSet::new(), BTreeMap::new());
    for (row, line) in nodes.lines().enumerate() {
        if let Some((node, shards)) = node(row + 1, line)? {
            if !names.insert(node.name.clone()) {
                return Err(Error::garbage(
                    SINFO,
                    row + 1,
                    line,
                    "names a node for the second time",
                ));
            }
            num_shards.insert(node.name.clone(), shards);
            tables.push(node);
        }
    }
    if gives_shares {
        let per_gpu = shares::set_apart(&mut tables, shares.nodes, &num_shards)?;
        shares::complete(&mut seen, &mut tables, per_gpu, shares.details);
    }
    // Jobs ask for a few different things; each is looked up among the nodes once.
    let mut known = BTreeMap::new();
    for job in &mut seen {
        leave_misfits(job, &tables, &mut known);
    }
    Ok(Snapshot {
        version: VERSION,
        taken_s: now_s,
        nodes: tables,
        jobs: seen,
    })
}

/// Leaves to Slurm what cannot be placed even on an empty cluster.
fn leave_misfits(
    job: &mut JobSeen,
    nodes: &[NodeSeen],
    known: &mut BTreeMap<(Option<String>, u32, u32, bool), bool>,
) {
    let is_held = matches!(job.phase, Phase::Waiting | Phase::Blocked { .. });
    if !is_held && job.phase != Phase::Loose {
        return;
    }
    let asked = (
        job.gpu_type.clone(),
        job.gpus_per_node,
        job.num_nodes,
        job.share.is_some(),
    );
    if !*known.entry(asked).or_insert_with(|| fits(job, nodes)) {
        let (num, gpus) = (job.num_nodes, job.gpus_per_node);
        let held = if is_held { HELD } else { "" };
        job.phase = Phase::Foreign {
            reason: format!(
                "{held}asks for {num} nodes with {gpus} GPUs each, and so many of one type are not here{}",
                if job.share.is_some() {
                    " whose GPUs are given in shares"
                } else {
                    ""
                }
            ),
        };
    }
}

/// Whether a job could be placed on these nodes if nobody else were there.
fn fits(job: &JobSeen, nodes: &[NodeSeen]) -> bool {
    let named = |node: &&NodeSeen| job.gpu_type.as_deref().is_none_or(|asked| asked == node.gpu_type);
    let for_it = |node: &&NodeSeen| node.shared.is_some() == job.share.is_some();
    let open: Vec<&NodeSeen> = nodes.iter().filter(named).filter(for_it).collect();
    open.iter().any(|node| {
        let alike = open.iter().filter(|other| other.gpu_type == node.gpu_type);
        let large = alike.filter(|other| other.num_gpus >= job.gpus_per_node);
        large.count() >= job.num_nodes as usize
    })
}

/// What is the same for all lines of a look.
#[derive(Clone, Copy)]
struct Look<'a> {
    partition: &'a str,
    gives_shares: bool,
    /// Slurm starts the jobs itself: those whose nodes a daemon has named.
    pinned: Option<&'a BTreeSet<String>>,
    now_s: i64,
}

impl Look<'_> {
    /// The nodes that a job's user has named.
    fn wished<'a>(&self, id: ExternalId, nodes: &'a str) -> &'a str {
        let is_ours = self.pinned.is_some_and(|pinned| pinned.contains(&id.to_string()));
        if is_ours { "" } else { nodes }
    }

    /// What a job is called by: an array that waits as one job where Slurm starts its tasks itself.
    fn name(&self, id: &str) -> Option<ExternalId> {
        let id = if self.pinned.is_some() {
            parts::whole(id)
        } else {
            id
        };
        id.parse().ok()
    }
}

/// A job that asks for GPUs; none for others, and for parts of heterogeneous jobs.
fn job(row: usize, line: &str, look: Look<'_>) -> Result<Option<JobSeen>, Error> {
    let [
        id,
        state,
        priority,
        per_node,
        per_job,
        per_task,
        per_socket,
        num_nodes,
        num_cpus,
        nodes,
        required,
        mark,
        reason,
        limit,
        submit,
        start,
        restarts,
        over,
        contiguous,
        feature,
        dependency,
        reservation,
        licenses,
        of,
        user,
        account,
    ] = fields::<NUM_JOB_FIELDS>(SQUEUE, row, line)?;
    let bad = |text: &str| Error::garbage(SQUEUE, row, line, text);
    let tres = [per_node, per_job, per_task, per_socket];
    if id.contains('+') || tres.iter().all(|text| is_null(text)) {
        return Ok(None);
    }
    let id = look.name(id).ok_or_else(|| bad("begins with no job number"))?;
    let priority: u64 = number(SQUEUE, row, line, "priority", priority)?;
    let mark = Mark::read(mark);
    let time = |what, text| match text {
        "N/A" | "0" => Ok(None),
        _ => number::<i64>(SQUEUE, row, line, what, text).map(Some),
    };
    let submit_s = time("submit time", submit)?.ok_or_else(|| bad("has no submit time"))?;
    let start_s = time("start time", start)?;
    let limit_s = time_limit(limit).map_err(|()| bad("has no time limit that Slurm prints"))?;
    let placed = |text| expand(&named(text)).ok_or_else(|| bad("names nodes that cannot be"));
    let (runs_on, required) = (placed(nodes)?, placed(look.wished(id, required))?);
    let strange = if of == look.partition {
        strange(
            [feature, reservation, licenses],
            (contiguous, over),
            &required,
            mark,
        )
    } else {
        Some("asks for another partition".to_owned())
    };
    let (asked, mut strange) = asked(tres, num_nodes, look.gives_shares, strange);
    if state == "RUNNING" && runs_on.len() != asked.num_nodes as usize {
        strange.get_or_insert_with(|| "runs on another number of nodes than it asked for".into());
    }
    let (phase, nodes) = match state {
        "PENDING" => {
            let mark = if look.pinned.is_some() && priority > 0 {
                mark.of_unheld()
            } else {
                mark
            };
            let phase = pending(priority == 0, mark, strange, reason, dependency);
            let released = matches!(phase, Phase::Released { .. });
            (phase, if released { required } else { Vec::new() })
        }
        _ => {
            let phase = started(state, strange, &runs_on).map_err(bad)?;
            (phase, runs_on)
        }
    };
    let (num_tries, not_before_s) = mark.tries_at(look.now_s);
    Ok(Some(JobSeen {
        id,
        phase,
        account: named(account),
        user: named(user),
        submit_s,
        start_s: start_s.filter(|_| state != "PENDING"),
        limit_s,
        num_nodes: asked.num_nodes,
        gpus_per_node: asked.gpus_per_node,
        is_packed: false,
        share: asked.share(),
        gpu_types: Vec::new(),
        gpu_type: asked.gpu_type,
        num_cpus: number(SQUEUE, row, line, "CPUs", num_cpus).unwrap_or(0),
        nodes,
        num_restarts: number(SQUEUE, row, line, "restarts", restarts)?,
        num_tries,
        not_before_s,
        predicted_s: None,
    }))
}

/// A name; empty where there is none.
fn named(text: &str) -> String {
    if is_null(text) { "" } else { text }.to_owned()
}

/// What keeps a job from being put into the tables, by what it asks for besides GPUs.
fn strange(
    wishes: [&str; 3],
    (contiguous, over): (&str, &str),
    nodes: &[String],
    mark: Mark,
) -> Option<String> {
    let names = ["node features", "a reservation", "licences"];
    if let Some((name, _)) = names.iter().zip(wishes).find(|(_, wish)| !is_null(wish)) {
        return Some(format!("asks for {name}"));
    }
    let more = [
        (contiguous != "0", "nodes side by side"),
        (is_exclusive(over), "nodes of its own"),
        (!nodes.is_empty() && mark == Mark::None, "nodes by name"),
        (mark == Mark::Off, "no decision (its mark says off)"),
    ];
    let found = more.iter().find(|(is, _)| *is);
    found.map(|(_, what)| format!("asks for {what}"))
}

/// Where a job stands that is not pending.
fn started(state: &str, strange: Option<String>, nodes: &[String]) -> Result<Phase, &'static str> {
    match (state, strange) {
        ("RUNNING" | "CONFIGURING", Some(reason)) => Ok(Phase::Foreign { reason }),
        ("RUNNING" | "CONFIGURING", None) if nodes.is_empty() => Err("runs on no node"),
        ("RUNNING" | "CONFIGURING", None) => Ok(Phase::Running),
        // It may still hold its GPUs, which then count as taken.
        _ if !state.is_empty()
            && state
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_') =>
        {
            let reason = format!("is {}", state.to_lowercase());
            Ok(Phase::Foreign { reason })
        }
        _ => Err("has no state that Slurm prints"),
    }
}

/// Where a pending job stands.
fn pending(is_held: bool, mark: Mark, strange: Option<String>, reason: &str, dependency: &str) -> Phase {
    // Whoever holds his own job while it is let go keeps it; where he releases it, it is held for the daemon again.
    let is_users = is_held && reason.starts_with("JobHeldUser");
    match (is_held, if is_users { Mark::None } else { mark }, strange) {
        // Held for the daemon, which cannot decide about it: it is given back.
        (true, Mark::Held { .. } | Mark::Decided { .. }, Some(reason)) => Phase::Foreign {
            reason: format!("{HELD}{reason}"),
        },
        // Its user has changed what it asks for since it was let go: the nodes that were named for it may never do.
        (false, Mark::Held { .. } | Mark::Decided { .. }, Some(reason)) => Phase::Foreign {
            reason: format!("{LET_GO}{reason}"),
        },
        (_, _, Some(reason)) => Phase::Foreign { reason },
        (true, Mark::None | Mark::Off, None) => Phase::Foreign {
            reason: "is held by its user or an operator".into(),
        },
        (true, _, None) if !is_null(dependency) => Phase::Blocked {
            reason: format!("waits for {}", dependency.chars().take(100).collect::<String>()),
        },
        (true, _, None) => Phase::Waiting,
        (false, Mark::Decided { since_s, .. }, None) => Phase::Released { since_s },
        (false, _, None) if OPEN_REASONS.iter().any(|open| reason.starts_with(open)) => Phase::Loose,
        (false, _, None) => Phase::Foreign {
            reason: format!("waits for Slurm: {reason}"),
        },
    }
}

/// Begins the reason of a job that is held for the daemon and that it does not want.
const HELD: &str = "held, and ";
/// Begins that of one that was let go, has not started, and that it does not want any more.
const LET_GO: &str = "let go, and ";

/// Whether a job that is left alone for this reason has to be given back.
pub(crate) fn is_to_give_back(reason: &str) -> bool {
    reason.starts_with(HELD) || reason.starts_with(LET_GO)
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
