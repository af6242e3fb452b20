//! Which jobs are paired so that most gets done: a heavy matching of jobs of a few kinds.
//!
//! Jobs of one kind (class and GPU memory) are interchangeable, so pairs of kinds are matched, as many as there are: the
//! heaviest first, which gives at least half of the best sum, and then partners are exchanged between pairs of kinds as
//! long as the sum grows. Limits are counted, so the result is the same on every machine.

use std::collections::BTreeMap;

use pleach_scheduler::JobId;
use pleach_scheduler::cluster::Cluster;

/// Kinds that are matched, those of the first jobs; jobs of further kinds stay alone. *Assumed.*
const KINDS_MAX: usize = 64;
/// Rounds of exchanges at most. *Assumed.*
const ROUNDS_MAX: usize = 16;

/// Matched kinds and how many pairs of them, heaviest first. `weight` is the gain of a pair, above 0 where it is worth while;
/// it is symmetric. `counts` are the jobs of each kind.
pub(super) fn match_kinds(
    counts: &[usize],
    weight: impl Fn(usize, usize) -> f64,
) -> Vec<(usize, usize, usize)> {
    let num_kinds = counts.len();
    let weights: Vec<Vec<f64>> = (0..num_kinds)
        .map(|one| (0..num_kinds).map(|other| weight(one, other)).collect())
        .collect();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for one in 0..num_kinds {
        edges.extend((one..num_kinds).map(|other| (one, other)));
    }
    edges.retain(|(one, other)| weights[*one][*other] > 0.0);
    edges.sort_by(|a, b| weights[b.0][b.1].total_cmp(&weights[a.0][a.1]).then(a.cmp(b)));
    let mut left = counts.to_vec();
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (one, other) in edges {
        let num = if one == other {
            left[one] / 2
        } else {
            left[one].min(left[other])
        };
        if num > 0 {
            left[one] -= num;
            left[other] -= num;
            pairs.insert((one, other), num);
        }
    }
    for _ in 0..ROUNDS_MAX {
        if !exchange(&mut pairs, &weights) {
            break;
        }
    }
    let mut matched: Vec<(usize, usize, usize)> =
        pairs.into_iter().map(|((a, b), num)| (a, b, num)).collect();
    matched.sort_by(|x, y| weights[y.0][y.1].total_cmp(&weights[x.0][x.1]).then(x.cmp(y)));
    matched
}

/// Exchanges partners wherever two pairs of kinds do more the other way round; whether any did.
fn exchange(pairs: &mut BTreeMap<(usize, usize), usize>, weights: &[Vec<f64>]) -> bool {
    let kinds: Vec<(usize, usize)> = pairs.keys().copied().collect();
    let mut changed = false;
    for (position, first) in kinds.iter().enumerate() {
        for second in &kinds[position..] {
            let ways = [
                ((first.0, second.0), (first.1, second.1)),
                ((first.0, second.1), (first.1, second.0)),
            ];
            let (has_first, has_second) = (pairs[first], pairs[second]);
            let num = if first == second {
                has_first / 2
            } else {
                has_first.min(has_second)
            };
            let now = weights[first.0][first.1] + weights[second.0][second.1];
            let of = |way: &((usize, usize), (usize, usize))| {
                let parts = [weights[way.0.0][way.0.1], weights[way.1.0][way.1.1]];
                if parts[0] > 0.0 && parts[1] > 0.0 {
                    parts[0] + parts[1]
                } else {
                    f64::NEG_INFINITY
                }
            };
            let best = if of(&ways[1]) > of(&ways[0]) {
                ways[1]
            } else {
                ways[0]
            };
            if num == 0 || of(&best) <= now + 1e-9 {
                continue;
            }
            changed = true;
            for (key, takes) in [(*first, true), (*second, true), (best.0, false), (best.1, false)] {
                let count = pairs.entry((key.0.min(key.1), key.0.max(key.1))).or_insert(0);
                *count = if takes { *count - num } else { *count + num };
            }
        }
    }
    pairs.retain(|_, num| *num > 0);
    changed
}

