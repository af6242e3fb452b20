//! Shortest believed *end* first, over jobs and GPU types.
//!
//! # Source
//! Min-min: of all jobs, each on the machine where it would complete first, the one that completes first (Maheswaran et al.,
//! HCW'99; with minimum completion time, MCT, for a single job). A job that would complete sooner on a type that is busy
//! now waits for it. Deviations: the type of a start is the fastest that is free; a wait is believed from the running jobs'
//! ends alone, and GPUs are not held back meanwhile, so a shorter job may take them.

use super::heuristic::Heuristic;
use super::rank::{rank_rows, start_alone};
use crate::actions::{ActionKind, ActionSet};
use crate::lens::{Lens, LensSet};
use crate::pass::believed_end;
use crate::policy::Needs;

/// Jobs that fit now, shortest first, that are looked at: those that wait for another type must not hide all others.
const FITTING: usize = 16;

/// Starts the job that ends first, unless it would end sooner by waiting for another type.
pub(super) fn sjf_best_type(name: &'static str) -> Heuristic {
    let needs = Needs {
        fitting: FITTING,
        actions: ActionSet::of(ActionKind::WaitForType),
        ..Needs::first_fitting(LensSet::of(Lens::Shortest))
    };
    Heuristic::new(name, needs, |point, scores| {
        rank_rows(point, scores, |index, candidate, job| {
            let facts = start_alone(candidate)?;
            let other = point.candidates.opportunity_cost(index);
            let waits = other.end_gain > 0.0 && other.end_gain_wait_s > 0.0;
            (!waits).then(|| (believed_end(point.cluster, job, facts.rate), job))
        });
    })
}
