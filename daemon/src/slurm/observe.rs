//! Observes Slurm by its own commands, `squeue -O` and `sinfo -O`, whose fields are separated by `|` and not padded.
//!
//! The queue is read before the nodes: a job that ends or starts between the two makes a node look fuller, never emptier. A
//! text that is not what the command prints is refused as a whole, with its line. Proved on Slurm 22.05.
//!
//! A job that cannot be carried over into tables without loss (reservations, GPUs by task or socket, shares of GPUs where no nodes
//! are set apart for them; features, licences and nodes by name where rules of the site are not read) is left to Slurm's own scheduler, and the GPUs that it takes
//! are taken out of the cluster that the policy sees.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

use super::job::{HELD, Look, job, more_fields, rule_fields};
use super::node::{NODE_FIELDS, SINFO, node, rule_node, rule_node_fields};
use super::parts;
use super::queue;
use super::rules::{self, Asks, RuleTexts};
use super::seen::{Named, Seen};
use super::shares;
use super::site::check_partition;
use super::table::{JOB_FIELDS, SQUEUE, job_lines};
use crate::error::Error;
use crate::slurm::command::Commands;
use crate::snapshot::{JobSeen, NodeSeen, Phase, Site, Snapshot, VERSION};

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
    let jobs = job_lines(commands, &["-r"], &rule_fields())?;
    let told = RulesTold::ask(commands, partition);
    let text = nodes(commands, partition, &rule_node_fields())?;
    let details = match share_nodes {
        [] => String::new(),
        _ => commands.run("scontrol", &["-o", "-d", "show", "job"])?,
    };
    let shares = SharesText {
        nodes: share_nodes,
        details: &details,
    };
    let (snapshot, named) = read_rules(&jobs, &text, partition, &shares, &told.texts(), now_s)?;
    let bare: Vec<&str> = jobs
        .lines()
        .filter_map(|line| Some(more_fields(1, line).ok()?.1))
        .collect();
    Ok(Seen {
        snapshot,
        parts: parts::held(&bare.join("\n")),
        queue: Vec::new(),
        named,
        notes: told.notes,
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
    let jobs = job_lines(commands, &[], JOB_FIELDS)?;
    let text = nodes(commands, partition, NODE_FIELDS)?;
    Ok(Seen {
        snapshot: read_queue(&jobs, &text, partition, pinned, now_s)?,
        parts: parts::left_over(&jobs),
        queue,
        named: Named::default(),
        notes: Vec::new(),
    })
}

/// What Slurm said of its rules.
#[derive(Debug, Default)]
struct RulesTold {
    texts: [String; 5],
    /// What it did not say, and why.
    notes: Vec<String>,
}

impl RulesTold {
    /// Asks for all of them. Where it does not tell one, jobs go on without it: Slurm refuses, and is remembered.
    fn ask(commands: &Commands, partition: &str) -> RulesTold {
        let mut told = RulesTold::default();
        let mut run = |program: &str, args: &[&str]| match commands.run(program, args) {
            Ok(text) => text,
            Err(error) => {
                told.notes
                    .push(format!("rules of the site are not known: {error}"));
                String::new()
            }
        };
        let pending = [
            "-h",
            "-r",
            "-a",
            "-p",
            partition,
            "-t",
            "PENDING",
            "-o",
            rules::WISHES,
        ];
        let wishes = run("squeue", &pending);
        let licences = match rules::some_want_licences(&wishes) {
            true => run("scontrol", &["-o", "show", "licenses"]),
            false => String::new(),
        };
        let of_partition = run("scontrol", &["-o", "show", "partition", partition]);
        let reservations = run("scontrol", &["-o", "show", "reservation"]);
        let limits = run("scontrol", &["-o", "show", "assoc_mgr", "flags=assoc,qos"]);
        told.texts = [wishes, of_partition, reservations, licences, limits];
        told
    }

    fn texts(&self) -> RuleTexts<'_> {
        let [wishes, partition, reservations, licences, limits] = &self.texts;
        RuleTexts {
            wishes,
            partition,
            reservations,
            licences,
            limits,
        }
    }
}

fn nodes(commands: &Commands, partition: &str, fields: &str) -> Result<String, Error> {
    let text = commands.run("sinfo", &["-h", "-N", "-p", partition, "-O", fields])?;
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
        has_rules: false,
        now_s,
    };
    Ok(read_look(jobs, nodes, look, shares, None)?.0)
}

/// As [`read_with`], with rules of the site; the nodes that users name, by job, as lists.
///
/// # Errors
/// As [`read_with`].
pub fn read_rules(
    jobs: &str,
    nodes: &str,
    partition: &str,
    shares: &SharesText<'_>,
    rules: &RuleTexts<'_>,
    now_s: i64,
) -> Result<(Snapshot, Named), Error> {
    let look = Look {
        partition,
        gives_shares: !shares.nodes.is_empty(),
        pinned: None,
        has_rules: true,
        now_s,
    };
    read_look(jobs, nodes, look, shares, Some(rules))
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
        has_rules: false,
        now_s,
    };
    Ok(read_look(jobs, nodes, look, &SharesText::default(), None)?.0)
}

fn read_look(
    jobs: &str,
    nodes: &str,
    look: Look<'_>,
    shares: &SharesText<'_>,
    rules: Option<&RuleTexts<'_>>,
) -> Result<(Snapshot, Named), Error> {
    let Look {
        gives_shares, now_s, ..
    } = look;
    let mut seen = Vec::new();
    let mut asks: BTreeMap<ExternalId, Asks<'_>> = BTreeMap::new();
    for (row, line) in jobs.lines().enumerate() {
        if let Some((job, ask)) = job(row + 1, line, look)? {
            if asks.insert(job.id, ask).is_some() {
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
    let (mut features, mut weights) = (BTreeMap::new(), BTreeMap::new());
    for (row, line) in nodes.lines().enumerate() {
        let found = match look.has_rules {
            true => rule_node(row + 1, line)?.map(|found| {
                features.insert(found.node.name.clone(), found.features);
                weights.insert(found.node.name.clone(), found.weight);
                (found.node, found.num_shards)
            }),
            false => node(row + 1, line)?,
        };
        if let Some((node, shards)) = found {
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
    // Lighter nodes come first, as Slurm takes them.
    tables.sort_by_key(|node| weights.get(&node.name).copied().unwrap_or(0_u64));
    // Jobs ask for a few different things; each is looked up among the nodes once.
    let mut known = BTreeMap::new();
    for job in &mut seen {
        leave_misfits(job, &tables, &mut known);
    }
    let site = match rules {
        Some(rules) => rules::complete(
            (&mut seen, &asks),
            (&mut tables, &features),
            (look.partition, rules),
            now_s,
        ),
        None => Site::default(),
    };
    let pinned = asks.iter().filter(|(_, ask)| ask.is_pinned).map(|(job, _)| *job);
    let pinned = pinned.collect();
    let wishes = asks.into_iter().filter(|(_, ask)| !ask.wish.is_empty());
    let wishes = wishes.map(|(job, ask)| (job, ask.wish.join(","))).collect();
    let snapshot = Snapshot {
        version: VERSION,
        taken_s: now_s,
        site,
        nodes: tables,
        jobs: seen,
    };
    Ok((snapshot, Named { wishes, pinned }))
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

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
