//! What a pass found out and need not find out again: starts and fits of jobs that ask for the same, response ratios while time
//! stands still, and which jobs a reservation lets through.
//!
//! All of it is forgotten rather than mended: starts and fits with every enumeration, the ratios when a pass opens or time goes
//! on, the verdicts with every look at the queue. Only where a pass always sees the same cluster, as in a simulation, starts are
//! kept until something changes on their GPU types.

use std::ops::Range;

use crate::candidate::{Candidate, CandidateKind, CandidateSet};
use crate::cluster::{Cluster, Demand, Head, Kept, PlacementFacts, Row, ShapeId, Slice};
use crate::cluster_spec::Tasks;
use crate::ids::{ClassId, GpuTypeId, JobId, Time};
use crate::lens::{LensSet, ratio_heads};

/// What was worked out for one job and holds for all that ask for the same. Placements are ranges of the candidate
/// set, and shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) starts: Vec<(Ask, Range<usize>)>,
    /// When a gang of this size, cut so, is believed to fit on one of these types.
    pub(super) fits: Vec<((u64, u32, Tasks), Option<Fit>)>,
}

/// Starts of one cluster from pass to pass: of jobs that ask for the same, on types where no GPU was taken or given back since.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptStarts {
    /// `[class]`
    rows: Vec<Vec<StartsOf>>,
}

/// All starts of jobs that ask for the same, one for each template that differs.
#[derive(Clone, Debug)]
struct StartsOf {
    ask: Ask,
    /// Types on which they fit.
    types: u64,
    /// [`Cluster::num_place_changes`] of those types when this was worked out.
    num_changes: u64,
    starts: Vec<(PlacementFacts, Range<usize>)>,
    slices: Vec<Slice>,
}

impl KeptStarts {
    /// Offers the starts of a job as they were offered before; false where something has changed.
    pub(super) fn offer(
        &self,
        (ask, types, num_changes): (Ask, u64, u64),
        (job, heads): (JobId, LensSet),
        set: &mut CandidateSet,
    ) -> bool {
        let rows = self.rows.get(ask.class.index()).map_or(&[][..], Vec::as_slice);
        let is_same =
            |row: &&StartsOf| row.ask == ask && row.types == types && row.num_changes == num_changes;
        let Some(known) = rows.iter().find(is_same) else {
            return false;
        };
        let first = set.slices.len();
        set.slices.extend_from_slice(&known.slices);
        for (facts, placement) in &known.starts {
            let mut candidate = Candidate::new(CandidateKind::Start, Some(job));
            candidate.facts = Some(*facts);
            candidate.heads = heads;
            candidate.placement = first + placement.start..first + placement.end;
            set.rows.push(candidate);
        }
        true
    }

    /// Keeps what was worked out: the last candidates of a set, from a row on.
    pub(super) fn keep(
        &mut self,
        (ask, types, num_changes): (Ask, u64, u64),
        from: usize,
        set: &CandidateSet,
    ) {
        let class = ask.class.index();
        if self.rows.len() <= class {
            self.rows.resize_with(class + 1, Vec::new);
        }
        let rows = &mut self.rows[class];
        let place = rows.iter().position(|row| row.ask == ask).unwrap_or_else(|| {
            rows.push(StartsOf {
                ask,
                types,
                num_changes,
                starts: Vec::new(),
                slices: Vec::new(),
            });
            rows.len() - 1
        });
        let row = &mut rows[place];
        (row.types, row.num_changes) = (types, num_changes);
        row.starts.clear();
        row.slices.clear();
        for candidate in &set.rows[from..] {
            if let Some(facts) = candidate.facts {
                let first = row.slices.len();
                row.slices.extend_from_slice(set.placement(candidate));
                row.starts.push((facts, first..row.slices.len()));
            }
        }
    }
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
