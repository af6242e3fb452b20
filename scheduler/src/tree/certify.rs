//! Proving and refuting properties of a tree, exactly, by looking at all leaves or pairs of leaves.
//!
//! A property that a pair of candidates could break is broken by some pair of leaves, the better one after the worse. For each such
//! pair the boxes of the leaves are cut to what two candidates as the property means them could have; where one is empty, that
//! pair breaks nothing. All pairs empty: *proved*. Else a pair of rows is made from what is left, walked down the tree, and shown
//! as the *witness*. Where the boxes are not empty and no such rows are found, or only where something moves of which nobody knows
//! how, the property stays *open*, and says so.
//!
//! # What is deliberately not here
//! No property of the whole schedule (that no job starves, say): a tree ranks the candidates of a moment, and what follows from
//! that over days depends on what else comes.

use std::collections::BTreeMap;

use super::boxes::{LeafBox, NUM_FEATURES, Relation, partners};
use super::certificate::{Certificate, Property, Verdict, Witness};
use super::reach::kinds_of;
use super::text::quantity;
use super::{Node, Tree, feature_of};
use crate::candidate::CandidateKind;
use crate::features::column::{Candidate as C, Global as G};
use crate::key_weight::weighted_sum;
use crate::observation::NUM_CANDIDATE_FEATURES;

/// Waiting times that are asked about if nobody says which, s: a day against an hour. *Assumed*.
const OUTRANKS: Property = Property::WaitingOutranks {
    at_least_s: 86_400.0,
    at_most_s: 3_600.0,
};
fn global(column: G) -> usize {
    NUM_CANDIDATE_FEATURES + column as usize
}

/// How features move when a job waits longer.
fn while_waiting(index: usize) -> Relation {
    let grows = [C::WaitS as usize, C::WaitRatio as usize, global(G::OldestWaitS)];
    if grows.contains(&index) {
        Relation::Up
    } else {
        Relation::Equal
    }
}

/// How features move when the estimate of a job is shorter. Nobody knows how `end_gain` moves, nor whether the job now is the first
/// of some order.
fn with_shorter_estimate(index: usize) -> Relation {
    let falls = [
        C::RemainingS as usize,
        C::DurationS as usize,
        C::GpuTime as usize,
        C::RankRemaining as usize,
        C::RankGpuTime as usize,
        global(G::SmallestGpuTime),
        global(G::BelievedDrainS),
    ];
    let grows = [
        C::WaitRatio as usize,
        C::HeadShortest as usize,
        C::HeadGpuTime as usize,
    ];
    match index {
        index if falls.contains(&index) => Relation::Down,
        index if grows.contains(&index) => Relation::Up,
        index if index == C::EndGain as usize => Relation::Any,
        _ => Relation::Equal,
    }
}

/// Two candidates of one decision: the cluster is the same.
fn at_one_moment(index: usize) -> Relation {
    if index < NUM_CANDIDATE_FEATURES {
        Relation::Any
    } else {
        Relation::Equal
    }
}

impl Property {
    /// How feature `index` of a joined row stands in the second of the two candidates that the property compares; the second may not
    /// come later. None for a property that compares no such candidates.
    #[must_use]
    pub fn relation(self, index: usize) -> Option<Relation> {
        match self {
            Property::MonotoneInWaiting => Some(while_waiting(index)),
            Property::MonotoneInEstimate => Some(with_shorter_estimate(index)),
            _ => None,
        }
    }
}

impl Tree {
    /// Certificates of all properties that are asked about: monotone in waiting and in the estimate, a day of waiting against an
    /// hour, starts before holding, bounds of the scores, and each leaf that nothing can come to.
    #[must_use]
    pub fn certify(&self) -> Vec<Certificate> {
        let mut properties = vec![
            Property::MonotoneInWaiting,
            Property::MonotoneInEstimate,
            OUTRANKS,
            Property::StartsBeforeHolding,
        ];
        let reached = self.reached();
        let scores = || reached.iter().map(|place| self.score_at(*place));
        properties.push(Property::ScoresWithin {
            min: scores().fold(f32::INFINITY, f32::min),
            max: scores().fold(f32::NEG_INFINITY, f32::max),
        });
        let leaves = self
            .nodes()
            .iter()
            .enumerate()
            .filter_map(|(place, node)| match node {
                Node::Leaf { id, .. } if !reached.contains(&place) => Some(*id),
                _ => None,
            });
        properties.extend(leaves.map(|leaf| Property::LeafIsReached { leaf }));
        let certificate = |property| Certificate {
            property,
            verdict: self.verdict(property),
        };
        properties.into_iter().map(certificate).collect()
    }

