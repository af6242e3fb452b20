//! Heavy-edge placement: the members of a gang that talk most to each other go to the same node.
//!
//! Nodes are filled one after the other, roomiest first. A node begins with the two members that the heaviest edge joins
//! and takes, until it is full, the member with the heaviest edge to those already there.
//!
//! # Source
//! A-SRPT (arXiv 2501.05563, INFOCOM'25). Its jobs are graphs of pipeline stages and replicas; our job lists carry no
//! graph, so a gang is a ring (a class whose all-reduce is known) or a clique (any other), both with equal edges.

/// Which members of a gang exchange data, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JobGraph {
    /// Every member talks to the next, the last to the first: an all-reduce.
    Ring,
    /// Every member talks to every other: nothing is known.
    Clique,
}

impl JobGraph {
    /// Weight of the edge between two members of a gang of `num`: 1 or 0.
    #[must_use]
    fn weight(self, a: usize, b: usize, num: usize) -> f64 {
        let is = |yes: bool| f64::from(u8::from(yes));
        match self {
            JobGraph::Ring => is(a != b && ((a + 1) % num == b || (b + 1) % num == a)),
            JobGraph::Clique => is(a != b),
        }
    }
}

/// The node of each member of a gang of `num` (`[member]`, an index into `rooms`), or none if all rooms together are too
/// small. `rooms` are the GPUs that each node has for it. Ties go to the lowest member and the lowest node.
#[must_use]
pub(crate) fn heavy_edge(graph: JobGraph, num: usize, rooms: &[u32]) -> Option<Vec<usize>> {
    const NOWHERE: usize = usize::MAX;
    let mut order: Vec<usize> = (0..rooms.len()).collect();
    order.sort_by_key(|node| std::cmp::Reverse(rooms[*node]));
    let mut nodes = vec![NOWHERE; num];
    let mut num_left = num;
    for node in order {
        // The heaviest edge of each member that has no node yet to those already on this one.
        let mut pull = vec![0.0_f64; num];
        for taken in 0..rooms[node].min(num_left as u32) {
            let heaviest = |best: usize, member: usize| if pull[member] > pull[best] { member } else { best };
            let mut left = (0..num).filter(|member| nodes[*member] == NOWHERE);
            // All edges weigh the same, so a node begins with the lowest member, and a ring is cut into arcs from there on.
            let lowest = left.next();
            let next = if taken == 0 {
                lowest
            } else {
                lowest.map(|first| left.fold(first, heaviest))
            };
            let Some(next) = next else {
                break;
            };
            nodes[next] = node;
            num_left -= 1;
            for (member, pull) in pull.iter_mut().enumerate() {
                *pull = pull.max(graph.weight(next, member, num));
            }
        }
    }
    (num_left == 0).then_some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Edges that cross between nodes. `[member]` is the node of each.
    fn cut(graph: JobGraph, nodes: &[usize]) -> f64 {
        let num = nodes.len();
        let pairs = (0..num).flat_map(|b| (0..b).map(move |a| (a, b)));
        let apart = pairs.filter(|(a, b)| nodes[*a] != nodes[*b]);
        apart.map(|(a, b)| graph.weight(a, b, num)).sum()
    }

    /// The least cut of all assignments that respect the rooms.
    fn least_cut(graph: JobGraph, num: usize, rooms: &[u32]) -> f64 {
        let mut best = f64::INFINITY;
        for code in 0..rooms.len().pow(num as u32) {
            let nodes: Vec<usize> = (0..num)
                .map(|member| code / rooms.len().pow(member as u32) % rooms.len())
                .collect();
            let fits = (0..rooms.len())
                .all(|node| nodes.iter().filter(|other| **other == node).count() <= rooms[node] as usize);
            if fits {
                best = best.min(cut(graph, &nodes));
            }
        }
        best
    }

    #[test]
    fn rooms_that_are_too_small_are_refused_and_no_room_is_overfilled() {
        assert_eq!(heavy_edge(JobGraph::Ring, 4, &[1, 2]), None);
        assert_eq!(heavy_edge(JobGraph::Ring, 3, &[1, 0, 2]), Some(vec![2, 2, 0]));
    }

    proptest! {
        /// Rings and cliques are what gangs are here, and for them the greedy way is the best there is.
        #[test]
        fn rings_and_cliques_are_cut_as_little_as_possible(
            num in 1_usize..7, rooms in prop::collection::vec(0_u32..5, 1..4),
        ) {
            for graph in [JobGraph::Ring, JobGraph::Clique] {
                match heavy_edge(graph, num, &rooms) {
                    Some(nodes) => {
                        for (node, room) in rooms.iter().enumerate() {
                            prop_assert!(nodes.iter().filter(|other| **other == node).count() <= *room as usize);
                        }
                        prop_assert_eq!(cut(graph, &nodes), least_cut(graph, num, &rooms), "{:?}", graph);
                    }
                    None => prop_assert!(rooms.iter().sum::<u32>() < num as u32),
                }
            }
        }
    }
}
