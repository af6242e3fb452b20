//! A round where no more than the order of the waiting jobs is told: who is ranked where, and what would start now.

use pleach_scheduler::{DecisionPoint, PolicyError};

use crate::decided::{Decided, leaves, planned};
use crate::fleet::Fleet;
use crate::order::Order;
use crate::policy::{Decider, Loaded, explained};

/// Ranks the waiting jobs of the tables; none if it was too late even for what would start now.
pub(crate) fn rank(
    fleet: &Fleet,
    loaded: &mut Loaded,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Option<Decided>, PolicyError> {
    let mut decided = Decided::default();
    let Loaded { decider, tree, .. } = loaded;
    let Decider::Order(ranker) = decider else {
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
    let Some(ranked) = ranker.rank_until(&fleet.cluster, &mut explains, is_late)? else {
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