    /// Whether one property holds.
    #[must_use]
    pub fn verdict(&self, property: Property) -> Verdict {
        match property {
            Property::MonotoneInWaiting => self.with_key(self.about_jobs(while_waiting)),
            Property::MonotoneInEstimate => self.about_jobs(with_shorter_estimate),
            Property::WaitingOutranks {
                at_least_s,
                at_most_s,
            } => self.outranks(at_least_s, at_most_s),
            Property::StartsBeforeHolding => {
                let holds = LeafBox::of(self, CandidateKind::Hold);
                let starts = LeafBox::of(self, CandidateKind::Start);
                self.broken(&holds, &starts, at_one_moment, |hold, start| start < hold)
            }
            Property::ScoresWithin { min, max } => {
                let is_within = |place: &usize| (min..=max).contains(&self.score_at(*place));
                if self.reached().iter().all(is_within) {
                    Verdict::Proved
                } else {
                    Verdict::Open("a leaf that may be reached has another score".into())
                }
            }
            Property::LeafIsReached { leaf } => {
                let is_reached = self.reached().iter().any(|place| self.id_at(*place) == leaf);
                if is_reached {
                    Verdict::Open("no candidate was looked for".into())
                } else {
                    Verdict::Refuted(Witness {
                        first: BTreeMap::new(),
                        second: BTreeMap::new(),
                        leaves: (leaf, leaf),
                    })
                }
            }
        }
    }

    fn score_at(&self, place: usize) -> f32 {
        match self.nodes()[place] {
            Node::Leaf { score, .. } => score,
            Node::Split { .. } => f32::NAN,
        }
    }

    fn id_at(&self, place: usize) -> u32 {
        match self.nodes()[place] {
            Node::Leaf { id, .. } => id,
            Node::Split { .. } => u32::MAX,
        }
    }

    /// Kinds of candidates that it chooses among and that are about a job.
    fn kinds_about_jobs(&self) -> impl Iterator<Item = CandidateKind> {
        kinds_of(&self.meta().needs).filter(|kind| *kind != CandidateKind::Hold)
    }

