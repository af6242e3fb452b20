//! A job as `squeue` shows it: where it stands and what it asks for. Every job with GPUs that Slurm may start is ranked, by what can be
//! said of it in the tables; what that leaves out, Slurm judges at the start.

use pleach_scheduler::ExternalId;

use super::request::{Asked, asked, is_of_gpus, is_of_parts};
use super::rules::Asks;
use super::scope::Reach;
use super::table::{NUM_JOB_FIELDS, SQUEUE, fields, is_null, is_whole_node, more_fields, named_id, number};
use crate::error::Error;
use crate::slurm::mark::{FORETOLD, Mark, Names};
use crate::snapshot::{JobSeen, Phase, Terms};
use pleach_site::slurm::{expand, gpus_of_tres, limit_s, sums};

/// What is the same for all lines of a look.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) reach: &'a Reach,
    pub(super) gives_shares: bool,
    /// Jobs whose nodes the daemon has named.
    pub(super) pinned: &'a Names,
}

impl Look<'_> {
    /// Whether nodes by name are the daemon's, not the user's.
    fn is_pinned(&self, id: ExternalId) -> bool {
        !self.pinned.is_empty() && self.pinned.get(&id.to_string()) == Some(&None)
    }
}

/// A job that has or asks for GPUs, and what it asks for besides; none for others, and for what runs elsewhere.
pub(super) fn job(row: usize, line: &str, look: Look<'_>) -> Result<Option<(JobSeen, Asks)>, Error> {
    let ([tres, qos, cpus_per_gpu, _], rest) = more_fields(row, line)?;
    let all = fields::<NUM_JOB_FIELDS>(SQUEUE, row, rest)?;
    let (name, state, priority) = (all[0], all[1], all[2]);
    let by_unit = [all[3], all[4], all[5], all[6]];
    let (num_nodes, num_cpus, nodes, required, mark) = (all[7], all[8], all[9], all[10], all[11]);
    let (reason, limit, submit, start, restarts) = (all[12], all[13], all[14], all[15], all[16]);
    let (over, dependency, reservation) = (all[17], all[20].trim(), all[21]);
    let (partitions, user, account) = (all[23], all[24], all[25]);
    let bad = |text: &str| Error::garbage(SQUEUE, row, line, text);
    let is_pending = state == "PENDING";
    let is_exclusive = is_whole_node(over);
    let in_all = gpus_of_tres(tres).ok().flatten().map(|(num, _)| num);
    let is_for_gpus = is_of_gpus(&by_unit) || is_exclusive && is_pending || in_all.is_some_and(|num| num > 0);
    if !is_for_gpus {
        return Ok(None);
    }
    let id = named_id(name).ok_or_else(|| bad("begins with no job number"))?;
    let priority: u64 = number(SQUEUE, row, line, "priority", priority)?;
    let time = |what, text| time_s((row, line), what, text);
    let submit_s = time("submit time", submit)?.ok_or_else(|| bad("has no submit time"))?;
    let start_s = time("start time", start)?;
    let limit_s = limit_s(limit).map_err(|_| bad("has no time limit that Slurm prints"))?;
    let placed = |text| expand(&named(text)).map_err(|error| bad(&error.to_string()));
    let (runs_on, required) = (placed(nodes)?, placed(required)?);
    let mut asked = asked(by_unit, in_all, num_nodes, look.gives_shares);
    let phase = match is_pending {
        true => pending(
            priority,
            Mark::read(mark),
            look.reach.is_here(partitions),
            (reason, dependency, reservation),
        ),
        false => {
            let is_part = asked.shards.is_none() && is_of_parts(&by_unit);
            started(state, &runs_on, is_part).map_err(bad)?
        }
    };
    let runs_on = match phase {
        Phase::Running => driven(runs_on, in_all, look.reach, &mut asked),
        _ if is_pending => Vec::new(),
        _ => runs_on,
    };
    if phase == Phase::Running && runs_on.is_empty() {
        return Ok(None);
    }
    let has_own = is_pending && !look.is_pinned(id) && !required.is_empty();
    let is_named = has_own || !asked.is_exact || is_exclusive;
    let is_wish = has_own && asked.num_nodes as usize == required.len();
    let per_gpu = cpus_per_gpu.rsplit(':').next().and_then(|text| text.parse().ok());
    let memory = tres.split(',').find(|part| part.starts_with("mem="));
    let is_limit = ["Assoc", "QOS"].iter().any(|word| reason.starts_with(word));
    let asks = Asks {
        user: named(user),
        account: named(account),
        is_exclusive,
        tres: tres.to_owned(),
        qos: qos.to_owned(),
        cpus_per_gpu: per_gpu,
        memory_mib: sums(memory.unwrap_or_default()).get("mem").copied().unwrap_or(0),
        wish: if is_wish { required } else { Vec::new() },
        is_named,
        is_commented: !is_null(mark) && !mark.starts_with(FORETOLD),
        partitions: partitions.to_owned(),
        refusal: if is_pending && is_limit { reason } else { "" }.to_owned(),
    };
    let job = JobSeen {
        id,
        phase,
        account: named(account),
        user: named(user),
        submit_s,
        start_s: start_s.filter(|_| !is_pending),
        limit_s: limit_s.map(|limit_s| limit_s as i64),
        num_nodes: asked.num_nodes,
        gpus_per_node: asked.gpus_per_node,
        is_packed: false,
        share: asked.share(),
        gpu_types: Vec::new(),
        gpu_type: asked.gpu_type,
        num_cpus: number(SQUEUE, row, line, "CPUs", num_cpus).unwrap_or(0),
        nodes: runs_on,
        num_restarts: number(SQUEUE, row, line, "restarts", restarts)?,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    };
    Ok(Some((job, asks)))
}

