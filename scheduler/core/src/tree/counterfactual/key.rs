//! A row that comes to a leaf of the rival's score and has to come first there by its weighted key.

use super::LeafBox;
use super::search::{Found, Search, span};
use crate::features::decision::FEATURES;
use crate::key_weight::weighted_sum;

/// Moves that lower the sum enough.
struct Lowered {
    /// Features that had not changed before.
    num_more: usize,
    price: f64,
    /// Features and where they go, scaled.
    moves: Vec<(usize, f32)>,
}

impl Search<'_> {
    /// Moves features of the key that may move, inside the leaf, until the sum is below the rival's: the fewest more, and of
    /// those the cheapest.
    pub(super) fn lower_the_sum(&self, leaf: &LeafBox, found: &mut Found) -> Option<()> {
        let weights = &self.tree.meta().key_weights;
        let too_much = weighted_sum(weights, &found.row) - self.rival.sum + 1e-6;
        let mut terms: Vec<(usize, f64, f64)> = weights
            .iter()
            .map(|term| (usize::from(term.feature), f64::from(term.weight)))
            .filter(|(index, _)| self.is_free(*index) && !FEATURES[*index].is_whole)
            .map(|(index, weight)| {
                let (low, high) = leaf.ranges[index];
                let end = if weight > 0.0 { low } else { high };
                (index, weight, f64::from(found.row[index] - end).abs())
            })
            .collect();
        // What lowers the sum most for its price comes first.
        let gain = |(index, weight, _): &(usize, f64, f64)| weight.abs() * span(*index);
        terms.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        let mut best: Option<Lowered> = None;
        for set in 1_u32..1 << terms.len() {
            let chosen = terms.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
            let (mut left, mut price, mut moves) = (too_much, 0.0, Vec::new());
            for (_, (index, weight, room)) in chosen {
                let step = (left.max(0.0) / weight.abs()).min(*room);
                left -= step * weight.abs();
                price += step / span(*index);
                let (low, high) = leaf.ranges[*index];
                let to = f64::from(found.row[*index]) - step * weight.signum();
                moves.push((*index, (to as f32).clamp(low, high)));
            }
            let num_more = moves
                .iter()
                .filter(|(index, _)| !found.changed.contains(index))
                .count();
            let is_better = |best: &Lowered| (num_more, price) < (best.num_more, best.price);
            if left <= 1e-9 && best.as_ref().is_none_or(is_better) {
                best = Some(Lowered {
                    num_more,
                    price,
                    moves,
                });
            }
        }
        let Lowered { price, moves, .. } = best?;
        found.cost += price;
        for (index, to) in moves {
            found.row[index] = to;
            if !found.changed.contains(&index) {
                found.changed.push(index);
            }
        }
        Some(())
    }
}
