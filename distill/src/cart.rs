//! A regression tree learner: weighted rows, binned features, best split first.
//!
//! Sums are kept as fixed-point integers, so they are exact: a histogram is the parent's less the sibling's without any
//! rounding, and the tree is the same at any number of threads. Features are worked on in parallel and compared in their
//! order. A grown tree remembers the order of its splits, so the trees of all smaller sizes are in it.
//!
//! # Source
//! CART (Breiman et al., 1984) for the criterion; best-first growth: Shi, 2007; histograms with subtraction of the
//! sibling as in LightGBM (Ke et al., NeurIPS'17), from their descriptions.

use pleach_scheduler::error::ConfigError;
use pleach_scheduler::tree::{MAX_DEPTH, Node};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Most rows of one fit; the bound keeps every sum exact.
pub const MAX_ROWS: usize = 1 << 22;
/// Most leaves of one fit.
pub const MAX_LEAVES: usize = 256;
/// Binary digits of a fixed-point weight. `MAX_ROWS` of them stay below 2^53, where floats are exact too.
const DIGITS: i32 = 30;

/// How a tree grows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CartConfig {
    /// Bins of a feature, 2 to 256. A feature with fewer distinct values is split exactly.
    pub bins: usize,
    /// Fewest rows of a leaf, at least 1. *Assumed*.
    pub leaf_rows_min: u32,
    /// Least share of the whole weight in a leaf, 0 to 0.5. *Assumed*.
    pub leaf_weight_min: f64,
    /// Splits must lower the squared error by this share of the root's, 0 to 1.
    pub gain_min: f64,
    /// Most splits on a path, 1 to 64.
    pub depth_max: usize,
}

impl Default for CartConfig {
    fn default() -> CartConfig {
        CartConfig {
            bins: 255,
            leaf_rows_min: 20,
            leaf_weight_min: 1e-4,
            gain_min: 1e-9,
            depth_max: 16,
        }
    }
}

impl CartConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let fail = |key: &str, value: String, allowed: String| {
            Err(ConfigError {
                key: format!("cart.{key}"),
                value,
                allowed,
                hint: "the defaults are a good start".into(),
            })
        };
        if !(2..=256).contains(&self.bins) {
            return fail("bins", self.bins.to_string(), "2 to 256".into());
        }
        if self.leaf_rows_min == 0 {
            return fail("leaf_rows_min", "0".into(), "1 or more".into());
        }
        if !(0.0..=0.5).contains(&self.leaf_weight_min) {
            let value = self.leaf_weight_min.to_string();
            return fail("leaf_weight_min", value, "0 to 0.5".into());
        }
        if !(0.0..=1.0).contains(&self.gain_min) {
            return fail("gain_min", self.gain_min.to_string(), "0 to 1".into());
        }
        if !(1..=MAX_DEPTH).contains(&self.depth_max) {
            return fail(
                "depth_max",
                self.depth_max.to_string(),
                format!("1 to {MAX_DEPTH}"),
            );
        }
        Ok(())
    }
}

/// One node of a grown tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrownNode {
    /// Weighted mean of the targets.
    pub mean: f64,
    /// Number of rows.
    pub samples: u64,
    /// Their weight.
    pub weight: f64,
    /// How it is split; none for a leaf of the largest tree.
    pub split: Option<GrownSplit>,
}

/// A split of a grown tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrownSplit {
    /// 0 for the first split of the tree, then in the order of growth.
    pub order: usize,
    /// The feature.
    pub feature: usize,
    /// Rows with at most this value go left.
    pub threshold: f32,
    /// Place of the left child.
    pub left: usize,
    /// Place of the right child.
    pub right: usize,
    /// By how much the weighted squared error falls.
    pub gain: f64,
}

/// A grown tree, and in it every smaller one.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// The root is first.
    pub nodes: Vec<GrownNode>,
}

impl Grown {
    /// Leaves of the largest tree.
    #[must_use]
    pub fn num_leaves(&self) -> usize {
        self.nodes.len().div_ceil(2)
    }

    /// The tree after the first `num_leaves - 1` splits, as nodes for [`pleach_scheduler::tree::Tree::new`].
    #[must_use]
    pub fn nodes_with(&self, num_leaves: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.write(0, num_leaves, &mut nodes, &mut 0);
        nodes
    }

