//! The head of one order or nobody: head-of-line blocking.

use super::rank::{rank, under};
use crate::candidate::CandidateKind;
use crate::error::PolicyError;
use crate::lens::{Lens, LensSet};
use crate::policy::{DecisionPoint, Needs, Policy};

/// Only the first job of an order may start; while it does not fit, everyone behind it waits. Where quotas bind, a first
/// job without room holds up its own tenant only, as if each tenant had a queue and a cluster of its own.
#[derive(Clone, Copy, Debug)]
pub struct HeadOfLine {
    name: &'static str,
    lens: Lens,
}

impl HeadOfLine {
    /// First in, first out.
    ///
    /// # Source
    /// The textbook baseline of the Philly, Tiresias, Gavel and Helios studies (YARN's capacity scheduler within one queue).
    #[must_use]
    pub fn fifo() -> HeadOfLine {
        HeadOfLine {
            name: "fifo",
            lens: Lens::Arrival,
        }
    }

    /// Shortest job first, waiting for the shortest where it does not fit.
    ///
    /// # Source
    /// The non-preemptive SJF of the Helios (SC'21) and Lucid (ASPLOS'23) simulators.
    #[must_use]
    pub fn sjf() -> HeadOfLine {
        HeadOfLine {
            name: "sjf-strict",
            lens: Lens::Shortest,
        }
    }
}

impl Policy for HeadOfLine {
    fn name(&self) -> &str {
        self.name
    }

    fn needs(&self) -> Needs {
        Needs {
            heads: 1,
            tenants_in_order: true,
            fitting: 0,
            ..Needs::first_fitting(LensSet::of(self.lens))
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        rank(&point, scores, |candidate, job| {
            let is_head = candidate.heads.contains(self.lens);
            (candidate.kind == CandidateKind::Start && is_head)
                .then(|| under(point.cluster, self.lens, 0, job))
                .flatten()
        });
        Ok(())
    }
}
