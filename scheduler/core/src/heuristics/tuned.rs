//! Shortest job first, each with the CPU and memory that it can use.
//!
//! # Source
//! Synergy (OSDI'22): the optimistic profile says the least CPU and memory with which a job runs fastest; GREEDY gives the first
//! job of the queue that share where it can be had, and TUNE what was asked for where it cannot. Deviations: a policy cannot take
//! back what running jobs have, so nothing is tuned afterwards, and a job that fits with neither waits.

use super::heuristic::Heuristic;
use super::rank::{rank_rows, start_alone};
use crate::actions::{ActionKind, ActionSet};
use crate::lens::{Lens, LensSet, lens_key};
use crate::policy::Needs;

/// Shortest jobs that may fit with less than they asked for.
const HEADS: usize = 4;

/// Shortest job first; of its starts the fastest, and of equally fast ones that with the share that saturates it.
pub(super) fn sjf_tuned(name: &'static str) -> Heuristic {
    let needs = Needs {
        heads: HEADS,
        actions: ActionSet::of(ActionKind::GrantCores),
        ..Needs::first_fitting(LensSet::of(Lens::Shortest))
    };
    Heuristic::new(name, needs, |point, scores| {
        let cluster = point.cluster;
        rank_rows(point, scores, |_, candidate, job| {
            let facts = start_alone(candidate)?;
            let fastest_first = -(facts.rate * 1e9) as i64;
            let rest = lens_key(cluster, Lens::Shortest, job);
            Some((rest, job, fastest_first, candidate.granted.is_none()))
        });
    })
}
