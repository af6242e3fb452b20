//! A job as `squeue` shows it: where it stands, what it asks for, why it is left to Slurm.

use std::collections::BTreeSet;

use pleach_scheduler::ExternalId;

use super::parts;
use super::request::{asked, time_limit};
use super::rules::{Asks, sums};
use super::table::{JOB_FIELDS, NUM_JOB_FIELDS, SQUEUE, fields, is_exclusive, is_null, number};
use crate::error::Error;
use crate::slurm::mark::{Mark, is_held_by_user, is_pinned, wish};
use crate::snapshot::{JobSeen, Phase, Terms};
use pleach_tables::slurm::expand;

/// Reasons for which Slurm itself would start a job later: it may be held and decided by the daemon.
const OPEN_REASONS: [&str; 6] = [
    "None",
    "Priority",
    "Resources",
    "ReqNodeNotAvail",
    "NodeDown",
    "Cleaning",
];

/// What is the same for all lines of a look.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) partition: &'a str,
    pub(super) gives_shares: bool,
    /// Slurm starts the jobs itself: those whose nodes a daemon has named.
    pub(super) pinned: Option<&'a BTreeSet<String>>,
    /// Whether rules of the site are read: what they say can be put into the tables.
    pub(super) has_rules: bool,
    pub(super) now_s: i64,
}

impl Look<'_> {
    /// The nodes that a job's user has named.
    fn wished<'a>(&self, id: ExternalId, nodes: &'a str) -> &'a str {
        let is_ours = self.pinned.is_some_and(|pinned| pinned.contains(&id.to_string()));
        if is_ours { "" } else { nodes }
    }

    /// Whether a job of these partitions may run here.
    fn is_here(&self, partitions: &str) -> bool {
        match self.has_rules {
            true => partitions.split(',').any(|name| name == self.partition),
            false => partitions == self.partition,
        }
    }

    /// The time to come before which a job may not begin, where its user has said one. Others may begin since they came, whatever a
    /// clock that was set back says of that; who runs again has another one, which Slurm has set.
    fn begin_s(&self, eligible: &str, submit_s: i64, restarts: &str) -> Option<i64> {
        let begin_s = eligible.parse().ok()?;
        (begin_s > self.now_s.max(submit_s) && restarts == "0").then_some(begin_s)
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

/// A job that asks for GPUs, and what it asks for besides; none for others, and for parts of heterogeneous jobs.
pub(super) fn job<'a>(
    row: usize,
    line: &'a str,
    look: Look<'_>,
) -> Result<Option<(JobSeen, Asks<'a>)>, Error> {
    let (more, rest) = match look.has_rules {
        true => more_fields(row, line)?,
        false => ([""; NUM_RULE_FIELDS], line),
    };
    let all = fields::<NUM_JOB_FIELDS>(SQUEUE, row, rest)?;
    let (id, state, priority) = (all[0], all[1], all[2]);
    let by_unit = [all[3], all[4], all[5], all[6]];
    let (num_nodes, num_cpus, nodes, required_text, mark) = (all[7], all[8], all[9], all[10], all[11]);
    let (reason, limit, submit, start, restarts) = (all[12], all[13], all[14], all[15], all[16]);
    let (over, contiguous, feature, dependency) = (all[17], all[18], all[19], all[20]);
    let (reservation, licenses, of, user, account) = (all[21], all[22], all[23], all[24], all[25]);
    let bad = |text: &str| Error::garbage(SQUEUE, row, line, text);
    if id.contains('+') || by_unit.iter().all(|text| is_null(text)) {
        return Ok(None);
    }
    let id = look.name(id).ok_or_else(|| bad("begins with no job number"))?;
    let priority: u64 = number(SQUEUE, row, line, "priority", priority)?;
    let (mark_text, mark) = (mark, Mark::read(mark));
    let time = |what, text| match text {
        "N/A" | "0" => Ok(None),
        _ => number::<i64>(SQUEUE, row, line, what, text).map(Some),
    };
    let submit_s = time("submit time", submit)?.ok_or_else(|| bad("has no submit time"))?;
    let start_s = time("start time", start)?;
    let limit_s = time_limit(limit).map_err(|()| bad("has no time limit that Slurm prints"))?;
    let placed = |text| expand(&named(text)).ok_or_else(|| bad("names nodes that cannot be"));
    let (runs_on, required) = (placed(nodes)?, placed(look.wished(id, required_text))?);
    let wish = match look.has_rules {
        true => placed(wish(mark_text, required_text))?,
        false => Vec::new(),
    };
    let [tres, qos, cpus_per_gpu, eligible] = more;
    let is_beside = !wish.is_empty() && num_nodes != wish.len().to_string();
    let strange = match (look.is_here(of), look.has_rules) {
        (false, _) => Some("asks for another partition".to_owned()),
        (true, true) => strange_by_rules(reservation, is_beside, over, mark),
        (true, false) => {
            let wishes = [feature, reservation, licenses];
            strange(wishes, (contiguous, over), &required, mark)
        }
    };
    let in_all = if look.has_rules { gpus_in_all(tres) } else { None };
    let (asked, mut strange) = asked((by_unit, in_all), num_nodes, look.gives_shares, strange);
    if state == "RUNNING" && runs_on.len() != asked.num_nodes as usize {
        strange.get_or_insert_with(|| "runs on another number of nodes than it asked for".into());
    }
    let (phase, nodes) = match state {
        "PENDING" => {
            let is_unheld = look.pinned.is_some() && priority > 0;
            // Whoever holds his own job while it is let go keeps it; where he releases it, it is held for the daemon again.
            let mark = match (is_unheld, is_held_by_user(mark_text, reason)) {
                (true, _) => mark.of_unheld(),
                (false, true) => Mark::None,
                (false, false) => mark,
            };
            let phase = pending(priority == 0, mark, strange, reason, dependency);
            let phase = not_before(phase, look.begin_s(eligible, submit_s, restarts), reason);
            let released = matches!(phase, Phase::Released { .. });
            (phase, if released { required } else { Vec::new() })
        }
        _ => (started(state, strange, &runs_on).map_err(bad)?, runs_on),
    };
    let (num_tries, not_before_s) = mark.tries_at(look.now_s);
    let asks = Asks {
        is_exclusive: is_exclusive(over),
        tres,
        qos,
        cpus_per_gpu,
        wish,
        is_pinned: is_pinned(mark_text),
    };
    let job = JobSeen {
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
        terms: Terms::default(),
    };
    Ok(Some((job, asks)))
}

