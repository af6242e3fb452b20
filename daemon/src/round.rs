//! One round: from what was seen and what is remembered to decisions, through the same pass as in training.
//!
//! A policy that fails or is still deciding at the deadline is replaced for this round: the tables are made anew and the
//! fallback decides. It is a simple heuristic, whose time needs no bound of its own.

use pleach_scheduler::decision::Action;
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::{Cluster, DecisionPoint, PolicyError};

use crate::config::RoundSettings;
use crate::error::Error;
use crate::fleet::{self, Fleet};
use crate::memory::Memory;
use crate::policy::Loaded;
use crate::record::Planned;
use crate::snapshot::Snapshot;

/// What a round decided.
#[derive(Debug)]
pub struct Plan {
    /// The decisions, in their order.
    pub decisions: Vec<Planned>,
    /// The tables as the decisions left them; none without any node.
    pub fleet: Option<Fleet>,
    /// Who answered in the policy's place and why.
    pub fallback: Option<String>,
    /// At each decision of a tree, numbers of the leaves of all that was offered; nothing where another one decided.
    pub offered: Vec<Vec<u32>>,
}

/// Who decides, and who does where that fails.
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
    let Some(mut fleet) = fleet::build(snapshot, memory, settings, is_shadow)? else {
        return Ok(Plan {
            decisions: Vec::new(),
            fleet: None,
            fallback: None,
            offered: Vec::new(),
        });
    };
    let reason = match decide(&mut fleet, deciders.policy, is_late) {
        Ok(Some((decisions, offered))) => {
            return Ok(Plan {
                decisions,
                fleet: Some(fleet),
                fallback: None,
                offered,
            });
        }
        Ok(None) => format!(
            "{} was not done within {} s",
            deciders.policy.name, settings.deadline_s
        ),
        Err(error) => format!("{}: {error}", deciders.policy.name),
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
    let mut fleet = fleet::build(snapshot, memory, settings, is_shadow)?;
    let decided = match &mut fleet {
        Some(fleet) => decide(fleet, fallback, &mut || false)?,
        None => None,
    };
    Ok(Plan {
        decisions: decided.map_or_else(Vec::new, |(decisions, _)| decisions),
        fleet,
        fallback: Some(format!("{} answered: {reason}", fallback.name)),
        offered: Vec::new(),
    })
}

/// What a pass decided, and where all that was offered ended in a tree.
type Decided = (Vec<Planned>, Vec<Vec<u32>>);

/// One pass to its end, with the reason of each decision; none if it was too late.
fn decide(
    fleet: &mut Fleet,
    loaded: &mut Loaded,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Option<Decided>, PolicyError> {
    let Fleet { cluster, nodes, .. } = fleet;
    if cluster.num_pending() == 0 {
        return Ok(Some(Decided::default()));
    }
    let needs = loaded.policy.needs();
    let mut pass = Pass::new();
    let (mut planned, mut decisions, mut offered) = (Vec::new(), Vec::new(), Vec::new());
    let mut state = pass.open(cluster, &needs);
    while state == PassState::Open {
        if is_late() {
            return Ok(None);
        }
        let action = pass.decide(cluster, loaded.policy.as_mut())?;
        let why = why(&pass, cluster, loaded, action)?;
        offered.extend(leaves(&pass, cluster, loaded)?);
        state = pass.act(cluster, &needs, action);
        cluster.take_decisions(&mut decisions);
        planned.extend(decisions.drain(..).map(|decision| {
            Planned {
                nodes: decision
                    .placement
                    .iter()
                    .map(|slice| nodes[slice.node.index()].clone())
                    .collect(),
                estimate_s: Some(cluster.job(decision.row).request.estimate_s),
                decision,
                why: why.clone(),
                outcome: String::new(),
            }
        }));
    }
    Ok(Some((planned, offered)))
}

/// Numbers of the leaves of all that may be chosen; none of what is no tree, and none where a tree leaves the cluster to its
/// fallback: what it would have said there tells nothing of drift.
fn leaves(pass: &Pass, cluster: &Cluster, loaded: &Loaded) -> Result<Option<Vec<u32>>, PolicyError> {
    let Some(tree) = loaded
        .tree
        .as_ref()
        .filter(|policy| !policy.tree().steps_aside(cluster))
    else {
        return Ok(None);
    };
    let observation = pass.observation().as_ref();
    let mut leaves = vec![0; pass.candidates().len()];
    tree.leaves(&observation, &mut leaves)?;
    let may = leaves.iter().zip(observation.mask).filter(|(_, may)| **may);
    Ok(Some(may.map(|(leaf, _)| *leaf).collect()))
}

/// The path of a tree or a selector to its choice.
fn why(pass: &Pass, cluster: &Cluster, loaded: &Loaded, action: usize) -> Result<String, PolicyError> {
    let point = DecisionPoint {
        cluster,
        candidates: pass.candidates(),
        observation: pass.observation().as_ref(),
    };
    Ok(loaded.explained(&point, action)?.unwrap_or_default())
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

/// Whether a decision is carried out by somebody: reservations are not.
#[must_use]
pub fn is_carried_out(planned: &Planned) -> bool {
    planned.decision.action != Action::Reserve
}
