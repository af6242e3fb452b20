//! The nearest row in the boxes of all leaves that would do.
//!
//! The size of the gang is a whole number and all of them are tried. With it given, every bound on what follows from the believed
//! rest is one on the rest itself or on its ratio with the wait. The distance is monotone between two such bounds, because rest
//! and wait have the same logarithmic scale, so the nearest row has rest and wait where they were or at a bound: these points are
//! tried. Every other feature goes to the end of the leaf's range, if it is not in it.

use super::rank::{Rank, score_at};
use crate::actions::{CandidateKind, Effect};
use crate::features::decision::{FEATURES, Id as C};
use crate::features::{Control, Law};
use crate::key_weight::weighted_sum;
use crate::policy::TieKey;
use crate::tree::Tree;
use crate::tree::boxes::LeafBox;

/// What features, rounded to 32 bits with six digits of their logarithms, may be off.
const SLACK: f64 = 1e-4;
/// Place of the longest wait of all in a row.
const OLDEST_WAIT: usize = C::OldestWaitS as usize;
/// What changes by itself: size of the gang, believed rest, wait.
const ROOTS: [C; 3] = [C::NumGpus, C::RemainingS, C::WaitS];
/// What follows from those.
const FOLLOW: [C; 4] = [C::GpuFraction, C::GpuTime, C::WaitRatio, C::DurationS];
/// Times that are tried beside the bounds where a weighted key reads them.
const NUM_KEY_STEPS: u32 = 64;

/// Size of the gang, believed rest in s, wait in s.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Roots {
    gpus: f64,
    rest_s: f64,
    wait_s: f64,
}

/// A row that wins.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) row: Vec<f32>,
    /// Features that changed by themselves, in their order.
    pub(super) changed: Vec<usize>,
    pub(super) cost: f64,
    roots: Roots,
}

impl Found {
    fn is_nearer(&self, best: Option<&Found>) -> bool {
        best.is_none_or(|best| (self.changed.len(), self.cost) < (best.changed.len(), best.cost))
    }
}

pub(super) struct Search<'a> {
    pub(super) tree: &'a Tree,
    pub(super) row: &'a [f32],
    kind: CandidateKind,
    /// Believed rest that passes in a second.
    rate: f64,
    own: Rank,
    pub(super) rival: Rank,
    allowed: &'a dyn Fn(Control) -> bool,
    roots: Roots,
    /// GPUs of the cluster.
    num_gpus: f64,
    reads: Vec<bool>,
}

/// Raw value of a feature in a row.
fn raw(row: &[f32], index: usize) -> f64 {
    FEATURES[index].scale.invert(row[index])
}

pub(super) fn span(index: usize) -> f64 {
    let feature = &FEATURES[index];
    f64::from(feature.encode(feature.max)) - f64::from(feature.encode(feature.min))
}

/// What it costs that a feature has another number.
fn cost(index: usize, from: f32, to: f32) -> f64 {
    (f64::from(to) - f64::from(from)).abs() / span(index)
}

