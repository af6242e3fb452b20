//! Availability that changes over time: nodes that are drained, reclaimed, returned, and nodes that fail and are repaired.
//!
//! Planned changes are listed; failures are drawn, node by node, from exponential times between failures and of repair.
//! A failed node is down until it is repaired, whatever was planned meanwhile. Refused: nodes that do not exist, times
//! that are no numbers, plans that end with too few nodes for a job of the workload.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use pleach_scheduler::cluster::{Cluster, NodeState, Submission};
use pleach_scheduler::cluster_spec::Resources;
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{NodeId, Problem, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::site_failures::SiteFailures;
use pleach_workloads::Seed;

settings! {
    /// How the capacity changes; nothing by default.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AvailabilityConfig {
        /// Planned changes, in any order.
        pub changes: Vec<AvailabilityChange>;
        /// Mean time between the failures of a node, s, while it is not failed; no failures without. 1 to 1e10
        pub node_mtbf_s: Option<f64>, in 1.0..=1e10;
        /// Mean time to repair a failed node, s. 1 to 1e10
        ///
        /// Assumed: an hour.
        pub node_repair_s: f64 = 3600.0, in 1.0..=1e10;
        /// Failures as a site publishes them, instead of the two means above.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub site: Option<SiteFailures>;
        /// Time for which a gang that loses a node keeps its GPUs on other nodes and waits for as many as it has lost, s; 0 = it gives
        /// them up at once. 0 to 1e7
        #[serde(skip_serializing_if = "is_zero")]
        pub keep_places_s: f64 = 0.0, in 0.0..=1e7;
    }
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// One planned change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AvailabilityChange {
    /// When, s from the start of the workload.
    pub at_s: f64,
    /// Which node, by its number in the cluster.
    pub node: u32,
    /// What becomes of it.
    pub state: NodeState,
}

/// A node takes on a state now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeChange {
    /// The node.
    pub node: NodeId,
    /// Its new state.
    pub state: NodeState,
    /// Whether this is a failure, not a planned change.
    pub is_failure: bool,
}

/// What happens to a node. The order is that of events at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Repair,
    Plan(u8),
    Failure,
}

/// The changes to come.
#[derive(Clone, Debug, Default)]
pub struct Availability {
    events: BinaryHeap<Reverse<(Time, NodeId, Happening)>>,
    /// What was planned last for each node, and whether it is failed. `[num_nodes]`; empty where nothing ever changes.
    nodes: Vec<(NodeState, bool)>,
    /// One stream per node. `[num_nodes]`; empty without failures.
    streams: Vec<ChaCha8Rng>,
    /// Mean time between failures. `[num_nodes]`
    mtbf_s: Vec<f64>,
    repair_s: f64,
    site: Option<SiteFailures>,
}

const STATES: [NodeState; 3] = [NodeState::Up, NodeState::Draining, NodeState::Down];

impl AvailabilityConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        let bad =
            |key: String, value: f64, allowed: &str, hint: &str| Err(Problem::new(key, value, allowed, hint));
        for (index, change) in self.changes.iter().enumerate() {
            if !(0.0..=2e9).contains(&change.at_s) {
                let key = format!("capacity.changes[{index}].at_s");
                return bad(
                    key,
                    change.at_s,
                    "0 to 2e9 s",
                    "seconds from the start of the workload",
                );
            }
        }
        if let Some(site) = &self.site {
            site.validate()?;
            if let Some(mtbf_s) = self.node_mtbf_s {
                let hint = "a site's failures have a rate of their own: give one of the two";
                return bad(
                    "capacity.node_mtbf_s".into(),
                    mtbf_s,
                    "none beside capacity.site",
                    hint,
                );
            }
        }
        self.check_at("capacity", "")
    }
}

