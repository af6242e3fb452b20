//! Candidates: the admissible actions of one decision point, bounded in number whatever the cluster's size.

use crate::actions::About;
pub use crate::actions::CandidateKind;
use crate::cluster::{PlacementFacts, Shape, Slice};
use crate::ids::{GpuTypeId, JobId};
use crate::lens::LensSet;

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
    /// Rate of that job afterwards over its rate now; 1 without one. (0, 1]
    pub partner_rate_ratio: f64,
    /// What each GPU comes with where that is not what the job asked for.
    pub granted: Option<Shape>,
    /// The type on which GPUs would be held back, for reserve.
    pub reserved_type: Option<GpuTypeId>,
    /// Lenses under which the job is the first of the whole queue.
    pub heads: LensSet,
    /// Believed time until the gang is free, s; for reserve.
    pub wait_to_fit_s: f64,
    pub(crate) placement: std::ops::Range<usize>,
    pub(crate) victims: std::ops::Range<usize>,
    pub(crate) stopped: Stopped,
}

/// What the victims of a candidate leave behind together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stopped {
    /// GPUs that they hold.
    pub(crate) num_gpus: u32,
    /// Shortest believed rest among them, s; 0 without victims.
    pub(crate) remaining_s_min: f64,
}

impl Candidate {
    /// The job that it is about if that waits; none of candidates about a running job.
    #[must_use]
    #[inline]
    pub fn waiting_job(&self) -> Option<JobId> {
        self.job.filter(|_| self.kind.row().about == About::Waiting)
    }

    pub(crate) fn new(kind: CandidateKind, job: Option<JobId>) -> Candidate {
        Candidate {
            kind,
            job,
            facts: None,
            partner: None,
            partner_rate_ratio: 1.0,
            granted: None,
            reserved_type: None,
            heads: LensSet::NONE,
            wait_to_fit_s: 0.0,
            placement: 0..0,
            victims: 0..0,
            stopped: Stopped::default(),
        }
    }
}

/// What a candidate is worth beside what else its job could have: another GPU type, size, or share of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpportunityCost {
    /// Believed time until the gang fits on the type where the job is fastest, s; 0 if the candidate is on it.
    pub best_type_wait_s: f64,
    /// How much sooner the job is believed to end if it waits for the best of the *other* types, over the time for which
    /// the candidate would hold its GPUs; negative if later, 0 without another type. Not bounded.
    pub end_gain: f64,
    /// Believed time until the gang fits on that other type, s; 0 without one.
    pub end_gain_wait_s: f64,
    /// Speed of the class on the candidate's type over its mean over the cluster's types, over the same of the average class.
    pub type_advantage: f64,
    /// GPUs over what the job asked for.
    pub size_ratio: f64,
    /// Progress per GPU over that at the most efficient size; 1 unless elastic.
    pub gpu_efficiency: f64,
    /// CPU cores over the share of the node that is proportional to the GPUs.
    pub cores_ratio: f64,
    /// Rate with the candidate's CPU and memory over the rate with all that the class can use, (0, 1].
    pub demand_rate_ratio: f64,
}

impl OpportunityCost {
    /// Of jobs that can have nothing else.
    pub const PLAIN: OpportunityCost = OpportunityCost {
        best_type_wait_s: 0.0,
        end_gain: 0.0,
        end_gain_wait_s: 0.0,
        type_advantage: 1.0,
        size_ratio: 1.0,
        gpu_efficiency: 1.0,
        cores_ratio: 1.0,
        demand_rate_ratio: 1.0,
    };
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
    /// One for each row, or none at all where every row's is plain.
    pub(crate) opportunity_costs: Vec<OpportunityCost>,
}

/// Most candidates of one decision point, hold included.
pub const MAX_CANDIDATES: usize = 64;

impl CandidateSet {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.slices.clear();
        self.victims.clear();
        self.opportunity_costs.clear();
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
    pub(crate) fn only_hold(&self) -> bool {
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

    /// What a candidate is worth beside what else its job could have. Plain where the needs under which it was enumerated
    /// do not ask for features.
    #[must_use]
    pub fn opportunity_cost(&self, index: usize) -> OpportunityCost {
        self.opportunity_costs
            .get(index)
            .copied()
            .unwrap_or(OpportunityCost::PLAIN)
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

    /// The running jobs that a candidate stops: its victims, and its own job where that runs.
    pub fn stops<'a>(&'a self, candidate: &'a Candidate) -> impl Iterator<Item = JobId> + 'a {
        let is_running = candidate.kind.row().about == About::Running;
        let own = candidate.job.filter(|_| is_running);
        self.victims(candidate).iter().copied().chain(own)
    }
}
