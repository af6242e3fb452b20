//! Strongly connected groups of more than one file.

use std::collections::{BTreeMap, BTreeSet};

/// From a file to one that it needs, with the names that it needs of it.
pub type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// The circles: groups of files each of which reaches all others of its group.
pub fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        next.entry(from).or_default().push(to);
    }
    for &start in next.keys() {
        let seen = reached.entry(start).or_default();
        let mut stack = vec![start];
        while let Some(file) = stack.pop() {
            for &to in next.get(file).into_iter().flatten() {
                if seen.insert(to) {
                    stack.push(to);
                }
            }
        }
    }
    let mut grouped = BTreeSet::new();
    let mut found = Vec::new();
    for (&file, seen) in &reached {
        if !seen.contains(file) || grouped.contains(file) {
            continue;
        }
        let back = |other: &&str| reached.get(other).is_some_and(|theirs| theirs.contains(file));
        let circle: BTreeSet<String> = seen.iter().copied().filter(back).map(str::to_owned).collect();
        grouped.extend(seen.iter().copied().filter(back));
        found.push(circle);
    }
    found
}
