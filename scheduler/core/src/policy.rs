//! What a policy is: something that scores candidates. Heuristics, trees and networks all are.

use serde::{Deserialize, Serialize};

use crate::actions::{ActionKind, ActionSet};
use crate::candidate::{Candidate, CandidateKind, CandidateSet, MAX_CANDIDATES};
use crate::cluster::{Cluster, Template};
use crate::error::PolicyError;
use crate::features::ColumnSet;
use crate::features::decision::COSTS;
use crate::guards::Guards;
use crate::ids::Time;
use crate::key_weight::{KeyWeight, weighted_sum_of_row};
use crate::lens::LensSet;
use crate::observation::ObservationRef;
use crate::problem::Problem;
use crate::unopposed::{InPlaceOf, Unopposed};

/// What a policy sees: the same facts twice, typed for heuristics and as numbers for networks and trees.
#[derive(Clone, Copy, Debug)]
pub struct DecisionPoint<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// What may be done; index 0 is hold.
    pub candidates: &'a CandidateSet,
    /// The features, if the policy asked for them.
    pub observation: ObservationRef<'a>,
}

/// Which candidates a policy wants to choose among, so that a simple rule does not pay for a full enumeration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    /// Orders to look under.
    pub lenses: LensSet,
    /// First jobs of each order, whether they fit or not.
    pub heads: usize,
    /// Where quotas bind, a tenant whose first job of an order has no room has no heads under that order: no job of its
    /// own overtakes the first.
    pub tenants_in_order: bool,
    /// First jobs of each order that fit now.
    pub fitting: usize,
    /// Placements to try for each job that fits.
    pub templates: &'static [Template],
    /// What to offer besides starts. Offered is only what the cluster can do, too.
    pub actions: ActionSet,
    /// Fill the features.
    pub observation: bool,
    /// Which of them, where they are filled: what else the observation holds means nothing. A policy that asks for some reads
    /// nothing of what else a job could have beside them.
    pub columns: ColumnSet,
    /// Decide at least this often even without an event; for orders that change while nothing happens.
    pub tick: Option<Time>,
}

impl Needs {
    /// Whether it reads what else a job could have, [`OpportunityCost`](crate::candidate::OpportunityCost).
    pub(crate) fn opportunity_costs(&self) -> bool {
        const READERS: ActionSet = ActionSet::of(ActionKind::Sizes)
            .with(ActionKind::GrantCores)
            .with(ActionKind::WaitForType);
        if self.columns != ColumnSet::ALL {
            return self.observation && self.columns.meets(COSTS);
        }
        self.observation || !self.actions.intersection(READERS).is_empty()
    }

    /// What a learned policy chooses among unless its configuration adds other sizes, cores or types.
    #[must_use]
    pub const fn full() -> Needs {
        Needs {
            lenses: LensSet::ALL,
            heads: 2,
            tenants_in_order: false,
            fitting: 3,
            templates: &[Template::Fastest, Template::BestValue, Template::Fragments],
            actions: ActionSet::of(ActionKind::Reserve).with(ActionKind::Preempt),
            observation: true,
            columns: ColumnSet::ALL,
            tick: None,
        }
    }

    /// The first job that fits under one order, tightest placement on the fastest free type.
    #[must_use]
    pub(crate) const fn first_fitting(lenses: LensSet) -> Needs {
        Needs {
            lenses,
            heads: 0,
            tenants_in_order: false,
            fitting: 1,
            templates: &[Template::Fastest],
            actions: ActionSet::NONE,
            observation: false,
            columns: ColumnSet::ALL,
            tick: None,
        }
    }
}

/// Which candidates a learned policy chooses among. Written next to every artefact, because a network or a tree is only right
/// about the sets that it was trained on; in files the older kinds of actions are keys of their own, `true` or `false`, the
/// others a list of names, `actions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenCandidates", into = "WrittenCandidates")]
pub struct CandidateConfig {
    /// First jobs of each order, whether they fit or not. 0 to 16
    pub heads: usize,
    /// First jobs of each order that fit now. 0 to 16
    pub fitting: usize,
    /// Offer all placement templates; otherwise only the tightest on the fastest type.
    pub templates: bool,
    /// What to offer besides starts, where the cluster can do it.
    pub actions: ActionSet,
}

