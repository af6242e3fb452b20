//! Candidates: the admissible actions of one decision point, bounded in number whatever the cluster's size.

use crate::cluster::{PlacementFacts, Slice};
use crate::ids::JobId;
use crate::lens::LensSet;

/// What a candidate does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CandidateKind {
    /// End the pass; nothing more happens until the next event.
    Hold,
    /// Start a pending job.
    Start,
    /// Hold GPUs back for a job that does not fit yet; the pass goes on with starts that do not delay it.
    Reserve,
    /// Stop running jobs and start a pending one in their place.
    Preempt,
}

/// One admissible action.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What it does.
    pub kind: CandidateKind,
    /// The pending job that it is about; none for hold.
    pub job: Option<JobId>,
    /// Worth of the placement, for start and preempt.
    pub facts: Option<PlacementFacts>,
    /// The running job beside which it would be put; its GPUs are the placement.
    pub partner: Option<JobId>,
    /// Lenses under which the job is the first of the whole queue.
    pub heads: LensSet,
    /// Believed time until the gang is free, s; for reserve.
    pub wait_to_fit_s: f64,
    pub(crate) placement: std::ops::Range<usize>,
    pub(crate) victims: std::ops::Range<usize>,
}

impl Candidate {
    pub(crate) fn new(kind: CandidateKind, job: Option<JobId>) -> Candidate {
        Candidate {
            kind,
            job,
            facts: None,
            partner: None,
            heads: LensSet::NONE,
            wait_to_fit_s: 0.0,
            placement: 0..0,
            victims: 0..0,
        }
    }
}

/// The candidates of one decision point. Index 0 is always *hold*.
#[derive(Clone, Debug, Default)]
pub struct CandidateSet {
    /// Holding is refused while no job runs and one could start: waiting could gain nothing that starting forbids, and
    /// a policy that always holds would stop the cluster for good.
    pub(crate) hold_refused: bool,
    pub(crate) rows: Vec<Candidate>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) victims: Vec<JobId>,
}

/// Most candidates of one decision point, hold included.
pub const MAX_CANDIDATES: usize = 64;

impl CandidateSet {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.slices.clear();
        self.victims.clear();
        self.rows.push(Candidate::new(CandidateKind::Hold, None));
        self.hold_refused = false;
    }

    /// Whether a candidate may be chosen. Enumeration offers only what can be carried out, so all may, but for holding
    /// on an idle cluster.
    #[must_use]
    pub fn is_admissible(&self, index: usize) -> bool {
        index < self.rows.len() && !(index == 0 && self.hold_refused)
    }

    /// Number of candidates, hold included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no candidate at all, which happens only before the first enumeration.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether holding is the only choice.
    #[must_use]
    pub fn only_hold(&self) -> bool {
        self.rows.len() <= 1
    }

    /// All candidates in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Candidate> {
        self.rows.iter()
    }

    /// One candidate.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Candidate> {
        self.rows.get(index)
    }

    /// The GPUs that a candidate would take.
    #[must_use]
    pub fn placement(&self, candidate: &Candidate) -> &[Slice] {
        &self.slices[candidate.placement.clone()]
    }

    /// The running jobs that a candidate would stop.
    #[must_use]
    pub fn victims(&self, candidate: &Candidate) -> &[JobId] {
        &self.victims[candidate.victims.clone()]
    }
}
