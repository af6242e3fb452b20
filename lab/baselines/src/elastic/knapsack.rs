//! How many GPUs of which type each job gets, so that the sum of what they are worth is largest: the multiple-choice knapsack
//! to which the integer programmes of this folder come down.
//!
//! Each item takes one of its choices or nothing. [`exact`] is a dynamic programme over the GPUs that are left of each type:
//! with 16 nodes of one type a matter of microseconds, with three types of 24 GPUs of milliseconds. Where its table would
//! be too large (many types of many GPUs) the programme goes to the solver as it is written (`time_program`), to within a
//! thousandth of the best or 200 nodes of its search; where it has more than 20,000 terms, or finds nothing, it is solved
//! greedily ([`greedy`]): from nothing on, always the step with the largest gain for each further GPU. What is too large is
//! counted, not timed, so plans do not depend on the machine.
//!
//! # Refused
//! Choices worth less than nothing are never taken; NaN is a broken caller.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::shared::linear_program::{Column, Limits, LinearProgram};

/// So many GPUs of a type, and what they are worth to the item beyond having none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    /// Type of the GPUs.
    pub kind: usize,
    /// Number of GPUs, at least 1.
    pub num_gpus: u32,
    /// Worth; above 0, or it is never taken.
    pub value: f64,
}

/// Most entries of the table of [`exact`]: 32 MiB.
const CELLS_MAX: u64 = 1 << 22;
/// Most comparisons of [`exact`]: about half a second.
const STEPS_MAX: u64 = 1 << 30;
/// What the solver may do.
const LIMITS: Limits = Limits {
    terms_max: 20_000,
    nodes_max: 200,
    gap: 1e-3,
};

/// The chosen positions, one for each item: exactly the best if the table is small enough, else what the solver finds, else
/// greedily.
pub(super) fn choose(items: &[Vec<Choice>], capacity: &[u32]) -> Vec<Option<usize>> {
    if is_small(items, capacity) {
        return exact(items, capacity);
    }
    let greedy = greedy(items, capacity);
    let better =
        programme(items, capacity, &greedy).filter(|chosen| value(items, chosen) > value(items, &greedy));
    better.unwrap_or(greedy)
}

/// What a choice is worth in all.
fn value(items: &[Vec<Choice>], chosen: &[Option<usize>]) -> f64 {
    let values = items.iter().zip(chosen);
    values
        .map(|(choices, at)| at.map_or(0.0, |at| choices[at].value))
        .sum()
}

/// The integer programme, from a choice that is known to fit on; none where it is too large or nothing is found.
pub(super) fn programme(
    items: &[Vec<Choice>],
    capacity: &[u32],
    known: &[Option<usize>],
) -> Option<Vec<Option<usize>>> {
    let mut programme = LinearProgram::new();
    let mut of_kind: Vec<Vec<(Column, f64)>> = vec![Vec::new(); capacity.len()];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for (choices, known) in items.iter().zip(known) {
        let mut row = Vec::new();
        for (at, choice) in choices.iter().enumerate() {
            // What does not fit at all, or is worth nothing, is no column.
            let limit = capacity[choice.kind];
            if choice.num_gpus > limit || choice.value <= 0.0 {
                continue;
            }
            let column = programme.integer(choice.value, 0, 1);
            row.push((column, 1.0));
            of_kind[choice.kind].push((column, f64::from(choice.num_gpus) / f64::from(limit)));
            columns.push(at);
            values.push(f64::from(u8::from(*known == Some(at))));
        }
        if !row.is_empty() {
            programme.at_most(row, 1.0);
        }
    }
    for terms in of_kind.into_iter().filter(|terms| !terms.is_empty()) {
        programme.at_most(terms, 1.0);
    }
    let answer = programme.solve_from(Some(&values), LIMITS).ok()?;
    let mut taken = columns.iter().zip(&answer.values);
    let mut left = capacity.to_vec();
    let mut chosen = Vec::with_capacity(items.len());
    for choices in items {
        let num = choices
            .iter()
            .filter(|choice| choice.num_gpus <= capacity[choice.kind] && choice.value > 0.0);
        let here: Vec<usize> = taken
            .by_ref()
            .take(num.count())
            .filter(|(_, value)| **value > 0.5)
            .map(|(at, _)| *at)
            .collect();
        let at = here.first().copied();
        if let Some(at) = at {
            // The solver keeps its rows within a rounding error; a plan must keep them exactly.
            left[choices[at].kind] = left[choices[at].kind].checked_sub(choices[at].num_gpus)?;
        }
        chosen.push(at);
    }
    Some(chosen)
}

