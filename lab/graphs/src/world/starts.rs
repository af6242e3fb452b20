//! Rules that a learned policy has to beat, and rules by hand as trees from which it is searched for.

use pleach_experiments::Error;
use pleach_experiments::worlds::{Branch, by_hand, column, nodes};
use pleach_scheduler::tree::Tree;

use crate::columns::SCHEMA;

/// Groups of rules, each tuned alike: weighted fair by Decima's range of powers, caps by hand, the index.
pub(super) fn rivals() -> Vec<Vec<String>> {
    let powers = (-20..=20).map(|tenth| format!("stage-weighted-fair:power={}", f64::from(tenth) / 10.0));
    let caps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0].map(|cap| format!("srpt-cap:cap={cap}"));
    vec![powers.collect(), caps.to_vec(), vec!["stage-index".into()]]
}

/// The keys of rules by hand; the smallest sum goes first. The last term makes equal ones take as many executors as they may.
const KEYS: [(&str, &[(&str, f32)]); 3] = [
    ("least work", &[("job_work_ms", 1.0), ("sent_share", -0.001)]),
    (
        "least work, longest path",
        &[("job_work_ms", 16.0), ("path_ms", -7.0), ("sent_share", -0.01)],
    ),
    (
        "index",
        &[
            ("job_work_ms", 38.0),
            ("supply_share", 8.0),
            ("path_ms", -16.0),
            ("sent_share", -0.01),
        ],
    ),
];

/// Trees over the columns that may be read: the own job, then rows below a cap, runnable stages first in each; past the cap last.
pub(super) fn starts(without: &[u16]) -> Result<Vec<Tree>, Error> {
    let is_allowed = |name: &str| !without.contains(&column(&SCHEMA, name, 0.0).0);
    let when = |name: &str, raw: f32, up_to: Branch, beyond: Branch| match is_allowed(name) {
        true => {
            let (feature, threshold) = column(&SCHEMA, name, raw);
            Branch::split(feature, threshold, up_to, beyond)
        }
        false => up_to,
    };
    let runnable = |waits: u32, runs: u32| when("is_runnable", 0.5, Branch::Leaf(waits), Branch::Leaf(runs));
    let mut trees = Vec::new();
    for (name, weights) in KEYS {
        let weights: Vec<(&str, f32)> = weights.iter().copied().filter(|(name, _)| is_allowed(name)).collect();
        if weights.is_empty() {
            continue;
        }
        for (words, cap, raw) in [
            ("one share", "cap_fair", 1.01),
            ("two shares", "cap_fair", 2.01),
            ("four shares", "cap_fair", 4.01),
            ("a fifth", "after_share", 0.2),
        ] {
            let others = when(cap, raw, runnable(3, 4), Branch::Leaf(1));
            let start = when("is_own", 0.5, others, runnable(5, 6));
            let root = when("is_none", 0.5, start, Branch::Leaf(0));
            trees.push(by_hand(&SCHEMA, &format!("{name}, {words}"), &weights, &nodes(&root))?);
        }
    }
    Ok(trees)
}
