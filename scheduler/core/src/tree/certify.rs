//! Proving and refuting properties of a tree, exactly, by looking at all leaves or pairs of leaves.
//!
//! A property that a pair of candidates could break is broken by some pair of leaves, the better one after the worse. For each
//! such pair the boxes of the leaves are cut to what two candidates as the property means them could have; where one is empty,
//! that pair breaks nothing. All pairs empty: *proved*. Else a pair of rows is made from what is left, walked down the tree, and
//! shown as the *witness*. The property stays *open*, and says so, where the boxes are not empty and no such rows are found, or
//! only rows that differ in a feature of which it is unknown how it moves.
//!
//! # What is deliberately not here
//! No property of the whole schedule (that no job starves, say): a tree ranks the candidates of a moment, and what follows from
//! that over days depends on what else comes.

use std::collections::BTreeMap;

use super::boxes::{LeafBox, partners};
use super::certificate::{Certificate, Property, Verdict, Witness};
use super::text::quantity;
use super::{Node, Tree};
use crate::candidate::CandidateKind;
use crate::features::decision::Id;
use crate::features::{FeatureSchema, Group, Law, Relation, Stimulus};
use crate::key_weight::weighted_sum;

/// Waiting times that are checked if none are given, s: a day against an hour. *Assumed*.
const OUTRANKS: Property = Property::WaitingOutranks {
    at_least_s: 86_400.0,
    at_most_s: 3_600.0,
};

/// Rows of a kind whose columns lie within bounds.
#[derive(Clone, Debug)]
pub struct RowSet<'a> {
    /// Place in the kinds of the schema.
    pub kind: usize,
    /// Numbers of columns with the least and the largest raw value.
    pub within: &'a [(usize, f32, f32)],
}

/// Which two rows a property compares.
#[derive(Clone, Copy, Debug)]
enum Pair {
    /// Of one job, before a stimulus and after it.
    OfOneJob(Stimulus),
    /// Of one decision: the context is the same.
    OfOneMoment,
}

impl Pair {
    /// How a feature stands in the second of the two.
    fn relation(self, schema: &FeatureSchema, index: usize) -> Relation {
        let feature = &schema.features[index];
        match self {
            Pair::OfOneJob(stimulus) => feature.relation(stimulus),
            Pair::OfOneMoment if feature.group == Group::Row => Relation::Any,
            Pair::OfOneMoment => Relation::Equal,
        }
    }

    /// The same, what is unknown being equal where the two are of one job.
    fn known(self, schema: &FeatureSchema, index: usize) -> Relation {
        match (self, self.relation(schema, index)) {
            (Pair::OfOneJob(_), Relation::Any) => Relation::Equal,
            (_, relation) => relation,
        }
    }
}

impl Property {
    /// The stimulus under which it compares two rows of one job, of which the second may not come later; none for a property
    /// that compares no such rows. How a feature then stands is [`Feature::relation`](crate::features::Feature::relation).
    #[must_use]
    pub fn stimulus(self) -> Option<Stimulus> {
        match self {
            Property::MonotoneInWaiting => Some(Stimulus::Waiting),
            Property::MonotoneInEstimate => Some(Stimulus::Estimate),
            Property::MonotoneInRelief => Some(Stimulus::Relief),
            _ => None,
        }
    }
}

