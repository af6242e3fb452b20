//! From an exact order of the candidates to scores.
//!
//! Job ids and times do not fit into an `f32`. The order is therefore worked out in integers, and only the rank of a
//! candidate within the set becomes its score; 64 ranks are exact.

use smallvec::SmallVec;

use crate::candidate::{Candidate, CandidateKind, MAX_CANDIDATES};
use crate::cluster::{Cluster, PlacementFacts};
use crate::ids::JobId;
use crate::lens::{Lens, lens_key};
use crate::policy::DecisionPoint;

/// Score of hold: below every candidate that a heuristic wants, above every one that it does not.
const HOLD: f32 = 0.0;
const UNWANTED: f32 = -1.0;

/// Place in a heuristic's order, smallest first: (tier, key within the tier, job).
pub(super) type Key = (u8, i64, JobId);

/// Scores the candidates that have a key by their rank, the best one 1; then hold; then the rest. Candidates of equal
/// key keep their order in the set, which lists the preferred placement first.
pub(super) fn rank(
    point: &DecisionPoint<'_>,
    scores: &mut [f32],
    mut key: impl FnMut(&Candidate, JobId) -> Option<Key>,
) {
    rank_rows(point, scores, |_, candidate, job| key(candidate, job));
}

/// As [`rank`], with the index of the candidate and keys of any kind.
pub(super) fn rank_rows<K: Ord + Copy>(
    point: &DecisionPoint<'_>,
    scores: &mut [f32],
    mut key: impl FnMut(usize, &Candidate, JobId) -> Option<K>,
) {
    let mut wanted: SmallVec<[(K, usize); MAX_CANDIDATES]> = SmallVec::new();
    scores.fill(UNWANTED);
    if let Some(hold) = scores.first_mut() {
        *hold = HOLD;
    }
    for (index, candidate) in point.candidates.iter().enumerate() {
        if let Some(key) = candidate.job.and_then(|job| key(index, candidate, job)) {
            wanted.push((key, index));
        }
    }
    wanted.sort_unstable();
    for (place, (_, index)) in wanted.iter().enumerate() {
        scores[*index] = 1.0 - place as f32 / MAX_CANDIDATES as f32;
    }
}

/// The key of a pending job under a lens.
pub(super) fn under(cluster: &Cluster, lens: Lens, tier: u8, job: JobId) -> Option<Key> {
    Some((tier, lens_key(cluster, lens, job), job))
}

/// Where a candidate starts its job on GPUs of its own; none for any other action.
pub(super) fn start_alone(candidate: &Candidate) -> Option<PlacementFacts> {
    let is_alone = candidate.kind == CandidateKind::Start && candidate.partner.is_none();
    candidate.facts.filter(|_| is_alone)
}