fn num_states(capacity: &[u32]) -> u64 {
    let states = capacity.iter().map(|gpus| u64::from(*gpus) + 1);
    states.fold(1, u64::saturating_mul)
}

/// Whether [`exact`] is allowed to solve it.
pub(super) fn is_small(items: &[Vec<Choice>], capacity: &[u32]) -> bool {
    let states = num_states(capacity);
    let cells = states.saturating_mul(items.len() as u64 + 1);
    let choices: u64 = items.iter().map(|choices| choices.len() as u64).sum();
    cells <= CELLS_MAX && states.saturating_mul(choices) <= STEPS_MAX
}

/// The best of all; ties go to nothing, then to the first choice.
pub(super) fn exact(items: &[Vec<Choice>], capacity: &[u32]) -> Vec<Option<usize>> {
    let num_states = num_states(capacity) as usize;
    // One row for each number of items: the most that the first items are worth on so many GPUs of each type.
    let mut table = vec![0.0_f64; num_states * (items.len() + 1)];
    for (row, choices) in items.iter().enumerate() {
        let (before, rest) = table.split_at_mut((row + 1) * num_states);
        let before = &before[row * num_states..];
        let after = &mut rest[..num_states];
        after.copy_from_slice(before);
        for choice in choices.iter().filter(|choice| choice.value > 0.0) {
            let (stride, size) = stride_and_size(capacity, choice.kind);
            let skip = choice.num_gpus as usize * stride;
            if skip >= size {
                continue;
            }
            for block in (0..num_states).step_by(size) {
                let from = &before[block..block + size - skip];
                let to = &mut after[block + skip..block + size];
                for (to, from) in to.iter_mut().zip(from) {
                    *to = to.max(from + choice.value);
                }
            }
        }
    }
    let mut state = num_states - 1;
    let mut chosen = vec![None; items.len()];
    for (row, choices) in items.iter().enumerate().rev() {
        let best = table[(row + 1) * num_states + state];
        if best == table[row * num_states + state] {
            continue;
        }
        let position = choices.iter().position(|choice| {
            let (stride, size) = stride_and_size(capacity, choice.kind);
            let skip = choice.num_gpus as usize * stride;
            choice.value > 0.0
                && state % size >= skip
                && table[row * num_states + state - skip] + choice.value == best
        });
        if let Some(position) = position {
            let (stride, _) = stride_and_size(capacity, choices[position].kind);
            state -= choices[position].num_gpus as usize * stride;
        }
        chosen[row] = position;
    }
    chosen
}

/// Distance of two states that differ by one GPU of a type, and the length of a block in which only this type and
/// those before it change.
fn stride_and_size(capacity: &[u32], kind: usize) -> (usize, usize) {
    let stride = num_states(&capacity[..kind]) as usize;
    (stride, stride * (capacity[kind] as usize + 1))
}

/// A step of one item: to another choice that is worth more.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    gain_per_gpu: f64,
    item: usize,
    choice: usize,
}

impl Eq for Step {}

