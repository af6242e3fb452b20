//! Observes Slurm by its own commands, `squeue -O` and `sinfo -O`, whose fields are separated by `|` and not padded.
//!
//! The queue is read before the nodes: a job that ends or starts between the two makes a node look fuller, never emptier. A
//! text that is not what the command prints is refused with its line; a job whose line cannot be read is left alone and told, and
//! what it holds counts as others'. Proved on Slurm 22.05.
//!
//! A job that cannot be carried over into tables without loss (reservations, GPUs by task or socket, shares of GPUs where no nodes
//! are set apart for them; features, licences and nodes by name where rules of the site are not read) is left to Slurm's own scheduler, and the GPUs that it takes
//! are taken out of the cluster that the policy sees.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

use super::apart::{Steps, steps};
use super::job::{HELD, Look, job, more_fields, rule_fields};
use super::node::{NODE_FIELDS, Nodes, rule_node_fields};
use super::parts;
use super::queue::{self, Waiting};
use super::records;
use super::rules::{self, Asks, RuleTexts};
use super::scope::{Reach, SHOW_PARTITIONS, Scope, beside, check_spare};
use super::seen::{Named, Seen};
use super::shares;
use super::site::check_partition;
use super::table::{JOB_FIELDS, SQUEUE, job_lines};
use crate::error::Error;
use crate::slurm::command::{Commands, Records};
use crate::snapshot::{JobSeen, NodeSeen, Phase, Site, Snapshot, VERSION};