/// Pairs of jobs, and those that stay alone; jobs of a kind are taken in their order. `gain` of a pair is above 0 where the two
/// had better share.
pub(super) fn pair_up(
    cluster: &Cluster,
    jobs: &[JobId],
    mut gain: impl FnMut(JobId, JobId) -> f64,
) -> Vec<(JobId, Option<JobId>)> {
    let mut kinds: Vec<((u16, u64), Vec<JobId>)> = Vec::new();
    let mut alone = Vec::new();
    let mut number: BTreeMap<(u16, u64), usize> = BTreeMap::new();
    for &id in jobs {
        let request = &cluster.job(id).request;
        let key = (request.class.0, request.resources.gpu_memory_gib.to_bits());
        match number.get(&key) {
            Some(kind) => kinds[*kind].1.push(id),
            None if kinds.len() < KINDS_MAX => {
                number.insert(key, kinds.len());
                kinds.push((key, vec![id]));
            }
            None => alone.push(id),
        }
    }
    let counts: Vec<usize> = kinds.iter().map(|kind| kind.1.len()).collect();
    let mut gains = vec![vec![0.0; kinds.len()]; kinds.len()];
    for one in 0..kinds.len() {
        for other in one..kinds.len() {
            let (a, b) = (
                kinds[one].1[0],
                *kinds[other].1.last().unwrap_or(&kinds[one].1[0]),
            );
            let value = if a == b { 0.0 } else { gain(a, b) };
            gains[one][other] = value;
            gains[other][one] = value;
        }
    }
    let mut queues: Vec<std::collections::VecDeque<JobId>> =
        kinds.into_iter().map(|kind| kind.1.into()).collect();
    let mut groups = Vec::new();
    for (one, other, num) in match_kinds(&counts, |one, other| gains[one][other]) {
        for _ in 0..num {
            if let (Some(a), Some(b)) = (queues[one].pop_front(), queues[other].pop_front()) {
                groups.push((a, Some(b)));
            }
        }
    }
    alone.extend(queues.into_iter().flatten());
    groups.extend(alone.into_iter().map(|id| (id, None)));
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(pairs: &[(usize, usize, usize)], weights: &[Vec<f64>]) -> f64 {
        pairs
            .iter()
            .map(|(a, b, num)| weights[*a][*b] * *num as f64)
            .sum()
    }

    #[test]
    fn partners_are_exchanged_where_the_heaviest_pair_first_is_not_best() {
        // Kinds 0 to 3, one job each. Heaviest first: 0-1 (10) and 2-3 (1), 11 in all; 0-2 and 1-3 give 9 + 9.
        let mut weights = vec![vec![0.0; 4]; 4];
        for (a, b, weight) in [(0, 1, 10.0), (2, 3, 1.0), (0, 2, 9.0), (1, 3, 9.0)] {
            weights[a][b] = weight;
            weights[b][a] = weight;
        }
        let pairs = match_kinds(&[1; 4], |a, b| weights[a][b]);
        assert_eq!(pairs, [(0, 2, 1), (1, 3, 1)]);
        // Ten of each: the same, ten times. Pairs of one kind with itself need two.
        assert_eq!(
            match_kinds(&[10; 4], |a, b| weights[a][b]),
            [(0, 2, 10), (1, 3, 10)]
        );
        assert_eq!(match_kinds(&[5], |_, _| 1.0), [(0, 0, 2)]);
        assert_eq!(match_kinds(&[5], |_, _| 0.0), []);
    }

    /// The best sum, by trying all.
    fn best(counts: &mut [usize], weights: &[Vec<f64>]) -> f64 {
        let Some(first) = counts.iter().position(|count| *count > 0) else {
            return 0.0;
        };
        counts[first] -= 1;
        let mut most = best(counts, weights);
        for other in 0..counts.len() {
            if counts[other] > 0 && weights[first][other] > 0.0 {
                counts[other] -= 1;
                most = most.max(weights[first][other] + best(counts, weights));
                counts[other] += 1;
            }
        }
        counts[first] += 1;
        most
    }

    proptest! {
        #[test]
        fn a_matching_uses_nobody_twice_and_does_at_least_half_of_the_best(
            counts in prop::collection::vec(0_usize..3, 4), cells in prop::collection::vec(-0.5_f64..1.0, 16),
        ) {
            let weights: Vec<Vec<f64>> = (0..4)
                .map(|a: usize| (0..4).map(|b: usize| cells[a.min(b) * 4 + a.max(b)]).collect())
                .collect();
            let pairs = match_kinds(&counts, |a, b| weights[a][b]);
            let mut used = [0; 4];
            for (a, b, num) in &pairs {
                prop_assert!(weights[*a][*b] > 0.0);
                used[*a] += num;
                used[*b] += num;
            }
            prop_assert!(used.iter().zip(&counts).all(|(used, count)| used <= count));
            let (found, best) = (sum(&pairs, &weights), best(&mut counts.clone(), &weights));
            prop_assert!(found >= best / 2.0 - 1e-9 && found <= best + 1e-9, "{found} of {best}");
        }
    }
}
