//! Boxes of a tree: what the rows that end in a leaf have in common, one interval for each feature, and what is known to hold
//! between features.
//!
//! A row of a candidate about a job is never arbitrary. `gpu_time_gpu_s` is `remaining_s` times `num_gpus`, `wait_ratio` is 1 +
//! `wait_s` / `remaining_s`, no job that waits has waited longer than `oldest_wait_s`, and the flags and empty columns of its kind
//! are fixed. A box without such a row is left out. Features
//! are rounded to 32 bits and their logarithms to six digits, so these products are held to a part in ten thousand: what is left
//! out is empty for certain.

use super::reach::leaf_ranges;
#[cfg(test)]
use super::reach::range;
use super::{Tree, feature_of};
use crate::candidate::CandidateKind;
use crate::features::column::{Candidate as C, Global as G};
use crate::observation::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES};

pub(super) const NUM_FEATURES: usize = NUM_CANDIDATE_FEATURES + NUM_GLOBAL_FEATURES;
/// Place of the longest wait of all in a row.
const OLDEST_WAIT: usize = NUM_CANDIDATE_FEATURES + G::OldestWaitS as usize;
/// Relative slack of products of features.
const SLACK: f64 = 1e-4;

/// Rows of one kind that end in one leaf.
#[derive(Clone, Debug)]
pub(super) struct LeafBox {
    pub(super) kind: CandidateKind,
    /// Place of the leaf.
    pub(super) place: usize,
    /// Least and largest scaled value of each feature. `[F + G]`
    pub(super) ranges: Vec<(f32, f32)>,
}

impl LeafBox {
    /// The boxes of all leaves that candidates of a kind can come to.
    pub(super) fn of(tree: &Tree, kind: CandidateKind) -> Vec<LeafBox> {
        let all = leaf_ranges(tree, kind).into_iter();
        let boxes = all.map(|(place, ranges)| LeafBox { kind, place, ranges });
        boxes.filter(LeafBox::has_a_row).collect()
    }

    /// Raw bounds of a feature of candidates.
    fn raw(&self, column: C) -> (f64, f64) {
        self.raw_at(column as usize)
    }

    /// Raw bounds of a feature; unbounded where its range ends, for there it was clamped.
    fn raw_at(&self, index: usize) -> (f64, f64) {
        let feature = feature_of(index as u16);
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

    /// Whether its candidates are about jobs that wait.
    fn is_waiting(&self) -> bool {
        matches!(self.kind, CandidateKind::Start | CandidateKind::Reserve)
    }

    /// Whether some row of a candidate could lie here; true where nothing is known against it.
    pub(super) fn has_a_row(&self) -> bool {
        if self.ranges.iter().any(|(low, high)| low > high) {
            return false;
        }
        if self.kind == CandidateKind::Hold {
            return true;
        }
        // Nobody who waits has waited longer than the oldest who waits.
        if self.is_waiting() && self.raw(C::WaitS).0 > self.raw_at(OLDEST_WAIT).1 {
            return false;
        }
        let (rest, gpus) = (self.raw(C::RemainingS), self.raw(C::NumGpus));
        let (gpu_time, wait, ratio) = (self.raw(C::GpuTime), self.raw(C::WaitS), self.raw(C::WaitRatio));
        let touches = |least: f64, most: f64, own: (f64, f64)| {
            least * (1.0 - SLACK) - SLACK <= own.1 && most * (1.0 + SLACK) + SLACK >= own.0
        };
        let most_gpu_time = product(rest.1, gpus.1);
        let least_ratio = 1.0
            + if rest.1.is_infinite() {
                0.0
            } else {
                wait.0 / rest.1.max(1e-9)
            };
        let most_ratio = if rest.0 > 0.0 {
            1.0 + wait.1 / rest.0
        } else {
            f64::INFINITY
        };
        touches(rest.0 * gpus.0, most_gpu_time, gpu_time) && touches(least_ratio, most_ratio, ratio)
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
            let feature = feature_of(index as u16);
            if feature.name.starts_with("is_") {
                base[index] = if *low > 0.0 || *high >= 1.0 && *low > 0.5 {
                    1.0
                } else {
                    low.ceil()
                };
            }
        }
        // Room for any wait of a job.
        base[OLDEST_WAIT] = self.ranges[OLDEST_WAIT].1;
        for (index, value) in fixed {
            base[*index] = *value;
        }
        if self.kind == CandidateKind::Hold {
            return vec![base];
        }
        let is_fixed = |column: C| fixed.iter().any(|(index, _)| *index == column as usize);
        let choices = |column: C| -> Vec<f32> {
            let (low, high) = self.ranges[column as usize];
            if is_fixed(column) {
                return vec![base[column as usize]];
            }
            let part = |share: f32| low + (high - low) * share;
            vec![part(0.5), low, high, part(0.1), part(0.25), part(0.75), part(0.9)]
        };
        let mut found = Vec::new();
        for rest in choices(C::RemainingS) {
            for gpus in choices(C::NumGpus) {
                for wait in choices(C::WaitS) {
                    let mut row = base.clone();
                    row[C::RemainingS as usize] = rest;
                    row[C::NumGpus as usize] = gpus;
                    row[C::WaitS as usize] = wait;
                    let raw = |column: C| {
                        feature_of(column as u16)
                            .scale
                            .invert(row[column as usize])
                            .max(0.0)
                    };
                    let (rest_s, wait_s) = (raw(C::RemainingS), raw(C::WaitS));
                    let gpu_time = rest_s * raw(C::NumGpus);
                    let ratio = (wait_s + rest_s) / rest_s.max(1e-9);
                    row[C::GpuTime as usize] = feature_of(C::GpuTime as u16).encode(gpu_time as f32);
                    row[C::WaitRatio as usize] = feature_of(C::WaitRatio as u16).encode(ratio as f32);
                    let oldest_s = feature_of(OLDEST_WAIT as u16).scale.invert(row[OLDEST_WAIT]);
                    if self.holds(&row) && (!self.is_waiting() || wait_s <= oldest_s) {
                        found.push(row);
                    }
                }
            }
        }
        found
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

/// How a feature of the second of two candidates stands to that of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same.
    Equal,
    /// The same or more.
    Up,
    /// The same or less.
    Down,
    /// Nothing is known.
    Any,
}

/// The two boxes cut to the rows that have a partner in the other; none where there is no such pair.
pub(super) fn partners(
    first: &LeafBox,
    second: &LeafBox,
    relation: impl Fn(usize) -> Relation,
) -> Option<(LeafBox, LeafBox)> {
    let (mut first, mut second) = (first.clone(), second.clone());
    for index in 0..NUM_FEATURES {
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

/// The range of every feature of candidates of a kind, for tests that draw rows.
#[cfg(test)]
pub(super) fn ranges_of(kind: CandidateKind) -> Vec<(f32, f32)> {
    (0..NUM_FEATURES).map(|index| range(kind, index)).collect()
}
