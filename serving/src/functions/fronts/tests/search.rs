//! ESG's published search, beside the fronts that answer the same. The laboratory takes its time by this very file.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::{Configuration, Work};

/// Configurations of the steps of a group, fastest first.
pub(super) fn group(work: &Work, step: usize) -> Vec<&[Configuration]> {
    let steps = work.steps[step].group.iter();
    steps
        .map(|step| work.functions[work.steps[*step].function].pareto())
        .collect()
}

struct Open {
    bound: f64,
    depth: usize,
    latency_us: u64,
    usd: f64,
    first: usize,
}

impl PartialEq for Open {
    fn eq(&self, other: &Open) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Open {}
impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Open) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Open {
    fn cmp(&self, other: &Open) -> Ordering {
        other.bound.total_cmp(&self.bound)
    }
}

/// ESG's search: A* on cost, with one blade on time (even the fastest rest is too late) and one on cost (even the
/// cheapest rest is above the upper bounds of enough others). An upper bound is kept for each first configuration: bounds
/// of paths alone lose all but the cheapest. Also how many paths were taken up.
pub(super) fn astar(
    lists: &[&[Configuration]],
    (batch_max, within_us, num): (usize, u64, usize),
) -> (Vec<(usize, f64)>, usize) {
    let depths = lists.len();
    let (mut fast_us, mut least, mut at_fastest) =
        (vec![0; depths + 1], vec![0.0; depths + 1], vec![0.0; depths + 1]);
    for depth in (0..depths).rev() {
        fast_us[depth] = fast_us[depth + 1] + lists[depth][0].latency_us;
        least[depth] = least[depth + 1]
            + lists[depth]
                .iter()
                .map(Configuration::usd)
                .fold(f64::INFINITY, f64::min);
        at_fastest[depth] = at_fastest[depth + 1] + lists[depth][0].usd();
    }
    let mut upper = vec![f64::INFINITY; lists[0].len()];
    let mut open = BinaryHeap::from([Open {
        bound: least[0],
        depth: 0,
        latency_us: 0,
        usd: 0.0,
        first: 0,
    }]);
    let (mut found, mut taken): (Vec<(usize, f64)>, usize) = (Vec::new(), 0);
    while let Some(path) = open.pop() {
        taken += 1;
        if path.depth == depths {
            if found.iter().all(|(first, _)| *first != path.first) {
                found.push((path.first, path.usd));
                if found.len() == num {
                    break;
                }
            }
            continue;
        }
        let mut sorted = upper.clone();
        sorted.sort_by(f64::total_cmp);
        let most = sorted.get(num - 1).copied().unwrap_or(f64::INFINITY);
        for (place, k) in lists[path.depth].iter().enumerate() {
            if path.depth == 0 && usize::from(k.batch) > batch_max {
                continue;
            }
            let latency_us = path.latency_us + k.latency_us;
            if latency_us + fast_us[path.depth + 1] > within_us {
                break;
            }
            let usd = path.usd + k.usd();
            let bound = usd + least[path.depth + 1];
            if bound > most * (1.0 + 1e-12) {
                continue;
            }
            let first = if path.depth == 0 { place } else { path.first };
            upper[first] = upper[first].min(usd + at_fastest[path.depth + 1]);
            open.push(Open {
                bound,
                depth: path.depth + 1,
                latency_us,
                usd,
                first,
            });
        }
    }
    (found, taken)
}
