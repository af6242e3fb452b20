//! What a world tells once jobs have left: their outcomes, figures over them, and the accounts that were asked for.

use super::World;
use crate::attribution::Attribution;
use crate::metrics::{JobOutcome, Metrics};
use crate::occupancy::Occupancy;

impl World {
    /// Outcomes of the jobs that have left, in order of submission.
    pub fn outcomes(&self) -> impl Iterator<Item = &JobOutcome> {
        self.outcomes.iter().flatten()
    }

    /// Figures over the jobs that have left.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let jobs: Vec<JobOutcome> = self.outcomes().copied().collect();
        Metrics::of(&jobs, self.cluster.num_gpus())
    }

    /// Takes the utilisation series: (time s, held GPUs) at every change.
    pub(crate) fn take_utilisation(&mut self) -> Vec<(f64, f64)> {
        self.utilisation.take().unwrap_or_default()
    }

    /// The account of waiting times, where one was asked for.
    #[must_use]
    pub fn attribution(&self) -> Option<&Attribution> {
        self.attribution.as_deref()
    }

    /// Takes the account of how the cluster was filled, where one was asked for.
    pub fn take_occupancy(&mut self) -> Option<Occupancy> {
        self.occupancy.take().map(|account| *account)
    }
}
