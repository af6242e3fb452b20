//! Rules by hand, as trees, from which routers are searched for: those that trees can say, with what they can say besides.
//!
//! A rule is the least of a weighted sum. Beside it a tree may pass over replicas whose believed times are late. What is left
//! over then is refused; where that is not allowed, it goes to the replica that is late already, so that the others stay in time.

use pleach_distill::search::Branch;
use pleach_scheduler::portable_math::exp;
use pleach_scheduler::tree::Tree;
use pleach_serving::llm::{Fleet, SCHEMA};

use crate::error::Error;
use crate::worlds::race::{by_hand, column, nodes, split};

/// What is late for a prompt, over what is late for a short one: less by a slope for each unit of the logarithm of its tokens over
/// these, in steps of a tenth. A long prompt takes the time of many. *Assumed*: the median of Azure's prompts.
const SHORT_TOKENS: f64 = 760.0;
const STEPS: [f64; 4] = [0.35, 0.25, 0.15, 0.05];
/// Late replicas in steps, the latest first. *Assumed.*
const LATE: [f32; 5] = [1.2, 1.5, 2.0, 2.7, 3.5];

/// Ranks of leaves: refusing is 2, a replica in time 20, late ones below (to be refused) or between (to take what is left).
const REFUSE: u32 = 2;
const IN_TIME: u32 = 20;

/// Believed times over their targets and rules that they bound: those of which columns are allowed.
pub(super) fn starts(fleet: &Fleet, without: &[u16]) -> Result<Vec<Tree>, Error> {
    let rules: [(&str, &[(&str, f32)]); 4] = [
        ("turns", &[("turns", -1.0)]),
        ("ttft", &[("ttft_share", 1.0)]),
        ("both", &[("ttft_share", 1.0), ("tpot_share", 1.0)]),
        ("requests", &[("running_requests", 1.0), ("sent_requests", 1.0)]),
    ];
    let beliefs = [
        ("now", ["ttft_now_share", "tpot_now_share"], [0.9, 0.95, 1.0]),
        ("seen", ["ttft_share", "tpot_share"], [0.4, 0.5, 0.7]),
    ];
    let is_allowed = |name: &str| !without.contains(&column(&SCHEMA, name, 0.0).0);
    let mut trees = Vec::new();
    for (rule, weights) in rules {
        if !weights.iter().all(|(name, _)| is_allowed(name)) {
            continue;
        }
        trees.push(by_hand(&SCHEMA, rule, weights, &nodes(&plain(fleet)))?);
        for (words, names, bounds) in beliefs {
            if rule == "requests" || !names.iter().all(|name| is_allowed(name)) {
                continue;
            }
            for bound in bounds {
                for slope in [0.0, 0.1, 0.15] {
                    let root = guarded(fleet, names, bound, slope);
                    let name = format!("{rule} {words} {bound} less {slope}");
                    trees.push(by_hand(&SCHEMA, &name, weights, &nodes(&root))?);
                }
            }
        }
    }
    Ok(trees)
}

/// All replicas alike, refusing never.
fn plain(fleet: &Fleet) -> Branch {
    if fleet.may_refuse {
        when("is_refuse", 0.5, Branch::Leaf(IN_TIME), Branch::Leaf(REFUSE))
    } else {
        // A tree has a split at least; no replica is late by so much.
        when("is_send", 0.5, Branch::Leaf(REFUSE), Branch::Leaf(IN_TIME))
    }
}

/// Replicas in time first, for a long prompt those that are so by more.
fn guarded(fleet: &Fleet, [ttft, tpot]: [&str; 2], bound: f32, slope: f64) -> Branch {
    let late = if fleet.may_refuse {
        Branch::Leaf(0)
    } else {
        let steps = LATE.iter().enumerate().rev();
        steps.fold(Branch::Leaf(3 + LATE.len() as u32), |later, (place, step)| {
            when(tpot, *step, Branch::Leaf(3 + place as u32), later)
        })
    };
    let steps = STEPS.iter().filter(|_| slope > 0.0);
    let in_time = steps.fold(Branch::Leaf(IN_TIME), |lower, below| {
        // The middle of a step says up to which length a replica within it is in time.
        let prompt_s = fleet.pace.prompt_s(SHORT_TOKENS * exp(below / slope));
        let here = when(
            "prompt_s",
            prompt_s as f32,
            Branch::Leaf(IN_TIME),
            Branch::Leaf(0),
        );
        when(tpot, bound - *below as f32 - 0.05, lower, here)
    });
    if fleet.may_refuse {
        let in_time = when(tpot, bound, in_time, Branch::Leaf(0));
        let send = when(ttft, bound, in_time, late);
        when("is_refuse", 0.5, send, Branch::Leaf(REFUSE))
    } else {
        when(tpot, bound, in_time, late)
    }
}

/// A split at a raw value.
fn when(name: &str, raw: f32, up_to: Branch, beyond: Branch) -> Branch {
    split(&SCHEMA, name, raw, up_to, beyond)
}
