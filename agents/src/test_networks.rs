//! Networks and decisions for tests.

use pleach_env::{Seed, SetSpace, Spaces};
use pleach_network::{DecisionBatch, Layout, NetworkConfig, parameters::at};

use crate::random::{initial_parameters, uniform};

pub(crate) const PLAIN: Spaces = Spaces::plain(3, 9, 5);
/// Two kinds of entities, of 3 and 2 features, at most 4 and 3 of them.
pub(crate) const ENTITIES: Spaces = Spaces {
    num_global: 3 + 12 + 6,
    sets: [
        SetSpace {
            num_rows: 4,
            num_features: 3,
        },
        SetSpace {
            num_rows: 3,
            num_features: 2,
        },
    ],
    ..PLAIN
};
/// With and without entities and attention.
pub(crate) const KINDS: [(Spaces, usize); 4] = [(PLAIN, 0), (PLAIN, 3), (ENTITIES, 0), (ENTITIES, 2)];

pub(crate) fn network_of((spaces, heads): (Spaces, usize)) -> (Layout, Vec<f32>) {
    let config = NetworkConfig {
        hidden: 16,
        context: 24,
        heads,
    };
    let layout = Layout::new(config, spaces).unwrap();
    let mut parameters = initial_parameters(&layout, Seed(3));
    // A policy head and biases of ordinary size, so that a wrong derivative shows.
    let mut random = Seed(3).stream("test", 0);
    for index in [
        at::POINTER_OUT,
        at::POINTER_BIAS,
        at::ENCODER_0_BIAS,
        at::CONTEXT_1_BIAS,
        at::SETS + 1,
        at::SETS + 4,
    ] {
        let range = layout.entries[index].range.clone();
        parameters[range]
            .iter_mut()
            .for_each(|w| *w = uniform(&mut random) as f32 - 0.5);
    }
    (layout, parameters)
}

pub(crate) fn rows(spaces: Spaces, num_decisions: usize) -> DecisionBatch {
    let mut random = Seed(5).stream("test", 1);
    let mut rows = DecisionBatch::new(spaces);
    for decision in 0..num_decisions {
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| 2.0 * uniform(&mut random) as f32 - 1.0)
                .collect::<Vec<_>>()
        };
        let n = 1 + decision % spaces.num_candidates;
        let mut global = draw(3);
        for (kind, set) in spaces.sets.iter().enumerate() {
            // From no entity to as many as there is room for.
            let num = (decision / (1 + kind)) % (set.num_rows + 1);
            let mut entities = draw(num * set.num_features);
            let firsts = entities.iter_mut().step_by(set.num_features.max(1));
            firsts.for_each(|first| *first = 0.1 + first.abs());
            entities.resize(set.len(), 0.0);
            global.extend(entities);
        }
        let candidates = draw(n * 5);
        rows.push(&global, &candidates, &vec![true; n]);
    }
    rows
}