/// As files have it.
#[derive(Serialize, Deserialize)]
#[serde(rename = "CandidateConfig", default, deny_unknown_fields)]
struct WrittenCandidates {
    heads: usize,
    fitting: usize,
    templates: bool,
    reserve: bool,
    preempt: bool,
    share: bool,
    sizes: bool,
    cores: bool,
    wait_for_type: bool,
    #[serde(skip_serializing_if = "ActionSet::is_empty")]
    actions: ActionSet,
}

/// The kinds that are keys of their own.
const KEYS: ActionSet = ActionSet::of(ActionKind::Reserve)
    .with(ActionKind::Preempt)
    .with(ActionKind::Share)
    .with(ActionKind::Sizes)
    .with(ActionKind::GrantCores)
    .with(ActionKind::WaitForType);

impl From<CandidateConfig> for WrittenCandidates {
    fn from(config: CandidateConfig) -> WrittenCandidates {
        let has = |kind| config.actions.contains(kind);
        WrittenCandidates {
            heads: config.heads,
            fitting: config.fitting,
            templates: config.templates,
            reserve: has(ActionKind::Reserve),
            preempt: has(ActionKind::Preempt),
            share: has(ActionKind::Share),
            sizes: has(ActionKind::Sizes),
            cores: has(ActionKind::GrantCores),
            wait_for_type: has(ActionKind::WaitForType),
            actions: config.actions.intersection(ActionSet::OFFERED).difference(KEYS),
        }
    }
}

impl TryFrom<WrittenCandidates> for CandidateConfig {
    type Error = String;

    fn try_from(written: WrittenCandidates) -> Result<CandidateConfig, String> {
        let keys = ActionSet::where_true([
            (ActionKind::Reserve, written.reserve),
            (ActionKind::Preempt, written.preempt),
            (ActionKind::Share, written.share),
            (ActionKind::Sizes, written.sizes),
            (ActionKind::GrantCores, written.cores),
            (ActionKind::WaitForType, written.wait_for_type),
        ]);
        Ok(CandidateConfig {
            heads: written.heads,
            fitting: written.fitting,
            templates: written.templates,
            actions: written.actions.within("actions", ActionSet::OFFERED)?.union(keys),
        })
    }
}

impl Default for WrittenCandidates {
    fn default() -> WrittenCandidates {
        CandidateConfig::default().into()
    }
}

impl Default for CandidateConfig {
    fn default() -> CandidateConfig {
        CandidateConfig {
            heads: 2,
            fitting: 3,
            templates: true,
            actions: Needs::full().actions,
        }
    }
}

impl CandidateConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A number of jobs beyond 16, or no job at all.
    pub fn validate(&self) -> Result<(), Problem> {
        for (key, value) in [("heads", self.heads), ("fitting", self.fitting)] {
            Problem::refuse_if(
                value > 16 || self.heads + self.fitting == 0,
                format_args!("candidates.{key}"),
                value,
                "0 to 16, not both zero",
                "the defaults are heads = 2 and fitting = 3",
            )?;
        }
        Ok(())
    }

    /// The same as needs of a policy that reads features.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let full = Needs::full();
        Needs {
            heads: self.heads,
            fitting: self.fitting,
            templates: if self.templates {
                full.templates
            } else {
                &[Template::Fastest]
            },
            actions: self.actions,
            ..full
        }
    }
}

/// What decides beside the scores, in one piece, so that a wrapper of a policy hands on all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChoiceRule<'a> {
    /// Weights of features whose least sum comes first among candidates of equal score; none for what has no such order.
    pub key_weights: &'a [KeyWeight],
    /// The order among equal sums.
    pub tie_key: TieKey,
    /// What may not be done, whatever the scores say.
    pub guards: Guards,
    /// Where *hold* would be chosen, or a start of a job where it runs slower than it could, an unopposed start is made instead
    /// if there is one: on GPUs that no other job wants (`unopposed.rs`).
    pub unopposed_starts: bool,
}

impl ChoiceRule<'_> {
    /// The lowest index among equal scores, and no guards.
    pub const PLAIN: ChoiceRule<'static> = ChoiceRule {
        key_weights: &[],
        tie_key: TieKey::Index,
        guards: Guards::NONE,
        unopposed_starts: false,
    };
}

