//! Why a job does not run: where it stands, whether it fits, and what was preferred.

use std::fmt::Write;

use pleach_scheduler::actions::{CandidateKind, Words};
use pleach_scheduler::decision::Action;
use pleach_scheduler::pass::{Pass, PassState, why_absent};
use pleach_scheduler::tree::PassedOver;
use pleach_scheduler::{Cluster, DecisionPoint, ExternalId, JobId};

use crate::config::RoundSettings;
use crate::error::Error;
use crate::fleet::{self, Fleet};
use crate::leases;
use crate::memory::Memory;
use crate::ordering;
use crate::policy::{Decider, Loaded};
use crate::round;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// Jobs that are named of those before one in an order.
const NUM_TOLD: usize = 10;

/// An answer in words, from a snapshot, by the policy as it is now.
///
/// # Errors
/// Settings or a policy that fail on the snapshot.
pub fn answer(
    snapshot: &Snapshot,
    memory: &Memory,
    loaded: &mut Loaded,
    settings: &RoundSettings,
    id: ExternalId,
) -> Result<String, Error> {
    let Some(job) = snapshot.jobs.iter().find(|job| job.id == id) else {
        return Ok(format!("Job {id} is not in the queue, or asks for no GPUs."));
    };
    let what = if job.terms.is_lease { "Lease" } else { "Job" };
    let text = match &job.phase {
        Phase::Running => return Ok(format!("{what} {id} runs on {}.", job.nodes.join(","))),
        Phase::Released { .. } => {
            return Ok(format!(
                "{what} {id} was let go to {} and is about to start.",
                job.nodes.join(",")
            ));
        }
        Phase::Blocked { reason } => return Ok(format!("Job {id} {reason}.")),
        Phase::Foreign { reason } => return Ok(format!("Job {id} is left alone: it {reason}.")),
        Phase::Loose | Phase::Waiting => stand(job, memory, snapshot),
    };
    let exclusions = round::exclusions(snapshot, memory, loaded, settings, true)?;
    let Some(mut fleet) = fleet::build_without(snapshot, memory, settings, true, &exclusions)? else {
        return Ok(text + "No node has a GPU to give.");
    };
    let for_leases = leases::place(&mut fleet, snapshot, memory, settings, &mut || false);
    let for_leases = for_leases.unwrap_or_default();
    if let Some(planned) = for_leases.iter().find(|planned| planned.job() == id) {
        let does = match planned.decision.action {
            Action::Reserve => "GPUs are being freed for it".to_owned(),
            _ => format!("It starts in the present round on {}", planned.nodes.join(",")),
        };
        return Ok(text + &format!("{does}: {}", planned.why));
    }
    match loaded.decider {
        Decider::Policy(_) => fleet.begin_class(snapshot),
        _ => fleet.all_classes(),
    }
    let is_later = fleet.later.values().flatten().any(|record| record.job == id);
    match (fleet.left_out.get(&id), fleet.cluster.find(id)) {
        _ if is_later => Ok(text + &pass(snapshot, &mut fleet, loaded, id)?),
        (Some(reason), _) => Ok(text + &format!("It takes no part in this round: {reason}.")),
        (None, None) => Ok(text + "It takes no part in this round."),
        (None, Some(row)) => Ok(text
            + &match &mut loaded.decider {
                Decider::Dealing(dealing) => dealing.standing(&fleet, row)?,
                Decider::Order(_) => place(&fleet, loaded, id)?,
                Decider::Policy(_) => pass(snapshot, &mut fleet, loaded, id)?,
            }),
    }
}

fn stand(job: &JobSeen, memory: &Memory, snapshot: &Snapshot) -> String {
    let now_s = snapshot.taken_s;
    let kind = job.gpu_type.as_deref().unwrap_or("any type");
    let part = job
        .share
        .map_or(String::new(), |share| format!("{} shards of ", share.shards));
    let mut text = format!(
        "Job {} waits since {} s for {} {}(s) with {part}{} GPU(s) of {kind}.\n",
        job.id,
        now_s - job.submit_s,
        job.num_nodes,
        if job.is_packed { "pod" } else { "node" },
        job.gpus_per_node
    );
    if job.num_tries > 0 {
        let wait_s = (job.not_before_s - now_s).max(0);
        let _ = writeln!(
            text,
            "It was let go {} time(s) and did not start; the next try is in {wait_s} s.",
            job.num_tries
        );
    }
    let closed = fleet::closed_to(job, snapshot, None);
    if !closed.is_empty() {
        let _ = writeln!(text, "Closed to it now: {closed}.");
    }
    text + &memory
        .refusals(job)
        .map_or_else(String::new, |refusals| refusals.told(now_s))
}

