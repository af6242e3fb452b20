//! The first job that fits under one order: five heuristics that differ only in the order.
//!
//! None of them leaves a job behind that fits, and none of them holds GPUs back, so large gangs can starve.

use super::rank::{rank, under};
use crate::candidate::CandidateKind;
use crate::error::PolicyError;
use crate::lens::{Lens, LensSet};
use crate::policy::{DecisionPoint, Needs, Policy};

/// Starts the first job of an order that fits, on the tightest placement of its fastest free type.
#[derive(Clone, Copy, Debug)]
pub struct Greedy {
    name: &'static str,
    lens: Lens,
}

impl Greedy {
    /// Arrival order, passing over what does not fit: first-fit queueing, the default of most gang schedulers.
    #[must_use]
    pub fn fifo_skip() -> Greedy {
        Greedy::new("fifo-skip", Lens::Arrival)
    }

    /// Shortest believed remaining time first.
    ///
    /// # Source
    /// Shortest job first, without preemption (SJF-FFS of the WiseShare study: shortest first, first fit). Equal
    /// remaining times go to the older job.
    #[must_use]
    pub fn sjf() -> Greedy {
        Greedy::new("sjf", Lens::Shortest)
    }

    /// Smallest believed remaining GPU-time first.
    ///
    /// # Source
    /// Shortest remaining *service* first (SRSF; Tiresias and Muri use it as a baseline), here without preemption.
    #[must_use]
    pub fn gpu_time() -> Greedy {
        Greedy::new("gpu-time", Lens::SmallestGpuTime)
    }

    /// The tenant that holds least of its quota first, arrival within a tenant.
    ///
    /// # Source
    /// Weighted max-min fairness over GPUs held now, as a capacity scheduler's queue order. Deviation from Slurm's fair
    /// share: usage is instantaneous, not decayed over days.
    #[must_use]
    pub fn fair_share() -> Greedy {
        Greedy::new("fair-share", Lens::TenantDeficit)
    }

    /// Largest gang first, each on the fullest node that holds it: best-fit decreasing.
    #[must_use]
    pub fn packing() -> Greedy {
        Greedy::new("packing", Lens::LargestGang)
    }

    fn new(name: &'static str, lens: Lens) -> Greedy {
        Greedy { name, lens }
    }
}

impl Policy for Greedy {
    fn name(&self) -> &str {
        self.name
    }

    fn needs(&self) -> Needs {
        Needs::first_fitting(LensSet::of(self.lens))
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        rank(&point, scores, |candidate, job| match candidate.kind {
            CandidateKind::Start => under(point.cluster, self.lens, 0, job),
            _ => None,
        });
        Ok(())
    }
}
