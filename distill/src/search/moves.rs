//! Small changes of a tree.

use pleach_scheduler::policy::TieKey;
use pleach_scheduler::portable_math::exp;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::config::SearchConfig;
use super::draft::{Branch, Draft};
use super::rows::{Rows, rank_of, threshold_at};

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Move {
    /// One threshold moves.
    Threshold,
    /// All thresholds move.
    Thresholds,
    /// A split asks for another feature.
    Feature,
    /// A leaf becomes a split.
    Split,
    /// A split becomes one of its sides.
    Collapse,
    /// A leaf goes to another tier.
    Tier,
    /// Other numbers of jobs are offered.
    Offered,
    /// A feature comes into the key or leaves it, or weighs otherwise.
    Key,
    /// Another order among equal keys.
    TieKey,
}

/// How often each is drawn, per cent. In the experiment thresholds and collapsing were worth most, then new splits, all thresholds,
/// tiers, features and numbers of jobs; keys were not among its moves for trees without one.
const SHARES: [(Move, u32); 9] = [
    (Move::Threshold, 24),
    (Move::Collapse, 10),
    (Move::Split, 15),
    (Move::Thresholds, 8),
    (Move::Tier, 11),
    (Move::Feature, 7),
    (Move::Offered, 5),
    (Move::Key, 18),
    (Move::TieKey, 2),
];

/// A changed tree and how it was changed; none where nothing came of it. One change, with a quarter's chance of one more, and so
/// on.
pub fn changed(
    draft: &Draft,
    rows: &Rows,
    config: &SearchConfig,
    rng: &mut ChaCha8Rng,
) -> Option<(Draft, Vec<Move>)> {
    let mut new = draft.clone();
    let mut moves = Vec::new();
    loop {
        let name = drawn(rng);
        if apply(name, &mut new, rows, config, rng).is_some() {
            moves.push(name);
        }
        if rng.random::<f64>() >= 0.25 {
            break;
        }
    }
    let new = new.settled(rows);
    let num_leaves = new.root.num_leaves();
    let is_new = !moves.is_empty() && new != *draft;
    moves.sort_unstable();
    moves.dedup();
    (is_new && (2..=config.leaves_max).contains(&num_leaves)).then_some((new, moves))
}

fn drawn(rng: &mut ChaCha8Rng) -> Move {
    let total: u32 = SHARES.iter().map(|(_, share)| share).sum();
    let mut draw = rng.random_range(0..total);
    for (name, share) in SHARES {
        if draw < share {
            return name;
        }
        draw -= share;
    }
    Move::Threshold
}

fn apply(
    name: Move,
    draft: &mut Draft,
    rows: &Rows,
    config: &SearchConfig,
    rng: &mut ChaCha8Rng,
) -> Option<()> {
    match name {
        Move::Threshold => {
            let place = pick(&draft.root, true, rng)?;
            move_threshold(&mut draft.root, place, (rows, 0.3), rng)
        }
        Move::Thresholds => {
            let splits = places(&draft.root, true);
            for place in &splits {
                move_threshold(&mut draft.root, *place, (rows, 0.05), rng);
            }
            (!splits.is_empty()).then_some(())
        }
        Move::Feature => {
            let place = pick(&draft.root, true, rng)?;
            let (new_feature, new_threshold) = cut(&draft.root, place, rows, rng)?;
            if let Branch::Split {
                feature, threshold, ..
            } = draft.root.at_mut(place)
            {
                (*feature, *threshold) = (new_feature, new_threshold);
            }
            Some(())
        }
        Move::Split => split(draft, rows, config, rng),
        Move::Collapse => {
            let place = pick(&draft.root, true, rng)?;
            let branch = draft.root.at_mut(place);
            let Branch::Split { left, right, .. } = branch else {
                return None;
            };
            *branch = if rng.random::<bool>() {
                (**left).clone()
            } else {
                (**right).clone()
            };
            Some(())
        }
        Move::Tier => {
            let place = pick(&draft.root, false, rng)?;
            let tier = other_tier(draft, rng);
            *draft.root.at_mut(place) = Branch::Leaf(tier);
            Some(())
        }
        Move::Offered => offer_others(draft, config, rng),
        Move::Key => weigh(draft, rows, config, rng),
        Move::TieKey => {
            draft.tie_key = TieKey::ALL[rng.random_range(0..TieKey::ALL.len())];
            Some(())
        }
    }
}

/// Places of the splits, or of the leaves.
fn places(root: &Branch, of_splits: bool) -> Vec<usize> {
    let is_split = |branch: &Branch| matches!(branch, Branch::Split { .. });
    let nodes = root.nodes();
    let found = (0..nodes.len()).filter(|place| is_split(nodes[*place]) == of_splits);
    found.collect()
}

fn pick(root: &Branch, of_splits: bool, rng: &mut ChaCha8Rng) -> Option<usize> {
    let found = places(root, of_splits);
    (!found.is_empty()).then(|| found[rng.random_range(0..found.len())])
}

/// Moves a threshold by a share of the rows that come to its split: at most `furthest`, small steps as likely as large ones.
fn move_threshold(
    root: &mut Branch,
    place: usize,
    (rows, furthest): (&Rows, f64),
    rng: &mut ChaCha8Rng,
) -> Option<()> {
    /// Logarithm of the least step over the largest: 1 to 60.
    const SPAN: f64 = 4.1;
    let reaching = rows.reaching(&root.path(place));
    let Branch::Split {
        feature, threshold, ..
    } = root.at_mut(place)
    else {
        return None;
    };
    let sorted = rows.sorted(&reaching, *feature);
    let rank = rank_of(&sorted, *threshold);
    let step = furthest * exp(-SPAN * rng.random::<f64>()) * sorted.len() as f64;
    let step = (step.round() as usize).max(1);
    let new = if rng.random::<bool>() {
        rank + step
    } else {
        rank.saturating_sub(step)
    };
    let found = threshold_at(&sorted, new)?;
    let is_new = found != *threshold;
    *threshold = found;
    is_new.then_some(())
}