/// Fields before the others of a line, where rules of the site are read.
pub(super) const NUM_RULE_FIELDS: usize = 4;

/// What is asked of `squeue` about each job where rules of the site are read.
pub(super) fn rule_fields() -> String {
    // Features and licences may hold the separator: they are asked for apart, and what has none stands in their places.
    let fields = JOB_FIELDS
        .replace("Feature:|", "Contiguous:|")
        .replace("Licenses:|", "Contiguous:|");
    format!("tres-alloc:|,QOS:|,cpus-per-tres:|,EligibleTime:|,{fields}")
}

/// The fields before the others, and the others.
pub(super) fn more_fields(row: usize, line: &str) -> Result<([&str; NUM_RULE_FIELDS], &str), Error> {
    let found: Vec<&str> = line.splitn(NUM_RULE_FIELDS + 1, '|').collect();
    match found[..] {
        [tres, qos, per_gpu, eligible, rest] => Ok(([tres, qos, per_gpu, eligible], rest)),
        _ => Err(Error::garbage(SQUEUE, row, line, "has too few fields")),
    }
}

/// What keeps a job from being put into the tables where rules of the site are in them. Whatever else it asks for, Slurm judges at
/// the start: it is let go in the policy's order to nodes with as many GPUs, and what refuses it is remembered.
fn strange_by_rules(reservation: &str, is_beside: bool, over: &str, mark: Mark) -> Option<String> {
    let more = [
        (!is_null(reservation), "a reservation"),
        (
            // Of a node alone (`NO`, `NO/NODE`) or of a part of it; a user's or an account's are other words.
            !matches!(over, "OK" | "YES" | "NO") && !over.ends_with("/NO") && !over.ends_with("/NODE"),
            "nodes of its user's or account's own",
        ),
        (is_beside, "nodes by name beside others"),
        (mark == Mark::Off, "no decision (its mark says off)"),
    ];
    let found = more.iter().find(|(is, _)| *is);
    found.map(|(_, what)| format!("asks for {what}"))
}

/// GPUs of all types together, as Slurm has counted them for a job.
fn gpus_in_all(tres: &str) -> Option<u32> {
    let num = *sums(tres).get("gres/gpu")?;
    u32::try_from(num).ok()
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
    match (is_held, mark, strange) {
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
            reason: waits_for(reason),
        },
    }
}

/// The same of a job that may not begin before a time to come. It is held until then: else Slurm would start it in the first moment,
/// before whoever came earlier.
fn not_before(phase: Phase, begin_s: Option<i64>, reason: &str) -> Phase {
    match (phase, begin_s) {
        (Phase::Waiting, Some(begin_s)) => Phase::Blocked {
            reason: format!("begins at {begin_s} (Unix time) at the earliest"),
        },
        (Phase::Foreign { reason: why }, Some(_)) if reason == "BeginTime" && why == waits_for(reason) => {
            Phase::Loose
        }
        (phase, _) => phase,
    }
}

/// Why Slurm itself does not start a job.
fn waits_for(reason: &str) -> String {
    format!("waits for Slurm: {reason}")
}

/// Begins the reason of a job that is held for the daemon and that it does not want.
pub(super) const HELD: &str = "held, and ";
/// Begins that of one that was let go, has not started, and that it does not want any more.
const LET_GO: &str = "let go, and ";

/// Whether a job that is left alone for this reason has to be given back.
pub(super) fn is_to_give_back(reason: &str) -> bool {
    reason.starts_with(HELD) || reason.starts_with(LET_GO)
}
