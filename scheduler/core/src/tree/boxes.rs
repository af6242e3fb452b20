//! Boxes of a tree: what the rows that end in a leaf have in common, one interval for each feature, and what is known to hold
//! between features.
//!
//! A row of a candidate about a job is never arbitrary. `gpu_time_gpu_s` is `remaining_s` times `num_gpus`, `wait_ratio` is 1 +
//! `wait_s` / `remaining_s`, no job that waits has waited longer than `oldest_wait_s`, and the flags and empty columns of its kind
//! are fixed. A box without such a row is left out. Features
//! are rounded to 32 bits and their logarithms to six digits, so these products are held to a part in ten thousand: what is left
//! out is empty for certain.

use super::Tree;
use super::reach::leaf_ranges;
use crate::features::{FeatureSchema, Group, Law, Relation};

/// Relative slack of products of features.
const SLACK: f64 = 1e-4;

/// Rows of one kind that end in one leaf.
#[derive(Clone, Debug)]
pub(super) struct LeafBox {
    schema: &'static FeatureSchema,
    /// Place in the kinds of the schema.
    pub(super) kind: usize,
    /// Place of the leaf.
    pub(super) place: usize,
    /// Least and largest scaled value of each feature. `[F + G]`
    pub(super) ranges: Vec<(f32, f32)>,
}

impl LeafBox {
    /// The boxes of all leaves that rows of a kind can come to.
    pub(super) fn of(tree: &Tree, kind: usize) -> Vec<LeafBox> {
        let schema = tree.schema();
        let all = leaf_ranges(tree, kind).into_iter();
        let boxes = all.map(|(place, ranges)| LeafBox {
            schema,
            kind,
            place,
            ranges,
        });
        boxes.filter(LeafBox::has_a_row).collect()
    }

    /// A box of these ranges, for tests.
    #[cfg(test)]
    pub(super) fn between(schema: &'static FeatureSchema, kind: usize, ranges: Vec<(f32, f32)>) -> LeafBox {
        LeafBox {
            schema,
            kind,
            place: 0,
            ranges,
        }
    }

    /// Whether a row lies here and keeps what is known to hold between its columns.
    pub(super) fn has(&self, row: &[f32]) -> bool {
        let point = LeafBox {
            ranges: row.iter().map(|value| (*value, *value)).collect(),
            ..*self
        };
        self.holds(row) && point.has_a_row()
    }

    /// Raw bounds of a feature; unbounded where its range ends, for there it was clamped.
    fn raw(&self, index: usize) -> (f64, f64) {
        let feature = &self.schema.features[index];
        let (low, high) = self.ranges[index];
        let is_clamped = high >= feature.encode(feature.max);
        let raw = |scaled: f32| feature.scale.invert(scaled);
        // Widened by what the logarithm may be off.
        let top = if is_clamped {
            f64::INFINITY
        } else {
            raw(high) + SLACK * (1.0 + raw(high))
        };
        ((raw(low) - SLACK * (1.0 + raw(low))).max(0.0), top)
    }

    fn is_about_a_job(&self) -> bool {
        self.schema.kinds[self.kind].is_about_a_job
    }

    /// Whether some row could lie here; true where nothing is known against it.
    pub(super) fn has_a_row(&self) -> bool {
        if self.ranges.iter().any(|(low, high)| low > high) {
            return false;
        }
        !self.is_about_a_job() || self.schema.laws.iter().all(|law| self.may_hold(*law))
    }

    /// Whether a law could hold here.
    fn may_hold(&self, law: Law) -> bool {
        let touches = |least: f64, most: f64, own: (f64, f64)| {
            least * (1.0 - SLACK) - SLACK <= own.1 && most * (1.0 + SLACK) + SLACK >= own.0
        };
        match law {
            Law::Product { out, factors } => {
                let (a, b) = (self.raw(factors[0]), self.raw(factors[1]));
                touches(a.0 * b.0, product(a.1, b.1), self.raw(out))
            }
            Law::OnePlusRatio { out, over, under } => {
                let (over, under) = (self.raw(over), self.raw(under));
                let least = if under.1.is_infinite() {
                    0.0
                } else {
                    over.0 / under.1.max(1e-9)
                };
                let most = if under.0 > 0.0 {
                    1.0 + over.1 / under.0
                } else {
                    f64::INFINITY
                };
                touches(1.0 + least, most, self.raw(out))
            }
            Law::AtMost { least, most, among } => {
                !among.has(self.kind) || self.raw(least).0 <= self.raw(most).1
            }
            Law::Follows { .. } => true,
        }
    }

