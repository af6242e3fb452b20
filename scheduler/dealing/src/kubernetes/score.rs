//! Which node a pod gets: of those on which it fits one of the best score.
//!
//! # Source
//! The plugins `NodeResourcesFit` and `NodeResourcesBalancedAllocation` of Kubernetes 1.36; the others of its default profile tell
//! nodes apart only for pods that name them. From 101 nodes on the real one looks at a part of them; all are looked at here.

use crate::slurm::{Nodes, Room};

use super::config::{Scoring, Strategy};

/// `MaxNodeScore`.
const MOST: u64 = 100;

/// GPUs, CPU, memory.
fn amounts(room: Room) -> [u64; 3] {
    [u64::from(room.gpus), room.cpu_milli, room.memory_mib]
}

/// How evenly CPU and memory are used, 50 to 100.
fn balance(used: [u64; 3], all: [u64; 3]) -> u64 {
    let part = |input: usize| used[input] as f64 / all[input].max(1) as f64;
    ((1.0 - ((part(1) - part(2)) / 2.0).abs()) * MOST as f64) as u64
}

impl Scoring {
    /// The score of a node with a pod that fits on it.
    #[must_use]
    pub fn score(&self, all: Room, free: Room, ask: Room) -> u64 {
        let ([all, free], ask) = ([all, free].map(amounts), amounts(ask));
        let used = [0, 1, 2].map(|input| all[input].saturating_sub(free[input]));
        let with = [0, 1, 2].map(|input| used[input] + ask[input]);
        let mut weights = self.weights().map(u64::from);
        if ask[1..] == [0; 2] {
            // A list does not say what else its pods ask for: GPUs stand for it. *Ours.*
            weights = [1, 0, 0];
        }
        let of = |input: usize| match self.strategy {
            Strategy::LeastAllocated => all[input].saturating_sub(with[input]),
            Strategy::MostAllocated => with[input].min(all[input]),
        };
        // What the cluster does not model is more than fits 64 bits a hundred times.
        let part = |input: usize| (u128::from(of(input)) * 100 / u128::from(all[input].max(1))) as u64;
        let sum: u64 = (0..3).map(|input| weights[input] * part(input)).sum();
        let balance = MOST / 2 + (MOST / 2 + balance(with, all) - balance(used, all)) / 2;
        sum / weights.iter().sum::<u64>() + balance
    }

    /// The best nodes of those that may be and on which a pod fits, lowest first; none where it fits nowhere. The real one draws
    /// among them.
    #[must_use]
    pub fn best(&self, nodes: &Nodes, ask: Room, may_be: impl Fn(usize) -> bool) -> Vec<usize> {
        let (mut best, mut most) = (Vec::new(), 0);
        for (node, free) in nodes.free.iter().enumerate() {
            if !free.holds(ask) || !may_be(node) {
                continue;
            }
            let score = self.score(nodes.all[node], *free, ask);
            if score > most || best.is_empty() {
                best.clear();
                most = score;
            }
            if score == most {
                best.push(node);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_count_only_where_they_have_a_weight_or_nothing_else_is_known() {
        let room = |gpus, cpu_milli, memory_mib| Room {
            gpus,
            cpu_milli,
            memory_mib,
        };
        let all = room(8, 64_000, 512_000);
        let mut nodes = Nodes::new(vec![all; 3], vec![0; 3]);
        nodes.free = vec![
            room(1, 64_000, 512_000),
            room(8, 32_000, 512_000),
            room(8, 32_000, 256_000),
        ];
        let ask = room(1, 4000, 32_000);
        let least = Scoring::default();
        assert_eq!(least.best(&nodes, ask, |_| true), [0], "the fewest CPUs in use");
        let most = Scoring {
            strategy: Strategy::MostAllocated,
            gpu: 5,
            ..least
        };
        assert_eq!(most.best(&nodes, ask, |_| true), [0], "the most GPUs in use");
        assert_eq!(most.best(&nodes, room(2, 4000, 32_000), |_| true), [2]);
        nodes.free = vec![room(2, 9000, 0), room(6, 64_000, 0), room(6, 0, 0)];
        assert_eq!(least.best(&nodes, room(1, 0, 0), |_| true), [1, 2]);
        assert_eq!(least.best(&nodes, room(7, 0, 0), |_| true), [0; 0]);
    }
}