impl Availability {
    /// The changes of a cluster of `num_nodes` nodes.
    ///
    /// # Errors
    /// As [`AvailabilityConfig::validate`], or a node that does not exist.
    pub fn new(config: &AvailabilityConfig, seed: Seed, num_nodes: usize) -> Result<Availability, Problem> {
        config.validate()?;
        let mut capacity = Availability::default();
        let fails = config.node_mtbf_s.is_some() || config.site.is_some();
        if config.changes.is_empty() && !fails {
            return Ok(capacity);
        }
        capacity.nodes = vec![(NodeState::Up, false); num_nodes];
        for (index, change) in config.changes.iter().enumerate() {
            Problem::refuse_if(
                change.node as usize >= num_nodes,
                format_args!("capacity.changes[{index}].node"),
                change.node,
                format_args!("0 to {}", num_nodes - 1),
                "nodes are numbered group by group",
            )?;
            let code = STATES
                .iter()
                .position(|state| *state == change.state)
                .unwrap_or(0);
            let at = Time::from_secs_f64(change.at_s);
            let plan = Happening::Plan(code as u8);
            capacity.events.push(Reverse((at, NodeId(change.node), plan)));
        }
        if fails {
            let of_node = |node: u64| match (&config.site, config.node_mtbf_s) {
                (Some(site), _) => site.mtbf_s(seed, node),
                (None, mtbf_s) => mtbf_s.unwrap_or(f64::INFINITY),
            };
            capacity.mtbf_s = (0..num_nodes as u64).map(of_node).collect();
            (capacity.repair_s, capacity.site) = (config.node_repair_s, config.site);
            capacity.streams = (0..num_nodes as u64)
                .map(|node| seed.stream("node", node))
                .collect();
            for node in 0..num_nodes as u32 {
                capacity.schedule(Time::ZERO, NodeId(node), Happening::Failure);
            }
        }
        Ok(capacity)
    }

    /// Draws when the next failure or repair of a node comes.
    fn schedule(&mut self, now: Time, node: NodeId, what: Happening) {
        let stream = &mut self.streams[node.index()];
        if let (Some(site), Happening::Repair) = (&self.site, what) {
            let repaired = now + site.repair(stream);
            self.events.push(Reverse((repaired, node, what)));
            return;
        }
        let mean_s = if what == Happening::Failure {
            self.mtbf_s[node.index()]
        } else {
            self.repair_s
        };
        // 1 - u lies in (0, 1], so the logarithm is finite.
        let uniform: f64 = stream.random();
        let span = Time::from_secs_f64(-ln(1.0 - uniform) * mean_s).max(Time(1));
        self.events.push(Reverse((now + span, node, what)));
    }

