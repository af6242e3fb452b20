//! Where a search begins without a teacher: rules that a person would write down, over whatever a cluster offers.
//!
//! The first are classic heuristics as trees: the shortest or smallest job that fits, with and without a reservation, and the job
//! that ends first on a free type (`sjf`, `gpu-time`, `sjf-reserve`, `gpu-time-reserve`, `sjf-best-type`). The others hold back where
//! starting is known to cost: on a type where the job would run much longer, across racks, beside a job that would suffer, with too few cores.

use pleach_distill::search::{Branch, Draft};
use pleach_env::EnvConfig;
use pleach_scheduler::ActionKind;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::policy::{Needs, TieKey};

/// First jobs of each order that fit, offered by a rule. In the experiment behind docs/distilling.md 16 were best on several GPU
/// types; fewer cost less time.
const FITTING: usize = 8;

/// Hand rules for an environment, each with its name.
#[must_use]
pub fn hand_rules(env: &EnvConfig) -> Vec<(String, Draft)> {
    let capabilities = env.sim.capabilities;
    let own = env.candidates.needs();
    let needs = |reserve: bool| {
        let reserves = reserve && capabilities.reservation && own.actions.contains(ActionKind::Reserve);
        let actions = own.actions.without(ActionKind::Preempt);
        Needs {
            heads: 1,
            fitting: FITTING,
            actions: actions.set(ActionKind::Reserve, reserves),
            ..own
        }
    };
    let (shortest, smallest) = (TieKey::ShortestEstimate, TieKey::SmallestGpuTime);
    let mut rules: Vec<(String, Draft)> = Vec::new();
    let mut add = |name: &str, root: Branch, tie_key: TieKey, key: &[(&str, f32)], reserve: bool| {
        let key = key
            .iter()
            .filter_map(|(name, weight)| Some((feature(name)?, *weight)));
        rules.push((
            name.to_string(),
            Draft {
                root,
                key: key.collect(),
                tie_key,
                needs: needs(reserve),
            },
        ));
    };
    let greedy = || split("is_hold", 0.5, leaf(1), leaf(0));
    add("shortest", greedy(), shortest, &[], false);
    add("smallest", greedy(), smallest, &[], false);
    add("shortest, reserve", greedy(), shortest, &[], true);
    add("smallest, reserve", greedy(), smallest, &[], true);
    add(
        "soonest end, best type",
        split("end_gain", 0.0, leaf(1), leaf(0)),
        shortest,
        &[("duration_s", 1.0)],
        false,
    );
    // GavelMulti in the experiment: wait for a faster type where that ends the job a tenth sooner.
    add("waits for its type", waits_for_type(), shortest, &[], false);
    // Also there: room for others before short jobs, within a tier.
    let roomy = [("num_left", -0.73), ("num_gpus", 0.009), ("speed_ratio", 0.22)];
    add(
        "waits for its type, roomy first",
        waits_for_type(),
        shortest,
        &roomy,
        true,
    );
    let short_and_roomy = [("remaining_s", 1.0), ("num_left", -0.1)];
    add(
        "short and roomy, reserve",
        greedy(),
        shortest,
        &short_and_roomy,
        true,
    );
    add(
        "waits for its type, reserve",
        waits_for_type(),
        shortest,
        &[],
        true,
    );
    // HeliosTenants: reserve, tight or long awaited starts, hold, the rest.
    add("tight, reserve first", tight(), shortest, &[], true);
    add("tight, reserve first, smallest", tight(), smallest, &[], true);
    // PhillyGang: short reservations first, long ones and loose young starts after holding.
    add("near reservations", near(), shortest, &[], true);
    add("near reservations, smallest", near(), smallest, &[], true);
    if own.actions.contains(ActionKind::Share) {
        add("beside who hardly suffers", beside(0.9), shortest, &[], false);
        add("beside who suffers little", beside(0.7), shortest, &[], false);
        add(
            "beside who hardly suffers, smallest",
            beside(0.9),
            smallest,
            &[],
            true,
        );
    }
    if own.actions.contains(ActionKind::GrantCores) {
        // As `sjf-tuned`: the cores that it can use, and of these the fewest.
        let tuned = [("duration_s", 1.0), ("cores_ratio", 0.01)];
        let tuned_small = [
            ("gpu_time_gpu_s", 1.0),
            ("demand_rate_ratio", -0.3),
            ("cores_ratio", 0.01),
        ];
        add("cores that it can use", greedy(), shortest, &tuned, false);
        add(
            "cores that it can use, smallest",
            greedy(),
            smallest,
            &tuned_small,
            false,
        );
        add("waits for its cores", waits_for_cores(), shortest, &tuned, false);
        add(
            "waits for its cores, smallest",
            waits_for_cores(),
            smallest,
            &tuned_small,
            true,
        );
    }
    if own.actions.contains(ActionKind::Resize) {
        let sized = split(
            "is_hold",
            0.5,
            split("gpu_efficiency", 0.7, leaf(0), leaf(2)),
            leaf(1),
        );
        add("efficient sizes", sized, shortest, &[("duration_s", 1.0)], false);
        // As `sjf-moldable`: the shortest job, at the size at which it ends soonest among the efficient ones.
        let soonest = [("remaining_s", 1.0), ("duration_s", 0.1)];
        for (name, least) in [("half", 0.5), ("most", 0.8)] {
            let name = format!("{name} as efficient, soonest end");
            add(&name, efficient(least), shortest, &soonest, false);
        }
        add(
            "half as efficient, smallest",
            efficient(0.5),
            smallest,
            &[("gpu_time_gpu_s", 1.0), ("duration_s", 0.3)],
            false,
        );
    }
    rules
}

