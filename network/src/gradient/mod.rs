//! The gradient of the set network in plain Rust: the same function as [`crate::network`], differentiated by hand.
//!
//! A tensor library makes a graph and a tensor of every intermediate result, and packs every matrix anew. Here the weights are
//! packed once for a minibatch, decisions go through in chunks that stay in a core's cache, and what a chunk needs lies in
//! buffers that are used again. Chunks have the same size whatever the number of threads and are added in order, those of a
//! large minibatch in at most sixteen parts; every sum
//! has one order ([`crate::matrix`]), so results depend neither on threads nor on the vector unit, apart from the system's
//! `exp` and `ln` in losses and attention.
//!
//! Held to Burn's gradient, which is held to finite differences. It differs from it in the last bits, so a run is one or the
//! other: [`crate::gradients::Gradients`].

mod attention;
mod chunk;
mod pool;

use std::array;

use rayon::prelude::*;

use crate::error::Error;
use crate::matrix::Panels;
use crate::network::{CHUNK, check};
use crate::parameters::{Layout, Set, at};
use crate::rows::Rows;
use crate::unit::{Unit, Work, on_this_processor};

use chunk::Scratch;
use pool::zeros;

/// What gradients are computed in: kept from one minibatch to the next, because memory that comes fresh from the system for each
/// costs a fifth of the time.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    panels: PackedWeights,
    parts: Vec<Part>,
    sum: Vec<f32>,
}

impl Workspace {
    /// Keeps a sum that was computed elsewhere.
    pub(crate) fn hold(&mut self, sum: Vec<f32>) -> &mut [f32] {
        self.sum = sum;
        &mut self.sum
    }
}

/// A part of a minibatch: its share of the gradient, and what it is computed in.
#[derive(Clone, Debug, Default)]
struct Part {
    scratch: Scratch,
    gradient: Vec<f32>,
}

/// Weights packed for both directions.
#[derive(Clone, Debug, Default)]
struct PackedWeights {
    forward: [Panels; 7],
    /// The same transposed, but for the first layer, whose inputs have no gradient; of the first of the context, the part
    /// that sees codes.
    backward: [Panels; 6],
    /// The layer of each kind of entities, whose inputs have no gradient.
    entities: Vec<Panels>,
}

/// The weights of one minibatch.
struct Packed<'a> {
    layout: &'a Layout,
    flat: &'a [f32],
    forward: &'a [Panels; 7],
    backward: &'a [Panels; 6],
    entities: &'a [Panels],
    sets: Vec<Set>,
}

/// Layers in the order of [`Packed::forward`]; those of [`Packed::backward`] begin with the second.
const LAYERS: [usize; 7] = [
    at::ENCODER_0,
    at::ENCODER_1,
    at::CONTEXT_0,
    at::CONTEXT_1,
    at::POINTER_CANDIDATE,
    at::POINTER_CONTEXT,
    at::VALUE_0,
];

impl<'a> Packed<'a> {
    fn new(layout: &'a Layout, flat: &'a [f32], panels: &'a mut PackedWeights) -> Packed<'a> {
        for (panels, layer) in panels.forward.iter_mut().zip(LAYERS) {
            panels.pack(layout.slice(flat, layer), layout.entries[layer].shape[1]);
        }
        let sets: Vec<Set> = layout.sets().collect();
        panels.entities.resize_with(sets.len(), Panels::default);
        for (panels, set) in panels.entities.iter_mut().zip(&sets) {
            panels.pack(layout.slice(flat, set.weight), layout.config.hidden);
        }
        let codes = layout.num_codes();
        for (panels, layer) in panels.backward.iter_mut().zip(&LAYERS[1..]) {
            let [inputs, outputs] = layout.entries[*layer].shape;
            let rows = if *layer == at::CONTEXT_0 { codes } else { inputs };
            panels.pack_transposed(layout.slice(flat, *layer), outputs, rows);
        }
        Packed {
            layout,
            flat,
            forward: &panels.forward,
            backward: &panels.backward,
            entities: &panels.entities,
            sets,
        }
    }

    fn of(&self, index: usize) -> &'a [f32] {
        self.layout.slice(self.flat, index)
    }
}

