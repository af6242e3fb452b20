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

/// Hand rules for an environment, each with its name; where GPUs are dealt by their passes also such as look at service.
#[must_use]
pub fn hand_rules(env: &EnvConfig, deals: bool) -> Vec<(String, Draft)> {
    let mut rules = Rules {
        env,
        found: Vec::new(),
    };
    rules.of_any_cluster();
    if deals {
        rules.of_deals();
    }
    let offered = env.candidates.needs().actions;
    if offered.contains(ActionKind::Share) {
        rules.of_sharing();
    }
    if offered.contains(ActionKind::GrantCores) {
        rules.of_cores();
    }
    if offered.contains(ActionKind::Sizes) {
        rules.of_sizes();
    }
    rules.found
}

/// Rules as they are written down.
struct Rules<'a> {
    env: &'a EnvConfig,
    found: Vec<(String, Draft)>,
}

const SHORTEST: TieKey = TieKey::ShortestEstimate;
const SMALLEST: TieKey = TieKey::SmallestGpuTime;

impl Rules<'_> {
    fn needs(&self, reserve: bool) -> Needs {
        let own = self.env.candidates.needs();
        let capabilities = self.env.sim.capabilities;
        let reserves =
            reserve && capabilities.can(ActionKind::Reserve) && own.actions.contains(ActionKind::Reserve);
        let actions = own.actions.without(ActionKind::Preempt);
        Needs {
            heads: 1,
            fitting: FITTING,
            actions: actions.set(ActionKind::Reserve, reserves),
            ..own
        }
    }

    fn add(&mut self, name: &str, root: Branch, tie_key: TieKey, key: &[(&str, f32)], reserve: bool) {
        let key = key
            .iter()
            .filter_map(|(name, weight)| Some((feature(name)?, *weight)));
        let draft = Draft {
            root,
            key: key.collect(),
            tie_key,
            needs: self.needs(reserve),
        };
        self.found.push((name.to_string(), draft));
    }

    fn of_any_cluster(&mut self) {
        self.add("shortest", greedy(), SHORTEST, &[], false);
        self.add("smallest", greedy(), SMALLEST, &[], false);
        self.add("shortest, reserve", greedy(), SHORTEST, &[], true);
        self.add("smallest, reserve", greedy(), SMALLEST, &[], true);
        let by_end = split("end_gain", 0.0, leaf(1), leaf(0));
        let soonest = [("duration_s", 1.0)];
        self.add("soonest end, best type", by_end, SHORTEST, &soonest, false);
        // GavelMulti in the experiment: wait for a faster type where that ends the job a tenth sooner.
        self.add("waits for its type", waits_for_type(), SHORTEST, &[], false);
        // Also there: room for others before short jobs, within a tier.
        let roomy = [("num_left", -0.73), ("num_gpus", 0.009), ("speed_ratio", 0.22)];
        let name = "waits for its type, roomy first";
        self.add(name, waits_for_type(), SHORTEST, &roomy, true);
        let short_and_roomy = [("remaining_s", 1.0), ("num_left", -0.1)];
        let name = "short and roomy, reserve";
        self.add(name, greedy(), SHORTEST, &short_and_roomy, true);
        let name = "waits for its type, reserve";
        self.add(name, waits_for_type(), SHORTEST, &[], true);
        // HeliosTenants: reserve, tight or long awaited starts, hold, the rest.
        self.add("tight, reserve first", tight(), SHORTEST, &[], true);
        self.add("tight, reserve first, smallest", tight(), SMALLEST, &[], true);
        // PhillyGang: short reservations first, long ones and loose young starts after holding.
        self.add("near reservations", near(), SHORTEST, &[], true);
        self.add("near reservations, smallest", near(), SMALLEST, &[], true);
    }

    /// Least attained service for each GPU, as `las-deal` has it (there ln of service and gang, here log10, scaled), on fast types and
    /// tight seats first.
    fn of_deals(&mut self) {
        let served = [
            ("attained_gpu_s", 1.0),
            ("num_gpus", -0.0625),
            ("speed_ratio", -0.2),
            ("locality", -0.1),
        ];
        self.add("least served", greedy(), TieKey::Arrival, &served, false);
        let name = "least served, waits for its type";
        self.add(name, waits_for_type(), TieKey::Arrival, &served, false);
        let served_and_short = [
            ("attained_gpu_s", 1.0),
            ("remaining_s", 0.3),
            ("speed_ratio", -0.2),
            ("locality", -0.1),
        ];
        let name = "least served, short ones first";
        self.add(name, greedy(), TieKey::Arrival, &served_and_short, false);
        let name = "least served, tight, reserve first";
        self.add(name, tight(), TieKey::Arrival, &served, true);
    }

    fn of_sharing(&mut self) {
        let name = "beside who hardly suffers";
        self.add(name, beside(0.9), SHORTEST, &[], false);
        self.add("beside who suffers little", beside(0.7), SHORTEST, &[], false);
        let name = "beside who hardly suffers, smallest";
        self.add(name, beside(0.9), SMALLEST, &[], true);
    }

    /// As `sjf-tuned`: the cores that it can use, and of these the fewest.
    fn of_cores(&mut self) {
        let short = [("duration_s", 1.0), ("cores_ratio", 0.01)];
        let small = [
            ("gpu_time_gpu_s", 1.0),
            ("demand_rate_ratio", -0.3),
            ("cores_ratio", 0.01),
        ];
        self.add("cores that it can use", greedy(), SHORTEST, &short, false);
        self.add(
            "cores that it can use, smallest",
            greedy(),
            SMALLEST,
            &small,
            false,
        );
        self.add("waits for its cores", waits_for_cores(), SHORTEST, &short, false);
        let name = "waits for its cores, smallest";
        self.add(name, waits_for_cores(), SMALLEST, &small, true);
    }

    fn of_sizes(&mut self) {
        let sized = split(
            "is_hold",
            0.5,
            split("gpu_efficiency", 0.7, leaf(0), leaf(2)),
            leaf(1),
        );
        let soonest = [("duration_s", 1.0)];
        self.add("efficient sizes", sized, SHORTEST, &soonest, false);
        // As `sjf-moldable`: the shortest job, at the size at which it ends soonest among the efficient ones.
        let short = [("remaining_s", 1.0), ("duration_s", 0.1)];
        let small = [("gpu_time_gpu_s", 1.0), ("duration_s", 0.3)];
        let name = "half as efficient, soonest end";
        self.add(name, efficient(0.5), SHORTEST, &short, false);
        let name = "most as efficient, soonest end";
        self.add(name, efficient(0.8), SHORTEST, &short, false);
        let name = "half as efficient, smallest";
        self.add(name, efficient(0.5), SMALLEST, &small, false);
    }
}

/// Whatever fits.
fn greedy() -> Branch {
    split("is_hold", 0.5, leaf(1), leaf(0))
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
        for name in [
            "PhillyGang",
            "HeliosTenants",
            "GavelShare",
            "PhillyShare",
            "Synergy",
            "Elastic",
            "LlmSite",
        ] {
            let id = format!("Pleach/{name}-v1");
            let env = env_of(&id, Some(20), None).unwrap();
            let rules = hand_rules(&env, true);
            assert!(rules.len() >= 11, "{id}");
            for (name, rule) in rules {
                let tree = rule.tree(&rule.plain_meta(&name), &Rows::default()).unwrap();
                assert_eq!(tree.num_leaves(), rule.root.num_leaves(), "{name}");
                tree.check_against(&name, env.sim.capabilities).unwrap();
            }
        }
    }
}
