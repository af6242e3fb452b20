//! SALIENT++: training on a graph over machines, each of which keeps the remote vertices that it will most likely visit.

use super::system::{Benchmark, Effort, Error, Reproduction, exact, figures};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "salient++",
    title: "SALIENT++: remote vertices kept by chance of a visit",
    source: "Kaler et al., MLSys'23: no figure that we have",
    setup: "Our model. A seed with three remote neighbours or one with a single one of these, half each, fan-out 1, one vertex kept. \
            A step is the longer of its computation, 1 ms, and its remote fetches, 6 ms each (both assumed)",
    run,
};

/// Neighbours of each vertex.
type Graph = Vec<Vec<usize>>;

/// Visits of each vertex that a seed leads to in the mean, by propagation over the fan-outs.
fn visits(graph: &Graph, mut chance: Vec<f64>, fan_outs: &[usize]) -> Vec<f64> {
    let mut all = vec![0.0; graph.len()];
    for fan_out in fan_outs {
        let mut next = vec![0.0; graph.len()];
        for (vertex, own) in chance.iter().enumerate() {
            let neighbours = &graph[vertex];
            let each = own * (*fan_out as f64 / neighbours.len() as f64).min(1.0);
            for neighbour in neighbours {
                next[*neighbour] += each;
            }
        }
        for (all, next) in all.iter_mut().zip(&next) {
            *all += next;
        }
        chance = next;
    }
    all
}

/// Visits that are left with so many of the most visited vertices kept.
fn left(mut visits: Vec<f64>, num_kept: usize) -> f64 {
    visits.sort_by(|one, other| other.total_cmp(one));
    visits.into_iter().skip(num_kept).sum()
}

/// Visits of seeds a and b and of vertices c, d, e.
fn example() -> Vec<f64> {
    let graph = vec![vec![2, 3, 4], vec![2], Vec::new(), Vec::new(), Vec::new()];
    visits(&graph, vec![0.5, 0.5, 0.0, 0.0, 0.0], &[1])
}

fn run(_: &Effort) -> Result<Reproduction, Error> {
    let step_ms = |num_kept| (6.0 * left(example(), num_kept)).max(1.0);
    figures(
        vec![
            exact("fetches of an iteration with one vertex kept", left(example(), 1)),
            exact(
                "step with one vertex kept over that with none",
                step_ms(1) / step_ms(0),
            ),
        ],
        "Nothing published is at hand to hold it to; hits depend on how uneven the degrees of a graph are. Vertices that seeds of a batch \
         share are fetched once there and counted for each here.",
    )
}

#[cfg(test)]
mod tests {
    use pleach_env::Seed;
    use rand::{Rng, RngExt as _};

    use super::*;

    /// Vertices that one seed leads to, sampled with replacement.
    fn sample(graph: &Graph, seed: usize, fan_outs: &[usize], rng: &mut impl Rng) -> Vec<usize> {
        let (mut front, mut all) = (vec![seed], Vec::new());
        for fan_out in fan_outs {
            let mut next = Vec::new();
            for vertex in front {
                let neighbours = &graph[vertex];
                next.extend((0..*fan_out).map(|_| neighbours[rng.random_range(0..neighbours.len())]));
            }
            all.extend(&next);
            front = next;
        }
        all
    }

    #[test]
    fn chances_of_a_visit_are_those_worked_by_hand() {
        let expected = [0.0, 0.0, 2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0];
        for (own, expected) in example().into_iter().zip(expected) {
            assert!((own - expected).abs() < 1e-12, "{own}, {expected}");
        }
        assert!((left(example(), 1) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_propagated_is_what_sampling_visits() {
        let mut rng = Seed(1).stream("test", 0);
        let mut neighbours = || (0..8).map(|_| rng.random_range(0..200)).collect();
        let graph: Graph = (0..200).map(|_| neighbours()).collect();
        let mut chance = vec![0.0; 200];
        chance[3] = 1.0;
        let expected = visits(&graph, chance, &[4, 2]);
        let mut seen = vec![0.0; 200];
        for _ in 0..4000 {
            for vertex in sample(&graph, 3, &[4, 2], &mut rng) {
                seen[vertex] += 1.0 / 4000.0;
            }
        }
        let pairs = expected.iter().zip(&seen);
        let off: f64 = pairs.map(|(one, other)| (one - other).abs()).sum();
        assert!(off < 0.05 * expected.iter().sum::<f64>(), "{off}");
    }
}