    /// A row in the box, from the ends and middles of its intervals, in which what belongs together fits exactly; `fixed` are
    /// values that are given.
    pub(super) fn rows(&self, fixed: &[(usize, f32)]) -> Vec<Vec<f32>> {
        let mut base: Vec<f32> = self
            .ranges
            .iter()
            .map(|(low, high)| low + (high - low) / 2.0)
            .collect();
        for (index, (low, high)) in self.ranges.iter().enumerate() {
            // Flags are 0 or 1.
            if self.schema.features[index].is_flag() {
                base[index] = if *low > 0.0 || *high >= 1.0 && *low > 0.5 {
                    1.0
                } else {
                    low.ceil()
                };
            }
        }
        for law in self.schema.laws {
            if let Law::AtMost { least, most, .. } = *law {
                // Room for any of those that it bounds, or that bound it.
                match self.schema.features[least].group {
                    Group::Context => base[least] = self.ranges[least].0,
                    Group::Row => base[most] = self.ranges[most].1,
                }
            }
        }
        for (index, value) in fixed {
            base[*index] = *value;
        }
        if !self.is_about_a_job() {
            return vec![base];
        }
        let choices = |index: usize| -> Vec<f32> {
            let (low, high) = self.ranges[index];
            if fixed.iter().any(|(fixed, _)| *fixed == index) {
                return vec![base[index]];
            }
            let part = |share: f32| low + (high - low) * share;
            vec![part(0.5), low, high, part(0.1), part(0.25), part(0.75), part(0.9)]
        };
        // Every choice for the first root with every one for the next, and so on.
        let mut rows = vec![base.clone()];
        for root in roots(self.schema) {
            let choices = choices(root);
            let with = |row: &Vec<f32>, value: f32| {
                let mut row = row.clone();
                row[root] = value;
                row
            };
            rows = rows
                .iter()
                .flat_map(|row| choices.iter().map(|value| with(row, *value)))
                .collect();
        }
        let follows = rows.into_iter().map(|mut row| {
            self.follow(&mut row);
            row
        });
        follows
            .filter(|row| self.holds(row) && self.bounds_hold(row))
            .collect()
    }

    /// Makes what follows from the roots fit them.
    fn follow(&self, row: &mut [f32]) {
        for law in self.schema.laws {
            let raw = |index: usize| self.schema.features[index].scale.invert(row[index]).max(0.0);
            let (out, value) = match *law {
                Law::Product { out, factors } => (out, raw(factors[0]) * raw(factors[1])),
                Law::OnePlusRatio { out, over, under } => {
                    (out, (raw(over) + raw(under)) / raw(under).max(1e-9))
                }
                Law::AtMost { .. } | Law::Follows { .. } => continue,
            };
            row[out] = self.schema.features[out].encode(value as f32);
        }
    }

    /// Whether what is bounded by another is.
    fn bounds_hold(&self, row: &[f32]) -> bool {
        let raw = |index: usize| self.schema.features[index].scale.invert(row[index]);
        self.schema.laws.iter().all(|law| match *law {
            Law::AtMost { least, most, among } => !among.has(self.kind) || raw(least).max(0.0) <= raw(most),
            Law::Product { .. } | Law::OnePlusRatio { .. } | Law::Follows { .. } => true,
        })
    }

    /// Whether a row lies in the box.
    pub(super) fn holds(&self, row: &[f32]) -> bool {
        let mut pairs = row.iter().zip(&self.ranges);
        pairs.all(|(value, (low, high))| low <= value && value <= high)
    }
}

/// A product of bounds in which 0 times no bound is 0.
fn product(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// What a schema's laws derive other features from, each once, as the laws name them.
fn roots(schema: &FeatureSchema) -> Vec<usize> {
    let laws = || schema.laws.iter();
    let is_out = |index: usize| {
        laws().any(|law| match *law {
            Law::Product { out, .. } | Law::OnePlusRatio { out, .. } => out == index,
            Law::AtMost { .. } | Law::Follows { .. } => false,
        })
    };
    let mut roots = Vec::new();
    for law in laws() {
        let inputs = match *law {
            Law::Product { factors, .. } => factors,
            Law::OnePlusRatio { over, under, .. } => [under, over],
            Law::AtMost { .. } | Law::Follows { .. } => continue,
        };
        for input in inputs {
            if !is_out(input) && !roots.contains(&input) {
                roots.push(input);
            }
        }
    }
    roots
}

/// The two boxes cut to the rows that have a partner in the other; none where there is no such pair.
pub(super) fn partners(
    first: &LeafBox,
    second: &LeafBox,
    relation: impl Fn(usize) -> Relation,
) -> Option<(LeafBox, LeafBox)> {
    let (mut first, mut second) = (first.clone(), second.clone());
    for index in 0..first.ranges.len() {
        let (a, b) = (first.ranges[index], second.ranges[index]);
        match relation(index) {
            Relation::Equal => {
                let both = (a.0.max(b.0), a.1.min(b.1));
                first.ranges[index] = both;
                second.ranges[index] = both;
            }
            Relation::Up => {
                first.ranges[index].1 = a.1.min(b.1);
                second.ranges[index].0 = b.0.max(a.0);
            }
            Relation::Down => {
                first.ranges[index].0 = a.0.max(b.0);
                second.ranges[index].1 = b.1.min(a.1);
            }
            Relation::Any => {}
        }
    }
    (first.has_a_row() && second.has_a_row()).then_some((first, second))
}