impl Tree {
    /// Certificates of all properties that are asked about: monotone in waiting and in the estimate, a day of waiting against an
    /// hour, starts before holding, bounds of the scores, and each leaf that nothing can come to.
    #[must_use]
    pub fn certify(&self) -> Vec<Certificate> {
        let mut properties = if self.is_of_decisions() {
            vec![
                Property::MonotoneInWaiting,
                Property::MonotoneInEstimate,
                OUTRANKS,
                Property::StartsBeforeHolding,
            ]
        } else {
            let features = &self.schema().features;
            let of = |property: &Property| {
                let stimulus = property.stimulus();
                stimulus.is_some_and(|stimulus| {
                    let mut all = features.iter();
                    all.any(|feature| feature.relation(stimulus) != Relation::Equal)
                })
            };
            let all = [
                Property::MonotoneInWaiting,
                Property::MonotoneInEstimate,
                Property::MonotoneInRelief,
            ];
            all.into_iter().filter(of).collect()
        };
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
            Property::MonotoneInWaiting => self.with_key(Stimulus::Waiting),
            Property::MonotoneInRelief => self.with_key(Stimulus::Relief),
            Property::MonotoneInEstimate => self.about_rows(Stimulus::Estimate),
            Property::WaitingOutranks { .. } | Property::StartsBeforeHolding if !self.is_of_decisions() => {
                Verdict::Open("it is about decisions of a pass".into())
            }
            Property::WaitingOutranks {
                at_least_s,
                at_most_s,
            } => self.outranks(at_least_s, at_most_s),
            Property::StartsBeforeHolding => {
                let [holds, starts] = [CandidateKind::Hold, CandidateKind::Start].map(|kind| RowSet {
                    kind: kind as usize,
                    within: &[],
                });
                self.never(&holds, &starts, |hold, start| start < hold)
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

    /// Score of the leaf at a place; NaN of a split.
    #[must_use]
    pub fn score_at(&self, place: usize) -> f32 {
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

    /// Places of the leaves that some candidate may come to.
    fn reached(&self) -> Vec<usize> {
        let mut places: Vec<usize> = self
            .kinds_of_rows()
            .flat_map(|kind| LeafBox::of(self, kind))
            .map(|leaf| leaf.place)
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The kinds of rows that a stimulus may befall.
    fn kinds_moved_by(&self, stimulus: Stimulus) -> Vec<usize> {
        match stimulus {
            Stimulus::Waiting | Stimulus::Estimate => self.kinds_about_waiting_jobs().collect(),
            Stimulus::Relief => self.kinds_of_rows().collect(),
        }
    }

    /// That the second of two rows of one job, which stand to each other as said, is never in a worse tier.
    fn about_rows(&self, stimulus: Stimulus) -> Verdict {
        let pair = Pair::OfOneJob(stimulus);
        let mut open = None;
        for kind in self.kinds_moved_by(stimulus) {
            let boxes = LeafBox::of(self, kind);
            match self.broken(&boxes, &boxes, pair, |first, second| second < first) {
                Verdict::Proved => {}
                Verdict::Open(reason) => open = Some(reason),
                refuted @ Verdict::Refuted(_) => return refuted,
            }
        }
        open.map_or(Verdict::Proved, Verdict::Open)
    }

    /// The same for the order within a tier too, in which only what moves with the stimulus can differ.
    fn with_key(&self, stimulus: Stimulus) -> Verdict {
        let tiers = self.about_rows(stimulus);
        let pair = Pair::OfOneJob(stimulus);
        let grows =
            |term: &&crate::key_weight::KeyWeight| match pair.relation(self.schema(), term.feature.into()) {
                Relation::Up => term.weight > 0.0,
                Relation::Down => term.weight < 0.0,
                Relation::Equal | Relation::Any => false,
            };
        let Some(term) = self.meta().key_weights.iter().find(grows) else {
            return tiers;
        };
        if tiers != Verdict::Proved {
            return tiers;
        }
        // The second has the larger key wherever both end in one leaf and this feature alone weighs.
        for kind in self.kinds_moved_by(stimulus) {
            for leaf in LeafBox::of(self, kind) {
                let rows = leaf.rows(&[]);
                for first in &rows {
                    // All that moves, as far as the leaf goes, where that could be a row.
                    let moved = Some(self.moved(first, &leaf, pair)).filter(|row| leaf.has(row));
                    let later = rows.iter().chain(&moved).find(|second| {
                        let key = |row: &[f32]| weighted_sum(&self.meta().key_weights, row);
                        self.stand(first, second, pair)
                            && self.moves_together(first, second, pair)
                            && key(second) > key(first)
                    });
                    if let Some(second) = later {
                        return Verdict::Refuted(self.witness(first, second));
                    }
                }
            }
        }
        let name = self.feature(term.feature).name;
        Verdict::Open(format!(
            "the key puts who has moved later by its {name}, and no pair of candidates was found that shows it"
        ))
    }

    /// A row with all that moves at the end of the leaf towards which it moves.
    fn moved(&self, row: &[f32], leaf: &LeafBox, pair: Pair) -> Vec<f32> {
        let values = row.iter().zip(&leaf.ranges).enumerate();
        values
            .map(
                |(index, (value, (low, high)))| match pair.relation(self.schema(), index) {
                    Relation::Up => *high,
                    Relation::Down => *low,
                    Relation::Equal | Relation::Any => *value,
                },
            )
            .collect()
    }

    fn outranks(&self, at_least_s: f32, at_most_s: f32) -> Verdict {
        let wait = Id::WaitS as usize;
        let starts = |least_s: f32, most_s: f32| [(wait, least_s, most_s)];
        let (long, short) = (starts(at_least_s, f32::MAX), starts(0.0, at_most_s));
        let [long, short] = [&long, &short].map(|within| RowSet {
            kind: CandidateKind::Start as usize,
            within,
        });
        self.never(&long, &short, |long, short| short >= long)
    }

    /// That in no decision a row of the first set and one of the second have scores that break something.
    #[must_use]
    pub fn never(
        &self,
        first: &RowSet<'_>,
        second: &RowSet<'_>,
        breaks: impl Fn(f32, f32) -> bool,
    ) -> Verdict {
        let [firsts, seconds] = [first, second].map(|set| self.boxes_of(set));
        self.broken(&firsts, &seconds, Pair::OfOneMoment, breaks)
    }

    /// The leaves that rows of a set come to, cut to its bounds.
    fn boxes_of(&self, set: &RowSet<'_>) -> Vec<LeafBox> {
        let cut = |mut leaf: LeafBox| {
            for (index, least, most) in set.within {
                let feature = &self.schema().features[*index];
                let (low, high) = leaf.ranges[*index];
                leaf.ranges[*index] = (low.max(feature.encode(*least)), high.min(feature.encode(*most)));
            }
            leaf
        };
        let leaves = LeafBox::of(self, set.kind).into_iter().map(cut);
        leaves.filter(LeafBox::has_a_row).collect()
    }

    /// That no two rows that stand to each other as said have scores that break the property.
    fn broken(
        &self,
        firsts: &[LeafBox],
        seconds: &[LeafBox],
        pair: Pair,
        breaks: impl Fn(f32, f32) -> bool,
    ) -> Verdict {
        let mut open = None;
        for first in firsts {
            for second in seconds {
                if !breaks(self.score_at(first.place), self.score_at(second.place)) {
                    continue;
                }
                let relation = |index| pair.relation(self.schema(), index);
                let Some((first, second)) = partners(first, second, relation) else {
                    continue;
                };
                match self.shown(&first, &second, pair) {
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
    fn shown(&self, first: &LeafBox, second: &LeafBox, pair: Pair) -> Option<Witness> {
        let known = |index: usize| pair.known(self.schema(), index);
        let (first, second) = partners(first, second, known)?;
        for own in first.rows(&[]) {
            let same: Vec<(usize, f32)> = (0..own.len())
                .filter(|index| known(*index) == Relation::Equal)
                .map(|index| (index, own[index]))
                .collect();
            let others = second.rows(&same);
            let partner = others
                .iter()
                .find(|other| self.stand(&own, other, pair) && self.moves_together(&own, other, pair));
            if let Some(other) = partner {
                let ends = (self.walk(&own), self.walk(other));
                if ends == (first.place, second.place) {
                    return Some(self.witness(&own, other));
                }
            }
        }
        None
    }

    /// Whether the second row stands to the first as the pair says, what is unknown being equal in rows of one job.
    fn stand(&self, first: &[f32], second: &[f32], pair: Pair) -> bool {
        let values = first.iter().zip(second).enumerate();
        values.into_iter().all(
            |(index, (first, second))| match pair.known(self.schema(), index) {
                Relation::Equal => first == second,
                Relation::Up => first <= second,
                Relation::Down => first >= second,
                Relation::Any => true,
            },
        )
    }

    /// Whether nothing that follows from another moves where that one stays.
    fn moves_together(&self, first: &[f32], second: &[f32], pair: Pair) -> bool {
        let moves = |index: usize| first[index] != second[index];
        let mut laws = self.schema().laws.iter();
        laws.all(|law| match (*law, pair) {
            (Law::Follows { out, from }, Pair::OfOneJob(_)) => moves(from) || !moves(out),
            _ => true,
        })
    }

    fn witness(&self, first: &[f32], second: &[f32]) -> Witness {
        let schema = self.schema();
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
    pub fn in_words(&self, schema: &FeatureSchema) -> String {
        self.verdict.in_words(&self.property.to_string(), schema)
    }
}

impl Verdict {
    /// Whether what is said holds, and where it does not the two rows that show it, in raw units.
    #[must_use]
    pub fn in_words(&self, said: &str, schema: &FeatureSchema) -> String {
        let shown = |values: &BTreeMap<String, f32>| -> String {
            let known = values.iter().filter_map(|(name, scaled)| {
                let found = schema.joined(schema.joined_index(name)?)?;
                Some(format!(
                    "{name} {}",
                    quantity(found.scale.invert(*scaled), found.unit)
                ))
            });
            known.collect::<Vec<_>>().join(", ")
        };
        match self {
            Verdict::Proved => format!("proved: {said}"),
            Verdict::Open(reason) => format!("open: {said}: {reason}"),
            Verdict::Refuted(Witness { first, .. }) if first.is_empty() => format!("refuted: {said}"),
            Verdict::Refuted(witness) => format!(
                "refuted: {said}\n  one ends in leaf {}: {}\n  the other in leaf {}: {}",
                witness.leaves.0,
                shown(&witness.first),
                witness.leaves.1,
                shown(&witness.second)
            ),
        }
    }
}

#[cfg(test)]
mod tests;
