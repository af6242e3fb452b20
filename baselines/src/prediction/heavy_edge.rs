//! Heavy-edge placement: the members of a gang that talk most to each other go to the same node.
//!
//! Nodes are filled one after the other, roomiest first. A node begins with the two members that the heaviest edge joins
//! and takes, until it is full, the member with the heaviest edge to those already there.
//!
//! # Source
//! A-SRPT (arXiv 2501.05563, INFOCOM'25). Its jobs are graphs of pipeline stages and replicas; our job lists carry no
//! graph, so a gang is a ring (a class whose all-reduce is known) or a clique (any other), both with equal edges.

/// Who talks to whom in a gang, and how much.
#[derive(Clone, Debug, PartialEq)]
pub enum JobGraph {
    /// Every member talks to the next, the last to the first: an all-reduce.
    Ring,
    /// Every member talks to every other: nothing is known.
    Clique,
    /// Bytes between pairs of members, (first, second, bytes); any order, each pair once.
    Edges(Vec<(usize, usize, f64)>),
}

impl JobGraph {
    /// Bytes between two members of a gang of `num`.
    #[must_use]
    pub fn weight(&self, a: usize, b: usize, num: usize) -> f64 {
        let is = |yes: bool| f64::from(u8::from(yes));
        match self {
            JobGraph::Ring => is(a != b && ((a + 1) % num == b || (b + 1) % num == a)),
            JobGraph::Clique => is(a != b),
            JobGraph::Edges(edges) => {
                let joins =
                    |edge: &&(usize, usize, f64)| (edge.0, edge.1) == (a, b) || (edge.0, edge.1) == (b, a);
                edges.iter().filter(joins).map(|edge| edge.2).sum()
            }
        }
    }

    /// Bytes that cross between nodes. `[member]` is the node of each.
    #[must_use]
    pub fn cut(&self, nodes: &[usize]) -> f64 {
        let num = nodes.len();
        let pairs = (0..num).flat_map(|b| (0..b).map(move |a| (a, b)));
        let apart = pairs.filter(|(a, b)| nodes[*a] != nodes[*b]);
        apart.map(|(a, b)| self.weight(a, b, num)).sum()
    }
}