impl<'a> Search<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        row: &'a [f32],
        kind: CandidateKind,
        rate: f64,
        (own, rival): (Rank, Rank),
        allowed: &'a dyn Fn(Control) -> bool,
    ) -> Search<'a> {
        let gpus = raw(row, C::NumGpus as usize).round();
        let share = raw(row, C::GpuFraction as usize);
        let num_gpus = if share > 0.0 { (gpus / share).round() } else { gpus };
        let mut reads = vec![false; row.len()];
        for number in tree.reads() {
            reads[usize::from(number)] = true;
        }
        let roots = Roots {
            gpus,
            rest_s: raw(row, C::RemainingS as usize),
            wait_s: raw(row, C::WaitS as usize),
        };
        Search {
            tree,
            row,
            kind,
            rate: rate.max(1e-9),
            own,
            rival,
            allowed,
            roots,
            num_gpus,
            reads,
        }
    }

    /// The nearest row of all leaves that would do; none where there is none.
    pub(super) fn nearest(&self) -> Option<Found> {
        let mut best = None;
        for leaf in LeafBox::of(self.tree, self.kind as usize) {
            let (score, _) = score_at(self.tree, leaf.place);
            if score < self.rival.score {
                continue;
            }
            for gpus in self.sizes() {
                // Most sizes of a large cluster are too far away already.
                let roots = Roots { gpus, ..self.roots };
                if !self.moved(roots).is_nearer(best.as_ref()) {
                    continue;
                }
                for rest_s in self.rests(&leaf, gpus) {
                    for wait_s in self.waits(&leaf, rest_s) {
                        let roots = Roots { gpus, rest_s, wait_s };
                        let found = self.in_leaf(&leaf, score, roots, best.as_ref());
                        best = found.or(best);
                    }
                }
            }
        }
        best
    }

    /// Whether a row that was found, with this score, comes before the rival.
    pub(super) fn wins(&self, score: f32, found: &Found) -> bool {
        self.wins_with(score, &found.row, found.roots)
    }

    fn wins_with(&self, score: f32, row: &[f32], roots: Roots) -> bool {
        let meta = self.tree.meta();
        let is_same = (roots.gpus, roots.rest_s) == (self.roots.gpus, self.roots.rest_s);
        let tie = match meta.tie_key {
            TieKey::ShortestEstimate if !is_same => roots.rest_s,
            TieKey::SmallestGpuTime if !is_same => roots.rest_s * roots.gpus,
            _ => self.own.tie,
        };
        let sum = weighted_sum(&meta.key_weights, row);
        let own = Rank {
            score,
            sum,
            tie,
            ..self.own
        };
        own.is_before(&self.rival)
    }

    /// Whether the weighted key reads one of these.
    fn is_weighed(&self, columns: &[C]) -> bool {
        let weights = &self.tree.meta().key_weights;
        let reads = |index: usize| columns.iter().any(|column| *column as usize == index);
        weights.iter().any(|term| reads(usize::from(term.feature)))
    }

    fn may(&self, column: C) -> bool {
        (self.allowed)(FEATURES[column as usize].control)
    }

    /// The sizes to try: its own, and all others where they matter to the tree.
    fn sizes(&self) -> Vec<f64> {
        let matter = [
            C::NumGpus,
            C::GpuFraction,
            C::GpuTime,
            C::Leftover,
            C::OldestSlack,
        ];
        let is_read = matter.iter().any(|column| self.reads[*column as usize]);
        let is_key = self.tree.meta().tie_key == TieKey::SmallestGpuTime;
        let mut sizes = vec![self.roots.gpus];
        if self.may(C::NumGpus) && (is_read || is_key) {
            let others = (1..=self.num_gpus as u32).map(f64::from);
            sizes.extend(others.filter(|size| *size != self.roots.gpus));
            // The nearest first, so that the search soon knows what is too far.
            sizes.sort_by(|a, b| {
                (a - self.roots.gpus)
                    .abs()
                    .total_cmp(&(b - self.roots.gpus).abs())
            });
        }
        sizes
    }

    /// Ends and middle of a feature's range in a leaf, a little inside it, in raw units; nothing where it is unbounded.
    fn ends(&self, leaf: &LeafBox, column: C) -> Vec<f64> {
        let feature = &FEATURES[column as usize];
        let (low, high) = leaf.ranges[column as usize];
        let mut ends = Vec::new();
        let inside = |scaled: f32| feature.scale.invert(scaled);
        if low > feature.encode(feature.min) {
            ends.push(inside(low) + SLACK * (1.0 + inside(low).abs()));
        }
        if high < feature.encode(feature.max) {
            ends.push(inside(high) - SLACK * (1.0 + inside(high).abs()));
        }
        if ends.len() == 2 {
            ends.push(inside(low + (high - low) / 2.0));
        }
        ends
    }

    /// The believed rests to try for a size.
    fn rests(&self, leaf: &LeafBox, gpus: f64) -> Vec<f64> {
        let Roots { rest_s, wait_s, .. } = self.roots;
        let mut rests = vec![rest_s];
        if !self.may(C::RemainingS) {
            return rests;
        }
        rests.extend(self.ends(leaf, C::RemainingS));
        rests.extend(self.ends(leaf, C::GpuTime).iter().map(|end| end / gpus));
        let duration_s = raw(self.row, C::DurationS as usize);
        rests.extend(
            self.ends(leaf, C::DurationS)
                .iter()
                .map(|end| rest_s + (end - duration_s) * self.rate),
        );
        let mut waits = vec![wait_s];
        waits.extend(self.ends(leaf, C::WaitS));
        for ratio in self.ends(leaf, C::WaitRatio) {
            rests.extend(waits.iter().map(|wait_s| wait_s / (ratio - 1.0)));
        }
        match self.tree.meta().tie_key {
            TieKey::ShortestEstimate => rests.push(self.rival.tie * (1.0 - SLACK)),
            TieKey::SmallestGpuTime => rests.push(self.rival.tie / gpus * (1.0 - SLACK)),
            TieKey::Index | TieKey::Arrival => {}
        }
        if self.is_weighed(&[C::RemainingS, C::GpuTime, C::WaitRatio, C::DurationS]) {
            rests.extend(key_steps());
        }
        rests.retain(|rest_s| rest_s.is_finite() && *rest_s > 0.0 && *rest_s <= 1e8);
        rests
    }

    /// The waits to try for a believed rest.
    fn waits(&self, leaf: &LeafBox, rest_s: f64) -> Vec<f64> {
        let mut waits = vec![self.roots.wait_s];
        if !self.may(C::WaitS) {
            return waits;
        }
        let ratios = self.ends(leaf, C::WaitRatio);
        let mut others = self.ends(leaf, C::WaitS);
        others.extend(ratios.iter().map(|ratio| (ratio - 1.0) * rest_s));
        if self.is_weighed(&[C::WaitS, C::WaitRatio]) {
            others.extend(key_steps());
        }
        // The longest wait of all is a feature of every candidate: a tree that reads it must not see it moved.
        let bounds = |law: &Law| match law {
            Law::AtMost { most, among, .. } => *most == OLDEST_WAIT && among.has(self.kind as usize),
            _ => false,
        };
        let bounds_it = self.reads[OLDEST_WAIT] && self.tree.schema().laws.iter().any(bounds);
        let most_s = if bounds_it {
            raw(self.row, OLDEST_WAIT)
        } else {
            1e8
        };
        waits.extend(
            others
                .into_iter()
                .filter(|wait_s| (0.0..=most_s).contains(wait_s)),
        );
        waits
    }

    /// The row with other roots and what follows from them; none where no such row can be.
    fn row_with(&self, roots: Roots) -> Option<Vec<f32>> {
        let mut row = self.row.to_vec();
        let mut put = |column: C, value: f64| {
            row[column as usize] = FEATURES[column as usize].encode(value as f32);
        };
        let own = self.roots;
        let other = (
            roots.gpus != own.gpus,
            roots.rest_s != own.rest_s,
            roots.wait_s != own.wait_s,
        );
        if other.0 {
            put(C::NumGpus, roots.gpus);
            put(C::GpuFraction, roots.gpus / self.num_gpus);
            if self.kind.row().effect == Effect::Run {
                let more = (roots.gpus - own.gpus) / self.num_gpus;
                let left = raw(self.row, C::Leftover as usize) - more;
                if left < -1e-6 {
                    return None;
                }
                put(C::Leftover, left);
                put(C::OldestSlack, raw(self.row, C::OldestSlack as usize) - more);
            }
        }
        if other.1 {
            let longer_s = (roots.rest_s - own.rest_s) / self.rate;
            put(C::RemainingS, roots.rest_s);
            put(C::DurationS, raw(self.row, C::DurationS as usize) + longer_s);
        }
        if other.2 {
            put(C::WaitS, roots.wait_s);
        }
        if other.0 || other.1 {
            put(C::GpuTime, roots.rest_s * roots.gpus);
        }
        if other.1 || other.2 {
            put(
                C::WaitRatio,
                (roots.wait_s + roots.rest_s) / roots.rest_s.max(1e-9),
            );
        }
        Some(row)
    }

    /// The row with another size, rest and wait.
    #[cfg(test)]
    pub(super) fn row_of(&self, gpus: f64, rest_s: f64, wait_s: f64) -> Option<Vec<f32>> {
        self.row_with(Roots { gpus, rest_s, wait_s })
    }

    /// What other roots cost by themselves; the row is still to be made.
    fn moved(&self, roots: Roots) -> Found {
        let mut found = Found {
            row: Vec::new(),
            changed: Vec::new(),
            cost: 0.0,
            roots,
        };
        let own = self.roots;
        let pairs = [
            (roots.gpus, own.gpus),
            (roots.rest_s, own.rest_s),
            (roots.wait_s, own.wait_s),
        ];
        for (column, (to, from)) in ROOTS.iter().zip(pairs) {
            if to != from {
                let index = *column as usize;
                found.cost += cost(index, self.row[index], FEATURES[index].encode(to as f32));
                found.changed.push(index);
            }
        }
        found
    }

    /// The row of a leaf with these roots, if it wins and is nearer than the best so far.
    fn in_leaf(&self, leaf: &LeafBox, score: f32, roots: Roots, best: Option<&Found>) -> Option<Found> {
        let mut found = self.moved(roots);
        if !found.is_nearer(best) {
            return None;
        }
        found.row = self.row_with(roots)?;
        for (index, range) in leaf.ranges.iter().enumerate() {
            let value = found.row[index];
            if range.0 <= value && value <= range.1 {
                continue;
            }
            let to = self.clamped(index, value, *range)?;
            found.cost += cost(index, value, to);
            found.row[index] = to;
            found.changed.push(index);
        }
        if !self.wins_with(score, &found.row, roots) {
            self.lower_the_sum(leaf, &mut found)?;
        }
        found.changed.sort_unstable();
        (!found.changed.is_empty() && self.wins_with(score, &found.row, roots) && found.is_nearer(best))
            .then_some(found)
    }

    /// Whether a feature may have another number by itself.
    pub(super) fn is_free(&self, index: usize) -> bool {
        let is = |columns: &[C]| columns.iter().any(|column| *column as usize == index);
        let control = FEATURES[index].control;
        control != Control::Fixed && (self.allowed)(control) && !is(&ROOTS) && !is(&FOLLOW)
    }

    /// The nearest number of a feature in a range; none where it may not change or no whole number lies there.
    fn clamped(&self, index: usize, value: f32, (low, high): (f32, f32)) -> Option<f32> {
        if !self.is_free(index) || low > high {
            return None;
        }
        let end = if value < low { low } else { high };
        if !FEATURES[index].is_whole {
            return Some(end);
        }
        let feature = &FEATURES[index];
        let exact = feature.scale.invert(end);
        let whole = if value < low {
            (exact - SLACK).ceil()
        } else {
            (exact + SLACK).floor()
        };
        let scaled = feature.encode(whole as f32);
        (low <= scaled && scaled <= high).then_some(scaled)
    }
}

/// Times over the whole range, s, in equal steps of their scale.
fn key_steps() -> impl Iterator<Item = f64> {
    let feature = &FEATURES[C::RemainingS as usize];
    let most = f64::from(feature.encode(feature.max));
    (1..NUM_KEY_STEPS).map(move |number| {
        let share = f64::from(number) / f64::from(NUM_KEY_STEPS);
        feature.scale.invert((most * share) as f32)
    })
}
