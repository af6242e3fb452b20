//! What a pass, a deal or a ranking decides in a round, before it is carried out.

use pleach_scheduler::{Decision, DecisionPoint, PolicyError, TreePolicy};

use crate::dealing::Turn;
use crate::fleet::Fleet;
use crate::order::Order;
use crate::record::Planned;

/// What was decided.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    pub(crate) planned: Vec<Planned>,
    pub(crate) order: Option<Order>,
    /// Where all that was offered ended in a tree.
    pub(crate) offered: Vec<Vec<u32>>,
    /// What a dealer's deal hung on.
    pub(crate) turn: Option<Turn>,
}

/// A decision with the names of its nodes.
pub(crate) fn planned(fleet: &Fleet, decision: Decision, why: &str) -> Planned {
    let slices = decision.placement.iter();
    Planned {
        nodes: slices
            .map(|slice| fleet.nodes[slice.node.index()].clone())
            .collect(),
        estimate_s: Some(fleet.cluster.job(decision.row).request.estimate_s),
        decision,
        why: why.to_owned(),
        outcome: String::new(),
        refused_by: Vec::new(),
    }
}

/// Numbers of the leaves of all that may be chosen; none of what is no tree, and none where a tree leaves the cluster to its
/// fallback: what it would have said there tells nothing of drift.
pub(crate) fn leaves(
    point: &DecisionPoint<'_>,
    tree: Option<&TreePolicy>,
) -> Result<Option<Vec<u32>>, PolicyError> {
    let Some(tree) = tree.filter(|policy| policy.tree().decider(point.cluster).is_none()) else {
        return Ok(None);
    };
    let observation = &point.observation;
    let mut leaves = vec![0; point.candidates.len()];
    tree.leaves(observation, &mut leaves)?;
    let may = leaves.iter().zip(observation.mask).filter(|(_, may)| **may);
    Ok(Some(may.map(|(leaf, _)| *leaf).collect()))
}