/// A time that `squeue` shows, Unix, s; none where it shows none.
fn time_s((row, line): (usize, &str), what: &str, text: &str) -> Result<Option<i64>, Error> {
    match text {
        "N/A" | "0" => Ok(None),
        _ => number(SQUEUE, row, line, what, text).map(Some),
    }
}

/// A name; empty where there is none.
fn named(text: &str) -> String {
    if is_null(text) { "" } else { text }.to_owned()
}

/// Where a pending job stands.
fn pending(
    priority: u64,
    mark: Mark,
    is_here: bool,
    (reason, dependency, reservation): (&str, &str, &str),
) -> Phase {
    let may_not = [
        (mark == Mark::Off, "asks for no decision (its mark says off)"),
        (priority == 0, "is held by its user or an operator"),
        (!is_here, "asks for another partition"),
        (!is_null(reservation), "asks for a reservation"),
        (
            !is_null(dependency) || reason.starts_with("Dependency"),
            "waits for another job (its dependency)",
        ),
        (reason.starts_with("BeginTime"), "waits for Slurm: BeginTime"),
    ];
    match may_not.iter().find(|(is, _)| *is) {
        Some((_, why)) => Phase::Foreign {
            reason: (*why).to_owned(),
        },
        None => Phase::Loose,
    }
}

/// Where a job stands that is not pending.
fn started(state: &str, nodes: &[String], is_part: bool) -> Result<Phase, &'static str> {
    let foreign = |reason: String| Ok(Phase::Foreign { reason });
    match state {
        "RUNNING" | "CONFIGURING" if is_part => foreign("has a part of a GPU".into()),
        "RUNNING" | "CONFIGURING" if nodes.is_empty() => Err("runs on no node"),
        "RUNNING" | "CONFIGURING" => Ok(Phase::Running),
        // It may still hold its GPUs, which then count as taken.
        _ if !state.is_empty()
            && state
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_') =>
        {
            foreign(format!("is {}", state.to_lowercase()))
        }
        _ => Err("has no state that Slurm prints"),
    }
}

/// The driven nodes among those where a job runs. What it has there is what it asked for, or, where Slurm gave it another number of
/// nodes or GPUs, as many on each.
fn driven(nodes: Vec<String>, in_all: Option<u32>, reach: &Reach, asked: &mut Asked) -> Vec<String> {
    if let Some(num) = in_all.filter(|num| *num > 0 && asked.shards.is_none()) {
        asked.gpus_per_node = num.div_ceil(nodes.len() as u32).clamp(1, 64);
    }
    let nodes: Vec<String> = nodes
        .into_iter()
        .filter(|node| reach.nodes.contains(node))
        .collect();
    asked.num_nodes = nodes.len().max(1) as u32;
    nodes
}
