//! Growth: exact sums, histograms, the best split first.

use pleach_scheduler::tree::MAX_DEPTH;
use rayon::prelude::*;

use super::bins::midpoint;
use super::sums::Sums;
use super::trend::{Bounds, Trend};
use super::{Binned, CartConfig, Grown, GrownNode, GrownSplit, MAX_LEAVES};

/// Binary digits of a fixed-point weight. `MAX_ROWS` of them stay below 2^53, where floats are exact too.
const DIGITS: i32 = 30;

/// A possible split.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Best {
    gain: f64,
    feature: usize,
    /// Rows in bins up to this one go left.
    bin: usize,
}

/// A leaf that may still be split.
struct Open {
    node: usize,
    /// Its part of the list of rows.
    range: std::ops::Range<usize>,
    depth: usize,
    sums: Sums,
    /// What it may answer.
    bounds: Bounds,
    /// `[features][bins]`
    histogram: Vec<Vec<Sums>>,
    best: Option<Best>,
}

impl Open {
    fn new(
        node: usize,
        range: std::ops::Range<usize>,
        depth: usize,
        (sums, bounds): (Sums, Bounds),
        histogram: Vec<Vec<Sums>>,
        limits: &Limits<'_>,
    ) -> Open {
        Open {
            node,
            range,
            depth,
            best: best_split(&histogram, (sums, bounds), depth, limits),
            sums,
            bounds,
            histogram,
        }
    }
}

/// What a split must respect, in fixed-point numbers.
struct Limits<'a> {
    rows: u32,
    weight: i64,
    gain: f64,
    depth: usize,
    /// `[features]`, or empty: all free.
    trends: &'a [Trend],
}

