//! A round of `Drive::Order`, which only orders the waiting jobs: how they are ranked, what would start now, and, where that is
//! allowed, which running jobs are stopped for it.

use pleach_scheduler::decision::Action;
use pleach_scheduler::{Decision, DecisionPoint, PolicyError};

use crate::decided::{Decided, leaves, planned};
use crate::fleet::Fleet;
use crate::order::Order;
use crate::policy::{Decider, Loaded, explained};
use crate::snapshot::Snapshot;

/// Ranks the waiting jobs of the tables; none if it was too late even for what would start now.
pub(crate) fn rank(
    fleet: &Fleet,
    loaded: &mut Loaded,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Option<Decided>, PolicyError> {
    let mut decided = Decided::default();
    let Loaded { decider, tree, .. } = loaded;
    let Decider::Order(ranking) = decider else {
        return Ok(Some(decided));
    };
    if fleet.cluster.num_pending() == 0 {
        decided.order = Some(Order::default());
        return Ok(Some(decided));
    }
    let tree = tree.as_ref();
    let mut offered = Vec::new();
    let mut explains = |point: &DecisionPoint<'_>, action: usize| {
        offered.extend(leaves(point, tree)?);
        Ok(explained(tree, point, action)?.unwrap_or_default())
    };
    let ranked = ranking
        .ranker
        .rank_until(&fleet.cluster, &mut explains, is_late)?;
    let Some(ranked) = ranked else {
        return Ok(None);
    };
    decided.order = Some(Order::of(&ranked, fleet));
    decided.offered = offered;
    let now = ranked.now.into_iter();
    decided.planned = now
        .map(|(decision, why)| planned(fleet, decision, &why))
        .collect();
    Ok(Some(decided))
}

/// Lets a dealer deal beside the order where its turn has come. Of the deal those stops stay whose GPUs go to a job that waits, and
/// the starts of these: what would only move has no place by name, and fills what is free in the order. The tables stay as they
/// were seen.
pub(crate) fn deal(
    snapshot: &Snapshot,
    fleet: &Fleet,
    loaded: &mut Loaded,
    decided: &mut Decided,
) -> Result<(), PolicyError> {
    let Some(dealing) = loaded.dealing_mut() else {
        return Ok(());
    };
    let turn = dealing.take_turn(snapshot, fleet);
    if turn.moves {
        let mut tables = fleet.cluster.clone();
        let dealt = dealing.deal(&mut tables, &turn)?;
        let goes_on = |of: &Decision, action: Action| {
            let others = dealt.iter().map(|(other, _)| other);
            let mut others = others.filter(|other| other.action == action && other.job != of.job);
            others.any(|other| is_beside(of, other))
        };
        let kept = dealt.iter().filter(|(decision, _)| match decision.action {
            Action::Preempt => goes_on(decision, Action::Start),
            Action::Start => goes_on(decision, Action::Preempt),
            Action::Reserve => false,
        });
        decided.planned = kept
            .map(|(decision, why)| planned(fleet, decision.clone(), why))
            .collect();
    }
    decided.turn = Some(turn);
    Ok(())
}

/// Whether two decisions are about one GPU.
fn is_beside(one: &Decision, other: &Decision) -> bool {
    let slices = || other.placement.iter();
    let mut own = one.placement.iter();
    own.any(|slice| slices().any(|other| other.node == slice.node && other.gpus & slice.gpus != 0))
}
