//! A job as `squeue` shows it: where it stands, what it asks for, why it is left to Slurm.

use std::collections::BTreeSet;

use pleach_scheduler::ExternalId;

use super::parts;
use super::request::{Asked, asked, is_of_gpus, time_limit};
use super::rules::{Asks, sums};
use super::scope::{Place, Reach};
use super::standing::{OPEN_REASONS, Stands, standing};
use super::table::{JOB_FIELDS, NUM_JOB_FIELDS, SQUEUE, fields, is_exclusive, is_null, number};
use crate::error::Error;
use crate::slurm::mark::{Mark, is_held_by_user, is_pinned, shuns, wish};
use crate::snapshot::{JobSeen, Phase, Terms};
use pleach_tables::slurm::expand;

/// What is the same for all lines of a look.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) reach: &'a Reach,
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

    /// The fields about rules before the others of a line, and the others.
    fn split<'a>(&self, row: usize, line: &'a str) -> Result<([&'a str; NUM_RULE_FIELDS], &'a str), Error> {
        match self.has_rules {
            true => more_fields(row, line),
            false => Ok(([""; NUM_RULE_FIELDS], line)),
        }
    }

    /// The nodes that a job's user has named, by its mark, where rules are read; as a list.
    fn wish<'a>(&self, mark: &'a str, named: &'a str) -> &'a str {
        if self.has_rules { wish(mark, named) } else { "" }
    }

    /// Where a job of these partitions may run.
    fn place(&self, partitions: &str) -> Place {
        match self.has_rules {
            true => self.reach.place(partitions),
            false if partitions == self.reach.name => Place::Here,
            false => Place::Elsewhere,
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
    let (more, rest) = look.split(row, line)?;
    let all = fields::<NUM_JOB_FIELDS>(SQUEUE, row, rest)?;
    let (id, state, priority) = (all[0], all[1], all[2]);
    let by_unit = [all[3], all[4], all[5], all[6]];
    let (num_nodes, num_cpus, nodes, required_text, mark) = (all[7], all[8], all[9], all[10], all[11]);
    let (reason, limit, submit, start, restarts) = (all[12], all[13], all[14], all[15], all[16]);
    let (over, contiguous, feature, has_dependency) = (all[17], all[18], all[19], !is_null(all[20].trim()));
    let (reservation, licenses, of, user, account) = (all[21], all[22], all[23], all[24], all[25]);
    let bad = |text: &str| Error::garbage(SQUEUE, row, line, text);
    if id.contains('+') || by_unit.iter().all(|text| is_null(text)) {
        return Ok(None);
    }
    let id = look.name(id).ok_or_else(|| bad("begins with no job number"))?;
    let priority: u64 = number(SQUEUE, row, line, "priority", priority)?;
    let (mark_text, mark) = (mark, Mark::read(mark));
    let time = |what, text| time_s((row, line), what, text);
    let submit_s = time("submit time", submit)?.ok_or_else(|| bad("has no submit time"))?;
    let start_s = time("start time", start)?;
    let limit_s = time_limit(limit).map_err(|()| bad("has no time limit that Slurm prints"))?;
    let placed = |text| expand(&named(text)).map_err(|error| bad(&error.to_string()));
    let (runs_on, required) = (placed(nodes)?, placed(look.wished(id, required_text))?);
    let wish = placed(look.wish(mark_text, required_text))?;
    let [tres, qos, cpus_per_gpu, eligible] = more;
    let wants = Wants {
        by_unit,
        tres,
        num_nodes,
        is_beside: !wish.is_empty() && num_nodes != wish.len().to_string(),
        over,
        reservation,
    };
    let wishes = [feature, reservation, licenses];
    let strange = || strange(wishes, (contiguous, over), &required, mark);
    let (asked, strange, unsaid) = wants.said(look, look.place(of), mark, strange);
    let apart = unsaid.clone().filter(|_| state == "PENDING");
    let (phase, stands) = match state {
        "PENDING" => {
            let pending = Pending {
                is_held: priority == 0,
                mark,
                mark_text,
                reason,
                has_dependency,
                begin_s: look.begin_s(eligible, submit_s, restarts),
            };
            pending.stands(look, strange, unsaid)
        }
        _ => {
            let phase = started(state, strange.or(unsaid), (&runs_on, asked.num_nodes));
            (phase.map_err(bad)?, None)
        }
    };
    let nodes = match phase {
        Phase::Released { .. } => required,
        _ if state == "PENDING" => Vec::new(),
        _ => runs_on,
    };
    let (num_tries, not_before_s) = mark.tries_at(look.now_s);
    let asks = Asks {
        is_exclusive: is_exclusive(over),
        tres,
        qos,
        cpus_per_gpu,
        wish,
        is_pinned: is_pinned(mark_text),
        partitions: of,
        num_nodes: num_nodes.parse().unwrap_or(1),
        shuns: shuns(mark_text).filter(|_| state == "PENDING"),
        stands,
        apart,
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

/// What leaves a job to Slurm where rules of the site are in the tables: an operator has let it have its own.
fn left_by_rules(reservation: &str, mark: Mark) -> Option<String> {
    let more = [
        (!is_null(reservation), "asks for a reservation"),
        (mark == Mark::Off, "asks for no decision (its mark says off)"),
    ];
    let found = more.iter().find(|(is, _)| *is);
    found.map(|(_, what)| (*what).to_owned())
}

/// What keeps a job from being put into the tables there, beside its GPUs. Whatever else it asks for, Slurm judges at the start: it is
/// let go in the policy's order to nodes with as many GPUs, and what refuses it is remembered.
fn unsaid_by_rules(place: Place, is_beside: bool, over: &str) -> Option<String> {
    // Of a node alone (`NO`, `NO/NODE`) or of a part of it; a user's or an account's are other words.
    let is_node = matches!(over, "OK" | "YES" | "NO") || over.ends_with("/NO") || over.ends_with("/NODE");
    let more = [
        (
            place == Place::Further,
            "may run on nodes too that are not driven",
        ),
        (!is_node, "asks for nodes of its user's or account's own"),
        (is_beside, "asks for nodes by name beside others"),
    ];
    let found = more.iter().find(|(is, _)| *is);
    found.map(|(_, what)| (*what).to_owned())
}

/// GPUs of all types together, as Slurm has counted them for a job.
fn gpus_in_all(tres: &str) -> Option<u32> {
    let num = *sums(tres).get("gres/gpu")?;
    u32::try_from(num).ok()
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
fn started(
    state: &str,
    strange: Option<String>,
    (nodes, num_asked): (&[String], u32),
) -> Result<Phase, &'static str> {
    let is_other = state == "RUNNING" && nodes.len() != num_asked as usize;
    let other = "runs on another number of nodes than it asked for";
    match (state, strange.or_else(|| is_other.then(|| other.to_owned()))) {
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

/// What a job wants that the tables may not be able to say.
struct Wants<'a> {
    by_unit: [&'a str; 4],
    tres: &'a str,
    num_nodes: &'a str,
    /// Whether it names nodes beside others.
    is_beside: bool,
    over: &'a str,
    reservation: &'a str,
}

impl Wants<'_> {
    /// What it asks for, why it is left to Slurm, and, where that is not so, why the tables cannot say it: it takes GPUs of those who
    /// wait all the same. `strange` is what leaves it to Slurm where no rules are read.
    fn said(
        &self,
        look: Look<'_>,
        place: Place,
        mark: Mark,
        strange: impl FnOnce() -> Option<String>,
    ) -> (Asked, Option<String>, Option<String>) {
        let strange = match (place, look.has_rules) {
            (Place::Elsewhere, _) => Some("asks for another partition".to_owned()),
            (_, true) => left_by_rules(self.reservation, mark),
            (_, false) => strange(),
        };
        let in_all = if look.has_rules {
            gpus_in_all(self.tres)
        } else {
            None
        };
        let (asked, unsaid) = asked((self.by_unit, in_all), self.num_nodes, look.gives_shares);
        let unsaid = match look.has_rules {
            true => unsaid_by_rules(place, self.is_beside, self.over).or(unsaid),
            false => unsaid,
        };
        match (strange, look.has_rules && is_of_gpus(&self.by_unit)) {
            (None, true) => (asked, None, unsaid),
            (strange, _) => (asked, strange.or(unsaid), None),
        }
    }
}

/// What is known of a pending job.
struct Pending<'a> {
    is_held: bool,
    mark: Mark,
    mark_text: &'a str,
    reason: &'a str,
    has_dependency: bool,
    /// The time to come before which it may not begin.
    begin_s: Option<i64>,
}

impl Pending<'_> {
    /// Where it stands, as `strange` or what the tables cannot say (`unsaid`) leaves it.
    fn stands(
        self,
        look: Look<'_>,
        strange: Option<String>,
        unsaid: Option<String>,
    ) -> (Phase, Option<Stands>) {
        let Pending {
            is_held,
            mark_text,
            reason,
            has_dependency,
            begin_s,
            ..
        } = self;
        // Whoever holds his own job while it is let go keeps it; where he releases it, it is held for the daemon again.
        let is_unheld = look.pinned.is_some() && !is_held;
        let mark = match (is_unheld, is_held_by_user(mark_text, reason)) {
            (true, _) => self.mark.of_unheld(),
            (false, true) => Mark::None,
            (false, false) => self.mark,
        };
        let standing = standing(is_held, (mark, mark_text), reason).filter(|_| look.has_rules);
        let stands = standing.map(|standing| Stands {
            standing,
            may_begin: begin_s.is_none() && !has_dependency,
            is_marked: mark != Mark::None,
        });
        let is_users = is_held && stands.is_none() && mark != Mark::Apart;
        let phase = match unsaid.filter(|_| !is_users) {
            Some(reason) => Phase::Foreign { reason },
            None => not_before(
                pending(is_held, mark, strange, reason, has_dependency),
                begin_s,
                reason,
            ),
        };
        (phase, stands)
    }
}

/// Where a pending job stands.
fn pending(is_held: bool, mark: Mark, strange: Option<String>, reason: &str, has_dependency: bool) -> Phase {
    match (is_held, mark, strange) {
        // Held for the daemon, which cannot decide about it: it is given back.
        (true, Mark::Held { .. } | Mark::Decided { .. } | Mark::Apart, Some(reason)) => Phase::Foreign {
            reason: format!("{HELD}{reason}"),
        },
        // Its user has changed what it asks for since it was let go: the nodes that were named for it may never do.
        (false, Mark::Held { .. } | Mark::Decided { .. } | Mark::Apart, Some(reason)) => Phase::Foreign {
            reason: format!("{LET_GO}{reason}"),
        },
        (_, _, Some(reason)) => Phase::Foreign { reason },
        (true, Mark::None | Mark::Off, None) => Phase::Foreign {
            reason: "is held by its user or an operator".into(),
        },
        // Its user has changed it: it is held anew, with the nodes that are his to shun.
        (_, Mark::Apart, None) => Phase::Loose,
        (true, _, None) if has_dependency => Phase::Blocked {
            reason: "waits for another job (its dependency)".into(),
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
