//! Shortest job first, each at the size at which it would end soonest.
//!
//! # Source
//! Moldable jobs: the scheduler (there an agent of the user) picks the size with the earliest believed end when a job starts,
//! and keeps it (Cirne and Berman, JPDC'02). Deviations: sizes are half, all and twice what was asked for; of these only
//! such on which a GPU does at least half of what it does at the job's most efficient size (*assumed*), so that an idle
//! cluster is not given away for nothing; only what fits now is compared, and of equal ends the smaller size is taken.

use super::rank::rank_rows;
use crate::actions::{ActionKind, ActionSet};
use crate::candidate::CandidateKind;
use crate::cluster::Template;
use crate::error::PolicyError;
use crate::lens::{Lens, LensSet, lens_key};
use crate::pass::believed_end;
use crate::policy::{DecisionPoint, Needs, Policy};

/// Shortest job first; elastic jobs start at the size at which they end soonest among the efficient ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct SjfMoldable;

/// Least progress per GPU over that at the most efficient size. *Assumed.*
const EFFICIENCY_MIN: f64 = 0.5;

/// Shortest jobs of which half may fit although the whole does not.
const HEADS: usize = 4;

impl Policy for SjfMoldable {
    fn name(&self) -> &str {
        "sjf-moldable"
    }

    fn needs(&self) -> Needs {
        Needs {
            heads: HEADS,
            templates: &[Template::Fastest],
            actions: ActionSet::of(ActionKind::Sizes),
            ..Needs::first_fitting(LensSet::of(Lens::Shortest))
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let cluster = point.cluster;
        rank_rows(&point, scores, |index, candidate, job| {
            let facts = candidate
                .facts
                .filter(|_| candidate.kind == CandidateKind::Start && candidate.partner.is_none())?;
            let efficiency = point.candidates.opportunity_cost(index).gpu_efficiency;
            // Where no size is efficient, the most efficient one.
            let within = if efficiency >= EFFICIENCY_MIN {
                (false, believed_end(cluster, job, facts.rate).0, facts.num_gpus)
            } else {
                (true, -(efficiency * 1e9) as i64, facts.num_gpus)
            };
            Some((lens_key(cluster, Lens::Shortest, job), job, within))
        });
        Ok(())
    }
}