impl<'a> Limits<'a> {
    fn of(config: &CartConfig, fixed: &Fixed, sums: Sums, trends: &'a [Trend]) -> Limits<'a> {
        let error = fixed.squares - sums.explained();
        Limits {
            rows: config.leaf_rows_min,
            weight: ((sums.weight as f64 * config.leaf_weight_min) as i64).max(1),
            gain: (error * config.gain_min).max(f64::MIN_POSITIVE),
            depth: config.depth_max.min(MAX_DEPTH),
            trends,
        }
    }

    fn trend(&self, feature: usize) -> Trend {
        self.trends.get(feature).copied().unwrap_or_default()
    }

    fn allow(&self, left: Sums, right: Sums) -> bool {
        left.rows.min(right.rows) >= self.rows && left.weight.min(right.weight) >= self.weight
    }
}

/// Grows a tree of at most `leaves_max` leaves. The histograms say between which bins to split; `value` is then asked for
/// the best threshold there, so what is found does not depend on where the edges of the bins happen to lie.
///
/// `trends` says how the answer may move with each feature; empty = as it likes with all.
///
/// # Panics
/// If `target` and `weight` have another length than the rows, `trends` another than the features, or a weight is not above 0.
#[must_use]
pub fn grow(
    data: &Binned,
    value: impl Fn(usize, usize) -> f32 + Sync,
    target: &[f32],
    weight: &[f32],
    leaves_max: usize,
    config: &CartConfig,
    trends: &[Trend],
) -> Grown {
    assert_eq!(target.len(), data.num_rows);
    assert_eq!(weight.len(), data.num_rows);
    assert!(
        trends.is_empty() || trends.len() == data.edges.len(),
        "{} trends",
        trends.len()
    );
    let fixed = Fixed::of(target, weight);
    let mut rows: Vec<u32> = (0..data.num_rows as u32).collect();
    let sums = fixed.total();
    let limits = Limits::of(config, &fixed, sums, trends);
    let mut grown = Grown {
        nodes: vec![fixed.node(sums, Bounds::NONE)],
    };
    let histogram = fixed.histogram(data, &rows);
    let root = (sums, Bounds::NONE);
    let mut open = vec![Open::new(0, 0..rows.len(), 0, root, histogram, &limits)];
    for order in 0..leaves_max.clamp(1, MAX_LEAVES) - 1 {
        let Some((index, best)) = largest_gain(&open) else {
            break;
        };
        let parent = open.remove(index);
        let of_node = &mut rows[parent.range.clone()];
        let split = refine(data, &fixed, &value, of_node, &parent, best, &limits);
        let goes_left = |row: u32| value(row as usize, best.feature) <= split.threshold;
        let middle = parent.range.start + partition(of_node, goes_left);
        let place = grown.nodes.len();
        grown.nodes[parent.node].split = Some(GrownSplit {
            order,
            feature: best.feature,
            threshold: split.threshold,
            left: place,
            right: place + 1,
            gain: split.gain * fixed.gain_unit(),
        });
        let ranges = [parent.range.start..middle, middle..parent.range.end];
        let sums = [split.left, parent.sums.less(split.left)];
        let bounds = parent.bounds.halves(limits.trend(best.feature), sums);
        // Only the smaller side is counted; the other is the rest.
        let smaller = usize::from(ranges[1].len() < ranges[0].len());
        let counted = fixed.histogram(data, &rows[ranges[smaller].clone()]);
        let mut rest = parent.histogram;
        for (rest, counted) in rest.iter_mut().flatten().zip(counted.iter().flatten()) {
            *rest = rest.less(*counted);
        }
        let histograms = if smaller == 0 {
            [counted, rest]
        } else {
            [rest, counted]
        };
        let sides = sums.into_iter().zip(bounds);
        for ((range, side), histogram) in ranges.into_iter().zip(sides).zip(histograms) {
            let node = grown.nodes.len();
            grown.nodes.push(fixed.node(side.0, side.1));
            let depth = parent.depth + 1;
            open.push(Open::new(node, range, depth, side, histogram, &limits));
        }
    }
    grown
}

/// The leaf to split next: the largest gain; among equals the leaf that was made first.
fn largest_gain(open: &[Open]) -> Option<(usize, Best)> {
    let mut chosen: Option<(usize, Best)> = None;
    for (index, leaf) in open.iter().enumerate() {
        if let Some(best) = leaf.best
            && chosen.is_none_or(|(_, other)| best.gain > other.gain)
        {
            chosen = Some((index, best));
        }
    }
    chosen
}

/// Targets and weights as fixed-point numbers.
struct Fixed {
    rows: Vec<Sums>,
    /// Unit of a weight.
    weight_unit: f64,
    /// Unit of weight times target.
    moment_unit: f64,
    /// Sum of weight times target squared, in the unit of [`Sums::explained`].
    squares: f64,
}

impl Fixed {
    fn of(target: &[f32], weight: &[f32]) -> Fixed {
        assert!(
            weight.iter().all(|weight| *weight > 0.0 && weight.is_finite()),
            "weights are above 0"
        );
        assert!(
            target.iter().all(|target| target.is_finite()),
            "targets are finite"
        );
        let moment = |row: usize| f64::from(target[row]) * f64::from(weight[row]);
        let most =
            |values: &mut dyn Iterator<Item = f64>| values.fold(0.0_f64, |most, value| most.max(value.abs()));
        let unit = |most: f64| {
            if most > 0.0 {
                most / 2_f64.powi(DIGITS)
            } else {
                1.0
            }
        };
        let weight_unit = unit(most(&mut weight.iter().map(|weight| f64::from(*weight))));
        let moment_unit = unit(most(&mut (0..target.len()).map(moment)));
        let rows: Vec<Sums> = (0..target.len())
            .map(|row| Sums {
                // A weight that is tiny beside the largest is still a weight.
                weight: ((f64::from(weight[row]) / weight_unit).round() as i64).max(1),
                moment: (moment(row) / moment_unit).round() as i64,
                rows: 1,
            })
            .collect();
        let squares = rows.iter().copied().map(Sums::explained).sum();
        Fixed {
            rows,
            weight_unit,
            moment_unit,
            squares,
        }
    }

    fn total(&self) -> Sums {
        let mut sums = Sums::default();
        for row in &self.rows {
            sums.add(*row);
        }
        sums
    }

    fn histogram(&self, data: &Binned, rows: &[u32]) -> Vec<Vec<Sums>> {
        data.bins
            .par_iter()
            .zip(&data.edges)
            .map(|(bins, edges)| {
                let mut histogram = vec![Sums::default(); edges.len() + 1];
                // A constant feature splits nothing.
                if !edges.is_empty() {
                    for row in rows {
                        histogram[usize::from(bins[*row as usize])].add(self.rows[*row as usize]);
                    }
                }
                histogram
            })
            .collect()
    }

    fn gain_unit(&self) -> f64 {
        self.moment_unit * self.moment_unit / self.weight_unit
    }