/// A feature that varies among the rows that come to a place, of a candidate twice as often as of the cluster, and a threshold at any
/// rank of it.
fn cut(root: &Branch, place: usize, rows: &Rows, rng: &mut ChaCha8Rng) -> Option<(u16, f32)> {
    let reaching = rows.reaching(&root.path(place));
    for _ in 0..8 {
        let is_of_rows = rng.random::<f64>() < 2.0 / 3.0;
        let columns = if is_of_rows || rows.of_context().is_empty() {
            rows.of_rows()
        } else {
            rows.of_context()
        };
        let feature = columns[rng.random_range(0..columns.len())];
        let sorted = rows.sorted(&reaching, feature);
        let rank = rng.random_range(0..=sorted.len());
        if let Some(threshold) = threshold_at(&sorted, rank) {
            return Some((feature, threshold));
        }
    }
    None
}

/// A rank that a tree has, or one between two of them, above or below all: ranks are doubled, so that there is room.
fn other_tier(draft: &mut Draft, rng: &mut ChaCha8Rng) -> u32 {
    let last = draft.root.ranks().last().copied().unwrap_or(0);
    draft.root = draft.root.with_ranks(&|rank| 2 * rank + 1);
    rng.random_range(0..=2 * last + 2)
}

fn split(draft: &mut Draft, rows: &Rows, config: &SearchConfig, rng: &mut ChaCha8Rng) -> Option<()> {
    if draft.root.num_leaves() >= config.leaves_max {
        return None;
    }
    let place = pick(&draft.root, false, rng)?;
    let (feature, threshold) = cut(&draft.root, place, rows, rng)?;
    let tier = other_tier(draft, rng);
    let leaf = draft.root.at_mut(place);
    let (old, new) = (leaf.clone(), Branch::Leaf(tier));
    *leaf = if rng.random::<bool>() {
        Branch::split(feature, threshold, old, new)
    } else {
        Branch::split(feature, threshold, new, old)
    };
    Some(())
}

/// Other numbers of jobs under each order, fitting or first.
fn offer_others(draft: &mut Draft, config: &SearchConfig, rng: &mut ChaCha8Rng) -> Option<()> {
    const FITTING: [usize; 9] = [0, 1, 2, 3, 4, 6, 8, 12, 16];
    let needs = &mut draft.needs;
    let before = (needs.heads, needs.fitting);
    if rng.random::<f64>() < 0.7 {
        let allowed: Vec<usize> = FITTING
            .into_iter()
            .filter(|num| *num <= config.fitting_max)
            .collect();
        needs.fitting = allowed[rng.random_range(0..allowed.len())];
    } else {
        needs.heads = rng.random_range(0..=2);
    }
    if needs.heads.max(needs.fitting) == 0 {
        needs.fitting = 1;
    }
    (before != (needs.heads, needs.fitting)).then_some(())
}

/// The feature that orders as a tie key does: half the time a first weight stands beside it and begins where the tree is.
/// None where the rows do not have it.
fn feature_of(tie_key: TieKey, rows: &Rows) -> Option<u16> {
    let name = match tie_key {
        TieKey::Index => return None,
        TieKey::Arrival => "rank_arrival",
        TieKey::ShortestEstimate => "remaining_s",
        TieKey::SmallestGpuTime => "gpu_time_gpu_s",
    };
    rows.schema().joined_index(name).map(|feature| feature as u16)
}

/// To two digits: a key is there to be read.
fn rounded(weight: f64) -> f32 {
    format!("{weight:.1e}").parse().unwrap_or(1.0)
}

/// A feature comes into the key or leaves it, or weighs otherwise.
fn weigh(draft: &mut Draft, rows: &Rows, config: &SearchConfig, rng: &mut ChaCha8Rng) -> Option<()> {
    if config.key_features_max == 0 {
        return None;
    }
    let draw = rng.random::<f64>();
    let num = draft.key.len();
    if num > 0 && draw < 0.15 {
        draft.key.remove(rng.random_range(0..num));
        return Some(());
    }
    if num > 0 && (draw < 0.6 || num == config.key_features_max) {
        // Between a quarter and four times as much, the other way in one of eight.
        let (_, weight) = &mut draft.key[rng.random_range(0..num)];
        let factor = exp((rng.random::<f64>() * 2.0 - 1.0) * 1.4);
        let sign = if rng.random::<f64>() < 0.125 { -1.0 } else { 1.0 };
        *weight = rounded(f64::from(*weight) * factor * sign);
        return Some(());
    }
    let all: Vec<u32> = (0..rows.num_rows() as u32).collect();
    let feature = rows.of_rows()[rng.random_range(0..rows.of_rows().len())];
    let sorted = rows.sorted(&all, feature);
    let (first, last) = (sorted.first().copied()?, sorted.last().copied()?);
    if first == last || draft.key.iter().any(|(other, _)| *other == feature) {
        return None;
    }
    if num == 0
        && config.key_features_max > 1
        && rng.random::<bool>()
        && let Some(own) = feature_of(draft.tie_key, rows).filter(|own| *own != feature)
    {
        draft.key.push((own, 1.0));
    }
    // A hundredth of the largest weight to its double, either way.
    let largest = draft
        .key
        .iter()
        .map(|(_, weight)| f64::from(weight.abs()))
        .fold(0.0, f64::max);
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let size = largest * 2.0 * exp(-5.3 * rng.random::<f64>());
    let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
    draft.key.push((feature, rounded(size * sign)));
    Some(())
}