    /// When the next change comes.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.events.peek().map(|Reverse((time, ..))| *time)
    }

    /// Takes the next change that is due by `now`.
    pub fn pop(&mut self, now: Time) -> Option<NodeChange> {
        let Reverse((time, node, what)) = self.events.peek().copied()?;
        if time > now {
            return None;
        }
        self.events.pop();
        let (planned, failed) = &mut self.nodes[node.index()];
        match what {
            Happening::Plan(code) => *planned = STATES[usize::from(code)],
            Happening::Failure => *failed = true,
            Happening::Repair => *failed = false,
        }
        let state = if *failed { NodeState::Down } else { *planned };
        match what {
            Happening::Failure => self.schedule(time, node, Happening::Repair),
            Happening::Repair => self.schedule(time, node, Happening::Failure),
            Happening::Plan(_) => {}
        }
        Some(NodeChange {
            node,
            state,
            is_failure: what == Happening::Failure,
        })
    }

    /// Checks that every job could still run once all planned changes are through.
    ///
    /// # Errors
    /// The first job that could not.
    pub(crate) fn check_all_can_run<'a>(
        &self,
        cluster: &Cluster,
        requests: impl Iterator<Item = &'a Submission>,
    ) -> Result<(), Problem> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        let mut last = self.clone();
        last.streams.clear();
        last.events
            .retain(|Reverse((_, _, what))| matches!(what, Happening::Plan(_)));
        let mut cluster = cluster.clone();
        while let Some(change) = last.pop(Time::MAX) {
            cluster.set_node_state(change.node, change.state, &mut Vec::new());
        }
        let mut known = BTreeSet::new();
        for (index, request) in requests.enumerate() {
            let Resources {
                gpu_milli,
                gpu_memory_gib,
                cpu_cores,
                memory_gib,
                tasks,
                nodes,
            } = request.resources;
            let amounts = [gpu_memory_gib, cpu_cores, memory_gib].map(f64::to_bits);
            // Most jobs ask for what others asked for before.
            Problem::refuse_if(
                known.insert((
                    request.class,
                    request.num_gpus,
                    gpu_milli,
                    amounts,
                    (tasks, nodes),
                )) && !cluster.could_run(request),
                "capacity.changes",
                format_args!("too few nodes for job {index} in the end"),
                format_args!("changes that leave {} GPUs up for it", request.num_gpus),
                "bring nodes up again or remove the job",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(config: &AvailabilityConfig, until_s: f64) -> Vec<(i64, u32, NodeState)> {
        let mut capacity = Availability::new(config, Seed(1), 2).unwrap();
        let until = Time::from_secs_f64(until_s);
        let mut found = Vec::new();
        while let Some(at) = capacity.next().filter(|at| *at <= until) {
            let change = capacity.pop(at).unwrap();
            found.push((at.0 / 1_000_000, change.node.0, change.state));
        }
        found
    }

    #[test]
    fn planned_changes_come_in_order_of_time_then_node() {
        let change = |at_s, node, state| AvailabilityChange { at_s, node, state };
        let config = AvailabilityConfig {
            changes: vec![
                change(50.0, 1, NodeState::Up),
                change(10.0, 1, NodeState::Down),
                change(10.0, 0, NodeState::Draining),
            ],
            ..AvailabilityConfig::default()
        };
        let expected = [
            (10, 0, NodeState::Draining),
            (10, 1, NodeState::Down),
            (50, 1, NodeState::Up),
        ];
        assert_eq!(changes(&config, 100.0), expected);
    }

    #[test]
    fn failures_and_repairs_alternate_at_their_mean_rates() {
        let config = AvailabilityConfig {
            node_mtbf_s: Some(900.0),
            node_repair_s: 100.0,
            ..AvailabilityConfig::default()
        };
        let horizon_s = 2e6;
        let events = changes(&config, horizon_s);
        for node in 0..2 {
            let states: Vec<NodeState> = events
                .iter()
                .filter(|row| row.1 == node)
                .map(|row| row.2)
                .collect();
            assert!(states.chunks(2).all(|pair| pair[0] == NodeState::Down && pair.get(1).is_none_or(|s| *s == NodeState::Up)));
            // A cycle takes 1,000 s on average: 2,000 cycles, a standard error of about 2 %.
            let cycles = states.len() as f64 / 2.0;
            assert!((cycles / 2000.0 - 1.0).abs() < 0.08, "{cycles}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_key() {
        let refused =
            |config: AvailabilityConfig| Availability::new(&config, Seed(0), 2).unwrap_err().to_string();
        let change = AvailabilityChange {
            at_s: 1.0,
            node: 2,
            state: NodeState::Down,
        };
        let text = refused(AvailabilityConfig {
            changes: vec![change],
            ..AvailabilityConfig::default()
        });
        assert!(
            text.contains("changes[0].node = 2") && text.contains("0 to 1"),
            "{text}"
        );
        let change = AvailabilityChange {
            at_s: f64::NAN,
            node: 0,
            state: NodeState::Down,
        };
        let text = refused(AvailabilityConfig {
            changes: vec![change],
            ..AvailabilityConfig::default()
        });
        assert!(text.contains("at_s"), "{text}");
        let text = refused(AvailabilityConfig {
            node_mtbf_s: Some(0.0),
            ..AvailabilityConfig::default()
        });
        assert!(text.contains("node_mtbf_s"), "{text}");
    }
}