/// Waits for a faster type where that ends the job a tenth sooner, unless it has waited long.
fn waits_for_type() -> Branch {
    split(
        "end_gain",
        0.1075,
        split("wait_ratio", 2.67, leaf(1), leaf(2)),
        leaf(0),
    )
}

/// Sizes on which a GPU does at least a part `least` of what it can come first, then others.
fn efficient(least: f32) -> Branch {
    split(
        "is_hold",
        0.5,
        split("gpu_efficiency", least, leaf(1), leaf(2)),
        leaf(0),
    )
}

/// Starts with the cores that it can use; with fewer it waits.
fn waits_for_cores() -> Branch {
    split(
        "is_hold",
        0.5,
        split("demand_rate_ratio", 0.95, leaf(0), leaf(2)),
        leaf(1),
    )
}

/// Reserves first, then tight or long awaited starts, then holding, then the rest.
fn tight() -> Branch {
    split(
        "is_reserve",
        0.5,
        split(
            "is_hold",
            0.5,
            split(
                "locality",
                0.96,
                split("wait_ratio", 2.58, leaf(0), leaf(2)),
                leaf(2),
            ),
            leaf(1),
        ),
        leaf(3),
    )
}

/// Near reservations first; far ones with holding; loose young starts last.
fn near() -> Branch {
    split(
        "is_reserve",
        0.5,
        split(
            "is_hold",
            0.5,
            split(
                "locality",
                0.88,
                split("wait_ratio", 2.0, leaf(0), leaf(2)),
                leaf(2),
            ),
            leaf(1),
        ),
        split("wait_to_fit_s", 8.1 * 3600.0, leaf(3), leaf(1)),
    )
}

/// Starts beside a job that keeps at least a part `least` of its speed.
fn beside(least: f32) -> Branch {
    split(
        "is_hold",
        0.5,
        split(
            "is_beside",
            0.5,
            leaf(3),
            split("partner_rate_ratio", least, leaf(0), leaf(2)),
        ),
        leaf(1),
    )
}

fn feature(name: &str) -> Option<u16> {
    let index = FeatureSchema::current().joined_index(name)?;
    u16::try_from(index).ok()
}

/// A split at a raw threshold; without a feature of this name the left side alone.
fn split(name: &str, raw: f32, left: Branch, right: Branch) -> Branch {
    let found = feature(name).and_then(|index| Some((index, FeatureSchema::current().joined(index.into())?)));
    match found {
        Some((index, found)) => Branch::split(index, found.encode(raw), left, right),
        None => left,
    }
}

fn leaf(rank: u32) -> Branch {
    Branch::Leaf(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;
    use pleach_distill::search::Rows;

    #[test]
    fn hand_rules_are_trees_that_every_task_can_run() {
        for task in crate::suite::TASKS {
            let env = env_of(task.id, Some(20), None).unwrap();
            let rules = hand_rules(&env);
            assert!(rules.len() >= 11, "{}", task.id);
            for (name, rule) in rules {
                let tree = rule.tree(&rule.plain_meta(&name), &Rows::default()).unwrap();
                assert_eq!(tree.num_leaves(), rule.root.num_leaves(), "{name}");
                tree.check_against(&name, env.sim.capabilities).unwrap();
            }
        }
    }
}
