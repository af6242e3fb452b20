//! What an enumeration worked out for one job and need not work out again for others that ask for the same.

use std::ops::Range;

use super::preempt::Newcomer;
use crate::candidate::{CandidateSet, Stopped};
use crate::cluster::{Cluster, Demand, PlacementFacts, ShapeId};
use crate::ids::{ClassId, GpuTypeId, JobId, Time};

/// What was worked out for one job and holds for all that ask for the same. Placements and victims are ranges of the
/// candidate set, and shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) starts: Vec<(Ask, Range<usize>)>,
    /// When a gang of this size is believed to fit on one of these types.
    pub(super) fits: Vec<((u64, u32), Option<Fit>)>,
    pub(super) overs: Vec<((Ask, Newcomer), Option<Over>)>,
}

/// Believed time until a gang is free, s, and on which type.
pub(super) type Fit = (f64, GpuTypeId);

/// What decides where a job may go and how fast it is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ask {
    pub(super) class: ClassId,
    pub(super) num_gpus: u32,
    pub(super) types: u64,
    pub(super) shape: ShapeId,
    /// An elastic job's speed depends on its progress: it asks alone.
    pub(super) alone: Option<JobId>,
}

impl Ask {
    pub(super) fn of(cluster: &Cluster, job: JobId) -> Ask {
        let Demand {
            num_gpus,
            types,
            shape,
            ..
        } = cluster.demand(job);
        let class = cluster.job(job).request.class;
        Ask {
            class,
            num_gpus,
            types,
            shape,
            alone: cluster.class(class).elastic.is_some().then_some(job),
        }
    }
}

/// Running jobs that a gang would stop.
#[derive(Clone, Debug)]
pub(super) struct Over {
    pub(super) victims: Range<usize>,
    /// Believed end of the last job that was looked at.
    pub(super) last_end: Time,
    /// Worked out for the first job that may.
    place: Option<Place>,
}

/// Where a gang would go over its victims, and what that does to them.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) slices: Range<usize>,
    pub(super) facts: PlacementFacts,
    pub(super) stopped: Stopped,
    /// The newcomer must end before this for the restart of every victim to be paid for.
    pub(super) end_max: Time,
}

impl Known {
    pub(super) fn forget(&mut self) {
        self.starts.clear();
        self.fits.clear();
        self.overs.clear();
    }
}

impl Over {
    pub(super) fn new(victims: Range<usize>, last_end: Time) -> Over {
        Over {
            victims,
            last_end,
            place: None,
        }
    }

    /// Where the gang would go; none if what is free with the victims' GPUs is too little.
    pub(super) fn place(
        &mut self,
        cluster: &Cluster,
        job: JobId,
        kind: GpuTypeId,
        set: &mut CandidateSet,
    ) -> Option<&Place> {
        if self.place.is_none() {
            let CandidateSet { slices, victims, .. } = set;
            let start = slices.len();
            let num_gpus = cluster.job(job).request.num_gpus;
            let placed = cluster.place_over(kind, num_gpus, &victims[self.victims.clone()], slices);
            let loose = cluster.capabilities().consolidated && !cluster.is_consolidated(&slices[start..]);
            if placed && !loose {
                self.place = Some(Place::over(
                    cluster,
                    &victims[self.victims.clone()],
                    start..slices.len(),
                    cluster.job_facts(job, &slices[start..]),
                ));
            } else {
                slices.truncate(start);
            }
        }
        self.place.as_ref()
    }
}

impl Place {
    fn over(cluster: &Cluster, victims: &[JobId], slices: Range<usize>, facts: PlacementFacts) -> Place {
        let (mut num_gpus, mut remaining_s_min, mut end_max) = (0, f64::INFINITY, Time::MAX);
        for victim in victims {
            let job = cluster.job(*victim);
            num_gpus += job.num_held;
            remaining_s_min = f64::min(remaining_s_min, job.remaining_s_at(cluster.now()));
            let cost = Time::from_secs_f64(cluster.restart_cost_s(*victim));
            end_max = end_max.min(job.expected_finish - cost);
        }
        Place {
            slices,
            facts,
            stopped: Stopped {
                num_gpus,
                remaining_s_min: if victims.is_empty() { 0.0 } else { remaining_s_min },
            },
            end_max,
        }
    }
}