/// One chunk of decisions.
struct Chunk<'a, L, const N: usize> {
    net: &'a Packed<'a>,
    rows: &'a Rows,
    decisions: &'a [usize],
    loss: &'a L,
    scratch: &'a mut Scratch,
    /// What the chunk's gradient is added to.
    gradient: &'a mut [f32],
}

impl<L, const N: usize> Work for Chunk<'_, L, N>
where
    L: Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]),
{
    type Output = [f64; N];

    #[inline(always)]
    fn run<U: Unit>(self, unit: U) -> Self::Output {
        let Chunk {
            net,
            rows,
            decisions,
            loss,
            scratch,
            gradient,
        } = self;
        scratch.forward(unit, net, rows, decisions);
        let mut figures = [0.0; N];
        zeros(&mut scratch.by_logits, scratch.logits.len());
        scratch.by_values.clear();
        for (position, decision) in decisions.iter().enumerate() {
            let span = scratch.span(position);
            let (logits, value) = (&scratch.logits[span.clone()], scratch.values[position]);
            let (by_value, terms) = loss(*decision, logits, value, &mut scratch.by_logits[span]);
            scratch.by_values.push(by_value);
            figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
        scratch.backward(unit, net, gradient);
        figures
    }
}

/// Parts of a minibatch that are summed on their own, at most: enough for the cores of a machine, and few against the cost of a
/// list of all parameters for each. *Assumed.*
const MAX_PARTS: usize = 16;

/// As [`crate::network::sum_of_gradients`], in plain Rust. How a minibatch is cut depends on its size alone.
///
/// # Errors
/// [`Error::Contract`] where sizes of observations or parameters are not the layout's.
pub fn sum_of_gradients<'a, const N: usize>(
    (layout, workspace): (&Layout, &'a mut Workspace),
    flat: &[f32],
    rows: &Rows,
    decisions: &[usize],
    loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]) + Sync,
) -> Result<(&'a mut [f32], [f64; N]), Error> {
    check(layout, flat, rows, decisions.iter().copied())?;
    let Workspace { panels, parts, sum } = workspace;
    let net = Packed::new(layout, flat, panels);
    let share = CHUNK * decisions.len().div_ceil(CHUNK * MAX_PARTS).max(1);
    let num_parts = decisions.len().div_ceil(share);
    parts.resize_with(num_parts.max(parts.len()), Part::default);
    let figures: Vec<[f64; N]> = decisions
        .par_chunks(share)
        .zip(&mut parts[..num_parts])
        .map(|(decisions, Part { scratch, gradient })| {
            zeros(gradient, flat.len());
            let mut figures = [0.0; N];
            for decisions in decisions.chunks(CHUNK) {
                let terms = on_this_processor(Chunk {
                    net: &net,
                    rows,
                    decisions,
                    loss: &loss,
                    scratch,
                    gradient,
                });
                figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            }
            figures
        })
        .collect();
    zeros(sum, flat.len());
    for part in &parts[..num_parts] {
        sum.iter_mut()
            .zip(&part.gradient)
            .for_each(|(sum, part)| *sum += part);
    }
    let figures = figures.into_iter().fold([0.0; N], |sums, terms| {
        array::from_fn(|index| sums[index] + terms[index])
    });
    Ok((sum, figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::network;
    use crate::network::tests::{ENTITIES, PLAIN};
    use crate::parameters::{NetworkConfig, uniform};
    use crate::rows::Row;
    use pleach_env::seed::Seed;
    use pleach_env::vector::Spaces;

    /// Sizes that are no multiples of anything, decisions of 1 to 9 candidates, and entities or none.
    fn network_and_rows(
        hidden: usize,
        (spaces, heads): (Spaces, usize),
        num_decisions: usize,
    ) -> (Layout, Vec<f32>, Rows) {
        let layout = Layout::new(
            NetworkConfig {
                hidden,
                context: 24,
                heads,
            },
            spaces,
        )
        .unwrap();
        let mut random = Seed(5).stream("test", 0);
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| 2.0 * uniform(&mut random) as f32 - 1.0)
                .collect::<Vec<_>>()
        };
        let mut flat = layout.initial(Seed(3));
        let shifts = draw(flat.len());
        flat.iter_mut()
            .zip(shifts)
            .for_each(|(weight, shift)| *weight += 0.2 * shift);
        let plain = network::tests::rows(spaces, num_decisions);
        let mut rows = Rows::new(spaces);
        for decision in 0..num_decisions {
            let row = plain.row(decision);
            let prior = draw(row.num_candidates);
            rows.push_row(Row { prior: &prior, ..row });
        }
        (layout, flat, rows)
    }

    /// A loss whose derivatives depend on all that a loss sees.
    fn loss(decision: usize, logits: &[f32], value: f32, by_logits: &mut [f32]) -> (f32, [f64; 2]) {
        for (index, (by, logit)) in by_logits.iter_mut().zip(logits).enumerate() {
            *by = logit + (decision + index) as f32 % 3.0 - 1.0;
        }
        let sum = logits.iter().map(|logit| f64::from(*logit)).sum();
        (value - decision as f32 % 5.0, [sum, f64::from(value)])
    }

    #[test]
    fn the_gradient_is_burns_with_and_without_attention_and_entities() {
        // Two are large enough for parts of several chunks. The workspace goes from one network to the next.
        let mut workspace = Workspace::default();
        for (hidden, kind, num) in [
            (16, (PLAIN, 0), 150),
            (24, (PLAIN, 3), 150),
            (8, (PLAIN, 1), 1_100),
            (16, (ENTITIES, 0), 1_100),
            (24, (ENTITIES, 2), 150),
            (8, (PLAIN, 0), 70),
        ] {
            let (layout, flat, rows) = network_and_rows(hidden, kind, num);
            let decisions: Vec<usize> = (0..num).rev().collect();
            let (ours, figures) =
                sum_of_gradients((&layout, &mut workspace), &flat, &rows, &decisions, loss).unwrap();
            let (burns, wanted) =
                network::sum_of_gradients((&layout, Device::Cpu), &flat, &rows, &decisions, loss).unwrap();
            for entry in &layout.entries {
                let (ours, burns) = (&ours[entry.range.clone()], &burns[entry.range.clone()]);
                let size = burns.iter().fold(0.0_f32, |most, by| most.max(by.abs()));
                assert!(burns.is_empty() || size > 0.0, "{} has no gradient", entry.name);
                for (ours, burns) in ours.iter().zip(burns) {
                    assert!(
                        (ours - burns).abs() <= 2e-5 * size,
                        "{}: {ours} {burns} of {size}",
                        entry.name
                    );
                }
            }
            for (figure, wanted) in figures.iter().zip(wanted) {
                assert!((figure - wanted).abs() < 1e-2, "{figure} {wanted}");
            }
        }
    }

    #[test]
    fn the_gradient_does_not_depend_on_the_number_of_threads() {
        let (layout, flat, rows) = network_and_rows(16, (ENTITIES, 2), 1_100);
        let decisions: Vec<usize> = (0..1_100).collect();
        let on = |num_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(num_threads)
                .build()
                .unwrap();
            let mut workspace = Workspace::default();
            let (gradient, figures) = pool
                .install(|| sum_of_gradients((&layout, &mut workspace), &flat, &rows, &decisions, loss))
                .unwrap();
            (gradient.to_vec(), figures)
        };
        let one = on(1);
        assert_eq!(one, on(2));
        assert_eq!(one, on(4));
    }

    #[test]
    fn a_decision_without_candidates_is_an_error() {
        let (layout, flat, mut rows) = network_and_rows(8, (PLAIN, 0), 2);
        rows.push(&[0.0; 3], &[0.0; 5], &[false]);
        let mut workspace = Workspace::default();
        let mut sum = |decisions: &[usize]| match sum_of_gradients(
            (&layout, &mut workspace),
            &flat,
            &rows,
            decisions,
            loss,
        ) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let error = sum(&[0, 2]);
        assert!(error.contains("0 in decision 2"), "{error}");
        assert_eq!(sum(&[0, 1]), "");
    }
}
