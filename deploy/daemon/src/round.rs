//! One round: from what was seen and what is remembered to decisions, through the same pass, or the same deal, as in training.
//!
//! A policy that fails or is still deciding at the deadline is replaced for this round: the tables are made anew and the
//! fallback decides. It is a simple heuristic, whose time needs no bound of its own. A round that would start more jobs
//! than a limit allows is decided again (`allowances.rs`). Leases go before all of that (`leases.rs`).

use pleach_scheduler::decision::Action;
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::{DecisionPoint, PolicyError};

use crate::allowances;
use crate::config::RoundSettings;
use crate::dealing::{Dealing, Turn};
use crate::decided::{Decided, leaves, planned};
use crate::error::Error;
use crate::exclusions::Exclusions;
use crate::fleet::{self, Fleet};
use crate::leases;
use crate::memory::Memory;
use crate::order::Order;
use crate::ordering;
use crate::policy::{Decider, Loaded};
use crate::record::Planned;
use crate::snapshot::Snapshot;

/// What a round decided.
#[derive(Debug)]
pub struct Plan {
    /// The decisions, in their order; under `Drive::Order`, what the policy would do now.
    pub decisions: Vec<Planned>,
    /// How many of these, the first ones, are for leases: not the policy's.
    pub num_for_leases: usize,
    /// The order of the waiting jobs, under `Drive::Order`.
    pub order: Option<Order>,
    /// The tables as the decisions left them; none without any node.
    pub fleet: Option<Fleet>,
    /// What answered in place of the policy, and why.
    pub fallback: Option<String>,
    /// Why the policy itself left this cluster to another rule; none where it decided, or had nothing to decide.
    pub aside: Option<String>,
    /// At each decision of a tree, numbers of the leaves of all that was offered; nothing where another one decided.
    pub offered: Vec<Vec<u32>>,
    /// What a dealer's deal hung on beside the tables; none where another one decided.
    pub turn: Option<Turn>,
    /// What was kept out because others take what a limit leaves.
    pub exclusions: Exclusions,
}

impl Plan {
    fn of(settled: Settled, fallback: Option<String>) -> Plan {
        Plan {
            decisions: settled.decided.planned,
            num_for_leases: settled.num_for_leases,
            order: settled.decided.order,
            fleet: settled.fleet,
            fallback,
            aside: settled.aside,
            offered: settled.decided.offered,
            turn: settled.decided.turn,
            exclusions: settled.exclusions,
        }
    }

    /// What the policy decided, or what answered in its place.
    #[must_use]
    pub fn of_policy(&self) -> &[Planned] {
        self.decisions.get(self.num_for_leases..).unwrap_or_default()
    }
}

/// What decides, and what decides where that fails.
#[derive(Debug)]
pub struct Deciders<'a> {
    /// The policy.
    pub policy: &'a mut Loaded,
    /// The fallback.
    pub fallback: &'a mut Loaded,
}