    /// Places of the leaves that some candidate may come to.
    fn reached(&self) -> Vec<usize> {
        let mut places: Vec<usize> = kinds_of(&self.meta().needs)
            .flat_map(|kind| LeafBox::of(self, kind))
            .map(|leaf| leaf.place)
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// That the second of two rows of one job, which stand to each other as said, is never in a worse tier.
    fn about_jobs(&self, relation: impl Fn(usize) -> Relation + Copy) -> Verdict {
        let mut open = None;
        for kind in self.kinds_about_jobs() {
            let boxes = LeafBox::of(self, kind);
            match self.broken(&boxes, &boxes, relation, |first, second| second < first) {
                Verdict::Proved => {}
                Verdict::Open(reason) => open = Some(reason),
                refuted @ Verdict::Refuted(_) => return refuted,
            }
        }
        open.map_or(Verdict::Proved, Verdict::Open)
    }

    /// The same for the order within a tier, in which only what grows with waiting can differ.
    fn with_key(&self, tiers: Verdict) -> Verdict {
        let grows = |term: &&crate::key_weight::KeyWeight| {
            while_waiting(term.feature.into()) == Relation::Up && term.weight > 0.0
        };
        let Some(term) = self.meta().key_weights.iter().find(grows) else {
            return tiers;
        };
        if tiers != Verdict::Proved {
            return tiers;
        }
        // The one that waited longer has the larger key wherever both end in one leaf and this feature alone weighs.
        for kind in self.kinds_about_jobs() {
            for leaf in LeafBox::of(self, kind) {
                let rows = leaf.rows(&[]);
                for first in &rows {
                    let later = rows.iter().find(|second| {
                        let key = |row: &[f32]| weighted_sum(&self.meta().key_weights, row);
                        stand(first, second, while_waiting) && key(second) > key(first)
                    });
                    if let Some(second) = later {
                        return Verdict::Refuted(self.witness(first, second));
                    }
                }
            }
        }
        let name = feature_of(term.feature).name;
        Verdict::Open(format!(
            "the key puts more {name} later, and no pair of candidates was found that shows it"
        ))
    }

    fn outranks(&self, at_least_s: f32, at_most_s: f32) -> Verdict {
        let wait = C::WaitS as usize;
        let encode = |raw: f32| feature_of(wait as u16).encode(raw);
        let starts = || LeafBox::of(self, CandidateKind::Start).into_iter();
        let long = starts().map(|mut leaf| {
            leaf.ranges[wait].0 = leaf.ranges[wait].0.max(encode(at_least_s));
            leaf
        });
        let short = starts().map(|mut leaf| {
            leaf.ranges[wait].1 = leaf.ranges[wait].1.min(encode(at_most_s));
            leaf
        });
        let long: Vec<LeafBox> = long.filter(LeafBox::has_a_row).collect();
        let short: Vec<LeafBox> = short.filter(LeafBox::has_a_row).collect();
        self.broken(&long, &short, at_one_moment, |long, short| short >= long)
    }

    /// That no two rows that stand to each other as said have scores that break the property.
    fn broken(
        &self,
        firsts: &[LeafBox],
        seconds: &[LeafBox],
        relation: impl Fn(usize) -> Relation + Copy,
        breaks: impl Fn(f32, f32) -> bool,
    ) -> Verdict {
        let mut open = None;
        for first in firsts {
            for second in seconds {
                if !breaks(self.score_at(first.place), self.score_at(second.place)) {
                    continue;
                }
                let Some((first, second)) = partners(first, second, relation) else {
                    continue;
                };
                match self.shown(&first, &second, relation) {
                    Some(witness) => return Verdict::Refuted(witness),
                    None => {
                        open = Some(format!(
                            "leaves {} and {} may break it, and no pair of candidates was found that shows it",
                            self.id_at(first.place),
                            self.id_at(second.place)
                        ));
                    }
                }
            }
        }
        open.map_or(Verdict::Proved, Verdict::Open)
    }

    /// Two rows of the boxes that stand to each other as said, what is unknown being equal where a property is about one job.
    fn shown(
        &self,
        first: &LeafBox,
        second: &LeafBox,
        relation: impl Fn(usize) -> Relation + Copy,
    ) -> Option<Witness> {
        let is_of_one_job = relation(C::NumGpus as usize) == Relation::Equal;
        let known = |index: usize| match relation(index) {
            Relation::Any if is_of_one_job => Relation::Equal,
            relation => relation,
        };
        let (first, second) = partners(first, second, known)?;
        for own in first.rows(&[]) {
            let same: Vec<(usize, f32)> = (0..NUM_FEATURES)
                .filter(|index| known(*index) == Relation::Equal)
                .map(|index| (index, own[index]))
                .collect();
            let others = second.rows(&same);
            let partner = others
                .iter()
                .find(|other| stand(&own, other, known) && moves_together(&own, other, is_of_one_job));
            if let Some(other) = partner {
                let ends = (self.walk(&own), self.walk(other));
                if ends == (first.place, second.place) {
                    return Some(self.witness(&own, other));
                }
            }
        }
        None
    }

    fn witness(&self, first: &[f32], second: &[f32]) -> Witness {
        let schema = crate::features::FeatureSchema::current();
        let shown = |row: &[f32]| -> BTreeMap<String, f32> {
            let names = self.features().into_iter();
            let values = names.filter_map(|name| Some((name.to_string(), row[schema.joined_index(name)?])));
            values.collect()
        };
        Witness {
            leaves: (self.id_at(self.walk(first)), self.id_at(self.walk(second))),
            first: shown(first),
            second: shown(second),
        }
    }
}

impl Certificate {
    /// The property, whether it holds, and where it does not the two candidates that show it, in raw units.
    #[must_use]
    pub fn in_words(&self) -> String {
        let property = &self.property;
        let shown = |values: &BTreeMap<String, f32>| -> String {
            let schema = crate::features::FeatureSchema::current();
            let known = values.iter().filter_map(|(name, scaled)| {
                let found = schema.joined(schema.joined_index(name)?)?;
                Some(format!(
                    "{name} {}",
                    quantity(found.scale.invert(*scaled), found.unit)
                ))
            });
            known.collect::<Vec<_>>().join(", ")
        };
        match &self.verdict {
            Verdict::Proved => format!("proved: {property}"),
            Verdict::Open(reason) => format!("open: {property}: {reason}"),
            Verdict::Refuted(Witness { first, .. }) if first.is_empty() => format!("refuted: {property}"),
            Verdict::Refuted(witness) => format!(
                "refuted: {property}\n  one ends in leaf {}: {}\n  the other in leaf {}: {}",
                witness.leaves.0,
                shown(&witness.first),
                witness.leaves.1,
                shown(&witness.second)
            ),
        }
    }
}

/// Whether the second row stands to the first as said.
fn stand(first: &[f32], second: &[f32], relation: impl Fn(usize) -> Relation) -> bool {
    (0..NUM_FEATURES).all(|index| match relation(index) {
        Relation::Equal => first[index] == second[index],
        Relation::Up => first[index] <= second[index],
        Relation::Down => first[index] >= second[index],
        Relation::Any => true,
    })
}

/// Whether the duration, which has no more than the rest to follow, does not stay where the rest moves, nor moves where it stays.
fn moves_together(first: &[f32], second: &[f32], is_of_one_job: bool) -> bool {
    let moves = |column: C| first[column as usize] != second[column as usize];
    !is_of_one_job || moves(C::RemainingS) || !moves(C::DurationS)
}

#[cfg(test)]
mod tests;