/// The node of each member of a gang of `num` (`[member]`, an index into `rooms`), or none if all rooms together are too
/// small. `rooms` are the GPUs that each node has for it. Ties go to the lowest member and the lowest node.
#[must_use]
pub fn heavy_edge(graph: &JobGraph, num: usize, rooms: &[u32]) -> Option<Vec<usize>> {
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
            let next = if taken == 0 {
                first_of_heaviest(graph, &nodes, NOWHERE)
            } else {
                left.next().map(|first| left.fold(first, heaviest))
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

/// The lower end of the heaviest edge between members without a node; without edges the lowest member.
fn first_of_heaviest(graph: &JobGraph, nodes: &[usize], nowhere: usize) -> Option<usize> {
    let is_left = |member: usize| nodes[member] == nowhere;
    let lowest = (0..nodes.len()).find(|member| is_left(*member));
    let JobGraph::Edges(edges) = graph else {
        // All edges weigh the same. A ring is cut into arcs from the lowest member on.
        return lowest;
    };
    let open = edges.iter().filter(|edge| is_left(edge.0) && is_left(edge.1));
    let ends = open.map(|edge| (edge.2, edge.0.min(edge.1)));
    let heavier = |best: (f64, usize), edge: (f64, usize)| {
        if edge.0 > best.0 || (edge.0 == best.0 && edge.1 < best.1) {
            edge
        } else {
            best
        }
    };
    ends.reduce(heavier).map(|best| best.1).or(lowest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least cut of all assignments that respect the rooms.
    fn least_cut(graph: &JobGraph, num: usize, rooms: &[u32]) -> f64 {
        let mut best = f64::INFINITY;
        for code in 0..rooms.len().pow(num as u32) {
            let nodes: Vec<usize> = (0..num)
                .map(|member| code / rooms.len().pow(member as u32) % rooms.len())
                .collect();
            let fits = (0..rooms.len())
                .all(|node| nodes.iter().filter(|other| **other == node).count() <= rooms[node] as usize);
            if fits {
                best = best.min(graph.cut(&nodes));
            }
        }
        best
    }

    #[test]
    fn the_heaviest_edge_stays_on_one_node_and_draws_its_neighbours() {
        // Two pairs joined by 10 and 8 bytes, a thin edge of 1 between the pairs, rooms of 2: the pairs stay whole.
        let graph = JobGraph::Edges(vec![(0, 2, 10.0), (1, 3, 8.0), (2, 3, 1.0)]);
        let nodes = heavy_edge(&graph, 4, &[2, 2]).unwrap();
        assert_eq!(nodes, [0, 1, 0, 1]);
        assert_eq!(graph.cut(&nodes), 1.0);
        // A pipeline of four stages with 5, 1, 5 bytes on rooms of 1, 3: the roomy node takes three, one edge of 5 is cut.
        let pipeline = JobGraph::Edges(vec![(0, 1, 5.0), (1, 2, 1.0), (2, 3, 5.0)]);
        let nodes = heavy_edge(&pipeline, 4, &[1, 3]).unwrap();
        assert_eq!(nodes, [1, 1, 1, 0]);
        assert_eq!(pipeline.cut(&nodes), 5.0);
        assert_eq!(least_cut(&pipeline, 4, &[1, 3]), 5.0);
    }

    #[test]
    fn greed_is_not_always_least() {
        // A star of 3 + 3 + 3 around member 0, and a pair of 4: the pair goes first, and the star is cut in two places on
        // rooms of 3 and 3, where the best cut is one of 3.
        let graph = JobGraph::Edges(vec![
            (0, 1, 3.0),
            (0, 2, 3.0),
            (0, 3, 3.0),
            (3, 4, 4.0),
            (4, 5, 1.0),
        ]);
        let nodes = heavy_edge(&graph, 6, &[3, 3]).unwrap();
        assert_eq!(nodes, [0, 1, 1, 0, 0, 1]);
        assert_eq!(graph.cut(&nodes), 7.0);
        assert_eq!(least_cut(&graph, 6, &[3, 3]), 3.0);
    }

    #[test]
    fn rooms_that_are_too_small_are_refused_and_no_room_is_overfilled() {
        assert_eq!(heavy_edge(&JobGraph::Ring, 4, &[1, 2]), None);
        assert_eq!(heavy_edge(&JobGraph::Ring, 3, &[1, 0, 2]), Some(vec![2, 2, 0]));
    }

    proptest! {
        /// Rings and cliques are what gangs are here, and for them the greedy way is the best there is.
        #[test]
        fn rings_and_cliques_are_cut_as_little_as_possible(
            num in 1_usize..7, rooms in prop::collection::vec(0_u32..5, 1..4),
        ) {
            for graph in [JobGraph::Ring, JobGraph::Clique] {
                match heavy_edge(&graph, num, &rooms) {
                    Some(nodes) => {
                        for (node, room) in rooms.iter().enumerate() {
                            prop_assert!(nodes.iter().filter(|other| **other == node).count() <= *room as usize);
                        }
                        prop_assert_eq!(graph.cut(&nodes), least_cut(&graph, num, &rooms), "{:?}", graph);
                    }
                    None => prop_assert!(rooms.iter().sum::<u32>() < num as u32),
                }
            }
        }

        #[test]
        fn any_graph_is_placed_whole_and_never_cut_less_than_the_least(
            weights in prop::collection::vec(0.0_f64..9.0, 10), rooms in prop::collection::vec(1_u32..4, 2..4),
        ) {
            let pairs = (0..5).flat_map(|b| (0..b).map(move |a| (a, b)));
            let edges = pairs.zip(weights).map(|((a, b), weight)| (a, b, weight));
            let graph = JobGraph::Edges(edges.collect());
            if let Some(nodes) = heavy_edge(&graph, 5, &rooms) {
                prop_assert!(nodes.iter().all(|node| *node < rooms.len()));
                prop_assert!(graph.cut(&nodes) >= least_cut(&graph, 5, &rooms) - 1e-9);
            }
        }
    }
}