/// A scheduling policy.
pub trait Policy: Send {
    /// Name for tables and files.
    fn name(&self) -> &str;

    /// The candidates that it wants.
    fn needs(&self) -> Needs {
        Needs::full()
    }

    /// What decides beside the scores. A policy with key weights asks for the observation.
    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule::PLAIN
    }

    /// Writes one finite score per candidate; larger is better.
    ///
    /// # Errors
    /// Where the observation does not have the shape that the policy was made for.
    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError>;

    /// Id of the tree's leaf that scores a candidate, for the record of the decision; none for what is no tree. Asked only of a
    /// point that was scored.
    fn leaf(&self, _point: DecisionPoint<'_>, _choice: usize) -> Option<u32> {
        None
    }

    /// Why a candidate has its score, a line for each part, for the record of the decision and for people; none of what cannot say.
    /// Asked only of a point that was scored.
    fn reason(&self, _point: DecisionPoint<'_>, _choice: usize) -> Option<String> {
        None
    }
}

impl Policy for Box<dyn Policy> {
    fn name(&self) -> &str {
        self.as_ref().name()
    }
    fn needs(&self) -> Needs {
        self.as_ref().needs()
    }
    fn choice_rule(&self) -> ChoiceRule<'_> {
        self.as_ref().choice_rule()
    }
    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.as_mut().score(point, scores)
    }
    fn leaf(&self, point: DecisionPoint<'_>, choice: usize) -> Option<u32> {
        self.as_ref().leaf(point, choice)
    }
    fn reason(&self, point: DecisionPoint<'_>, choice: usize) -> Option<String> {
        self.as_ref().reason(point, choice)
    }
}

/// Declared order among candidates of equal score; the smallest key wins, then the lowest index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieKey {
    /// None: the lowest index.
    Index,
    /// First submitted.
    Arrival,
    /// Shortest believed remaining time.
    ShortestEstimate,
    /// Smallest believed remaining GPU-time.
    SmallestGpuTime,
}

impl TieKey {
    /// All keys.
    pub const ALL: [TieKey; 4] = [
        TieKey::Index,
        TieKey::Arrival,
        TieKey::ShortestEstimate,
        TieKey::SmallestGpuTime,
    ];

    /// The key of a candidate. Hold has none, so it loses every tie.
    #[must_use]
    pub fn of(self, cluster: &Cluster, candidates: &CandidateSet, index: usize) -> f64 {
        let Some(id) = candidates.get(index).and_then(|candidate| candidate.job) else {
            return f64::INFINITY;
        };
        let job = cluster.job(id);
        match self {
            TieKey::Index => 0.0,
            TieKey::Arrival => f64::from(id.0),
            TieKey::ShortestEstimate => job.remaining_s_at(cluster.now()),
            TieKey::SmallestGpuTime => job.remaining_s_at(cluster.now()) * f64::from(job.request.num_gpus),
        }
    }
}

/// The only tie-break of the house: highest score, then smallest key, then lowest index. None if all are masked.
pub fn choose<K: PartialOrd>(scores: &[f32], mask: &[bool], key: impl Fn(usize) -> K) -> Option<usize> {
    let mut best: Option<usize> = None;
    for index in 0..scores.len().min(mask.len()) {
        if !mask[index] {
            continue;
        }
        let better = best.is_none_or(|other| {
            scores[index] > scores[other] || (scores[index] == scores[other] && key(index) < key(other))
        });
        if better {
            best = Some(index);
        }
    }
    best
}

/// What a policy takes at a decision point that it gave these scores, among the candidates that its guards allow: the highest
/// score, then the least weighted sum, then the smallest tie key, then the lowest index. None if all are masked. Hold loses every
/// tie, and gives way to unopposed starts where these are to be made.
pub fn choice_of<P: Policy + ?Sized>(policy: &P, point: &DecisionPoint<'_>, scores: &[f32]) -> Option<usize> {
    let rule = policy.choice_rule();
    let guarded;
    let mut mask = point.observation.mask;
    if !rule.guards.is_none() {
        guarded = guarded_mask(rule.guards, point);
        mask = &guarded[..mask.len()];
    }
    let choice = best_of(&rule, point, scores, mask);
    if rule.unopposed_starts {
        return choice.map(|choice| unopposed(&rule, point, scores, mask, choice).unwrap_or(choice));
    }
    choice
}

