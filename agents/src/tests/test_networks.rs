//! Networks and decisions for tests.

use pleach_env::{Seed, Spaces};
use pleach_network::{DecisionBatch, Layout, NetworkConfig, parameters::at};

use crate::random::{initial_parameters, uniform};

pub(crate) const PLAIN: Spaces = Spaces::new(3, 9, 5);

pub(crate) fn network_of(heads: usize) -> (Layout, Vec<f32>) {
    let config = NetworkConfig {
        hidden: 16,
        context: 24,
        heads,
        ..NetworkConfig::default()
    };
    let layout = Layout::new(config, PLAIN).unwrap();
    let mut parameters = initial_parameters(&layout, Seed(3));
    // A policy head and biases of ordinary size, so that a wrong derivative shows.
    let mut random = Seed(3).stream("test", 0);
    for index in [
        at::POINTER_OUT,
        at::POINTER_BIAS,
        at::ENCODER_0_BIAS,
        at::CONTEXT_1_BIAS,
    ] {
        let range = layout.entries[index].range.clone();
        parameters[range]
            .iter_mut()
            .for_each(|w| *w = uniform(&mut random) as f32 - 0.5);
    }
    (layout, parameters)
}

pub(crate) fn rows(num_decisions: usize) -> DecisionBatch {
    let mut random = Seed(5).stream("test", 1);
    let mut rows = DecisionBatch::new(PLAIN);
    for decision in 0..num_decisions {
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| 2.0 * uniform(&mut random) as f32 - 1.0)
                .collect::<Vec<_>>()
        };
        let n = 1 + decision % PLAIN.num_candidates;
        let (global, candidates) = (draw(3), draw(n * 5));
        rows.push(&global, &candidates, &vec![true; n]);
    }
    rows
}
