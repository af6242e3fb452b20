//! Why a tree scores a candidate as it does, at the decision point of an environment.

use pleach_scheduler::policy::{DecisionPoint, choice_of};
use pleach_scheduler::{PolicyError, TreePolicy};

/// The reason in words for one candidate, or for what the tree itself chooses; as an error which candidates there are.
pub(crate) fn reason(
    tree: &TreePolicy,
    point: &DecisionPoint<'_>,
    scores: &[f32],
    choice: Option<usize>,
) -> Result<Result<String, String>, PolicyError> {
    let choice = choice.or_else(|| choice_of(tree, point, scores)).unwrap_or(0);
    let num_candidates = point.candidates.len();
    if choice >= num_candidates {
        let most = num_candidates - 1;
        return Ok(Err(format!("action = {choice}: allowed is 0 to {most}")));
    }
    Ok(Ok(tree.explain(point, choice)?.to_string()))
}