/// The first of the unmasked candidates in the order of a rule.
fn best_of(rule: &ChoiceRule<'_>, point: &DecisionPoint<'_>, scores: &[f32], mask: &[bool]) -> Option<usize> {
    let tie_key = |index| rule.tie_key.of(point.cluster, point.candidates, index);
    if rule.key_weights.is_empty() {
        return choose(scores, mask, tie_key);
    }
    let sum = |index| {
        let is_about_a_job = point.candidates.get(index).is_some_and(|row| row.job.is_some());
        if is_about_a_job {
            weighted_sum_of_row(rule.key_weights, point.observation.row(index))
        } else {
            f64::INFINITY
        }
    };
    choose(scores, mask, |index| (sum(index), tie_key(index)))
}

/// The unopposed start that is made in the place of a choice: of a hold the best by the scores, of a job's start that which is
/// fastest.
fn unopposed(
    rule: &ChoiceRule<'_>,
    point: &DecisionPoint<'_>,
    scores: &[f32],
    mask: &[bool],
    choice: usize,
) -> Option<usize> {
    let set = point.candidates;
    let chosen = set.get(choice)?;
    let is_better = |row: &Candidate| match chosen.kind {
        CandidateKind::Hold => row.kind == CandidateKind::Start,
        CandidateKind::Start => {
            row.kind == CandidateKind::Start && row.job == chosen.job && is_faster(row, chosen)
        }
        _ => false,
    };
    let mut rest = [false; MAX_CANDIDATES];
    for ((own, mask), row) in rest.iter_mut().zip(mask).zip(set.iter()) {
        *own = *mask && is_better(row);
    }
    let rest = &mut rest[..mask.len().min(MAX_CANDIDATES)];
    if !rest.contains(&true) {
        return None;
    }
    let unopposed = Unopposed::new(point.cluster)?;
    let in_place_of = match chosen.kind {
        CandidateKind::Hold => InPlaceOf::Hold,
        _ => InPlaceOf::SlowerStart,
    };
    while let Some(best) = best_of(rule, point, scores, rest) {
        let row = set.get(best)?;
        if unopposed.is(row, set.placement(row), in_place_of) {
            return Some(best);
        }
        rest[best] = false;
    }
    None
}

/// Whether a start is on whole GPUs that the job has to itself, and faster than another.
fn is_faster(row: &Candidate, other: &Candidate) -> bool {
    let rate = |row: &Candidate| {
        row.facts
            .filter(|_| row.partner.is_none())
            .map(|facts| facts.rate)
    };
    match (rate(row), rate(other)) {
        (Some(own), Some(other)) => own > other,
        _ => false,
    }
}

/// The mask of a decision point less what guards forbid.
fn guarded_mask(guards: Guards, point: &DecisionPoint<'_>) -> [bool; MAX_CANDIDATES] {
    let allowed = guards.allowed(point.cluster, point.candidates);
    let mut guarded = [false; MAX_CANDIDATES];
    for (index, (own, mask)) in guarded.iter_mut().zip(point.observation.mask).enumerate() {
        *own = *mask && allowed >> index & 1 == 1;
    }
    guarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_score_wins_then_the_smallest_key_then_the_lowest_index() {
        let mask = [true, true, true, false];
        assert_eq!(choose(&[0.0, 1.0, 1.0, 9.0], &mask, |_| 0.0), Some(1));
        assert_eq!(
            choose(&[0.0, 1.0, 1.0, 9.0], &mask, |index| -(index as f64)),
            Some(2)
        );
        assert_eq!(choose(&[0.0], &[false], |_| 0.0), None);
    }

    #[test]
    fn a_configuration_from_before_sizes_cores_and_types_still_means_what_it_meant() {
        let old = r#"{"heads":2,"fitting":3,"templates":true,"reserve":true,"preempt":true,"share":false}"#;
        let read: CandidateConfig = serde_json::from_str(old).unwrap();
        assert_eq!(read, CandidateConfig::default());
        assert_eq!(read.needs(), Needs::full());
    }
}