/// Where a job stands in the order, and which jobs come before it.
fn place(fleet: &Fleet, loaded: &mut Loaded, id: ExternalId) -> Result<String, Error> {
    let decided = ordering::rank(fleet, loaded, &mut || false)?.unwrap_or_default();
    let order = decided.order.unwrap_or_default();
    let Some((place, told)) = order.place(id).zip(order.told(id)) else {
        return Ok(String::new());
    };
    let before: Vec<String> = order.jobs[..place - 1]
        .iter()
        .take(NUM_TOLD)
        .map(ToString::to_string)
        .collect();
    let behind = match before.as_slice() {
        [] => String::new(),
        before => format!(
            ", behind {}{}",
            before.join(", "),
            if place > NUM_TOLD + 1 { " and others" } else { "" }
        ),
    };
    let mut text = format!("By {} it is {told}{behind}.\n", loaded.name);
    if let Some(planned) = decided.planned.iter().find(|planned| planned.job() == id) {
        let _ = match planned.decision.action {
            Action::Reserve => writeln!(text, "GPUs would be held back for it."),
            _ => writeln!(
                text,
                "It fits now on {}; which nodes it gets is for the batch system to say.",
                planned.nodes.join(",")
            ),
        };
        text += &planned.why;
    }
    Ok(text)
}

/// Whether a job fits now, in words; empty where it does.
fn fitting(cluster: &Cluster, row: JobId) -> String {
    if cluster.fitting_types(cluster.demand(row)) > 0 {
        return String::new();
    }
    let free = cluster.num_free();
    format!("It does not fit now: {free} GPU(s) are free in all, but not as it needs them.\n")
}

/// Decides on, a class of priority after the other, until the job starts or the policy holds.
fn pass(
    snapshot: &Snapshot,
    fleet: &mut Fleet,
    loaded: &mut Loaded,
    id: ExternalId,
) -> Result<String, Error> {
    let mut text = String::new();
    let Decider::Policy(policy) = &loaded.decider else {
        return Ok(text);
    };
    let needs = policy.needs();
    let mut pass = Pass::new();
    let mut state = pass.open(&fleet.cluster, &needs);
    let (mut number, mut is_seen) = (0, false);
    loop {
        let own = fleet.cluster.find(id);
        if let Some(row) = own.filter(|_| !std::mem::replace(&mut is_seen, own.is_some())) {
            text += &fitting(&fleet.cluster, row);
        }
        if state == PassState::Closed {
            // What comes after its own class does not matter to it.
            if own.is_some() || !fleet.next_class(snapshot) {
                break;
            }
            text += "Jobs of a lower priority follow.\n";
            state = pass.reopen(&fleet.cluster, &needs);
            continue;
        }
        let cluster = &mut fleet.cluster;
        let Decider::Policy(policy) = &mut loaded.decider else {
            break;
        };
        let action = pass.decide(cluster, policy.as_mut())?;
        let chosen = pass.candidates().get(action).cloned();
        let Some(chosen) = chosen else { break };
        number += 1;
        if own.is_some() && chosen.job == own && chosen.kind == CandidateKind::Start {
            return Ok(text + "It starts in the present round.\n");
        }
        let name = |job: JobId| cluster.job(job).external.to_string();
        let victims: Vec<String> = pass
            .candidates()
            .victims(&chosen)
            .iter()
            .map(|job| name(*job))
            .collect();
        let what = chosen.kind.event(&Words {
            job: chosen.job.map_or(String::new(), name),
            place: String::new(),
            victims: victims.join(", "),
        });
        let _ = writeln!(text, "Decision {number}: {what}.");
        let candidates = pass.candidates();
        let Some(row) = own else {
            state = pass.act(cluster, &needs, action);
            continue;
        };
        let own = candidates
            .iter()
            .position(|candidate| candidate.job == Some(row) && candidate.kind == CandidateKind::Start);
        let point = DecisionPoint {
            cluster,
            candidates,
            observation: pass.observation().as_ref(),
        };
        if let Some(why) = loaded.explained(&point, action)? {
            let _ = writeln!(text, "  the choice: {why}");
        }
        let does = || format!("job {} starts", cluster.job(row).external);
        let score = |index: usize| pass.scores().get(index).copied().unwrap_or(0.0);
        let why = match (own, &loaded.tree) {
            (Some(own), Some(tree)) => tree.passed_over(&point, (action, own), does())?,
            (Some(own), None) => PassedOver::scored(does(), score(own), score(action)),
            (None, _) => PassedOver::absent(why_absent(cluster, &needs, row)),
        };
        for line in why.to_string().lines() {
            let _ = writeln!(text, "  {line}");
        }
        state = pass.act(cluster, &needs, action);
    }
    Ok(text)
}