    fn write(&self, at: usize, num_leaves: usize, nodes: &mut Vec<Node>, num_ids: &mut u32) -> u32 {
        let place = nodes.len();
        let grown = &self.nodes[at];
        let leaf = Node::Leaf {
            id: *num_ids,
            score: grown.mean as f32,
            samples: grown.samples,
            weight: grown.weight,
        };
        nodes.push(leaf);
        match grown.split {
            Some(split) if split.order + 1 < num_leaves => {
                let left = self.write(split.left, num_leaves, nodes, num_ids);
                let right = self.write(split.right, num_leaves, nodes, num_ids);
                nodes[place] = Node::Split {
                    feature: split.feature as u16,
                    threshold: split.threshold,
                    left,
                    right,
                };
            }
            _ => *num_ids += 1,
        }
        place as u32
    }
}

/// Rows with their features in bins.
#[derive(Clone, Debug)]
pub struct Binned {
    /// Upper edge of each bin but the last. `[features][bins - 1]`
    edges: Vec<Vec<f32>>,
    /// `[features][rows]`
    bins: Vec<Vec<u8>>,
    num_rows: usize,
}

impl Binned {
    /// Puts `value(row, feature)`, all finite, into at most `num_bins` bins per feature.
    ///
    /// A feature with more distinct values gets bins of about equally many rows.
    ///
    /// # Panics
    /// If there are more than [`MAX_ROWS`] rows or 256 bins.
    #[must_use]
    pub fn new(
        num_rows: usize,
        num_features: usize,
        num_bins: usize,
        value: impl Fn(usize, usize) -> f32 + Sync,
    ) -> Binned {
        assert!(num_rows <= MAX_ROWS, "{num_rows} rows");
        assert!((2..=256).contains(&num_bins), "{num_bins} bins");
        let (edges, bins) = (0..num_features)
            .into_par_iter()
            .map(|feature| {
                let mut sorted: Vec<f32> = (0..num_rows).map(|row| value(row, feature)).collect();
                sorted.sort_unstable_by(f32::total_cmp);
                let edges = edges_of(&sorted, num_bins);
                drop(sorted);
                let bins = (0..num_rows)
                    .map(|row| {
                        let found = value(row, feature);
                        edges.partition_point(|edge| *edge < found) as u8
                    })
                    .collect();
                (edges, bins)
            })
            .unzip();
        Binned {
            edges,
            bins,
            num_rows,
        }
    }
}

/// Edges between groups of equal values: each between two that are next to each other, at most `num_bins - 1`.
fn edges_of(sorted: &[f32], num_bins: usize) -> Vec<f32> {
    let gaps = || sorted.windows(2).filter(|pair| pair[0] < pair[1]);
    if gaps().count() < num_bins {
        return gaps().map(|pair| midpoint(pair[0], pair[1])).collect();
    }
    let wanted = sorted.len().div_ceil(num_bins);
    let (mut edges, mut last) = (Vec::new(), 0);
    for (index, pair) in sorted.windows(2).enumerate() {
        if pair[0] < pair[1] && index + 1 - last >= wanted {
            edges.push(midpoint(pair[0], pair[1]));
            last = index + 1;
        }
    }
    edges
}

/// A threshold between two values, `low <= threshold < high`: their middle where a float lies there.
fn midpoint(low: f32, high: f32) -> f32 {
    let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
    if middle < high { middle } else { low }
}

/// Sums of some rows, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    weight: i64,
    moment: i64,
    rows: u32,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.weight += other.weight;
        self.moment += other.moment;
        self.rows += other.rows;
    }

    fn less(self, other: Sums) -> Sums {
        Sums {
            weight: self.weight - other.weight,
            moment: self.moment - other.moment,
            rows: self.rows - other.rows,
        }
    }

    /// moment^2 / weight: what the mean of these rows explains.
    fn explained(self) -> f64 {
        let moment = self.moment as f64;
        moment * moment / self.weight as f64
    }
}

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
    /// `[features][bins]`
    histogram: Vec<Vec<Sums>>,
    best: Option<Best>,
}

struct Limits {
    rows: u32,
    weight: i64,
    gain: f64,
    depth: usize,
}

impl Limits {
    fn allow(&self, left: Sums, right: Sums) -> bool {
        left.rows.min(right.rows) >= self.rows && left.weight.min(right.weight) >= self.weight
    }
}

