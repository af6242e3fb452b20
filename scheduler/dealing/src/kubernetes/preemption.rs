//! Whose pods a pod of higher priority has removed.
//!
//! # Source
//! The plugin `DefaultPreemption` of Kubernetes 1.36 without disruption budgets. From 101 nodes on the real one looks at a part of
//! them; all are looked at here.

use std::cmp::Reverse;

use crate::slurm::{Nodes, Room};

/// A pod on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<K> {
    /// Which.
    pub pod: K,
    /// Where.
    pub node: usize,
    /// What it holds there.
    pub ask: Room,
    /// Its priority.
    pub priority: i32,
    /// When it began there, whole seconds.
    pub since_s: i64,
}

/// Nodes from which pods of lower priority would be removed for a pod, and these pods, the least harm alone: the lowest highest
/// priority, then the lowest sum of priorities, the fewest pods, the latest beginning. None where none helps.
#[must_use]
pub fn victims<K: Copy>(
    nodes: &Nodes,
    (ask, priority): (Room, i32),
    bound: &[Bound<K>],
    may_be: impl Fn(usize) -> bool,
) -> Vec<(usize, Vec<K>)> {
    let mut lower: Vec<&Bound<K>> = bound.iter().filter(|of| of.priority < priority).collect();
    // The most important first: they are the first to stay.
    lower.sort_by_key(|of| (of.node, Reverse(of.priority), of.since_s));
    let mut found = Vec::new();
    for of_node in lower.chunk_by(|one, next| one.node == next.node) {
        let node = of_node[0].node;
        let all = nodes.all[node];
        let mut free = nodes.free[node];
        of_node.iter().for_each(|of| free.more(of.ask, all));
        if !may_be(node) || !free.holds(ask) {
            continue;
        }
        free.less(ask);
        let mut gone: Vec<&Bound<K>> = Vec::new();
        for of in of_node {
            match free.holds(of.ask) {
                true => free.less(of.ask),
                false => gone.push(of),
            }
        }
        let Some(top) = gone.iter().map(|of| of.priority).max() else {
            continue;
        };
        // Each counts as much above the lowest number that there is.
        let sum: i64 = gone.iter().map(|of| i64::from(of.priority) + (1 << 31)).sum();
        let first_s = gone
            .iter()
            .filter(|of| of.priority == top)
            .map(|of| of.since_s)
            .min();
        let harm = (top, sum, gone.len(), Reverse(first_s));
        found.push((harm, node, gone.iter().map(|of| of.pod).collect()));
    }
    let least = found.iter().map(|(harm, ..)| *harm).min();
    found.retain(|(harm, ..)| Some(*harm) == least);
    found.into_iter().map(|(_, node, pods)| (node, pods)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_lowest_priority_that_began_last_go_and_others_stay_where_there_is_room() {
        let gpus = |gpus| Room {
            gpus,
            ..Room::default()
        };
        let mut nodes = Nodes::new(vec![gpus(8); 3], vec![0; 3]);
        nodes.free = vec![gpus(0), gpus(0), gpus(1)];
        let of = |pod: u32, node, num, priority, since_s| Bound {
            pod,
            node,
            ask: gpus(num),
            priority,
            since_s,
        };
        let bound = [
            of(0, 0, 4, 10, 5),
            of(1, 0, 4, 0, 9),
            of(2, 1, 4, 0, 7),
            of(3, 1, 4, 0, 8),
            of(4, 2, 7, 20, 1),
        ];
        let found = |num, priority| victims(&nodes, (gpus(num), priority), &bound, |_| true);
        assert_eq!(
            found(4, 5),
            [(0, vec![1])],
            "it began after the other on its node"
        );
        assert_eq!(found(8, 15), [(1, vec![2, 3])], "none of priority 10");
        assert_eq!(found(4, 0), []);
        assert_eq!(found(1, 15).len(), 1);
    }
}