/// Slurm as it is now, for the jobs and nodes of one partition.
///
/// # Errors
/// A command that fails or takes too long, or output that it cannot have printed.
pub fn observe(
    commands: &Commands,
    scope: &Scope<'_>,
    share_nodes: &[String],
    now_s: i64,
) -> Result<Seen, Error> {
    let jobs = job_lines(commands, &["-r"], &rule_fields())?;
    let told = RulesTold::ask(commands, scope);
    let text = nodes(commands, scope.partition, &rule_node_fields())?;
    let details = match share_nodes {
        [] => Records::default(),
        _ => commands.records("scontrol", &["-o", "-d", "show", "job"], "\n")?,
    };
    let shares = SharesText {
        nodes: share_nodes,
        details: &details.text,
    };
    let read = read_rules(&jobs.text, &text, scope, &shares, &told.texts(), now_s)?;
    let bare: Vec<&str> = jobs
        .text
        .lines()
        .filter_map(|line| Some(more_fields(1, line).ok()?.1))
        .collect();
    Ok(Seen {
        snapshot: read.snapshot,
        parts: parts::held(&bare.join("\n")),
        waiting: Waiting::default(),
        named: read.named,
        apart: read.apart,
        rival: None,
        notes: [jobs.notes(SQUEUE), read.note, details.notes("scontrol")]
            .into_iter()
            .flatten()
            .chain(told.notes)
            .collect(),
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
    let mut waiting = queue::observe(commands, partition)?;
    let jobs = job_lines(commands, &[], JOB_FIELDS)?;
    let text = nodes(commands, partition, NODE_FIELDS)?;
    let read = read_pinned(&jobs.text, &text, partition, pinned, now_s)?;
    let notes = std::mem::take(&mut waiting.notes).into_iter();
    Ok(Seen {
        snapshot: read.snapshot,
        parts: parts::left_over(&jobs.text),
        waiting,
        named: Named::default(),
        apart: Steps::default(),
        rival: None,
        notes: notes.chain(jobs.notes(SQUEUE)).chain(read.note).collect(),
    })
}

/// What Slurm said of its rules.
#[derive(Debug, Default)]
struct RulesTold {
    texts: [String; 6],
    /// What it did not say, and why.
    notes: Vec<String>,
}

impl RulesTold {
    /// Asks for all of them. Where it does not tell one, jobs go on without it: Slurm refuses, and is remembered.
    fn ask(commands: &Commands, scope: &Scope<'_>) -> RulesTold {
        let mut told = RulesTold::default();
        let mut run = |program: &str, args: &[&str]| match commands.run(program, args) {
            Ok(text) => text,
            Err(error) => {
                told.notes
                    .push(format!("rules of the site are not known: {error}"));
                String::new()
            }
        };
        let partitions = run("scontrol", &SHOW_PARTITIONS);
        // Nodes that are not driven and have GPUs, where a partition of driven ones holds others too.
        let (names, reaches) = beside(scope, &partitions);
        let names = names.join(",");
        let gpu_nodes = match reaches {
            true => run("sinfo", &["-h", "-a", "-N", "-o", "%N|%G"]),
            false => String::new(),
        };
        let pending = [
            "-h",
            "-r",
            "-a",
            "-p",
            &names,
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
        let reservations = run("scontrol", &["-o", "show", "reservation"]);
        let limits = run("scontrol", &["-o", "show", "assoc_mgr", "flags=assoc,qos"]);
        told.notes.extend(rules::unread(&partitions, &reservations));
        told.texts = [wishes, partitions, gpu_nodes, reservations, licences, limits];
        told
    }

    fn texts(&self) -> RuleTexts<'_> {
        let [wishes, partitions, gpu_nodes, reservations, licences, limits] = &self.texts;
        RuleTexts {
            wishes,
            partitions,
            gpu_nodes,
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
    let reach = Reach::only(partition);
    let look = Look {
        reach: &reach,
        gives_shares: !shares.nodes.is_empty(),
        pinned: None,
        has_rules: false,
        now_s,
    };
    Ok(read_look(jobs, Nodes::read(nodes, false)?, look, (shares, None))?.snapshot)
}

/// What texts tell where jobs are held.
#[derive(Debug)]
pub struct Read {
    /// Jobs and nodes.
    pub snapshot: Snapshot,
    /// Whose nodes by name are whose.
    pub named: Named,
    /// What is done about jobs that the tables cannot say.
    pub apart: Steps,
    /// What is to be said of lines that could not be read.
    pub note: Option<String>,
}

/// As [`read_with`], with rules of the site.
///
/// # Errors
/// As [`read_with`]; nodes set aside that are not there.
pub fn read_rules(
    jobs: &str,
    nodes: &str,
    scope: &Scope<'_>,
    shares: &SharesText<'_>,
    rules: &RuleTexts<'_>,
    now_s: i64,
) -> Result<Read, Error> {
    let nodes = Nodes::read(nodes, true)?;
    let names = || nodes.tables.iter().map(|node| node.name.as_str());
    check_spare(scope, names())?;
    let reach = Reach::read(scope, names(), (rules.partitions, rules.gpu_nodes));
    let look = Look {
        reach: &reach,
        gives_shares: !shares.nodes.is_empty(),
        pinned: None,
        has_rules: true,
        now_s,
    };
    read_look(jobs, nodes, look, (shares, Some(rules)))
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
    Ok(read_pinned(jobs, nodes, partition, pinned, now_s)?.snapshot)
}

fn read_pinned(
    jobs: &str,
    nodes: &str,
    partition: &str,
    pinned: &BTreeSet<String>,
    now_s: i64,
) -> Result<Read, Error> {
    let reach = Reach::only(partition);
    let look = Look {
        reach: &reach,
        gives_shares: false,
        pinned: Some(pinned),
        has_rules: false,
        now_s,
    };
    let nodes = Nodes::read(nodes, false)?;
    read_look(jobs, nodes, look, (&SharesText::default(), None))
}

fn read_look(
    jobs: &str,
    mut nodes: Nodes,
    look: Look<'_>,
    (shares, rules): (&SharesText<'_>, Option<&RuleTexts<'_>>),
) -> Result<Read, Error> {
    let mut seen = Vec::new();
    let mut asks: BTreeMap<ExternalId, Asks<'_>> = BTreeMap::new();
    let (found, note) = records::each(jobs, |row, line| Ok((row, line, job(row, line, look)?)))?;
    for (row, line, found) in found {
        let Some((job, ask)) = found else { continue };
        if asks.insert(job.id, ask).is_some() {
            let words = "names a job for the second time";
            return Err(Error::garbage(SQUEUE, row, line, words));
        }
        seen.push(job);
    }
    seen.sort_by_key(JobSeen::arrival);
    nodes.tables.retain(|node| !look.reach.spare.contains(&node.name));
    if look.gives_shares {
        let per_gpu = shares::set_apart(&mut nodes.tables, shares.nodes, &nodes.num_shards)?;
        shares::complete(&mut seen, &mut nodes.tables, per_gpu, shares.details);
    }
    // Jobs ask for a few different things; each is looked up among the nodes once.
    let mut known = BTreeMap::new();
    for job in &mut seen {
        let ask = asks.get_mut(&job.id).filter(|_| look.has_rules);
        leave_misfits(job, ask, (&nodes.tables, look.reach), &mut known);
    }
    let site = match rules {
        Some(rules) => rules::complete(
            (&mut seen, &asks),
            (&mut nodes.tables, &nodes.features),
            (look.reach, rules),
            look.now_s,
        ),
        None => Site::default(),
    };
    let mut snapshot = Snapshot {
        version: VERSION,
        taken_s: look.now_s,
        site,
        nodes: nodes.tables,
        jobs: seen,
    };
    let apart = match rules {
        Some(rules) => steps(&mut snapshot, &asks, (look.reach, rules.wishes)),
        None => Steps::default(),
    };
    let mut named = Named::default();
    for (job, ask) in asks {
        if ask.is_pinned {
            named.pinned.insert(job);
        }
        if !ask.wish.is_empty() {
            named.wishes.insert(job, ask.wish.join(","));
        }
        named.shuns.extend(ask.shuns.map(|own| (job, own.to_owned())));
    }
    Ok(Read {
        snapshot,
        named,
        apart,
        note,
    })
}

/// What is asked of a node: type, GPUs on each, nodes, whether shares.
type Demand = (Option<String>, u32, u32, bool);

/// Takes out of the tables what cannot be placed even on an empty cluster: it is left to Slurm, or stands apart.
fn leave_misfits(
    job: &mut JobSeen,
    ask: Option<&mut Asks<'_>>,
    (nodes, reach): (&[NodeSeen], &Reach),
    known: &mut BTreeMap<Demand, bool>,
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
    let is_set_aside = ask.as_ref().is_some_and(|ask| asks_for_spare(ask, nodes, reach));
    let why = if is_set_aside {
        "asks for nodes that are set aside".to_owned()
    } else if !*known.entry(asked).or_insert_with(|| fits(job, nodes)) {
        let (num, gpus) = (job.num_nodes, job.gpus_per_node);
        let shared = match job.share {
            Some(_) => " whose GPUs are given in shares",
            None => "",
        };
        format!("asks for {num} nodes with {gpus} GPUs each, and so many of one type are not here{shared}")
    } else {
        return;
    };
    let held = if is_held && ask.is_none() { HELD } else { "" };
    job.phase = Phase::Foreign {
        reason: format!("{held}{why}"),
    };
    if let Some(ask) = ask {
        ask.apart = Some(why);
    }
}

/// Whether a job names nodes that are set aside, or a partition that has no others.
fn asks_for_spare(ask: &Asks<'_>, nodes: &[NodeSeen], reach: &Reach) -> bool {
    let is_named = ask.wish.iter().any(|node| reach.spare.contains(node));
    let (_, _, of_partition) = reach.of(ask.partitions);
    is_named || of_partition.is_some_and(|names| !nodes.iter().any(|node| names.contains(&node.name)))
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
