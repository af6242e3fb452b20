//! Shortest job first, each at the size at which it would end soonest.
//!
//! # Source
//! Moldable jobs: the scheduler (there an agent of the user) picks the size with the earliest believed end when a job starts,
//! and keeps it (Cirne and Berman, JPDC'02). Deviations: sizes are half, all and twice what was asked for; of these only
//! such on which a GPU does at least half of what it does at the job's most efficient size (*assumed*), so that an idle
//! cluster is not given away for nothing; only what fits now is compared, and of equal ends the smaller size is taken.

use super::heuristic::Heuristic;
use super::rank::{rank_rows, start_alone};
use crate::actions::{ActionKind, ActionSet};
use crate::lens::{Lens, LensSet, lens_key};
use crate::pass::believed_end;
use crate::policy::Needs;

/// Least progress per GPU over that at the most efficient size. *Assumed.*
const EFFICIENCY_MIN: f64 = 0.5;

/// Shortest jobs of which half may fit although the whole does not.
const HEADS: usize = 4;

/// Shortest job first; elastic jobs start at the size at which they end soonest among the efficient ones.
pub(super) fn sjf_moldable(name: &'static str) -> Heuristic {
    let needs = Needs {
        heads: HEADS,
        actions: ActionSet::of(ActionKind::Sizes),
        ..Needs::first_fitting(LensSet::of(Lens::Shortest))
    };
    Heuristic::new(name, needs, |point, scores| {
        let cluster = point.cluster;
        rank_rows(point, scores, |index, candidate, job| {
            let facts = start_alone(candidate)?;
            let efficiency = point.candidates.opportunity_cost(index).gpu_efficiency;
            // Where no size is efficient, the most efficient one.
            let within = if efficiency >= EFFICIENCY_MIN {
                (false, believed_end(cluster, job, facts.rate).0, facts.num_gpus)
            } else {
                (true, -(efficiency * 1e9) as i64, facts.num_gpus)
            };
            Some((lens_key(cluster, Lens::Shortest, job), job, within))
        });
    })
}
