//! Which of the trees that a search kept is taken: those near the best of their size and below, on lists that the race has not seen.

use std::collections::BTreeMap;
use std::ops::Range;

use pleach_distill::search::{Archive, Entry, Outcome, SearchConfig};
use pleach_scheduler::Planner;

use crate::error::Error;
use crate::judge::Lists;

/// What one of the kept trees is chosen among: all that are within a percent of the best of their size and below.
pub(super) fn candidates(archive: &Archive) -> Vec<&Entry> {
    let near = |entry: &&Entry| {
        let up_to = archive
            .entries()
            .filter(|other| other.draft.size() <= entry.draft.size());
        entry.objective <= up_to.map(|other| other.objective).fold(f64::INFINITY, f64::min) + 0.01
    };
    archive.entries().filter(near).collect()
}

/// The best of each number of leaves, where it is better than all with fewer, smallest first.
pub(super) fn best_of_each_size(judged: Vec<(f64, Entry)>) -> Vec<(f64, Entry)> {
    let mut found: Vec<(f64, Entry)> = Vec::new();
    let mut sizes: BTreeMap<usize, (f64, Entry)> = BTreeMap::new();
    for (objective, entry) in judged {
        let leaves = entry.draft.root.num_leaves();
        let is_better = sizes.get(&leaves).is_none_or(|(other, _)| objective < *other);
        if is_better {
            sizes.insert(leaves, (objective, entry));
        }
    }
    for (objective, entry) in sizes.into_values() {
        if found.last().is_none_or(|(other, _)| objective < *other) {
            found.push((objective, entry));
        }
    }
    found
}

/// Kept trees with their objectives on the lists of the choice. All run on a third of them, and the two that are best there of
/// each number of leaves on all.
pub(super) fn judged(
    entries: &[&Entry],
    planner: impl Fn(usize) -> Result<Box<dyn Planner>, Error> + Sync,
    choice: &Lists,
    config: &SearchConfig,
) -> Result<Vec<(f64, Entry)>, Error> {
    let run = |places: &[usize], lists: Range<usize>| -> Result<Vec<Vec<Outcome>>, Error> {
        let of = |place: &usize| lists.clone().map(move |list| (*place, list)).collect::<Vec<_>>();
        let runs: Vec<(usize, usize)> = places.iter().flat_map(of).collect();
        let outcomes = choice.outcomes(&planner, &runs)?;
        Ok(outcomes
            .chunks(lists.len().max(1))
            .map(<[Outcome]>::to_vec)
            .collect())
    };
    // Lists come in turn, one of each part.
    let num = choice.lists.len();
    let first = num / 3 / choice.parts.len() * choice.parts.len();
    let mut outcomes = run(&(0..entries.len()).collect::<Vec<_>>(), 0..first)?;
    let mut order: Vec<(f64, usize)> = outcomes
        .iter()
        .enumerate()
        .map(|(place, own)| (config.objective(own), place))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut of_size: BTreeMap<usize, usize> = BTreeMap::new();
    order.retain(|(_, place)| {
        let num = of_size
            .entry(entries[*place].draft.root.num_leaves())
            .or_insert(0);
        *num += 1;
        *num <= 2
    });
    let mut left: Vec<usize> = order.into_iter().map(|(_, place)| place).collect();
    left.sort_unstable();
    let rest = run(&left, first..num)?;
    for (place, rest) in left.iter().zip(rest) {
        outcomes[*place].extend(rest);
    }
    Ok(left
        .into_iter()
        .map(|place| (config.objective(&outcomes[place]), entries[place].clone()))
        .collect())
}
