//! Rules that a learned policy has to beat, and rules by hand as trees from which it is searched for.

use pleach_experiments::Error;
use pleach_experiments::worlds::{Branch, by_hand, column, nodes};
use pleach_scheduler::tree::Tree;

use crate::columns::SCHEMA;

/// Groups of rules, each tuned alike: caps by hand and the index; weighted fair by Decima's range of powers.
pub(super) fn rivals() -> Vec<Vec<String>> {
    let caps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0].map(|cap| format!("srpt-cap:cap={cap}"));
    let ours = caps.into_iter().chain(["stage-index".to_string()]);
    let powers = (-20..=20).map(|tenth| format!("stage-weighted-fair:power={}", f64::from(tenth) / 10.0));
    vec![ours.collect(), powers.collect()]
}

/// The keys of rules by hand; the smallest sum goes first, and of equal ones what sends the most executors. The weights of the second
/// are the index's: a third of the work makes up for the executors' way, and nearly a half for a stage that cannot run yet.
const KEYS: [(&str, &[(&str, f32)]); 3] = [
    (
        "own job, least work",
        &[("is_own", -20.0), ("is_runnable", -1.0), ("job_work_ms", 41.4)],
    ),
    (
        "least work",
        &[("is_own", -3.27), ("is_runnable", -2.23), ("job_work_ms", 38.7)],
    ),
    (
        "least work, few executors",
        &[
            ("is_own", -3.27),
            ("is_runnable", -2.23),
            ("job_work_ms", 38.7),
            ("supply_share", 6.0),
        ],
    ),
];

/// Trees over the columns that may be read: rows of the own job and below a cap first, past the cap last.
pub(super) fn starts(without: &[u16]) -> Result<Vec<Tree>, Error> {
    let is_allowed = |name: &str| !without.contains(&column(&SCHEMA, name, 0.0).0);
    let when = |name: &str, raw: f32, up_to: Branch, beyond: Branch| match is_allowed(name) {
        true => {
            let (feature, threshold) = column(&SCHEMA, name, raw);
            Branch::split(feature, threshold, up_to, beyond)
        }
        false => up_to,
    };
    let mut trees = Vec::new();
    for (name, weights) in KEYS {
        let weights: Vec<(&str, f32)> = weights
            .iter()
            .copied()
            .filter(|(name, _)| is_allowed(name))
            .collect();
        if weights.is_empty() {
            continue;
        }
        for (words, cap, raw) in [
            ("one share", "cap_fair", 1.01),
            ("two shares", "cap_fair", 2.01),
            ("half a root", "cap_root", 0.51),
            ("three quarters of a root", "cap_root", 0.76),
            ("a root", "cap_root", 1.11),
        ] {
            let others = when(cap, raw, Branch::Leaf(2), Branch::Leaf(1));
            let start = when("is_own", 0.5, others, Branch::Leaf(2));
            let root = when("is_none", 0.5, start, Branch::Leaf(0));
            trees.push(by_hand(
                &SCHEMA,
                &format!("{name}, {words}"),
                &weights,
                &nodes(&root),
            )?);
        }
    }
    Ok(trees)
}
