//! Rules that a learned dispatcher has to beat, and rules by hand as trees from which it is searched for.

use pleach_distill::search::Branch;
use pleach_scheduler::tree::Tree;
use pleach_serving::functions::SCHEMA;

use crate::error::Error;
use crate::worlds::race::{by_hand, column, nodes};

/// Bounds for dropping: below so many times the fastest way on. *Ours*: the settings give about 6.5 times at arrival, and beyond
/// that all is dropped.
const SHEDS: [f64; 9] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 5.5, 6.0];

/// ESG as published, with a margin and a bound for dropping.
pub(super) fn esg() -> Vec<String> {
    let mut names = Vec::new();
    for margin in [0.0, 0.1, 0.2, 0.3] {
        for shed in SHEDS {
            names.push(format!("esg:margin={margin}:shed={shed}"));
        }
    }
    names
}

/// All rules, tuned alike. *Ours*, as wide as pays anywhere at 105 to 150 % of the heavy setting.
pub(super) fn rivals() -> Vec<String> {
    let mut names = Vec::new();
    for shed in SHEDS {
        for cold in [true, false] {
            for margin in [0.0, 0.1, 0.2] {
                names.push(format!("esg:edf=true:margin={margin}:shed={shed}:cold={cold}"));
                names.push(format!("edf:margin={margin}:shed={shed}:cold={cold}"));
                names.push(format!(
                    "infless:warm=true:margin={margin}:shed={shed}:cold={cold}"
                ));
                names.push(format!("nexus:margin={margin}:shed={shed}:cold={cold}"));
                names.push(format!("clockwork:margin={margin}:shed={shed}:cold={cold}"));
            }
            names.push(format!("esg:shed={shed}:cold={cold}"));
            names.push(format!("edf:margin=0.5:shed={shed}:cold={cold}"));
            names.push(format!("fast-gshare:warm=true:shed={shed}:cold={cold}"));
            names.push(format!("fastest:shed={shed}:cold={cold}"));
        }
    }
    names
}

/// Rules by hand, as trees: orders and prices, each with a bound for dropping requests, with cold starts and without; those of which
/// a column is left.
pub(super) fn starts(without: &[u16]) -> Result<Vec<Tree>, Error> {
    let is_allowed = |name: &str| !without.contains(&column(&SCHEMA, name, 0.0).0);
    // Where the column may not be read the second one holds.
    let when = |name: &str, raw: f32, up_to: Branch, beyond: Branch| {
        let (feature, threshold) = column(&SCHEMA, name, raw);
        if is_allowed(name) {
            Branch::split(feature, threshold, up_to, beyond)
        } else {
            beyond
        }
    };
    // Dropping below a bound, waiting before what is cold or late, else running.
    let shape = |shed: f32, cold: u32| {
        let in_time = when("end_share", 1.0, Branch::Leaf(5), Branch::Leaf(3));
        let run = when("is_warm", 0.5, Branch::Leaf(cold), in_time);
        let act = when("is_wait", 0.5, run, Branch::Leaf(2));
        let shed = when("slack_share", shed, Branch::Leaf(6), Branch::Leaf(0));
        nodes(&when("is_shed", 0.5, act, shed))
    };
    let rules: [(&str, &[(&str, f32)]); 5] = [
        (
            "least slack, most slices",
            &[("slack_share", 1.0), ("slices", -0.5)],
        ),
        (
            "least slack, least cost",
            &[("slack_share", 1.0), ("cost_share", 0.5)],
        ),
        (
            "least rest, least slice time",
            &[("rest_s", 1.0), ("slice_s", 1.0)],
        ),
        (
            "least left, least slice time",
            &[("left_share", 1.0), ("slice_s", 1.0)],
        ),
        (
            "least rest to come, cost",
            &[("rest_share", 1.0), ("slack_share", 0.5), ("cost_share", 0.5)],
        ),
    ];
    let mut trees = Vec::new();
    for (rule, weights) in &rules {
        let weights: Vec<(&str, f32)> = weights
            .iter()
            .copied()
            .filter(|(name, _)| is_allowed(name))
            .collect();
        if weights.is_empty() {
            continue;
        }
        for (words, shed, cold) in [("", 1.2, 1), ("early", 5.5, 1), ("cold starts", 1.2, 4)] {
            let name = format!("{rule} {words}");
            trees.push(by_hand(&SCHEMA, name.trim(), &weights, &shape(shed, cold))?);
        }
    }
    Ok(trees)
}