    fn node(&self, sums: Sums, bounds: Bounds) -> GrownNode {
        let free = sums.moment as f64 * self.moment_unit / (sums.weight as f64 * self.weight_unit);
        GrownNode {
            mean: match (sums.weight > 0, bounds.cut(sums)) {
                (false, _) => 0.0,
                (true, None) => free,
                (true, Some(answer)) => answer * self.moment_unit / self.weight_unit,
            },
            samples: u64::from(sums.rows),
            weight: sums.weight as f64 * self.weight_unit,
            split: None,
        }
    }
}

/// The split with the largest gain; among equals the first feature, then the lowest threshold.
fn best_split(
    histogram: &[Vec<Sums>],
    (sums, bounds): (Sums, Bounds),
    depth: usize,
    limits: &Limits<'_>,
) -> Option<Best> {
    if depth >= limits.depth || sums.rows < 2 * limits.rows {
        return None;
    }
    let per_feature: Vec<Option<Best>> = histogram
        .par_iter()
        .enumerate()
        .map(|(feature, bins)| {
            let trend = limits.trend(feature);
            let mut best: Option<Best> = None;
            let mut left = Sums::default();
            for (bin, of_bin) in bins[..bins.len() - 1].iter().enumerate() {
                left.add(*of_bin);
                let right = sums.less(left);
                if of_bin.rows == 0 || !limits.allow(left, right) {
                    continue;
                }
                let Some(gain) = bounds.gain(trend, sums, [left, right]) else {
                    continue;
                };
                if gain > limits.gain && best.is_none_or(|best| gain > best.gain) {
                    best = Some(Best { gain, feature, bin });
                }
            }
            best
        })
        .collect();
    let mut best: Option<Best> = None;
    for found in per_feature.into_iter().flatten() {
        if best.is_none_or(|best| found.gain > best.gain) {
            best = Some(found);
        }
    }
    best
}

/// A split with its final threshold.
struct Refined {
    threshold: f32,
    left: Sums,
    gain: f64,
}

/// Looks again at the rows in the two bins beside a split, this time at their values: the best threshold there, in the
/// middle of the gap that the node's rows leave.
fn refine(
    data: &Binned,
    fixed: &Fixed,
    value: &impl Fn(usize, usize) -> f32,
    rows: &[u32],
    parent: &Open,
    best: Best,
    limits: &Limits<'_>,
) -> Refined {
    let Best { feature, bin, .. } = best;
    let trend = limits.trend(feature);
    let of_feature = &parent.histogram[feature];
    // The split was possible, so there are rows on its right.
    let next = (bin + 1..of_feature.len())
        .find(|other| of_feature[*other].rows > 0)
        .unwrap_or(bin);
    let mut near: Vec<(f32, Sums)> = rows
        .iter()
        .filter(|row| {
            let found = usize::from(data.bins[feature][**row as usize]);
            found == bin || found == next
        })
        .map(|row| (value(*row as usize, feature), fixed.rows[*row as usize]))
        .collect();
    // Equal values stay together below, so their order does not matter.
    near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = Sums::default();
    for of_bin in &of_feature[..bin] {
        left.add(*of_bin);
    }
    let mut refined: Option<Refined> = None;
    for pair in near.windows(2) {
        left.add(pair[0].1);
        let right = parent.sums.less(left);
        if pair[0].0 == pair[1].0 || !limits.allow(left, right) {
            continue;
        }
        let Some(gain) = parent.bounds.gain(trend, parent.sums, [left, right]) else {
            continue;
        };
        if refined.as_ref().is_none_or(|refined| gain > refined.gain) {
            refined = Some(Refined {
                threshold: midpoint(pair[0].0, pair[1].0),
                left,
                gain,
            });
        }
    }
    refined.expect("the edge between the two bins is among the thresholds tried")
}

/// Moves the rows that go left to the front; both sides keep their order. Returns how many go left.
fn partition(rows: &mut [u32], goes_left: impl Fn(u32) -> bool) -> usize {
    let right: Vec<u32> = rows.iter().copied().filter(|row| !goes_left(*row)).collect();
    let mut num_left = 0;
    for index in 0..rows.len() {
        if goes_left(rows[index]) {
            rows[num_left] = rows[index];
            num_left += 1;
        }
    }
    rows[num_left..].copy_from_slice(&right);
    num_left
}