/// Grows a tree of at most `leaves_max` leaves. The histograms say between which bins to split; `value` is then asked for
/// the best threshold there, so what is found does not depend on where the edges of the bins happen to lie.
///
/// # Panics
/// If `target` and `weight` have another length than the rows, or a weight is not above 0.
#[must_use]
pub fn grow(
    data: &Binned,
    value: impl Fn(usize, usize) -> f32 + Sync,
    target: &[f32],
    weight: &[f32],
    leaves_max: usize,
    config: &CartConfig,
) -> Grown {
    assert_eq!(target.len(), data.num_rows);
    assert_eq!(weight.len(), data.num_rows);
    let fixed = Fixed::of(target, weight);
    let mut rows: Vec<u32> = (0..data.num_rows as u32).collect();
    let histogram = fixed.histogram(data, &rows);
    let sums = fixed.total();
    let mut limits = Limits {
        rows: config.leaf_rows_min,
        weight: ((sums.weight as f64 * config.leaf_weight_min) as i64).max(1),
        gain: 0.0,
        depth: config.depth_max.min(MAX_DEPTH),
    };
    limits.gain = fixed.squares - sums.explained();
    limits.gain = (limits.gain * config.gain_min).max(f64::MIN_POSITIVE);
    let mut grown = Grown {
        nodes: vec![fixed.node(sums)],
    };
    let mut open = vec![Open {
        node: 0,
        range: 0..rows.len(),
        depth: 0,
        best: best_split(&histogram, sums, 0, &limits),
        sums,
        histogram,
    }];
    for order in 0..leaves_max.clamp(1, MAX_LEAVES) - 1 {
        // The largest gain; among equals the leaf that was made first.
        let mut chosen: Option<(usize, Best)> = None;
        for (index, leaf) in open.iter().enumerate() {
            if let Some(best) = leaf.best
                && chosen.is_none_or(|(_, other)| best.gain > other.gain)
            {
                chosen = Some((index, best));
            }
        }
        let Some((index, best)) = chosen else { break };
        let parent = open.remove(index);
        let of_node = &mut rows[parent.range.clone()];
        let split = refine(data, &fixed, &value, of_node, &parent, best, &limits);
        let num_left = partition(of_node, |row| {
            value(row as usize, best.feature) <= split.threshold
        });
        let middle = parent.range.start + num_left;
        let (left, right) = (parent.range.start..middle, middle..parent.range.end);
        let left_sums = split.left;
        let right_sums = parent.sums.less(left_sums);
        let is_left_smaller = left.len() <= right.len();
        let smaller = if is_left_smaller {
            left.clone()
        } else {
            right.clone()
        };
        let of_smaller = fixed.histogram(data, &rows[smaller]);
        let mut of_larger = parent.histogram;
        for (larger, smaller) in of_larger.iter_mut().flatten().zip(of_smaller.iter().flatten()) {
            *larger = larger.less(*smaller);
        }
        let (left_histogram, right_histogram) = if is_left_smaller {
            (of_smaller, of_larger)
        } else {
            (of_larger, of_smaller)
        };
        let place = grown.nodes.len();
        grown.nodes[parent.node].split = Some(GrownSplit {
            order,
            feature: best.feature,
            threshold: split.threshold,
            left: place,
            right: place + 1,
            gain: split.gain * fixed.gain_unit(),
        });
        for (node, range, sums, histogram) in [
            (place, left, left_sums, left_histogram),
            (place + 1, right, right_sums, right_histogram),
        ] {
            grown.nodes.push(fixed.node(sums));
            open.push(Open {
                node,
                range,
                depth: parent.depth + 1,
                best: best_split(&histogram, sums, parent.depth + 1, &limits),
                sums,
                histogram,
            });
        }
    }
    grown
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

    fn node(&self, sums: Sums) -> GrownNode {
        GrownNode {
            mean: if sums.weight > 0 {
                sums.moment as f64 * self.moment_unit / (sums.weight as f64 * self.weight_unit)
            } else {
                0.0
            },
            samples: u64::from(sums.rows),
            weight: sums.weight as f64 * self.weight_unit,
            split: None,
        }
    }
}

