//! The fluid machine of the lower bounds: one machine that is shared as finely as one likes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A job as the bounds see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Submission, s from the first one.
    pub(super) release_s: f64,
    /// Least time that it holds its gang, s.
    pub(super) span_s: f64,
    /// Least capacity x time that it uses up.
    pub(super) area: f64,
}

/// Which job the machine works on.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// The one with the smallest area left.
    LeastLeft,
    /// The one with the smallest area as a whole.
    Smallest,
}

/// When the machine has worked off everything, s. `pieces` are ordered by release.
pub(super) fn drained_s(pieces: &[Piece], capacity: f64) -> f64 {
    pieces.iter().fold(0.0, |end: f64, piece| {
        end.max(piece.release_s) + piece.area / capacity
    })
}

/// Lower bound on the sum of completion less release, s. `pieces` are ordered by release.
pub(super) fn least_flow_s(pieces: &[Piece], capacity: f64) -> f64 {
    let (mut sum_s, mut from, mut end_s) = (0.0, 0, 0.0_f64);
    for (at, piece) in pieces.iter().enumerate() {
        if piece.release_s >= end_s && at > from {
            sum_s += least_flow_of_period_s(&pieces[from..at], capacity);
            from = at;
        }
        end_s = end_s.max(piece.release_s) + piece.area / capacity;
    }
    sum_s + least_flow_of_period_s(&pieces[from..], capacity)
}

/// As [`least_flow_s`] for jobs between two idle times of the machine.
fn least_flow_of_period_s(pieces: &[Piece], capacity: f64) -> f64 {
    let alone_s: f64 = pieces.iter().map(|piece| piece.span_s).sum();
    if pieces.len() < 2 {
        return alone_s;
    }
    [Rule::LeastLeft, Rule::Smallest]
        .into_iter()
        .map(|rule| best_split_s(pieces, capacity, rule))
        .fold(alone_s, f64::max)
}

/// Rounds of [`best_split_s`]: the first few bring nearly all. *Assumed*.
const ROUNDS_MAX: usize = 4;

/// The best bound over a few splits of the jobs into those on the machine and those that count for their span.
fn best_split_s(pieces: &[Piece], capacity: f64, rule: Rule) -> f64 {
    let mut on_machine: Vec<usize> = (0..pieces.len()).collect();
    let (mut off_s, mut best_s) = (0.0, 0.0_f64);
    for _ in 0..ROUNDS_MAX {
        let flow_s = flows_s(pieces, &on_machine, capacity, rule);
        best_s = best_s.max(off_s + flow_s.iter().sum::<f64>());
        let before = on_machine.len();
        let mut flows = flow_s.iter();
        on_machine.retain(|index| {
            let span_s = pieces[*index].span_s;
            let stays = flows.next().is_some_and(|flow_s| *flow_s >= span_s);
            off_s += if stays { 0.0 } else { span_s };
            stays
        });
        if on_machine.len() == before {
            break;
        }
    }
    best_s
}

/// What each of the jobs contributes under a rule, s: its flow time, or by its mean busy time M its M - r + e/2.
/// `[on_machine]`
fn flows_s(pieces: &[Piece], on_machine: &[usize], capacity: f64, rule: Rule) -> Vec<f64> {
    let mut flow_s = vec![0.0; on_machine.len()];
    let mut left: Vec<f64> = on_machine.iter().map(|index| pieces[*index].area).collect();
    // Positive floats are ordered as their bits are.
    let mut waiting: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let (mut now_s, mut next) = (0.0_f64, 0);
    loop {
        while next < on_machine.len() && (pieces[on_machine[next]].release_s <= now_s || waiting.is_empty()) {
            now_s = now_s.max(pieces[on_machine[next]].release_s);
            waiting.push(Reverse((left[next].to_bits(), next)));
            next += 1;
        }
        let Some(Reverse((key, at))) = waiting.pop() else {
            return flow_s;
        };
        let piece = &pieces[on_machine[at]];
        let until_s = on_machine
            .get(next)
            .map_or(f64::INFINITY, |index| pieces[*index].release_s);
        let work_s = (left[at] / capacity).min(until_s - now_s);
        let done = now_s + left[at] / capacity <= until_s;
        if rule == Rule::Smallest && piece.area > 0.0 {
            let part = work_s * capacity / piece.area;
            flow_s[at] += part * (now_s + work_s / 2.0 - piece.release_s);
        }
        now_s = if done { now_s + work_s } else { until_s };
        if done {
            flow_s[at] += match rule {
                Rule::LeastLeft => now_s - piece.release_s,
                Rule::Smallest => piece.span_s / 2.0,
            };
        } else {
            left[at] -= work_s * capacity;
            let key = if rule == Rule::LeastLeft {
                left[at].max(0.0).to_bits()
            } else {
                key
            };
            waiting.push(Reverse((key, at)));
        }
    }
}