/// Decides a round. `is_late` is asked between decisions.
///
/// # Errors
/// Settings that do not fit what was seen; a fallback that fails too.
pub fn plan(
    snapshot: &Snapshot,
    memory: &Memory,
    deciders: &mut Deciders<'_>,
    settings: &RoundSettings,
    is_shadow: bool,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Plan, Error> {
    let reason = match settle(snapshot, memory, deciders.policy, settings, is_shadow, is_late) {
        Ok(Some(settled)) => return Ok(Plan::of(settled, None)),
        Ok(None) => format!(
            "{} was not done within {} s",
            deciders.policy.name, settings.deadline_s
        ),
        Err(Error::Scoring(error)) => format!("{}: {error}", deciders.policy.name),
        Err(error) => return Err(error),
    };
    by_fallback(snapshot, memory, deciders.fallback, settings, is_shadow, &reason)
}

/// Decides a round by the fallback alone, for a reason that is written down.
///
/// # Errors
/// As [`plan`].
pub fn by_fallback(
    snapshot: &Snapshot,
    memory: &Memory,
    fallback: &mut Loaded,
    settings: &RoundSettings,
    is_shadow: bool,
    reason: &str,
) -> Result<Plan, Error> {
    let settled = settle(snapshot, memory, fallback, settings, is_shadow, &mut || false)?;
    let told = format!("{} answered: {reason}", fallback.name);
    let plan = Plan::of(settled.unwrap_or_default(), Some(told));
    Ok(Plan {
        aside: None,
        offered: Vec::new(),
        turn: None,
        ..plan
    })
}

/// What is kept out of a round by a policy because others take what a limit leaves.
///
/// # Errors
/// As [`plan`]; a policy that fails.
pub fn exclusions(
    snapshot: &Snapshot,
    memory: &Memory,
    loaded: &mut Loaded,
    settings: &RoundSettings,
    is_shadow: bool,
) -> Result<Exclusions, Error> {
    let settled = settle(snapshot, memory, loaded, settings, is_shadow, &mut || false)?;
    Ok(settled.unwrap_or_default().exclusions)
}

/// An attempt whose decisions stand.
#[derive(Debug, Default)]
struct Settled {
    decided: Decided,
    num_for_leases: usize,
    fleet: Option<Fleet>,
    aside: Option<String>,
    exclusions: Exclusions,
}

/// Decides until no limit is exceeded; none if it was too late. A dealer takes one turn for all attempts.
fn settle(
    snapshot: &Snapshot,
    memory: &Memory,
    loaded: &mut Loaded,
    settings: &RoundSettings,
    is_shadow: bool,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Option<Settled>, Error> {
    let mut exclusions = allowances::first(settings.drive.is_order());
    loop {
        let all_wait = is_shadow || settings.drive.is_order();
        let Some(mut fleet) = fleet::build_without(snapshot, memory, settings, all_wait, &exclusions)? else {
            return Ok(Some(Settled::default()));
        };
        let Some(for_leases) = leases::place(&mut fleet, snapshot, memory, settings, is_late) else {
            return Ok(None);
        };
        let is_asked = fleet.cluster.num_pending() > 0 || !fleet.later.is_empty();
        let aside = loaded.aside(&fleet.cluster).filter(|_| is_asked);
        let Some(mut decided) = decide(snapshot, &mut fleet, loaded, is_late)? else {
            return Ok(None);
        };
        match allowances::next(&exclusions, snapshot, &mut decided.planned) {
            None => {
                let num_for_leases = for_leases.len();
                decided.planned.splice(0..0, for_leases);
                return Ok(Some(Settled {
                    decided,
                    num_for_leases,
                    fleet: Some(fleet),
                    aside,
                    exclusions,
                }));
            }
            Some(next) => exclusions = next,
        }
        if let (Some(dealing), Some(turn)) = (loaded.dealing_mut(), decided.turn) {
            dealing.told(turn);
        }
    }
}

/// Decides, with the reason of each decision; none if it was too late.
fn decide(
    snapshot: &Snapshot,
    fleet: &mut Fleet,
    loaded: &mut Loaded,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Option<Decided>, PolicyError> {
    let dealing = match &mut loaded.decider {
        Decider::Dealing(dealing) => dealing,
        Decider::Order(_) => {
            fleet.all_classes();
            let mut ranked = ordering::rank(fleet, loaded, is_late)?;
            if let Some(decided) = &mut ranked {
                ordering::deal(snapshot, fleet, loaded, decided)?;
            }
            return Ok(ranked);
        }
        Decider::Policy(_) => return pass(snapshot, fleet, loaded, is_late),
    };
    let decided = deal(snapshot, fleet, dealing)?;
    Ok((!is_late()).then_some(decided))
}

/// Deals, a class of priority after the other: none that runs is stopped for a lower one, nor what this round has started. Where a deal
/// stops jobs, lower classes wait for a later round: what is free then is for those that move.
fn deal(snapshot: &Snapshot, fleet: &mut Fleet, dealing: &mut Dealing) -> Result<Decided, PolicyError> {
    let turn = dealing.take_turn(snapshot, fleet);
    let mut decided = Decided::default();
    fleet.begin_class(snapshot);
    while fleet.cluster.num_pending() == 0 && fleet.next_class(snapshot) {}
    loop {
        let mut has_stopped = false;
        for (decision, why) in dealing.deal(&mut fleet.cluster, &turn)? {
            has_stopped |= decision.action == Action::Preempt;
            if decision.action == Action::Start && !fleet.later.is_empty() {
                fleet.cluster.spare(decision.row);
            }
            decided.planned.push(planned(fleet, decision, &why));
        }
        if has_stopped || !fleet.next_class(snapshot) {
            break;
        }
    }
    fleet.all_classes();
    decided.turn = Some(turn);
    Ok(decided)
}

/// One pass to its end, a class of priority after the other.
fn pass(
    snapshot: &Snapshot,
    fleet: &mut Fleet,
    loaded: &mut Loaded,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Option<Decided>, PolicyError> {
    let mut decided = Decided::default();
    let Decider::Policy(policy) = &loaded.decider else {
        return Ok(Some(decided));
    };
    fleet.begin_class(snapshot);
    while fleet.cluster.num_pending() == 0 {
        if !fleet.next_class(snapshot) {
            return Ok(Some(decided));
        }
    }
    let needs = policy.needs();
    let mut pass = Pass::new();
    let mut decisions = Vec::new();
    let mut state = pass.open(&fleet.cluster, &needs);
    loop {
        if state == PassState::Closed {
            if !fleet.next_class(snapshot) {
                break;
            }
            state = pass.reopen(&fleet.cluster, &needs);
            continue;
        }
        if is_late() {
            return Ok(None);
        }
        let Decider::Policy(policy) = &mut loaded.decider else {
            break;
        };
        let action = pass.decide(&fleet.cluster, policy.as_mut())?;
        let point = DecisionPoint {
            cluster: &fleet.cluster,
            candidates: pass.candidates(),
            observation: pass.observation().as_ref(),
        };
        let why = loaded.explained(&point, action)?.unwrap_or_default();
        decided.offered.extend(leaves(&point, loaded.tree.as_ref())?);
        state = pass.act(&mut fleet.cluster, &needs, action);
        fleet.cluster.take_decisions(&mut decisions);
        let made = decisions.drain(..).map(|decision| planned(fleet, decision, &why));
        decided.planned.extend(made);
    }
    Ok(Some(decided))
}

/// Whether two rounds decided the same: jobs, actions and GPUs, in the same order.
#[must_use]
pub fn is_same(ours: &[Planned], theirs: &[Planned]) -> bool {
    let key = |planned: &Planned| {
        let decision = &planned.decision;
        (
            decision.job,
            decision.action,
            decision.placement.clone(),
            decision.leaf,
            planned.nodes.clone(),
        )
    };
    ours.iter().map(key).eq(theirs.iter().map(key))
}

/// Whether a decision is carried out: reservations are not.
#[must_use]
pub fn is_carried_out(planned: &Planned) -> bool {
    planned.decision.action != Action::Reserve
}
