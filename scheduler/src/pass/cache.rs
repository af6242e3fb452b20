//! What a pass found out and need not find out again: starts and fits of jobs that ask for the same, response ratios while
//! time stands still, and whom a reservation lets through.
//!
//! All of it is forgotten rather than mended: starts and fits with every enumeration, the ratios when a pass opens or time goes
//! on, the verdicts with every look at the queue.

use std::ops::Range;

use crate::cluster::{Cluster, Demand, Head, Kept, Row, ShapeId};
use crate::cluster_spec::Tasks;
use crate::ids::{ClassId, GpuTypeId, JobId, Time};
use crate::lens::ratio_heads;

/// What was worked out for one job and holds for all that ask for the same. Placements are ranges of the candidate
/// set, and shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) starts: Vec<(Ask, Range<usize>)>,
    /// When a gang of this size, cut so, is believed to fit on one of these types.
    pub(super) fits: Vec<((u64, u32, Tasks), Option<Fit>)>,
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

impl Known {
    pub(super) fn forget(&mut self) {
        self.starts.clear();
        self.fits.clear();
    }
}

/// Whether a job may go ahead of a reserved one, as far as it was asked in this look. `[job]`
#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    rows: Vec<(u32, bool)>,
    look: u32,
}

impl Verdicts {
    pub(super) fn forget(&mut self, num_jobs: usize) {
        if self.look == u32::MAX {
            self.rows.clear();
            self.look = 0;
        }
        self.look += 1;
        self.rows.resize(num_jobs.max(self.rows.len()), (0, false));
    }

    #[inline]
    pub(super) fn of(&mut self, job: JobId, find_out: impl FnOnce() -> bool) -> bool {
        let row = &mut self.rows[job.index()];
        if row.0 != self.look {
            *row = (self.look, find_out());
        }
        row.1
    }
}

/// The oldest and the shortest job of each demand with their response ratios, which stay while time stands still.
#[derive(Clone, Debug, Default)]
pub(super) struct Ratios {
    /// `[row of the demand's group]`
    rows: Vec<Option<RatioHeads>>,
    now: Time,
}

#[derive(Clone, Copy, Debug)]
struct RatioHeads {
    oldest: JobId,
    shortest: Row,
    /// The first `num` of them.
    rows: [Row; 2],
    num: usize,
}

impl Ratios {
    pub(super) fn forget(&mut self) {
        self.rows.fill(None);
    }

    pub(super) fn at(&mut self, now: Time, num_rows: usize) {
        if self.now != now {
            self.forget();
            self.now = now;
        }
        self.rows.resize(num_rows.max(self.rows.len()), None);
    }

    #[inline]
    pub(super) fn of(&mut self, cluster: &Cluster, head: &Head) -> &[Row] {
        let known = &mut self.rows[head.row as usize];
        let ((_, oldest), shortest) = (head.first(Kept::Arrival), head.first(Kept::Remaining));
        let same = |known: &RatioHeads| known.oldest == oldest && known.shortest == shortest;
        if !known.as_ref().is_some_and(same) {
            let [first, second] = ratio_heads(cluster, head);
            let first = first.unwrap_or((0, oldest));
            *known = Some(RatioHeads {
                oldest,
                shortest,
                rows: [first, second.unwrap_or(first)],
                num: 1 + usize::from(second.is_some()),
            });
        }
        known.as_ref().map_or(&[], |known| &known.rows[..known.num])
    }
}
