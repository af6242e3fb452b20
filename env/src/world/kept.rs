//! What gangs keep that have lost a node ([`super::kept_places`]).

use std::collections::BTreeMap;

use pleach_scheduler::cluster::Placement;
use pleach_scheduler::{GpuTypeId, JobId, Time};

/// The places that are kept, by gang.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptPlaces {
    /// For how long each; zero: none are.
    pub(super) keep: Time,
    pub(super) gangs: BTreeMap<JobId, Kept>,
}

/// What one gang keeps.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) slices: Placement,
    pub(super) gpu_type: GpuTypeId,
    pub(super) until: Time,
}

impl KeptPlaces {
    /// Places are kept for so long.
    pub(super) fn new(keep_s: f64) -> KeptPlaces {
        KeptPlaces {
            keep: Time::from_secs_f64(keep_s),
            gangs: BTreeMap::new(),
        }
    }

    /// When the first gang gives its places up.
    pub(super) fn next_end(&self) -> Option<Time> {
        self.gangs.values().map(|kept| kept.until).min()
    }
}
