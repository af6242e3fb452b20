//! First in, first out, with head-of-line blocking.

use super::rank::{rank, under};
use crate::candidate::CandidateKind;
use crate::error::PolicyError;
use crate::lens::{Lens, LensSet};
use crate::policy::{DecisionPoint, Needs, Policy};

/// Only the oldest job may start; while it does not fit, everyone waits.
///
/// # Source
/// The textbook baseline of the Philly, Tiresias and Gavel studies (YARN's capacity scheduler within one queue).
/// Deviation: a job whose tenant has used up its quota does not block the jobs of other tenants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Policy for Fifo {
    fn name(&self) -> &str {
        "fifo"
    }

    fn needs(&self) -> Needs {
        Needs {
            heads: 1,
            fitting: 0,
            ..Needs::first_fitting(LensSet::of(Lens::Arrival))
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        rank(&point, scores, |candidate, job| {
            let is_head = candidate.heads.contains(Lens::Arrival);
            (candidate.kind == CandidateKind::Start && is_head)
                .then(|| under(point.cluster, Lens::Arrival, 0, job))
                .flatten()
        });
        Ok(())
    }
}