impl Ord for Step {
    fn cmp(&self, other: &Step) -> Ordering {
        // The largest gain first, of equal gains the first item.
        self.gain_per_gpu
            .total_cmp(&other.gain_per_gpu)
            .then(other.item.cmp(&self.item))
            .then(other.choice.cmp(&self.choice))
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Step) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Always the step with the largest gain for each further GPU, until none fits.
pub(super) fn greedy(items: &[Vec<Choice>], capacity: &[u32]) -> Vec<Option<usize>> {
    let mut left = capacity.to_vec();
    let mut chosen: Vec<Option<usize>> = vec![None; items.len()];
    let step = |item: usize, now: Option<usize>, left: &[u32]| -> Option<Step> {
        let choices = &items[item];
        let present = now.map(|now| choices[now]);
        let value = present.map_or(0.0, |present| present.value);
        let steps = choices.iter().enumerate().filter_map(|(choice, next)| {
            let given_back = present.filter(|present| present.kind == next.kind);
            let given_back = given_back.map_or(0, |present| present.num_gpus);
            let fits = next.num_gpus <= left[next.kind] + given_back;
            let further = next
                .num_gpus
                .saturating_sub(present.map_or(0, |present| present.num_gpus));
            (fits && next.value > value).then(|| Step {
                gain_per_gpu: (next.value - value) / f64::from(further.max(1)),
                item,
                choice,
            })
        });
        steps.max()
    };
    let first = (0..items.len()).filter_map(|item| step(item, None, &left));
    let mut steps: BinaryHeap<Step> = first.collect();
    while let Some(next) = steps.pop() {
        // Others may have taken what it needs since: look again, and queue behind those that are better now.
        let Some(fresh) = step(next.item, chosen[next.item], &left) else {
            continue;
        };
        if fresh.gain_per_gpu < next.gain_per_gpu {
            steps.push(fresh);
            continue;
        }
        if let Some(now) = chosen[fresh.item] {
            left[items[fresh.item][now].kind] += items[fresh.item][now].num_gpus;
        }
        let choice = items[fresh.item][fresh.choice];
        left[choice.kind] -= choice.num_gpus;
        chosen[fresh.item] = Some(fresh.choice);
        steps.extend(step(fresh.item, chosen[fresh.item], &left));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fits(items: &[Vec<Choice>], chosen: &[Option<usize>], capacity: &[u32]) -> bool {
        let mut left: Vec<i64> = capacity.iter().map(|gpus| i64::from(*gpus)).collect();
        for (choices, at) in items.iter().zip(chosen) {
            if let Some(at) = at {
                left[choices[*at].kind] -= i64::from(choices[*at].num_gpus);
            }
        }
        left.iter().all(|left| *left >= 0)
    }

    /// The slow obvious best: every way to choose.
    fn brute_force(items: &[Vec<Choice>], capacity: &[u32]) -> f64 {
        let Some((choices, rest)) = items.split_first() else {
            return 0.0;
        };
        let mut best = brute_force(rest, capacity);
        for choice in choices {
            if choice.num_gpus <= capacity[choice.kind] {
                let mut left = capacity.to_vec();
                left[choice.kind] -= choice.num_gpus;
                best = best.max(choice.value + brute_force(rest, &left));
            }
        }
        best
    }

    fn of(kind: usize, num_gpus: u32, value: f64) -> Choice {
        Choice {
            kind,
            num_gpus,
            value,
        }
    }

    #[test]
    fn the_best_is_not_always_the_best_for_each_gpu() {
        // 4 GPUs. Item 0: 3 GPUs worth 4 (1.33 each); items 1 and 2: 2 GPUs worth 2.5 (1.25 each). Best: 1 and 2, 5.
        let items = vec![vec![of(0, 3, 4.0)], vec![of(0, 2, 2.5)], vec![of(0, 2, 2.5)]];
        assert_eq!(exact(&items, &[4]), [None, Some(0), Some(0)]);
        assert_eq!(greedy(&items, &[4]), [Some(0), None, None]);
    }

    #[test]
    fn types_are_counted_apart() {
        // Two GPUs of type 0, one of type 1. Item 0 is worth 3 on either type with 1 GPU, item 1 only runs on type 1.
        let items = vec![vec![of(1, 1, 3.0), of(0, 1, 2.9)], vec![of(1, 1, 1.0)]];
        assert_eq!(exact(&items, &[2, 1]), [Some(1), Some(0)]);
        assert_eq!(exact(&items, &[0, 1]), [Some(0), None]);
    }

    #[test]
    fn what_does_not_fit_a_table_is_left_to_the_solver_or_to_greed() {
        let items = vec![vec![of(0, 1, 1.0)]; 100];
        assert!(is_small(&items, &[512]) && is_small(&items, &[24, 24, 16]));
        assert!(!is_small(&items, &[512, 512]));
        let chosen = choose(&items, &[512, 512]);
        assert_eq!(value(&items, &chosen), 100.0);
    }

    fn instance() -> impl Strategy<Value = (Vec<Vec<Choice>>, Vec<u32>)> {
        let choice =
            (0_usize..2, 1_u32..6, -1.0_f64..10.0).prop_map(|(kind, gpus, value)| of(kind, gpus, value));
        let items = proptest::collection::vec(proptest::collection::vec(choice, 0..5), 0..6);
        (items, proptest::collection::vec(0_u32..7, 2..=2))
    }

    proptest! {
        #[test]
        fn exact_and_the_solver_find_the_best_of_all_and_greedy_never_better((items, capacity) in instance()) {
            let best = brute_force(&items, &capacity);
            let chosen = exact(&items, &capacity);
            prop_assert!(fits(&items, &chosen, &capacity));
            prop_assert!((value(&items, &chosen) - best).abs() < 1e-9);
            let chosen = greedy(&items, &capacity);
            prop_assert!(fits(&items, &chosen, &capacity));
            prop_assert!(value(&items, &chosen) <= best + 1e-9);
            let chosen = programme(&items, &capacity, &chosen).unwrap();
            prop_assert!(fits(&items, &chosen, &capacity));
            prop_assert!((value(&items, &chosen) - best).abs() <= 2e-3 * best + 1e-6);
        }
    }
}