/// The split with the largest gain; among equals the first feature, then the lowest threshold.
fn best_split(histogram: &[Vec<Sums>], sums: Sums, depth: usize, limits: &Limits) -> Option<Best> {
    if depth >= limits.depth || sums.rows < 2 * limits.rows {
        return None;
    }
    let per_feature: Vec<Option<Best>> = histogram
        .par_iter()
        .enumerate()
        .map(|(feature, bins)| {
            let mut best: Option<Best> = None;
            let mut left = Sums::default();
            for (bin, of_bin) in bins[..bins.len() - 1].iter().enumerate() {
                left.add(*of_bin);
                let right = sums.less(left);
                if of_bin.rows == 0 || !limits.allow(left, right) {
                    continue;
                }
                let gain = left.explained() + right.explained() - sums.explained();
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
    limits: &Limits,
) -> Refined {
    let Best { feature, bin, .. } = best;
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
        let gain = left.explained() + right.explained() - parent.sums.explained();
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn free() -> CartConfig {
        CartConfig {
            bins: 256,
            leaf_rows_min: 1,
            leaf_weight_min: 0.0,
            gain_min: 1e-6,
            ..CartConfig::default()
        }
    }

    fn fit(rows: &[Vec<f32>], target: &[f32], weight: &[f32], leaves: usize, config: &CartConfig) -> Grown {
        let value = |row: usize, feature: usize| rows[row][feature];
        let data = Binned::new(rows.len(), rows[0].len(), config.bins, value);
        grow(&data, value, target, weight, leaves, config)
    }

    /// Weighted squared error of the rows around their mean.
    fn error(rows: &[usize], target: &[f32], weight: &[f32]) -> f64 {
        let total: f64 = rows.iter().map(|row| f64::from(weight[*row])).sum();
        let mean = rows
            .iter()
            .map(|row| f64::from(weight[*row]) * f64::from(target[*row]))
            .sum::<f64>()
            / total;
        rows.iter()
            .map(|row| f64::from(weight[*row]) * (f64::from(target[*row]) - mean).powi(2))
            .sum()
    }

    /// The largest gain of any split of some rows, by trying them all.
    fn slow_gain(rows: &[Vec<f32>], of_node: &[usize], target: &[f32], weight: &[f32]) -> f64 {
        let whole = error(of_node, target, weight);
        let mut best = 0.0_f64;
        for (feature, _) in rows[0].iter().enumerate() {
            for edge in of_node.iter().map(|row| rows[*row][feature]) {
                let (left, right): (Vec<usize>, Vec<usize>) =
                    of_node.iter().partition(|row| rows[**row][feature] <= edge);
                if !right.is_empty() {
                    let gain = whole - error(&left, target, weight) - error(&right, target, weight);
                    best = best.max(gain);
                }
            }
        }
        best
    }

    #[test]
    fn three_steps_are_found_exactly_with_thresholds_in_the_middle_of_the_gaps() {
        let rows: Vec<Vec<f32>> = (0..12).map(|row| vec![0.5, row as f32]).collect();
        let target: Vec<f32> = (0..12).map(|row| [5.0, 1.0, -6.0][row / 4]).collect();
        let grown = fit(&rows, &target, &[1.0; 12], 8, &free());
        assert_eq!(grown.num_leaves(), 3, "nothing is left to split");
        let first = grown.nodes[0].split.unwrap();
        assert_eq!((first.feature, first.threshold), (1, 7.5));
        let second = grown.nodes[first.left].split.unwrap();
        assert_eq!((second.feature, second.threshold), (1, 3.5));
        assert!((grown.nodes[first.right].mean + 6.0).abs() < 1e-6);
        assert_eq!(grown.nodes[second.left].samples, 4);
        // Error before: 4 * (25 + 1 + 36), mean 0; after the first split: 8 rows around 3 with 4 each.
        assert!((first.gain - (248.0 - 32.0)).abs() < 1e-4);
    }

    #[test]
    fn smaller_trees_are_the_first_splits_of_the_larger_one() {
        let rows: Vec<Vec<f32>> = (0..64)
            .map(|row| vec![row as f32, (row * 7 % 64) as f32])
            .collect();
        let target: Vec<f32> = (0..64).map(|row| ((row * row) % 17) as f32).collect();
        let whole = fit(&rows, &target, &[1.0; 64], 16, &free());
        for leaves in 1..=16 {
            let part = fit(&rows, &target, &[1.0; 64], leaves, &free());
            assert_eq!(whole.nodes_with(leaves), part.nodes_with(leaves));
            assert_eq!(whole.nodes_with(leaves).len(), 2 * leaves - 1);
        }
    }

    #[test]
    fn leaves_respect_their_bounds() {
        let rows: Vec<Vec<f32>> = (0..40).map(|row| vec![row as f32]).collect();
        let mut target = vec![0.0; 40];
        target[0] = 100.0;
        let config = CartConfig {
            leaf_rows_min: 5,
            ..free()
        };
        let grown = fit(&rows, &target, &[1.0; 40], 8, &config);
        assert!(grown.nodes.iter().all(|node| node.samples >= 5));
        let config = CartConfig {
            depth_max: 1,
            ..free()
        };
        assert_eq!(fit(&rows, &target, &[1.0; 40], 8, &config).num_leaves(), 2);
        let config = CartConfig {
            leaf_weight_min: 0.3,
            ..free()
        };
        let grown = fit(&rows, &target, &[1.0; 40], 8, &config);
        assert!(grown.nodes.iter().all(|node| node.weight >= 12.0));
    }

    #[test]
    fn many_values_share_bins_of_about_equal_size() {
        let rows: Vec<f32> = (0..10_000).map(|row| (row as f32).sqrt()).collect();
        let edges = edges_of(&rows, 16);
        assert_eq!(edges.len(), 15);
        let counts: Vec<usize> = edges
            .iter()
            .map(|edge| rows.partition_point(|value| value <= edge))
            .collect();
        assert!(counts.windows(2).all(|pair| pair[1] - pair[0] == 625));
        let mut spiked = vec![0.0; 5000];
        spiked.extend((0..5000).map(|value| value as f32));
        assert!(edges_of(&spiked, 16).len() < 16);
    }

    #[test]
    fn a_threshold_between_neighbouring_floats_still_separates_them() {
        let low = 0.1_f32;
        let high = f32::from_bits(low.to_bits() + 1);
        let middle = midpoint(low, high);
        assert!(low <= middle && middle < high);
    }

    #[test]
    fn the_tree_is_the_same_at_any_number_of_threads() {
        let rows: Vec<Vec<f32>> = (0..3000_u32)
            .map(|row| {
                (0..9)
                    .map(|feature| (row.wrapping_mul(2_654_435_761).rotate_left(feature) >> 8) as f32 / 1e6)
                    .collect()
            })
            .collect();
        let target: Vec<f32> = rows
            .iter()
            .map(|row| (row[0] * 3.0).sin() + row[4] * 0.1)
            .collect();
        let weight: Vec<f32> = rows.iter().map(|row| 0.1 + row[7] / 20.0).collect();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| fit(&rows, &target, &weight, 32, &CartConfig::default()))
        };
        let one = with(1);
        assert_eq!(one.num_leaves(), 32);
        assert_eq!(one, with(3));
        assert_eq!(one, with(8));
    }

    proptest! {
        #[test]
        fn every_split_gains_as_much_as_the_best_that_a_full_search_finds(
            rows in prop::collection::vec((prop::collection::vec(0..8_u8, 3), -3.0..3.0_f32, 0.05..1.5_f32), 2..40),
        ) {
            let target: Vec<f32> = rows.iter().map(|row| row.1).collect();
            let weight: Vec<f32> = rows.iter().map(|row| row.2).collect();
            let features: Vec<Vec<f32>> =
                rows.iter().map(|row| row.0.iter().map(|value| f32::from(*value) / 8.0).collect()).collect();
            let grown = fit(&features, &target, &weight, 8, &free());
            let mut of_node = vec![Vec::new(); grown.nodes.len()];
            of_node[0] = (0..rows.len()).collect::<Vec<usize>>();
            let scale = error(&of_node[0], &target, &weight).max(1e-3);
            for (place, node) in grown.nodes.iter().enumerate() {
                let here = std::mem::take(&mut of_node[place]);
                prop_assert_eq!(node.samples as usize, here.len());
                let best = slow_gain(&features, &here, &target, &weight);
                match node.split {
                    Some(split) => {
                        prop_assert!((split.gain - best).abs() <= 1e-5 * scale, "{} but {best}", split.gain);
                        for row in here {
                            let side = if features[row][split.feature] <= split.threshold { split.left } else { split.right };
                            of_node[side].push(row);
                        }
                    }
                    None => prop_assert!(grown.num_leaves() == 8 || best <= 2e-6 * scale + 1e-9, "missed {best}"),
                }
            }
        }
    }
}
